// A drag across a drawing that chooses what is shown of it; a double click shows all again.

/** A drag that is shorter is a click. */
export const CLICK = 4;

/** @typedef {{from: number, to: number}} Drag from where to where, in pixels across */
/** @template {Drag} D @typedef {{surface: import("./dom.js").Surface, brush: D | null, player: import("./player.js").Player,
 *   pane: import("./player.js").Pane, zoomTo: (all: null) => void, zoomBy: (drag: D) => void}} Brushed */

/** `begin` gives the drag that begins with an event, null for none.
 * @template {Drag} D @param {Brushed<D>} view @param {(event: PointerEvent) => D | null} begin */
export function listenBrush(view, begin) {
  const { box } = view.surface;
  box.addEventListener("pointerdown", (event) => {
    const drag = event.button ? null : begin(event);
    if (!drag) return;
    box.setPointerCapture(event.pointerId);
    view.brush = drag;
  });
  box.addEventListener("pointermove", (event) => {
    if (!view.brush) return;
    view.brush.to = event.offsetX;
    view.player.redraw(view.pane);
  });
  box.addEventListener("pointerup", () => {
    const { brush } = view;
    view.brush = null;
    if (brush && Math.abs(brush.to - brush.from) >= CLICK) view.zoomBy(brush);
  });
  box.addEventListener("dblclick", () => view.zoomTo(null));
}
