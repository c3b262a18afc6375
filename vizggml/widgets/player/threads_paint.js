// Drawing what threads did: bars of nodes on a clock, a lane for each thread, waits at barriers hatched.

import { hatch } from "./detail_plot.js";
import { formatNs } from "./sentence.js";
import { familyOf } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{evaluation: number, from: number, to: number, threads: number, end: number}} Span rows of one evaluation, and its last nanosecond */
/** @typedef {{left: number, right: number, from: number, to: number}} Clock pixels, and nanoseconds */
/** @typedef {{top: number, high: number, from: number, to: number, done: number}} Lanes pixels; rows, and the first that has not begun */

/** As many threads are drawn as there is room for. */
export const MOST = 16;

/** @param {Clock} clock @param {number} ns */
export function xOf(clock, ns) {
  return clock.left + ((ns - clock.from) / Math.max(1, clock.to - clock.from)) * (clock.right - clock.left);
}

/** @param {Player} player @param {Context} c @param {Clock} clock @param {Lanes} lanes */
export function paintBars({ tracks, palette, fonts }, c, clock, { top, high, from, to, done }) {
  const track = tracks.track("thread");
  const [tensor, thread, begin, end, wait] = ["tensor", "thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
  const bar = Math.max(1.5, high - (high > 8 ? 4 : 1));
  c.font = `10px ${fonts.mono}`;
  c.textAlign = "left";
  for (let r = from; r < to; r++) {
    if (thread[r] >= MOST || end[r] + wait[r] <= clock.from || begin[r] >= clock.to) continue;
    const y = top + thread[r] * high;
    const [x0, x1, x2] = [begin[r], end[r], end[r] + wait[r]].map((ns) => Math.max(clock.left, Math.min(clock.right, xOf(clock, ns))));
    c.globalAlpha = r < done ? 1 : 0.3;
    c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[r]))];
    c.fillRect(x0, y, Math.max(0.6, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), bar);
    if (x2 - x1 > 1.5 && high > 8) hatch(c, x1, y, x2 - x1 - 1, bar, palette.faint);
    if (high < 13) continue;
    const name = tracks.name(tensor[r]);
    if (name.length * 6.1 + 8 > x1 - x0) continue;
    c.fillStyle = "#10151d";
    c.fillText(name, x0 + 4, y + bar / 2 + 0.5);
  }
  c.globalAlpha = 1;
}

/** Round steps of a clock. @param {number} span nanoseconds @param {number} wanted */
function tickOf(span, wanted) {
  const rough = Math.max(1, span / wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) ?? 10 * power;
}

/** Milliseconds along the foot. @param {Player} player @param {Context} c @param {Clock} clock @param {number} top @param {number} bottom */
export function paintAxis({ palette, fonts }, c, clock, top, bottom) {
  const span = Math.max(1, clock.to - clock.from);
  const tick = tickOf(span, Math.max(2, (clock.right - clock.left) / 90));
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(tick / 1e6))));
  c.font = `10px ${fonts.ui}`;
  c.textAlign = "center";
  c.lineWidth = 1;
  for (let ns = Math.ceil(clock.from / tick) * tick; ns <= clock.to; ns += tick) {
    const x = xOf(clock, ns);
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

/** The names of the lanes, and how long all took. @param {Player} player @param {Context} c @param {Span} span @param {number} middle
 * @param {number} top @param {number} high */
export function paintNames({ palette, fonts }, c, span, middle, top, high) {
  c.fillStyle = palette.soft;
  c.textAlign = "left";
  c.font = `10.5px ${fonts.ui}`;
  c.fillText(formatNs(span.end), 12, middle);
  for (let k = 0; k < span.threads && high >= 9; k++) c.fillText(`thread ${k}`, 12, top + k * high + (high - 3) / 2);
}
