// Round numbers along an axis.

import { formatBytes } from "./sentence.js";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Round counts from `from` up to `to`, about `wanted` of them. @param {number} from @param {number} to @param {number} wanted */
export function countTicks(from, to, wanted) {
  const rough = (to - from) / wanted;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) ?? 10 * power);
  const out = [];
  for (let p = Math.ceil(from / step) * step; p < to; p += step) out.push(p);
  return out;
}

/** Round sizes, both ends included: multiples of a power of two, at most `wanted` steps between them, in the largest unit in
 * which they are short. @param {number} from @param {number} to @param {number} wanted
 * @returns {{value: number, label: string}[]} */
export function byteTicks(from, to, wanted) {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max((to - from) / Math.max(1, wanted), 1))));
  let unit = 0;
  while (unit < UNITS.length - 1 && step / 1024 ** (unit + 1) >= 0.5) unit++;
  const out = [];
  for (let value = Math.ceil(from / step) * step; value <= to; value += step) {
    const short = (unit > 0 || from === 0) && value >= 1024 ** (unit + 1) && value % 1024 ** (unit + 1) === 0;
    out.push({ value, label: value === 0 ? "0" : short ? formatBytes(value) : `${value / 1024 ** unit} ${UNITS[unit]}` });
  }
  return out;
}
