// A tensor's values drawn: a heat map of the grid that the trace keeps, and the histogram of all values.

import { Surface, el } from "./dom.js";
import { formatCount } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {{ne: number[], rows: number, columns: number, cells: Float32Array, stats: ArrayLike<number>, bins: ArrayLike<number>}} Values */

const MAP = { left: 46, right: 72, top: 6, height: 132, foot: 30 };
const BARS = { left: 46, right: 72, top: 8, height: 56, foot: 18 };

/** @typedef {[number, number, number]} Rgb */

/** Below zero, zero, above: blue to orange, told apart by every kind of eye. @type {Record<"light" | "dark", [Rgb, Rgb, Rgb]>} */
const DIVERGING = {
  light: [[5, 84, 150], [246, 246, 244], [176, 72, 8]],
  dark: [[98, 178, 240], [34, 41, 52], [255, 150, 80]],
};

/** Four digits that count. @param {number} value */
export function formatValue(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "+inf" : "-inf";
  return String(Number(value.toPrecision(4)));
}

/** Where run `j` of `k` begins in `n`. @param {number} j @param {number} n @param {number} k */
export function runBegin(j, n, k) {
  return Math.floor((j * n) / Math.max(1, k));
}

/** Indices from `a` to before `b`. @param {number} a @param {number} b */
function range(a, b) {
  return b - a <= 1 ? String(a) : `${a} to ${b - 1}`;
}

/** @param {[Rgb, Rgb, Rgb]} scale @param {number} at -1 to 1 @returns {Rgb} */
function mix(scale, at) {
  const f = Math.min(1, Math.abs(at));
  const end = at < 0 ? scale[0] : scale[2];
  return /** @type {Rgb} */ (scale[1].map((v, k) => Math.round(v + (end[k] - v) * f)));
}

/** What both plots share: a surface in a box that takes the pointer and the arrow keys. */
class Plot {
  /** @param {Player} player @param {Pane} pane @param {string} label @param {number} height */
  constructor(player, pane, label, height) {
    this.player = player;
    /** @type {Values | null} */
    this.values = null;
    this.cursor = -1;
    this.drawn = -1;
    this.surface = new Surface(label, () => {
      this.drawn = -1;
      player.redraw(pane);
    });
    this.element = this.surface.box;
    this.element.classList.add("vg-plot");
    this.element.style.height = `${height}px`;
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", `${label}: arrow keys read it`);
    this.said = el("div", "vg-unseen", { "aria-live": "polite" });
    this.element.append(this.said);
    for (const name of /** @type {const} */ (["pointermove", "pointerdown"])) {
      this.element.addEventListener(name, (event) => this.read(this.cellAt(event.offsetX, event.offsetY)));
    }
    this.element.addEventListener("pointerleave", () => this.read(-1));
    this.element.addEventListener("blur", () => this.read(-1));
    this.element.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Draws the values of row `row` of the trace. @param {Values} values @param {number} row */
  draw(values, row) {
    if (row === this.drawn || this.surface.width < 10) return;
    this.drawn = row;
    this.values = values;
    if (this.cursor >= this.count) this.cursor = -1;
    this.paint();
  }

  invalidate() {
    this.drawn = -1;
  }

  /** Shows a cell's values in the tip. @param {number} cell */
  read(cell) {
    if (!this.values || cell < 0) {
      this.player.tip.hide();
    } else {
      const [x, y] = this.centreOf(cell);
      const [head, pairs] = this.tell(cell, this.values);
      this.player.tip.show(this.element, x, y, head, pairs);
      this.said.textContent = `${head}: ${pairs.map((pair) => pair.join(" ")).join(", ")}`;
    }
    if (cell === this.cursor) return;
    this.cursor = cell;
    if (this.values) this.paint();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = this.steps[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (this.count) this.read(this.cursor < 0 ? 0 : Math.max(0, Math.min(this.count - 1, this.cursor + step)));
  }

  /** How many cells there are. @returns {number} */
  get count() {
    return 0;
  }

  /** By how many cells each key goes. @returns {Record<string, number>} */
  get steps() {
    return { ArrowLeft: -1, ArrowRight: 1 };
  }

  paint() {}

  /** @param {number} _x @param {number} _y @returns {number} */
  cellAt(_x, _y) {
    return -1;
  }

  /** @param {number} _cell @returns {[number, number]} */
  centreOf(_cell) {
    return [0, 0];
  }

  /** @param {number} _cell @param {Values} _values @returns {[string, [string, string][]]} */
  tell(_cell, _values) {
    return ["", []];
  }

  begin() {
    const { palette, fonts } = this.player;
    const c = this.surface.begin();
    c.fillStyle = palette.page;
    c.fillRect(0, 0, this.surface.width, this.surface.height);
    c.font = `10.5px ${fonts.ui}`;
    c.textBaseline = "middle";
    c.textAlign = "left";
    c.fillStyle = palette.soft;
    return c;
  }

  stop() {
    this.surface.stop();
  }
}

/** Dimension 0 to the right, the others as rows going down. */
export class HeatMap extends Plot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, "Heat map", MAP.top + MAP.height + MAP.foot);
    this.bitmap = el("canvas");
  }

  get count() {
    return this.values ? this.values.rows * this.values.columns : 0;
  }

  get steps() {
    const down = this.values?.columns ?? 1;
    return { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -down, ArrowDown: down };
  }

  /** Where the map lies. */
  get frame() {
    const { rows, columns } = this.values ?? { rows: 1, columns: 1 };
    const room = this.surface.width - MAP.left - MAP.right;
    const w = Math.min(room, 26 * columns);
    const h = Math.min(MAP.height, 26 * rows);
    return { x: MAP.left, y: MAP.top, w, h, cw: w / Math.max(1, columns), ch: h / Math.max(1, rows) };
  }

  /** The largest magnitude among the cells: both ends of the scale. */
  get limit() {
    let most = 0;
    for (const v of this.values?.cells ?? []) if (Number.isFinite(v)) most = Math.max(most, Math.abs(v));
    return most;
  }

  paint() {
    const c = this.begin();
    const { values, surface } = this;
    if (!values) return;
    if (!this.count) return c.fillText("no elements", MAP.left, MAP.top + 10);
    const { palette } = this.player;
    const { x, y, w, h, cw, ch } = this.frame;
    const limit = this.limit;
    this.bake(values, limit);
    c.imageSmoothingEnabled = false;
    c.drawImage(this.bitmap, x, y, w, h);
    c.strokeStyle = palette.line;
    c.lineWidth = 1;
    c.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
    this.paintAxes(c, values);
    paintLegend(palette, c, surface.width - MAP.right + 14, MAP.top, MAP.height, limit);
    if (this.cursor < 0) return;
    c.strokeStyle = palette.ink;
    c.lineWidth = 1.5;
    c.strokeRect(x + (this.cursor % values.columns) * cw - 0.75, y + Math.floor(this.cursor / values.columns) * ch - 0.75, cw + 1.5, ch + 1.5);
  }

  /** @param {Values} values @param {number} limit */
  bake({ rows, columns, cells }, limit) {
    const { palette } = this.player;
    this.bitmap.width = columns;
    this.bitmap.height = rows;
    const b = /** @type {CanvasRenderingContext2D} */ (this.bitmap.getContext("2d"));
    const image = b.createImageData(columns, rows);
    const scale = DIVERGING[palette.dark ? "dark" : "light"];
    const odd = palette.dark ? [0, 0, 0] : [30, 30, 30];
    for (let k = 0; k < rows * columns; k++) {
      const rgb = Number.isFinite(cells[k]) ? mix(scale, limit ? cells[k] / limit : 0) : odd;
      image.data.set([...rgb, 255], 4 * k);
    }
    b.putImageData(image, 0, 0);
  }

  /** @param {CanvasRenderingContext2D} c @param {Values} values */
  paintAxes(c, { ne }) {
    const { x, y, w, h } = this.frame;
    const nRows = ne[1] * ne[2] * ne[3];
    const one = nRows === 1;
    c.fillStyle = this.player.palette.soft;
    c.textAlign = "right";
    c.fillText("0", x - 5, y + Math.min(6, h / 2));
    if (!one && h > 20) c.fillText(String(nRows - 1), x - 5, y + h - 6);
    c.textAlign = "left";
    c.fillText(`i0: 0 to ${ne[0] - 1}`, x, y + h + 10);
    const down = ne[2] * ne[3] > 1 ? "down: rows, i1 fastest" : "down: i1";
    c.fillText(one ? "one row" : down, x, y + h + 23);
  }

  /** @param {number} px @param {number} py */
  cellAt(px, py) {
    const { x, y, w, h, cw, ch } = this.frame;
    if (!this.values || px < x || py < y || px >= x + w || py >= y + h) return -1;
    return Math.floor((py - y) / ch) * this.values.columns + Math.floor((px - x) / cw);
  }

  /** @param {number} cell @returns {[number, number]} */
  centreOf(cell) {
    const { x, y, cw, ch } = this.frame;
    const columns = this.values?.columns ?? 1;
    return [x + ((cell % columns) + 0.5) * cw, y + (Math.floor(cell / columns) + 0.5) * ch];
  }

  /** @param {number} cell @param {Values} values @returns {[string, [string, string][]]} */
  tell(cell, { ne, rows, columns, cells }) {
    const nRows = ne[1] * ne[2] * ne[3];
    const [j, i] = [Math.floor(cell / columns), cell % columns];
    const [r0, r1] = [runBegin(j, nRows, rows), runBegin(j + 1, nRows, rows)];
    const [a, b] = [runBegin(i, ne[0], columns), runBegin(i + 1, ne[0], columns)];
    const n = (r1 - r0) * (b - a);
    /** @type {[string, string][]} */
    const pairs = [["i0", range(a, b)]];
    if (r1 - r0 === 1) [1, 2, 3].forEach((d) => ne[d] > 1 && pairs.push([`i${d}`, String(Math.floor(r0 / ne.slice(1, d).reduce((p, q) => p * q, 1)) % ne[d])]));
    else pairs.push([ne[2] * ne[3] > 1 ? "rows" : "i1", range(r0, r1)]);
    if (n > 1) pairs.push(["mean of", `${formatCount(n)} values`]);
    return [formatValue(cells[cell]), pairs];
  }
}

/** The scale of colours with its ends and its middle. @param {import("./theme.js").Palette} palette @param {CanvasRenderingContext2D} c
 * @param {number} x @param {number} y @param {number} h @param {number} limit */
function paintLegend(palette, c, x, y, h, limit) {
  const scale = DIVERGING[palette.dark ? "dark" : "light"];
  const ramp = c.createLinearGradient(0, y, 0, y + h);
  for (let k = 0; k <= 8; k++) ramp.addColorStop(k / 8, `rgb(${mix(scale, 1 - k / 4).join(",")})`);
  c.fillStyle = ramp;
  c.fillRect(x, y, 9, h);
  c.strokeStyle = palette.line;
  c.strokeRect(x - 0.5, y - 0.5, 10, h + 1);
  c.fillStyle = palette.soft;
  c.textAlign = "left";
  const end = String(Number(limit.toPrecision(3)));
  c.fillText(end, x + 13, y + 5);
  c.fillText("0", x + 13, y + h / 2);
  c.fillText(limit ? `-${end}` : "0", x + 13, y + h - 5);
}

/** How many values lie where between the minimum and the maximum. */
export class Histogram extends Plot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, "Histogram", BARS.top + BARS.height + BARS.foot);
  }

  get count() {
    return this.values?.bins.length ?? 0;
  }

  get frame() {
    const w = this.surface.width - BARS.left - BARS.right;
    return { x: BARS.left, y: BARS.top, w, h: BARS.height, bar: w / Math.max(1, this.count) };
  }

  paint() {
    const c = this.begin();
    const { values } = this;
    if (!values) return;
    const { palette } = this.player;
    const { x, y, w, h, bar } = this.frame;
    const [low, high] = [values.stats[0], values.stats[1]];
    let most = 1;
    for (let k = 0; k < this.count; k++) most = Math.max(most, values.bins[k]);
    for (let k = 0; k < this.count; k++) {
      const high = values.bins[k] ? Math.max(1, (values.bins[k] / most) * h) : 0;
      c.fillStyle = k === this.cursor ? palette.accent : palette.source;
      c.globalAlpha = k === this.cursor ? 1 : 0.75;
      c.fillRect(x + k * bar, y + h - high, Math.max(1, bar - 1), high);
    }
    c.globalAlpha = 1;
    c.fillStyle = palette.edge;
    c.fillRect(x, y + h, w, 1);
    c.fillStyle = palette.soft;
    c.textAlign = "right";
    c.fillText(formatCount(most), x - 5, y + 4);
    c.fillText("0", x - 5, y + h - 4);
    c.textAlign = "left";
    c.fillText(formatValue(low), x, y + h + 10);
    c.textAlign = "right";
    c.fillText(formatValue(high), x + w, y + h + 10);
    const zero = x + ((0 - low) / (high - low)) * w;
    c.textAlign = "center";
    if (!(zero > x && zero < x + w)) return;
    c.fillStyle = palette.edge;
    c.fillRect(Math.round(zero), y, 1, h + 4);
    c.fillStyle = palette.soft;
    if (zero > x + 50 && zero < x + w - 50) c.fillText("0", zero, y + h + 10);
  }

  /** @param {number} px @param {number} py */
  cellAt(px, py) {
    const { x, y, w, h, bar } = this.frame;
    return px < x || px >= x + w || py < y || py > y + h ? -1 : Math.floor((px - x) / bar);
  }

  /** @param {number} cell @returns {[number, number]} */
  centreOf(cell) {
    const { x, y, h, bar } = this.frame;
    return [x + (cell + 0.5) * bar, y + h / 2];
  }

  /** @param {number} cell @param {Values} values @returns {[string, [string, string][]]} */
  tell(cell, { stats, bins }) {
    const width = (stats[1] - stats[0]) / bins.length;
    const all = Array.from(bins).reduce((sum, n) => sum + n, 0);
    const share = all ? `${((100 * bins[cell]) / all).toFixed(1)} %` : "0 %";
    const head = `${formatCount(bins[cell])} value${bins[cell] === 1 ? "" : "s"}, ${share}`;
    return [head, [["from", formatValue(stats[0] + cell * width)], ["to", formatValue(stats[0] + (cell + 1) * width)]]];
  }
}
