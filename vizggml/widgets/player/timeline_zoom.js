// Which part of a plan the timeline shows: positions across, bytes or rows from the bottom up.

/** @typedef {import("./plans.js").Plan} Plan */
/** @typedef {{x0: number, x1: number, y0: number, y1: number}} Window */

const FEWEST = 2;
const ROOM = 0.6;

/** All of a plan. @param {Plan} plan @param {number} top @returns {Window} */
export function whole(plan, top) {
  return { x0: 0, x1: plan.positions, y0: 0, y1: top };
}

/** @param {number} from @param {number} to @param {number} least @param {number} end @returns {[number, number]} */
function within(from, to, least, end) {
  const size = Math.min(end, Math.max(to - from, least));
  const low = Math.min(Math.max(0, (from + to) / 2 - size / 2), end - size);
  return [low, low + size];
}

/** A window kept within a plan. @param {Window} w @param {Window} full @param {number} least the least height @returns {Window} */
export function kept(w, full, least) {
  const [x0, x1] = within(w.x0, w.x1, Math.min(FEWEST, full.x1), full.x1);
  const [y0, y1] = within(w.y0, w.y1, least, full.y1);
  return { x0, x1, y0, y1 };
}

/** A window made smaller or larger about a point. @param {Window} w @param {number} factor @param {number} x @param {number} y
 * @returns {Window} */
export function scaled(w, factor, x, y) {
  const about = (/** @type {number} */ value, /** @type {number} */ centre) => centre + (value - centre) * factor;
  return { x0: about(w.x0, x), x1: about(w.x1, x), y0: about(w.y0, y), y1: about(w.y1, y) };
}

/** The window that shows one lifetime with some room about it. @param {number} first @param {number} last @param {number} from
 * @param {number} to @returns {Window} */
export function about(first, last, from, to) {
  const wide = Math.max(2, (last + 1 - first) * ROOM);
  const high = Math.max((to - from) * ROOM * 2, to - from > 1 ? 0 : 6);
  return { x0: first - wide, x1: last + 1 + wide, y0: from - high, y1: to + high };
}
