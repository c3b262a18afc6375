// The KV cache: which cells hold which tokens, and in which layers their keys and values are by now.

import { listenBrush } from "./brush.js";
import { DetailPlot, counted } from "./detail_plot.js";
import { el } from "./dom.js";
import { headsWords, makeFacts, sequenceKeys } from "./kv_facts.js";
import { cellAt, paintKv, placesOf, xOf } from "./kv_paint.js";
import { cellsOf, kvAt, lastChange, pairsOf, sees, sequencesOf } from "./kv_state.js";
import { formatBytes } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {import("./kv_state.js").KvState} KvState */

const FACTS = { width: 560, height: 190 };
const FEWEST = 32;

/** @type {import("./details.js").Detail} */
export const kvDetail = {
  name: "kv",
  title: "KV cache",
  has: ({ tracks }) => tracks.track("cell").length > 0 || tracks.track("cache").length > 0,
  make: (player, pane) => (pairsOf(player).length ? new KvPair(player, pane) : new KvView(player, pane)),
};

/** Two caches, one over the other: of the layers that see everything, and of those with a window. */
class KvPair {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.views = [new KvView(player, pane, 0), new KvView(player, pane, 1)];
    this.tools = this.views.flatMap((view) => view.tools);
    this.element = el("div", "vg-stack vg-kv-pair", {}, this.views.map((view) => view.element));
  }

  /** @param {number} step */
  draw(step) {
    for (const view of this.views) view.draw(step);
    const alone = !this.views[1].state;
    for (const element of [this.views[1].element, this.views[1].button]) if (element.hidden !== alone) element.hidden = alone;
  }

  stop() {
    for (const view of this.views) view.stop();
  }
}

/** The model's layers, runs of them as such. @param {number[]} layers */
function layersWords(layers) {
  /** @type {string[]} */
  const words = [];
  for (let k = 0; k < layers.length; k++) {
    let to = k;
    while (to + 1 < layers.length && layers[to + 1] === layers[to] + 1) to++;
    words.push(to > k ? `${layers[k]} to ${layers[to]}` : String(layers[k]));
    k = to;
  }
  return `layer${layers.length === 1 ? "" : "s"} ${words.join(", ")}`;
}

class KvView extends DetailPlot {
  /** @param {Player} player @param {Pane} pane @param {number} [which] of two caches, the second with a window */
  constructor(player, pane, which) {
    super(player, pane, {
      title: which === 1 ? "KV cache of the layers with a window" : "KV cache",
      keys: "cell by cell",
      empty: "No cache stands at this step. Record a context of a model: with vg.record() as trace: ctx.decode(tokens).",
    });
    /** @type {KvState | null} */
    this.state = null;
    this.which = which ?? 0;
    this.paired = which !== undefined;
    this.named = which === 1 ? "All cells of the window" : "All cells";
    this.mine = new Uint8Array(0);
    /** The cells that are drawn, null for those that the trace uses. @type {{from: number, to: number} | null} */
    this.zoomed = null;
    /** @type {{from: number, to: number} | null} */
    this.brush = null;
    this.all = false;
    this.button = el("button", "vg-button vg-text-button", { type: "button", text: this.named, "aria-pressed": "false", title: "Show the whole cache, or the cells that the trace uses" });
    this.button.addEventListener("click", () => this.toggleAll());
    this.tools = [this.button];
    this.foot = el("div", "vg-kv-foot");
    this.facts = el("aside", "vg-kv-facts", { "aria-label": "Of this cache" });
    this.shown = -1;
    this.main.append(this.foot);
    this.element.classList.add("vg-kv");
    this.element.append(this.facts);
    this.sizer = new ResizeObserver((entries) => {
      const { width, height } = entries[entries.length - 1].contentRect;
      this.element.classList.toggle("vg-low", width < FACTS.width || height < FACTS.height);
    });
    this.sizer.observe(this.element);
    listenBrush(this, (event) => (this.state ? { from: event.offsetX, to: event.offsetX } : null));
  }

  /** @param {import("./brush.js").Drag} drag */
  zoomBy(drag) {
    const { state } = this;
    if (!state) return;
    const places = this.places(state);
    const [a, b] = [cellAt(places, drag.from), cellAt(places, drag.to)].sort((p, q) => p - q);
    const from = Math.max(0, a);
    this.zoomTo({ from, to: Math.min(state.shape.nCells, Math.max(from + 4, b + 1)) });
  }

  /** @param {{from: number, to: number} | null} range */
  zoomTo(range) {
    this.zoomed = range;
    this.button.textContent = range ? "Zoom out" : this.named;
    this.player.redraw(this.pane);
  }

  toggleAll() {
    if (this.zoomed) return this.zoomTo(null);
    this.all = !this.all;
    this.button.setAttribute("aria-pressed", String(this.all));
    this.player.redraw(this.pane);
  }

  /** @param {KvState} state */
  rangeOf({ shape }) {
    if (this.zoomed && this.zoomed.to <= shape.nCells) return this.zoomed;
    const used = Math.max(FEWEST, Math.ceil(shape.used / 8) * 8);
    return { from: 0, to: this.all ? shape.nCells : Math.min(shape.nCells, used) };
  }

  /** @param {KvState} state */
  places(state) {
    return placesOf(state, this.rangeOf(state), this.surface.width, this.surface.height);
  }

  /** @param {number} step */
  prepare(step) {
    const state = (this.state = kvAt(this.player, step, this.which));
    if (!state) return null;
    this.mine = cellsOf(this.player, step, state, state.newest.seq);
    if (this.shown !== state.shape.cache) this.showFacts(state);
    const { taken, shape, sequences, nKv } = state;
    const each = (shape.bytesK + shape.bytesV) / Math.max(1, shape.nCells);
    const bytes = each ? ` (${formatBytes(Math.round(each * taken))} of ${formatBytes(shape.bytesK + shape.bytesV)})` : "";
    const parts = [...sequences].sort((p, q) => p[0] - q[0]).map(([seq, n]) => `sequence ${seq}: ${n}`);
    const change = lastChange(this.player, step, shape.cache);
    const sight = this.paired ? (shape.window ? `Last ${shape.window} positions: ` : "Every position: ") : "";
    const looked = nKv ? `attention looks at the first ${nKv} (n_kv)` : "";
    return {
      strong: `${sight}${taken} of ${counted(shape.nCells, "cell")} taken${bytes}`,
      rest: [this.paired ? layersWords(shape.layers) : "", change, parts.slice(0, 6).join(", "), looked].filter(Boolean).join("; "),
    };
  }

  /** @param {KvState} state */
  showFacts({ shape }) {
    this.shown = shape.cache;
    makeFacts(this.facts, shape);
    const sides = shape.typeK ? `K ${shape.typeK} ${formatBytes(shape.bytesK)}, V ${shape.typeV} ${formatBytes(shape.bytesV)}` : "";
    const words = [sides, counted(shape.nLayer, "layer"), headsWords(shape)].filter(Boolean).join("; ");
    this.foot.replaceChildren(...sequenceKeys(shape), el("span", "", { text: words }));
    this.foot.title = words;
  }

  /** @param {CanvasRenderingContext2D} c @param {number} _w @param {number} h @param {number} step */
  paint(c, _w, h, step) {
    const { state, player } = this;
    if (!state) return;
    const places = this.places(state);
    paintKv(player, c, state, places, this.marksAt(step, state), this.mine, this.cursor);
    if (!this.brush) return;
    c.globalAlpha = 0.16;
    c.fillStyle = player.palette.accent;
    c.fillRect(Math.min(this.brush.from, this.brush.to), 0, Math.abs(this.brush.to - this.brush.from), h);
    c.globalAlpha = 1;
  }

  /** What the step's event speaks of. @param {number} step @param {KvState} state */
  marksAt(step, state) {
    const { tracks } = this.player;
    const kind = tracks.kindOf(step).name;
    /** @type {import("./kv_paint.js").Marks} */
    const marks = { cells: new Set(), gone: false, found: false, layer: -1, which: 0 };
    if (this.paired && tracks.kindOf(step).fields.some(([name]) => name === "cache") && tracks.field(step, "cache") !== state.shape.cache) return marks;
    if (kind === "CellSet" || kind === "CellFreed" || kind === "WindowEvicted") {
      marks.cells.add(tracks.field(step, "cell"));
      marks.gone = kind !== "CellSet";
    } else if (kind === "CellsFound") {
      marks.cells = new Set(tracks.field(step, "cells"));
      marks.found = true;
    } else if (kind === "KvWritten") {
      marks.layer = state.shape.layers.indexOf(tracks.field(step, "layer"));
      marks.which = tracks.field(step, "which") === "V" ? 1 : 0;
    } else if (kind === "SeqOp") {
      const [seq, p0, p1] = ["seq_id", "p0", "p1"].map((name) => tracks.field(step, name));
      const mine = seq < 0 ? null : cellsOf(this.player, step, state, seq);
      state.pos.forEach((pos, cell) => {
        if (pos >= p0 && pos < p1 && pos >= 0 && (!mine || mine[cell])) marks.cells.add(cell);
      });
    }
    return marks;
  }

  /** A place is cell * 2 layers + layer, V's after K's; over the positions the cell's first. @param {number} x @param {number} y */
  findAt(x, y) {
    const { state } = this;
    if (!state || this.brush) return -1;
    const places = this.places(state);
    const cell = cellAt(places, x);
    if (x < places.left || cell < places.range.from || cell >= places.range.to || y < places.band - 5 || y > places.v + places.each) return -1;
    return cell;
  }

  /** The layer and side at a height, -1 over the positions. @param {number} y */
  layerAt(y) {
    const { state } = this;
    if (!state) return { layer: -1, which: 0 };
    const places = this.places(state);
    const which = y >= places.v ? 1 : 0;
    const at = Math.floor(((y - (which ? places.v : places.k)) / places.each) * state.shape.nLayer);
    return { layer: y < places.k || at >= state.shape.nLayer ? -1 : at, which };
  }

  /** @param {number} k @param {number} x @param {number} y */
  showCard(k, x, y) {
    this.pointed = this.layerAt(y);
    super.showCard(k, x, y);
  }

  /** @param {number} cell */
  cardOf(cell) {
    const { state, player, step } = this;
    if (!state) return null;
    const { shape } = state;
    const { layer, which } = this.pointed ?? { layer: -1, which: 0 };
    /** @type {[string, string][]} */
    const pairs = [];
    if (state.nSeqs[cell]) {
      const seqs = sequencesOf(player, step, shape.cache, cell);
      pairs.push(["position", String(state.pos[cell])], [seqs.length > 1 ? "sequences" : "sequence", seqs.join(", ")]);
      const seen = sees(state, cell, this.mine[cell] === 1);
      if (state.newest.seq >= 0) pairs.push(["attended", seen ? `yes, by position ${state.newest.pos}` : `no: ${this.whyUnseen(state, cell)}`]);
    } else pairs.push(["holds", "nothing"]);
    const bytes = (which ? shape.bytesV : shape.bytesK) / Math.max(1, shape.nCells * shape.nLayer);
    const fresh = state.slot.some((run) => cell >= run.cell && cell < run.cell + run.n);
    if (layer >= 0) {
      const waits = fresh && (which ? state.pending.v : state.pending.k)[layer];
      pairs.push(["layer", `${shape.layers[layer]}, ${which ? "V" : "K"}`], ["bytes", `${formatBytes(Math.round(bytes))} of ${which ? shape.typeV : shape.typeK}`]);
      if (state.nSeqs[cell]) pairs.push(["written", waits ? "not yet" : fresh ? "in this evaluation" : "earlier"]);
    } else if (shape.bytesK) pairs.push(["bytes", `${formatBytes(Math.round((shape.bytesK + shape.bytesV) / shape.nCells))} in ${counted(shape.nLayer, "layer")}`]);
    return { head: `cell ${cell}`, pairs };
  }

  /** @param {KvState} state @param {number} cell */
  whyUnseen(state, cell) {
    if (this.mine[cell] !== 1) return "another sequence";
    if (cell >= state.nKv) return "beyond n_kv";
    return state.pos[cell] > state.newest.pos ? "it comes later" : `out of the window of ${state.window}`;
  }

  /** @param {number} cell */
  placeOf(cell) {
    if (!this.state) return null;
    const places = this.places(this.state);
    return { x: (xOf(places, cell) + xOf(places, cell + 1)) / 2, y: places.band + places.high / 2 };
  }

  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    if (!this.state) return -1;
    const { from, to } = this.rangeOf(this.state);
    if (k < 0) return this.state.slot[0]?.cell ?? from;
    return Math.max(from, Math.min(to - 1, k + by));
  }

  stop() {
    this.sizer.disconnect();
    super.stop();
  }
}

