// The table of a comparison: what became of each tensor of two graphs; the same thing in several layers is one row.

import { arrows } from "./compare_head.js";
import { el, setText } from "./dom.js";
import { VirtualList } from "./list.js";
import { formatBytes, formatCount, visible } from "./sentence.js";

/**
 * @typedef {{kinds: string[], name: string, layers: string, op: string, details: string, bytes: number, members: number[][]}} ChangeRow
 * @typedef {{role: string, graphs: number[], counts: Record<string, number>, rows: ChangeRow[]}} PairRows
 */

const ROW = 24;
/** @type {Record<string, string>} */
const SIGNS = { removed: "−", added: "+", changed: "≠", grown: "▲", shrunk: "▼", longer: "↔", shorter: "↔", moved: "↕" };
/** @type {Record<string, string>} */
const WORDS = { longer: "lives longer", shorter: "lives shorter" };

export class CompareTable {
  /** @param {any} meta @param {(members: number[][], k: number) => void} show one of a row's tensors, in both
   * @param {() => void} filtered told when other rows stand */
  constructor(meta, show, filtered) {
    this.show = show;
    this.filtered = filtered;
    /** @type {PairRows[]} */
    this.pairs = meta.pairs;
    this.kinds = meta.kinds;
    this.pair = this.pairs[meta.main];
    this.kind = "";
    this.text = "";
    /** Which of a row's tensors was shown last: another click goes to the next layer. @type {[ChangeRow | null, number]} */
    this.shown = [null, -1];
    /** @type {ChangeRow[]} */
    this.rows = [];
    this.list = new VirtualList({
      label: "Differences",
      rowHeight: ROW,
      makeRow: () => el("div", "vg-grid-row vg-cmp-row", {}, ["vg-cmp-kind", "vg-mono", "vg-cmp-op", "vg-soft", "vg-soft vg-cmp-how", "vg-right"].map((c) => el("span", c))),
      fillRow: (row, index) => this.fillRow(row, this.rows[index]),
      choose: (index) => this.choose(index),
      className: "vg-cmp-list",
    });
    this.list.element.addEventListener("keydown", (event) => this.onKey(event));
    this.chips = el("div", "vg-cmp-chips", { role: "group", "aria-label": "Which differences" });
    this.choice = el("select", "vg-select", { "aria-label": "Which graph" }, this.pairs.map((pair, k) => el("option", "", { value: String(k), text: visible(pair.role) })));
    this.choice.value = String(meta.main);
    this.choice.addEventListener("change", () => this.setPair(Number(this.choice.value)));
    this.search = el("input", "vg-search", { type: "search", placeholder: "name or op", "aria-label": "Filter the differences by name or op" });
    this.search.addEventListener("input", () => this.setText(this.search.value));
    this.empty = el("p", "vg-empty", { text: "Nothing differs here." });
    const head = ["what", "tensor", "op", "layer", "how", "bytes each"].map((title) => el("span", title === "bytes each" ? "vg-right" : `vg-cmp-${title}`, { text: title }));
    this.element = el("section", "vg-cmp-table", { "aria-label": "Differences" }, [
      el("div", "vg-cmp-tools", {}, [this.choice, this.chips, this.search]),
      el("div", "vg-grid-head vg-cmp-columns", {}, head),
      this.empty,
      this.list.element,
    ]);
    this.element.hidden = !this.pairs.some((pair) => pair.rows.length);
    this.setPair(meta.main);
  }

  /** @param {number} k */
  setPair(k) {
    this.pair = this.pairs[k];
    if (!this.pair) return;
    if (!this.pair.counts[this.kind]) this.kind = "";
    const all = this.pair.rows.reduce((sum, row) => sum + row.members.length, 0);
    const kinds = this.kinds.filter((/** @type {string} */ kind) => this.pair.counts[kind]);
    this.chips.replaceChildren(this.chip("", "all", all), ...kinds.map((/** @type {string} */ kind) => this.chip(kind, WORDS[kind] ?? kind, this.pair.counts[kind])));
    this.filter();
  }

  /** @param {string} kind @param {string} word @param {number} n */
  chip(kind, word, n) {
    const made = el("button", "vg-cmp-chip", { type: "button", "data-kind": kind, "aria-pressed": String(kind === this.kind) });
    made.append(...(kind ? [el("span", `vg-cmp-sign vg-cmp-${kind}`, { text: SIGNS[kind], "aria-hidden": "true" })] : []), word, el("span", "vg-cmp-n", { text: formatCount(n) }));
    made.addEventListener("click", () => {
      this.kind = this.kind === kind ? "" : kind;
      for (const chip of this.chips.children) chip.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (chip).dataset.kind === this.kind));
      this.filter();
    });
    return made;
  }

  /** @param {string} text */
  setText(text) {
    this.text = text.trim().toLowerCase();
    this.filter();
  }

  filter() {
    const { kind, text } = this;
    this.rows = this.pair.rows.filter((row) => (!kind || row.kinds.includes(kind)) && (!text || `${row.name} ${row.op}`.toLowerCase().includes(text)));
    this.list.setCurrent(this.rows.indexOf(/** @type {ChangeRow} */ (this.shown[0])));
    this.list.setLength(this.rows.length);
    this.empty.hidden = this.rows.length > 0;
    this.filtered();
  }

  /** What the rows that stand say of the tensors of one side: of several differences the one that is asked for, else the
   * first. @param {0 | 1} side @returns {Map<number, import("./marks.js").Mark>} */
  marks(side) {
    const marks = new Map();
    for (const row of this.rows) for (const members of row.members) if (members[side] >= 0) marks.set(members[side], this.kind || row.kinds[0]);
    return marks;
  }

  /** @param {HTMLElement} element @param {ChangeRow} row */
  fillRow(element, row) {
    const [kind, name, op, layers, details, bytes] = /** @type {any} */ (element.children);
    const first = row.kinds[0];
    kind.replaceChildren(el("span", `vg-cmp-sign vg-cmp-${first}`, { text: SIGNS[first], "aria-hidden": "true" }), row.kinds.map((k) => WORDS[k] ?? k).join(", "));
    kind.title = row.kinds.map((k) => WORDS[k] ?? k).join(", ");
    setText(name, visible(row.name) || "unnamed");
    name.title = name.textContent;
    setText(op, row.op === "NONE" ? "" : row.op);
    setText(layers, row.members.length > 1 ? `${row.layers} (${row.members.length})` : row.layers);
    setText(details, arrows(row.details));
    details.title = details.textContent;
    setText(bytes, row.bytes ? `${row.bytes < 0 ? "−" : "+"}${formatBytes(Math.abs(row.bytes))}` : "");
  }

  /** @param {number} index */
  choose(index) {
    const row = this.rows[index];
    if (!row) return;
    const k = this.shown[0] === row ? (this.shown[1] + 1) % row.members.length : 0;
    this.shown = [row, k];
    this.list.setCurrent(index);
    this.show(row.members, k);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = this.list.current;
    if (event.key === "Enter" && at >= 0) this.choose(at);
    else if (step) {
      const to = Math.max(0, Math.min(this.rows.length - 1, at + step));
      this.list.show(to);
      if (to !== at) this.choose(to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  stop() {
    this.list.stop();
  }
}
