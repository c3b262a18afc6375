// The memory map: every chunk as a bar to scale at this step, and what the allocator does with it just now.

import { searchAt, searchWords } from "./candidates.js";
import { Surface, cutEnd, el, iconButton } from "./dom.js";
import { UNKNOWN, UNKNOWN_WORDS, paintFree, paintOwned, paintUnknown } from "./map_blocks.js";
import { BufferBars } from "./map_buffers.js";
import { CHIP_LINE, chipsAt, paintChips } from "./map_chips.js";
import { Lanes } from "./map_lanes.js";
import { Motion } from "./map_motion.js";
import { madeAt, phaseAt } from "./phase.js";
import { chunkNumber } from "./relations.js";
import { ReserveLine } from "./reserve.js";
import { formatBytes, visible } from "./sentence.js";
import { byteTicks } from "./ticks.js";
import { UsageLine, unknownParts } from "./usage.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./map_lanes.js").Lane} Lane */
/** @typedef {import("./map_blocks.js").Block} Block */

const LEFT = 12;
const RIGHT = 12;
const MARK = 2 * CHIP_LINE + 9;
const AXIS = 16;
const HEAD = 18;
const GAP = 8;
const CHUNK_BAR = 38;
const BUFFER_BAR = 14;
const QUIET = 22;
const RESERVE = 24;
/** The line of figures, and where it is two. */
const [USAGE, USAGE_OF_TWO] = [38, 70];
const THINNEST = 2;
/** Taller than this, the lanes scroll. */
const [MOST, MOST_OF_SEVERAL] = [200, 244];
const ENDLESS = 2 ** 50;
const QUIET_MS = 350;
const TICK_WIDTH = 110;

export class MapPane {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "map";
    this.title = "Memory map";
    this.lanes = new Lanes(player);
    this.surface = new Surface("Memory at this step: chunks to scale, with tensors and free blocks", () => this.resized());
    this.note = el("div", "vg-empty", { text: "No memory was planned in this trace." });
    this.note.hidden = !this.lanes.none;
    this.scroller = el("div", "vg-stack vg-scroll", {}, [this.surface.box, this.note]);
    this.reserve = new ReserveLine(player);
    this.usage = new UsageLine(player);
    this.usage.element.hidden = !this.lanes.rows;
    this.motion = new Motion(player, this.surface);
    /** How high the bar of a buffer is: where nothing is planned, buffers are what there is to see. */
    this.bufferBar = this.lanes.rows ? BUFFER_BAR : CHUNK_BAR;
    this.bars = new BufferBars(this, LEFT, this.bufferBar);
    this.body = el("div", "vg-stack", {}, [this.reserve.element, this.scroller, this.usage.element]);
    this.fitter = new ResizeObserver((entries) => this.fit(entries[entries.length - 1].contentRect.height - (player.short ? 0 : this.line)));
    this.fitter.observe(this.body);
    this.high = this.lanes.none ? 0 : this.heightOf(CHUNK_BAR);
    this.surface.box.style.minHeight = `${this.high}px`;
    this.tools = [
      el("span", "vg-hint", { text: "bytes, to scale" }),
      el("div", "vg-group", {}, [
        iconButton("slower", "Zoom out", () => this.zoomBy(2)),
        iconButton("faster", "Zoom in on what is touched now", () => this.zoomBy(1 / 2)),
        iconButton("fit", "The whole of it", () => this.zoomTo(0, 1)),
      ]),
    ];
    /** @type {Block[]} */
    this.blocks = [];
    /** Where the bars of the chunks are. @type {import("./map_chips.js").LaneView[]} */
    this.views = [];
    /** Whether this step has drawn something new. */
    this.fresh = false;
    this.least = 0;
    this.from = 0;
    this.to = 1;
    this.drawn = "";
    this.listen();
  }

  invalidate() {
    this.drawn = "";
  }

  /** What stands over and under the lanes. */
  get line() {
    const usage = this.player.tiny ? USAGE_OF_TWO : USAGE;
    return (this.reserve.element.hidden ? 0 : RESERVE) + (this.lanes.rows ? usage : 0);
  }

  get tall() {
    return Math.min(this.high || 40, this.lanes.rows > 1 ? MOST_OF_SEVERAL : MOST) + this.line;
  }

  resized() {
    this.drawn = "";
    this.player.redraw(this);
  }

  /** All that the picture depends on, in one string: where it is the same, nothing is drawn. @param {number} step */
  contents(step) {
    const { tracks, relations, selected } = this.player;
    const acts = tracks.field(step, "chunk") !== undefined || tracks.kindOf(step).name === "SearchBegin";
    const rows = ["block", "chunk", "place"].map((name) => tracks.track(name).epoch(step));
    return [acts ? step : -1, relations.planAt(step)?.plan, selected, relations.tensorAt(step), ...rows].join(" ");
  }

  /** @param {number} bar how high a chunk's bar is */
  heightOf(bar) {
    const { rows, idle, buffers } = this.lanes;
    return rows * (HEAD + GAP + MARK + bar + AXIS) + (idle ? QUIET : 0) + buffers.length * (HEAD + GAP + this.bufferBar) + 4;
  }

  /** No lane is cut in two where they do not all fit: those below are scrolled to. @param {number} room */
  fit(room) {
    const whole = this.whole(room);
    this.scroller.style.maxHeight = whole < room && whole < this.heightOf(CHUNK_BAR) ? `${whole}px` : "none";
  }

  /** What of `room` the lanes fill that fit into it whole. @param {number} room */
  whole(room) {
    const { rows, buffers } = this.lanes;
    const each = HEAD + GAP + this.bufferBar;
    const high = this.heightOf(CHUNK_BAR);
    const over = Math.max(0, Math.ceil((high - room) / each));
    return over > buffers.length || (over && !rows) ? room : high - over * each;
  }

  /** What of `room` the pane fills. @param {number} room */
  wants(room) {
    const line = this.player.short ? 0 : this.line;
    return this.lanes.rows ? Math.min(room, this.whole(room - line) + line) : room;
  }

  chunkBar() {
    const spare = (this.surface.height - this.heightOf(CHUNK_BAR)) / (this.lanes.rows || 1);
    return CHUNK_BAR + Math.max(0, Math.min(80, spare));
  }

  /** @param {number} step */
  draw(step) {
    const { surface } = this;
    this.fresh = false;
    if (surface.width < 2 || this.lanes.none) return;
    const shown = this.contents(step);
    this.fresh = shown !== this.drawn;
    if (this.fresh) this.paint(step);
    this.drawn = shown;
    this.motion.show(step, this.views);
  }

  /** @param {number} step */
  write(step) {
    this.reserve.draw(step);
    if (!this.fresh || !this.lanes.rows) return;
    const chunks = this.lanes.chunksAt(step);
    const usage = this.usage.draw(step, new Set(chunks.flatMap((lane) => (lane ? [lane.allocator] : []))));
    this.player.rest.after(this, QUIET_MS, () => this.say(step, usage));
  }

  /** @param {number} step */
  paint(step) {
    const { surface } = this;
    const { palette } = this.player;
    const c = surface.begin();
    c.fillStyle = palette.page;
    c.fillRect(0, 0, surface.width, surface.height);
    this.blocks = [];
    this.views = [];
    const bar = this.chunkBar();
    let y = 2;
    const chunks = this.lanes.chunksAt(step);
    for (const lane of chunks) {
      if (lane) this.drawChunk(c, step, lane, y, bar);
      y += HEAD + MARK + bar + AXIS + GAP;
    }
    if (this.lanes.idle) {
      c.font = `11px ${this.player.fonts.ui}`;
      c.fillStyle = palette.faint;
      c.fillText(this.lanes.idleWords(chunks), LEFT, y + QUIET / 2 - 7);
      y += QUIET;
    }
    for (const lane of this.lanes.buffers) {
      this.drawBuffer(c, step, lane, y);
      y += HEAD + this.bufferBar + GAP;
    }
  }

  /** What the picture shows, for those who do not see it. @param {number} step @param {string} usage */
  say(step, usage) {
    const search = searchAt(this.player.tracks, step);
    const words = search ? `${visible(searchWords(this.player.tracks, search))}.` : "";
    this.surface.canvas.setAttribute("aria-label", `Memory at this step. ${usage} ${words}`.trim());
  }

  /** The bytes that a chunk's bar stands for. @param {Lane} lane @param {number} step */
  extentOf(lane, step) {
    return Math.max(this.least, this.reachOf(lane, step));
  }

  /** The bytes that the longest bar needs at a step. @param {number} step @returns {number} */
  reach(step) {
    return Math.max(0, ...this.lanes.chunksAt(step).map((lane) => (lane ? this.reachOf(lane, step) : 0)));
  }

  /** Draws bars for at least so many bytes, as another map beside this one does. @param {number} bytes */
  setLeast(bytes) {
    if (bytes === this.least) return;
    this.least = bytes;
    this.resized();
  }

  /** What the plan of a step reaches of a chunk, so the scale holds while the plan does. @param {Lane} lane @param {number} step */
  reachOf(lane, step) {
    const plan = this.lanes.planOf(lane.allocator, step);
    const chunk = plan?.chunks.find((k) => k.chunk === chunkNumber(plan, lane.allocator, lane.chunk));
    return Math.max(chunk ? chunk.size : lane.extent, 1);
  }

  /** Where a lane's bar ends: short of the right side where it is drawn to the scale of a larger one.
   * @param {Lane} lane @param {number} extent @param {number} step */
  endOf(lane, extent, step) {
    const own = this.reachOf(lane, step);
    return own < extent ? Math.max(LEFT, Math.min(this.x(own, extent), this.surface.width - RIGHT)) : this.surface.width - RIGHT;
  }

  /** The x of an offset in a lane of that extent. @param {number} offset @param {number} extent */
  x(offset, extent) {
    const wide = this.surface.width - LEFT - RIGHT;
    return LEFT + ((offset / extent - this.from) / (this.to - this.from)) * wide;
  }

  /** @param {CanvasRenderingContext2D} c @param {string} left @param {string} right @param {number} y */
  head(c, left, right, y) {
    const { palette, fonts } = this.player;
    c.textBaseline = "middle";
    c.font = `12px ${fonts.ui}`;
    c.fillStyle = palette.ink;
    const room = this.surface.width - LEFT - RIGHT - c.measureText(right).width - HEAD;
    const most = c.measureText(left).width;
    c.fillText(most > room ? cutEnd(left, Math.floor((left.length * room) / most)) : left, LEFT, y + HEAD / 2);
    c.fillStyle = palette.soft;
    c.textAlign = "right";
    c.fillText(right, this.surface.width - RIGHT, y + HEAD / 2);
    c.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} c @param {number} step @param {Lane} whole @param {number} y @param {number} bar */
  drawChunk(c, step, whole, y, bar) {
    const { tracks, palette } = this.player;
    const lane = { ...whole, extent: this.extentOf(whole, step) };
    const track = tracks.track("block");
    const [allocator, chunk, offset, size, owner] = ["allocator", "chunk", "offset", "size", "owner"].map((n) => track.col(n));
    const top = y + HEAD + MARK;
    const now = this.chunkSize(lane, step);
    let used = 0;
    c.save();
    c.beginPath();
    c.rect(LEFT, y + HEAD, this.surface.width - LEFT - RIGHT, MARK + bar + AXIS);
    c.clip();
    c.fillStyle = palette.panel;
    const end = this.endOf(whole, lane.extent, step);
    c.fillRect(LEFT, top, end - LEFT, bar);
    /** @type {Block[]} */
    const owned = [];
    track.each(step, (row) => {
      if (allocator[row] !== lane.allocator || chunk[row] !== lane.chunk) return;
      const endless = size[row] < 0 || offset[row] + size[row] > ENDLESS;
      const end = endless ? lane.extent : offset[row] + size[row];
      const x = this.x(offset[row], lane.extent);
      const w = Math.max(THINNEST, this.x(end, lane.extent) - x);
      const block = { x, w, y: top, h: bar, owner: owner[row], offset: offset[row], size: size[row], endless, allocator: lane.allocator, chunk: lane.chunk };
      this.blocks.push(block);
      if (owner[row] >= 0) {
        used += size[row];
        owned.push(block);
      } else if (!endless) {
        paintFree(this.player, c, block);
      }
    });
    for (const block of owned) paintOwned(this.player, c, block);
    for (const [from, to] of unknownParts(this.blocks.filter((b) => b.allocator === lane.allocator && b.chunk === lane.chunk), now)) {
      const x = this.x(from, lane.extent);
      const block = { x, w: Math.max(THINNEST, this.x(to, lane.extent) - x), y: top, h: bar, owner: UNKNOWN, offset: from, size: to - from, endless: false, allocator: lane.allocator, chunk: lane.chunk };
      this.blocks.push(block);
      paintUnknown(this.player, c, block);
      used += to - from;
    }
    this.drawExtent(c, lane, now, top, bar, end);
    const view = this.viewOf(lane, y + HEAD, top, bar);
    this.views.push(view);
    paintChips(this.player, c, view, chipsAt(this.player, step, view));
    this.drawAxis(c, lane, top + bar);
    c.restore();
    const said = (now >= 0 || lane.chunk === 0) && this.lookedFor(lane, step);
    this.head(c, this.lanes.nameOf(lane, step), said || this.heldWords(lane, step, used, now), y);
  }

  /** How much of a chunk is taken, and at which point of the plan that is so. @param {Lane} lane @param {number} step
   * @param {number} used @param {number} now how large it is, -1 where it is not open */
  heldWords(lane, step, used, now) {
    if (now < 0) return "nothing planned yet";
    const plan = this.player.relations.planAt(step);
    const phase = plan?.allocators.includes(lane.allocator) ? phaseAt(this.player, plan, step) : "before";
    const of = `${formatBytes(used)} held of ${formatBytes(Math.max(used, now))}`;
    return phase === "planned" && plan && madeAt(this.player, plan) > plan.begin ? `when all is planned: ${of}` : of;
  }

  /** @param {Lane} lane @param {number} y @param {number} top @param {number} bar @returns {import("./map_chips.js").LaneView} */
  viewOf({ allocator, chunk, extent }, y, top, bar) {
    const right = this.surface.width - RIGHT;
    return { x: (offset) => this.x(offset, extent), left: LEFT, right, y, top, bar, extent, allocator, chunk };
  }

  /** What is searched in an allocator's chunks at a step, if anything is. @param {Lane} lane @param {number} step */
  lookedFor(lane, step) {
    const { tracks } = this.player;
    const search = searchAt(tracks, step);
    if (!search || search.allocator !== lane.allocator || tracks.kindOf(step).name === "TensorAssigned") return "";
    return `looking for ${formatBytes(search.size)}${search.tensor >= 0 ? ` for ${visible(tracks.name(search.tensor))}` : ""}`;
  }

  /** How large a chunk is by now, -1 where it is not open. @param {Lane} lane @param {number} step */
  chunkSize(lane, step) {
    const track = this.player.tracks.track("chunk");
    const [allocator, chunk, size] = ["allocator", "chunk", "size"].map((n) => track.col(n));
    let now = -1;
    track.each(step, (row) => {
      if (allocator[row] === lane.allocator && chunk[row] === lane.chunk) now = size[row];
    });
    return now;
  }

  /** The chunk's size so far: what lies beyond is not asked for yet.
   * @param {CanvasRenderingContext2D} c @param {Lane} lane @param {number} now @param {number} top @param {number} bar
   * @param {number} end where the bar ends */
  drawExtent(c, lane, now, top, bar, end) {
    const { palette } = this.player;
    const x = Math.round(this.x(now, lane.extent)) - 0.5;
    c.lineWidth = 1;
    if (now >= 0 && now < lane.extent) {
      c.strokeStyle = palette.soft;
      c.beginPath();
      c.moveTo(x, top - 3);
      c.lineTo(x, top + bar + 3);
      c.stroke();
    }
    c.strokeStyle = palette.line;
    c.strokeRect(LEFT + 0.5, top + 0.5, end - LEFT - 1, bar - 1);
  }

  /** @param {CanvasRenderingContext2D} c @param {Lane} lane @param {number} y */
  drawAxis(c, lane, y) {
    const { palette, fonts } = this.player;
    c.fillStyle = palette.faint;
    c.font = `10.5px ${fonts.ui}`;
    c.textBaseline = "middle";
    const [from, to] = [lane.extent * this.from, lane.extent * this.to];
    for (const { value, label } of byteTicks(from, to, Math.max(2, Math.floor(this.surface.width / TICK_WIDTH)))) {
      const x = this.x(value, lane.extent);
      const half = c.measureText(label).width / 2;
      c.textAlign = "center";
      c.fillText(label, Math.min(Math.max(x, LEFT + half), this.surface.width - RIGHT - half), y + AXIS / 2 + 2);
      c.fillRect(Math.round(x), y, 1, 3);
    }
    c.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} c @param {number} step @param {Lane} lane @param {number} y */
  drawBuffer(c, step, lane, y) {
    const blocks = this.bars.paint(c, step, lane, y + HEAD);
    this.blocks.push(...blocks);
    this.head(c, `${lane.label}${lane.usage ? ` · ${lane.usage}` : ""}`, `${blocks.length} tensors in ${formatBytes(lane.extent)}`, y);
  }

  listen() {
    const { box } = this.surface;
    box.addEventListener("pointermove", (event) => this.hover(event));
    box.addEventListener("pointerleave", () => this.player.tip.hide());
    box.addEventListener("click", (event) => this.player.select(this.hit(event.offsetX, event.offsetY)?.owner ?? -1));
    box.addEventListener("dblclick", () => this.zoomTo(0, 1));
    box.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        const at = this.from + ((event.offsetX - LEFT) / (this.surface.width - LEFT - RIGHT)) * (this.to - this.from);
        const f = Math.exp(event.deltaY * 0.01);
        this.zoomTo(at - (at - this.from) * f, at + (this.to - at) * f);
      },
      { passive: false },
    );
  }

  /** About the block that the event of this step speaks of, else about the middle. @param {number} factor */
  zoomBy(factor) {
    const { tracks, step } = this.player;
    const lane = this.lanes.chunksAt(step)[0];
    const offset = tracks.field(step, "offset");
    const inChunk = lane && offset !== undefined && tracks.field(step, "chunk") !== undefined;
    const said = inChunk ? (offset + Math.max(0, tracks.field(step, "size")) / 2) / this.extentOf(lane, step) : -1;
    const half = ((this.to - this.from) * factor) / 2;
    const centre = factor < 1 && said >= 0 && said <= 1 ? said : (this.from + this.to) / 2;
    const from = Math.min(Math.max(0, centre - half), Math.max(0, 1 - 2 * half));
    this.zoomTo(from, from + 2 * half);
  }

  /** @param {number} from @param {number} to */
  zoomTo(from, to) {
    this.from = Math.max(0, from);
    this.to = Math.min(1, Math.max(to, this.from + 1e-6));
    this.resized();
  }

  /** @param {number} x @param {number} y @returns {Block | undefined} */
  hit(x, y) {
    const near = this.blocks.filter((b) => y >= b.y && y <= b.y + b.h && x >= b.x - 2 && x <= b.x + b.w + 2);
    return near.find((b) => x >= b.x && x <= b.x + b.w && b.owner >= 0) ?? near.find((b) => b.owner >= 0) ?? near[0];
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const block = this.hit(event.offsetX, event.offsetY);
    if (!block) return this.player.tip.hide();
    const { tip, tracks, step } = this.player;
    const where = /** @type {[string, string][]} */ ([
      ["offset", String(block.offset)],
      ["size", block.endless ? "to the end of the address space" : formatBytes(block.size)],
    ]);
    if (block.owner === UNKNOWN) return tip.show(this.surface.box, event.offsetX, event.offsetY, UNKNOWN_WORDS, where);
    if (block.owner < 0) {
      const search = searchAt(tracks, step);
      const looked = search?.candidates.find((c) => c.chunk === block.chunk && c.offset === block.offset && search.allocator === block.allocator);
      if (looked) where.push(["in this search", looked.words]);
      return tip.show(this.surface.box, event.offsetX, event.offsetY, "free block", where);
    }
    const head = visible(tracks.name(block.owner));
    tip.show(this.surface.box, event.offsetX, event.offsetY, head, [...where, ...lifeOf(this.player, block.owner, step)]);
  }

  stop() {
    this.motion.stop();
    this.fitter.disconnect();
    this.surface.stop();
  }
}

/** When a tensor lives, who freed it, whose memory it took and who took its. @param {Player} player @param {number} t
 * @param {number} step @returns {[string, string][]} */
export function lifeOf(player, t, step) {
  const { tracks, relations } = player;
  const row = relations.lifeRow(t, step);
  if (row < 0) return [];
  const life = tracks.track("life");
  const cell = (/** @type {string} */ name) => life.col(name)[row];
  /** @type {[string, string][]} */
  const pairs = [["lives", `position ${cell("first")} to ${cell("last")} in the execution order`]];
  pairs.push(["freed by", cell("freed_by") >= 0 ? visible(tracks.name(cell("freed_by"))) : "nobody: kept"]);
  if (cell("reuses") >= 0) pairs.push(["reuses", visible(tracks.name(cell("reuses")))]);
  const plan = relations.planAt(step);
  const heir = plan && [...plan.rows].find((r) => life.col("reuses")[r] === life.col("tensor")[row]);
  if (heir !== null && heir !== undefined) pairs.push(["reused by", visible(tracks.name(life.col("tensor")[heir]))]);
  return pairs;
}
