// The strides as a walk through memory: at which byte each element lies, and how far a step along each dimension jumps.

import { Surface } from "./dom.js";
import { formatBytes } from "./sentence.js";
import { walkOf } from "./tensor_facts.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {import("./tensor_facts.js").Shape} Shape */
/** @typedef {{x: number, y: number, w: number, h: number, at: number[], byte: number}} Cell `at` counts blocks in dimension 0 */

const [COLUMNS, ROWS, SLABS] = [4, 4, 2];
const [CELL, GAP, TOP, LEFT] = [22, 18, 32, 12];
const [BAR, BAR_ROW] = [14, 31];
const BARS_TOP = TOP + ROWS * CELL + 26;
const STEPS = 5;
/** The width of a letter of the bytes. */
const LETTER = 10.5 * 0.602;
export const WALK_HEIGHT = BARS_TOP + 4 * BAR_ROW;

export class StrideWalk {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.player = player;
    /** @type {Shape | null} */
    this.shape = null;
    /** @type {Cell[]} */
    this.cells = [];
    this.drawn = "";
    this.surface = new Surface("Strides", () => {
      this.drawn = "";
      player.redraw(pane);
    });
    this.element = this.surface.box;
    this.element.classList.add("vg-plot");
    this.element.style.height = `${WALK_HEIGHT}px`;
    for (const name of /** @type {const} */ (["pointermove", "pointerdown"])) this.element.addEventListener(name, (event) => this.point(event));
    this.element.addEventListener("pointerleave", () => player.tip.hide());
  }

  invalidate() {
    this.drawn = "";
  }

  /** @param {Shape} shape */
  draw(shape) {
    const { surface, player } = this;
    const key = JSON.stringify(shape);
    if (key === this.drawn || surface.width < 10) return;
    this.drawn = key;
    this.shape = shape;
    this.cells = placeCells(shape, surface.width);
    surface.canvas.setAttribute("aria-label", describe(shape));
    const c = surface.begin();
    c.fillStyle = player.palette.page;
    c.fillRect(0, 0, surface.width, surface.height);
    paintCells(player, c, shape, this.cells);
    paintJumps(player, c, shape, surface.width);
  }

  /** @param {PointerEvent} event */
  point(event) {
    const { player, shape } = this;
    const cell = this.cells.find((k) => event.offsetX >= k.x && event.offsetX < k.x + k.w && event.offsetY >= k.y && event.offsetY < k.y + k.h);
    if (!cell || !shape) return player.tip.hide();
    const head = shape.blck > 1 ? `block ${cell.at[0]} of row [${cell.at.slice(1, 3).join(", ")}]` : `element [${cell.at.slice(0, 3).join(", ")}]`;
    const sum = cell.at.map((i, d) => (i ? `${i} x ${shape.nb[d]}` : "")).filter(Boolean).join(" + ");
    /** @type {[string, string][]} */
    const pairs = [["at byte", sum ? `${sum} = ${cell.byte}` : "0"]];
    if (shape.blck > 1) pairs.push(["elements", `${cell.at[0] * shape.blck} to ${(cell.at[0] + 1) * shape.blck - 1}, ${shape.size} bytes`]);
    player.tip.show(this.element, event.offsetX, event.offsetY, head, pairs);
  }

  stop() {
    this.surface.stop();
  }
}

/** The dimensions that go down and that give the second matrix: the first two with more than one step. @param {Shape} shape */
function dimensionsShown({ ne }) {
  const more = [1, 2, 3].filter((d) => ne[d] > 1);
  return { down: more[0] ?? 1, slab: more[1] ?? 2 };
}

/** @param {Shape} shape @param {number} width @returns {Cell[]} */
function placeCells(shape, width) {
  const { ne, nb, blck } = shape;
  const { down, slab } = dimensionsShown(shape);
  const across = Math.min(COLUMNS, Math.ceil(ne[0] / blck));
  const slabs = Math.min(SLABS, ne[slab]);
  const w = Math.min(64, Math.floor((width - 2 * LEFT - (SLABS - 1) * GAP) / (SLABS * COLUMNS)));
  const cells = [];
  for (let s = 0; s < slabs; s++) {
    for (let j = 0; j < Math.min(ROWS, ne[down]); j++) {
      for (let i = 0; i < across; i++) {
        const at = [i, 0, 0, 0];
        at[down] = j;
        if (slabs > 1) at[slab] = s;
        const byte = at.reduce((sum, k, d) => sum + k * nb[d], 0);
        cells.push({ x: LEFT + s * (COLUMNS * w + GAP) + i * w, y: TOP + j * CELL, w, h: CELL, at, byte });
      }
    }
  }
  return cells;
}

/** Elements with their bytes, and the way from each to the next in memory.
 * @param {Player} player @param {CanvasRenderingContext2D} c @param {Shape} shape @param {Cell[]} cells */
function paintCells({ palette, fonts }, c, shape, cells) {
  const { down, slab } = dimensionsShown(shape);
  const order = [...cells].sort((p, q) => p.byte - q.byte);
  c.textBaseline = "middle";
  c.textAlign = "left";
  c.font = `10.5px ${fonts.ui}`;
  c.fillStyle = palette.soft;
  const what = shape.blck > 1 ? `blocks of ${shape.blck}` : "elements";
  const slabs = cells.some((cell) => cell.at[slab] > 0);
  c.fillText(`the byte where each of the first ${what} begins`, LEFT, 8);
  c.fillText(`i0 to the right, i${down} down${slabs ? `, i${slab} beside` : ""}`, LEFT, 23);
  order.forEach((cell, k) => {
    const { x, y, w, h } = cell;
    c.globalAlpha = 0.12 + 0.5 * (k / Math.max(1, order.length - 1));
    c.fillStyle = palette.source;
    c.fillRect(x, y, w - 1, h - 1);
    c.globalAlpha = 1;
  });
  paintWay(palette, c, order);
  c.textAlign = "center";
  c.font = `10.5px ${fonts.mono}`;
  c.fillStyle = palette.ink;
  for (const cell of cells) {
    const text = byteLabel(cell.byte, cell.w);
    c.fillText(text, cell.x + cell.w / 2 - 0.5, cell.y + cell.h / 2);
  }
  c.textAlign = "left";
}

/** @param {number} byte @param {number} room */
function byteLabel(byte, room) {
  const text = String(byte);
  return text.length * LETTER < room - 3 ? text : formatBytes(byte).replace(/(\.\d)?\d* (.)iB/, "$1$2").replace(" B", "");
}

/** A line through the elements in memory order, along the edge of the cells, so that the numbers stay clear.
 * @param {import("./theme.js").Palette} palette @param {CanvasRenderingContext2D} c @param {Cell[]} order */
function paintWay(palette, c, order) {
  const down = order.length > 1 && order[1].y > order[0].y;
  const x = (/** @type {Cell} */ k) => (down ? k.x + 6.5 : k.x + k.w / 2 - 0.5);
  const y = (/** @type {Cell} */ k) => (down ? k.y + k.h / 2 : k.y + k.h - 4);
  c.strokeStyle = palette.accent;
  c.fillStyle = palette.accent;
  c.lineWidth = 1;
  /** @type {[Path2D, Path2D][]} lines and heads, of short ways and of long ones */
  const ways = [0, 1].map(() => [new Path2D(), new Path2D()]);
  order.slice(1).forEach((to, k) => {
    const from = order[k];
    const [dx, dy] = [x(to) - x(from), y(to) - y(from)];
    const length = Math.hypot(dx, dy) || 1;
    const near = Math.abs(dy) < 1 && dx > 0 && dx < to.w + 1;
    const [line, head] = ways[near || (Math.abs(dx) < 1 && Math.abs(dy) < CELL + 1) ? 0 : 1];
    const [ux, uy] = [dx / length, dy / length];
    const [ex, ey] = [x(to) - 3 * ux, y(to) - 3 * uy];
    line.moveTo(x(from) + 3 * ux, y(from) + 3 * uy);
    line.lineTo(ex, ey);
    head.moveTo(ex + 3 * ux, ey + 3 * uy);
    head.lineTo(ex - 2.5 * uy - 2 * ux, ey + 2.5 * ux - 2 * uy);
    head.lineTo(ex + 2.5 * uy - 2 * ux, ey - 2.5 * ux - 2 * uy);
  });
  ways.forEach(([line, head], k) => {
    c.globalAlpha = k ? 0.3 : 0.9;
    c.stroke(line);
    c.fill(head);
  });
  c.globalAlpha = 1;
}

/** A bar for each dimension, the smallest stride first: boxes one stride wide, filled as far as the step's content reaches.
 * @param {Player} player @param {CanvasRenderingContext2D} c @param {Shape} shape @param {number} width */
function paintJumps({ palette, fonts }, c, shape, width) {
  const jumps = walkOf(shape);
  c.textBaseline = "middle";
  c.font = `10.5px ${fonts.ui}`;
  c.fillStyle = palette.soft;
  if (!jumps.length) return c.fillText("one element: nothing to walk", LEFT, BARS_TOP + 8);
  jumps.forEach((jump, k) => {
    const top = BARS_TOP + k * BAR_ROW;
    const shown = Math.min(STEPS, jump.n);
    const box = Math.min(64, (width - 2 * LEFT - 24) / STEPS);
    const gap = jump.nb - jump.inner;
    const unit = jump.dim === 0 && shape.blck > 1 ? `${jump.n} blocks` : `${jump.n} steps`;
    c.fillStyle = palette.ink;
    c.font = `600 10.5px ${fonts.ui}`;
    const name = `nb[${jump.dim}] = ${jump.nb}`;
    c.fillText(name, LEFT, top);
    const after = LEFT + c.measureText(name).width + 6;
    c.font = `10.5px ${fonts.ui}`;
    c.fillStyle = palette.soft;
    c.fillText(`${unit} of ${formatBytes(jump.nb)}${gap > 0 ? `, ${formatBytes(gap)} of each skipped` : gap < 0 ? ", overlapping" : ""}`, after, top);
    for (let s = 0; s < shown; s++) {
      const x = LEFT + s * box;
      c.fillStyle = palette.free;
      c.fillRect(x, top + 8, box - 1, BAR);
      c.fillStyle = palette.source;
      c.globalAlpha = 0.45;
      c.fillRect(x, top + 8, Math.max(1.5, (box - 1) * Math.min(1, jump.inner / jump.nb)), BAR);
      c.globalAlpha = 1;
      c.fillStyle = palette.ink;
      c.fillText(`i${jump.dim} = ${s}`, x + 3, top + 8 + BAR / 2 + 0.5);
    }
    c.fillStyle = palette.soft;
    if (jump.n > shown) c.fillText("...", LEFT + shown * box + 4, top + 8 + BAR / 2);
  });
}

/** The drawing in words. @param {Shape} shape */
function describe(shape) {
  const jumps = walkOf(shape).map((jump) => `dimension ${jump.dim} in ${jump.n} steps of ${jump.nb} bytes`);
  return jumps.length ? `Memory walks ${jumps.join(", then ")}` : "One element";
}
