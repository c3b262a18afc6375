// What does not change of a cache: types and bytes, and how many query heads share a head of keys and values.

import { counted } from "./detail_plot.js";
import { el } from "./dom.js";
import { familyOfSequence } from "./kv_paint.js";
import { formatBytes } from "./sentence.js";

/** @typedef {import("./kv_state.js").Shape} Shape */

const MOST_HEADS = 32;
const MOST_KEYS = 6;

/** @param {[number, number]} range */
function span([least, most]) {
  return least === most ? String(most) : `${least} to ${most}`;
}

/** @param {Shape} shape */
export function headsWords({ nHead, nHeadKv }) {
  if (!nHead[1] || !nHeadKv[1]) return "";
  const times = nHead[1] / nHeadKv[1];
  const heads = (/** @type {number} */ n, /** @type {string} */ kind) => `${kind} head${n === 1 ? "" : "s"}`;
  const asked = `${span(nHead)} ${heads(nHead[1], "query")} read ${span(nHeadKv)} ${heads(nHeadKv[1], "KV")}`;
  if (nHead[0] !== nHead[1] || nHeadKv[0] !== nHeadKv[1]) return `${asked}, layer by layer`;
  if (times === 1) return `${asked}, one each`;
  return `${asked}: ${Number(times.toFixed(2))} x smaller than with one each`;
}

/** Which colour is which sequence. @param {Shape} shape */
export function sequenceKeys({ seqs }) {
  return seqs.slice(0, MOST_KEYS).map((seq) => {
    const mark = el("span", "vg-swatch");
    mark.style.background = `var(--vg-families-${familyOfSequence(seq)})`;
    return el("span", "vg-key", {}, [mark, el("span", "", { text: `sequence ${seq}` })]);
  });
}

/** @param {HTMLElement} host @param {Shape} shape */
export function makeFacts(host, shape) {
  const sizes = el("div", "vg-pairs");
  for (const [side, type, bytes] of /** @type {[string, string, number][]} */ ([["K", shape.typeK, shape.bytesK], ["V", shape.typeV, shape.bytesV]])) {
    if (type) sizes.append(el("div", "vg-dt", { role: "term", text: side }), el("div", "vg-dd", { role: "definition", text: type }), el("div", "vg-dd vg-end", { role: "definition", text: formatBytes(bytes) }));
  }
  const total = `${shape.nCells} cells x ${counted(shape.nLayer, "layer")}` + (shape.bytesK ? `, ${formatBytes(shape.bytesK + shape.bytesV)}` : "");
  const parts = [el("section", "", {}, [el("h3", "", { text: "reserved" }), sizes, el("p", "vg-soft", { text: total })])];
  if (shape.seqs.length) parts.push(el("section", "", {}, [el("h3", "", { text: "colours" }), el("div", "vg-kv-keys", {}, sequenceKeys(shape))]));
  const words = headsWords(shape);
  if (words) parts.push(el("section", "", {}, [el("h3", "", { text: "grouped heads, in each layer" }), headsDrawn(shape, words), el("p", "", { text: words })]));
  parts.push(
    el("section", "", {}, [
      el("h3", "", { text: "read it so" }),
      el("p", "vg-soft", { text: "A column is a cell, a line of it a layer. Outlined: what this evaluation writes, empty until its layer has computed it. The bar above marks the cells that the newest token attends to." + (shape.window ? " Pale cells have left the window: a new token may take them." : "") }),
    ]),
  );
  host.replaceChildren(...parts);
}

/** Query heads over the KV heads that they read. @param {Shape} shape @param {string} words */
function headsDrawn({ nHead, nHeadKv }, words) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const queries = Math.min(nHead[1], MOST_HEADS);
  const keys = Math.max(1, Math.round((queries * nHeadKv[1]) / nHead[1]));
  const [wide, high] = [184, 46];
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${wide} ${high}`, class: "vg-heads", role: "img", "aria-label": words })) svg.setAttribute(name, value);
  const each = wide / queries;
  const group = queries / keys;
  const add = (/** @type {string} */ tag, /** @type {Record<string, string | number>} */ attributes) => {
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
    svg.append(made);
  };
  for (let q = 0; q < queries; q++) {
    const [x, centre] = [q * each, (Math.floor(q / group) + 0.5) * group * each];
    add("path", { d: `M${x + each / 2} 14L${centre} 32`, stroke: "var(--vg-edge)", fill: "none" });
    add("rect", { x: x + 0.75, y: 2, width: Math.max(1, each - 1.5), height: 12, rx: 2, fill: "var(--vg-families-0)" });
  }
  for (let k = 0; k < keys; k++) {
    const x = (k + 0.5) * group * each;
    const half = Math.min(16, (group * each) / 2 - 1);
    add("rect", { x: x - half, y: 32, width: 2 * half, height: 12, rx: 2, fill: "var(--vg-families-2)" });
  }
  return svg;
}
