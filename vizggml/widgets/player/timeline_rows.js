// How the lifetimes of a plan are stacked: by their addresses, or each tensor in a row of its own.

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./plans.js").Plan} Plan */
/** @typedef {"address" | "birth" | "size"} Order */
/** @typedef {{top: number, from: Map<number, number> | null}} Stack `top` is how far up the lifetimes go: bytes, or rows; `from`
 *   the row that each lifetime is in, counted from the bottom, null where they lie by address */

/** @type {[Order, string, string][]} */
export const ORDERS = [
  ["address", "by address", "Up is the address: what overlaps in height uses the same memory again"],
  ["birth", "by tensor, oldest first", "Each tensor has a row, the first born on top"],
  ["size", "by tensor, largest first", "Each tensor has a row, the largest on top"],
];

/** @param {Player} player @param {Plan} plan @param {Order} order @returns {Stack} */
export function stackOf({ tracks, relations }, plan, order) {
  if (order === "address") return { top: plan.size || 1, from: null };
  return relations.keep(`stack ${plan.plan} ${order}`, () => {
    const life = tracks.track("life");
    const [first, last, size] = ["first", "last", "size"].map((n) => life.col(n));
    const sorted = Array.from(plan.rows).sort((p, q) => (order === "size" ? size[q] - size[p] : 0) || first[p] - first[q] || last[p] - last[q] || p - q);
    const n = sorted.length;
    return { top: n, from: new Map(sorted.map((row, k) => [row, n - 1 - k])) };
  });
}

/** What a lifetime covers from bottom to top. @param {Player} player @param {Plan} plan @param {Stack} stack @param {number} row
 * @returns {[number, number]} */
export function spanOf({ tracks }, plan, stack, row) {
  const at = stack.from?.get(row);
  if (at !== undefined) return [at, at + 1];
  const life = tracks.track("life");
  const base = plan.chunks.find((k) => k.chunk === life.col("chunk")[row])?.base ?? 0;
  const from = base + life.col("offset")[row];
  return [from, from + life.col("size")[row]];
}
