// Painting the memory timeline: what a plan looks like, baked once, and what a step adds to it.

import { paintBound, paintLiveSet } from "./live.js";
import { MARKS } from "./marks.js";
import { chunkName } from "./plans.js";
import { formatBytes, visible } from "./sentence.js";
import { familyOf } from "./theme.js";
import { byteTicks, countTicks } from "./ticks.js";
import { BOTTOM, LEFT, RIGHT, TOP } from "./timeline.js";

/** @typedef {import("./timeline.js").TimelinePane} Pane */
/** @typedef {import("./plans.js").Plan} Plan */
/** @typedef {CanvasRenderingContext2D} Context */

/** Thinner than this, a lifetime is drawn as a line. */
const THIN = 2;
const NAMED = 12;
const TICK_HEIGHT = 22;
const MOST_TICKS = 8;

/** @param {Pane} pane @param {Context} c @param {Plan} plan */
export function bake(pane, c, plan) {
  const { player, surface } = pane;
  const { palette, tracks } = player;
  c.fillStyle = palette.page;
  c.fillRect(0, 0, surface.width, surface.height);
  if (pane.stack.from) paintRowAxis(pane, c);
  else paintByteAxis(pane, c, plan);
  clip(pane, c);
  const tensor = tracks.track("life").col("tensor");
  const pale = palette.dark ? 0.42 : 0.38;
  const boxes = [];
  for (const row of plan.rows) {
    const { x, y, w, h } = pane.box(plan, row);
    if (x > surface.width || x + w < LEFT || y > surface.height || y + h < 0) continue;
    c.globalAlpha = h < THIN ? 0.8 : pale;
    c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
    c.fillRect(x, h < THIN ? y - 0.5 : y, w - (w > 3 ? 0.5 : 0), h < THIN ? THIN : h - (h > 3 ? 0.5 : 0));
    boxes.push({ t: tensor[row], x, y, w, h });
  }
  c.globalAlpha = 1;
  paintNames(pane, c, boxes, palette.ink);
  if (pane.stack.from) paintRowNames(pane, c, plan);
  else if (pane.live) paintBound(player, c, pane.live, { x: (p) => pane.x(p), y: (bytes) => pane.y(bytes) });
  paintMarks(pane, c, plan);
  c.restore();
  paintPeak(pane, c, plan);
}

/** @param {Pane} pane @param {Context} c @param {Plan} plan @param {number} step @param {number} position
 * @param {boolean} ahead whether the plan is still to be made: nothing lives yet */
export function paintStep(pane, c, plan, step, position, ahead) {
  clip(pane, c);
  if (!ahead) paintAlive(pane, c, plan, position);
  paintSelected(pane, c, plan, step);
  if (pane.live && !pane.stack.from && !ahead) paintLiveSet(pane.player, c, pane.live, { x: (p) => pane.x(p), y: (bytes) => pane.y(bytes) }, position);
  c.restore();
  paintHead(pane, c, position, ahead);
  paintBrush(pane, c);
}

/** @param {Pane} pane @param {Context} c */
function clip({ surface }, c) {
  c.save();
  c.beginPath();
  c.rect(LEFT, TOP, surface.width - LEFT - RIGHT, surface.height - TOP - BOTTOM);
  c.clip();
}

/** @param {Pane} pane @param {Context} c @param {Plan} plan */
function paintByteAxis(pane, c, plan) {
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  const { y0, y1 } = pane.window;
  c.font = `10.5px ${fonts.ui}`;
  c.textBaseline = "middle";
  c.textAlign = "right";
  c.lineWidth = 1;
  for (const { value, label } of byteTicks(y0, y1, Math.max(1, Math.min(MOST_TICKS, Math.floor((height - TOP - BOTTOM) / TICK_HEIGHT))))) {
    const y = Math.round(pane.y(value)) + 0.5;
    c.strokeStyle = palette.line;
    c.beginPath();
    c.moveTo(LEFT, y);
    c.lineTo(width - RIGHT, y);
    c.stroke();
    c.fillStyle = palette.faint;
    c.fillText(label, LEFT - 6, y);
  }
  axisNames(pane, c, "offset");
  c.strokeStyle = palette.edge;
  for (const chunk of plan.chunks.slice(1)) {
    const y = Math.round(pane.y(chunk.base)) + 0.5;
    if (y < TOP || y > height - BOTTOM) continue;
    c.strokeRect(LEFT, y, width - LEFT - RIGHT, 0.01);
    c.fillText(chunkName(plan, chunk.chunk), LEFT + 4, y - 7);
  }
}

/** @param {Pane} pane @param {Context} c @param {string} up what goes up */
function axisNames(pane, c, up) {
  const { width, height } = pane.surface;
  c.font = `10.5px ${pane.player.fonts.ui}`;
  c.fillStyle = pane.player.palette.soft;
  c.textAlign = "right";
  c.fillText("position in the execution order (not time)", width - RIGHT, height - BOTTOM + 27);
  c.textAlign = "left";
  c.fillText(up, 12, 7);
}

/** @param {Pane} pane @param {Context} c */
function paintRowAxis(pane, c) {
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  const n = pane.stack.top;
  c.textBaseline = "middle";
  c.lineWidth = 1;
  c.strokeStyle = palette.line;
  c.strokeRect(LEFT + 0.5, TOP + 0.5, width - LEFT - RIGHT - 1, height - TOP - BOTTOM - 1);
  axisNames(pane, c, `${n} tensors`);
  c.font = `10.5px ${fonts.ui}`;
  c.fillStyle = palette.faint;
  c.textAlign = "right";
  const [above, below] = pane.order === "size" ? ["largest", "smallest"] : ["first", "last"];
  if (pane.window.y1 >= n) c.fillText(above, LEFT - 6, TOP + 8);
  if (pane.window.y0 <= 0) c.fillText(below, LEFT - 6, height - BOTTOM - 8);
  c.textAlign = "left";
}

/** Names beside the rows that are high enough. @param {Pane} pane @param {Context} c @param {Plan} plan */
function paintRowNames(pane, c, plan) {
  const { tracks, palette, fonts } = pane.player;
  if (Math.abs(pane.y(1) - pane.y(0)) < NAMED) return;
  const life = tracks.track("life");
  c.textBaseline = "middle";
  c.font = `10px ${fonts.mono}`;
  c.fillStyle = palette.soft;
  for (const row of plan.rows) {
    const { x, y, w, h } = pane.box(plan, row);
    if (y > pane.surface.height || y + h < 0) continue;
    const text = `${visible(tracks.name(life.col("tensor")[row]))} ${formatBytes(life.col("size")[row])}`;
    const wide = c.measureText(text).width;
    if (wide + 8 < w) continue;
    const right = x + w + 5 + wide < pane.surface.width - RIGHT;
    c.fillText(text, right ? x + w + 5 : Math.max(LEFT + 2, x - 5 - wide), y + h / 2);
  }
}

/** @param {Pane} pane @param {Context} c @param {Plan} plan */
function paintMarks(pane, c, plan) {
  const tensor = pane.player.tracks.track("life").col("tensor");
  for (const row of pane.marks.size ? plan.rows : []) {
    const mark = pane.marks.get(tensor[row]);
    if (!mark) continue;
    const { colour, dash, wide } = MARKS[mark];
    const { x, y, w, h } = pane.box(plan, row);
    c.strokeStyle = colour(pane.player.palette);
    c.lineWidth = wide;
    c.setLineDash(dash);
    c.beginPath();
    // over a lifetime that is thin as a line, so that its colour stays
    if (h < 2 * THIN) c.rect(x, y - wide / 2 - 1, w, 0);
    else c.rect(x + 1, y + 1, Math.max(1, w - 2), h - 2);
    c.stroke();
  }
  c.setLineDash([]);
  c.lineWidth = 1;
}

/** @param {Pane} pane @param {Context} c @param {Plan} plan */
function paintPeak(pane, c, plan) {
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  const rows = pane.stack.from !== null;
  const x = Math.round(pane.x(plan.peakPosition + 0.5)) + 0.5;
  const y = Math.round(pane.y(plan.size)) + 0.5;
  if (rows ? x < LEFT || x > width - RIGHT : y < TOP - 2) return;
  c.strokeStyle = palette.ink;
  c.lineWidth = 1;
  c.setLineDash([5, 4]);
  c.beginPath();
  c.moveTo(rows ? x : LEFT, rows ? TOP : y);
  c.lineTo(rows ? x : width - RIGHT, rows ? height - BOTTOM : y);
  c.stroke();
  c.setLineDash([]);
  c.fillStyle = palette.ink;
  c.font = `600 11px ${fonts.ui}`;
  c.textAlign = "right";
  c.textBaseline = "middle";
  const words = peakWords(plan);
  const right = rows ? Math.min(width - RIGHT, Math.max(x + 4, LEFT + c.measureText(words).width)) : width - RIGHT;
  c.fillText(words, right, rows ? 7 : Math.max(7, y - 8));
  c.textAlign = "left";
}

/** @param {Plan} plan */
function peakWords({ used, buffers }) {
  return buffers.size > used ? `uses up to ${formatBytes(used)} of ${formatBytes(buffers.size)}` : `peak ${formatBytes(used)}`;
}

/** What lives at a position. @param {Pane} pane @param {Context} c @param {Plan} plan @param {number} position */
function paintAlive(pane, c, plan, position) {
  if (position < 0) return;
  const { palette, tracks } = pane.player;
  const life = tracks.track("life");
  const [first, last, tensor] = ["first", "last", "tensor"].map((n) => life.col(n));
  c.strokeStyle = palette.page;
  c.lineWidth = 1;
  const boxes = [];
  for (const row of plan.rows) {
    if (first[row] > position || last[row] < position) continue;
    const { x, y, w, h } = pane.box(plan, row);
    c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
    c.fillRect(x, h < THIN ? y - 1 : y, w, h < THIN ? THIN + 1 : h);
    if (h > 4) c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    boxes.push({ t: tensor[row], x, y, w, h });
  }
  paintNames(pane, c, boxes, palette.onFamily);
}

/** Names where there is room for them. Who lies in the place of another that still lives is named beside it.
 * @param {Pane} pane @param {Context} c @param {{ t: number, x: number, y: number, w: number, h: number }[]} boxes
 * @param {string} ink */
function paintNames({ player }, c, boxes, ink) {
  /** @type {Map<number, { from: number, to: number, end: number }[]>} what is named at a height */
  const named = new Map();
  c.fillStyle = ink;
  c.font = `10px ${player.fonts.mono}`;
  c.textBaseline = "middle";
  const roomy = boxes.filter(({ x, w, h }) => h >= NAMED && x + w - Math.max(x, LEFT) >= 16);
  for (const { t, x, y, w, h } of roomy.sort((a, b) => a.w - b.w)) {
    const name = visible(player.tracks.name(t));
    const wide = name.length * 6.1 + 10;
    const middle = Math.round(y + h / 2);
    const there = named.get(middle) ?? [];
    let from = Math.max(x, LEFT);
    for (const other of there) if (from < other.to && other.from < from + wide) from = other.end;
    if (x + w - from < wide) continue;
    c.fillText(name, from + 5, y + h / 2 + 0.5);
    named.set(middle, [...there, { from, to: from + wide, end: x + w }]);
  }
}

/** @param {Pane} pane @param {Context} c @param {Plan} plan @param {number} step */
function paintSelected(pane, c, plan, step) {
  const { selected, relations, palette } = pane.player;
  const row = selected < 0 ? -1 : relations.lifeRow(selected, step);
  if (row < 0) return;
  const { x, y, w, h } = pane.box(plan, row);
  c.strokeStyle = palette.ink;
  c.lineWidth = 2;
  c.strokeRect(x - 1, y - 1, w + 2, h + 2);
}

/** The position, and whose the bytes are that stand beside it: the node's when it runs, not the step's.
 * @param {Pane} pane @param {Context} c @param {number} position @param {boolean} ahead */
function paintHead(pane, c, position, ahead) {
  const { x0, x1 } = pane.window;
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  if (position < x0 || position >= x1) return paintTicks(pane, c, -100, -100);
  const x = pane.x(position + 0.5);
  const bottom = height - BOTTOM;
  c.fillStyle = palette.accent;
  c.fillRect(Math.round(x) - 0.75, TOP, 1.5, bottom - TOP);
  c.font = `600 11px ${fonts.ui}`;
  const held = pane.live?.bytes[position];
  const said = held === undefined ? "" : ahead ? `: ${formatBytes(held)} in the plan to come` : ` runs with ${formatBytes(held)} live`;
  const text = `node ${position}${said}`;
  const w = c.measureText(text).width + 10;
  // clear of the numbers at the left
  const left = Math.max(2, Math.min(Math.max(LEFT - 4, x - w / 2), width - RIGHT - w));
  paintTicks(pane, c, left, left + w);
  c.font = `600 11px ${fonts.ui}`;
  c.fillStyle = palette.accent;
  c.beginPath();
  c.roundRect(left, bottom + 1, w, 16, 3);
  c.fill();
  c.fillStyle = palette.onAccent;
  c.textBaseline = "middle";
  c.textAlign = "center";
  c.fillText(text, left + w / 2, bottom + 9.5);
  c.textAlign = "left";
}

/** Positions along the bottom, but for those that would touch the current one's words.
 * @param {Pane} pane @param {Context} c @param {number} from @param {number} to */
function paintTicks(pane, c, from, to) {
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  c.font = `10.5px ${fonts.ui}`;
  c.fillStyle = palette.faint;
  c.textBaseline = "middle";
  c.textAlign = "center";
  for (const p of countTicks(pane.window.x0, pane.window.x1, Math.max(2, Math.floor(width / 110)))) {
    const x = pane.x(p + 0.5);
    if (x < width - RIGHT && (x < from - 16 || x > to + 16)) c.fillText(String(p), x, height - BOTTOM + 9);
  }
  c.textAlign = "left";
}

/** @param {Pane} pane @param {Context} c */
function paintBrush(pane, c) {
  if (!pane.brush) return;
  const { palette } = pane.player;
  const { x, y, toX, toY } = pane.brush;
  const rect = /** @type {const} */ ([Math.min(x, toX), Math.min(y, toY), Math.abs(toX - x), Math.abs(toY - y)]);
  c.fillStyle = palette.accent;
  c.globalAlpha = 0.12;
  c.fillRect(...rect);
  c.globalAlpha = 1;
  c.strokeStyle = palette.accent;
  c.lineWidth = 1;
  c.strokeRect(rect[0] + 0.5, rect[1] + 0.5, rect[2], rect[3]);
}
