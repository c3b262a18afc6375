// What a step paints over the graph's bitmap: statuses, the current node and its kin, what was found, the small map.

import { NEAR_LINES, inSight, isSeen, nearType, roundRect, widthOf } from "./graph_paint.js";
import { MARKS, byMark } from "./marks.js";
import { visible } from "./sentence.js";

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

/** A line's width in the world: `wide` there, but never thinner on the screen than `least`, nor much thicker than `wide`.
 * @param {number} wide @param {number} least @param {number} scale */
export function stroke(wide, least, scale) {
  return scale > 1 ? wide / scale : Math.max(wide, least / scale);
}

/** A bar in each box in sight, or all of it where boxes are small; a strip of blocks in each card.
 * @param {Context} c @param {Player} player @param {Folding} folding @param {Uint8Array} status by tensor
 * @param {{width: number, height: number}} size @param {View} view @param {Set<number> | null} members */
export function paintStatus(c, player, folding, status, size, view, members) {
  const { tensor, w, h } = folding.graph.nodes;
  const colours = player.palette.status;
  const whole = view.scale < WHOLE_BELOW;
  const seen = inSight(size, view);
  /** @type {number[][]} */
  const rows = colours.map(() => []);
  for (const item of folding.items) {
    if (!isSeen(item, seen)) continue;
    if (item.card) paintStrip(c, player, folding, item, status, members);
    else for (const row of folding.rows[item.sections[0]]) if (!members || members.has(tensor[row])) rows[status[tensor[row]]]?.push(row);
  }
  for (let s = 1; s < colours.length; s++) {
    c.fillStyle = colours[s];
    for (const row of rows[s]) c.fillRect(folding.x(row) - w[row] / 2 + 0.5, folding.y(row) - h[row] / 2 + 0.5, whole ? w[row] - 1 : BAR, h[row] - 1);
  }
}

/** A card's blocks, each a cell filled by its nodes' statuses.
 * @param {Context} c @param {Player} player @param {Folding} folding @param {Item} item @param {Uint8Array} status
 * @param {Set<number> | null} members */
function paintStrip(c, player, folding, item, status, members) {
  const { sections } = folding.graph;
  const colours = player.palette.status;
  const n = item.sections.length;
  const width = item.w - 2 * STRIP.left;
  const top = item.y + STRIP.top;
  const counts = new Uint16Array(colours.length);
  item.sections.forEach((s, k) => {
    counts.fill(0);
    let any = !members;
    for (const t of sections[s].nodes) {
      counts[status[t]]++;
      any ||= members?.has(t) ?? false;
    }
    c.globalAlpha = any ? 1 : 0.2;
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
    if (sections[s].differs && n > 1) {
      c.fillStyle = player.palette.consumer;
      c.fillRect(x, top - 4, w, 2);
    }
    c.globalAlpha = 1;
  });
}

/** @param {Context | Path2D} c @param {Folding} folding @param {number} row @param {number} by */
function outline(c, folding, row, by) {
  const { w, h } = folding.graph.nodes;
  c.roundRect(folding.x(row) - w[row] / 2 - by, folding.y(row) - h[row] / 2 - by, w[row] + 2 * by, h[row] + 2 * by, 4 + by);
}

/** Lights what tensor `t` reads and what reads it; with `way`, also every edge on the way from the inputs.
 * @param {Context} c @param {Player} player @param {{folding: Folding, painter: GraphPainter}} drawing @param {number} t
 * @param {Set<number> | null} way @param {number} scale @param {Set<number> | null} members who alone is lit */
export function paintKin(c, player, { folding, painter }, t, way, scale, members) {
  const { palette } = player;
  const { src, dst } = folding.graph.edges;
  const { tensor } = folding.graph.nodes;
  c.lineWidth = stroke(1.6, 1.4, scale);
  for (const sources of [true, false]) {
    c.strokeStyle = sources ? palette.source : palette.consumer;
    c.beginPath();
    const boxes = new Set();
    const drawn = new Set();
    const light = (/** @type {number} */ e) => {
      if (members && !(members.has(tensor[src[e]]) && members.has(tensor[dst[e]]))) return;
      painter.trace(c, e, null, drawn);
      boxes.add(sources ? src[e] : dst[e]);
    };
    if (!sources) folding.outOf(t).forEach(light);
    else for (const to of way ? [t, ...way] : [t]) folding.into(folding.rowOf.get(to) ?? -1).forEach(light);
    for (const row of boxes) if (folding.shown(row)) outline(c, folding, row, 1);
    c.stroke();
  }
}

/** @param {Context} c @param {Player} player @param {Folding} folding @param {number[]} found @param {number} scale */
export function paintFound(c, player, folding, found, scale) {
  if (!found.length) return;
  c.strokeStyle = player.palette.ink;
  c.lineWidth = stroke(1.5, 1.2, scale);
  c.setLineDash([4, 3]);
  c.beginPath();
  for (const t of found) {
    const row = folding.rowOf.get(t);
    if (row !== undefined && folding.shown(row)) outline(c, folding, row, 4);
  }
  c.stroke();
  c.setLineDash([]);
}

/** Outlines marked tensors; in a card, ticks at the foot of the blocks that hold some. @param {Context} c @param {Player} player
 * @param {Folding} folding @param {Map<number, import("./marks.js").Mark>} marks @param {number} scale */
export function paintMarks(c, player, folding, marks, scale) {
  byMark(marks).forEach(([mark, tensors], k) => {
    const { colour, dash, wide } = MARKS[mark];
    const boxes = new Path2D();
    const ticks = new Path2D();
    const ticked = new Set();
    for (const t of tensors) {
      const row = folding.rowOf.get(t);
      if (row === undefined) continue;
      if (folding.shown(row)) {
        outline(boxes, folding, row, 2);
        continue;
      }
      const section = folding.sectionOf[row];
      if (ticked.has(section)) continue;
      ticked.add(section);
      const { x, w } = cell(folding, row);
      const foot = folding.items[folding.itemOf[section]].y + STRIP.top + STRIP.height;
      ticks.rect(x, foot - 3 * (k + 1), Math.max(2, w - 1), 2.5);
    }
    c.strokeStyle = c.fillStyle = colour(player.palette);
    c.lineWidth = stroke(wide, wide * 0.9, scale);
    c.setLineDash(dash.map((d) => d / Math.max(1, scale)));
    c.stroke(boxes);
    c.setLineDash([]);
    c.fill(ticks);
  });
}

/** Where the block of `row` lies in its card's strip. @param {Folding} folding @param {number} row */
export function cell(folding, row) {
  const section = folding.sectionOf[row];
  const item = folding.items[folding.itemOf[section]];
  const wide = (item.w - 2 * STRIP.left) / item.sections.length;
  return { x: item.x + STRIP.left + wide * item.sections.indexOf(section), w: wide };
}

/** What an open section that is unlike the others has more (+), or otherwise (≠). @param {Context} c @param {Player} player
 * @param {Folding} folding @param {number} scale @param {Set<number> | null} members */
export function paintUnlike(c, player, folding, scale, members) {
  if (scale < 0.3) return;
  const size = Math.max(12, 9 / scale);
  c.font = `700 ${size}px ${player.fonts.ui}`;
  c.textBaseline = "middle";
  c.textAlign = "center";
  for (const item of folding.items) {
    const differs = item.card ? undefined : folding.graph.sections[item.sections[0]].differs;
    if (!differs) continue;
    const signs = /** @type {[number, string][]} */ ([...differs.added.map((t) => [t, "+"]), ...differs.changed.map(([t]) => [t, "≠"])]);
    for (const [t, sign] of signs) {
      const row = folding.rowOf.get(t);
      if (row === undefined || folding.sectionOf[row] !== item.sections[0] || (members && !members.has(t))) continue;
      const x = folding.x(row) - folding.graph.nodes.w[row] / 2;
      const y = folding.y(row) - folding.graph.nodes.h[row] / 2 + 3;
      c.fillStyle = player.palette.consumer;
      c.beginPath();
      c.arc(x, y, size * 0.56, 0, 7);
      c.fill();
      c.fillStyle = player.palette.page;
      c.fillText(sign, x, y + 0.5);
    }
  }
  c.textAlign = "left";
}

/** The last line of a near box: where its bytes are at this step. @param {Context} c @param {Player} player
 * @param {Folding} folding @param {number} step @param {{width: number, height: number}} size @param {View} view
 * @param {Set<number> | null} members */
export function paintPlaces(c, player, folding, step, size, view, members) {
  const { tracks, relations } = player;
  const seen = inSight(size, view);
  const place = tracks.track("place");
  const [tensor, buffer, offset] = ["tensor", "buffer", "offset"].map((n) => place.col(n));
  /** @type {Map<number, number>} */
  const rowOf = new Map();
  place.each(step, (r) => rowOf.set(tensor[r], r));
  const { nodes } = folding.graph;
  const viewOffset = tracks.columns.column("tensor.view_offs");
  const viewSrc = tracks.columns.column("tensor.view_src");
  c.fillStyle = player.palette.soft;
  c.textBaseline = "alphabetic";
  for (const item of folding.items) {
    if (item.card || !isSeen(item, seen)) continue;
    for (const row of folding.rows[item.sections[0]]) {
      const [w, h, t] = [nodes.w[row], nodes.h[row], nodes.tensor[row]];
      const [left, top] = [folding.x(row) - w / 2, folding.y(row) - h / 2];
      if (!isSeen({ x: left, y: top, w, h }, seen) || (members && !members.has(t))) continue;
      const { pitch, size: high } = nearType(view.scale, h);
      c.font = `${high}px ${player.fonts.mono}`;
      const root = relations.root(t);
      const r = rowOf.get(t) ?? rowOf.get(root);
      const from = r === undefined ? -1 : offset[r] + (rowOf.has(t) ? 0 : viewOffset[t]);
      const text = r !== undefined ? `offset ${from}, buffer ${buffer[r]}` : viewSrc[t] >= 0 ? `${viewOffset[t]} B into ${visible(tracks.name(root))}` : "no memory yet";
      const room = Math.floor((w - 13) / (high * 0.602));
      c.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, left + 9, top + h / 2 + ((NEAR_LINES - 1) / 2) * pitch + high * 0.36);
    }
  }
}

/** The ring around the current node (or its cell in a card), and the mark of the selected one.
 * @param {Context} c @param {Player} player @param {Folding} folding @param {number} row @param {number} scale */
export function paintRings(c, player, folding, row, scale) {
  const { palette, selected } = player;
  const chosen = folding.rowOf.get(selected);
  if (chosen !== undefined && folding.shown(chosen)) {
    c.strokeStyle = palette.ink;
    c.lineWidth = stroke(2, 1.5, scale);
    c.beginPath();
    outline(c, folding, chosen, 2);
    c.stroke();
  }
  if (row < 0) return;
  c.strokeStyle = palette.accent;
  c.lineWidth = stroke(2.5, 2, scale);
  if (!folding.shown(row)) return paintCellRing(c, player, folding, row, scale);
  c.beginPath();
  outline(c, folding, row, 3);
  c.stroke();
}

/** @param {Context} c @param {Player} player @param {Folding} folding @param {number} row @param {number} scale */
function paintCellRing(c, player, folding, row, scale) {
  const section = folding.sectionOf[row];
  const item = folding.items[folding.itemOf[section]];
  const { x, w } = cell(folding, row);
  roundRect(c, x - 2, item.y + STRIP.top - 2, Math.max(4, w) + 3, STRIP.height + 4, 2);
  c.stroke();
  if (item.sections.length < 2) return;
  c.fillStyle = player.palette.accent;
  const [size, title] = [Math.max(11, 9.5 / scale), Math.max(14, 10.5 / scale)];
  const label = folding.graph.sections[section].label;
  const { fonts } = player;
  if (widthOf(c, fonts, item.label) * title + widthOf(c, fonts, label) * size + 78 * (size / 11) > item.w) return;
  c.fillStyle = player.palette.accent;
  c.font = `600 ${size}px ${fonts.ui}`;
  c.textBaseline = "middle";
  c.textAlign = "right";
  c.fillText(label, item.x + item.w - 20 - 34 * (size / 11), item.y + 22);
  c.textAlign = "left";
}

/** Where the small map stands; null while the whole graph is in sight.
 * @param {{width: number, height: number}} size @param {Folding} folding @param {View} view */
export function minimap({ width, height }, folding, view) {
  if (folding.width * view.scale <= width + 2 && folding.height * view.scale <= height + 2) return null;
  const s = Math.min(Math.min(MAP.w, width * 0.22) / folding.width, Math.min(MAP.h, height * 0.42) / folding.height);
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
