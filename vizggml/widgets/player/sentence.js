// An event in one plain sentence, from the template of its kind.

/** @typedef {import("./tracks.js").Tracks} Tracks */

const FLAGS = [
  [1, "INPUT"],
  [2, "OUTPUT"],
  [4, "PARAM"],
  [8, "LOSS"],
  [16, "COMPUTE"],
];

/** `96 B`, `1.5 KiB`, `98.25 MiB`. @param {number} n */
export function formatBytes(n) {
  if (n < 0) return "the rest";
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let unit = -1;
  let value = n;
  do {
    value /= 1024;
    unit++;
  } while (value >= 1024 && unit < units.length - 1);
  return `${trim(fixed(value, 2))} ${units[unit]}`;
}

/** `850 ns`, `12.5 us`, `1.2 ms`. @param {number} ns */
export function formatNs(ns) {
  if (ns < 1000) return `${ns} ns`;
  if (ns < 1e6) return `${trim(fixed(ns / 1e3, 1))} us`;
  if (ns < 1e9) return `${trim(fixed(ns / 1e6, 1))} ms`;
  return `${trim(fixed(ns / 1e9, 2))} s`;
}

/** `3 x 2`: ne in ggml's order, the ones at the end left off. @param {ArrayLike<number>} ne */
export function formatDims(ne) {
  let n = ne.length;
  while (n > 1 && ne[n - 1] === 1) n--;
  return Array.from({ length: n }, (_, i) => String(ne[i])).join(" x ");
}

/** `value` with `digits` decimals, exact ties to even as Python rounds them. @param {number} value @param {number} digits */
export function fixed(value, digits) {
  const scale = 10 ** digits;
  const scaled = value * scale;
  const floor = Math.floor(scaled);
  const exact = Number.isInteger(value * 2 ** (digits + 1));
  if (exact && scaled - floor === 0.5 && floor % 2 === 0) return (floor / scale).toFixed(digits);
  return value.toFixed(digits);
}

/** @param {string} text */
function trim(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** @param {number} value */
function formatFloat(value) {
  return Number.isFinite(value) ? trim(fixed(value, 4)) : String(value);
}

/** A number with a thin gap between thousands, for labels. @param {number} n */
export function formatCount(n) {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const SHORT = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

/** Text on one line: what cannot be seen, or would turn the text around it, as an escape that can be read.
 * @param {string} text */
export function visible(text) {
  return text.replace(UNSEEN, (c) => SHORT.get(c) ?? escaped(c.codePointAt(0) ?? 0));
}

/** @param {number} code */
function escaped(code) {
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** A token's text as it stands in a strip of text: a sign where a line ends. @param {string} piece */
export function visiblePiece(piece) {
  return visible(piece.replace(/\r?\n/g, "⏎").replace(/\t/g, "⇥"));
}

/** @param {Tracks} tracks @param {string} type @param {any} value @returns {string} */
export function formatField(tracks, type, value) {
  switch (type) {
    case "tensor":
      return tracks.name(value);
    case "bytes":
      return formatBytes(value);
    case "ns":
      return formatNs(value);
    case "dims":
      return formatDims(value);
    case "bool":
      return value ? "yes" : "no";
    case "float":
      return formatFloat(value);
    case "floats":
      return Array.from(value, formatFloat).join(", ");
    case "tensors":
      return Array.from(value, (/** @type {number} */ t) => tracks.name(t)).join(", ");
    case "ints":
    case "strs":
      return Array.from(value, String).join(", ");
    case "flags":
      return (
        FLAGS.filter(([bit]) => value & Number(bit))
          .map(([, name]) => name)
          .join(", ") || "none"
      );
    default:
      return String(value);
  }
}

const FIELD = /\{(cause\.)?(\w+)(?::(\w+))?\}/g;

/** The sentence of event `i`. @param {Tracks} tracks @param {number} i */
export function sentence(tracks, i) {
  const kind = tracks.kindOf(i);
  const cause = tracks.cause[i];
  let template = kind.sentence;
  while (template && typeof template === "object") {
    template = choose(template, template.by === "cause" ? (cause < 0 ? "" : tracks.kindOf(cause).name) : tracks.field(i, template.by));
  }
  return String(template || kind.name).replace(FIELD, (whole, ofCause, field, as) => {
    const at = ofCause ? cause : i;
    const type = at < 0 ? undefined : tracks.kindOf(at).types[field];
    if (type === undefined) return whole;
    const value = tracks.field(at, field);
    return as === "size" ? formatSizes(value) : formatField(tracks, type, value);
  });
}

/** The case of a value; that of all numbers below 0, where it is one and has none of its own.
 * @param {{cases: Record<string, any>, else: any}} template @param {any} value */
function choose({ cases, else: otherwise }, value) {
  const key = formatKey(value);
  if (Object.hasOwn(cases, key)) return cases[key];
  return typeof value === "number" && value < 0 && Object.hasOwn(cases, "<0") ? cases["<0"] : otherwise;
}

/** Numbers as sizes, without their signs. @param {any} value @returns {string} */
function formatSizes(value) {
  return typeof value === "number" ? formatBytes(Math.abs(value)) : Array.from(value, formatSizes).join(", ");
}

/** @param {any} value */
function formatKey(value) {
  return typeof value === "boolean" ? (value ? "true" : "false") : String(value);
}
