// Where sections stand when some layers are folded: runs of closed sections become one card, the rest keep their shape.

const GAP = 36;
const GUTTER = 56;
const MARGIN = 20;
export const HEADER = 26;
const CARD = { w: 250, h: 84, second: 18 };
const MOST_COLUMNS = 96;
/** So much smaller than it could be may the graph become before open blocks are put into other columns. */
const CROWDED = 0.45;

/**
 * @typedef {{like: number, added: number[], removed: number[], changed: [number, string][]}} Differs from section `like`
 * @typedef {{id: number, label: string, layer: number, x: number, y: number, w: number, h: number, nodes: number[], differs?: Differs}} Section
 * @typedef {{graph: number, width: number, height: number, sections: Section[],
 *   nodes: {tensor: number[], section: number[], x: number[], y: number[], w: number[], h: number[]},
 *   edges: {src: number[], dst: number[], points: number[][]}, folds: {sections: number[], label: string}[]}} GraphJson
 * @typedef {{sections: number[], card: boolean, foldable: boolean, label: string, second: string, x: number, y: number, w: number,
 *   h: number, column: number}} Item a card, or one open section; `second` is what its second line says
 */

export class Folding {
  /** @param {GraphJson} graph */
  constructor(graph) {
    this.graph = graph;
    /** @type {Map<number, number>} */
    this.indexOf = new Map(graph.sections.map((s, i) => [s.id, i]));
    const n = graph.sections.length;
    this.fold = new Int32Array(n).fill(-1);
    this.folds = foldsOf(graph);
    this.folds.forEach((fold, f) => {
      for (const id of fold.sections) this.fold[this.indexOf.get(id) ?? -1] = f;
    });
    /** Rows of each section. @type {number[][]} */
    this.rows = Array.from({ length: n }, () => []);
    this.sectionOf = Int32Array.from(graph.nodes.section, (id) => this.indexOf.get(id) ?? 0);
    this.sectionOf.forEach((s, row) => this.rows[s].push(row));
    this.rowOf = rowsByTensor(graph, this.rows, this.indexOf);
    this.open = new Uint8Array(n);
    this.dx = new Float64Array(n);
    this.dy = new Float64Array(n);
    this.itemOf = new Int32Array(n);
    this.column = new Int32Array(n);
    /** Grows with every arrangement: what was drawn of an older one is stale. */
    this.version = 0;
    const { src, dst } = graph.edges;
    this.inner = edgeLists(n, src, (e) => (this.sectionOf[src[e]] === this.sectionOf[dst[e]] ? this.sectionOf[src[e]] : -1));
    this.across = Int32Array.from(src.keys()).filter((e) => this.sectionOf[src[e]] !== this.sectionOf[dst[e]]);
    const { tensor } = graph.nodes;
    /** The edges into each row, and out of each tensor's rows. */
    this.into = edgeLists(tensor.length, dst, (e) => dst[e]);
    this.outOf = edgeLists(tensor.reduce((most, t) => Math.max(most, t), 0) + 1, src, (e) => tensor[src[e]]);
    /** @type {Item[]} */
    this.items = [];
    this.width = 0;
    this.height = 0;
    this.arrange(1.5);
  }

  /** @param {number} s an index into the sections */
  foldable(s) {
    return this.fold[s] >= 0;
  }

  get closed() {
    return this.fold.some((f, s) => f >= 0 && !this.open[s]);
  }

  /** Whether row `row` is drawn as a box of its own. @param {number} row */
  shown(row) {
    const s = this.sectionOf[row];
    return !this.foldable(s) || this.open[s] === 1;
  }

  /** @param {number} row */
  x(row) {
    return this.graph.nodes.x[row] + this.dx[this.sectionOf[row]];
  }

  /** @param {number} row */
  y(row) {
    return this.graph.nodes.y[row] + this.dy[this.sectionOf[row]];
  }

  /** Opens or closes sections. What stays keeps its column, unless that would make all too small.
   * @param {number[]} sections @param {boolean} open @param {number} aspect */
  set(sections, open, aspect) {
    for (const s of sections) if (this.foldable(s)) this.open[s] = open ? 1 : 0;
    const items = this.makeItems();
    for (const item of items) item.column = this.column[item.sections[0]];
    const kept = stand(items);
    const fit = Math.min(aspect / kept.width, 1 / kept.height);
    const { items: free, scale } = this.bestColumns(aspect);
    if (fit > CROWDED * scale) this.adopt(items);
    else this.adopt(free);
  }

  /** Puts cards and open sections one under the other, in as many columns as fill a pane of that aspect best.
   * @param {number} aspect width over height */
  arrange(aspect) {
    this.adopt(this.bestColumns(aspect).items);
  }

  /** @param {number} aspect */
  bestColumns(aspect) {
    const items = this.makeItems();
    let best = 1;
    let bestScale = -1;
    for (let columns = 1; columns <= Math.min(items.length, MOST_COLUMNS); columns += 1 + (columns >> 4)) {
      const { width, height } = place(items, columns);
      const scale = Math.min(aspect / width, 1 / height);
      if (scale > bestScale * 1.02) [best, bestScale] = [columns, scale];
    }
    place(items, best);
    return { items, scale: bestScale };
  }

  /** @param {Item[]} items where they are to stand */
  adopt(items) {
    Object.assign(this, stand(items), { items });
    this.version++;
    items.forEach((item, k) => {
      for (const s of item.sections) {
        this.itemOf[s] = k;
        this.column[s] = item.column;
        const section = this.graph.sections[s];
        this.dx[s] = item.x - section.x;
        this.dy[s] = item.y - section.y;
      }
    });
  }

  /** What a section is unlike, in a few words; nothing where it is like the others. @param {number} s */
  unlike(s) {
    const d = this.graph.sections[s].differs;
    if (!d) return "";
    const parts = [];
    const nodes = (/** @type {number[]} */ list) => `${list.length} node${list.length > 1 ? "s" : ""}`;
    if (d.added.length) parts.push(`+${nodes(d.added)}`);
    if (d.removed.length) parts.push(`−${nodes(d.removed)}`);
    if (d.changed.length) parts.push(`${d.changed.length} changed`);
    return `unlike ${this.graph.sections[this.indexOf.get(d.like) ?? 0].label}: ${parts.join(", ")}`;
  }

  /** @returns {Item[]} */
  makeItems() {
    const { graph: { sections }, folds } = this;
    /** @type {Item[]} */
    const items = [];
    let run = -1;
    sections.forEach((section, s) => {
      const fold = this.fold[s];
      const last = items[items.length - 1];
      const base = { x: 0, y: 0, column: 0 };
      if (fold < 0 || this.open[s]) {
        items.push({ ...base, sections: [s], card: false, foldable: fold >= 0, label: section.label, second: this.unlike(s), w: section.w, h: section.h });
        run = -1;
      } else if (fold === run) {
        last.sections.push(s);
      } else {
        items.push({ ...base, sections: [s], card: true, foldable: true, label: "", second: "", w: CARD.w, h: CARD.h });
        run = fold;
      }
    });
    for (const item of items) {
      if (!item.card) continue;
      const n = item.sections.length;
      const fold = folds[this.fold[item.sections[0]]];
      const [, word, inTurn] = /^(.*?)(?:\s*[x×]\s*\d+)?(?:, (.*))?$/.exec(fold.label) ?? [];
      item.label = n === 1 ? sections[item.sections[0]].label : `${word || "block"} × ${n}`;
      item.second = n === 1 ? this.unlike(item.sections[0]) : inTurn ?? "";
      if (item.second) item.h += CARD.second;
    }
    return items;
  }

  /** A line from a box, or the card it is folded into, to another; null inside one card. @param {number} edge */
  crossing(edge) {
    const { src, dst } = this.graph.edges;
    const from = this.anchor(src[edge]);
    const to = this.anchor(dst[edge]);
    if (from.item === to.item && from.card) return null;
    return { key: `${from.key}>${to.key}`, from, to };
  }

  /** @param {number} row */
  anchor(row) {
    const item = this.items[this.itemOf[this.sectionOf[row]]];
    if (item.card) {
      const at = { x: item.x + item.w / 2, y: item.y + item.h / 2, w: item.w, h: item.h };
      return { ...at, item, card: true, key: `c${item.sections[0]}` };
    }
    const { w, h } = this.graph.nodes;
    return { x: this.x(row), y: this.y(row), w: w[row], h: h[row], item, card: false, key: `r${row}` };
  }
}

/** Shares the items out over columns of about the same height. @param {Item[]} items @param {number} columns */
function place(items, columns) {
  const total = items.reduce((sum, item) => sum + item.h + GAP, 0);
  let column = 0;
  let filled = 0;
  for (const item of items) {
    if (filled > 0 && column + 1 < columns && filled + (item.h + GAP) / 2 > (total * (column + 1)) / columns) column++;
    item.column = column;
    filled += item.h + GAP;
  }
  return stand(items);
}

/** Puts the items of each column one under the other. @param {Item[]} items */
function stand(items) {
  const n = items.reduce((most, item) => Math.max(most, item.column), 0) + 1;
  const wide = new Float64Array(n);
  for (const item of items) wide[item.column] = Math.max(wide[item.column], item.w);
  const left = new Float64Array(n);
  for (let c = 0, x = MARGIN; c < n; x += wide[c] + GUTTER, c++) left[c] = x;
  const y = new Float64Array(n).fill(MARGIN);
  for (const item of items) {
    item.x = left[item.column] + (wide[item.column] - item.w) / 2;
    item.y = y[item.column];
    y[item.column] += item.h + GAP;
  }
  return { width: left[n - 1] + wide[n - 1] + MARGIN, height: Math.max(...y) - GAP + MARGIN };
}

/** The edges under each of `n` keys; -1 for none. @param {number} n @param {number[]} edges @param {(e: number) => number} key */
function edgeLists(n, edges, key) {
  const ptr = new Uint32Array(n + 1);
  for (let e = 0; e < edges.length; e++) if (key(e) >= 0) ptr[key(e) + 1]++;
  for (let k = 0; k < n; k++) ptr[k + 1] += ptr[k];
  const next = ptr.slice();
  const list = new Int32Array(ptr[n]);
  for (let e = 0; e < edges.length; e++) if (key(e) >= 0) list[next[key(e)]++] = e;
  return (/** @type {number} */ k) => (k >= 0 && k < n ? list.subarray(ptr[k], ptr[k + 1]) : list.subarray(0, 0));
}

/** The layout's folds, and, in a graph that has some, each layer that is built like no other as a fold of its own.
 * @param {GraphJson} graph */
function foldsOf(graph) {
  const folded = new Set(graph.folds.flatMap((fold) => fold.sections));
  if (!folded.size) return graph.folds;
  const alone = graph.sections.filter((s) => s.layer >= 0 && !folded.has(s.id));
  return [...graph.folds, ...alone.map((s) => ({ sections: [s.id], label: s.label }))];
}

/** The row that stands for each tensor: where it is computed, else its first copy.
 * @param {GraphJson} graph @param {number[][]} rows @param {Map<number, number>} indexOf */
function rowsByTensor(graph, rows, indexOf) {
  /** @type {Map<number, number>} */
  const rowOf = new Map();
  for (const section of graph.sections) {
    const own = new Set(section.nodes);
    for (const row of rows[indexOf.get(section.id) ?? 0]) {
      const t = graph.nodes.tensor[row];
      if (own.has(t) || !rowOf.has(t)) rowOf.set(t, row);
    }
  }
  return rowOf;
}
