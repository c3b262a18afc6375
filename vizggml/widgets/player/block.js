// One block of a quantized tensor, opened: its bytes by field, what each field says, and what its elements come to.

import { el, setText } from "./dom.js";
import { Links } from "./links.js";
import { visible } from "./sentence.js";
import { formatValue } from "./value_plots.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */

const NARROW = 620;
/** The families' colours, in an order in which neighbours differ: field k of a block has colour k. */
const FIELD_COLOURS = [4, 0, 2, 3, 1, 5, 6];
const STRONGEST = 70;
const UNKNOWN = -2;

/** @type {import("./details.js").Detail} */
export const blockDetail = {
  name: "block",
  title: "Block",
  has: ({ tracks }) => tracks.columns.column("blk.tensor").length > 0,
  make: (player, pane) => new BlockView(player, pane),
};

/** The rows of the table of blocks that are known at a step, of one tensor. @param {Player} player @param {number} t
 * @param {number} step @returns {number[]} */
function blocksOf({ tracks }, t, step) {
  const [tensor, event, block] = ["tensor", "event", "block"].map((name) => tracks.columns.column(`blk.${name}`));
  /** @type {Map<number, number>} */
  const newest = new Map();
  for (let r = 0; r < tensor.length; r++) if (tensor[r] === t && event[r] <= step) newest.set(block[r], r);
  return [...newest.entries()].sort(([p], [q]) => p - q).map(([, r]) => r);
}

/** The tensor whose blocks are shown: the one that is looked at, or one that it reads, or the one told of last (-1: rows of no
 * tensor); UNKNOWN where no block is known.
 * @param {Player} player @param {number} step */
function tensorAt(player, step) {
  const { relations, selected, tracks } = player;
  const t = selected >= 0 ? selected : relations.tensorAt(step);
  if (t >= 0) {
    const found = [t, relations.root(t), ...relations.sources(t)].find((s) => s >= 0 && blocksOf(player, s, step).length > 0);
    if (found !== undefined) return found;
    if (selected >= 0) return UNKNOWN;
  }
  const [tensor, event] = ["tensor", "event"].map((name) => tracks.columns.column(`blk.${name}`));
  let last = -1;
  for (let r = 0; r < tensor.length; r++) if (event[r] <= step && (last < 0 || event[r] > event[last])) last = r;
  return last < 0 ? UNKNOWN : tensor[last];
}

class BlockView {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.player = player;
    this.pane = pane;
    this.tensor = UNKNOWN;
    this.chosen = 0;
    /** @type {number[]} */
    this.rows = [];
    this.drawn = "";
    this.name = new Links();
    this.facts = el("p");
    this.back = el("button", "vg-button", { type: "button", text: "‹", title: "The block before", "aria-label": "The block before" });
    this.next = el("button", "vg-button", { type: "button", text: "›", title: "The next block", "aria-label": "The next block" });
    this.back.addEventListener("click", () => this.turn(-1));
    this.next.addEventListener("click", () => this.turn(1));
    this.bytes = el("div", "vg-block-cells vg-block-bytes", { role: "img", "aria-label": "Bytes" });
    this.fields = el("div", "vg-block-fields");
    this.scales = el("p", "vg-block-said");
    this.codes = el("div", "vg-block-cells vg-block-codes", { role: "img", "aria-label": "Codes" });
    this.said = el("p", "vg-block-said");
    this.inside = el("div", "vg-block-in", {}, [
      el("div", "vg-block-head", {}, [this.name.element, this.facts, this.back, this.next]),
      el("h4", "", { text: "Bytes, coloured by field" }),
      this.bytes,
      el("h4", "", { text: "Fields" }),
      this.fields,
      el("h4", "", { text: "Codes, coloured by the value that each stands for: below 0, above 0" }),
      this.codes,
      this.scales,
      this.said,
    ]);
    this.empty = el("div", "vg-empty", { text: "No block is known of this tensor at this step. vg.record(values=True) keeps the first blocks of each quantized weight that is read." });
    this.empty.hidden = true;
    this.element = el("div", "vg-block vg-scroll", { tabindex: "-1" }, [this.inside, this.empty]);
    this.element.addEventListener("click", (event) => {
      const link = /** @type {HTMLElement} */ (event.target).closest?.("[data-tensor]");
      if (link instanceof HTMLElement) player.select(Number(link.dataset.tensor));
    });
    this.sizer = new ResizeObserver((entries) => this.element.classList.toggle("vg-block-narrow", entries[entries.length - 1].contentRect.width < NARROW));
    this.sizer.observe(this.element);
  }

  /** @param {number} by */
  turn(by) {
    this.chosen = Math.max(0, Math.min(this.rows.length - 1, this.chosen + by));
    this.player.redraw(this.pane);
  }

  /** @param {number} step */
  draw(step) {
    const { player } = this;
    const t = tensorAt(player, step);
    const none = t === UNKNOWN;
    if (this.inside.hidden !== none) {
      this.inside.hidden = none;
      this.empty.hidden = !none;
    }
    if (none) return;
    this.rows = blocksOf(player, t, step);
    if (t !== this.tensor) this.chosen = 0;
    this.tensor = t;
    const told = this.rows.findIndex((r) => this.col("blk.event")[r] === step);
    if (told >= 0 && this.drawn.split(" ")[1] !== String(step)) this.chosen = told;
    const row = this.rows[Math.min(this.chosen, this.rows.length - 1)];
    const key = `${row} ${told >= 0 ? step : ""} ${this.rows.length} ${player.palette.dark}`;
    if (key === this.drawn) return;
    this.drawn = key;
    this.drawBlock(t, row);
  }

  /** @param {string} name */
  col(name) {
    return this.player.tracks.columns.column(name);
  }

  /** @param {string} name @param {number} row */
  text(name, row) {
    return this.player.tracks.columns.strings[this.col(name)[row]] ?? "";
  }

  /** @param {string} part @param {number} row @returns {[number, number]} */
  span(part, row) {
    const ptr = this.col(`blk.${part}.ptr`);
    return [ptr[row], ptr[row + 1]];
  }

  /** @param {number} t @param {number} row */
  drawBlock(t, row) {
    const { tracks } = this.player;
    const data = this.col("blk.data.val").subarray(...this.span("data", row));
    const [first, last] = this.span("element", row);
    const n = last - first;
    const number = this.col("blk.block")[row];
    this.name.show([t < 0 ? "rows of no tensor" : { text: visible(tracks.name(t)), tensor: t }]);
    const bits = Number(((8 * data.length) / n).toFixed(3));
    setText(this.facts, `block ${number}, ${this.text("blk.how", row)} as ${this.text("blk.type", row)}: ${n} elements in ${data.length} bytes, ${bits} bits each`);
    this.back.disabled = this.chosen <= 0;
    this.next.disabled = this.chosen >= this.rows.length - 1;
    this.drawBytes(data, row);
    this.drawCodes(row, first, n);
  }

  /** @param {Uint8Array} data @param {number} row */
  drawBytes(data, row) {
    const [first, last] = this.span("field", row);
    const [start, stop] = [this.col("blkf.start"), this.col("blkf.stop")];
    /** @type {HTMLElement[]} */
    const lines = [];
    /** @type {HTMLElement[]} */
    const cells = [];
    for (let f = first; f < last; f++) {
      const colour = `var(--vg-families-${FIELD_COLOURS[(f - first) % FIELD_COLOURS.length]})`;
      const [name, says, meaning] = ["name", "says", "meaning"].map((column) => this.text(`blkf.${column}`, f));
      const range = stop[f] - start[f] > 1 ? `bytes ${start[f]}–${stop[f] - 1}` : `byte ${start[f]}`;
      const swatch = el("i");
      swatch.style.background = colour;
      lines.push(swatch, el("span", "vg-mono", { text: name }), el("span", "vg-soft", { text: range }), el("span", "vg-block-meaning", { text: meaning }), el("span", "vg-soft vg-mono vg-block-says", { text: says, title: says }));
      for (let i = start[f]; i < stop[f]; i++) {
        const cell = el("span", "", { text: data[i].toString(16).padStart(2, "0"), title: `byte ${i} of ${name}: ${data[i]}` });
        cell.style.background = colour;
        cells.push(cell);
      }
    }
    this.fields.replaceChildren(...lines);
    this.bytes.replaceChildren(...cells);
  }

  /** @param {number} row @param {number} first @param {number} n */
  drawCodes(row, first, n) {
    const [codes, values, originals, costs] = ["code", "value", "original", "importance"].map((name) => this.col(`blke.${name}`).subarray(first, first + n));
    const [g0, g1] = this.span("group", row);
    const groups = g1 - g0;
    const [scale, low] = [this.col("blkg.scale"), this.col("blkg.min")];
    const limit = values.reduce((/** @type {number} */ most, /** @type {number} */ x) => Math.max(most, Number.isFinite(x) ? Math.abs(x) : 0), 0);
    /** @type {HTMLElement[]} */
    const cells = [];
    for (let i = 0; i < n; i++) {
      const group = g0 + Math.floor((i * groups) / n);
      const told = [`element ${i}: code ${codes[i]}, value ${formatValue(values[i])}`, `scale ${formatValue(scale[group])}${low[group] ? `, minimum ${formatValue(low[group])}` : ""}`];
      if (!Number.isNaN(originals[i])) told.push(`was ${formatValue(originals[i])}, off by ${formatValue(values[i] - originals[i])}`);
      if (!Number.isNaN(costs[i])) told.push(`importance ${formatValue(costs[i])}`);
      const cell = el("span", "", { text: String(codes[i]), title: told.join("\n") });
      const share = limit && Number.isFinite(values[i]) ? Math.round((STRONGEST * Math.abs(values[i])) / limit) : 0;
      cell.style.background = `color-mix(in srgb, var(--vg-families-${values[i] < 0 ? 0 : 4}) ${share}%, var(--vg-panel))`;
      cells.push(cell);
    }
    this.codes.replaceChildren(...cells);
    setText(this.scales, groups === 1 ? `One scale for all: ${formatValue(scale[g0])}${low[g0] ? `, and a minimum: ${formatValue(low[g0])}` : ""}.` : `${groups} groups of ${n / groups}, each with its scale: ${range(scale.subarray(g0, g1))}${low.subarray(g0, g1).some((/** @type {number} */ x) => x !== 0) ? `, and its minimum: ${range(low.subarray(g0, g1))}` : ""}.`);
    setText(this.said, errorWords(values, originals));
  }

  stop() {
    this.sizer.disconnect();
  }
}

/** @param {Float32Array} x */
function range(x) {
  return `${formatValue(Math.min(...x))} to ${formatValue(Math.max(...x))}`;
}

/** How far the values are from what was encoded. @param {Float32Array} values @param {Float32Array} originals */
function errorWords(values, originals) {
  if (Number.isNaN(originals[0])) return "What it was made of is not known: only encoding tells that.";
  const errors = Array.from(values, (v, i) => v - originals[i]);
  const rms = (/** @type {ArrayLike<number>} */ x) => Math.sqrt(Array.from(x).reduce((sum, e) => sum + e * e, 0) / x.length);
  const size = rms(originals);
  const share = size ? ` (${((100 * rms(errors)) / size).toFixed(1)} % of the original's)` : "";
  return `Error beside the original: root mean square ${formatValue(rms(errors))}${share}, at most ${formatValue(Math.max(...errors.map(Math.abs)))}.`;
}
