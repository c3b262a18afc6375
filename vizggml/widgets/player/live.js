// The live set over the memory timeline: what is needed at each node, up to now, and the most that ever is.

/** @typedef {import("./player.js").Player} Player */
/** @typedef {{bytes: Float64Array, bound: number, n: number}} LiveSet bytes by position; `bound` is the largest of them */
/** @typedef {{x: (p: number) => number, y: (bytes: number) => number}} Scale */

/** Pixels of a step of the line: where more positions lie in them, the most that lives at any. */
const FINEST = 3;
/** With less than so many pixels for a position the layers follow so close that the line would be hatching: then wider. */
const [CROWDED, COARSE] = [0.5, 12];

/** The live set of each plan. @param {Player} player @returns {Map<number, LiveSet>} */
function liveSets({ tracks, relations }) {
  return relations.keep("live", () => {
    const track = tracks.track("live");
    const [plan, position, bytes] = ["plan", "position", "bytes"].map((n) => track.col(n));
    /** @type {Map<number, LiveSet>} */
    const sets = new Map();
    /** @type {Map<number, number>} */
    const lengths = new Map();
    for (let r = 0; r < track.length; r++) lengths.set(plan[r], Math.max(lengths.get(plan[r]) ?? 0, position[r] + 1));
    for (const [number, n] of lengths) sets.set(number, { bytes: new Float64Array(n), bound: 0, n });
    for (let r = 0; r < track.length; r++) {
      const set = /** @type {LiveSet} */ (sets.get(plan[r]));
      set.bytes[position[r]] = bytes[r];
      set.bound = Math.max(set.bound, bytes[r]);
    }
    return sets;
  });
}

/** @param {Player} player @param {number} plan @returns {LiveSet | null} */
export function liveSet(player, plan) {
  return liveSets(player).get(plan) ?? null;
}

/** @param {Player} player @param {CanvasRenderingContext2D} c @param {LiveSet} set @param {Scale} scale */
export function paintBound({ palette }, c, set, { x, y }) {
  const at = Math.round(y(set.bound)) + 0.5;
  c.strokeStyle = palette.soft;
  c.lineWidth = 1.5;
  c.setLineDash([1.5, 3]);
  c.beginPath();
  c.moveTo(x(0), at);
  c.lineTo(x(set.n), at);
  c.stroke();
  c.setLineDash([]);
  c.lineWidth = 1;
}

/** The stepped line of what lives, up to a position. @param {Player} player @param {CanvasRenderingContext2D} c
 * @param {LiveSet} set @param {Scale} scale @param {number} position */
export function paintLiveSet({ palette }, c, set, { x, y }, position) {
  const last = Math.min(position, set.n - 1);
  if (last < 0) return;
  c.beginPath();
  c.moveTo(x(0), y(0));
  const each = x(1) - x(0);
  const stride = Math.max(1, Math.round((each < CROWDED ? COARSE : FINEST) / each));
  for (let p = 0; p <= last; p += stride) {
    let most = 0;
    for (let k = p; k < Math.min(p + stride, last + 1); k++) most = Math.max(most, set.bytes[k]);
    c.lineTo(x(p), y(most));
    c.lineTo(x(Math.min(p + stride, last + 1)), y(most));
  }
  c.lineJoin = "round";
  c.strokeStyle = palette.page;
  c.lineWidth = 3.5;
  c.stroke();
  c.strokeStyle = palette.ink;
  c.lineWidth = 1.5;
  c.stroke();
  c.lineWidth = 1;
}
