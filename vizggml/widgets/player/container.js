// The columns container: a header in JSON and typed arrays behind it, read in place.

const MAGIC = [0x56, 0x47, 0x43, 0x4f, 0x4c, 0, 0, 1];
const SCHEMA = 2;

/** @typedef {Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array} Column */

/** @type {Record<string, {new (b: ArrayBuffer, o: number, n: number): any, BYTES_PER_ELEMENT: number}>} */
const ARRAYS = { u1: Uint8Array, i4: Int32Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

/**
 * The container in `bytes`. Errors name what is wrong; nothing is copied unless the bytes begin off an 8-byte boundary.
 * @param {ArrayBuffer | ArrayBufferView} bytes
 * @param {string} kind what it must hold
 */
export function readContainer(bytes, kind = "tracks") {
  const { buffer, start, length } = aligned(bytes);
  const head = new Uint8Array(buffer, start, Math.min(length, 16));
  if (length < 16 || MAGIC.some((byte, i) => head[i] !== byte)) {
    throw new Error(`tracks: ${length} bytes do not begin as a columns container does`);
  }
  const headerLength = new DataView(buffer, start).getUint32(8, true);
  if (16 + headerLength > length) {
    throw new Error(`tracks: a header of ${headerLength} bytes ends past the data (${length} bytes)`);
  }
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start + 16, headerLength)));
  if (header.schema !== SCHEMA) throw new Error(`tracks: schema ${header.schema}, this player reads schema ${SCHEMA}`);
  if (header.kind !== kind) throw new Error(`${kind}: the container holds ${header.kind}, not ${kind}`);
  const origin = start + Math.ceil((16 + headerLength) / 8) * 8;
  return new Container(header, buffer, origin, start + length);
}

/**
 * @param {ArrayBuffer | ArrayBufferView} bytes
 * @returns {{buffer: ArrayBuffer, start: number, length: number}}
 */
function aligned(bytes) {
  if (bytes instanceof ArrayBuffer) return { buffer: bytes, start: 0, length: bytes.byteLength };
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteOffset % 8 === 0 && bytes.buffer instanceof ArrayBuffer) {
    return { buffer: bytes.buffer, start: bytes.byteOffset, length: bytes.byteLength };
  }
  return { buffer: view.slice().buffer, start: 0, length: bytes.byteLength };
}

export class Container {
  /**
   * @param {any} header
   * @param {ArrayBuffer} buffer
   * @param {number} origin where the columns begin
   * @param {number} end
   */
  constructor(header, buffer, origin, end) {
    this.meta = header.meta;
    /** @type {string[]} */
    this.strings = header.strings;
    this.specs = header.columns;
    this.buffer = buffer;
    this.origin = origin;
    this.end = end;
    /** @type {Map<string, Column>} */
    this.views = new Map();
  }

  /** @param {string} name */
  has(name) {
    return Object.hasOwn(this.specs, name);
  }

  /**
   * The column's values, rows one after another; an empty column where there is none of that name.
   * @param {string} name
   * @returns {any}
   */
  column(name) {
    const known = this.views.get(name);
    if (known) return known;
    const view = this.has(name) ? this.open(name) : new Float64Array(0);
    this.views.set(name, view);
    return view;
  }

  /** @param {string} name @returns {Column} */
  open(name) {
    const { dtype, shape, offset } = this.specs[name];
    const type = ARRAYS[dtype];
    if (!type) throw new Error(`column ${name}: type ${dtype} is none of ${Object.keys(ARRAYS).join(", ")}`);
    const n = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
    const from = this.origin + offset;
    if (!(offset >= 0) || from + n * type.BYTES_PER_ELEMENT > this.end) {
      throw new Error(`column ${name}: ${n} values at ${offset} end past the data (${this.end - this.origin} bytes)`);
    }
    return new type(this.buffer, from, n);
  }
}
