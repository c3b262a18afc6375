// Pointer and wheel over the graph: pan, zoom, choose, open and fold, the card beside the pointer.

import { HEADER } from "./folding.js";
import { STRIP, minimap } from "./graph_marks.js";
import { formatBytes, formatDims, visible } from "./sentence.js";
import { copiesInto } from "./splits.js";
import { STATUS } from "./theme.js";

/** @typedef {import("./graph.js").GraphPane} GraphPane */
/** @typedef {import("./graph.js").Drawing} Drawing */
/** @typedef {import("./folding.js").Item} Item */

const CLICK = 4;
const PINCH = 0.01;
const WHEEL = 0.0015;
const FEW = 5;

/** @param {GraphPane} pane */
export function listenGraph(pane) {
  const { box } = pane.surface;
  /** Where each finger (or the mouse) is. @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let [moved, map] = [false, false];
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target !== pane.surface.canvas) return;
    if (!down.size) [moved, map] = [false, onMinimap(pane, event.offsetX, event.offsetY, false)];
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    const from = down.get(event.pointerId);
    if (!from) return event.target === pane.surface.canvas ? hover(pane, event) : pane.player.tip.hide();
    const to = pointIn(box, event);
    if (!moved && Math.hypot(to.x - from.x, to.y - from.y) < CLICK) return;
    moved = true;
    pane.player.tip.hide();
    const before = spread(down);
    down.set(event.pointerId, to);
    const after = spread(down);
    if (map) return onMinimap(pane, to.x, to.y, true);
    pane.pan(after.x - before.x, after.y - before.y);
    if (down.size > 1) pane.zoom(after.wide / before.wide, after.x, after.y);
  });
  const up = (/** @type {PointerEvent} */ event) => {
    const was = down.delete(event.pointerId);
    if (was && !moved && !map && event.type === "pointerup" && !down.size) click(pane, event);
  };
  box.addEventListener("pointerup", up);
  box.addEventListener("pointercancel", up);
  box.addEventListener("pointerleave", () => pane.player.tip.hide());
  box.addEventListener("dblclick", (event) => {
    if (event.target === pane.surface.canvas && !hit(pane, event.offsetX, event.offsetY).item) pane.fit();
  });
  box.addEventListener("wheel", (event) => wheel(pane, event), { passive: false });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target !== box) return;
    event.preventDefault();
    pane.toggleHere();
  });
}

/** @param {HTMLElement} box @param {PointerEvent} event */
function pointIn(box, event) {
  const { left, top } = box.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}

/** The middle of the fingers, and how far they are apart. @param {Map<number, {x: number, y: number}>} down */
function spread(down) {
  const points = [...down.values()];
  const [x, y] = [points.reduce((sum, p) => sum + p.x, 0) / points.length, points.reduce((sum, p) => sum + p.y, 0) / points.length];
  return { x, y, wide: points.length > 1 ? Math.max(8, Math.hypot(points[1].x - points[0].x, points[1].y - points[0].y)) : 1 };
}

/** The wheel zooms with ctrl, or once the graph has the focus; else the page scrolls. Sideways, or with shift, it pans.
 * @param {GraphPane} pane @param {WheelEvent} event */
function wheel(pane, event) {
  if (!event.ctrlKey && document.activeElement !== pane.surface.box) return;
  event.preventDefault();
  const side = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
  if (!event.ctrlKey && Math.abs(side) > (event.shiftKey ? 0 : Math.abs(event.deltaY))) pane.pan(-side, 0);
  else pane.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? PINCH : WHEEL)), event.offsetX, event.offsetY);
}

/** Moves the view when the point lies on the small map. @param {GraphPane} pane @param {number} x @param {number} y
 * @param {boolean} dragged whether the drag began there: then it may lead outside */
function onMinimap(pane, x, y, dragged) {
  const drawing = pane.shown;
  const at = drawing && minimap(pane.surface, drawing.folding, pane.viewOf(drawing));
  if (!drawing || !at) return false;
  const within = (/** @type {number} */ v, /** @type {number} */ lo, /** @type {number} */ size) => Math.min(size, Math.max(0, v - lo));
  if (!dragged && (x < at.x || y < at.y || x > at.x + at.w || y > at.y + at.h)) return false;
  pane.bringIn(drawing, within(x, at.x, at.w) / at.s, within(y, at.y, at.h) / at.s, true);
  pane.player.redraw(pane);
  return true;
}

/** What lies at a point of the pane. @param {GraphPane} pane @param {number} x @param {number} y
 * @returns {{row: number, item: Item | null, wx: number, wy: number}} */
function hit(pane, x, y) {
  const drawing = pane.shown;
  if (!drawing) return { row: -1, item: null, wx: 0, wy: 0 };
  const view = pane.viewOf(drawing);
  const [wx, wy] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
  const { folding } = drawing;
  const item = folding.items.find((i) => wx >= i.x && wx <= i.x + i.w && wy >= i.y && wy <= i.y + i.h) ?? null;
  const { w, h } = folding.graph.nodes;
  const rows = item && !item.card ? folding.rows[item.sections[0]] : [];
  const row = rows.find((r) => Math.abs(folding.x(r) - wx) <= w[r] / 2 && Math.abs(folding.y(r) - wy) <= h[r] / 2) ?? -1;
  return { row, item, wx, wy };
}

/** @param {GraphPane} pane @param {PointerEvent} event */
function click(pane, event) {
  const drawing = pane.shown;
  if (!drawing) return;
  const { row, item, wx, wy } = hit(pane, event.offsetX, event.offsetY);
  if (row >= 0) pane.player.select(drawing.folding.graph.nodes.tensor[row]);
  else if (item?.foldable && (item.card || wy < item.y + HEADER)) toggleItem(pane, drawing, item, wx, event.shiftKey);
  else pane.player.select(-1);
}

/** Opens one block of a card (the one pointed at, all with shift), or folds an open one.
 * @param {GraphPane} pane @param {Drawing} drawing @param {Item} item @param {number} wx @param {boolean} all */
function toggleItem(pane, drawing, item, wx, all) {
  if (!item.card || all || item.sections.length === 1) return pane.setOpen(drawing, item.sections, item.card);
  pane.setOpen(drawing, [item.sections[cellAt(item, wx)]], true);
}

/** @param {GraphPane} pane @param {PointerEvent} event */
function hover(pane, event) {
  const drawing = pane.shown;
  const { tracks, tip } = pane.player;
  const { row, item, wx, wy } = hit(pane, event.offsetX, event.offsetY);
  const head = row < 0 && item && (item.card || wy < item.y + HEADER) ? item : null;
  pane.surface.box.style.cursor = row >= 0 || (head?.foldable ?? false) ? "pointer" : "grab";
  if (!drawing || (row < 0 && !head)) return tip.hide();
  if (row < 0) return head && tip.show(pane.surface.box, event.offsetX, event.offsetY, head.label, aboutItem(pane, drawing, head, wx));
  const t = drawing.folding.graph.nodes.tensor[row];
  const op = tracks.tensorString("desc", t) || tracks.tensorString("op", t);
  tip.show(pane.surface.box, event.offsetX, event.offsetY, visible(tracks.name(t)), [
    ["op", op === "NONE" || op === "" ? "none: a leaf" : op],
    ["type", `${tracks.tensorString("type", t)}  ${formatDims(tracks.ne(t))}`],
    ["size", formatBytes(tracks.nbytes(t))],
    ["status", STATUS[pane.status[t]]],
    ...otherwise(drawing, row, t),
  ]);
}

/** How a node is not what it is in the blocks that its own nearly repeats. @param {Drawing} drawing @param {number} row
 * @param {number} t @returns {[string, string][]} */
function otherwise({ folding }, row, t) {
  const d = folding.graph.sections[folding.sectionOf[row]].differs;
  if (!d) return [];
  const like = folding.graph.sections[folding.indexOf.get(d.like) ?? 0].label;
  if (d.added.includes(t)) return [["added", `${like} has no such node`]];
  return d.changed.filter(([changed]) => changed === t).map(([, text]) => [`≠ ${like}`, visible(text)]);
}

/** What a card, or the head of an open section, tells. @param {GraphPane} pane @param {Drawing} drawing @param {Item} item
 * @param {number} wx @returns {[string, string][]} */
function aboutItem(pane, { folding }, item, wx) {
  const { sections } = folding.graph;
  const { player } = pane;
  const s = item.sections[cellAt(item, wx)];
  /** @type {[string, string][]} */
  const told = [];
  if (item.card && item.sections.length > 1) told.push(["pointed at", `${sections[s].label}, ${sections[s].nodes.length} nodes; a click opens it, with Shift all`]);
  else told.push(["nodes", String(sections[s].nodes.length)]);
  const d = sections[s].differs;
  if (d) {
    const name = (/** @type {number} */ t) => visible(player.tracks.name(t));
    told.push(["unlike", sections[folding.indexOf.get(d.like) ?? 0].label]);
    if (d.added.length) told.push(["added", few(d.added.map(name))]);
    if (d.removed.length) told.push(["not here", few(d.removed.map(name))]);
    if (d.changed.length) told.push(["changed", few(d.changed.map(([t, text]) => `${name(t)}: ${visible(text)}`))]);
  }
  const copies = item.card ? copiesInto(player, folding, item.sections, player.step) : [];
  if (copies.length) told.push(["copies", few(copies)]);
  return told;
}

/** @param {string[]} words */
function few(words) {
  return words.length <= FEW ? words.join("; ") : `${words.slice(0, FEW).join("; ")}; and ${words.length - FEW} more`;
}

/** The block of a card under a point. @param {Item} item @param {number} wx */
function cellAt(item, wx) {
  const k = Math.floor(((wx - item.x - STRIP.left) / (item.w - 2 * STRIP.left)) * item.sections.length);
  return Math.min(item.sections.length - 1, Math.max(0, k));
}
