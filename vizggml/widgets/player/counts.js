// The counts of each tensor: uses in the graph, children and views in the allocator.

import { tableDetail } from "./detail_table.js";
import { visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./detail_table.js").Row} Row */

const MOST_COUNTS = 400;
const NEVER = -1;

export const countsDetail = tableDetail({
  name: "counts",
  title: "Counts",
  track: "count",
  columns: [{ head: "tensor" }, { head: "uses", right: true }, { head: "children left", right: true }, { head: "views left", right: true }, { head: "" }],
  widths: "minmax(0, 2fr) 40px 74px 60px minmax(0, 1.2fr)",
  rows: countRows,
  empty: "Nothing is counted yet: build_forward_expand counts uses, alloc_graph counts children and views.",
});

/** The current node and what it reads first, then whatever still has readers: by the plan, or before there is one by the graph. @param {Player} player @param {number} step @returns {Row[]} */
function countRows(player, step) {
  const { tracks, relations } = player;
  const track = tracks.track("count");
  const [tensor, which, value] = ["tensor", "which", "value"].map((n) => track.col(n));
  /** @type {Map<number, [number, number, number]>} */
  const counts = new Map();
  track.each(step, (r) => {
    let entry = counts.get(tensor[r]);
    if (!entry) counts.set(tensor[r], (entry = [NEVER, NEVER, NEVER]));
    entry[which[r]] = value[r];
  });
  const current = relations.tensorAt(step);
  const near = new Set([current, ...relations.sources(current)]);
  const planned = [...counts.values()].some((c) => c[1] > 0 || c[2] > 0);
  const waits = (/** @type {number[]} */ c) => (planned ? c[1] > 0 || c[2] > 0 : c[0] > 0);
  const rest = [...counts].filter(([t, c]) => !near.has(t) && waits(c)).map(([t]) => t);
  const order = [...near].filter((t) => counts.has(t)).concat(rest.slice(-MOST_COUNTS).reverse());
  return order.map((t) => {
    const c = counts.get(t) ?? [NEVER, NEVER, NEVER];
    const role = t === current ? "current node" : near.has(t) ? "read by it" : "";
    return { cells: [visible(tracks.name(t)), ...c.map((n) => (n === NEVER ? "–" : String(n))), role], marked: t === current, tensor: t };
  });
}
