// Where a step stands to a plan of memory: before it is made, while it is made, between, or computed by it.

import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./plans.js").Plan} Plan */
/** @typedef {"before" | "planning" | "planned" | "computed"} Phase */

const OPENERS = ["ReserveBegin", "AllocGraphBegin"];
const ENDS = ["ReserveEnd", "AllocGraphEnd"];
/** What happens to the node that a plan is about: it gets its place, or it is computed. */
const TELLING = ["TensorAssigned", "ParentReused", "NodeBegin", "NodeSkipped"];
const PLACED = ["TensorAssigned", "ParentReused"];

/** The event with which a plan is made. @param {Player} player @param {Plan} plan @returns {number} */
export function madeAt({ tracks, relations }, plan) {
  return relations.keep(`made ${plan.plan}`, () => {
    if (!OPENERS.includes(tracks.kindOf(plan.begin).name)) return plan.begin;
    const ends = new Set(ENDS.map((name) => tracks.kindNamed[name]?.index));
    const at = tracks.find(plan.begin, 1, (i) => i >= plan.end || ends.has(tracks.kind[i]));
    return at < 0 || at >= plan.end ? plan.begin : at;
  });
}

/** @param {Player} player @param {Plan} plan @param {number} step @returns {Phase} */
export function phaseAt(player, plan, step) {
  if (step < plan.begin) return "before";
  const made = madeAt(player, plan);
  if (step <= made && made > plan.begin) return "planning";
  const { tracks, relations } = player;
  const computes = relations.keep("computes", () => {
    const kind = tracks.kindNamed.ComputeBegin?.index;
    const found = [];
    for (let i = 0; i < tracks.n; i++) if (tracks.kind[i] === kind) found.push(i);
    return found;
  });
  const last = computes[upperBound(computes, step) - 1] ?? -1;
  return last >= made ? "computed" : "planned";
}

/** Where the node last worked at stands in the plan's own graph; -1 where it is of another. @param {Player} player
 * @param {Plan} plan @param {number} step @returns {number} */
export function positionIn({ tracks, relations }, plan, step) {
  if (plan.graph < 0) return relations.positionAt(step);
  const positions = relations.keep(`positions ${plan.graph}`, () => {
    const ptr = tracks.columns.column("graph.ptr");
    const nodes = tracks.columns.column("graph.node").subarray(ptr[plan.graph], ptr[plan.graph + 1]);
    return new Map(Array.from(nodes, (t, k) => [t, k]));
  });
  return positions.get(relations.focus.node[step]) ?? -1;
}

/** The event at which a plan is at its peak: that which gives the topmost tensor its place or, where the plan was made before
 * the recording or for another graph, that with which its node begins to be computed. @param {Player} player @param {Plan} plan
 * @param {number} step of several the one nearest to it @returns {number} -1 where there is none */
export function peakEvent(player, plan, step) {
  const { tracks } = player;
  const life = tracks.track("life");
  const at = life.a[plan.top];
  if (PLACED.includes(tracks.kindOf(at).name)) return at;
  return eventOf(player, plan, plan.peakPosition, step);
}

/** The plan that gave a plan its places: itself or, where it was only followed, that which the same allocators made before; null
 * where that was not recorded. @param {Player} player @param {Plan} plan @returns {Plan | null} */
export function placedBy({ tracks, relations }, plan) {
  const { plans } = relations;
  const places = tracks.track("life").a;
  const same = (/** @type {Plan} */ other) => other.allocators.join() === plan.allocators.join();
  for (let k = plans.indexOf(plan); k >= 0; k--) {
    if (same(plans[k]) && PLACED.includes(tracks.kindOf(places[plans[k].top]).name)) return plans[k];
  }
  return null;
}

/** The event nearest to `step` that tells of the node at a position of the plan; -1 where there is none. @param {Player} player
 * @param {Plan} plan @param {number} position @param {number} step @returns {number} */
export function eventOf(player, plan, position, step) {
  const { tracks } = player;
  const telling = new Set(TELLING.map((name) => tracks.kindNamed[name]?.index));
  const here = (/** @type {number} */ i) => tracks.node[i] >= 0 && positionIn(player, plan, i) === position;
  /** @type {((i: number) => boolean)[]} */
  const wanted = [(i) => telling.has(tracks.kind[i]) && here(i), here];
  const from = Math.max(plan.begin, Math.min(step, plan.end - 1));
  for (const fits of wanted) {
    if (fits(from)) return from;
    const back = tracks.find(from, -1, (i) => i < plan.begin || fits(i));
    const ahead = tracks.find(from, 1, (i) => i >= plan.end || fits(i));
    const found = [back, ahead].filter((i) => i >= plan.begin && i < plan.end);
    if (found.length) return found.reduce((best, i) => (Math.abs(i - step) < Math.abs(best - step) ? i : best));
  }
  return -1;
}
