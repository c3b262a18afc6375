// What the threads did in the current evaluation: all of it small, and the surroundings of the current node to read.

import { tableDetail } from "./detail_table.js";
import { formatNs, visible } from "./sentence.js";
import { familyOf } from "./theme.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{from: number, to: number, threads: number, end: number}} Span rows of one evaluation, and its last nanosecond */
/** @typedef {{left: number, right: number, from: number, to: number}} Clock pixels, and nanoseconds */

const LEFT = 66;
const RIGHT = 12;
const WHOLE = { top: 4, row: 5 };
const AXIS = 15;
const WINDOW = 24;
const GAP = 4;
/** As many threads are drawn as there is room for. */
const MOST = 16;
const THREADS_HEIGHT = 104;

/** The rows of the evaluation that row `at` belongs to. @param {Player} player @param {number} at @returns {Span} */
function spanOf({ tracks, relations }, at) {
  /** @type {Map<number, Span>} */
  const spans = relations.keep("thread spans", () => {
    const track = tracks.track("thread");
    const [evaluation, thread, end, wait] = ["eval", "thread", "end_ns", "wait_ns"].map((n) => track.col(n));
    const made = new Map();
    for (let r = 0; r < track.length; r++) {
      const span = made.get(evaluation[r]) ?? { from: r, to: r, threads: 1, end: 1 };
      made.set(evaluation[r], span);
      span.to = r + 1;
      span.threads = Math.min(MOST, Math.max(span.threads, thread[r] + 1));
      span.end = Math.max(span.end, end[r] + wait[r]);
    }
    return made;
  });
  return /** @type {Span} */ (spans.get(tracks.track("thread").col("eval")[at]));
}

/** Bars of nodes and, hatched, of waits, on a clock.
 * @param {Player} player @param {Context} c @param {Clock} clock @param {number} from @param {number} to rows
 * @param {number} top @param {number} high of one thread @param {number} done rows before this one have begun */
function paintBars({ tracks, palette }, c, clock, from, to, top, high, done) {
  const track = tracks.track("thread");
  const [tensor, thread, begin, end, wait] = ["tensor", "thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
  const f = (clock.right - clock.left) / Math.max(1, clock.to - clock.from);
  const x = (/** @type {number} */ ns) => clock.left + (ns - clock.from) * f;
  const bar = Math.max(1.5, high - (high > 8 ? 3 : 1));
  for (let r = from; r < to; r++) {
    if (thread[r] >= MOST) continue;
    const y = top + thread[r] * high;
    const [x0, x1, x2] = [x(begin[r]), x(end[r]), x(end[r] + wait[r])];
    if (x2 < clock.left || x0 > clock.right) continue;
    c.globalAlpha = r < done ? 1 : 0.35;
    c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[r]))];
    c.fillRect(x0, y, Math.max(0.6, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), bar);
    if (x2 - x1 > 1.5 && high > 8) hatch(c, x1, y, x2 - x1, bar, palette.faint);
  }
  c.globalAlpha = 1;
}

/** @param {Context} c @param {number} x @param {number} y @param {number} w @param {number} h @param {string} colour */
function hatch(c, x, y, w, h, colour) {
  c.save();
  c.beginPath();
  c.rect(x, y, w, h);
  c.clip();
  c.strokeStyle = colour;
  c.lineWidth = 1;
  c.beginPath();
  const first = Math.floor(x / 5) * 5;
  for (let k = first - h; k < x + w; k += 5) {
    c.moveTo(k, y + h);
    c.lineTo(k + h, y);
  }
  c.stroke();
  c.restore();
}

/** The rows around the current node, from whole nodes: as many on each side. @param {Player} player @param {Span} span @param {number} at */
function windowOf({ tracks }, span, at) {
  const track = tracks.track("thread");
  const [begin, end, wait] = ["begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
  const around = WINDOW * span.threads;
  const page = Math.floor((at - span.from) / around);
  const from = span.from + page * around;
  const to = Math.min(span.to, from + around);
  let [first, last] = [Infinity, 0];
  for (let r = from; r < to; r++) {
    first = Math.min(first, begin[r]);
    last = Math.max(last, end[r] + wait[r]);
  }
  return { from, to, first, last };
}

/** Round steps of a clock. @param {number} span nanoseconds @param {number} wanted */
function tickOf(span, wanted) {
  const rough = Math.max(1, span / wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) ?? 10 * power;
}

/** Milliseconds along the foot. @param {Player} player @param {Context} c @param {Clock} clock @param {number} top @param {number} bottom */
function paintAxis({ palette, fonts }, c, clock, top, bottom) {
  const span = Math.max(1, clock.to - clock.from);
  const tick = tickOf(span, Math.max(2, (clock.right - clock.left) / 90));
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(tick / 1e6))));
  c.font = `10.5px ${fonts.ui}`;
  c.textBaseline = "middle";
  c.textAlign = "center";
  c.lineWidth = 1;
  for (let ns = Math.ceil(clock.from / tick) * tick; ns <= clock.to; ns += tick) {
    const x = clock.left + ((ns - clock.from) / span) * (clock.right - clock.left);
    c.strokeStyle = palette.line;
    c.beginPath();
    c.moveTo(Math.round(x) + 0.5, top);
    c.lineTo(Math.round(x) + 0.5, bottom);
    c.stroke();
    if (x > clock.right - 14) continue;
    c.fillStyle = palette.faint;
    c.fillText((ns / 1e6).toFixed(digits), x, bottom + 8);
  }
  c.fillStyle = palette.soft;
  c.textAlign = "left";
  c.fillText("ms", 12, bottom + 8);
}

/** What each thread did in the evaluation, and around the current node.
 * @param {Player} player @param {Context} c @param {number} w @param {number} h @param {number} step */
function paintThreads(player, c, w, h, step) {
  const { tracks, relations, palette, fonts } = player;
  const track = tracks.track("thread");
  const [tensor, thread, begin, end] = ["tensor", "thread", "begin_ns", "end_ns"].map((n) => track.col(n));
  const at = upperBound(track.a, step) - 1;
  if (at < 0) return;
  const span = spanOf(player, at);
  const small = Math.max(1.5, Math.min(WHOLE.row, 20 / span.threads));
  const whole = { left: LEFT, right: w - RIGHT, from: 0, to: span.end };
  const near = windowOf(player, span, at);
  const clock = { left: LEFT, right: w - RIGHT, from: near.first, to: near.last };
  const overview = WHOLE.top + small * span.threads;
  const top = overview + GAP + 10;
  const high = Math.min(26, (h - AXIS - top) / span.threads);
  const bottom = top + high * span.threads;
  paintBars(player, c, whole, span.from, span.to, WHOLE.top, small, at + 1);
  const x = (/** @type {number} */ ns) => LEFT + (ns / span.end) * (w - LEFT - RIGHT);
  c.strokeStyle = palette.ink;
  c.lineWidth = 1;
  c.strokeRect(Math.round(x(near.first)) - 0.5, WHOLE.top - 2.5, Math.max(3, Math.round(x(near.last) - x(near.first))), overview - WHOLE.top + 4);
  paintAxis(player, c, clock, top, bottom);
  paintBars(player, c, clock, near.from, near.to, top, high, at + 1);
  const current = relations.tensorAt(step);
  const f = (clock.right - clock.left) / Math.max(1, clock.to - clock.from);
  c.strokeStyle = palette.accent;
  c.lineWidth = 2;
  for (let r = near.from; r < near.to; r++) {
    if (tensor[r] !== current || thread[r] >= MOST) continue;
    c.strokeRect(LEFT + (begin[r] - clock.from) * f, top + thread[r] * high, Math.max(3, (end[r] - begin[r]) * f), high - 3);
  }
  c.fillStyle = palette.soft;
  c.font = `10.5px ${fonts.ui}`;
  c.textBaseline = "middle";
  c.fillText(formatNs(span.end), 12, WHOLE.top + (small * span.threads) / 2);
  for (let k = 0; k < span.threads && high >= 9; k++) c.fillText(`thread ${k}`, 12, top + k * high + (high - 3) / 2);
}

const NEAR = 60;

/** What the threads did last, newest first. @param {Player} player @param {number} step @returns {import("./detail_table.js").Row[]} */
function threadRows(player, step) {
  const { tracks } = player;
  const track = tracks.track("thread");
  const [tensor, thread, begin, end, wait] = ["tensor", "thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
  const evaluation = track.col("eval");
  const to = upperBound(track.a, step);
  /** @type {number[]} */
  const rows = [];
  for (let r = to - 1; r >= Math.max(0, to - NEAR) && evaluation[r] === evaluation[to - 1]; r--) rows.push(r);
  const current = player.relations.tensorAt(step);
  return rows.map((r) => ({
    cells: [visible(tracks.name(tensor[r])), String(thread[r]), formatNs(end[r] - begin[r]), formatNs(wait[r])],
    marked: tensor[r] === current,
    tensor: tensor[r],
  }));
}

export const threadsDetail = tableDetail({
  name: "threads",
  title: "Threads",
  track: "thread",
  columns: [{ head: "tensor" }, { head: "thread", right: true }, { head: "worked", right: true }, { head: "waited", right: true }],
  widths: "minmax(0, 2fr) 0.6fr 0.9fr 0.9fr",
  rows: threadRows,
  plot: paintThreads,
  plotHeight: THREADS_HEIGHT,
  empty: "Nothing is computing at this step.",
});
