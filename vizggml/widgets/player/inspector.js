// One tensor: what it is, where it lies, who reads it and when it lives.

import { tableDetail } from "./detail_table.js";
import { lifeOf } from "./map.js";
import { formatBytes, formatDims, formatField, visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./detail_table.js").Row} Row */

export const inspectorDetail = tableDetail({
  name: "tensor",
  title: "Tensor",
  track: "",
  columns: [{ head: "" }, { head: "" }],
  widths: "minmax(90px, 0.35fr) 1fr",
  rows: tensorRows,
  empty: "No tensor at this step.",
});

/** @param {Player} player @param {number} step @returns {Row[]} */
function tensorRows(player, step) {
  const { tracks, relations, selected } = player;
  const t = selected >= 0 ? selected : relations.tensorAt(step);
  if (t < 0) return [];
  const table = (/** @type {string} */ name) => tracks.columns.column(`tensor.${name}`);
  const names = (/** @type {Int32Array} */ list) => Array.from(list, (s) => (s < 0 ? "none" : visible(tracks.name(s)))).join(", ") || "none";
  const op = tracks.tensorString("desc", t) || tracks.tensorString("op", t);
  /** @type {[string, string][]} */
  const pairs = [
    ["name", visible(tracks.name(t))],
    ["op", op === "NONE" || op === "" ? "none: a leaf" : op],
    ["type", tracks.tensorString("type", t)],
    ["ne", formatDims(tracks.ne(t))],
    ["nb", Array.from(table("nb").subarray(4 * t, 4 * t + 4)).join(", ")],
    ["size", formatBytes(tracks.nbytes(t))],
    ["reads", names(relations.sources(t))],
    ["read by", names(consumersNear(player, t, step))],
  ];
  const viewSrc = table("view_src")[t];
  if (viewSrc >= 0) pairs.push(["view of", `${visible(tracks.name(viewSrc))}, from byte ${table("view_offs")[t]}`]);
  pairs.push(["flags", formatField(tracks, "flags", table("flags")[t] ?? 0)]);
  if (table("external")[t]) pairs.push(["memory", "its own, outside the plan"]);
  pairs.push(...lifeOf(player, t, step));
  return pairs.map(([key, value]) => ({ cells: [key, value] }));
}

/** What reads tensor `t` in the graph of this step; a weight is read in every graph. @param {Player} player @param {number} t
 * @param {number} step */
function consumersNear({ relations }, t, step) {
  const all = relations.consumers(t);
  const here = all.filter((s) => relations.home.graph[s] === relations.focus.graph[step]);
  return here.length ? here : all;
}
