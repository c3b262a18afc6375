// The free list: every block that an allocator has to give, in the order of its addresses.

import { tableDetail } from "./detail_table.js";
import { formatBytes, visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./detail_table.js").Row} Row */

export const freeDetail = tableDetail({
  name: "free",
  title: "Free list",
  track: "block",
  columns: [{ head: "block" }, { head: "offset", right: true }, { head: "size", right: true }, { head: "how it came" }, { head: "in this search" }],
  widths: "38px minmax(54px, 0.7fr) minmax(62px, 0.8fr) minmax(0, 1.1fr) minmax(0, 1.4fr)",
  rows: freeRows,
  empty: "No free block at this step: the allocator has none before a plan begins (galloc.reserve, galloc.alloc_graph).",
});

/** What the search that is going on says of each block, by chunk and offset: looked at as which, and the verdict.
 * @param {Player} player @param {number} step @returns {Map<string, string>} */
function searchedAt({ tracks }, step) {
  const said = new Map();
  const kind = (/** @type {number} */ i) => tracks.kindOf(i).name;
  let from = step;
  while (from > 0 && (kind(from) === "BlockConsidered" || kind(from) === "BlockChosen")) from--;
  if (kind(from) !== "SearchBegin") return said;
  for (let i = from + 1; i <= step; i++) {
    const key = `${tracks.field(i, "chunk")} ${tracks.field(i, "offset")}`;
    const words = kind(i) === "BlockChosen" ? `chosen: ${tracks.field(i, "rule")}` : `${i - from}: ${tracks.field(i, "verdict")}`;
    said.set(key, visible(words));
  }
  return said;
}

/** Why a block is there as it is: freed after a node, left over by one, opened with its chunk. @param {Player} player @param {number} row */
function originOf({ tracks }, row) {
  const since = tracks.track("block").a[row];
  const node = tracks.node[since];
  const who = node >= 0 ? visible(tracks.name(node)) : "";
  switch (tracks.kindOf(since).name) {
    case "BlockInserted":
      return who ? `freed after ${who}` : "freed";
    case "BlockMerged":
      return who ? `merged after ${who}` : "merged";
    case "BlockSplit":
    case "BlockChosen":
      return who ? `left over by ${who}` : "left over";
    default:
      return "there from the start";
  }
}

/** @param {Player} player @param {number} step @returns {Row[]} */
function freeRows(player, step) {
  const { tracks } = player;
  const track = tracks.track("block");
  const [chunk, offset, size, owner] = ["chunk", "offset", "size", "owner"].map((n) => track.col(n));
  const rows = track.openAt(step).filter((r) => owner[r] < 0);
  rows.sort((p, q) => chunk[p] - chunk[q] || offset[p] - offset[q]);
  const [atChunk, atOffset] = [tracks.field(step, "chunk"), tracks.field(step, "offset")];
  const said = searchedAt(player, step);
  let block = 0;
  return rows.map((r, k) => {
    block = k > 0 && chunk[rows[k - 1]] === chunk[r] ? block + 1 : 0;
    const open = size[r] < 0 || size[r] > 2 ** 50;
    const marked = chunk[r] === atChunk && offset[r] === atOffset;
    const place = rows.some((q) => chunk[q] !== chunk[r]) ? `${chunk[r]}.${block}` : String(block);
    const words = said.get(`${chunk[r]} ${offset[r]}`) ?? "";
    return { cells: [place, String(offset[r]), open ? "to the end" : formatBytes(size[r]), originOf(player, r), words], marked, titled: true };
  });
}
