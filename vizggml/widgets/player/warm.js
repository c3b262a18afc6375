// What a first step would have to work out, worked out before it: while the browser has nothing to do, a piece at a time.

import { searchAt } from "./candidates.js";
import { liveSet } from "./live.js";
import { eventsOf, lifeAt, placeAt, rowAt, valuesAt } from "./tensor_facts.js";
import { everUsed } from "./usage.js";

/** @typedef {import("./player.js").Player} Player */

const PAUSE_MS = 60;

/** @param {Player} player @returns {(() => void)[]} */
function pieces(player) {
  const { tracks, relations } = player;
  const middle = tracks.n >> 1;
  const of = (/** @type {number} */ step) => Math.max(0, relations.tensorAt(step));
  const events = /** @type {const} */ (["TensorAssigned", "SearchBegin", "TensorFreed", "ParentReused", "TensorPlaced", "NodeBegin", "NodeSkipped"]);
  return [
    () => relations.focus,
    () => relations.plans,
    () => relations.sources(0),
    () => relations.consumers(0),
    ...["block", "chunk", "place"].map((name) => () => tracks.track(name).ends),
    ...events.map((kind) => () => eventsOf(player, kind, "tensor", 0)),
    () => rowAt(player, "node", of(middle), middle),
    () => placeAt(player, of(middle), middle),
    () => valuesAt(player, of(middle), middle),
    () => lifeAt(player, of(middle), middle),
    () => searchAt(tracks, middle),
    () => liveSet(player, 0),
    ...relations.plans.map((plan) => () => everUsed(player, plan)),
  ];
}

/** @param {Player} player @returns {() => void} stops it */
export function warm(player) {
  /** @type {(() => void)[]} */
  const todo = [() => void todo.push(...pieces(player))];
  const { requestIdleCallback: idle } = /** @type {{requestIdleCallback?: typeof requestIdleCallback}} */ (globalThis);
  let handle = 0;
  const work = (/** @type {IdleDeadline | undefined} */ deadline) => {
    do todo.shift()?.();
    while (todo.length && (deadline?.timeRemaining() ?? 0) > 4);
    if (todo.length) again();
  };
  const again = () => {
    handle = idle ? idle(work, { timeout: 2000 }) : setTimeout(work, PAUSE_MS);
  };
  again();
  return () => {
    todo.length = 0;
    if (idle) cancelIdleCallback(handle);
    else clearTimeout(handle);
  };
}
