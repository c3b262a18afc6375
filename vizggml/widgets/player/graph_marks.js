// What a step paints over the graph's bitmap: statuses, the current node and its kin, what was found, the small map.

import { roundRect } from "./graph_paint.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./folding.js").Folding} Folding */
/** @typedef {import("./folding.js").Item} Item */
/** @typedef {import("./graph_paint.js").GraphPainter} GraphPainter */
/** @typedef {import("./graph_paint.js").View} View */
/** @typedef {CanvasRenderingContext2D} Context */

const BAR = 4;
const WHOLE_BELOW = 0.3;
export const STRIP = { left: 14, top: 40, height: 30 };
const STACKED = [5, 6, 7, 4, 3, 2, 1];
const MAP = { w: 132, h: 88, margin: 8 };

/** A bar in each box, or all of it where boxes are small; a strip of blocks in each card.
 * @param {Context} c @param {Player} player @param {Folding} folding @param {Uint8Array} status by tensor @param {number} scale */
export function paintStatus(c, player, folding, status, scale) {
  const { tensor, w, h } = folding.graph.nodes;
  const colours = player.palette.status;
  const whole = scale < WHOLE_BELOW;
  for (let s = 1; s < colours.length; s++) {
    c.fillStyle = colours[s];
    for (let row = 0; row < tensor.length; row++) {
      if (status[tensor[row]] !== s || !folding.shown(row)) continue;
      const left = folding.x(row) - w[row] / 2;
      const top = folding.y(row) - h[row] / 2;
      c.fillRect(left + 0.5, top + 0.5, whole ? w[row] - 1 : BAR, h[row] - 1);
    }
  }
  for (const item of folding.items) if (item.card) paintStrip(c, player, folding, item, status);
}

/** A card's blocks, each a cell filled by its nodes' statuses.
 * @param {Context} c @param {Player} player @param {Folding} folding @param {Item} item @param {Uint8Array} status */
function paintStrip(c, player, folding, item, status) {
  const { sections } = folding.graph;
  const colours = player.palette.status;
  const n = item.sections.length;
  const width = item.w - 2 * STRIP.left;
  const top = item.y + STRIP.top;
  const counts = new Uint16Array(colours.length);
  item.sections.forEach((s, k) => {
    counts.fill(0);
    for (const t of sections[s].nodes) counts[status[t]]++;
    const x = item.x + STRIP.left + (width * k) / n;
    const w = Math.max(1, width / n - (n > 60 ? 0 : 1));
    c.fillStyle = player.palette.line;
    c.fillRect(x, top, w, STRIP.height);
    let y = top + STRIP.height;
    for (const value of STACKED) {
      if (!counts[value]) continue;
      const part = (STRIP.height * counts[value]) / (sections[s].nodes.length || 1);
      y -= part;
      c.fillStyle = colours[value];
      c.fillRect(x, y, w, part);
    }
  });
}

/** @param {Context} c @param {Folding} folding @param {number} row @param {number} by */
function outline(c, folding, row, by) {
  const { w, h } = folding.graph.nodes;
  c.roundRect(folding.x(row) - w[row] / 2 - by, folding.y(row) - h[row] / 2 - by, w[row] + 2 * by, h[row] + 2 * by, 4 + by);
}

/** Lights what tensor `t` reads and what reads it; with `way`, also every edge on the way from the inputs.
 * @param {Context} c @param {Player} player @param {{folding: Folding, painter: GraphPainter}} drawing @param {number} t
 * @param {Set<number> | null} way @param {number} scale */
export function paintKin(c, player, { folding, painter }, t, way, scale) {
  const { palette } = player;
  const { src, dst } = folding.graph.edges;
  const { tensor } = folding.graph.nodes;
  c.lineWidth = Math.max(1.6, 1.4 / scale);
  for (const sources of [true, false]) {
    c.strokeStyle = sources ? palette.source : palette.consumer;
    c.beginPath();
    const boxes = new Set();
    for (let e = 0; e < src.length; e++) {
      const [s, d] = [tensor[src[e]], tensor[dst[e]]];
      if (!(sources ? d === t || way?.has(d) : s === t)) continue;
      painter.trace(c, e, null, null);
      boxes.add(sources ? src[e] : dst[e]);
    }
    for (const row of boxes) if (folding.shown(row)) outline(c, folding, row, 1);
    c.stroke();
  }
}

/** @param {Context} c @param {Player} player @param {Folding} folding @param {number[]} found @param {number} scale */
export function paintFound(c, player, folding, found, scale) {
  if (!found.length) return;
  c.strokeStyle = player.palette.ink;
  c.lineWidth = Math.max(1.5, 1.2 / scale);
  c.setLineDash([4, 3]);
  c.beginPath();
  for (const t of found) {
    const row = folding.rowOf.get(t);
    if (row !== undefined && folding.shown(row)) outline(c, folding, row, 4);
  }
  c.stroke();
  c.setLineDash([]);
}

/** The ring around the current node (or its cell in a card), and the mark of the selected one.
 * @param {Context} c @param {Player} player @param {Folding} folding @param {number} row @param {number} scale */
export function paintRings(c, player, folding, row, scale) {
  const { palette, selected } = player;
  const chosen = folding.rowOf.get(selected);
  if (chosen !== undefined && folding.shown(chosen)) {
    c.strokeStyle = palette.ink;
    c.lineWidth = Math.max(2, 1.5 / scale);
    c.beginPath();
    outline(c, folding, chosen, 2);
    c.stroke();
  }
  if (row < 0) return;
  c.strokeStyle = palette.accent;
  c.lineWidth = Math.max(2.5, 2 / scale);
  if (!folding.shown(row)) return paintCellRing(c, player, folding, row);
  c.beginPath();
  outline(c, folding, row, 3);
  c.stroke();
}

/** @param {Context} c @param {Player} player @param {Folding} folding @param {number} row */
function paintCellRing(c, player, folding, row) {
  const section = folding.sectionOf[row];
  const item = folding.items[folding.itemOf[section]];
  const k = item.sections.indexOf(section);
  const wide = (item.w - 2 * STRIP.left) / item.sections.length;
  roundRect(c, item.x + STRIP.left + wide * k - 2, item.y + STRIP.top - 2, Math.max(4, wide) + 3, STRIP.height + 4, 2);
  c.stroke();
  if (item.sections.length < 2) return;
  c.fillStyle = player.palette.accent;
  c.font = `600 11px ${player.fonts.ui}`;
  c.textBaseline = "middle";
  c.textAlign = "right";
  c.fillText(folding.graph.sections[section].label, item.x + item.w - 54, item.y + 22);
  c.textAlign = "left";
}

/** Where the small map stands; null while the whole graph is in sight.
 * @param {{width: number, height: number}} size @param {Folding} folding @param {View} view */
export function minimap({ width, height }, folding, view) {
  if (folding.width * view.scale <= width + 2 && folding.height * view.scale <= height + 2) return null;
  const s = Math.min(MAP.w / folding.width, MAP.h / folding.height);
  const [w, h] = [folding.width * s, folding.height * s];
  return { x: width - w - MAP.margin, y: height - h - MAP.margin, w, h, s };
}

/** @param {Context} c @param {Player} player @param {{width: number, height: number}} size @param {Folding} folding
 * @param {View} view @param {number} row */
export function paintMinimap(c, player, size, folding, view, row) {
  const at = minimap(size, folding, view);
  if (!at) return;
  const { palette } = player;
  c.fillStyle = palette.page;
  c.strokeStyle = palette.edge;
  c.lineWidth = 1;
  c.beginPath();
  c.rect(at.x - 0.5, at.y - 0.5, at.w + 1, at.h + 1);
  c.fill();
  c.stroke();
  c.fillStyle = palette.line;
  for (const item of folding.items) {
    c.fillRect(at.x + item.x * at.s, at.y + item.y * at.s, Math.max(1, item.w * at.s), Math.max(1, item.h * at.s));
  }
  c.save();
  c.beginPath();
  c.rect(at.x, at.y, at.w, at.h);
  c.clip();
  c.strokeStyle = palette.soft;
  const f = at.s / view.scale;
  c.strokeRect(at.x - view.x * f, at.y - view.y * f, size.width * f, size.height * f);
  c.restore();
  if (row < 0) return;
  const where = folding.anchor(row);
  c.fillStyle = palette.accent;
  c.fillRect(at.x + where.x * at.s - 2, at.y + where.y * at.s - 2, 4, 4);
}
