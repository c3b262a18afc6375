// The scratch that each node needs of the one work buffer: the largest wins, and its size is what is reserved.

import { DetailPlot, counted, eventsOf } from "./detail_plot.js";
import { formatBytes, visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {{graph: number, rows: number[], n: number, winner: number, most: number, end: number}} Planned `rows` in execution order; `winner` is
 *   the row of the largest, `end` the event that ended the plan, -1 before it */

const LEFT = 12;
const TOP = 20;
const FOOT = 16;

/** @type {import("./details.js").Detail} */
export const scratchDetail = {
  name: "scratch",
  title: "Scratch",
  has: ({ tracks }) => tracks.track("scratch").length > 0,
  make: (player, pane) => new ScratchView(player, pane),
};

/** @param {Player} player @param {number} step @returns {Planned | null} */
export function scratchAt(player, step) {
  const { tracks, relations } = player;
  const track = tracks.track("scratch");
  const [graph, tensor, size] = ["graph", "tensor", "work_size"].map((name) => track.col(name));
  const open = track.openAt(step);
  if (!open.length) return null;
  const [focus, whole] = [relations.focus.graph[step], tracks.columns.column("graph.part_of")];
  const latest = (/** @type {number[]} */ rows) => rows.reduce((at, r) => (track.a[r] > track.a[at] ? r : at), rows[0]);
  const mine = open.filter((r) => graph[r] === focus || whole[graph[r]] === focus);
  const g = graph[latest(mine.length ? mine : open)];
  const { position } = relations.home;
  const rows = open.filter((r) => graph[r] === g).sort((p, q) => position[tensor[p]] - position[tensor[q]]);
  const winner = rows.reduce((at, r) => (size[r] > size[at] ? r : at), rows[0]);
  const ptr = tracks.columns.column("graph.ptr");
  const begun = rows.reduce((least, r) => Math.min(least, track.a[r]), Infinity);
  const end = eventsOf(player, "PlanEnd").findLast((i) => i <= step && i > begun && tracks.field(i, "graph") === g) ?? -1;
  return { graph: g, rows, n: Math.max(rows.length, ptr[g + 1] - ptr[g]), winner, most: size[winner], end };
}

/** The formula of a node's scratch with its numbers. @param {Player} player @param {number} row of the scratch track */
function termsOf({ tracks }, row) {
  const { a } = tracks.track("scratch");
  for (let i = a[row]; i >= Math.max(0, a[row] - 1); i--) if (tracks.kindOf(i).name === "NodePlanned") return String(tracks.field(i, "terms"));
  return "";
}

class ScratchView extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Scratch",
      keys: "node by node, those that need any",
      empty: "No scratch is planned at this step. ggml.graph_plan(graph, n_threads) plans it, before a graph is computed.",
    });
    /** @type {Planned | null} */
    this.plan = null;
    this.focus = -1;
  }

  /** @param {number} step */
  prepare(step) {
    const { player } = this;
    const { tracks, relations, selected } = player;
    const plan = (this.plan = scratchAt(player, step));
    if (!plan) return null;
    const track = tracks.track("scratch");
    const [tensor, tasks, size] = ["tensor", "n_tasks", "work_size"].map((name) => track.col(name));
    const about = selected >= 0 ? selected : relations.tensorAt(step);
    this.focus = plan.rows.find((r) => tensor[r] === about) ?? -1;
    const name = visible(tracks.name(tensor[plan.winner]));
    let strong = plan.most ? `largest so far ${formatBytes(plan.most)}, ${name}` : "no node needs scratch so far";
    if (plan.end >= 0) {
      const [work, padding] = ["work_size", "padding"].map((field) => tracks.field(plan.end, field));
      strong = work ? `work size ${formatBytes(work)} = ${name} ${formatBytes(plan.most)} + padding ${formatBytes(padding)}` : "no node needs scratch: work size 0";
    }
    const r = this.focus;
    const terms = r < 0 ? "" : termsOf(player, r);
    const rest = r < 0 ? "" : `${visible(tracks.name(tensor[r]))}: ${counted(tasks[r], "task")}, ${size[r] ? `${formatBytes(size[r])}${terms ? `: ${terms}` : ""}` : "no scratch"}`;
    return { strong, rest };
  }

  /** @param {number} row */
  x(row) {
    const { plan, player, surface } = this;
    const tensor = player.tracks.track("scratch").col("tensor")[row];
    const at = player.relations.home.position[tensor];
    return LEFT + (at / Math.max(1, plan?.n ?? 1)) * (surface.width - 2 * LEFT);
  }

  /** @param {CanvasRenderingContext2D} c @param {number} w @param {number} h */
  paint(c, w, h) {
    const { plan, player } = this;
    if (!plan) return;
    const { palette, fonts, tracks } = player;
    const track = tracks.track("scratch");
    const [size, maximum] = ["work_size", "maximum"].map((name) => track.col(name));
    const foot = h - FOOT;
    const y = (/** @type {number} */ bytes) => foot - (bytes / Math.max(1, plan.most)) * (foot - TOP);
    const wide = (w - 2 * LEFT) / plan.n;
    c.strokeStyle = palette.line;
    c.lineWidth = 1;
    c.strokeRect(LEFT - 0.5, foot + 0.5, w - 2 * LEFT, 0);
    for (const r of plan.rows) {
      if (!size[r]) continue;
      c.fillStyle = r === plan.winner ? palette.accent : palette.families[0];
      c.fillRect(this.x(r), y(size[r]), Math.max(1.2, wide - (wide > 3 ? 1 : 0)), foot - y(size[r]));
    }
    c.strokeStyle = palette.ink;
    c.beginPath();
    let before = 0;
    for (const r of plan.rows) {
      const now = Math.max(before, maximum[r], size[r]);
      c.lineTo(this.x(r), y(before));
      c.lineTo(this.x(r), y(now));
      before = now;
    }
    const last = plan.rows[plan.rows.length - 1];
    c.lineTo(this.x(last) + wide, y(before));
    c.stroke();
    this.paintWinner(c, w, y(plan.most));
    for (const [r, colour] of /** @type {[number, string][]} */ ([[this.focus, palette.accent], [this.cursor >= 0 ? this.cursor : -1, palette.ink]])) {
      if (r < 0) continue;
      c.fillStyle = colour;
      const x = this.x(r) + Math.max(1, wide) / 2;
      c.beginPath();
      c.moveTo(x, foot + 3);
      c.lineTo(x - 4, foot + 10);
      c.lineTo(x + 4, foot + 10);
      c.fill();
      c.fillRect(x - 0.5, TOP, 1, foot - TOP);
    }
    const right = this.focus >= 0 && this.x(this.focus) < w / 2;
    c.font = `10px ${fonts.ui}`;
    c.fillStyle = palette.faint;
    c.textAlign = right ? "right" : "left";
    c.fillText(`${plan.n} nodes, in execution order`, right ? w - LEFT : LEFT, foot + 9);
    c.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} c @param {number} w @param {number} y */
  paintWinner(c, w, y) {
    const { plan, player } = this;
    if (!plan?.most) return;
    const { palette, fonts, tracks } = player;
    const name = visible(tracks.name(tracks.track("scratch").col("tensor")[plan.winner]));
    const x = this.x(plan.winner);
    c.font = `600 11px ${fonts.ui}`;
    c.fillStyle = palette.accent;
    c.textAlign = x > w * 0.6 ? "right" : "left";
    c.fillText(`${name} ${formatBytes(plan.most)}`, x + (c.textAlign === "right" ? 2 : 0), y - 10);
    c.textAlign = "left";
  }

  /** @param {number} x */
  findAt(x) {
    const { plan, surface, player } = this;
    if (!plan) return -1;
    const at = Math.floor(((x - LEFT) / (surface.width - 2 * LEFT)) * plan.n);
    const [tensor, size] = ["tensor", "work_size"].map((name) => player.tracks.track("scratch").col(name));
    const { position } = player.relations.home;
    const near = plan.rows.filter((r) => Math.abs(position[tensor[r]] - at) <= Math.ceil((plan.n * 3) / surface.width));
    return near.reduce((best, r) => (best < 0 || size[r] > size[best] ? r : best), -1);
  }

  /** @param {number} row */
  cardOf(row) {
    const { tracks } = this.player;
    const track = tracks.track("scratch");
    const terms = termsOf(this.player, row);
    /** @type {[string, string][]} */
    const pairs = [["tasks", String(track.col("n_tasks")[row])], ["scratch", formatBytes(track.col("work_size")[row])]];
    if (terms) pairs.push(["formula", terms]);
    pairs.push(["largest so far", formatBytes(track.col("maximum")[row])]);
    return { head: visible(tracks.name(track.col("tensor")[row])), pairs };
  }

  /** @param {number} row */
  placeOf(row) {
    return { x: this.x(row), y: TOP };
  }

  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    const size = this.player.tracks.track("scratch").col("work_size");
    const rows = (this.plan?.rows ?? []).filter((r) => size[r] > 0);
    if (k < 0) return this.focus >= 0 && rows.includes(this.focus) ? this.focus : (rows[0] ?? -1);
    return rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(k) + by))] ?? -1;
  }

  /** @param {number} row */
  choose(row) {
    this.player.select(this.player.tracks.track("scratch").col("tensor")[row]);
  }
}
