// What the trace says at any event: fields of events, tables of tensors, and interval rows open at a step.

import { readContainer } from "./container.js";

/** @typedef {import("./container.js").Container} Container */

/** The first index of `values` whose value is above `value`. @param {any} values @param {number} value */
export function upperBound(values, value, lo = 0, hi = values.length) {
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (values[mid] <= value) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Interval rows: row r holds at events a[r] <= i < b[r]; sorted by a, with checkpoints every `stride` events. */
export class Track {
  /** @param {Container} columns @param {string} name */
  constructor(columns, name) {
    this.columns = columns;
    this.name = name;
    this.a = columns.column(`t.${name}.a`);
    this.b = columns.column(`t.${name}.b`);
    this.length = this.a.length;
    this.stride = columns.meta.tracks?.[name]?.stride ?? 0;
    this.ck = columns.column(`t.${name}.ck`);
    this.ckrow = columns.column(`t.${name}.ckrow`);
    /** @type {Int32Array | null} */
    this.sorted = null;
  }

  /** @param {string} column */
  col(column) {
    return this.columns.column(`t.${this.name}.${column}`);
  }

  /** The string that `column` holds in `row`. @param {string} column @param {number} row @returns {string} */
  str(column, row) {
    return this.columns.strings[this.col(column)[row]] ?? "";
  }

  /** Calls `visit` with each row open at event `i`. @param {number} i @param {(row: number) => void} visit */
  each(i, visit) {
    const { a, b, ck, ckrow, stride } = this;
    let from = -1;
    if (stride > 0 && ck.length > 1) {
      const j = Math.min(Math.floor(i / stride), ck.length - 2);
      for (let k = ck[j]; k < ck[j + 1]; k++) if (b[ckrow[k]] > i) visit(ckrow[k]);
      from = j * stride;
    }
    for (let r = upperBound(a, from); r < a.length && a[r] <= i; r++) if (b[r] > i) visit(r);
  }

  /** A number that two events share only where no row begins or ends between them. @param {number} i */
  epoch(i) {
    return upperBound(this.a, i) + upperBound(this.ends, i);
  }

  /** Where rows end, in order. */
  get ends() {
    return (this.sorted ??= Int32Array.from(this.b).sort());
  }

  /** The rows open at event `i`. @param {number} i */
  openAt(i) {
    /** @type {number[]} */
    const rows = [];
    this.each(i, (row) => rows.push(row));
    return rows;
  }
}

/**
 * @typedef {{name: string, area: string, ggml: string, ours: string, sentence: any, fields: [string, string][],
 *   index: number, types: Record<string, string>, tensorFields: string[]}} Kind
 */

export class Tracks {
  /** @param {ArrayBuffer | ArrayBufferView} bytes */
  constructor(bytes) {
    const columns = readContainer(bytes);
    this.columns = columns;
    this.meta = columns.meta;
    this.strings = columns.strings;
    this.kind = columns.column("ev.kind");
    this.node = columns.column("ev.node");
    this.cause = columns.column("ev.cause");
    this.row = columns.column("ev.row");
    this.n = this.kind.length;
    this.nTensors = columns.column("tensor.name").length;
    /** @type {Kind[]} */
    this.kinds = this.meta.kinds.map((/** @type {any} */ kind, /** @type {number} */ index) => ({
      ...kind,
      index,
      types: Object.fromEntries(kind.fields),
      tensorFields: kind.fields.filter((/** @type {any} */ f) => f[1] === "tensor").map((/** @type {any} */ f) => f[0]),
    }));
    this.kindNamed = Object.fromEntries(this.kinds.map((kind) => [kind.name, kind]));
    /** @type {Map<string, Track>} */
    this.opened = new Map();
  }

  /** @param {string} name */
  track(name) {
    let track = this.opened.get(name);
    if (!track) this.opened.set(name, (track = new Track(this.columns, name)));
    return track;
  }

  /** @param {number} i @returns {Kind} */
  kindOf(i) {
    return this.kinds[this.kind[i]];
  }

  /**
   * A field of event `i`: number, string, boolean or an array of them; undefined where its kind has no such field.
   * @param {number} i
   * @param {string} field
   * @returns {any}
   */
  field(i, field) {
    const kind = this.kindOf(i);
    const type = kind.types[field];
    if (type === undefined) return undefined;
    const row = this.row[i];
    const name = `k.${kind.name}.${field}`;
    const { columns, strings } = this;
    switch (type) {
      case "str":
        return strings[columns.column(name)[row]] ?? "";
      case "bool":
        return columns.column(name)[row] !== 0;
      case "dims":
        return columns.column(name).subarray(4 * row, 4 * row + 4);
      case "ints":
      case "tensors":
      case "strs":
      case "floats": {
        const ptr = columns.column(`${name}.ptr`);
        const values = columns.column(`${name}.val`).subarray(ptr[row], ptr[row + 1]);
        return type === "strs" ? Array.from(values, (v) => strings[v] ?? "") : values;
      }
      default:
        return columns.column(name)[row];
    }
  }

  /** The tensor that event `i` is about: its first tensor field, else the node it happened in. @param {number} i */
  tensorOf(i) {
    const kind = this.kindOf(i);
    for (const field of kind.tensorFields) {
      const t = this.columns.column(`k.${kind.name}.${field}`)[this.row[i]];
      if (t >= 0) return t;
    }
    return this.node[i];
  }

  /** Whether event `i` speaks of tensor `t`. @param {number} i @param {number} t */
  speaksOf(i, t) {
    const kind = this.kindOf(i);
    return kind.tensorFields.some((f) => this.columns.column(`k.${kind.name}.${f}`)[this.row[i]] === t);
  }

  /** A string of the tensor table: name, type, op or desc. @param {string} column @param {number} t @returns {string} */
  tensorString(column, t) {
    return this.strings[this.columns.column(`tensor.${column}`)[t]] ?? "";
  }

  /** @param {number} t */
  name(t) {
    return t < 0 ? "none" : this.tensorString("name", t) || `tensor ${t}`;
  }

  /** @param {number} t */
  ne(t) {
    return this.columns.column("tensor.ne").subarray(4 * t, 4 * t + 4);
  }

  /** @param {number} t @returns {number} */
  nbytes(t) {
    return this.columns.column("tensor.nbytes")[t] ?? 0;
  }

  /** The next event after `i` in `direction` (+1, -1) for which `test` holds, or -1.
   * @param {number} i @param {number} direction @param {(i: number) => boolean} test */
  find(i, direction, test) {
    for (let j = i + direction; j >= 0 && j < this.n; j += direction) if (test(j)) return j;
    return -1;
  }
}
