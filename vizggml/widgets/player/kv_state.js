// The KV cache at a step: what each cell holds, where the newest tokens go, what is written there by now.

import { eventsOf } from "./detail_plot.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {{cell: number, n: number}} Run neighbouring cells */
/** @typedef {{cache: number, nCells: number, nLayer: number, layers: number[], window: number, typeK: string, typeV: string, bytesK: number, bytesV: number,
 *   nHead: [number, number], nHeadKv: [number, number], used: number, seqs: number[]}} Shape `used` is one past the last cell that the trace takes,
 *   `seqs` the sequences that it has there, `layers` the model's layers that it keeps, `window` how many positions they see, 0 for all;
 *   heads from the fewest of a layer to the most, 0 where no graph tells */
/** @typedef {{shape: Shape, seq: Int16Array, pos: Int32Array, nSeqs: Uint8Array, taken: number, sequences: Map<number, number>, nKv: number,
 *   slot: Run[], pending: {k: Uint8Array, v: Uint8Array}, newest: {seq: number, pos: number}, window: number}} KvState
 *   `seq` is the first sequence of a cell, -1 where it is free; `pending` marks the layers that the slot is yet to be written in;
 *   `newest` is the last token of the slot, -1 where there is none; `window` how many positions it sees, 0 for all */

const NO_ONE = -1;

/** The cache that step `step` is about: the one whose slot was opened last, else the newest. @param {Player} player @param {number} step */
export function cacheAt({ tracks }, step) {
  const said = tracks.kindOf(step).fields.find(([, type]) => type === "cache");
  if (said) return tracks.field(step, said[0]);
  const slot = tracks.track("slot");
  const at = upperBound(slot.a, step) - 1;
  if (at >= 0) return slot.col("cache")[at];
  for (const name of ["slot", "cell", "cache"]) {
    const track = tracks.track(name);
    if (track.length) return track.col("cache")[name === "slot" ? 0 : track.length - 1];
  }
  return NO_ONE;
}

/** The caches to show: the one that the step is about, or both of a model whose layers see a window or everything.
 * @param {Player} player @param {number} step @returns {number[]} */
export function cachesAt(player, step) {
  const cache = cacheAt(player, step);
  return pairsOf(player).find((pair) => pair.includes(cache)) ?? [cache];
}

/** The caches that were made together: one that sees everything, then one with a window. @param {Player} player @returns {number[][]} */
export function pairsOf({ tracks, relations }) {
  return relations.keep("cache pairs", () => {
    const made = tracks.track("cache");
    const [caches, windows] = ["cache", "n_swa"].map((name) => made.col(name));
    /** @type {number[][]} */
    const pairs = [];
    for (let r = 1; r < made.length; r++) if (windows[r] > 0 && windows[r - 1] <= 0) pairs.push([caches[r - 1], caches[r]]);
    return pairs;
  });
}

/** What does not change with the step. @param {Player} player @param {number} cache @returns {Shape} */
export function shapeOf({ tracks, relations }, cache) {
  return relations.keep(`cache ${cache}`, () => {
    const made = tracks.track("cache");
    const row = made.col("cache").indexOf(cache);
    const [cells, at, written, layers] = [tracks.track("cell"), tracks.track("cell").col("cell"), tracks.track("kv"), tracks.track("kv").col("layer")];
    const [caches, seqs] = ["cache", "seq"].map((name) => cells.col(name));
    /** @type {Set<number>} */
    const met = new Set();
    let used = 0;
    for (let r = 0; r < cells.length; r++) {
      if (caches[r] !== cache) continue;
      used = Math.max(used, at[r] + 1);
      met.add(seqs[r]);
    }
    let nLayer = 1;
    for (let r = 0; r < written.length && row < 0; r++) nLayer = Math.max(nLayer, layers[r] + 1);
    const [ofCache, numbers] = ["cache", "layer"].map((name) => tracks.columns.column(`cache_layer.${name}`));
    const kept = [...numbers].filter((_, r) => ofCache[r] === cache);
    const number = (/** @type {string} */ name) => (row < 0 ? 0 : made.col(name)[row]);
    return {
      cache,
      nCells: row < 0 ? Math.max(32, used) : number("n_cells"),
      nLayer: row < 0 ? nLayer : number("n_layer"),
      layers: kept.length ? kept : Array.from({ length: row < 0 ? nLayer : number("n_layer") }, (_, il) => il),
      window: row < 0 ? 0 : number("n_swa"),
      typeK: row < 0 ? "" : made.str("type_k", row),
      typeV: row < 0 ? "" : made.str("type_v", row),
      bytesK: number("nbytes_k"),
      bytesV: number("nbytes_v"),
      nHead: headsOf(tracks, cache, "n_head"),
      nHeadKv: headsOf(tracks, cache, "n_head_kv"),
      used,
      seqs: [...met].sort((p, q) => p - q),
    };
  });
}

/** @param {import("./tracks.js").Tracks} tracks @param {number} cache @param {string} name @returns {[number, number]} */
function headsOf(tracks, cache, name) {
  const [caches, values] = [tracks.columns.column("cache_layer.cache"), tracks.columns.column(`cache_layer.${name}`)];
  let [least, most] = [Infinity, 0];
  for (let r = 0; r < caches.length; r++) {
    if (caches[r] !== cache || !values[r]) continue;
    least = Math.min(least, values[r]);
    most = Math.max(most, values[r]);
  }
  return most ? [least, most] : [0, 0];
}

/** @param {Player} player @param {number} step @param {number} which of the caches to show @returns {KvState | null} */
export function kvAt(player, step, which = 0) {
  const { tracks } = player;
  const cache = cachesAt(player, step)[which] ?? NO_ONE;
  if (cache < 0) return null;
  const shape = shapeOf(player, cache);
  const seq = new Int16Array(shape.nCells).fill(NO_ONE);
  const pos = new Int32Array(shape.nCells).fill(NO_ONE);
  const nSeqs = new Uint8Array(shape.nCells);
  const sequences = new Map();
  let taken = 0;
  const track = tracks.track("cell");
  const [caches, cells, positions, seqs] = ["cache", "cell", "pos", "seq"].map((n) => track.col(n));
  track.each(step, (r) => {
    const cell = cells[r];
    if (caches[r] !== cache || cell >= shape.nCells) return;
    if (!nSeqs[cell]) taken++;
    if (!nSeqs[cell] || seqs[r] < seq[cell]) seq[cell] = seqs[r];
    nSeqs[cell]++;
    pos[cell] = positions[r];
    sequences.set(seqs[r], (sequences.get(seqs[r]) ?? 0) + 1);
  });
  return { shape, seq, pos, nSeqs, taken, sequences, window: shape.window, ...slotAt(player, shape, step, seq, pos) };
}

/** Where the newest tokens go, and which layers have not got them yet. @param {Player} player @param {Shape} shape @param {number} step
 * @param {Int16Array} seq @param {Int32Array} pos */
function slotAt({ tracks }, { cache, nLayer }, step, seq, pos) {
  const slots = tracks.track("slot");
  const [caches, cells, counts, nKvs] = ["cache", "cell", "n_cells", "n_kv"].map((n) => slots.col(n));
  /** @type {Run[]} */
  const slot = [];
  let [begin, nKv, cells0] = [-1, 0, 0];
  slots.each(step, (r) => {
    if (caches[r] !== cache) return;
    slot.push({ cell: cells[r], n: counts[r] });
    cells0 += counts[r];
    [begin, nKv] = [slots.a[r], nKvs[r]];
  });
  const [k, v] = [new Uint8Array(nLayer), new Uint8Array(nLayer)];
  if (begin >= 0) {
    const done = [new Int32Array(nLayer), new Int32Array(nLayer)];
    const kv = tracks.track("kv");
    const [ofCache, layer, which, n] = ["cache", "layer", "which", "n_cells"].map((name) => kv.col(name));
    for (let r = upperBound(kv.a, begin - 1); r < kv.length && kv.a[r] <= step; r++) if (ofCache[r] === cache && layer[r] < nLayer) done[which[r]][layer[r]] += n[r];
    for (let il = 0; il < nLayer; il++) [k[il], v[il]] = [done[0][il] < cells0 ? 1 : 0, done[1][il] < cells0 ? 1 : 0];
  }
  let newest = { seq: NO_ONE, pos: NO_ONE };
  const last = slot[slot.length - 1];
  for (let cell = last ? last.cell + last.n - 1 : -1; last && cell >= last.cell; cell--) {
    if (seq[cell] >= 0) {
      newest = { seq: seq[cell], pos: pos[cell] };
      break;
    }
  }
  return { slot, nKv, pending: { k, v }, newest };
}

/** Whether the newest token attends to a cell: same sequence, not after it, within the window. @param {KvState} state @param {number} cell
 * @param {boolean} shares whether the cell is one of the newest token's sequence too */
export function sees({ newest, pos, nKv, window }, cell, shares) {
  if (newest.seq < 0 || !shares || cell >= nKv || pos[cell] > newest.pos) return false;
  return window <= 0 || newest.pos - pos[cell] < window;
}

/** For each cell whether the sequence is one of its own. @param {Player} player @param {number} step @param {KvState} state @param {number} wanted */
export function cellsOf({ tracks }, step, { shape }, wanted) {
  const mine = new Uint8Array(shape.nCells);
  const track = tracks.track("cell");
  const [caches, cells, seqs] = ["cache", "cell", "seq"].map((n) => track.col(n));
  track.each(step, (r) => {
    if (caches[r] === shape.cache && seqs[r] === wanted && cells[r] < shape.nCells) mine[cells[r]] = 1;
  });
  return mine;
}

/** The sequences of one cell. @param {Player} player @param {number} step @param {number} cache @param {number} cell @returns {number[]} */
export function sequencesOf({ tracks }, step, cache, cell) {
  const track = tracks.track("cell");
  const [caches, cells, seqs] = ["cache", "cell", "seq"].map((n) => track.col(n));
  return track
    .openAt(step)
    .filter((r) => caches[r] === cache && cells[r] === cell)
    .map((r) => seqs[r])
    .sort((p, q) => p - q);
}

/** The last change of a cache's cells at or before the step, in words; empty where tokens were just put there.
 * @param {Player} player @param {number} step @param {number} cache */
export function lastChange(player, step, cache) {
  const { tracks } = player;
  const [ops, found] = [eventsOf(player, "SeqOp"), eventsOf(player, "CellsFound")];
  let at = upperBound(ops, step) - 1;
  while (at >= 0 && tracks.field(ops[at], "cache") !== cache) at--;
  if (at < 0) return "";
  const op = ops[at];
  if (upperBound(found, step) > upperBound(found, op)) return "";
  const [name, seq, to, delta] = ["op", "seq_id", "seq_dst", "delta"].map((f) => tracks.field(op, f));
  const [p0, p1] = ["p0", "p1"].map((f) => tracks.field(op, f));
  const range = p1 >= 2 ** 31 - 1 ? (p0 > 0 ? `from ${p0} on` : "") : `${p0} to ${p1 - 1}`;
  const what = seq < 0 ? "every sequence" : `sequence ${seq}`;
  /** @type {Record<string, string>} */
  const words = {
    remove: `removed: ${what} ${range}`,
    copy: `copied: ${what} ${range} to sequence ${to}`,
    keep: `kept: ${what} alone`,
    shift: `moved by ${delta}: ${what} ${range}`,
    add: `moved by ${delta}: ${what} ${range}`,
  };
  return (words[name] ?? String(name)).trim();
}
