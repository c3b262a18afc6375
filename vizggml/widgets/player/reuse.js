// Graph reuse: the verdict, the conditions in the order in which they were asked, and which evaluations reused theirs.

import { DetailPlot, counted, eventsOf } from "./detail_plot.js";
import { el, setText } from "./dom.js";
import { VirtualList } from "./list.js";
import { formatNs } from "./sentence.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {{rows: number[], decided: number}} Asked `rows` of the reuse track so far, and the event of the verdict, -1 before it */

const STRIP = 40;
const PAD = 12;
const BAR = { top: 6, high: 14 };
const ROW = 23;
const WIDEST = 26;
const MOST_WHYS = 2;

/** @type {import("./details.js").Detail} */
export const reuseDetail = {
  name: "reuse",
  title: "Reuse",
  has: ({ tracks }) => tracks.track("reuse").length > 0 || (tracks.kindNamed.ReuseDecided !== undefined && tracks.kind.includes(tracks.kindNamed.ReuseDecided.index)),
  make: (player, pane) => new ReuseView(player, pane),
};

/** @param {Player} player @param {number} step @returns {Asked} */
export function askedAt(player, step) {
  const decided = eventsOf(player, "ReuseDecided");
  const track = player.tracks.track("reuse");
  const at = upperBound(decided, step) - 1;
  const [last, before] = [decided[at] ?? -1, decided[at - 1] ?? -1];
  const open = track.openAt(step).sort((p, q) => track.a[p] - track.a[q]);
  const now = open.filter((r) => track.a[r] > last);
  if (now.length) return { rows: now, decided: -1 };
  return { rows: open.filter((r) => track.a[r] > before), decided: last };
}

/** The verdict in words. @param {Player} player @param {Asked} asked @returns {import("./detail_plot.js").Words | null} */
export function verdictOf({ tracks }, { rows, decided }) {
  const track = tracks.track("reuse");
  const ok = track.col("ok");
  const hold = rows.filter((r) => ok[r]).length;
  const failed = rows.filter((r) => !ok[r]).map((r) => `${track.str("condition", r)} ${track.str("had", r)} → ${track.str("needs", r)}`);
  if (decided < 0) return rows.length ? { strong: `asking: ${hold} of ${rows.length} hold so far`, rest: failed.join(", "), bad: failed.length > 0 } : null;
  if (tracks.field(decided, "reused")) return { strong: `graph reused: ${hold} of ${counted(rows.length, "condition")} hold`, rest: "" };
  const more = failed.length > MOST_WHYS ? ` and ${failed.length - MOST_WHYS} more` : "";
  const why = failed.length ? failed.slice(0, MOST_WHYS).join(", ") + more : String(tracks.field(decided, "why"));
  return { strong: `built anew: ${why}`, rest: rows.length ? `${hold} of ${counted(rows.length, "condition")} hold` : "", bad: true };
}

class ReuseView extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Reuse",
      keys: "evaluation by evaluation",
      empty: "No graph was asked for yet. From the second decode of a context on, its standing graph is checked.",
    });
    /** @type {Asked} */
    this.asked = { rows: [], decided: -1 };
    this.surface.box.style.flex = `0 0 ${STRIP}px`;
    this.surface.box.style.minHeight = `${STRIP}px`;
    const heads = ["asked by", "condition", "had", "needs", "holds"];
    const right = (/** @type {number} */ k) => (k === 2 || k === 3 ? "vg-right" : "");
    this.head = el("div", "vg-grid-head", {}, heads.map((text, k) => el("span", right(k), { text })));
    this.list = new VirtualList({
      label: "Conditions in the order in which they were asked",
      rowHeight: ROW,
      makeRow: () => el("div", "vg-grid-row", {}, heads.map((_, k) => el("span", right(k)))),
      fillRow: (row, index) => this.fillRow(row, index),
    });
    this.main.append(this.head, this.list.element);
    this.element.classList.add("vg-table");
    this.element.style.setProperty("--vg-columns", "minmax(0, 1.4fr) minmax(0, 1.2fr) minmax(36px, 0.7fr) minmax(36px, 0.7fr) 44px");
  }

  /** @param {number} step */
  prepare(step) {
    this.asked = askedAt(this.player, step);
    const words = verdictOf(this.player, this.asked);
    for (const part of [this.head, this.list.element]) if (part.hidden !== !words) part.hidden = !words;
    this.list.setLength(this.asked.rows.length);
    const { a } = this.player.tracks.track("reuse");
    const at = this.asked.rows.findIndex((r) => a[r] === step);
    if (at >= 0) this.list.show(at);
    if (!words) return null;
    const { reused, known } = this.counts();
    return { ...words, rest: [words.rest, `${reused} of ${counted(known, "evaluation")} reused a graph`].filter(Boolean).join("; ") };
  }

  counts() {
    return this.player.relations.keep("reuse counts", () => {
      const reused = this.player.tracks.track("eval").col("reused");
      return { known: reused.length, reused: Array.from(reused).filter(Boolean).length };
    });
  }

  /** @param {HTMLElement} element @param {number} index */
  fillRow(element, index) {
    const r = this.asked.rows[index];
    const track = this.player.tracks.track("reuse");
    if (r === undefined) return;
    const ok = track.col("ok")[r] === 1;
    [...["owner", "condition", "had", "needs"].map((name) => track.str(name, r)), ok ? "✓ yes" : "✗ no"].forEach((text, k) => setText(element.children[k], text));
    element.classList.toggle("vg-marked", track.a[r] === this.step);
    element.classList.toggle("vg-bad", !ok);
  }

  /** @param {number} k row of the evaluations */
  x(k) {
    const n = this.player.tracks.track("eval").length;
    return PAD + k * Math.min(WIDEST, (this.surface.width - 2 * PAD) / Math.max(1, n));
  }

  /** @param {CanvasRenderingContext2D} c @param {number} w @param {number} _h @param {number} step */
  paint(c, w, _h, step) {
    const { palette, fonts, tracks } = this.player;
    const track = tracks.track("eval");
    const reused = track.col("reused");
    const wide = this.x(1) - this.x(0);
    const gap = wide > 5 ? 2 : 0;
    const current = upperBound(track.a, step) - 1;
    for (let k = 0; k < track.length; k++) {
      c.globalAlpha = k <= current ? 1 : 0.3;
      c.fillStyle = reused[k] ? palette.families[2] : palette.families[3];
      const short = reused[k] ? 0 : 4;
      c.fillRect(this.x(k), BAR.top + (reused[k] ? BAR.high / 2 : 0), Math.max(0.7, wide - gap), BAR.high / 2 + short - (reused[k] ? 0 : -3));
    }
    c.globalAlpha = 1;
    for (const [k, colour] of /** @type {[number, string][]} */ ([[current, palette.accent], [this.cursor, palette.ink]])) {
      if (k < 0) continue;
      c.strokeStyle = colour;
      c.lineWidth = 2;
      c.strokeRect(this.x(k) - 1, BAR.top - 3, Math.max(4, wide - gap + 2), BAR.high + 6);
    }
    c.font = `10px ${fonts.ui}`;
    c.fillStyle = palette.faint;
    let x = PAD;
    for (const [text, family] of /** @type {[string, number][]} */ ([["built anew", 3], ["reused", 2]])) {
      c.fillStyle = palette.families[family];
      c.fillRect(x, STRIP - 11, 8, family === 3 ? 8 : 5);
      c.fillStyle = palette.soft;
      c.fillText(text, x + 12, STRIP - 7);
      x += 76;
    }
    if (w > 330) c.fillText("one bar an evaluation", x + 6, STRIP - 7);
  }

  /** @param {number} x */
  findAt(x) {
    const k = Math.floor((x - PAD) / (this.x(1) - this.x(0)));
    return k >= 0 && k < this.player.tracks.track("eval").length ? k : -1;
  }

  /** @param {number} k */
  cardOf(k) {
    const track = this.player.tracks.track("eval");
    const [index, n, pos, reused, ns] = ["index", "n_tokens", "pos", "reused", "ns"].map((name) => track.col(name)[k]);
    /** @type {[string, string][]} */
    const pairs = [["graph", reused ? "reused" : "built anew"]];
    if (n) pairs.push(["tokens", `${n} at position ${pos}`]);
    if (ns) pairs.push(["computed in", formatNs(ns)]);
    return { head: `evaluation ${index}`, pairs };
  }

  /** @param {number} k */
  placeOf(k) {
    return { x: this.x(k), y: BAR.top + BAR.high };
  }

  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    const track = this.player.tracks.track("eval");
    const from = k < 0 ? upperBound(track.a, this.step) - 1 : k + by;
    return Math.max(0, Math.min(track.length - 1, from));
  }

  /** To the verdict of that evaluation, or where it begins. @param {number} k */
  choose(k) {
    const track = this.player.tracks.track("eval");
    const decided = eventsOf(this.player, "ReuseDecided");
    const verdict = decided[upperBound(decided, track.a[k] - 1)] ?? -1;
    this.player.go(verdict >= 0 && verdict < track.b[k] ? verdict : track.a[k]);
  }

  stop() {
    this.list.stop();
    super.stop();
  }
}
