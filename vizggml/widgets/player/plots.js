// Small plots above the tables: scratch over the nodes, the cells of the KV cache.

import { formatBytes } from "./sentence.js";

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
