// The memory plans of a trace: which tensors each places, in which chunks of which allocators, and in which buffers.

import { formatBytes } from "./sentence.js";

/** @typedef {import("./tracks.js").Tracks} Tracks */

/** Chunk c of a plan's buffer b has the number b * 16 + c in the track of lives. */
export const MAX_CHUNKS = 16;

/** A plan that reaches less of its chunk than this is drawn to its own scale. */
const FAR_LESS = 0.7;
/** Bytes behind the last tensor that are its padding: no alignment in use is larger. */
const PADDING = 256;

/**
 * @typedef {{chunk: number, base: number, size: number, whole: number}} PlannedChunk `size` is what the drawing covers: the
 *   chunk, or what the plan reaches where that is far less; `base` where the chunk begins in the drawing
 * @typedef {{size: number, reserve: number, graph: number}} Standing the compute buffers that a plan is carried out in: their
 *   bytes, the event that reserved them and for which graph, -1 where the trace does not tell
 * @typedef {{plan: number, graph: number, allocators: number[], begin: number, end: number, rows: Int32Array,
 *   rowOf: Map<number, number>, positions: number, chunks: PlannedChunk[], size: number, whole: number, used: number,
 *   buffers: Standing, top: number, peakPosition: number, atPeak: number[]}} Plan `used` is the highest byte taken, padding
 *   included, over all chunks, and `top` the row that reaches it; `size` what the drawing covers
 */

/** The number of an allocator's chunk in a plan. @param {Plan} plan @param {number} allocator @param {number} chunk */
export function chunkNumber(plan, allocator, chunk) {
  return Math.max(0, plan.allocators.indexOf(allocator)) * MAX_CHUNKS + chunk;
}

/** What a plan's chunk is called. @param {Plan} plan @param {number} number */
export function chunkName(plan, number) {
  const chunk = `chunk ${number % MAX_CHUNKS}`;
  return plan.allocators.length > 1 ? `buffer ${Math.floor(number / MAX_CHUNKS)}, ${chunk}` : chunk;
}

/** A graph's number, and for how many tokens it is built where it reads tokens. @param {Tracks} tracks @param {number} graph */
export function graphWords(tracks, graph) {
  const { columns } = tracks;
  const ptr = columns.column("graph.leaf_ptr");
  for (const t of columns.column("graph.leaf").subarray(ptr[graph] ?? 0, ptr[graph + 1] ?? 0)) {
    if (tracks.name(t) !== "inp_tokens") continue;
    const n = tracks.ne(t)[0];
    return `graph ${graph} (${n} token${n === 1 ? "" : "s"})`;
  }
  return `graph ${graph}`;
}

/** What a plan comes to: the buffer, how much of it the plan takes, and the least that any plan could.
 * @param {Tracks} tracks @param {Plan} plan @param {number} bound 0 where it is not known */
export function planWords(tracks, plan, bound) {
  const { size, graph } = plan.buffers;
  const least = bound ? `; lower bound ${formatBytes(bound)}` : "";
  if (!size) return `Needs ${formatBytes(plan.used)}; no buffer is allocated for it${least}`;
  const own = graph >= 0 && graph !== plan.graph ? `, reserved for ${graphWords(tracks, graph)}` : "";
  const takes = plan.used >= size ? "this plan uses all of it" : `this plan uses up to ${formatBytes(plan.used)}`;
  return `Buffer ${formatBytes(size)}${own}; ${takes}${least}`;
}

/** @param {Tracks} tracks @returns {Plan[]} */
export function readPlans(tracks) {
  const life = tracks.track("life");
  const planOf = life.col("plan");
  /** @type {Map<number, number[]>} */
  const rows = new Map();
  for (let r = 0; r < life.length; r++) {
    const list = rows.get(planOf[r]);
    if (list) list.push(r);
    else rows.set(planOf[r], [r]);
  }
  const sorted = [...rows].sort((p, q) => p[0] - q[0]);
  const openers = [tracks.kindNamed.ReserveBegin?.index, tracks.kindNamed.AllocGraphBegin?.index];
  let before = -1;
  const begins = sorted.map(([, list]) => {
    const first = life.a[list[0]];
    const opened = tracks.find(first + 1, -1, (i) => i <= before || openers.includes(tracks.kind[i]));
    return (before = opened > before ? opened : first);
  });
  return sorted.map(([plan, list], k) => readPlan(tracks, plan, list, begins[k], begins[k + 1] ?? tracks.n));
}

/** @param {Tracks} tracks @param {number} plan @param {number[]} list its rows @param {number} begin @param {number} end
 * @returns {Plan} */
function readPlan(tracks, plan, list, begin, end) {
  const life = tracks.track("life");
  const [offset, size, chunk, first, last, tensor] = ["offset", "size", "chunk", "first", "last", "tensor"].map((c) => life.col(c));
  /** @type {Map<number, number>} */
  const extents = new Map();
  let positions = 1;
  const rowOf = new Map();
  for (const r of list) {
    extents.set(chunk[r], Math.max(extents.get(chunk[r]) ?? 0, offset[r] + size[r]));
    positions = Math.max(positions, last[r] + 1, first[r] + 1);
    rowOf.set(tensor[r], r);
  }
  const allocators = allocatorsOf(tracks, list);
  const sizes = chunkSizes(tracks, begin, end, allocators);
  let total = 0;
  let used = 0;
  const chunks = [...extents]
    .sort((p, q) => p[0] - q[0])
    .map(([number, extent]) => {
      const whole = Math.max(sizes.get(number) ?? 0, extent);
      const entry = { chunk: number, base: total, size: extent < FAR_LESS * whole ? extent : whole, whole };
      total += entry.size;
      used += whole - extent < PADDING ? whole : extent;
      return entry;
    });
  const top = list.reduce((best, r) => (offset[r] + size[r] > offset[best] + size[best] ? r : best), list[0]);
  const peakPosition = first[top];
  const atPeak = list.filter((r) => first[r] <= peakPosition && last[r] >= peakPosition).sort((p, q) => size[q] - size[p]);
  return {
    plan,
    graph: tracks.field(begin, "graph") ?? -1,
    allocators,
    begin,
    end,
    rows: Int32Array.from(list),
    rowOf,
    positions,
    chunks,
    size: total,
    whole: chunks.reduce((sum, entry) => sum + entry.whole, 0),
    used,
    buffers: buffersOf(tracks, begin, end),
    top,
    peakPosition,
    atPeak,
  };
}

/** The allocator of each buffer of a plan. @param {Tracks} tracks @param {number[]} list rows of lives */
function allocatorsOf(tracks, list) {
  const life = tracks.track("life");
  const [chunk, allocator] = [life.col("chunk"), life.col("allocator")];
  /** @type {number[]} */
  const found = [];
  for (const r of list) if (allocator[r] >= 0) found[Math.floor(chunk[r] / MAX_CHUNKS)] = allocator[r];
  return Array.from(found, (a) => a ?? -1);
}

/** The most that each chunk comes to between two events. @param {Tracks} tracks @param {number} begin @param {number} end
 * @param {number[]} allocators of the buffers */
function chunkSizes(tracks, begin, end, allocators) {
  const track = tracks.track("chunk");
  const [chunk, size, allocator] = ["chunk", "size", "allocator"].map((c) => track.col(c));
  /** @type {Map<number, number>} */
  const sizes = new Map();
  for (let r = 0; r < track.length && track.a[r] < end; r++) {
    const buffer = allocators.indexOf(allocator[r]);
    if (track.b[r] <= begin || buffer < 0) continue;
    const number = buffer * MAX_CHUNKS + chunk[r];
    sizes.set(number, Math.max(sizes.get(number) ?? 0, size[r]));
  }
  return sizes;
}

/** The compute buffers that stand when a plan ends, those of its graph allocator where the trace tells whose they are.
 * @param {Tracks} tracks @param {number} begin @param {number} end @returns {Standing} */
function buffersOf(tracks, begin, end) {
  const track = tracks.track("buffer");
  const size = track.col("size");
  const galloc = tracks.field(begin, "galloc") ?? -1;
  const told = track.openAt(Math.min(end, tracks.n) - 1).filter((r) => track.str("usage", r) === "compute");
  const all = told.map((r) => {
    const cause = tracks.cause[track.a[r]];
    const reserve = cause >= 0 && tracks.kindOf(cause).name === "ReserveBegin" ? cause : -1;
    return { size: size[r], reserve, galloc: reserve < 0 ? -1 : tracks.field(reserve, "galloc") };
  });
  const own = all.filter((b) => b.galloc === galloc);
  const standing = own.length ? own : all;
  const last = standing.reduce((most, b) => Math.max(most, b.reserve), -1);
  return {
    size: standing.reduce((sum, b) => sum + b.size, 0),
    reserve: last,
    graph: last < 0 ? -1 : tracks.field(last, "graph"),
  };
}
