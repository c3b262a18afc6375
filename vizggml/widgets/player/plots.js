// Small plots above the tables: scratch over the nodes, the cells of the KV cache, threads beside each other.

import { formatBytes, formatNs } from "./sentence.js";
import { familyOf } from "./theme.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */

const PAD = 10;

/** Scratch of each node in execution order, and the running maximum.
 * @param {Player} player @param {CanvasRenderingContext2D} c @param {number} w @param {number} h @param {number} step */
export function paintScratch(player, c, w, h, step) {
  const { tracks, relations, palette, fonts } = player;
  const track = tracks.track("scratch");
  const [graph, tensor, size, maximum] = ["graph", "tensor", "work_size", "maximum"].map((n) => track.col(n));
  const g = relations.focus.graph[step];
  const { position } = relations.home;
  const rows = track.openAt(step).filter((r) => graph[r] === g);
  const ptr = tracks.columns.column("graph.ptr");
  const n = g >= 0 ? ptr[g + 1] - ptr[g] : 0;
  const most = rows.reduce((m, r) => Math.max(m, maximum[r]), 0);
  if (!n || !most) return;
  const wide = (w - 2 * PAD) / n;
  const high = h - 24;
  const y = (/** @type {number} */ bytes) => h - 6 - (bytes / most) * high;
  c.fillStyle = palette.families[0];
  for (const r of rows) c.fillRect(PAD + position[tensor[r]] * wide, y(size[r]), Math.max(1, wide), h - 6 - y(size[r]));
  c.strokeStyle = palette.ink;
  c.lineWidth = 1;
  c.beginPath();
  rows.sort((p, q) => position[tensor[p]] - position[tensor[q]]);
  rows.forEach((r, k) => {
    const x = PAD + position[tensor[r]] * wide;
    if (k === 0) c.moveTo(x, y(maximum[r]));
    else c.lineTo(x, y(maximum[rows[k - 1]]));
    c.lineTo(x, y(maximum[r]));
  });
  c.stroke();
  const at = relations.positionAt(step);
  c.fillStyle = palette.accent;
  if (at >= 0) c.fillRect(PAD + at * wide - 0.5, 12, 1.5, h - 16);
  c.fillStyle = palette.soft;
  c.font = `11px ${fonts.ui}`;
  c.textBaseline = "top";
  c.fillText(`largest so far ${formatBytes(most)}`, PAD, 2);
}

/** Cells from left to right: those with a token, and how many layers' K and V are written there.
 * @param {Player} player @param {CanvasRenderingContext2D} c @param {number} w @param {number} h @param {number} step */
export function paintCells(player, c, w, h, step) {
  const { tracks, palette, fonts } = player;
  const cells = tracks.track("cell");
  const kv = tracks.track("kv");
  const [cell, seq] = ["cell", "seq"].map((n) => cells.col(n));
  const [layer, which, from, count] = ["layer", "which", "cell", "n_cells"].map((n) => kv.col(n));
  let n = 32;
  for (let r = 0; r < cells.length; r++) n = Math.max(n, cell[r] + 1);
  let layers = 1;
  for (let r = 0; r < kv.length; r++) layers = Math.max(layers, layer[r] + 1);
  const wide = (w - 2 * PAD - 46) / n;
  const left = PAD + 46;
  const band = 10;
  const high = (h - 18 - band - 6) / 2;
  c.font = `11px ${fonts.ui}`;
  c.textBaseline = "middle";
  c.fillStyle = palette.soft;
  const tops = [16 + band + 3, 16 + band + 6 + high];
  ["cells", "K", "V"].forEach((text, k) => c.fillText(text, PAD, k === 0 ? 16 + band / 2 : tops[k - 1] + high / 2));
  c.fillStyle = palette.panel;
  for (const top of [16, ...tops]) c.fillRect(left, top, wide * n, top === 16 ? band : high);
  const gap = wide > 4 ? 1 : 0;
  let taken = 0;
  cells.each(step, (r) => {
    taken++;
    c.fillStyle = palette.families[[0, 4, 2, 1, 3][seq[r] % 5] ?? 0];
    c.fillRect(left + cell[r] * wide, 16, Math.max(1, wide - gap), band);
  });
  c.fillStyle = palette.families[2];
  kv.each(step, (r) => {
    const y = tops[which[r] ? 1 : 0] + (layer[r] * high) / layers;
    c.fillRect(left + from[r] * wide, y, Math.max(1, count[r] * wide - gap), Math.max(0.7, high / layers));
  });
  c.fillStyle = palette.soft;
  c.fillText(`${taken} cells taken; ${layers} layers from top to bottom`, PAD, 6);
}

const AROUND = 40;

/** What each thread did around the current node, on the clock of the evaluation.
 * @param {Player} player @param {CanvasRenderingContext2D} c @param {number} w @param {number} h @param {number} step */
export function paintThreads(player, c, w, h, step) {
  const { tracks, relations, palette, fonts } = player;
  const track = tracks.track("thread");
  const [evaluation, tensor, thread, begin, end, wait] = ["eval", "tensor", "thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
  const at = upperBound(track.a, step) - 1;
  if (at < 0) return;
  /** @type {number[]} */
  const rows = [];
  let threads = 1;
  for (let r = Math.max(0, at - AROUND); r <= Math.min(track.length - 1, at + AROUND); r++) {
    if (evaluation[r] !== evaluation[at]) continue;
    rows.push(r);
    threads = Math.max(threads, thread[r] + 1);
  }
  const from = Math.min(...rows.map((r) => begin[r]));
  const to = Math.max(...rows.map((r) => end[r] + wait[r]));
  const left = PAD + 16;
  const x = (/** @type {number} */ ns) => left + ((ns - from) / Math.max(1, to - from)) * (w - left - PAD);
  const high = Math.min(20, (h - 20) / threads);
  const current = relations.tensorAt(step);
  c.font = `11px ${fonts.ui}`;
  c.textBaseline = "middle";
  for (const r of rows) {
    const y = 16 + thread[r] * high;
    c.fillStyle = palette.free;
    c.fillRect(x(end[r]), y, Math.max(0, x(end[r] + wait[r]) - x(end[r])), high - 3);
    c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[r]))];
    const wide = Math.max(1, x(end[r]) - x(begin[r]) - 0.5);
    c.globalAlpha = r <= at ? 1 : 0.35;
    c.fillRect(x(begin[r]), y, wide, high - 3);
    c.globalAlpha = 1;
    if (tensor[r] !== current) continue;
    c.strokeStyle = palette.accent;
    c.lineWidth = 2;
    c.strokeRect(x(begin[r]), y, wide, high - 3);
  }
  c.fillStyle = palette.soft;
  for (let k = 0; k < threads; k++) c.fillText(String(k), PAD, 16 + k * high + (high - 3) / 2);
  c.fillText(`${formatNs(Math.round(from))} to ${formatNs(Math.round(to))} of this evaluation; pale: waiting`, PAD, 6);
}
