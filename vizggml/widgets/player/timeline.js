// The memory timeline: lifetimes over the execution order, baked once; a step redraws only what lives now.

import { Surface, el, iconButton } from "./dom.js";
import { liveSet } from "./live.js";
import { markKeys, markWords } from "./marks.js";
import { PeakLine } from "./peak.js";
import { eventOf, phaseAt, positionIn } from "./phase.js";
import { formatBytes } from "./sentence.js";
import { FAMILIES, familyOf } from "./theme.js";
import { bake, paintStep } from "./timeline_paint.js";
import { listenPointer } from "./timeline_pointer.js";
import { ORDERS, spanOf, stackOf } from "./timeline_rows.js";
import { about, kept, scaled, whole } from "./timeline_zoom.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./plans.js").Plan} Plan */
/** @typedef {import("./timeline_zoom.js").Window} Window */
/** @typedef {import("./timeline_rows.js").Order} Order */
/** @typedef {import("./marks.js").Mark} Mark */

export const LEFT = 66;
export const RIGHT = 12;
export const TOP = 20;
export const BOTTOM = 36;
const QUIET_MS = 350;
const STEP = 1.6;
const LEAST_BYTES = 64;
const LEAST_ROWS = 4;

export class TimelinePane {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "timeline";
    this.title = "Memory timeline";
    /** @type {Plan | null} */
    this.plan = null;
    /** @type {import("./live.js").LiveSet | null} */
    this.live = null;
    /** @type {Order} */
    this.order = "address";
    /** @type {import("./timeline_rows.js").Stack} */
    this.stack = { top: 1, from: null };
    /** @type {Window} */
    this.window = { x0: 0, x1: 1, y0: 0, y1: 1 };
    /** Tensors that are outlined, and as what. @type {Map<number, Mark>} */
    this.marks = new Map();
    /** Baked rectangles of the plans met so far. @type {Map<Plan, HTMLCanvasElement>} */
    this.baked = new Map();
    /** What the surface shows: plan, position, selection. */
    this.drawn = "";
    /** @type {{x: number, y: number, toX: number, toY: number} | null} */
    this.brush = null;
    this.surface = new Surface("Lifetimes of tensors over the execution order", () => this.resized());
    this.note = el("div", "vg-empty", { text: "No memory was planned in this trace." });
    this.note.hidden = player.tracks.track("life").length > 0;
    this.peak = new PeakLine(player);
    this.peak.element.hidden = !this.note.hidden;
    this.legend = el("div", "vg-legend");
    this.markLegend = el("div", "vg-mark-legend");
    this.markLegend.hidden = true;
    this.body = el("div", "vg-stack", {}, [this.surface.box, this.note, this.peak.element, this.markLegend, this.legend]);
    this.choice = el("select", "vg-select", { "aria-label": "How the timeline is stacked", title: "How the timeline is stacked (y)" });
    this.reset = iconButton("fit", "All of the plan (X)", () => this.zoomOut());
    this.tools = this.makeTools();
    this.makeLegend();
    listenPointer(this);
  }

  /** @returns {HTMLElement[]} */
  makeTools() {
    for (const [value, text, title] of ORDERS) this.choice.append(el("option", "", { value, text, title }));
    this.choice.addEventListener("change", () => this.setOrder(/** @type {Order} */ (this.choice.value)));
    this.reset.disabled = true;
    const group = el("div", "vg-group", {}, [
      iconButton("slower", "Zoom out", () => this.zoomBy(STEP)),
      iconButton("faster", "Zoom in on this position", () => this.zoomBy(1 / STEP)),
      iconButton("follow", "Zoom to the selected tensor (x)", () => this.zoomToTensor()),
      this.reset,
    ]);
    return this.note.hidden ? [el("span", "vg-hint", { text: "drag to zoom" }), this.choice, group] : [];
  }

  makeLegend() {
    const { tracks } = this.player;
    const there = new Set(tracks.track("life").col("tensor").map((/** @type {number} */ t) => familyOf(tracks.tensorString("op", t))));
    FAMILIES.forEach((text, k) => {
      if (!there.has(k)) return;
      const mark = el("span", "vg-swatch");
      mark.style.background = `var(--vg-families-${k})`;
      this.legend.append(el("span", "vg-key", {}, [mark, el("span", "", { text })]));
    });
    if (!tracks.track("live").length) return;
    const lines = [
      ["live set", "vg-line-mark", "What is needed at each node, up to now"],
      ["lower bound", "vg-line-mark vg-dotted", "The largest live set: no plan of this graph takes less"],
    ];
    for (const [text, mark, title] of lines) this.legend.append(el("span", "vg-key vg-key-live", { title }, [el("span", mark), el("span", "", { text })]));
  }

  invalidate() {
    this.markLegend.replaceChildren(...markKeys(this.player.palette, this.marks));
    this.forget();
  }

  /** What is baked and drawn no longer holds. */
  forget() {
    this.baked.clear();
    this.drawn = "";
  }

  resized() {
    this.forget();
    this.player.redraw(this);
  }

  // ---- what is shown

  /** Outlines tensors, and says in a legend as what; an empty map for none. @param {Map<number, Mark>} marks */
  mark(marks) {
    this.marks = marks;
    this.markLegend.hidden = !marks.size;
    this.markLegend.replaceChildren(...markKeys(this.player.palette, marks));
    this.resized();
  }

  /** @param {Order} order */
  setOrder(order) {
    this.order = order;
    this.choice.value = order;
    this.legend.classList.toggle("vg-rows", order !== "address");
    if (this.plan) this.stack = stackOf(this.player, this.plan, order);
    this.zoomOut();
  }

  nextOrder() {
    const names = ORDERS.map(([name]) => name);
    this.setOrder(names[(names.indexOf(this.order) + 1) % names.length]);
  }

  /** @param {Plan | null} plan */
  setPlan(plan) {
    if (!this.reset.disabled) this.forget();
    this.plan = plan;
    this.reset.disabled = true;
    if (!plan) return;
    this.stack = stackOf(this.player, plan, this.order);
    this.window = whole(plan, this.stack.top);
    this.live = liveSet(this.player, plan.plan);
  }

  // ---- zoom

  /** @param {Window} window */
  zoomTo(window) {
    const { plan } = this;
    if (!plan) return;
    const full = whole(plan, this.stack.top);
    this.window = kept(window, full, this.least);
    const all = Object.entries(full).every(([side, value]) => Math.abs(value - this.window[/** @type {keyof Window} */ (side)]) < 1e-6);
    if (all) this.window = full;
    this.reset.disabled = all;
    this.forget();
    this.player.redraw(this);
  }

  get least() {
    return Math.min(this.stack.top, this.stack.from ? LEAST_ROWS : LEAST_BYTES);
  }

  zoomOut() {
    if (this.plan) this.zoomTo(whole(this.plan, this.stack.top));
  }

  /** About the position of this step, and the tensor that it is about. @param {number} factor */
  zoomBy(factor) {
    const { x0, x1, y0, y1 } = this.window;
    const { plan, player } = this;
    if (!plan) return;
    const position = positionIn(player, plan, player.step);
    const row = player.relations.lifeRow(player.relations.tensorAt(player.step), player.step);
    const [from, to] = row < 0 ? [y0, y1] : spanOf(player, plan, this.stack, row);
    const x = position >= x0 && position < x1 ? position + 0.5 : (x0 + x1) / 2;
    const middle = (from + to) / 2;
    this.zoomTo(scaled(this.window, factor, x, middle >= y0 && middle <= y1 ? middle : (y0 + y1) / 2));
  }

  /** To the selected tensor, else to the one of this step. */
  zoomToTensor() {
    const { plan, player } = this;
    const { relations, selected, step, tracks } = player;
    const row = relations.lifeRow(selected >= 0 ? selected : relations.tensorAt(step), step);
    if (!plan || row < 0) return;
    const life = tracks.track("life");
    const [from, to] = spanOf(player, plan, this.stack, row);
    this.zoomTo(about(life.col("first")[row], life.col("last")[row], from, to));
  }

  /** @param {number} p */
  x(p) {
    const { x0, x1 } = this.window;
    return LEFT + ((p - x0) / (x1 - x0)) * (this.surface.width - LEFT - RIGHT);
  }

  /** @param {number} up bytes, or rows */
  y(up) {
    const { y0, y1 } = this.window;
    const high = this.surface.height - TOP - BOTTOM;
    return TOP + high - ((up - y0) / (y1 - y0)) * high;
  }

  /** @param {number} x @param {number} y */
  inverse(x, y) {
    const { x0, x1, y0, y1 } = this.window;
    const high = this.surface.height - TOP - BOTTOM;
    return { p: x0 + ((x - LEFT) / (this.surface.width - LEFT - RIGHT)) * (x1 - x0), up: y0 + ((TOP + high - y) / high) * (y1 - y0) };
  }

  /** The rectangle of a life row in pixels. @param {Plan} plan @param {number} row */
  box(plan, row) {
    const life = this.player.tracks.track("life");
    const [from, to] = spanOf(this.player, plan, this.stack, row);
    const x = this.x(life.col("first")[row]);
    const y = this.y(to);
    return { x, y, w: Math.max(1, this.x(life.col("last")[row] + 1) - x), h: Math.max(1, this.y(from) - y) };
  }

  // ---- drawing

  /** @param {number} step */
  draw(step) {
    const plan = this.player.relations.planAt(step);
    if (plan !== this.plan) this.setPlan(plan);
    if (!plan || this.surface.width < 100) return;
    const position = positionIn(this.player, plan, step);
    const ahead = phaseAt(this.player, plan, step) === "before";
    const key = `${plan.plan} ${position} ${this.player.selected} ${ahead}`;
    if (key === this.drawn && !this.brush) return;
    this.drawn = this.brush ? "" : key;
    this.surface.blit(this.baked.get(plan) ?? this.keep(plan));
    paintStep(this, this.surface.begin(), plan, step, position, ahead);
    this.player.rest.after(this, QUIET_MS, () => this.say(position, ahead));
  }

  write() {
    if (this.peak.plan !== this.plan) this.peak.show(this.plan);
    else this.peak.mark();
  }

  /** @param {Plan} plan */
  keep(plan) {
    const { baked, surface } = this;
    const [oldest] = baked;
    const spare = oldest && baked.size >= surface.most ? oldest[1] : null;
    if (spare) baked.delete(oldest[0]);
    const { bitmap, context } = spare ? { bitmap: spare, context: surface.over(spare) } : surface.layer();
    bake(this, context, plan);
    baked.set(plan, bitmap);
    return bitmap;
  }

  /** What the picture shows, for those who do not see it. @param {number} position @param {boolean} ahead whether the plan is
   * still to be made */
  say(position, ahead) {
    const held = this.live?.bytes[position];
    const now = position < 0 || held === undefined ? "" : `At position ${position} of ${this.plan?.positions}, ${formatBytes(held)} ${ahead ? "will be " : ""}live. `;
    this.surface.canvas.setAttribute("aria-label", `Lifetimes of tensors over the execution order. ${now}${this.peak.describe()}${this.marks.size ? ` Marked: ${markWords(this.marks)}.` : ""}`);
  }

  /** To the nearest event that places or computes the node at a position. @param {number} position */
  goTo(position) {
    const target = this.plan ? eventOf(this.player, this.plan, position, this.player.step) : -1;
    if (target >= 0) this.player.go(target);
  }

  stop() {
    this.peak.fitter.disconnect();
    this.surface.stop();
  }
}
