// How well a chunk's memory is used: what lives, what is free and in how many pieces, what padding and the plan waste.

import { el, setText } from "./dom.js";
import { liveSet } from "./live.js";
import { formatBytes } from "./sentence.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./plans.js").Plan} Plan */
/** @typedef {{held: number, free: number, pieces: number, largest: number, padding: number, size: number}} Usage bytes, but for
 *   `pieces`: how many free blocks there are */

/** The chunks of some allocators at a step, as far as they have grown. @param {Player} player @param {number} step
 * @param {Set<number>} allocators @returns {Usage} */
export function usageAt({ tracks }, step, allocators) {
  const sizes = new Map();
  const chunk = tracks.track("chunk");
  const key = (/** @type {any} */ track, /** @type {number} */ r) => track.col("allocator")[r] * 16 + track.col("chunk")[r];
  chunk.each(step, (r) => {
    if (allocators.has(chunk.col("allocator")[r])) sizes.set(key(chunk, r), chunk.col("size")[r]);
  });
  const usage = { held: 0, free: 0, pieces: 0, largest: 0, padding: 0, size: 0 };
  for (const size of sizes.values()) usage.size += size;
  const block = tracks.track("block");
  const [offset, size, owner] = ["offset", "size", "owner"].map((n) => block.col(n));
  /** @type {Map<number, {offset: number, size: number}[]>} */
  const told = new Map([...sizes.keys()].map((k) => [k, []]));
  block.each(step, (r) => {
    if (!allocators.has(block.col("allocator")[r])) return;
    told.get(key(block, r))?.push({ offset: offset[r], size: size[r] });
    if (owner[r] >= 0) {
      usage.held += size[r];
      usage.padding += Math.max(0, size[r] - tracks.nbytes(owner[r]));
      return;
    }
    const end = sizes.get(key(block, r)) ?? 0;
    const there = Math.min(size[r] < 0 ? end : offset[r] + size[r], end) - offset[r];
    if (there <= 0) return;
    usage.free += there;
    usage.pieces++;
    usage.largest = Math.max(usage.largest, there);
  });
  for (const [k, blocks] of told) for (const [from, to] of unknownParts(blocks, sizes.get(k))) usage.held += to - from;
  return usage;
}

/** The parts of a chunk that no block of the trace tells of: tensors from before the recording hold them.
 * @param {{offset: number, size: number}[]} blocks a size below 0 has no end @param {number} size of the chunk so far
 * @returns {[number, number][]} from and to */
export function unknownParts(blocks, size) {
  /** @type {[number, number][]} */
  const parts = [];
  let end = 0;
  for (const block of [...blocks].sort((p, q) => p.offset - q.offset)) {
    if (block.offset > end && end < size) parts.push([end, Math.min(block.offset, size)]);
    end = block.size < 0 ? Infinity : Math.max(end, block.offset + block.size);
  }
  if (blocks.length && end < size) parts.push([end, size]);
  return parts;
}

/** The bytes of a plan's chunks that hold a tensor at any time while it stands. @param {Player} player @param {Plan} plan */
export function everUsed({ tracks, relations }, plan) {
  return relations.keep(`used ${plan.plan}`, () => {
    const block = tracks.track("block");
    const [allocator, chunk, offset, size, owner] = ["allocator", "chunk", "offset", "size", "owner"].map((n) => block.col(n));
    /** @type {Map<number, [number, number][]>} */
    const held = new Map();
    for (let r = upperBound(block.a, plan.begin - 1); r < block.length && block.a[r] < plan.end; r++) {
      if (owner[r] < 0 || !plan.allocators.includes(allocator[r])) continue;
      const key = allocator[r] * 16 + chunk[r];
      const list = held.get(key);
      if (list) list.push([offset[r], offset[r] + size[r]]);
      else held.set(key, [[offset[r], offset[r] + size[r]]]);
    }
    return [...held.values()].reduce((sum, list) => sum + covered(list), 0);
  });
}

/** How much some intervals cover together. @param {[number, number][]} list */
function covered(list) {
  let [sum, end] = [0, 0];
  for (const [from, to] of list.sort((p, q) => p[0] - q[0])) {
    sum += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return sum;
}

const TILES = /** @type {const} */ ([
  ["held", "By tensors at this step, padding included"],
  ["lower bound", "The most that lives at any one time: no plan of this graph takes less"],
  ["free in pieces", "Free within the chunk's size so far, and in how many pieces"],
  ["largest free", "The largest tensor that fits without growing the chunk. Far less than all that is free: the memory is fragmented"],
  ["padding", "What the tensors held do not need: each begins at a multiple of the alignment"],
  ["never used", "The part of the buffer that holds nothing at any time in this plan"],
]);

/** A row of figures, each with its name over it. */
export class UsageLine {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    /** @type {Record<string, HTMLElement>} */
    this.values = {};
    this.element = el("div", "vg-usage", { "aria-label": "How the memory is used" });
    for (const [name, title] of TILES) {
      this.values[name] = el("div", "vg-dd", { role: "definition" });
      this.element.append(el("div", "", { title }, [el("div", "vg-dt", { role: "term", text: name }), this.values[name]]));
    }
  }

  /** @param {number} step @param {Set<number>} allocators those whose chunks are shown @returns {string} the same in words */
  draw(step, allocators) {
    const { player, values } = this;
    const plan = player.relations.planAt(step);
    const usage = usageAt(player, step, allocators);
    const bound = plan ? (liveSet(player, plan.plan)?.bound ?? 0) : 0;
    const buffer = plan ? plan.buffers.size || plan.whole : 0;
    const never = plan ? Math.max(0, buffer - everUsed(player, plan)) : 0;
    setText(values.held, formatBytes(usage.held));
    setText(values["lower bound"], bound ? formatBytes(bound) : "–");
    setText(values["free in pieces"], usage.pieces ? `${formatBytes(usage.free)} in ${usage.pieces}` : "0 B");
    setText(values["largest free"], formatBytes(usage.largest));
    setText(values.padding, formatBytes(usage.padding));
    setText(values["never used"], buffer ? `${formatBytes(never)} (${percent(never, buffer)})` : "–");
    const pieces = usage.pieces === 1 ? "1 piece" : `${usage.pieces} pieces`;
    return `${formatBytes(usage.held)} of ${formatBytes(usage.size)} are held, ${formatBytes(usage.free)} are free in ${pieces}, the largest ${formatBytes(usage.largest)}.`;
  }
}

/** @param {number} part @param {number} whole */
function percent(part, whole) {
  const share = (100 * part) / whole;
  return part > 0 && share < 1 ? "< 1 %" : `${Math.round(share)} %`;
}
