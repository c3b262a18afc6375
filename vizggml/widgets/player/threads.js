// What the threads did in the current evaluation: all of it small, and a part of it to read.

import { listenBrush } from "./brush.js";
import { DetailPlot } from "./detail_plot.js";
import { el } from "./dom.js";
import { formatNs, visible } from "./sentence.js";
import { MOST, paintAxis, paintBars, paintNames, xOf } from "./threads_paint.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {import("./threads_paint.js").Span} Span */
/** @typedef {import("./threads_paint.js").Clock} Clock */
/** @typedef {{from: number, to: number}} Range nanoseconds */

const LEFT = 66;
const RIGHT = 12;
const WHOLE = { top: 5, row: 6 };
const AXIS = 17;
const GAP = 14;
/** Nodes around the current one that are drawn to read. */
const NEAR = 16;
const LANE = 44;
const BITMAPS = 40;

/** @type {import("./details.js").Detail} */
export const threadsDetail = {
  name: "threads",
  title: "Threads",
  has: ({ tracks }) => tracks.track("thread").length > 0,
  make: (player, pane) => new ThreadsView(player, pane),
};

/** The evaluations' rows. @param {Player} player @returns {Map<number, Span>} */
function spansOf({ tracks, relations }) {
  return relations.keep("thread spans", () => {
    const track = tracks.track("thread");
    const [evaluation, thread, end, wait] = ["eval", "thread", "end_ns", "wait_ns"].map((n) => track.col(n));
    /** @type {Map<number, Span>} */
    const made = new Map();
    for (let r = 0; r < track.length; r++) {
      const span = made.get(evaluation[r]) ?? { evaluation: evaluation[r], from: r, to: r, threads: 1, end: 1 };
      made.set(evaluation[r], span);
      span.to = r + 1;
      span.threads = Math.max(span.threads, thread[r] + 1);
      span.end = Math.max(span.end, end[r] + wait[r]);
    }
    return made;
  });
}

/** How much of the time the threads worked, and the longest wait: its row, -1 where nobody waited.
 * @param {Player} player @param {Span} span @returns {{busy: number, waited: number, longest: number, woken: number}} `woken` is how many parts began with a thread asleep */
export function shareOf({ tracks, relations }, span) {
  return relations.keep(`thread share ${span.evaluation}`, () => {
    const track = tracks.track("thread");
    const [begin, end, wait, polling] = ["begin_ns", "end_ns", "wait_ns", "polling"].map((n) => track.col(n));
    let [worked, waited, longest, woken] = [0, 0, -1, 0];
    for (let r = span.from; r < span.to; r++) {
      worked += end[r] - begin[r];
      waited += wait[r];
      if (polling[r] === 0) woken++;
      if (wait[r] > 0 && (longest < 0 || wait[r] > wait[longest])) longest = r;
    }
    const all = span.threads * span.end;
    return { busy: worked / all, waited: waited / all, longest, woken };
  });
}

class ThreadsView extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Threads",
      keys: "bar by bar",
      empty: "Nothing is computing at this step. Go to a NodeBegin event; ctx.decode(tokens) or ggml.graph_compute makes them.",
    });
    /** @type {Span | null} */
    this.span = null;
    /** Row of the step. */
    this.at = -1;
    /** @type {Range | null} */
    this.zoomed = null;
    this.zoomedIn = -1;
    /** @type {{from: number, to: number, whole: boolean} | null} */
    this.brush = null;
    /** Whole evaluations, each drawn once. @type {Map<string, HTMLCanvasElement>} */
    this.baked = new Map();
    this.button = el("button", "vg-button vg-text-button", { type: "button", text: "Follow the step", disabled: "" });
    this.button.addEventListener("click", () => this.zoomTo(null));
    this.tools = [this.button, el("span", "vg-hint", { text: "drag to zoom" })];
    listenBrush(this, ({ offsetX, offsetY }) =>
      this.span ? { from: offsetX, to: offsetX, whole: offsetY < this.places().top - GAP / 2 } : null,
    );
  }

  /** @param {import("./brush.js").Drag & {whole: boolean}} drag */
  zoomBy(drag) {
    const clock = drag.whole ? this.wholeClock() : this.clock();
    const ns = (/** @type {number} */ x) => clock.from + ((x - clock.left) / (clock.right - clock.left)) * (clock.to - clock.from);
    const [from, to] = [ns(drag.from), ns(drag.to)].sort((p, q) => p - q);
    this.zoomTo({ from: Math.max(0, from), to: Math.min(this.span?.end ?? to, Math.max(from + 100, to)) });
  }

  /** @param {Range | null} range */
  zoomTo(range) {
    this.zoomed = range;
    this.zoomedIn = this.span?.evaluation ?? -1;
    this.button.disabled = range === null;
    this.player.redraw(this.pane);
  }

  /** @param {number} step */
  prepare(step) {
    const { player } = this;
    const { tracks } = player;
    const track = tracks.track("thread");
    this.at = upperBound(track.a, step) - 1;
    this.span = this.at < 0 ? null : (spansOf(player).get(track.col("eval")[this.at]) ?? null);
    if (!this.span) return null;
    if (this.zoomed && this.zoomedIn !== this.span.evaluation) this.zoomTo(null);
    const { busy, waited, longest, woken } = shareOf(player, this.span);
    const threads = `${this.span.threads} thread${this.span.threads === 1 ? "" : "s"}`;
    const wait = longest < 0 ? "nobody waits" : `longest wait ${formatNs(track.col("wait_ns")[longest])}: thread ${track.col("thread")[longest]} after ${visible(tracks.name(track.col("tensor")[longest]))}`;
    return { strong: `${threads} busy ${Math.round(100 * busy)} % of ${formatNs(this.span.end)}`, rest: `${Math.round(100 * waited)} % waiting at barriers; ${wait}${woken ? `; woken from sleep ${woken} time${woken === 1 ? "" : "s"}` : ""}` };
  }

  places() {
    const { threads } = /** @type {Span} */ (this.span);
    const drawn = Math.min(MOST, threads);
    const small = Math.max(1.5, Math.min(WHOLE.row, 24 / drawn));
    const top = WHOLE.top + small * drawn + GAP;
    const high = Math.min(LANE, (this.surface.height - AXIS - top) / drawn);
    return { drawn, small, top, high, bottom: top + high * drawn };
  }

  /** @returns {Clock} */
  wholeClock() {
    return { left: LEFT, right: this.surface.width - RIGHT, from: 0, to: this.span?.end ?? 1 };
  }

  /** The part that is drawn to read: what was chosen, else the nodes around the step, a page of them at a time. @returns {Clock} */
  clock() {
    const whole = this.wholeClock();
    const { span, at, player } = this;
    if (this.zoomed) return { ...whole, ...this.zoomed };
    if (!span) return whole;
    const track = player.tracks.track("thread");
    const [begin, end, wait] = ["begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
    const around = NEAR * span.threads;
    const from = span.from + Math.floor((at - span.from) / around) * around;
    let [first, last] = [Infinity, 0];
    for (let r = from; r < Math.min(span.to, from + around); r++) [first, last] = [Math.min(first, begin[r]), Math.max(last, end[r] + wait[r])];
    return { ...whole, from: first, to: last };
  }

  /** @param {CanvasRenderingContext2D} c @param {number} _w @param {number} h @param {number} step */
  paint(c, _w, h, step) {
    const { span, at, player } = this;
    if (!span) return;
    const { palette } = player;
    const { drawn, small, top, high, bottom } = this.places();
    const [whole, clock] = [this.wholeClock(), this.clock()];
    this.paintWhole(c, whole, small, drawn);
    const [x0, x1] = [xOf(whole, clock.from), xOf(whole, clock.to)];
    c.strokeStyle = palette.ink;
    c.lineWidth = 1;
    c.strokeRect(Math.round(x0) - 0.5, WHOLE.top - 3.5, Math.max(3, Math.round(x1 - x0)), small * drawn + 6);
    paintAxis(player, c, clock, top, bottom);
    paintBars(player, c, clock, { from: span.from, to: span.to, done: at + 1, top, high });
    this.paintCurrent(c, clock, top, high, step);
    paintNames(player, c, { ...span, threads: drawn }, WHOLE.top + (small * drawn) / 2, top, high);
    if (!this.brush) return;
    c.globalAlpha = 0.16;
    c.fillStyle = palette.accent;
    const y = this.brush.whole ? 0 : top - 4;
    c.fillRect(Math.min(this.brush.from, this.brush.to), y, Math.abs(this.brush.to - this.brush.from), this.brush.whole ? top - 6 : h);
    c.globalAlpha = 1;
  }

  /** All of the evaluation, small; what has not begun yet is pale. @param {CanvasRenderingContext2D} c @param {Clock} whole @param {number} small
   * @param {number} drawn threads */
  paintWhole(c, whole, small, drawn) {
    const { span, at, player, surface } = this;
    if (!span) return;
    const { width, ratio } = surface;
    const high = WHOLE.top + small * drawn + 1;
    const of = `${span.evaluation} ${span.to} ${width} ${small} ${ratio}`;
    let bitmap = this.baked.get(of);
    if (!bitmap) {
      if (this.baked.size >= BITMAPS) this.baked.clear();
      bitmap = el("canvas");
      [bitmap.width, bitmap.height] = [Math.round(width * ratio), Math.ceil(high * ratio)];
      const context = /** @type {CanvasRenderingContext2D} */ (bitmap.getContext("2d"));
      context.scale(ratio, ratio);
      paintBars(player, context, whole, { from: span.from, to: span.to, done: span.to, top: WHOLE.top, high: small });
      this.baked.set(of, bitmap);
    }
    c.drawImage(bitmap, 0, 0, bitmap.width / ratio, bitmap.height / ratio);
    const x = xOf(whole, player.tracks.track("thread").col("end_ns")[at]);
    c.globalAlpha = 0.7;
    c.fillStyle = player.palette.page;
    c.fillRect(x, WHOLE.top, whole.right - x, small * drawn);
    c.globalAlpha = 1;
  }

  invalidate() {
    this.baked.clear();
  }

  /** Rings around the current node, the selected one and the one the keys are at. @param {CanvasRenderingContext2D} c @param {Clock} clock
   * @param {number} top @param {number} high @param {number} step */
  paintCurrent(c, clock, top, high, step) {
    const { span, player } = this;
    const track = player.tracks.track("thread");
    const [tensor, thread, begin, end] = ["tensor", "thread", "begin_ns", "end_ns"].map((n) => track.col(n));
    const about = player.relations.tensorAt(step);
    c.lineWidth = 2;
    for (let r = span?.from ?? 0; r < (span?.to ?? 0); r++) {
      const mine = tensor[r] === about || tensor[r] === player.selected;
      if ((!mine && r !== this.cursor) || thread[r] >= MOST || end[r] < clock.from || begin[r] > clock.to) continue;
      const [x0, x1] = [Math.max(clock.left, xOf(clock, begin[r])), Math.min(clock.right, xOf(clock, end[r]))];
      c.strokeStyle = mine ? player.palette.accent : player.palette.ink;
      c.strokeRect(x0, top + thread[r] * high, Math.max(3, x1 - x0), high - 4);
    }
  }

  /** @param {number} x @param {number} y */
  findAt(x, y) {
    const { span } = this;
    if (!span || this.brush || x < LEFT) return -1;
    const { top, high, bottom, small } = this.places();
    const below = y >= top - GAP / 2;
    if (y > bottom) return -1;
    const clock = below ? this.clock() : this.wholeClock();
    const lane = Math.floor(below ? (y - top) / high : (y - WHOLE.top) / small);
    const ns = clock.from + ((x - clock.left) / (clock.right - clock.left)) * (clock.to - clock.from);
    const track = this.player.tracks.track("thread");
    const [thread, begin, end, wait] = ["thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
    for (let r = span.from; r < span.to; r++) if (thread[r] === lane && ns >= begin[r] && ns < end[r] + wait[r]) return r;
    return -1;
  }

  /** @param {number} r */
  cardOf(r) {
    const { tracks } = this.player;
    const track = tracks.track("thread");
    const [tensor, thread, begin, end, wait] = ["tensor", "thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n)[r]);
    /** @type {[string, string][]} */
    const pairs = [["op", tracks.tensorString("desc", tensor)], ["thread", String(thread)], ["began", formatNs(begin)], ["worked", formatNs(end - begin)], ["waited", wait ? formatNs(wait) : "no"]];
    const [chunks, polling] = ["chunks", "polling"].map((n) => track.col(n)[r]);
    if (polling >= 0) pairs.push(["taken up", polling ? "while polling" : "woken from sleep"]);
    if (chunks > 0) pairs.push(["chunks taken", `${chunks} of the product's ${this.chunksOf(r)}`]);
    return { head: visible(tracks.name(tensor)), pairs };
  }

  /** The chunks that all threads took of the node of row `r`. @param {number} r */
  chunksOf(r) {
    const track = this.player.tracks.track("thread");
    const [tensor, chunks] = ["tensor", "chunks"].map((n) => track.col(n));
    let all = 0;
    for (let q = this.span?.from ?? 0; q < (this.span?.to ?? 0); q++) if (tensor[q] === tensor[r] && chunks[q] > 0) all += chunks[q];
    return all;
  }

  /** @param {number} r */
  placeOf(r) {
    if (!this.span) return null;
    const track = this.player.tracks.track("thread");
    const { top, high } = this.places();
    return { x: Math.max(LEFT, Math.min(this.surface.width - RIGHT, xOf(this.clock(), track.col("begin_ns")[r]))), y: top + track.col("thread")[r] * high };
  }

  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    if (!this.span) return -1;
    return k < 0 ? this.at : Math.max(this.span.from, Math.min(this.span.to - 1, k + by));
  }

  /** @param {number} r */
  choose(r) {
    this.player.select(this.player.tracks.track("thread").col("tensor")[r]);
  }
}
