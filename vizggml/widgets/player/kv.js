// The KV cache: its cells by position and sequence, and what each layer has written there.

import { tableDetail } from "./detail_table.js";
import { paintCells } from "./plots.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./detail_table.js").Row} Row */

export const kvDetail = tableDetail({
  name: "kv",
  title: "KV cache",
  track: "cell",
  columns: [{ head: "cell", right: true }, { head: "position", right: true }, { head: "sequence", right: true }],
  widths: "1fr 1fr 1fr",
  rows: cellRows,
  plot: paintCells,
  plotHeight: 74,
  empty: "No cell is taken at this step.",
});

/** @param {Player} player @param {number} step @returns {Row[]} */
function cellRows(player, step) {
  const track = player.tracks.track("cell");
  const [cell, pos, seq] = ["cell", "pos", "seq"].map((n) => track.col(n));
  const at = player.tracks.field(step, "cell");
  const rows = track.openAt(step).sort((p, q) => cell[p] - cell[q]);
  return rows.map((r) => ({ cells: [String(cell[r]), String(pos[r]), String(seq[r])], marked: cell[r] === at }));
}
