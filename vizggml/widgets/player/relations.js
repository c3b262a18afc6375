// What follows from the tracks and is asked at every step: who reads whom, where a node stands, which plan holds.

import { readPlans } from "./plans.js";
import { upperBound } from "./tracks.js";

export { MAX_CHUNKS, chunkName, chunkNumber } from "./plans.js";

/** @typedef {import("./tracks.js").Tracks} Tracks */
/** @typedef {import("./plans.js").Plan} Plan */

/** Each is worked out when it is first asked for, and kept. */
export class Relations {
  /** @param {Tracks} tracks */
  constructor(tracks) {
    this.tracks = tracks;
    /** @type {Record<string, any>} */
    this.kept = {};
  }

  /** @template T @param {string} key @param {() => T} make @returns {T} */
  keep(key, make) {
    return (this.kept[key] ??= make());
  }

  /** Tensors that `t` reads, in slot order. @param {number} t @returns {Int32Array} */
  sources(t) {
    return neighbours(this.keep("sources", () => this.adjacency("edge.dst", "edge.src")), t);
  }

  /** Tensors that read `t`. @param {number} t @returns {Int32Array} */
  consumers(t) {
    return neighbours(this.keep("consumers", () => this.adjacency("edge.src", "edge.dst")), t);
  }

  /** @param {string} from @param {string} to */
  adjacency(from, to) {
    const { columns, nTensors } = this.tracks;
    const keys = columns.column(from);
    const values = columns.column(to);
    const ptr = new Uint32Array(nTensors + 1);
    for (let e = 0; e < keys.length; e++) ptr[keys[e] + 1]++;
    for (let t = 0; t < nTensors; t++) ptr[t + 1] += ptr[t];
    const next = ptr.slice();
    const list = new Int32Array(keys.length);
    for (let e = 0; e < keys.length; e++) list[next[keys[e]]++] = values[e];
    return { ptr, list };
  }

  /** The tensor whose memory `t` looks at: itself, unless it is a view. @param {number} t */
  root(t) {
    const viewSrc = this.tracks.columns.column("tensor.view_src");
    let at = t;
    for (let hops = 0; hops < 64 && viewSrc[at] >= 0; hops++) at = viewSrc[at];
    return at;
  }

  /** For each tensor the graph it is a node (else a leaf) of and its position in execution order, -1 where none. */
  get home() {
    return this.keep("home", () => {
      const { columns, nTensors } = this.tracks;
      const graph = new Int32Array(nTensors).fill(-1);
      const position = new Int32Array(nTensors).fill(-1);
      const ptr = columns.column("graph.ptr");
      const nodes = columns.column("graph.node");
      const leafPtr = columns.column("graph.leaf_ptr");
      const leafs = columns.column("graph.leaf");
      for (let g = 0; g + 1 < ptr.length; g++) {
        for (let k = ptr[g]; k < ptr[g + 1]; k++) {
          graph[nodes[k]] = g;
          position[nodes[k]] = k - ptr[g];
        }
        for (let k = leafPtr[g]; k < leafPtr[g + 1]; k++) if (graph[leafs[k]] < 0) graph[leafs[k]] = g;
      }
      return { graph, position };
    });
  }

  /** For each event the node last worked at and the graph last spoken of, -1 before the first. */
  get focus() {
    return this.keep("focus", () => {
      const { tracks } = this;
      const graphs = tracks.kinds.map((kind) => {
        const field = kind.fields.find(([, type]) => type === "graph");
        return field ? tracks.columns.column(`k.${kind.name}.${field[0]}`) : null;
      });
      const home = this.home.graph;
      const node = new Int32Array(tracks.n);
      const graph = new Int32Array(tracks.n);
      const whole = tracks.columns.column("graph.part_of");
      for (let i = 0, n = -1, g = -1; i < tracks.n; i++) {
        const at = tracks.node[i];
        if (at >= 0) n = at;
        const said = graphs[tracks.kind[i]]?.[tracks.row[i]];
        if (said !== undefined) g = whole[said] >= 0 ? whole[said] : said;
        else if (at >= 0 && home[at] >= 0 && home[at] !== g && this.home.position[at] >= 0 && !this.has(g, at)) g = home[at];
        node[i] = n;
        graph[i] = g;
      }
      return { node, graph };
    });
  }

  /** Whether `t` is a node of a graph. @param {number} graph @param {number} t @returns {boolean} */
  has(graph, t) {
    if (graph < 0) return false;
    return this.keep(`nodes ${graph}`, () => {
      const ptr = this.tracks.columns.column("graph.ptr");
      return new Set(this.tracks.columns.column("graph.node").subarray(ptr[graph], ptr[graph + 1]));
    }).has(t);
  }

  /** The tensor in the middle of attention at event `i`, or -1. @param {number} i */
  tensorAt(i) {
    const node = this.tracks.node[i];
    return node >= 0 ? node : this.tracks.tensorOf(i);
  }

  /** Where event `i` stands in the execution order, or -1. @param {number} i */
  positionAt(i) {
    const node = this.focus.node[i];
    return node < 0 ? -1 : this.home.position[node];
  }

  /** The memory plans in the order in which they were made. @returns {Plan[]} */
  get plans() {
    return this.keep("plans", () => readPlans(this.tracks));
  }

  /** The plan that holds at event `i`, or null where none was made. @param {number} i @returns {Plan | null} */
  planAt(i) {
    const { plans } = this;
    const starts = this.keep("planStarts", () => plans.map((plan) => plan.begin));
    return plans[Math.max(0, upperBound(starts, i) - 1)] ?? null;
  }

  /** The life row of tensor `t` in the plan that holds at `i`: its own, or its twin's at the same position; -1 none.
   * @param {number} t @param {number} i */
  lifeRow(t, i) {
    const plan = this.planAt(i);
    if (!plan || t < 0) return -1;
    const root = this.root(t);
    return plan.rowOf.get(root) ?? -1;
  }

  /** Every tensor that `t` is computed from. @param {number} t @returns {Set<number>} */
  ancestors(t) {
    const seen = new Set([t]);
    const todo = [t];
    while (todo.length) {
      for (const s of this.sources(/** @type {number} */ (todo.pop()))) {
        if (!seen.has(s)) {
          seen.add(s);
          todo.push(s);
        }
      }
    }
    seen.delete(t);
    return seen;
  }
}

/** @param {{ptr: Uint32Array, list: Int32Array}} adjacency @param {number} t */
function neighbours({ ptr, list }, t) {
  return t < 0 ? list.subarray(0, 0) : list.subarray(ptr[t], ptr[t + 1]);
}
