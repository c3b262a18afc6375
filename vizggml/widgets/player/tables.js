// Tables that follow the step: the tensor, the free list, counts, scratch, KV cells, reuse checks, threads.

import { Surface, el, setText } from "./dom.js";
import { VirtualList } from "./list.js";
import { lifeOf } from "./map.js";
import { PAGES_HEIGHT, pageRows, paintPages } from "./pages.js";
import { paintCells, paintScratch } from "./plots.js";
import { formatBytes, formatDims, formatField, formatNs, visible } from "./sentence.js";
import { splitRows } from "./splits.js";
import { THREADS_HEIGHT, paintThreads } from "./threads.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {{head: string, right?: boolean}} Column */
/** @typedef {{cells: string[], marked?: boolean, tensor?: number, bad?: boolean, titled?: boolean}} Row `titled` where a cell may be too long to be read */
/** @typedef {{name: string, title: string, track: string, columns: Column[], widths: string, rows: (player: Player, step: number) => Row[],
 *   plot?: (player: Player, c: CanvasRenderingContext2D, w: number, h: number, step: number) => void, plotHeight?: number,
 *   empty: string}} Table */

const ROW = 23;

/** @type {Table[]} */
export const TABLES = [
  {
    name: "tensor",
    title: "Tensor",
    track: "",
    columns: [{ head: "" }, { head: "" }],
    widths: "minmax(90px, 0.35fr) 1fr",
    rows: tensorRows,
    empty: "No tensor at this step.",
  },
  {
    name: "free",
    title: "Free list",
    track: "block",
    columns: [{ head: "chunk", right: true }, { head: "block", right: true }, { head: "offset", right: true }, { head: "size", right: true }],
    widths: "0.7fr 0.7fr 1.2fr 1.2fr",
    rows: freeRows,
    empty: "No free block at this step.",
  },
  {
    name: "counts",
    title: "Counts",
    track: "count",
    columns: [{ head: "tensor" }, { head: "uses", right: true }, { head: "children", right: true }, { head: "views", right: true }],
    widths: "minmax(0, 2.4fr) 0.7fr 0.9fr 0.7fr",
    rows: countRows,
    empty: "Nothing is counted yet.",
  },
  {
    name: "scratch",
    title: "Scratch",
    track: "scratch",
    columns: [{ head: "tensor" }, { head: "tasks", right: true }, { head: "scratch", right: true }, { head: "maximum", right: true }],
    widths: "minmax(0, 2fr) 0.6fr 1fr 1fr",
    rows: scratchRows,
    plot: paintScratch,
    plotHeight: 54,
    empty: "No scratch is planned yet.",
  },
  {
    name: "cells",
    title: "Cells",
    track: "cell",
    columns: [{ head: "cell", right: true }, { head: "position", right: true }, { head: "sequence", right: true }],
    widths: "1fr 1fr 1fr",
    rows: cellRows,
    plot: paintCells,
    plotHeight: 74,
    empty: "No cell is taken at this step.",
  },
  {
    name: "reuse",
    title: "Reuse",
    track: "reuse",
    columns: [{ head: "asked by" }, { head: "condition" }, { head: "had", right: true }, { head: "needs", right: true }, { head: "holds" }],
    widths: "minmax(0, 1.5fr) minmax(0, 1.2fr) 0.8fr 0.8fr 0.5fr",
    rows: reuseRows,
    empty: "No reuse check at this step.",
  },
  {
    name: "splits",
    title: "Splits",
    track: "split",
    columns: [{ head: "split", right: true }, { head: "backend" }, { head: "first node" }, { head: "nodes", right: true }, { head: "inputs copied" }],
    widths: "40px minmax(50px, 0.5fr) minmax(0, 1fr) 44px minmax(0, 2fr)",
    rows: splitRows,
    empty: "No graph is split at this step.",
  },
  {
    name: "pages",
    title: "Pages",
    track: "pages",
    columns: [{ head: "part of the file" }, { head: "in memory", right: true }, { head: "pages", right: true }, { head: "share", right: true }],
    widths: "minmax(0, 2fr) 0.8fr 0.7fr 0.6fr",
    rows: pageRows,
    plot: paintPages,
    plotHeight: PAGES_HEIGHT,
    empty: "Nobody has asked which pages are in memory yet.",
  },
  {
    name: "threads",
    title: "Threads",
    track: "thread",
    columns: [{ head: "tensor" }, { head: "thread", right: true }, { head: "worked", right: true }, { head: "waited", right: true }],
    widths: "minmax(0, 2fr) 0.6fr 0.9fr 0.9fr",
    rows: threadRows,
    plot: paintThreads,
    plotHeight: THREADS_HEIGHT,
    empty: "Nothing is computing at this step.",
  },
];

export class TablesPane {
  /** @param {Player} player @param {string[] | null} only names of the tables to show, null for all that have rows */
  constructor(player, only) {
    this.player = player;
    this.name = "tables";
    this.title = "Details";
    this.tables = TABLES.filter((t) => (only ? only.includes(t.name) : t.track === "" || player.tracks.track(t.track).length > 0));
    this.table = this.tables[0] ?? TABLES[0];
    /** @type {Row[]} */
    this.rows = [];
    this.tabs = el("div", "vg-tabs", { role: "tablist", "aria-label": "Details" });
    this.head = el("div", "vg-grid-head");
    this.empty = el("div", "vg-empty");
    this.surface = new Surface("Plot", () => player.redraw(this));
    this.list = new VirtualList({
      label: "Rows",
      rowHeight: ROW,
      makeRow: () => el("div", "vg-grid-row", {}, this.table.columns.map((c) => el("span", c.right ? "vg-right" : ""))),
      fillRow: (row, index) => this.fillRow(row, index),
      choose: (index) => {
        const t = this.rows[index]?.tensor ?? -1;
        if (t >= 0) player.select(t);
      },
    });
    this.body = el("div", "vg-stack vg-table", { role: "tabpanel" }, [this.surface.box, this.head, this.list.element, this.empty]);
    this.tools = [this.tabs];
    this.makeTabs();
    this.choose(this.table);
  }

  makeTabs() {
    for (const table of this.tables) {
      const tab = el("button", "vg-tab", { type: "button", role: "tab", text: table.title });
      tab.addEventListener("click", () => this.choose(table));
      this.tabs.append(tab);
    }
    this.tabs.addEventListener("keydown", (event) => {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const n = this.tables.length;
      this.choose(this.tables[(this.tables.indexOf(this.table) + by + n) % n]);
      /** @type {HTMLElement} */ (this.tabs.children[this.tables.indexOf(this.table)]).focus();
    });
  }

  /** @param {Table} table */
  choose(table) {
    this.table = table;
    [...this.tabs.children].forEach((tab, k) => {
      const chosen = this.tables[k] === table;
      tab.setAttribute("aria-selected", String(chosen));
      /** @type {HTMLElement} */ (tab).tabIndex = chosen ? 0 : -1;
    });
    this.body.style.setProperty("--vg-columns", table.widths);
    this.head.replaceChildren(...table.columns.map((c) => el("span", c.right ? "vg-right" : "", { text: c.head })));
    this.head.hidden = table.columns.every((c) => c.head === "");
    this.surface.box.hidden = !table.plot;
    this.surface.box.style.flex = `0 0 ${table.plotHeight ?? 0}px`;
    this.surface.canvas.setAttribute("aria-label", `${table.title}, drawn`);
    this.list.element.setAttribute("aria-label", table.title);
    this.rows = [];
    this.list.clear();
    this.player.redraw(this);
  }

  /** @param {HTMLElement} element @param {number} index */
  fillRow(element, index) {
    const row = this.rows[index];
    if (!row) return;
    for (let k = 0; k < element.children.length; k++) {
      setText(element.children[k], row.cells[k]);
      if (row.titled) /** @type {HTMLElement} */ (element.children[k]).title = row.cells[k];
    }
    element.classList.toggle("vg-marked", row.marked === true);
    element.classList.toggle("vg-bad", row.bad === true);
  }

  /** @param {number} step */
  draw(step) {
    const { table, list } = this;
    this.rows = table.rows(this.player, step);
    const none = this.rows.length === 0;
    if (this.empty.hidden === none) this.empty.hidden = !none;
    setText(this.empty, none ? table.empty : "");
    list.setLength(this.rows.length);
    const at = this.rows.findIndex((row) => row.marked);
    if (at >= 0) list.show(at);
    if (table.plot && this.surface.width > 10) {
      const c = this.surface.begin();
      c.fillStyle = this.player.palette.page;
      c.fillRect(0, 0, this.surface.width, this.surface.height);
      table.plot(this.player, c, this.surface.width, this.surface.height, step);
    }
  }

  invalidate() {}

  stop() {
    this.surface.stop();
    this.list.stop();
  }
}

/** @param {Player} player @param {number} step @returns {Row[]} */
function tensorRows(player, step) {
  const { tracks, relations, selected } = player;
  const t = selected >= 0 ? selected : relations.tensorAt(step);
  if (t < 0) return [];
  const table = (/** @type {string} */ name) => tracks.columns.column(`tensor.${name}`);
  const names = (/** @type {Int32Array} */ list) => Array.from(list, (s) => (s < 0 ? "none" : visible(tracks.name(s)))).join(", ") || "none";
  const op = tracks.tensorString("desc", t) || tracks.tensorString("op", t);
  /** @type {[string, string][]} */
  const pairs = [
    ["name", visible(tracks.name(t))],
    ["op", op === "NONE" || op === "" ? "none: a leaf" : op],
    ["type", tracks.tensorString("type", t)],
    ["ne", formatDims(tracks.ne(t))],
    ["nb", Array.from(table("nb").subarray(4 * t, 4 * t + 4)).join(", ")],
    ["size", formatBytes(tracks.nbytes(t))],
    ["reads", names(relations.sources(t))],
    ["read by", names(consumersNear(player, t, step))],
  ];
  const viewSrc = table("view_src")[t];
  if (viewSrc >= 0) pairs.push(["view of", `${visible(tracks.name(viewSrc))}, from byte ${table("view_offs")[t]}`]);
  pairs.push(["flags", formatField(tracks, "flags", table("flags")[t] ?? 0)]);
  if (table("external")[t]) pairs.push(["memory", "its own, outside the plan"]);
  pairs.push(...lifeOf(player, t, step));
  return pairs.map(([key, value]) => ({ cells: [key, value] }));
}

/** What reads tensor `t` in the graph of this step; a weight is read in every graph. @param {Player} player @param {number} t
 * @param {number} step */
function consumersNear({ relations }, t, step) {
  const all = relations.consumers(t);
  const here = all.filter((s) => relations.home.graph[s] === relations.focus.graph[step]);
  return here.length ? here : all;
}

/** @param {Player} player @param {number} step @returns {Row[]} */
function freeRows(player, step) {
  const { tracks } = player;
  const track = tracks.track("block");
  const [chunk, offset, size, owner] = ["chunk", "offset", "size", "owner"].map((n) => track.col(n));
  const rows = track.openAt(step).filter((r) => owner[r] < 0);
  rows.sort((p, q) => chunk[p] - chunk[q] || offset[p] - offset[q]);
  const [atChunk, atOffset] = [tracks.field(step, "chunk"), tracks.field(step, "offset")];
  let block = 0;
  return rows.map((r, k) => {
    block = k > 0 && chunk[rows[k - 1]] === chunk[r] ? block + 1 : 0;
    const open = size[r] < 0 || size[r] > 2 ** 50;
    const marked = chunk[r] === atChunk && offset[r] === atOffset;
    return { cells: [String(chunk[r]), String(block), String(offset[r]), open ? "to the end" : formatBytes(size[r])], marked };
  });
}

const MOST_COUNTS = 400;

/** The current node and what it reads first, then whatever still has readers. @param {Player} player @param {number} step @returns {Row[]} */
function countRows(player, step) {
  const { tracks, relations } = player;
  const track = tracks.track("count");
  const [tensor, which, value] = ["tensor", "which", "value"].map((n) => track.col(n));
  /** @type {Map<number, [number, number, number]>} */
  const counts = new Map();
  track.each(step, (r) => {
    let entry = counts.get(tensor[r]);
    if (!entry) counts.set(tensor[r], (entry = [0, 0, 0]));
    entry[which[r]] = value[r];
  });
  const current = relations.tensorAt(step);
  const near = new Set([current, ...relations.sources(current)]);
  const rest = [...counts].filter(([t, c]) => !near.has(t) && (c[1] > 0 || c[2] > 0)).map(([t]) => t);
  const order = [...near].filter((t) => counts.has(t)).concat(rest.slice(-MOST_COUNTS).reverse());
  return order.map((t) => {
    const c = counts.get(t) ?? [0, 0, 0];
    return { cells: [visible(tracks.name(t)), ...c.map(String)], marked: t === current, tensor: t };
  });
}

/** @param {Player} player @param {number} step @returns {Row[]} */
function scratchRows(player, step) {
  const { tracks, relations } = player;
  const track = tracks.track("scratch");
  const [graph, tensor, tasks, size, maximum] = ["graph", "tensor", "n_tasks", "work_size", "maximum"].map((n) => track.col(n));
  const g = relations.focus.graph[step];
  const current = relations.tensorAt(step);
  return track
    .openAt(step)
    .filter((r) => graph[r] === g && (size[r] > 0 || tensor[r] === current))
    .map((r) => ({
      cells: [visible(tracks.name(tensor[r])), String(tasks[r]), formatBytes(size[r]), formatBytes(maximum[r])],
      marked: tensor[r] === current,
      tensor: tensor[r],
    }));
}

/** @param {Player} player @param {number} step @returns {Row[]} */
function cellRows(player, step) {
  const track = player.tracks.track("cell");
  const [cell, pos, seq] = ["cell", "pos", "seq"].map((n) => track.col(n));
  const at = player.tracks.field(step, "cell");
  const rows = track.openAt(step).sort((p, q) => cell[p] - cell[q]);
  return rows.map((r) => ({ cells: [String(cell[r]), String(pos[r]), String(seq[r])], marked: cell[r] === at }));
}

/** @param {Player} player @param {number} step @returns {Row[]} */
function reuseRows(player, step) {
  const { tracks } = player;
  const track = tracks.track("reuse");
  const [evaluation, ok] = ["eval", "ok"].map((n) => track.col(n));
  const rows = track.openAt(step);
  const last = rows.reduce((e, r) => Math.max(e, evaluation[r]), -1);
  return rows
    .filter((r) => evaluation[r] === last)
    .map((r) => ({
      cells: [...["owner", "condition", "had", "needs"].map((n) => track.str(n, r)), ok[r] ? "yes" : "no"],
      marked: track.a[r] === step,
      bad: !ok[r],
    }));
}

const NEAR = 60;

/** What the threads did last, newest first. @param {Player} player @param {number} step @returns {Row[]} */
function threadRows(player, step) {
  const { tracks } = player;
  const track = tracks.track("thread");
  const [tensor, thread, begin, end, wait] = ["tensor", "thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
  const evaluation = track.col("eval");
  const to = upperBound(track.a, step);
  /** @type {number[]} */
  const rows = [];
  for (let r = to - 1; r >= Math.max(0, to - NEAR) && evaluation[r] === evaluation[to - 1]; r--) rows.push(r);
  const current = player.relations.tensorAt(step);
  return rows.map((r) => ({
    cells: [visible(tracks.name(tensor[r])), String(thread[r]), formatNs(end[r] - begin[r]), formatNs(wait[r])],
    marked: tensor[r] === current,
    tensor: tensor[r],
  }));
}
