// Drawing where tokens go: experts from left to right, tokens from top to bottom, how many tokens each expert has over them.

import { visiblePiece } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./routing_state.js").Routed} Routed */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{left: number, wide: number, each: number, bars: number, barsHigh: number, axis: number, top: number, high: number, per: number,
 *   n: number}} Places pixels: an expert's width, the bars' foot and height, the numbers, the first token and how high each line is; a line
 *   stands for `per` tokens, `n` lines in all */

const RIGHT = 12;
const FOOT = 4;
const TALLEST = 18;
const READABLE = 11;
const LEAST = 3;

/** How many tokens there is room for, each on a line that can be read. @param {number} h */
export function roomFor(h) {
  return Math.max(1, Math.floor((h - topOf(h) - FOOT) / 14));
}

/** @param {number} h */
function topOf(h) {
  return barsOf(h) + 6 + 16;
}

/** @param {number} h */
function barsOf(h) {
  return Math.max(16, Math.min(64, Math.round(h * 0.22)));
}

/** @param {Routed} routed @param {number} w @param {number} h @returns {Places} */
export function placesOf({ nExpert, lines }, w, h) {
  const left = w > 460 ? 118 : w > 300 ? 84 : 40;
  const wide = w - left - RIGHT;
  const barsHigh = barsOf(h);
  const top = topOf(h);
  const room = Math.max(LEAST, h - top - FOOT);
  const per = Math.ceil((lines.length * LEAST) / room);
  const n = Math.ceil(lines.length / per);
  return { left, wide, each: wide / nExpert, bars: barsHigh + 6, barsHigh, axis: barsHigh + 6 + 9, top, high: Math.min(TALLEST, room / n), per, n };
}

/** @param {Player} player @param {Context} c @param {Routed} routed @param {Places} places @param {Map<number, string>} pieces
 * @param {{expert: number, line: number}} at what the pointer or the keys are at, -1 for none */
export function paintRouting(player, c, routed, places, pieces, at) {
  paintLoad(player, c, routed, places);
  paintGrid(player, c, routed, places);
  paintNames(player, c, routed, places, pieces);
  paintAt(player, c, places, at);
}

/** @param {Player} player @param {Context} c @param {Routed} routed @param {Places} places */
function paintLoad({ palette, fonts }, c, { load, nExpert, nUsed, nTokens }, { left, wide, each, bars, barsHigh, axis }) {
  const most = Math.max(1, ...load);
  const gap = each > 5 ? 1 : 0;
  c.font = `10px ${fonts.ui}`;
  c.textAlign = "right";
  c.fillStyle = palette.soft;
  c.fillText("tokens", left - 8, bars - barsHigh / 2 + 1);
  c.fillStyle = palette.faint;
  c.fillText("expert", left - 8, axis);
  const even = bars - ((nTokens * nUsed) / nExpert / most) * (barsHigh - 12);
  if (nTokens > 1) {
    c.strokeStyle = palette.soft;
    c.setLineDash([3, 3]);
    c.beginPath();
    c.moveTo(left, Math.round(even) + 0.5);
    c.lineTo(left + wide, Math.round(even) + 0.5);
    c.stroke();
    c.setLineDash([]);
  }
  c.fillStyle = palette.families[0];
  for (let e = 0; e < nExpert; e++) {
    const h = (load[e] / most) * (barsHigh - 12);
    if (load[e]) c.fillRect(left + e * each, bars - h, Math.max(1, each - gap), h);
  }
  c.fillStyle = palette.line;
  c.fillRect(left, bars, wide, 1);
  c.textAlign = "center";
  c.font = `9.5px ${fonts.mono}`;
  const every = [1, 2, 4, 8, 16, 32, 64, 128].find((s) => s * each >= 22) ?? 256;
  for (let e = 0; e < nExpert; e++) {
    if (load[e] && each >= 14) {
      const y = bars - (load[e] / most) * (barsHigh - 12) - 5;
      c.fillStyle = palette.page;
      c.fillRect(left + (e + 0.5) * each - 6, y - 5, 12, 9);
      c.fillStyle = palette.soft;
      c.fillText(String(load[e]), left + (e + 0.5) * each, y);
    }
    if (e % every) continue;
    c.fillStyle = palette.faint;
    c.fillText(String(e), left + (e + 0.5) * each, axis);
  }
}

/** @param {Player} player @param {Context} c @param {Routed} routed @param {Places} places */
function paintGrid({ palette }, c, { lines, nUsed, most }, { left, wide, each, top, high, per, n }) {
  c.fillStyle = palette.panel;
  c.fillRect(left, top, wide, n * high);
  const gapX = each > 5 ? 1 : 0;
  const gapY = high > 5 ? 1 : 0;
  lines.forEach(({ experts, weights, begin, now }, t) => {
    const y = top + Math.floor(t / per) * high;
    c.fillStyle = now ? palette.families[0] : palette.soft;
    for (let k = begin; k < begin + nUsed; k++) {
      c.globalAlpha = (0.18 + (0.82 * weights[k]) / most) * (now ? 1 : 0.6);
      c.fillRect(left + experts[k] * each, y, Math.max(1, each - gapX), Math.max(1, high - gapY));
    }
  });
  c.globalAlpha = 1;
}

/** Positions and pieces at the left, a bar beside those of this evaluation. @param {Player} player @param {Context} c @param {Routed} routed
 * @param {Places} places @param {Map<number, string>} pieces */
function paintNames({ palette, fonts }, c, { lines }, { left, top, high, per }, pieces) {
  const first = lines.findIndex((line) => line.now);
  c.fillStyle = palette.accent;
  const from = top + Math.floor(first / per) * high;
  c.fillRect(left - 5, from, 2, Math.ceil((lines.length - first) / per) * high - (high > 5 ? 1 : 0));
  const every = per * Math.max(1, Math.ceil(READABLE / high));
  c.font = `10.5px ${fonts.mono}`;
  c.textAlign = "right";
  for (let t = 0; t < lines.length; t += every) {
    const { pos, now } = lines[t];
    const y = Math.max(top + 6, top + (Math.floor(t / per) + 0.5) * high);
    c.fillStyle = now ? palette.ink : palette.faint;
    c.fillText(String(pos), left - 10, y);
    const piece = pieces.get(pos);
    if (!piece || left < 80 || every > 1) continue;
    c.fillText(short(visiblePiece(piece), left > 100 ? 10 : 5), left - 18 - 6.4 * 4, y);
  }
}

/** @param {string} text @param {number} most */
function short(text, most) {
  const letters = [...text];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
}

/** @param {Player} player @param {Context} c @param {Places} places @param {{expert: number, line: number}} at */
function paintAt({ palette }, c, { left, each, bars, barsHigh, top, high, n }, { expert, line }) {
  if (expert < 0) return;
  c.strokeStyle = palette.ink;
  c.lineWidth = 1;
  const x = Math.round(left + expert * each) - 0.5;
  const w = Math.max(3, Math.round(each) + (each > 5 ? 0 : 1));
  if (line < 0) c.strokeRect(x, bars - barsHigh + 2, w, top + n * high - bars + barsHigh - 1);
  else c.strokeRect(x, Math.round(top + line * high) - 0.5, w, Math.max(3, Math.round(high)));
}
