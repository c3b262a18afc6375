// The checks that decide whether the graph of the last evaluation serves again.

import { tableDetail } from "./detail_table.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./detail_table.js").Row} Row */

export const reuseDetail = tableDetail({
  name: "reuse",
  title: "Reuse",
  track: "reuse",
  columns: [{ head: "asked by" }, { head: "condition" }, { head: "had", right: true }, { head: "needs", right: true }, { head: "holds" }],
  widths: "minmax(0, 1.5fr) minmax(0, 1.2fr) 0.8fr 0.8fr 0.5fr",
  rows: reuseRows,
  empty: "No reuse check at this step.",
});

/** @param {Player} player @param {number} step @returns {Row[]} */
function reuseRows(player, step) {
  const { tracks } = player;
  const track = tracks.track("reuse");
  const [evaluation, ok] = ["eval", "ok"].map((n) => track.col(n));
  const rows = track.openAt(step);
  const last = rows.reduce((e, r) => Math.max(e, evaluation[r]), -1);
  return rows
    .filter((r) => evaluation[r] === last)
    .map((r) => ({
      cells: [...["owner", "condition", "had", "needs"].map((n) => track.str(n, r)), ok[r] ? "yes" : "no"],
      marked: track.a[r] === step,
      bad: !ok[r],
    }));
}
