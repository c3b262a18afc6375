// A block of a chunk's bar: a tensor with its name, a free piece, or what was there before the recording.

import { cutEnd } from "./dom.js";
import { formatBytes, visible } from "./sentence.js";
import { familyOf } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {{x: number, w: number, y: number, h: number, owner: number, offset: number, size: number, endless: boolean,
 *   allocator: number, chunk: number}} Block `owner` is a tensor, -1 where it is free, UNKNOWN where the trace does not tell whose it is */

export const UNKNOWN = -2;
export const UNKNOWN_WORDS = "held from before the recording";

/** @param {Player} player @param {CanvasRenderingContext2D} c @param {Block} block */
export function paintFree(player, c, { x, w, y, h }) {
  const { palette } = player;
  c.fillStyle = palette.free;
  c.fillRect(x, y, w, h);
  c.strokeStyle = palette.edge;
  c.lineWidth = 1;
  c.setLineDash([2, 3]);
  if (w > 3) c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  c.setLineDash([]);
  if (w < 34) return;
  c.fillStyle = palette.faint;
  c.font = `11px ${player.fonts.ui}`;
  c.textBaseline = "middle";
  c.fillText("free", x + 6, y + h / 2);
}

/** @param {Player} player @param {CanvasRenderingContext2D} c @param {Block} block */
export function paintOwned(player, c, { x, w, y, h, owner, size }) {
  const { palette, tracks, selected, relations } = player;
  c.fillStyle = palette.families[familyOf(tracks.tensorString("op", owner))];
  c.fillRect(x, y, Math.max(1, w - 1), h);
  if (selected >= 0 && relations.root(selected) === owner) {
    c.strokeStyle = palette.ink;
    c.lineWidth = 2;
    c.strokeRect(x + 1, y + 1, Math.max(1, w - 3), h - 2);
  }
  paintName(player, c, { x, w, y, h, owner, size }, palette.onFamily);
}

/** The name of a block's tensor, and its size below where the block is high enough for both.
 * @param {Player} player @param {CanvasRenderingContext2D} c @param {Pick<Block, "x" | "w" | "y" | "h" | "owner" | "size">} block @param {string} ink */
export function paintName({ tracks, fonts }, c, { x, w, y, h, owner, size }, ink) {
  const room = Math.floor((w - 10) / 6.4);
  const name = cutEnd(visible(tracks.name(owner)), room);
  if (!name) return;
  const bytes = formatBytes(size);
  c.fillStyle = ink;
  c.textBaseline = "middle";
  c.font = `10.5px ${fonts.mono}`;
  const two = h >= 34 && bytes.length <= room;
  c.fillText(name, x + 6, y + h / 2 - (two ? 7 : 0));
  c.font = `10.5px ${fonts.ui}`;
  if (two) c.fillText(bytes, x + 6, y + h / 2 + 8);
}

/** Taken by tensors of which this recording does not tell. @param {Player} player @param {CanvasRenderingContext2D} c @param {Block} block */
export function paintUnknown(player, c, { x, w, y, h, size }) {
  const { palette, fonts } = player;
  c.fillStyle = palette.edge;
  c.fillRect(x, y, Math.max(1, w - 1), h);
  c.fillStyle = palette.ink;
  c.textBaseline = "middle";
  c.font = `10.5px ${fonts.ui}`;
  const room = Math.floor((w - 10) / 6);
  const two = h >= 34;
  c.fillText(cutEnd(two ? UNKNOWN_WORDS : `${UNKNOWN_WORDS}, ${formatBytes(size)}`, room), x + 6, y + h / 2 - (two ? 7 : 0));
  if (two && formatBytes(size).length <= room) c.fillText(formatBytes(size), x + 6, y + h / 2 + 8);
}
