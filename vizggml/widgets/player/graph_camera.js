// From where the graph is seen: fit, zoom, pan; what stays in its place when blocks open and fold.

import { Surface } from "./dom.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./folding.js").Folding} Folding */
/** @typedef {import("./graph_paint.js").GraphPainter} GraphPainter */
/** @typedef {import("./graph_paint.js").View} View */
/**
 * @typedef {{folding: Folding, painter: GraphPainter, view: View | null, bitmap: HTMLCanvasElement | null, drawn: View | null,
 *   key: string, before: Map<number, View>, byHand: boolean}} Drawing `drawn` is the view that the bitmap shows, `key` what else it
 *   shows; `before` the view that a block was opened in; `byHand` whether a person chose how near it is
 */

const [SMALLEST, LARGEST] = [0.02, 4];
const COMFORT = 1.15;
const LEGIBLE = 0.85;
/** Under this scale no box can say anything, and under the other hardly any does. */
const [MUTE, POOR] = [0.36, 0.6];
const PAN = 80;

export class GraphCamera {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.surface = new Surface("The computation graph, coloured by status at this step", () => this.resized());
  }

  /** @returns {Drawing | null} */
  get shown() {
    return null;
  }

  resized() {}

  /** Asks for a frame of this pane. */
  redraw() {
    this.player.redraw(/** @type {any} */ (this));
  }

  aspect() {
    return this.surface.height > 0 ? this.surface.width / this.surface.height : 1.5;
  }

  /** @param {Drawing} drawing @returns {View} */
  viewOf(drawing) {
    if (drawing.view) return drawing.view;
    const { width, height } = this.surface;
    const { folding } = drawing;
    const scale = Math.min(COMFORT, width / folding.width, height / folding.height);
    const x = (width - folding.width * scale) / 2;
    const y = Math.max(0, (height - folding.height * scale) / 2);
    return (drawing.view = { scale, x, y });
  }

  fit() {
    const drawing = this.shown;
    if (!drawing) return;
    drawing.view = null;
    drawing.byHand = true;
    this.redraw();
  }

  /** @param {number} factor @param {number} [x] @param {number} [y] the point that stays */
  zoom(factor, x = this.surface.width / 2, y = this.surface.height / 2) {
    const drawing = this.shown;
    if (!drawing) return;
    const view = this.viewOf(drawing);
    const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor));
    const f = scale / view.scale;
    drawing.view = { scale, x: x - (x - view.x) * f, y: y - (y - view.y) * f };
    drawing.byHand = true;
    this.redraw();
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const drawing = this.shown;
    if (!drawing) return;
    const view = this.viewOf(drawing);
    drawing.view = { scale: view.scale, x: view.x + dx, y: view.y + dy };
    this.redraw();
  }

  /** @param {string} arrow the key of an arrow */
  panBy(arrow) {
    const side = arrow === "ArrowLeft" ? 1 : arrow === "ArrowRight" ? -1 : 0;
    this.pan(side * PAN, side ? 0 : arrow === "ArrowUp" ? PAN : -PAN);
  }

  /** Brings a point of the world into sight, moving no more than needed. @param {Drawing} drawing
   * @param {number} x @param {number} y @param {boolean} centre */
  bringIn(drawing, x, y, centre) {
    const view = this.viewOf(drawing);
    const [sx, sy] = [x * view.scale + view.x, y * view.scale + view.y];
    const { width, height } = this.surface;
    const edge = Math.min(60, width / 6, height / 6);
    if (!centre && sx >= edge && sx <= width - edge && sy >= edge && sy <= height - edge) return;
    drawing.view = { scale: view.scale, x: view.x + width / 2 - sx, y: view.y + height / 2 - sy };
  }

  /** A node that is followed can be read, unless somebody went away from it. @param {Drawing} drawing @param {number} x
   * @param {number} y */
  followIn(drawing, x, y) {
    if (drawing.byHand || this.viewOf(drawing).scale >= POOR) return this.bringIn(drawing, x, y, false);
    drawing.view = { scale: LEGIBLE, x: 0, y: 0 };
    this.bringIn(drawing, x, y, true);
  }

  /** Nearer, if the words in boxes cannot be read. @param {Drawing} drawing */
  comeNear(drawing) {
    const { scale } = this.viewOf(drawing);
    if (scale < LEGIBLE) this.zoom(LEGIBLE / scale);
  }

  /** Opens or folds `sections` so that the first of them stays where it is on the screen; folding one again gives back the
   * view that it was opened in. @param {Drawing} drawing @param {number[]} sections @param {boolean} open */
  keepInPlace(drawing, sections, open) {
    const { folding, before } = drawing;
    const [s] = sections;
    const view = this.viewOf(drawing);
    const from = folding.items[folding.itemOf[s]];
    const at = { x: (from.x + from.w / 2) * view.scale + view.x, y: from.y * view.scale + view.y };
    const kept = sections.length === 1 ? before.get(s) : undefined;
    folding.set(sections, open, this.aspect());
    if (open) before.set(s, view);
    before.forEach((_, other) => {
      if (other !== s || !open) before.delete(other);
    });
    if (!open && kept) {
      drawing.view = kept;
      return;
    }
    const to = folding.items[folding.itemOf[s]];
    const { width, height } = this.surface;
    const scale = view.scale < MUTE && open ? LEGIBLE : view.scale;
    const x = between(at.x, 40, width - 40);
    const y = between(at.y, 12, Math.max(12, height * 0.6));
    const middle = to.w * scale < width ? between(x, (to.w * scale) / 2 + 8, width - (to.w * scale) / 2 - 8) : (to.w * scale) / 2 + 8;
    drawing.view = { scale, x: middle - (to.x + to.w / 2) * scale, y: y - to.y * scale };
    const row = folding.rowOf.get(this.player.relations.tensorAt(this.player.step)) ?? -1;
    if (open && row >= 0 && folding.sectionOf[row] === s) this.bringIn(drawing, folding.x(row), folding.y(row), false);
  }
}

/** @param {number} v @param {number} lo @param {number} hi */
function between(v, lo, hi) {
  return Math.min(Math.max(hi, lo), Math.max(lo, v));
}
