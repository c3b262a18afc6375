// A block that is cut, or joins its neighbour, moves for a moment when one event is stepped forward. Drawn over the map, so
// that no step waits for it; the next one ends it.

import { el } from "./dom.js";
import { familyOf } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./map_chips.js").LaneView} LaneView */
/** @typedef {{name: string, paint: (c: CanvasRenderingContext2D, t: number) => void}} Move */

const LASTS_MS = 200;
const SEAM = 8;

export class Motion {
  /** @param {Player} player @param {import("./dom.js").Surface} surface */
  constructor(player, surface) {
    this.player = player;
    this.surface = surface;
    this.canvas = el("canvas", "vg-canvas vg-motion", { "aria-hidden": "true" });
    surface.box.append(this.canvas);
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.frame = 0;
    this.step = -1;
  }

  /** The map shows a step: moves what its event moves, if it is the one after the last shown.
   * @param {number} step @param {LaneView[]} views */
  show(step, views) {
    const one = step === this.step + 1;
    this.step = step;
    this.end();
    if (!one || this.still.matches) return;
    for (const view of views) {
      const move = moveAt(this.player, step, view);
      if (move) return this.begin(move);
    }
  }

  /** @param {Move} move */
  begin(move) {
    const { canvas, context: c, surface } = this;
    const { width, height } = surface.canvas;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    canvas.style.width = surface.canvas.style.width;
    canvas.style.height = surface.canvas.style.height;
    canvas.dataset.moving = move.name;
    let begun = -1;
    const paint = (/** @type {number} */ now) => {
      if (begun < 0) begun = now;
      const t = (now - begun) / LASTS_MS;
      if (t >= 1) return this.end();
      this.clear();
      c.setTransform(surface.ratio, 0, 0, surface.ratio, 0, 0);
      move.paint(c, t * (2 - t));
      this.frame = requestAnimationFrame(paint);
    };
    this.frame = requestAnimationFrame(paint);
  }

  clear() {
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  end() {
    if (!this.frame) return;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.clear();
    delete this.canvas.dataset.moving;
  }

  stop() {
    this.end();
  }
}

/** What moves in a chunk at a step. @param {Player} player @param {number} step @param {LaneView} view @returns {Move | null} */
function moveAt(player, step, view) {
  const { tracks, palette } = player;
  const kind = tracks.kindOf(step).name;
  if (tracks.field(step, "allocator") !== view.allocator || tracks.field(step, "chunk") !== view.chunk) return null;
  const at = (/** @type {number} */ offset) => Math.min(Math.max(view.x(offset), view.left), view.right);
  const fill = (/** @type {CanvasRenderingContext2D} */ c, /** @type {string} */ colour, /** @type {number} */ from, /** @type {number} */ to) => {
    c.fillStyle = colour;
    c.fillRect(from, view.top, Math.max(0, to - from), view.bar);
  };
  const offset = tracks.field(step, "offset");
  if (kind === "BlockSplit") {
    const [from, to] = [at(offset - tracks.field(step, "taken")), at(offset)];
    return { name: "split", paint: (c, t) => fill(c, palette.free, from + (to - from) * t, to) };
  }
  if (kind !== "BlockMerged" && kind !== "BlockInserted") return null;
  const freed = kind === "BlockMerged" ? [tracks.field(step, "freed_offset"), tracks.field(step, "freed_size")] : [offset, tracks.field(step, "size")];
  const [from, to] = [at(freed[0]), at(freed[0] + freed[1])];
  const owner = tracks.cause[step] >= 0 ? tracks.tensorOf(tracks.cause[step]) : -1;
  const colour = owner >= 0 ? palette.families[familyOf(tracks.tensorString("op", owner))] : palette.edge;
  const seams = kind === "BlockMerged" ? [from, to].filter((x) => x > at(offset) && x < view.right) : [];
  return {
    name: kind === "BlockMerged" ? "merge" : "free",
    paint: (c, t) => {
      c.globalAlpha = 1 - t;
      fill(c, colour, from, to);
      c.globalAlpha = 1;
      for (const x of seams) fill(c, palette.page, x - (SEAM / 2) * (1 - t), x + (SEAM / 2) * (1 - t));
    },
  };
}
