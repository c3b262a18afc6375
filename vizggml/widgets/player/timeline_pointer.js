// The pointer over the memory timeline: drag to zoom, click to select, hover to be told, ctrl and the wheel to zoom.

import { CLICK } from "./brush.js";
import { lifeOf } from "./map.js";
import { formatBytes, visible } from "./sentence.js";
import { BOTTOM } from "./timeline.js";
import { spanOf } from "./timeline_rows.js";
import { scaled, whole } from "./timeline_zoom.js";

/** @typedef {import("./timeline.js").TimelinePane} Pane */

const NEAR = 3;

/** @param {Pane} pane */
export function listenPointer(pane) {
  const { box } = pane.surface;
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !pane.plan) return;
    if (event.offsetY > pane.surface.height - BOTTOM) return pane.goTo(Math.floor(pane.inverse(event.offsetX, 0).p));
    pane.brush = { x: event.offsetX, y: event.offsetY, toX: event.offsetX, toY: event.offsetY };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (!pane.brush) return hover(pane, event);
    Object.assign(pane.brush, { toX: event.offsetX, toY: event.offsetY });
    pane.player.redraw(pane);
  });
  box.addEventListener("pointerup", () => endBrush(pane));
  box.addEventListener("pointercancel", () => {
    pane.brush = null;
    pane.resized();
  });
  box.addEventListener("pointerleave", () => pane.player.tip.hide());
  box.addEventListener("dblclick", () => pane.zoomOut());
  box.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const { p, up } = pane.inverse(event.offsetX, event.offsetY);
      pane.zoomTo(scaled(pane.window, Math.exp(event.deltaY * 0.01), p, up));
    },
    { passive: false },
  );
}

/** @param {Pane} pane */
function endBrush(pane) {
  const { brush, plan } = pane;
  pane.brush = null;
  if (!brush || !plan) return;
  const { x, y, toX, toY } = brush;
  if (Math.hypot(toX - x, toY - y) < CLICK) {
    const row = hit(pane, x, y);
    pane.player.select(row < 0 ? -1 : pane.player.tracks.track("life").col("tensor")[row]);
    return pane.player.redraw(pane);
  }
  const p = pane.inverse(Math.min(x, toX), Math.max(y, toY));
  const q = pane.inverse(Math.max(x, toX), Math.min(y, toY));
  const full = whole(plan, pane.stack.top);
  const wide = Math.abs(toX - x) > CLICK * 2;
  const high = Math.abs(toY - y) > CLICK * 4;
  pane.zoomTo({
    x0: wide ? Math.max(0, Math.floor(p.p)) : pane.window.x0,
    x1: wide ? Math.min(full.x1, Math.max(Math.ceil(q.p), Math.floor(p.p) + 2)) : pane.window.x1,
    y0: high ? p.up : pane.window.y0,
    y1: high ? q.up : pane.window.y1,
  });
}

/** @param {Pane} pane @param {number} x @param {number} y @returns {number} a life row or -1: that under the pointer, else a thin
 * one beside it */
function hit(pane, x, y) {
  const { plan, player } = pane;
  if (!plan) return -1;
  const { p } = pane.inverse(x, y);
  const life = player.tracks.track("life");
  const [first, last] = ["first", "last"].map((n) => life.col(n));
  let near = -1;
  let least = NEAR;
  for (const row of plan.rows) {
    if (first[row] > p || last[row] + 1 < p) continue;
    const [from, to] = spanOf(player, plan, pane.stack, row);
    const [top, bottom] = [pane.y(to), pane.y(from)];
    const away = y < top ? top - y : y > bottom ? y - bottom : 0;
    if (away < least) [near, least] = [row, away];
  }
  return near;
}

/** @param {Pane} pane @param {PointerEvent} event */
function hover(pane, event) {
  const row = hit(pane, event.offsetX, event.offsetY);
  if (row < 0) return pane.player.tip.hide();
  const { tracks, tip, step } = pane.player;
  const life = tracks.track("life");
  const t = life.col("tensor")[row];
  const mark = pane.marks.get(t);
  tip.show(pane.surface.box, event.offsetX, event.offsetY, visible(tracks.name(t)), [
    .../** @type {[string, string][]} */ (mark ? [["compared", mark]] : []),
    ["offset", String(life.col("offset")[row])],
    ["size", formatBytes(life.col("size")[row])],
    ...lifeOf(pane.player, t, step),
  ]);
}
