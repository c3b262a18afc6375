// The bars of buffers that stand for long: weights, caches. Painted once for as long as what lies in them stays.

import { el } from "./dom.js";
import { paintName } from "./map_blocks.js";

/** @typedef {import("./map.js").MapPane} MapPane */
/** @typedef {import("./map.js").Block} Block */
/** @typedef {import("./map_lanes.js").Lane} Lane */
/** @typedef {{key: string, bitmap: HTMLCanvasElement, blocks: Block[], of: Map<number, Block>}} Kept */

export class BufferBars {
  /** @param {MapPane} pane @param {number} left where bars begin, and as much is left free at their right @param {number} high */
  constructor(pane, left, high) {
    this.pane = pane;
    this.left = left;
    this.high = high;
    /** By buffer. @type {Map<number, Kept>} */
    this.kept = new Map();
  }

  /** Paints a buffer's bar with the tensors chosen and current marked. @param {CanvasRenderingContext2D} c @param {number} step
   * @param {Lane} lane @param {number} top @returns {Block[]} */
  paint(c, step, lane, top) {
    const { player, surface } = this.pane;
    const { palette, selected, tracks } = player;
    const wide = surface.width - 2 * this.left;
    const key = [tracks.track("place").epoch(step), top, surface.width, surface.ratio, palette.page].join(" ");
    let kept = this.kept.get(lane.id);
    if (kept?.key !== key) this.kept.set(lane.id, (kept = this.make(key, step, lane, top, wide)));
    c.drawImage(kept.bitmap, this.left, top, wide, this.high);
    for (const owner of new Set([player.relations.tensorAt(step), selected])) {
      const block = kept.of.get(owner);
      if (!block) continue;
      c.fillStyle = owner === selected ? palette.ink : palette.accent;
      c.fillRect(block.x - 1, top - 2, Math.max(3, block.w), this.high + 4);
      paintName(player, c, block, palette.page);
    }
    return kept.blocks;
  }

  /** @param {string} key @param {number} step @param {Lane} lane @param {number} top @param {number} wide @returns {Kept} */
  make(key, step, lane, top, wide) {
    const { player, surface } = this.pane;
    const { palette, tracks } = player;
    const track = tracks.track("place");
    const [buffer, offset, size, tensor] = ["buffer", "offset", "size", "tensor"].map((n) => track.col(n));
    const bitmap = el("canvas");
    bitmap.width = Math.max(1, Math.round(wide * surface.ratio));
    bitmap.height = Math.max(1, Math.round(this.high * surface.ratio));
    const c = /** @type {CanvasRenderingContext2D} */ (bitmap.getContext("2d", { alpha: false }));
    c.scale(surface.ratio, surface.ratio);
    c.fillStyle = palette.panel;
    c.fillRect(0, 0, wide, this.high);
    /** @type {Block[]} */
    const blocks = [];
    track.each(step, (row) => {
      if (buffer[row] !== lane.id) return;
      const x = (offset[row] / lane.extent) * wide;
      const w = Math.max(0.5, (size[row] / lane.extent) * wide);
      c.fillStyle = palette.families[blocks.length % 2 ? 5 : 6];
      c.fillRect(x, 0, w, this.high);
      paintName(player, c, { x, w, y: 0, h: this.high, owner: tensor[row], size: size[row] }, palette.onFamily);
      blocks.push({ x: this.left + x, w, y: top, h: this.high, owner: tensor[row], offset: offset[row], size: size[row], endless: false, allocator: -1, chunk: -1 });
    });
    return { key, bitmap, blocks, of: new Map(blocks.map((block) => [block.owner, block])) };
  }
}
