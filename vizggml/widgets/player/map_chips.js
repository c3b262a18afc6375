// Words over the blocks of a chunk's bar: what the event of a step does to each, or why a search passed it by.

import { cutEnd } from "./dom.js";
import { searchAt } from "./candidates.js";
import { formatBytes, visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/**
 * @typedef {{offset: number, size: number, label: string, words: string, tone: "won" | "lost", dashed: boolean, cut?: number}} Chip
 *   `cut` is where a block is cut in two
 * @typedef {{x: (offset: number) => number, left: number, right: number, y: number, top: number, bar: number, extent: number,
 *   allocator: number, chunk: number}} LaneView where a chunk's bar is drawn: `y` is where its chips begin
 */

export const CHIP_LINE = 14;
const GAP = 12;
const LONGEST = 34;

/** @param {Player} player @param {number} step @param {LaneView} view @returns {Chip[]} */
export function chipsAt(player, step, view) {
  const search = searchAt(player.tracks, step);
  if (!search) return actionChips(player, step, view);
  const opens = player.tracks.kindOf(step).name === "ChunkOpened" ? actionChips(player, step, view) : [];
  return [...opens, ...searchChips(player, step, view, search)];
}

/** @param {Player} player @param {number} step @param {LaneView} view @param {import("./candidates.js").Search} search
 * @returns {Chip[]} */
function searchChips({ tracks }, step, view, search) {
  if (search.allocator !== view.allocator) return [];
  const kind = tracks.kindOf(step).name;
  return search.candidates
    .filter((c) => c.chunk === view.chunk)
    .map((c) => {
      const size = taken(c, search, view.extent);
      const chip = { offset: c.offset, size, label: c.label, words: c.words, tone: toneOf(c.won), dashed: !c.won };
      if (!c.won) return chip;
      if (kind === "BlockSplit") {
        const rest = tracks.field(step, "size");
        const stays = rest < 0 ? "the rest stays free" : `${formatBytes(rest)} stay free`;
        return { ...chip, size: search.size, label: `split: ${formatBytes(search.size)} taken`, words: stays, cut: tracks.field(step, "offset") };
      }
      if (kind === "ChunkGrown") {
        const [before, after] = [tracks.field(step, "size_before"), tracks.field(step, "size")];
        return { ...chip, offset: before, size: after - before, label: `the chunk grows by ${formatBytes(after - before)}`, words: `${formatBytes(before)} to ${formatBytes(after)}` };
      }
      return search.taken && kind !== "BlockChosen" ? { ...chip, size: search.size } : chip;
    });
}

/** @param {boolean} won @returns {"won" | "lost"} */
function toneOf(won) {
  return won ? "won" : "lost";
}

/** How much of a candidate is outlined: of a free end, what would be taken of it. @param {import("./candidates.js").Candidate} c
 * @param {import("./candidates.js").Search} search @param {number} extent */
function taken(c, search, extent) {
  const all = Math.min(c.size < 0 ? extent : c.size, Math.max(0, extent - c.offset));
  return c.end ? Math.min(search.size, all) : all;
}

/** @param {Player} player @param {number} step @param {LaneView} view @returns {Chip[]} */
function actionChips(player, step, view) {
  const { tracks, relations } = player;
  const kind = tracks.kindOf(step).name;
  const field = (/** @type {string} */ name) => tracks.field(step, name);
  const allocator = field("allocator") ?? relations.planAt(step)?.allocators[field("buffer_id") ?? 0];
  if (field("chunk") !== view.chunk || (allocator !== undefined && allocator !== view.allocator)) return [];
  const whole = { offset: 0, size: view.extent, tone: toneOf(true), dashed: true };
  if (kind === "ChunkOpened") return [{ ...whole, label: "this chunk opens", words: "one free block" }];
  if (kind === "ChunkGrown") {
    const [before, after] = [field("size_before"), field("size")];
    return [{ ...whole, offset: before, size: after - before, label: `the chunk grows by ${formatBytes(after - before)}`, words: `${formatBytes(before)} to ${formatBytes(after)}` }];
  }
  const offset = field("offset");
  if (offset === undefined) return [];
  const size = Math.min(field("size") < 0 ? Infinity : field("size"), Math.max(0, view.extent - offset));
  const chip = (/** @type {string} */ label, /** @type {string} */ words, dashed = false) => ({ offset, size, label, words, tone: toneOf(true), dashed });
  const name = (/** @type {string} */ of) => visible(tracks.name(field(of)));
  const where = `${formatBytes(field("size"))} at ${offset}`;
  switch (kind) {
    case "BlockMerged": {
      const side = field("side");
      const rest = field("size") < 0 ? "now the free end" : `now ${formatBytes(field("size"))}`;
      const joined = chip(side === "both" ? "joins both neighbours" : `joins the free block ${side === "next" ? "after" : "before"}`, rest, true);
      return [joined, { ...joined, offset: field("freed_offset"), size: field("freed_size"), label: "", words: "", dashed: false }];
    }
    case "BlockInserted":
      return [chip("a free block of its own", where, true)];
    case "BlockSplit":
      return [{ ...chip("split here", ""), offset: offset - field("taken"), size: field("taken"), cut: offset }];
    case "BlockRemoved":
      return [chip("used up: exact fit", where)];
    case "BlockChosen":
    case "TensorAssigned":
      return [chip(`${name("tensor")} goes here`, where)];
    case "ParentReused":
      return [chip(`${name("tensor")} in place`, `over ${name("parent")}`)];
    case "TensorFreed":
    case "Released":
      return [chip(`${name("tensor")} is freed`, where, true)];
    case "ExtraTailFreed":
      return [chip("the tail is freed", where, true)];
    default:
      return [];
  }
}

/** @param {Player} player @param {CanvasRenderingContext2D} c @param {LaneView} view @param {Chip[]} chips */
export function paintChips(player, c, view, chips) {
  const { palette } = player;
  for (const chip of [...chips].sort((p, q) => Number(p.tone === "won") - Number(q.tone === "won"))) {
    const x = view.x(chip.offset);
    const w = Math.max(3, view.x(chip.offset + chip.size) - x);
    c.strokeStyle = chip.tone === "won" ? palette.accent : palette.soft;
    c.lineWidth = chip.tone === "won" ? 2 : 1.5;
    c.setLineDash(chip.dashed ? [4, 3] : []);
    c.strokeRect(x, view.top - 1, w, view.bar + 2);
    c.setLineDash([]);
    if (chip.cut === undefined) continue;
    const at = view.x(chip.cut);
    c.beginPath();
    c.moveTo(at, view.top - 5);
    c.lineTo(at, view.top + view.bar + 5);
    c.stroke();
  }
  paintWords(player, c, view, chips.filter((chip) => chip.label));
}

/** @param {Player} player @param {CanvasRenderingContext2D} c @param {LaneView} view @param {Chip[]} chips */
function paintWords({ palette, fonts }, c, view, chips) {
  const faces = [`600 11px ${fonts.ui}`, `11px ${fonts.ui}`];
  const measured = chips.map((chip) => {
    const lines = [cutEnd(chip.label, LONGEST), chip.words];
    const widths = lines.map((text, k) => ((c.font = faces[k]), c.measureText(text).width));
    const from = Math.max(view.x(chip.offset), view.left);
    const to = Math.min(view.x(chip.offset + chip.size), view.right);
    return { chip, lines, w: Math.max(...widths), centre: (from + Math.max(to, from)) / 2, x: 0 };
  });
  const { shown, left } = place(measured, view);
  c.textBaseline = "middle";
  for (const { chip, lines, w, centre, x } of shown) {
    const won = chip.tone === "won";
    c.strokeStyle = won ? palette.accent : palette.edge;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(Math.min(Math.max(centre, x), x + w), view.y + 2 * CHIP_LINE);
    c.lineTo(Math.min(Math.max(centre, view.left), view.right), view.top - 2);
    c.stroke();
    c.fillStyle = won ? palette.accent : palette.ink;
    c.font = faces[0];
    c.fillText(lines[0], x, view.y + CHIP_LINE / 2);
    c.fillStyle = won ? palette.accent : palette.soft;
    c.font = faces[1];
    c.fillText(lines[1], x, view.y + CHIP_LINE * 1.5);
  }
  if (!left) return;
  c.fillStyle = palette.faint;
  c.font = faces[1];
  c.fillText(`+ ${left}`, view.left, view.y + CHIP_LINE / 2);
}

/** Side by side over their blocks, none over another; the first that lost are left out where there is no room for all.
 * @template {{chip: Chip, w: number, centre: number, x: number}} T @param {T[]} chips @param {LaneView} view */
function place(chips, view) {
  const shown = [...chips].sort((p, q) => p.centre - q.centre);
  const width = () => shown.reduce((sum, s) => sum + s.w + GAP, 0) + (shown.length < chips.length ? 28 : 0);
  while (shown.length > 1 && width() > view.right - view.left) {
    const lost = chips.find((chip) => chip.chip.tone === "lost" && shown.includes(chip));
    if (!lost) break;
    shown.splice(shown.indexOf(lost), 1);
  }
  let from = view.left + (shown.length < chips.length ? 28 : 0);
  for (const s of shown) {
    s.x = Math.max(from, s.centre - s.w / 2);
    from = s.x + s.w + GAP;
  }
  let to = view.right;
  for (const s of shown.toReversed()) {
    s.x = Math.min(s.x, to - s.w);
    to = s.x - GAP;
  }
  return { shown, left: chips.length - shown.length };
}
