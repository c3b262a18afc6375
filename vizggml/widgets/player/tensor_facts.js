// What the tracks say of one tensor at a step: its layout, its chain of views, its life, its place, its values.

import { chunkName } from "./relations.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./relations.js").Relations} Relations */
/** @typedef {import("./tracks.js").Tracks} Tracks */
/** @typedef {{ne: number[], nb: number[], blck: number, size: number}} Shape `blck` elements and `size` bytes of a block */
/** @typedef {{contiguous: boolean, contiguous_1: boolean, contiguous_2: boolean, contiguous_rows: boolean, permuted: boolean,
 *   transposed: boolean}} Layout what ggml's functions of these names say */
/** @typedef {{dim: number, nb: number, n: number, inner: number}} Jump `n` steps of `nb` bytes; `inner` is what one step spans */

/** @param {Tracks} tracks @param {number} t @returns {Shape} */
export function shapeOf(tracks, t) {
  const table = (/** @type {string} */ name) => tracks.columns.column(`tensor.${name}`);
  return {
    ne: Array.from(tracks.ne(t)),
    nb: Array.from(table("nb").subarray(4 * t, 4 * t + 4)),
    blck: table("blck_size")[t] ?? 1,
    size: table("type_size")[t] ?? 0,
  };
}

/** `ggml_is_contiguous_n`: no gaps above dimension `from`. @param {Shape} shape @param {number} from */
function isContiguous({ ne, nb, blck, size }, from) {
  if (ne[0] !== blck && nb[0] !== size) return false;
  let next = size * Math.floor(ne[0] / blck);
  for (let d = 1; d < 4; d++) {
    if (d > from) {
      if (ne[d] !== 1 && nb[d] !== next) return false;
      next *= ne[d];
    } else {
      next = ne[d] * nb[d];
    }
  }
  return true;
}

/** @param {Shape} shape @returns {Layout} */
export function layoutOf(shape) {
  const { ne, nb, blck, size } = shape;
  return {
    contiguous: isContiguous(shape, 0),
    contiguous_1: isContiguous(shape, 1),
    contiguous_2: isContiguous(shape, 2),
    contiguous_rows: ne[0] === blck || nb[0] === size,
    permuted: nb[0] > nb[1] || nb[1] > nb[2] || nb[2] > nb[3],
    transposed: nb[0] > nb[1],
  };
}

/** A layout in a few words. @param {Layout} layout */
export function layoutWords(layout) {
  if (layout.contiguous) return "contiguous: no gaps";
  if (layout.transposed) return "transposed: nb[0] > nb[1]";
  if (layout.permuted) return "permuted: strides out of order";
  return layout.contiguous_rows ? "rows contiguous, gaps between" : "strided: gaps within rows";
}

/** The dimensions in the order in which memory walks them. @param {Shape} shape @returns {Jump[]} */
export function walkOf({ ne, nb, blck, size }) {
  const steps = ne.map((n, d) => ({ dim: d, nb: nb[d], n: d === 0 ? Math.ceil(n / blck) : n })).filter((s) => s.n > 1);
  let inner = size;
  return steps
    .sort((p, q) => p.nb - q.nb || p.dim - q.dim)
    .map((step) => {
      const jump = { ...step, inner };
      inner += (step.n - 1) * step.nb;
      return jump;
    });
}

// ---- events by tensor

/** For each tensor the events of `kind` that name it in `field`, in order. @param {Player} player @param {string} kind
 * @param {string} field @param {number} t @returns {ArrayLike<number>} */
export function eventsOf({ tracks, relations }, kind, field, t) {
  const index = relations.keep(`events ${kind}.${field}`, () => {
    const known = tracks.kindNamed[kind];
    const names = tracks.columns.column(`k.${kind}.${field}`);
    const ptr = new Uint32Array(tracks.nTensors + 1);
    for (let r = 0; r < names.length; r++) if (names[r] >= 0) ptr[names[r] + 1]++;
    for (let k = 0; k < tracks.nTensors; k++) ptr[k + 1] += ptr[k];
    const next = ptr.slice();
    const list = new Int32Array(names.length);
    if (known && names.length) {
      for (let i = 0, r = 0; i < tracks.n && r < names.length; i++) {
        if (tracks.kind[i] !== known.index) continue;
        if (names[r] >= 0) list[next[names[r]]++] = i;
        r++;
      }
    }
    return { ptr, list };
  });
  return index.list.subarray(index.ptr[t], index.ptr[t + 1]);
}

/** The newest of `events` at or before `step`, else the next one; -1 where none is from `from` to before `to`.
 * @param {ArrayLike<number>} events @param {number} step @param {number} [from] @param {number} [to] */
export function nearest(events, step, from = 0, to = Infinity) {
  let found = -1;
  for (let k = 0; k < events.length; k++) {
    const i = events[k];
    if (i < from || i >= to) continue;
    if (i > step && found >= 0) break;
    found = i;
    if (i > step) break;
  }
  return found;
}

/** The rows of a track that are of `t`, in order. @param {Player} player @param {string} name @param {number} t
 * @returns {ArrayLike<number>} */
function rowsOf({ tracks, relations }, name, t) {
  const { ptr, list } = relations.keep(`rows ${name}`, () => {
    const track = tracks.track(name);
    const tensor = track.col("tensor");
    const starts = new Uint32Array(tracks.nTensors + 1);
    for (let r = 0; r < track.length; r++) if (tensor[r] >= 0) starts[tensor[r] + 1]++;
    for (let k = 0; k < tracks.nTensors; k++) starts[k + 1] += starts[k];
    const next = starts.slice();
    const rows = new Int32Array(track.length);
    for (let r = 0; r < track.length; r++) if (tensor[r] >= 0) rows[next[tensor[r]]++] = r;
    return { ptr: starts, list: rows };
  });
  return list.subarray(ptr[t], ptr[t + 1]);
}

/** The row of a track that holds `t` at `step`, or -1. @param {Player} player @param {string} name @param {number} t @param {number} step */
export function rowAt(player, name, t, step) {
  const rows = rowsOf(player, name, t);
  const { a, b } = player.tracks.track(name);
  for (let k = rows.length - 1; k >= 0; k--) if (a[rows[k]] <= step) return b[rows[k]] > step ? rows[k] : -1;
  return -1;
}

/** Whether a track has held `t` by `step`. @param {Player} player @param {string} name @param {number} t @param {number} step */
export function wasThere(player, name, t, step) {
  const rows = rowsOf(player, name, t);
  return rows.length > 0 && player.tracks.track(name).a[rows[0]] <= step;
}

// ---- views

/** @typedef {{tensor: number, offs: number}} Link bytes from `offs` on of `tensor` */

/** What `t` was made a view of, and that of, to the first that is no view; and what ggml made of it.
 * @param {Player} player @param {number} t @returns {{asked: Link[], flat: Link | null}} */
export function chainOf(player, t) {
  const { tracks, relations } = player;
  const viewSrc = tracks.columns.column("tensor.view_src");
  const made = relations.keep("view rows", () => {
    const tensor = tracks.columns.column("k.ViewCreated.tensor");
    return new Map(Array.from(tensor, (view, row) => /** @type {const} */ ([view, row])));
  });
  const askedSrc = tracks.columns.column("k.ViewCreated.asked_src");
  const askedOffs = tracks.columns.column("k.ViewCreated.asked_offs");
  /** @type {Link[]} */
  const asked = [];
  for (let at = t; asked.length < 16; ) {
    const row = made.get(at);
    if (row === undefined || askedSrc[row] < 0) break;
    at = askedSrc[row];
    asked.push({ tensor: at, offs: askedOffs[row] });
  }
  const flat = viewSrc[t] >= 0 ? { tensor: viewSrc[t], offs: tracks.columns.column("tensor.view_offs")[t] } : null;
  return { asked: asked.length || !flat ? asked : [flat], flat };
}

// ---- memory

/**
 * @typedef {{offset: number, size: number, padded: number, where: string, first: number, last: number, positions: number, reuses: number, heirs: number[],
 *   before: number, after: number, freedBy: number, freedAt: number, twinFreedAt: number, assignedAt: number}} Life `padded` is the size that was looked for, -1 where the plan
 *   was not made for this tensor itself; `heirs` took its memory in place; `before`
 *   had some of its bytes last, `after` gets some of them next; `twinFreedAt` is of
 *   the tensor in its place in the graph that was reserved; events and tensors are -1 where there is none
 */

/** The plan that has a place for `t`: the newest at `step`, else the next one. @param {Relations} relations @param {number} t @param {number} step */
function planOf({ plans }, t, step) {
  let found = null;
  for (const plan of plans) {
    if (!plan.rowOf.has(t)) continue;
    if (plan.begin > step && found) break;
    found = plan;
  }
  return found;
}

/** The life of the bytes of `t` in the plan that holds at `step`, or in that which had them. @param {Player} player @param {number} t @param {number} step
 * @returns {Life | null} */
export function lifeAt(player, t, step) {
  const { tracks, relations } = player;
  const root = relations.root(t);
  const plan = planOf(relations, root, step);
  const row = plan?.rowOf.get(root);
  if (!plan || row === undefined) return null;
  const [from, to] = windowOf(relations, plan, tracks.n);
  const fixed = relations.keep(`life ${row}`, () => neighboursOf(tracks, plan, row));
  const life = tracks.track("life");
  const cell = (/** @type {string} */ name) => life.col(name)[row];
  const assigned = nearest(eventsOf(player, "TensorAssigned", "tensor", root), step, from, to);
  const searched = nearest(eventsOf(player, "SearchBegin", "tensor", root), step, from, to);
  return {
    ...fixed,
    offset: cell("offset"),
    size: cell("size"),
    padded: searched >= 0 ? tracks.field(searched, "size") : -1,
    where: chunkName(plan, cell("chunk")),
    first: cell("first"),
    last: cell("last"),
    positions: plan.positions,
    reuses: cell("reuses"),
    freedBy: cell("freed_by"),
    freedAt: nearest(eventsOf(player, "TensorFreed", "tensor", root), step, from, to),
    twinFreedAt: twinFreed(player, root, plan.begin),
    assignedAt: assigned >= 0 ? assigned : nearest(eventsOf(player, "ParentReused", "tensor", root), step, from, to),
  };
}

/** Where the tensor was freed that stands in the place of `t` in the newest graph of its form that was reserved before; -1 for none.
 * @param {Player} player @param {number} t @param {number} before */
function twinFreed(player, t, before) {
  const { tracks, relations } = player;
  const { graph, position } = relations.home;
  if (graph[t] < 0 || position[t] < 0) return -1;
  return relations.keep(`twin of ${t} before ${before}`, () => {
    const ptr = tracks.columns.column("graph.ptr");
    const nodes = tracks.columns.column("graph.node");
    const count = (/** @type {number} */ g) => ptr[g + 1] - ptr[g];
    for (let i = before; i >= 0; i--) {
      if (tracks.kindOf(i).name !== "ReserveBegin") continue;
      const g = tracks.field(i, "graph");
      if (g < 0 || g === graph[t] || count(g) !== count(graph[t])) continue;
      const twin = nodes[ptr[g] + position[t]];
      if (tracks.name(twin) !== tracks.name(t)) continue;
      const freed = nearest(eventsOf(player, "TensorFreed", "tensor", twin), tracks.n, i);
      if (freed >= 0) return freed;
    }
    return -1;
  });
}

/** From where to where a plan holds. @param {Relations} relations @param {import("./relations.js").Plan} plan @param {number} n */
function windowOf({ plans }, plan, n) {
  return [plan.begin, plans[plans.indexOf(plan) + 1]?.begin ?? n];
}

/** Who had the bytes of a life before and who gets them after. @param {Tracks} tracks @param {import("./relations.js").Plan} plan
 * @param {number} row */
function neighboursOf(tracks, plan, row) {
  const life = tracks.track("life");
  const [chunk, offset, size, first, last, tensor, reuses] = ["chunk", "offset", "size", "first", "last", "tensor", "reuses"].map((c) => life.col(c));
  const heirs = [];
  let [before, after] = [-1, -1];
  for (const r of plan.rows) {
    if (r === row || chunk[r] !== chunk[row]) continue;
    if (reuses[r] === tensor[row]) heirs.push(tensor[r]);
    if (offset[r] >= offset[row] + size[row] || offset[r] + size[r] <= offset[row]) continue;
    if (last[r] < first[row] && (before < 0 || last[r] > last[before])) before = r;
    if (first[r] > last[row] && (after < 0 || first[r] < first[after])) after = r;
  }
  return { heirs, before: before < 0 ? -1 : tensor[before], after: after < 0 ? -1 : tensor[after] };
}

/** Where `t` lies in a buffer at `step`. @param {Player} player @param {number} t @param {number} step
 * @returns {{buffer: number, name: string, offset: number, size: number} | null} */
export function placeAt(player, t, step) {
  const { tracks } = player;
  const row = rowAt(player, "place", t, step);
  if (row < 0) return null;
  const place = tracks.track("place");
  const buffers = tracks.track("buffer");
  const buffer = place.col("buffer")[row];
  const held = buffers.openAt(step).find((r) => buffers.col("buffer")[r] === buffer);
  const name = held === undefined ? "" : buffers.str("buft", held);
  return { buffer, name, offset: place.col("offset")[row], size: place.col("size")[row] };
}

// ---- values

/** @typedef {{row: number, event: number, evaluation: number, later: boolean}} Taken taken after `event`; `later` where that is to come */

/** The newest values of `t` at `step`, else the first to come; null where there are none. @param {Player} player @param {number} t
 * @param {number} step @returns {Taken | null} */
export function valuesAt({ tracks, relations }, t, step) {
  const events = tracks.columns.column("v.event");
  const rows = relations.keep("value rows", () => {
    /** @type {Map<number, number[]>} */
    const made = new Map();
    tracks.columns.column("v.tensor").forEach((/** @type {number} */ tensor, /** @type {number} */ r) => {
      const list = made.get(tensor);
      if (list) list.push(r);
      else made.set(tensor, [r]);
    });
    return made;
  }).get(t);
  if (!rows) return null;
  let row = rows[0];
  for (const r of rows) if (events[r] <= step + 1) row = r;
  const event = Math.max(0, events[row] - 1);
  const evaluations = tracks.track("eval");
  const open = evaluations.openAt(event);
  return { row, event, evaluation: open.length ? evaluations.col("index")[open[0]] : -1, later: event > step };
}
