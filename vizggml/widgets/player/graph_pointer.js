// Pointer and wheel over the graph: pan, zoom, choose, open and fold, the card beside the pointer.

import { HEADER } from "./folding.js";
import { STRIP, minimap } from "./graph_marks.js";
import { formatBytes, formatDims, visible } from "./sentence.js";
import { STATUS } from "./theme.js";

/** @typedef {import("./graph.js").GraphPane} GraphPane */
/** @typedef {import("./graph.js").Drawing} Drawing */
/** @typedef {import("./folding.js").Item} Item */

const CLICK = 4;
const PINCH = 0.01;
const WHEEL = 0.0015;

/** @param {GraphPane} pane */
export function listenGraph(pane) {
  const { box } = pane.surface;
  /** @type {{x: number, y: number, moved: boolean, map: boolean} | null} */
  let drag = null;
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { x: event.offsetX, y: event.offsetY, moved: false, map: onMinimap(pane, event.offsetX, event.offsetY) };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (!drag) return hover(pane, event);
    const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < CLICK) return;
    if (drag.map) onMinimap(pane, event.offsetX, event.offsetY);
    else pane.pan(dx, dy);
    drag = { ...drag, x: event.offsetX, y: event.offsetY, moved: true };
  });
  box.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved && !drag.map) click(pane, event);
    drag = null;
  });
  box.addEventListener("pointercancel", () => (drag = null));
  box.addEventListener("pointerleave", () => pane.player.tip.hide());
  box.addEventListener("dblclick", (event) => {
    if (!hit(pane, event.offsetX, event.offsetY).item) pane.fit();
  });
  box.addEventListener("wheel", (event) => wheel(pane, event), { passive: false });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target !== box) return;
    event.preventDefault();
    pane.toggleHere();
  });
}

/** The wheel zooms with ctrl, or once the graph has the focus; else the page scrolls. @param {GraphPane} pane @param {WheelEvent} event */
function wheel(pane, event) {
  if (!event.ctrlKey && document.activeElement !== pane.surface.box) return;
  event.preventDefault();
  pane.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? PINCH : WHEEL)), event.offsetX, event.offsetY);
}

/** Moves the view when the point lies on the small map. @param {GraphPane} pane @param {number} x @param {number} y */
function onMinimap(pane, x, y) {
  const drawing = pane.shown;
  const at = drawing && minimap(pane.surface, drawing.folding, pane.viewOf(drawing));
  if (!drawing || !at || x < at.x || y < at.y || x > at.x + at.w || y > at.y + at.h) return false;
  pane.bringIn(drawing, (x - at.x) / at.s, (y - at.y) / at.s, true);
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
  const k = Math.floor(((wx - item.x - STRIP.left) / (item.w - 2 * STRIP.left)) * item.sections.length);
  pane.setOpen(drawing, [item.sections[Math.min(item.sections.length - 1, Math.max(0, k))]], true);
}

/** @param {GraphPane} pane @param {PointerEvent} event */
function hover(pane, event) {
  const drawing = pane.shown;
  const { tracks, tip } = pane.player;
  const { row, item } = hit(pane, event.offsetX, event.offsetY);
  pane.surface.box.style.cursor = row >= 0 || item?.card ? "pointer" : "grab";
  if (!drawing || row < 0) return tip.hide();
  const t = drawing.folding.graph.nodes.tensor[row];
  const op = tracks.tensorString("desc", t) || tracks.tensorString("op", t);
  tip.show(pane.surface.box, event.offsetX, event.offsetY, visible(tracks.name(t)), [
    ["op", op === "NONE" || op === "" ? "none: a leaf" : op],
    ["type", `${tracks.tensorString("type", t)}  ${formatDims(tracks.ne(t))}`],
    ["size", formatBytes(tracks.nbytes(t))],
    ["status", STATUS[pane.status[t]]],
  ]);
}
