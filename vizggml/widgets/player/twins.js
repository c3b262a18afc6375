// The same tensor of another graph: a model's graphs are built alike, and name their tensors alike.

import { visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {{tensor: number, twin: number, to: number, from: number, direction: number}} Offer an event about `twin`, which has the
 *   name of `tensor`; made at the event `from` */

/** The nearest event before or after a step about another tensor of the same name; null where there is none.
 * @param {Player} player @param {number} tensor @param {number} direction @returns {Offer | null} */
export function twinOffer({ tracks, step }, tensor, direction) {
  const names = tracks.columns.column("tensor.name");
  const name = names[tensor];
  if (name < 0) return null;
  const twins = Array.from(names, (_, t) => t).filter((t) => t !== tensor && names[t] === name);
  if (!twins.length) return null;
  const to = tracks.find(step, direction, (i) => twins.some((t) => tracks.speaksOf(i, t)));
  const twin = to < 0 ? -1 : twins.find((t) => tracks.speaksOf(to, t)) ?? -1;
  return twin < 0 ? null : { tensor, twin, to, from: step, direction };
}

/** A tensor's name, with its graph where others have the same name. @param {Player} player @param {number} tensor */
export function nameAmongTwins({ tracks, relations }, tensor) {
  const names = tracks.columns.column("tensor.name");
  const graph = relations.home.graph[tensor];
  const name = visible(tracks.name(tensor));
  const alone = names[tensor] < 0 || names.indexOf(names[tensor]) === names.lastIndexOf(names[tensor]);
  return alone || graph < 0 ? name : `${name} of graph ${graph}`;
}

/** @param {Player} player @param {Offer} offer */
export function offerWords({ tracks, relations }, { tensor, twin, direction }) {
  const graph = (/** @type {number} */ t) => relations.home.graph[t];
  const name = visible(tracks.name(tensor));
  const of = graph(tensor) >= 0 ? `${name} of graph ${graph(tensor)}` : `this ${name}`;
  const other = graph(twin) >= 0 && graph(twin) !== graph(tensor) ? `the ${name} of graph ${graph(twin)}` : `another ${name}`;
  const [when, key] = direction > 0 ? ["later", "t"] : ["earlier", "T"];
  return `No ${when} event names ${of}. Press ${key} again to go on with ${other}.`;
}

/** Where to go on when a tensor has no more events. @param {number} direction @param {boolean} selected whether it stays the one
 * that is asked for */
export function wayOut(direction, selected) {
  if (direction < 0) return " t goes forward.";
  return selected ? " T goes back; Home, then t, begins at the first." : " T goes back.";
}
