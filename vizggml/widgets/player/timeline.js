// The memory timeline: lifetimes over the execution order, baked once; a step redraws only what lives now.

import { Surface, el, setText } from "./dom.js";
import { boundWords, liveSet, paintBound, paintLiveSet } from "./live.js";
import { lifeOf } from "./map.js";
import { chunkName } from "./relations.js";
import { formatBytes, visible } from "./sentence.js";
import { FAMILIES, familyOf } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./relations.js").Plan} Plan */
/** @typedef {{x0: number, x1: number, y0: number, y1: number}} Window positions, and bytes from the bottom */

const LEFT = 66;
const RIGHT = 12;
const TOP = 16;
const BOTTOM = 32;
const CLICK = 4;
const BITMAPS = 8;
const THIN = 2;

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
    /** @type {Window} */
    this.window = { x0: 0, x1: 1, y0: 0, y1: 1 };
    /** Baked rectangles of the plans met so far. @type {Map<Plan, HTMLCanvasElement>} */
    this.baked = new Map();
    /** What the surface shows: plan, position, selection. */
    this.drawn = "";
    /** @type {{x: number, y: number, toX: number, toY: number} | null} */
    this.brush = null;
    this.surface = new Surface("Lifetimes of tensors over the execution order", () => this.resized());
    this.note = el("div", "vg-empty", { text: "No memory was planned in this trace." });
    this.note.hidden = player.tracks.track("life").length > 0;
    this.peak = el("button", "vg-footnote", { type: "button", title: "Go to the node at the peak" });
    this.peak.addEventListener("click", () => this.plan && this.goTo(this.plan.peakPosition));
    this.legend = el("div", "vg-legend");
    this.body = el("div", "vg-stack", {}, [this.surface.box, this.note, this.peak, this.legend]);
    this.reset = el("button", "vg-button vg-text-button", { type: "button", text: "Whole plan" });
    this.reset.addEventListener("click", () => this.zoomOut());
    this.reset.disabled = true;
    this.tools = [this.reset, el("span", "vg-hint", { text: "drag to zoom" })];
    FAMILIES.forEach((text, k) => {
      if (text === "view") return;
      const mark = el("span", "vg-swatch");
      mark.style.background = `var(--vg-families-${k})`;
      this.legend.append(el("span", "vg-key", {}, [mark, el("span", "", { text })]));
    });
    if (player.tracks.track("live").length) this.nameLines();
    this.listen();
  }

  nameLines() {
    for (const [text, mark] of [["live set, up to now", "vg-line-mark"], ["lower bound: the largest live set", "vg-line-mark vg-dotted"]]) {
      this.legend.append(el("span", "vg-key", {}, [el("span", mark), el("span", "", { text })]));
    }
  }

  invalidate() {
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

  zoomOut() {
    if (this.plan) this.window = whole(this.plan);
    this.reset.disabled = true;
    this.forget();
    this.player.redraw(this);
  }

  /** @param {number} p */
  x(p) {
    const { x0, x1 } = this.window;
    return LEFT + ((p - x0) / (x1 - x0)) * (this.surface.width - LEFT - RIGHT);
  }

  /** @param {number} bytes */
  y(bytes) {
    const { y0, y1 } = this.window;
    const high = this.surface.height - TOP - BOTTOM;
    return TOP + high - ((bytes - y0) / (y1 - y0)) * high;
  }

  /** @param {number} x @param {number} y */
  inverse(x, y) {
    const { x0, x1, y0, y1 } = this.window;
    const high = this.surface.height - TOP - BOTTOM;
    return { p: x0 + ((x - LEFT) / (this.surface.width - LEFT - RIGHT)) * (x1 - x0), bytes: y0 + ((TOP + high - y) / high) * (y1 - y0) };
  }

  /** @param {number} step */
  draw(step) {
    const plan = this.player.relations.planAt(step);
    if (plan !== this.plan) this.setPlan(plan);
    if (!plan || this.surface.width < 100) return;
    const position = this.player.relations.positionAt(step);
    const key = `${plan.plan} ${position} ${this.player.selected}`;
    if (key === this.drawn && !this.brush) return;
    this.drawn = this.brush ? "" : key;
    this.surface.blit(this.baked.get(plan) ?? this.bake(plan));
    const c = this.surface.begin();
    this.clip(c);
    this.paintLive(c, plan, position);
    this.paintSelected(c, plan, step);
    if (this.live) paintLiveSet(this.player, c, this.live, this.scale(), position);
    c.restore();
    this.paintHead(c, position);
    if (this.brush) this.paintBrush(c);
  }

  /** @param {Plan | null} plan */
  setPlan(plan) {
    if (!this.reset.disabled) this.forget();
    this.plan = plan;
    this.reset.disabled = true;
    if (!plan) return;
    this.window = whole(plan);
    this.live = liveSet(this.player, plan.plan);
    const { tracks } = this.player;
    const life = tracks.track("life");
    const names = plan.atPeak.map((r) => `${visible(tracks.name(life.col("tensor")[r]))} ${formatBytes(life.col("size")[r])}`);
    const more = names.length > 8 ? `, and ${names.length - 8} more` : "";
    setText(this.peak, `${this.peakWords(plan)}, reached at position ${plan.peakPosition}: ${names.slice(0, 8).join(", ")}${more}`);
    this.peak.title = this.peak.textContent ?? "";
  }

  /** @param {Plan} plan */
  peakWords(plan) {
    const reached = plan.size < plan.whole ? `Reaches ${formatBytes(plan.size)} of ${formatBytes(plan.whole)}` : `Peak ${formatBytes(plan.size)}`;
    return reached + boundWords(plan.size, this.live);
  }

  /** @returns {import("./live.js").Scale} */
  scale() {
    return { x: (p) => this.x(p), y: (bytes) => this.y(bytes) };
  }

  /** @param {CanvasRenderingContext2D} c */
  clip(c) {
    c.save();
    c.beginPath();
    c.rect(LEFT, TOP, this.surface.width - LEFT - RIGHT, this.surface.height - TOP - BOTTOM);
    c.clip();
  }

  /** The rectangle of a life row in pixels. @param {Plan} plan @param {number} row */
  box(plan, row) {
    const life = this.player.tracks.track("life");
    const base = plan.chunks.find((k) => k.chunk === life.col("chunk")[row])?.base ?? 0;
    const from = base + life.col("offset")[row];
    const x = this.x(life.col("first")[row]);
    const y = this.y(from + life.col("size")[row]);
    return { x, y, w: Math.max(1, this.x(life.col("last")[row] + 1) - x), h: Math.max(1, this.y(from) - y) };
  }

  /** @param {Plan} plan */
  bake(plan) {
    const { bitmap, context: c } = this.surface.layer();
    const { palette, tracks } = this.player;
    c.fillStyle = palette.page;
    c.fillRect(0, 0, this.surface.width, this.surface.height);
    this.paintAxes(c, plan);
    this.clip(c);
    const tensor = tracks.track("life").col("tensor");
    const pale = palette.dark ? 0.42 : 0.38;
    for (const row of plan.rows) {
      const { x, y, w, h } = this.box(plan, row);
      c.globalAlpha = h < THIN ? 0.8 : pale;
      c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
      c.fillRect(x, h < THIN ? y - 0.5 : y, w - (w > 3 ? 0.5 : 0), h < THIN ? THIN : h - (h > 3 ? 0.5 : 0));
    }
    c.globalAlpha = 1;
    if (this.live) paintBound(this.player, c, this.live, this.scale());
    c.restore();
    this.paintPeak(c, plan);
    if (this.baked.size >= BITMAPS) this.baked.clear();
    this.baked.set(plan, bitmap);
    return bitmap;
  }

  /** @param {CanvasRenderingContext2D} c @param {Plan} plan */
  paintAxes(c, plan) {
    const { palette, fonts } = this.player;
    const { width, height } = this.surface;
    c.font = `10.5px ${fonts.ui}`;
    c.textBaseline = "middle";
    c.lineWidth = 1;
    for (let k = 0; k <= 4; k++) {
      const bytes = this.window.y0 + ((this.window.y1 - this.window.y0) * k) / 4;
      const y = Math.round(this.y(bytes)) + 0.5;
      c.strokeStyle = palette.line;
      c.beginPath();
      c.moveTo(LEFT, y);
      c.lineTo(width - RIGHT, y);
      c.stroke();
      c.fillStyle = palette.faint;
      c.textAlign = "right";
      c.fillText(formatBytes(Math.round(bytes)), LEFT - 6, y);
    }
    c.fillStyle = palette.soft;
    c.textAlign = "right";
    c.fillText("position in the execution order (not time)", width - RIGHT, height - BOTTOM + 23);
    c.textAlign = "left";
    c.fillText("offset", LEFT, 7);
    c.strokeStyle = palette.edge;
    for (const chunk of plan.chunks.slice(1)) {
      const y = Math.round(this.y(chunk.base)) + 0.5;
      c.strokeRect(LEFT, y, width - LEFT - RIGHT, 0.01);
      c.fillText(chunkName(plan, chunk.chunk), LEFT + 4, y - 7);
    }
  }

  /** @param {CanvasRenderingContext2D} c @param {Plan} plan */
  paintPeak(c, plan) {
    const { palette, fonts } = this.player;
    const y = Math.round(this.y(plan.size)) + 0.5;
    if (y < TOP - 2) return;
    c.strokeStyle = palette.ink;
    c.setLineDash([5, 4]);
    c.beginPath();
    c.moveTo(LEFT, y);
    c.lineTo(this.surface.width - RIGHT, y);
    c.stroke();
    c.setLineDash([]);
    c.fillStyle = palette.ink;
    c.font = `600 11px ${fonts.ui}`;
    c.textAlign = "right";
    c.textBaseline = "middle";
    c.fillText(this.peakWords(plan), this.surface.width - RIGHT, Math.max(7, y - 8));
    c.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} c @param {Plan} plan @param {number} position */
  paintLive(c, plan, position) {
    if (position < 0) return;
    const { palette, tracks } = this.player;
    const life = tracks.track("life");
    const [first, last, tensor] = ["first", "last", "tensor"].map((n) => life.col(n));
    c.strokeStyle = palette.page;
    c.lineWidth = 1;
    for (const row of plan.rows) {
      if (first[row] > position || last[row] < position) continue;
      const { x, y, w, h } = this.box(plan, row);
      c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
      c.fillRect(x, h < THIN ? y - 1 : y, w, h < THIN ? THIN + 1 : h);
      if (h > 4) c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
      this.paintName(c, tensor[row], x, y, w, h);
    }
  }

  /** @param {CanvasRenderingContext2D} c @param {number} t @param {number} x @param {number} y @param {number} w @param {number} h */
  paintName(c, t, x, y, w, h) {
    const name = visible(this.player.tracks.name(t));
    if (h < 13 || w < name.length * 6.1 + 10) return;
    c.fillStyle = this.player.palette.dark ? "#0b0e13" : "#10151d";
    c.font = `10px ${this.player.fonts.mono}`;
    c.textBaseline = "middle";
    c.fillText(name, x + 5, y + h / 2 + 0.5);
  }

  /** @param {CanvasRenderingContext2D} c @param {Plan} plan @param {number} step */
  paintSelected(c, plan, step) {
    const { selected, relations, palette } = this.player;
    const row = selected < 0 ? -1 : relations.lifeRow(selected, step);
    if (row < 0) return;
    const { x, y, w, h } = this.box(plan, row);
    c.strokeStyle = palette.ink;
    c.lineWidth = 2;
    c.strokeRect(x - 1, y - 1, w + 2, h + 2);
  }

  /** @param {CanvasRenderingContext2D} c @param {number} position */
  paintHead(c, position) {
    const { x0, x1 } = this.window;
    const { palette, fonts } = this.player;
    const shown = position >= x0 && position < x1;
    const x = this.x(position + 0.5);
    if (!shown) return this.paintTicks(c, -100, -100);
    const bottom = this.surface.height - BOTTOM;
    c.fillStyle = palette.accent;
    c.fillRect(Math.round(x) - 0.75, TOP, 1.5, bottom - TOP);
    c.font = `600 11px ${fonts.ui}`;
    const held = this.live?.bytes[position];
    const text = held === undefined ? String(position) : `${position}: ${formatBytes(held)} live`;
    const w = c.measureText(text).width + 10;
    const left = Math.min(x - w / 2, this.surface.width - w - 2);
    this.paintTicks(c, left, left + w);
    c.font = `600 11px ${fonts.ui}`;
    c.fillStyle = palette.accent;
    c.beginPath();
    c.roundRect(left, bottom + 1, w, 16, 3);
    c.fill();
    c.fillStyle = palette.onAccent;
    c.textBaseline = "middle";
    c.textAlign = "center";
    c.fillText(text, left + w / 2, bottom + 9.5);
    c.textAlign = "left";
  }

  /** Positions along the bottom, but for those that would touch the current one's words.
   * @param {CanvasRenderingContext2D} c @param {number} from @param {number} to */
  paintTicks(c, from, to) {
    const { palette, fonts } = this.player;
    c.font = `10.5px ${fonts.ui}`;
    c.fillStyle = palette.faint;
    c.textBaseline = "middle";
    c.textAlign = "center";
    for (const p of ticks(this.window.x0, this.window.x1, Math.max(2, Math.floor(this.surface.width / 110)))) {
      const x = this.x(p + 0.5);
      if (x < from - 16 || x > to + 16) c.fillText(String(p), x, this.surface.height - BOTTOM + 9);
    }
    c.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} c */
  paintBrush(c) {
    if (!this.brush) return;
    const { palette } = this.player;
    const { x, y, toX, toY } = this.brush;
    c.strokeStyle = palette.ink;
    c.lineWidth = 1;
    c.setLineDash([3, 3]);
    c.strokeRect(Math.min(x, toX), Math.min(y, toY), Math.abs(toX - x), Math.abs(toY - y));
    c.setLineDash([]);
  }

  listen() {
    const { box } = this.surface;
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.plan) return;
      if (event.offsetY > this.surface.height - BOTTOM) return this.goTo(Math.floor(this.inverse(event.offsetX, 0).p));
      this.brush = { x: event.offsetX, y: event.offsetY, toX: event.offsetX, toY: event.offsetY };
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      if (!this.brush) return this.hover(event);
      Object.assign(this.brush, { toX: event.offsetX, toY: event.offsetY });
      this.player.redraw(this);
    });
    box.addEventListener("pointerup", () => this.endBrush());
    box.addEventListener("pointerleave", () => this.player.tip.hide());
    box.addEventListener("dblclick", () => this.zoomOut());
  }

  endBrush() {
    const { brush, plan } = this;
    this.brush = null;
    if (!brush || !plan) return;
    const { x, y, toX, toY } = brush;
    if (Math.hypot(toX - x, toY - y) < CLICK) {
      const row = this.hit(x, y);
      this.player.select(row < 0 ? -1 : this.player.tracks.track("life").col("tensor")[row]);
      return;
    }
    const p = this.inverse(Math.min(x, toX), Math.max(y, toY));
    const q = this.inverse(Math.max(x, toX), Math.min(y, toY));
    const full = whole(plan);
    const wide = Math.abs(toX - x) > CLICK * 2;
    const high = Math.abs(toY - y) > CLICK * 4;
    this.window = {
      x0: wide ? Math.max(0, Math.floor(p.p)) : full.x0,
      x1: wide ? Math.min(full.x1, Math.max(Math.ceil(q.p), Math.floor(p.p) + 2)) : full.x1,
      y0: high ? Math.max(0, p.bytes) : this.window.y0,
      y1: high ? Math.min(full.y1, q.bytes) : this.window.y1,
    };
    this.reset.disabled = false;
    this.forget();
    this.player.redraw(this);
  }

  /** To the nearest event about the node at a position. @param {number} position */
  goTo(position) {
    const { relations, step, tracks } = this.player;
    const { node } = relations.focus;
    const at = (/** @type {number} */ i) => tracks.node[i] >= 0 && relations.home.position[node[i]] === position;
    const back = at(step) ? step : tracks.find(step, -1, at);
    const ahead = tracks.find(step, 1, at);
    const target = back < 0 ? ahead : ahead < 0 || step - back <= ahead - step ? back : ahead;
    if (target >= 0) this.player.go(target);
  }

  /** @param {number} x @param {number} y @returns {number} a life row or -1 */
  hit(x, y) {
    const { plan } = this;
    if (!plan) return -1;
    const { p, bytes } = this.inverse(x, y);
    const life = this.player.tracks.track("life");
    const [first, last, offset, size, chunk] = ["first", "last", "offset", "size", "chunk"].map((n) => life.col(n));
    for (const row of plan.rows) {
      if (first[row] > p || last[row] + 1 < p) continue;
      const from = (plan.chunks.find((k) => k.chunk === chunk[row])?.base ?? 0) + offset[row];
      if (bytes >= from && bytes < from + size[row]) return row;
    }
    return -1;
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const row = this.hit(event.offsetX, event.offsetY);
    if (row < 0) return this.player.tip.hide();
    const { tracks, tip, step } = this.player;
    const life = tracks.track("life");
    const t = life.col("tensor")[row];
    tip.show(this.surface.box, event.offsetX, event.offsetY, visible(tracks.name(t)), [
      ["offset", String(life.col("offset")[row])],
      ["size", formatBytes(life.col("size")[row])],
      ...lifeOf(this.player, t, step),
    ]);
  }

  stop() {
    this.surface.stop();
  }
}

/** @param {Plan} plan @returns {Window} */
function whole(plan) {
  return { x0: 0, x1: plan.positions, y0: 0, y1: plan.size || 1 };
}

/** Round numbers between two values. @param {number} from @param {number} to @param {number} wanted */
function ticks(from, to, wanted) {
  const rough = (to - from) / wanted;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) ?? 10 * power);
  const out = [];
  for (let p = Math.ceil(from / step) * step; p < to; p += step) out.push(p);
  return out;
}
