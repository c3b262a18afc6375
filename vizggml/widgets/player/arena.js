// The arena: the objects of one ggml context, one after the other, to scale, each with its header and its padding.

import { DetailPlot, counted, hatch } from "./detail_plot.js";
import { cutEnd, el, setText } from "./dom.js";
import { VirtualList } from "./list.js";
import { formatBytes, visible } from "./sentence.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{context: number, used: number, size: number, noAlloc: boolean, objects: number[]}} Arena `objects` are rows of their track */

/** GGML_OBJECT_SIZE and GGML_TENSOR_SIZE of the reference. */
const HEADER = 32;
const RECORD = 336;
const PAD = 12;
const HEIGHT = 66;
const WHOLE = { top: 5, high: 11 };
const NEAR = { top: 30, high: 20 };
const NEAR_OBJECTS = 3;
const ROW = 23;

/** @type {import("./details.js").Detail} */
export const arenaDetail = {
  name: "arena",
  title: "Arena",
  has: ({ tracks }) => tracks.track("arena").length > 0,
  make: (player, pane) => new ArenaView(player, pane),
};

class ArenaView extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Arena",
      keys: "object by object",
      empty: "No context stands at this step. ggml.Context(mem_size) makes one, and each tensor made in it is an object here.",
    });
    /** @type {Arena | null} */
    this.arena = null;
    /** The context that was chosen, -1 to follow the step. */
    this.chosen = -1;
    this.offered = "";
    this.current = -1;
    this.select = el("select", "vg-select", { "aria-label": "Which context" });
    this.select.addEventListener("change", () => {
      this.chosen = Number(this.select.value);
      player.redraw(pane);
    });
    this.tools = [this.select];
    this.surface.box.style.flex = `0 0 ${HEIGHT}px`;
    const heads = ["offset", "size", "padding", "what it is"];
    this.head = el("div", "vg-grid-head", {}, heads.map((text, k) => el("span", k < 3 ? "vg-right" : "", { text })));
    this.list = new VirtualList({
      label: "Objects of the context",
      rowHeight: ROW,
      makeRow: () => el("div", "vg-grid-row", {}, heads.map((_, k) => el("span", k < 3 ? "vg-right" : ""))),
      fillRow: (row, index) => this.fillRow(row, index),
      choose: (index) => this.choose(index),
    });
    this.main.append(this.head, this.list.element);
    this.element.classList.add("vg-table");
    this.element.style.setProperty("--vg-columns", "minmax(56px, 0.8fr) minmax(56px, 0.8fr) minmax(44px, 0.5fr) minmax(0, 2.2fr)");
  }

  /** @param {number} step */
  prepare(step) {
    const { tracks } = this.player;
    const track = tracks.track("arena");
    const [context, used, n, size, noAlloc] = ["context", "used", "n_objects", "mem_size", "no_alloc"].map((name) => track.col(name));
    const open = track.openAt(step);
    this.offer(open.map((r) => context[r]));
    const wanted = this.chosen >= 0 ? this.chosen : this.contextAt(step);
    const row = open.find((r) => context[r] === wanted) ?? open[open.length - 1];
    for (const part of [this.head, this.list.element]) if (part.hidden !== (row === undefined)) part.hidden = row === undefined;
    if (row === undefined) return null;
    const objects = tracks.track("object");
    const ofContext = objects.col("context");
    const rows = objects.openAt(step).filter((r) => ofContext[r] === context[row]);
    const offset = objects.col("offset");
    rows.sort((p, q) => offset[p] - offset[q]);
    this.arena = { context: context[row], used: used[row], size: Math.max(size[row], used[row]), noAlloc: noAlloc[row] === 1, objects: rows };
    this.current = rows.findLastIndex((r) => objects.a[r] <= step && objects.a[r] > step - 4);
    const tensor = this.player.selected >= 0 ? this.player.selected : this.player.relations.tensorAt(step);
    const mine = rows.findIndex((r) => objects.col("tensor")[r] === tensor && tensor >= 0);
    if (mine >= 0) this.current = mine;
    this.list.setLength(rows.length);
    const shown = this.current >= 0 ? this.current : rows.length - 1;
    this.list.setCurrent(shown);
    this.list.show(shown);
    if (tracks.kindOf(step).name === "ContextOverflow" && tracks.field(step, "context") === this.arena.context) {
      return { strong: `does not fit: ${formatBytes(tracks.field(step, "needed"))} needed`, rest: `of ${formatBytes(this.arena.size)}`, bad: true };
    }
    const share = this.arena.size ? ` (${percent(this.arena.used / this.arena.size)})` : "";
    return {
      strong: `context ${this.arena.context}: ${formatBytes(this.arena.used)} of ${formatBytes(this.arena.size)} used${share}`,
      rest: `${counted(n[row], "object")}; ${this.arena.noAlloc ? "no_alloc: records alone, the data lies in buffers" : "each tensor's data follows its record"}`,
    };
  }

  /** The context that the step is about: the event's own, else the one that changed last. @param {number} step */
  contextAt(step) {
    const { tracks } = this.player;
    const said = tracks.field(step, "context");
    if (said !== undefined) return said;
    const track = tracks.track("arena");
    const at = upperBound(track.a, step) - 1;
    return at < 0 ? -1 : track.col("context")[at];
  }

  /** The contexts there are at this step, for choosing. @param {number[]} contexts */
  offer(contexts) {
    const ids = [...new Set(contexts)].sort((p, q) => p - q);
    if (this.chosen >= 0 && !ids.includes(this.chosen)) ids.push(this.chosen);
    const key = ids.join(" ");
    if (key === this.offered) return;
    this.offered = key;
    this.select.replaceChildren(el("option", "", { value: "-1", text: "follow the step" }), ...ids.map((id) => el("option", "", { value: String(id), text: `context ${id}` })));
    this.select.value = String(this.chosen);
  }

  /** @param {number} r row of the objects @returns {string} */
  nameOf(r) {
    const { tracks } = this.player;
    const track = tracks.track("object");
    const [tensor, graph] = [track.col("tensor")[r], track.col("graph")[r]];
    if (tensor >= 0) return visible(tracks.name(tensor));
    return graph >= 0 ? `graph ${graph}` : track.str("kind", r).toLowerCase().replace("_", " ");
  }

  /** Header, record or graph, data and padding: bytes. @param {number} r */
  partsOf(r) {
    const track = this.player.tracks.track("object");
    const [size, padding] = [track.col("size")[r], track.col("padding")[r]];
    const record = track.str("kind", r) === "TENSOR" ? Math.min(RECORD, size - padding) : size - padding;
    return { offset: track.col("offset")[r], size, padding, record, data: size - padding - record };
  }

  /** @param {HTMLElement} element @param {number} index */
  fillRow(element, index) {
    const r = this.arena?.objects[index];
    if (r === undefined) return;
    const { offset, size, padding, data } = this.partsOf(r);
    const kind = this.player.tracks.track("object").str("kind", r);
    const what = kind === "TENSOR" ? `${this.nameOf(r)}: record${data > 0 ? ` and ${formatBytes(data)} of data` : ""}` : this.nameOf(r);
    [String(offset), formatBytes(size), padding ? formatBytes(padding) : "0", what].forEach((text, k) => setText(element.children[k], text));
    element.classList.toggle("vg-marked", index === this.current || index === this.cursor);
  }

  /** The objects that are drawn near: the current one, and those about it. */
  near() {
    const { objects } = this.arena ?? { objects: [] };
    const at = this.cursor >= 0 ? this.cursor : this.current >= 0 ? this.current : objects.length - 1;
    const first = Math.max(0, Math.min(at - 1, objects.length - NEAR_OBJECTS));
    const last = Math.min(objects.length, first + NEAR_OBJECTS) - 1;
    if (last < first) return { first, last, from: 0, to: 1 };
    const end = this.partsOf(objects[last]);
    return { first, last, from: this.partsOf(objects[first]).offset - HEADER, to: end.offset + end.size };
  }

  /** @param {Context} c @param {number} w */
  paint(c, w) {
    const { arena, player } = this;
    const { palette } = player;
    if (!arena) return;
    const wide = w - 2 * PAD;
    c.fillStyle = palette.free;
    c.fillRect(PAD, WHOLE.top, wide, WHOLE.high);
    const scale = wide / Math.max(1, arena.size);
    this.paintObjects(c, scale);
    if (!arena.objects.length) return;
    const near = this.near();
    c.strokeStyle = palette.ink;
    c.lineWidth = 1;
    const [x0, x1] = [PAD + near.from * scale, PAD + near.to * scale];
    c.strokeRect(Math.round(x0) - 0.5, WHOLE.top - 2.5, Math.max(3, Math.round(x1 - x0)), WHOLE.high + 5);
    c.strokeStyle = palette.line;
    c.beginPath();
    c.moveTo(x0, WHOLE.top + WHOLE.high + 3);
    c.lineTo(PAD, NEAR.top - 3);
    c.moveTo(Math.max(x1, x0 + 3), WHOLE.top + WHOLE.high + 3);
    c.lineTo(PAD + wide, NEAR.top - 3);
    c.stroke();
    this.paintNear(c, near, wide);
  }

  /** @param {Context} c @param {number} scale */
  paintObjects(c, scale) {
    const { palette } = this.player;
    let drawn = -1;
    for (const r of this.arena?.objects ?? []) {
      const { offset, size } = this.partsOf(r);
      const [x, end] = [PAD + (offset - HEADER) * scale, PAD + (offset + size) * scale];
      if (end < drawn + 0.5) continue;
      c.fillStyle = this.colourOf(r);
      c.fillRect(Math.max(x, drawn), WHOLE.top, Math.max(0.7, end - Math.max(x, drawn) - (end - x > 4 ? 1 : 0)), WHOLE.high);
      drawn = end;
    }
    c.fillStyle = palette.edge;
  }

  /** @param {number} r */
  colourOf(r) {
    const { palette, tracks } = this.player;
    return palette.families[tracks.track("object").str("kind", r) === "TENSOR" ? 0 : 4];
  }

  /** @param {Context} c @param {{first: number, last: number, from: number, to: number}} near @param {number} wide */
  paintNear(c, near, wide) {
    const { palette, fonts } = this.player;
    const x = (/** @type {number} */ byte) => PAD + ((byte - near.from) / (near.to - near.from)) * wide;
    for (let k = near.first; k <= near.last; k++) {
      const r = this.arena?.objects[k] ?? -1;
      const { offset, size, padding, record, data } = this.partsOf(r);
      const marks = [offset - HEADER, offset, offset + record, offset + record + data, offset + size];
      c.font = `10.5px ${fonts.mono}`;
      ["32", "", "data", ""].forEach((text, part) => {
        const [a, b] = [x(marks[part]), x(marks[part + 1])];
        if (b - a < 0.2) return;
        c.fillStyle = part === 0 ? palette.families[6] : part === 2 ? palette.families[2] : part === 3 ? palette.free : this.colourOf(r);
        c.fillRect(a, NEAR.top, Math.max(0.7, b - a - (part === 3 || part === 1 + (data ? 1 : 0) ? 1 : 0)), NEAR.high);
        if (part === 3) hatch(c, a, NEAR.top, b - a, NEAR.high, palette.faint);
        const words = part === 1 ? `${this.nameOf(r)} ${record}` : part === 2 ? `data ${data}` : text;
        c.fillStyle = "#10151d";
        const shown = cutEnd(words, Math.floor((b - a - 6) / 6.4));
        if (shown && shown.length * 6.4 < b - a) c.fillText(shown, a + 4, NEAR.top + NEAR.high / 2 + 0.5);
      });
      c.font = `10px ${fonts.ui}`;
      c.fillStyle = palette.faint;
      if (x(offset + size) - x(offset) > 60) c.fillText(`${offset}${padding ? `, ${padding} B padding` : ""}`, x(offset), NEAR.top + NEAR.high + 9);
      if (k === this.current || k === this.cursor) {
        c.strokeStyle = palette.accent;
        c.lineWidth = 2;
        c.strokeRect(x(offset - HEADER) + 1, NEAR.top - 1, x(offset + size) - x(offset - HEADER) - 2, NEAR.high + 2);
      }
    }
  }

  /** @param {number} px @param {number} y */
  findAt(px, y) {
    const { arena } = this;
    if (!arena?.objects.length) return -1;
    const near = this.near();
    const wide = this.surface.width - 2 * PAD;
    const whole = y < NEAR.top - 8;
    const byte = whole ? ((px - PAD) / wide) * arena.size : near.from + ((px - PAD) / wide) * (near.to - near.from);
    return arena.objects.findIndex((r) => {
      const { offset, size } = this.partsOf(r);
      return byte >= offset - HEADER && byte < offset + size;
    });
  }

  /** @param {number} k */
  cardOf(k) {
    const r = this.arena?.objects[k];
    if (r === undefined) return null;
    const { offset, size, padding, record, data } = this.partsOf(r);
    /** @type {[string, string][]} */
    const pairs = [["object", `${k}, ${this.player.tracks.track("object").str("kind", r)}`], ["header", `${HEADER} B before it`], ["offset", String(offset)], ["record", `${record} B`]];
    if (data > 0) pairs.push(["data", formatBytes(data)]);
    pairs.push(["padding", `${padding} B`], ["ends at", String(offset + size)]);
    return { head: this.nameOf(r), pairs };
  }

  /** @param {number} _k */
  placeOf(_k) {
    return { x: this.surface.width / 2, y: NEAR.top + NEAR.high };
  }

  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    const n = this.arena?.objects.length ?? 0;
    return n ? Math.max(0, Math.min(n - 1, k < 0 ? Math.max(0, this.current) : k + by)) : -1;
  }

  /** @param {number} k */
  choose(k) {
    const tensor = this.player.tracks.track("object").col("tensor")[this.arena?.objects[k] ?? -1] ?? -1;
    if (tensor >= 0) this.player.select(tensor);
  }

  stop() {
    this.list.stop();
    super.stop();
  }
}

/** @param {number} share */
function percent(share) {
  return share > 0 && share < 0.001 ? "under 0.1 %" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}
