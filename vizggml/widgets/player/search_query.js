// What is asked for in the search: words, and terms for op, type, name, size and layer.

/** @typedef {import("./tracks.js").Tracks} Tracks */
/** @typedef {(t: number) => boolean} Test */

const UNITS = /** @type {Record<string, number>} */ ({ "": 1, b: 1, k: 1024, kib: 1024, kb: 1000, m: 1024 ** 2, mib: 1024 ** 2, mb: 1e6, g: 1024 ** 3, gib: 1024 ** 3, gb: 1e9 });
const LAYER = /(?:^|\s)(?:layer|blk|block)(?::|\s+)(\d+)(?=\s|$)/gi;
const SIZE = /^([<>]=?)(\d+(?:\.\d+)?)\s*([kmg]?i?b?)$/i;
const FIELD = /^(op|type|name):(.+)$/i;

/**
 * The test of a query, all of whose terms must hold; null for an empty one. `layerOf` is a tensor's layer, -1 for none.
 * @param {Tracks} tracks @param {string} query @param {(t: number) => number} layerOf @returns {Test | null}
 */
export function parseQuery(tracks, query, layerOf) {
  /** @type {Test[]} */
  const tests = [];
  const rest = query.replace(LAYER, (_, number) => {
    tests.push((t) => layerOf(t) === Number(number));
    return " ";
  });
  for (const word of rest.replace(/([<>]=?)\s+/g, "$1").trim().toLowerCase().split(/\s+/).filter(Boolean)) {
    const size = SIZE.exec(word);
    const field = FIELD.exec(word);
    if (size && size[3] in UNITS) tests.push(sizeTest(tracks, size[1], Number(size[2]) * UNITS[size[3]]));
    else if (field) tests.push(fieldTest(tracks, field[1], field[2]));
    else tests.push((t) => ["name", "op", "desc", "type"].some((c) => tracks.tensorString(c, t).toLowerCase().includes(word)));
  }
  return tests.length ? (t) => tests.every((test) => test(t)) : null;
}

/** @param {Tracks} tracks @param {string} compare @param {number} bytes @returns {Test} */
function sizeTest(tracks, compare, bytes) {
  if (compare === ">") return (t) => tracks.nbytes(t) > bytes;
  if (compare === ">=") return (t) => tracks.nbytes(t) >= bytes;
  return compare === "<" ? (t) => tracks.nbytes(t) < bytes : (t) => tracks.nbytes(t) <= bytes;
}

/** @param {Tracks} tracks @param {string} field @param {string} wanted @returns {Test} */
function fieldTest(tracks, field, wanted) {
  const columns = field === "op" ? ["op", "desc"] : [field];
  return (t) => columns.some((c) => tracks.tensorString(c, t).toLowerCase().includes(wanted));
}
