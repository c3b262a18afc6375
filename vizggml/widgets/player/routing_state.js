// Where the tokens of a layer go at a step: to which experts, with which weights, and what is read for that.

import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {{pos: number, experts: ArrayLike<number>, weights: ArrayLike<number>, begin: number, now: boolean, event: number}} Line one token;
 *   its experts and weights are those from `begin` on, `now` where it is of this evaluation, `event` where it was told */
/** @typedef {{layer: number, row: number, evaluation: number, nExpert: number, nUsed: number, nTokens: number, nRead: number, nbytes: number,
 *   bytesRead: number, load: Int32Array, lines: Line[], most: number}} Routed `row` of the track; `load` counts the tokens of each
 *   expert; `lines` are the tokens, earlier ones of this layer before them; `most` is the largest weight there */
/** @typedef {{nLayer: number, nRouted: number, nbytes: number, bytesRead: number}} Whole of one evaluation, all layers that are routed by now */

/** The layers that have experts, in order. @param {Player} player @returns {number[]} */
export function layersOf({ tracks, relations }) {
  return relations.keep("routed layers", () => [...new Set(tracks.track("route").col("layer"))].sort((p, q) => p - q));
}

/** The rows of one layer, in order. @param {Player} player @param {number} layer @returns {number[]} */
function rowsOf({ tracks, relations }, layer) {
  return relations.keep(`routes of layer ${layer}`, () => {
    const layers = tracks.track("route").col("layer");
    const found = [];
    for (let r = 0; r < layers.length; r++) if (layers[r] === layer) found.push(r);
    return found;
  });
}

/** The row that holds at a step: of that layer, or of the one that was routed last. @param {Player} player @param {number} step
 * @param {number} layer -1 for the last one */
function rowAt(player, step, layer) {
  const { a } = player.tracks.track("route");
  if (layer < 0) return upperBound(a, step) - 1;
  return rowsOf(player, layer).findLast((r) => a[r] <= step) ?? -1;
}

/** @param {Player} player @param {number} step @param {number} wanted the layer, -1 for the one that was routed last
 * @param {number} room how many tokens there is room for @returns {Routed | null} */
export function routedAt(player, step, wanted, room) {
  const track = player.tracks.track("route");
  const row = rowAt(player, step, wanted);
  if (row < 0) return null;
  const number = (/** @type {string} */ name) => track.col(name)[row];
  const layer = number("layer");
  const nExpert = number("n_expert");
  /** @type {Line[]} */
  const lines = [];
  const load = new Int32Array(nExpert);
  const rows = rowsOf(player, layer);
  for (let k = rows.indexOf(row); k >= 0 && (rows[k] === row || lines.length < room); k--) lines.unshift(...linesOf(player, rows[k], rows[k] === row, lines[0]?.pos ?? Infinity));
  if (lines.length > room) lines.splice(0, Math.max(0, Math.min(lines.length - room, lines.findIndex((line) => line.now))));
  let most = 0;
  for (const { experts, weights, begin, now } of lines) {
    for (let k = begin; k < begin + number("n_used"); k++) {
      if (now) load[experts[k]]++;
      most = Math.max(most, weights[k]);
    }
  }
  return {
    ...{ layer, row, nExpert, load, lines, most },
    ...{ evaluation: number("eval"), nUsed: number("n_used"), nTokens: number("n_tokens"), nRead: number("n_read") },
    ...{ nbytes: number("nbytes"), bytesRead: number("nbytes_read") },
  };
}

/** The tokens of one row that come before position `before`: what is computed anew takes the place of what was. @param {Player} player
 * @param {number} row @param {boolean} now @param {number} before @returns {Line[]} */
function linesOf({ tracks }, row, now, before) {
  const track = tracks.track("route");
  const event = track.a[row];
  const n = track.col("n_used")[row];
  const [positions, experts, weights] = ["positions", "experts", "weights"].map((name) => tracks.field(event, name));
  const lines = [];
  for (let t = 0; t < positions.length; t++) if (now || positions[t] < before) lines.push({ pos: positions[t], experts, weights, begin: t * n, now, event });
  return lines;
}

/** What an evaluation has read of its experts by a step. @param {Player} player @param {number} step @param {number} evaluation @returns {Whole} */
export function wholeOf(player, step, evaluation) {
  const track = player.tracks.track("route");
  const [evals, nbytes, read] = ["eval", "nbytes", "nbytes_read"].map((name) => track.col(name));
  const whole = { nLayer: layersOf(player).length, nRouted: 0, nbytes: 0, bytesRead: 0 };
  for (let r = upperBound(track.a, step) - 1; r >= 0 && evals[r] >= evaluation; r--) {
    if (evals[r] !== evaluation) continue;
    whole.nRouted++;
    whole.nbytes += nbytes[r];
    whole.bytesRead += read[r];
  }
  return whole;
}

/** The pieces of the text by position, as far as the trace tells them. @param {Player} player @param {number} step @returns {Map<number, string>} */
export function piecesAt({ tracks }, step) {
  const track = tracks.track("token");
  const pos = track.col("pos");
  const pieces = new Map();
  track.each(step, (r) => pieces.set(pos[r], track.str("piece", r)));
  return pieces;
}
