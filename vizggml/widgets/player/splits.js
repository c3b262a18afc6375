// Splits of a graph over backends: the colour of each node's backend, the copies between them, and the table of both.

import { tableDetail } from "./detail_table.js";
import { el } from "./dom.js";
import { STRIP, cell } from "./graph_marks.js";
import { formatBytes, visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./folding.js").Folding} Folding */
/** @typedef {import("./graph_paint.js").GraphPainter} GraphPainter */
/** @typedef {CanvasRenderingContext2D} Context */

const STRIPE = 3.5;
const WHOLE_BELOW = 0.3;
const NOWHERE = 255;

/** The backends of the trace in order of their first split; none where no graph is split over two. @param {Player} player
 * @returns {string[]} */
export function backendsOf({ tracks, relations }) {
  return relations.keep("backends", () => {
    const track = tracks.track("split");
    const names = [...new Set(Array.from({ length: track.length }, (_, r) => track.str("backend", r)))];
    return names.length > 1 ? names : [];
  });
}

/** The colour of a backend. @param {Player} player @param {number} k its place in `backendsOf` */
function colourOf({ palette }, k) {
  return palette.backends[k % palette.backends.length];
}

/** @param {Player} player @param {HTMLElement} legend */
export function nameBackends(player, legend) {
  const names = backendsOf(player);
  names.forEach((name, k) => {
    const mark = el("span", "vg-swatch vg-stripe");
    mark.style.background = `var(--vg-backends-${k % 4})`;
    legend.append(el("span", "vg-key", {}, [mark, el("span", "", { text: visible(name) })]));
  });
  if (names.length) legend.append(el("span", "vg-key", {}, [el("span", "vg-line-mark vg-copied"), el("span", "", { text: "copy to another backend" })]));
}

/** The place in `backendsOf` of each tensor's backend at a step; null where it has none. @param {Player} player
 * @param {number} step @returns {Uint8Array | null} */
function backendByTensor(player, step) {
  const names = backendsOf(player);
  if (!names.length) return null;
  const { tracks, relations } = player;
  const [splits, copies] = [tracks.track("split"), tracks.track("copy")];
  const rows = splits.openAt(step);
  if (!rows.length) return null;
  return relations.keep(`backend ${rows.join()}`, () => {
    const of = new Uint8Array(tracks.nTensors).fill(NOWHERE);
    const [graph, first] = ["graph", "first_node"].map((n) => splits.col(n));
    const [ptr, node] = [tracks.columns.column("graph.ptr"), tracks.columns.column("graph.node")];
    const indexOf = (/** @type {string} */ name) => names.indexOf(name);
    const nodeAt = (/** @type {number} */ r) => ptr[graph[r]] + first[r];
    for (const r of rows) {
      const end = rows.filter((q) => graph[q] === graph[r] && first[q] > first[r]).reduce((least, q) => Math.min(least, nodeAt(q)), ptr[graph[r] + 1]);
      for (let k = nodeAt(r); k < end; k++) of[node[k]] = indexOf(splits.str("backend", r));
    }
    const copy = copies.col("copy");
    for (const r of copies.openAt(step)) if (copy[r] >= 0) of[copy[r]] = indexOf(copies.str("backend", r));
    return of;
  });
}

/** A stripe along the foot of each box in the colour of its backend; under a card's cells, of their nodes' backend.
 * @param {Context} c @param {Player} player @param {Folding} folding @param {number} step @param {number} scale
 * @param {{left: number, top: number, height: number}} strip where a card's cells are */
export function paintBackends(c, player, folding, step, scale, strip) {
  const of = backendByTensor(player, step);
  if (!of) return;
  const { tensor, w, h } = folding.graph.nodes;
  const high = scale < WHOLE_BELOW ? 8 : STRIPE;
  for (let row = 0; row < tensor.length; row++) {
    if (of[tensor[row]] === NOWHERE || !folding.shown(row)) continue;
    c.fillStyle = colourOf(player, of[tensor[row]]);
    c.fillRect(folding.x(row) - w[row] / 2 + 0.5, folding.y(row) + h[row] / 2 - high - 0.5, w[row] - 1, high);
  }
  for (const item of folding.items) {
    if (!item.card) continue;
    const wide = (item.w - 2 * strip.left) / item.sections.length;
    item.sections.forEach((s, k) => {
      const placed = folding.graph.sections[s].nodes.map((/** @type {number} */ t) => of[t]).filter((/** @type {number} */ b) => b !== NOWHERE);
      placed.sort();
      placed.forEach((/** @type {number} */ b, /** @type {number} */ n) => {
        c.fillStyle = colourOf(player, b);
        const part = (wide - 1) / placed.length;
        c.fillRect(item.x + strip.left + wide * k + part * n, item.y + strip.top + strip.height + 3, part + 0.2, STRIPE);
      });
    });
  }
}

/** What is copied for a split, on its way to the nodes that read it: dashed until the bytes are there.
 * @param {Context} c @param {Player} player @param {{folding: Folding, painter: GraphPainter}} drawing @param {number} step
 * @param {number} scale */
export function paintCopies(c, player, { folding, painter }, step, scale) {
  const of = backendByTensor(player, step);
  if (!of) return;
  const copied = copiesAt(player, step);
  if (!copied.size) return;
  const { src, dst } = folding.graph.edges;
  const rows = folding.graph.nodes.tensor;
  /** @type {Map<string, {row: number, backend: number, there: boolean}>} */
  const folded = new Map();
  c.lineWidth = Math.max(2.2, 1.6 / scale);
  for (const t of copied.keys()) {
    for (const e of folding.outOf(t)) {
      const to = of[rows[dst[e]]];
      const copy = copied.get(t)?.find((k) => k.backend === to);
      if (!copy) continue;
      if (!folding.shown(dst[e])) folded.set(`${folding.sectionOf[dst[e]]} ${to}`, { row: dst[e], ...copy });
      c.strokeStyle = colourOf(player, to);
      c.setLineDash(copy.there ? [] : [6, 4]);
      c.beginPath();
      painter.trace(c, e, null, null);
      c.stroke();
    }
  }
  c.setLineDash([]);
  for (const copy of folded.values()) paintArrival(c, player, folding, copy);
}

/** An arrow into a folded block that something is copied for, hollow until the bytes are there. @param {Context} c
 * @param {Player} player @param {Folding} folding @param {{row: number, backend: number, there: boolean}} copy */
function paintArrival(c, player, folding, { row, backend, there }) {
  const { x, w } = cell(folding, row);
  const { item } = folding.anchor(row);
  const [middle, top] = [x + w / 2, item.y + STRIP.top - 9];
  c.beginPath();
  c.moveTo(middle - 5, top);
  c.lineTo(middle + 5, top);
  c.lineTo(middle, top + 8);
  c.closePath();
  c.fillStyle = there ? colourOf(player, backend) : player.palette.raised;
  c.strokeStyle = colourOf(player, backend);
  c.lineWidth = 1.5;
  c.fill();
  c.stroke();
}

/** What is copied into the blocks of a card at a step, in words. @param {Player} player @param {Folding} folding
 * @param {number[]} sections @param {number} step */
export function copiesInto(player, folding, sections, step) {
  const of = backendByTensor(player, step);
  if (!of) return [];
  const names = backendsOf(player);
  const { tensor } = folding.graph.nodes;
  const { dst } = folding.graph.edges;
  const said = [];
  for (const [t, list] of copiesAt(player, step)) {
    for (const { backend } of list) {
      const into = folding.outOf(t).find((e) => sections.includes(folding.sectionOf[dst[e]]) && of[tensor[dst[e]]] === backend);
      if (into !== undefined) said.push(`${visible(player.tracks.name(t))} to ${visible(names[backend] ?? "")}`);
    }
  }
  return said;
}

/** The copies of each tensor that are made or meant at a step. @param {Player} player @param {number} step */
function copiesAt(player, step) {
  const { tracks } = player;
  const track = tracks.track("copy");
  const [tensor, nbytes] = ["tensor", "nbytes"].map((n) => track.col(n));
  const names = backendsOf(player);
  /** @type {Map<number, {backend: number, there: boolean}[]>} */
  const copied = new Map();
  track.each(step, (r) => {
    const list = copied.get(tensor[r]) ?? [];
    list.push({ backend: names.indexOf(track.str("backend", r)), there: nbytes[r] >= 0 });
    copied.set(tensor[r], list);
  });
  return copied;
}

/** @param {Player} player @param {number} step @returns {import("./detail_table.js").Row[]} */
function splitRows({ tracks, relations }, step) {
  const [splits, copies] = [tracks.track("split"), tracks.track("copy")];
  const [graph, split, first] = ["graph", "split", "first_node"].map((n) => splits.col(n));
  const [tensor, nbytes, ofGraph, ofSplit, copy] = ["tensor", "nbytes", "graph", "split", "copy"].map((n) => copies.col(n));
  const [ptr, node] = [tracks.columns.column("graph.ptr"), tracks.columns.column("graph.node")];
  const open = splits.openAt(step);
  const about = relations.focus.graph[step];
  const shown = open.some((r) => graph[r] === about) ? about : graph[open[open.length - 1]];
  const brought = copies.openAt(step);
  const rows = open.filter((r) => graph[r] === shown);
  const current = relations.focus.node[step];
  const nodes = Array.from(node.subarray(ptr[shown] ?? 0, ptr[shown + 1] ?? 0));
  const at = nodes.indexOf(current);
  return rows.map((r, k) => {
    const end = k + 1 < rows.length ? first[rows[k + 1]] : nodes.length;
    const inputs = brought.filter((q) => ofGraph[q] === shown && ofSplit[q] === split[r]).sort((p, q) => copy[p] - copy[q]);
    const words = inputs.map((q) => visible(tracks.name(tensor[q])) + (nbytes[q] >= 0 ? ` ${formatBytes(nbytes[q])}` : ""));
    const said = tracks.field(step, "graph") === shown ? tracks.field(step, "split") : undefined;
    const marked = said === undefined ? at >= first[r] && at < end : said === split[r];
    const name = nodes.length > first[r] ? visible(tracks.name(nodes[first[r]])) : "";
    return {
      cells: [String(split[r]), visible(splits.str("backend", r)), `${first[r]}: ${name}`, String(end - first[r]), words.join(", ") || "none copied"],
      marked,
      titled: true,
    };
  });
}

export const splitsDetail = tableDetail({
  name: "splits",
  title: "Splits",
  track: "split",
  columns: [{ head: "split", right: true }, { head: "backend" }, { head: "first node" }, { head: "nodes", right: true }, { head: "inputs copied" }],
  widths: "40px minmax(50px, 0.5fr) minmax(0, 1fr) 44px minmax(0, 2fr)",
  rows: splitRows,
  empty: "No graph is split at this step.",
});
