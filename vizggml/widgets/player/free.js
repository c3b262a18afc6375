// The free list: every block that an allocator has to give, in the order of its addresses.

import { tableDetail } from "./detail_table.js";
import { formatBytes } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./detail_table.js").Row} Row */

export const freeDetail = tableDetail({
  name: "free",
  title: "Free list",
  track: "block",
  columns: [{ head: "chunk", right: true }, { head: "block", right: true }, { head: "offset", right: true }, { head: "size", right: true }],
  widths: "0.7fr 0.7fr 1.2fr 1.2fr",
  rows: freeRows,
  empty: "No free block at this step.",
});

/** @param {Player} player @param {number} step @returns {Row[]} */
function freeRows(player, step) {
  const { tracks } = player;
  const track = tracks.track("block");
  const [chunk, offset, size, owner] = ["chunk", "offset", "size", "owner"].map((n) => track.col(n));
  const rows = track.openAt(step).filter((r) => owner[r] < 0);
  rows.sort((p, q) => chunk[p] - chunk[q] || offset[p] - offset[q]);
  const [atChunk, atOffset] = [tracks.field(step, "chunk"), tracks.field(step, "offset")];
  let block = 0;
  return rows.map((r, k) => {
    block = k > 0 && chunk[rows[k - 1]] === chunk[r] ? block + 1 : 0;
    const open = size[r] < 0 || size[r] > 2 ** 50;
    const marked = chunk[r] === atChunk && offset[r] === atOffset;
    return { cells: [String(chunk[r]), String(block), String(offset[r]), open ? "to the end" : formatBytes(size[r])], marked };
  });
}
