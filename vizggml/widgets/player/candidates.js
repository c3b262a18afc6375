// The search that the event of a step belongs to: every free block looked at so far, and why it won or lost.

import { formatBytes } from "./sentence.js";

/** @typedef {import("./tracks.js").Tracks} Tracks */
/**
 * @typedef {{event: number, chunk: number, block: number, offset: number, size: number, end: boolean, fits: boolean, won: boolean,
 *   label: string, words: string}} Candidate `end` says that it is the free end of its chunk, `won` that it is the best so far
 *   or was taken; `label` names it, `words` say why
 * @typedef {{begin: number, allocator: number, tensor: number, size: number, candidates: Candidate[], taken: boolean}} Search
 *   `size` is what is needed, padding included; `taken` says that the choice is made
 */

const HOPS = 3;
const PARTS = new Set(["SearchBegin", "BlockConsidered", "BlockChosen", "BlockSplit", "BlockRemoved", "ChunkOpened", "ChunkGrown", "TensorAssigned"]);

/** @param {Tracks} tracks @param {number} step @returns {Search | null} null where nothing is searched at this step */
export function searchAt(tracks, step) {
  if (!PARTS.has(tracks.kindOf(step).name)) return null;
  let begin = step;
  for (let hop = 0; hop < HOPS && begin >= 0 && tracks.kindOf(begin).name !== "SearchBegin"; hop++) begin = tracks.cause[begin];
  if (begin < 0 || tracks.kindOf(begin).name !== "SearchBegin") return null;
  const allocator = tracks.field(begin, "allocator");
  const size = tracks.field(begin, "size");
  /** @type {Search} */
  const search = { begin, allocator, tensor: tracks.field(begin, "tensor"), size, candidates: [], taken: false };
  for (let i = begin + 1; i <= step; i++) {
    if (tracks.cause[i] !== begin) continue;
    const kind = tracks.kindOf(i).name;
    if (kind === "BlockConsidered") search.candidates.push(considered(tracks, i));
    else if (kind === "BlockChosen") choose(tracks, i, search);
  }
  tell(search);
  return search;
}

/** @param {Tracks} tracks @param {number} event @returns {Candidate} */
function considered(tracks, event) {
  const at = (/** @type {string} */ name) => tracks.field(event, name);
  const end = at("phase") === "last block";
  const verdict = at("verdict");
  const size = at("size");
  const fits = verdict !== "too small";
  const label = end ? "the free end" : `block ${at("block")} · ${formatBytes(size)}`;
  const won = verdict === "best so far";
  return { event, chunk: at("chunk"), block: at("block"), offset: at("offset"), size, end, fits, won, label, words: end ? endWords(at("reuse_factor")) : "" };
}

/** @param {number} reuse what stays unused of the chunk's size; below 0, what it must grow by */
function endWords(reuse) {
  return reuse < 0 ? `the chunk grows by ${formatBytes(-reuse)}` : `${formatBytes(reuse)} of the chunk stay unused`;
}

/** @param {Tracks} tracks @param {number} event @param {Search} search */
function choose(tracks, event, search) {
  search.taken = true;
  const [chunk, offset] = [tracks.field(event, "chunk"), tracks.field(event, "offset")];
  if (search.candidates.some((c) => c.chunk === chunk && c.offset === offset)) return;
  const rule = tracks.field(event, "rule");
  const label = rule === "new chunk" ? "a new chunk" : "the free end";
  const words = rule === "new chunk" ? "no other has room" : endWords(tracks.field(event, "reuse_factor"));
  const [block, size] = [tracks.field(event, "block"), tracks.field(event, "size")];
  search.candidates.push({ event, chunk, block, offset, size, end: true, fits: true, won: true, label, words });
}

/** What each candidate is told to be, now that those after it are known. @param {Search} search */
function tell({ candidates, size, taken }) {
  const best = candidates.findLast((c) => c.won);
  for (const c of candidates) {
    c.won = c === best;
    if (c.end) {
      if (!c.fits) c.words = `too small: ${formatBytes(c.size)} < ${formatBytes(size)}`;
      else if (taken) c.words = c.won ? `taken: ${c.words}` : `not better: ${c.words}`;
    } else if (!c.fits) c.words = `too small: ${formatBytes(c.size)} < ${formatBytes(size)}`;
    else if (!c.won) c.words = "fits, but not the best";
    else if (taken) c.words = c.size === size ? "taken: fits exactly" : "taken: the best fit";
    else c.words = "fits: the best so far";
  }
}

/** All of a search in words. @param {Tracks} tracks @param {Search} search */
export function searchWords(tracks, search) {
  const what = search.tensor >= 0 ? ` for ${tracks.name(search.tensor)}` : "";
  return [`Looking for ${formatBytes(search.size)}${what}`, ...search.candidates.map((c) => `${c.label}: ${c.words}`)].join("; ");
}
