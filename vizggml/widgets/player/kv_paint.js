// Drawing the KV cache: cells from left to right, layers from top to bottom, K over V.

import { sees } from "./kv_state.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./kv_state.js").KvState} KvState */
/** @typedef {import("./kv_state.js").Run} Run */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{from: number, to: number}} Range cells */
/** @typedef {{left: number, wide: number, range: Range, over: number, band: number, high: number, k: number, v: number, each: number,
 *   foot: number}} Places pixels: `over` the whole cache (-1: not drawn), `band` the positions and how high, K and V, one of them, the axis */
/** @typedef {{cells: Set<number>, gone: boolean, found: boolean, layer: number, which: number}} Marks what the step's event speaks of */

const LEFT = 42;
const RIGHT = 12;
const AXIS = 16;
const SEEN = 5;
const LAYER = 30;
const SEQUENCE_FAMILIES = [0, 3, 2, 1, 4];

/** Which of the palette's families colours a sequence. @param {number} seq */
export function familyOfSequence(seq) {
  return SEQUENCE_FAMILIES[seq % SEQUENCE_FAMILIES.length];
}

/** @param {Player} player @param {number} seq */
function colourOf({ palette }, seq) {
  return palette.families[familyOfSequence(seq)];
}

/** @param {KvState} state @param {Range} range @param {number} w @param {number} h @returns {Places} */
export function placesOf(state, range, w, h) {
  const { nCells, nLayer } = state.shape;
  const whole = range.from === 0 && range.to === nCells;
  const over = whole || h < 96 ? -1 : 4;
  const band = over < 0 ? 4 + SEEN : 18 + SEEN;
  const high = h > 150 ? 20 : 14;
  const k = band + high + 5;
  const each = Math.min(nLayer * LAYER, Math.max(8, (h - AXIS - 3 - k - 5) / 2));
  return { left: LEFT, wide: w - LEFT - RIGHT, range, over, band, high, k, v: k + each + 5, each, foot: k + 2 * each + 8 };
}

/** @param {Places} places @param {number} cell */
export function xOf({ left, wide, range }, cell) {
  return left + ((cell - range.from) / (range.to - range.from)) * wide;
}

/** @param {Places} places @param {number} x */
export function cellAt({ left, wide, range }, x) {
  return Math.floor(range.from + ((x - left) / wide) * (range.to - range.from));
}

/** Runs of columns that look alike: a cell each, or a pixel each, of the sequence that has most of it, where there are more
 * cells than pixels.
 * @param {KvState} state @param {Places} places
 * @returns {{from: number, to: number, seq: number, share: number, shared: boolean}[]} */
function columnsOf({ seq, nSeqs }, { range, wide }) {
  const per = Math.max(1, (range.to - range.from) / wide);
  const made = [];
  let last = null;
  for (let at = range.from; at < range.to; at += per) {
    const [from, to] = [Math.floor(at), Math.min(range.to, Math.max(Math.floor(at) + 1, Math.floor(at + per)))];
    let [taken, shared, first, votes] = [0, false, -1, 0];
    for (let cell = from; cell < to; cell++) {
      if (!nSeqs[cell]) continue;
      taken++;
      if (votes === 0) first = seq[cell];
      votes += seq[cell] === first ? 1 : -1;
      if (nSeqs[cell] > 1) shared = true;
    }
    const share = taken / Math.max(1, to - from);
    if (last && last.seq === first && last.shared === shared && last.share === share) last.to = to;
    else made.push((last = { from, to, seq: first, share, shared }));
  }
  return made;
}

/** @param {Player} player @param {Context} c @param {KvState} state @param {Places} places @param {Marks} marks @param {Uint8Array} mine the cells of
 * the newest token's sequence @param {number} cursor a cell, -1 for none */
export function paintKv(player, c, state, places, marks, mine, cursor) {
  const { palette, fonts } = player;
  const { left, wide, band, high, k, v, each, foot } = places;
  c.font = `11px ${fonts.ui}`;
  c.fillStyle = palette.soft;
  c.textAlign = "right";
  for (const [text, y] of /** @type {const} */ ([["pos", band + high / 2], ["K", k + each / 2], ["V", v + each / 2]])) c.fillText(text, left - 8, y);
  c.fillStyle = palette.panel;
  for (const [y, h] of [[band, high], [k, each], [v, each]]) c.fillRect(left, y, wide, h);
  paintTaken(player, c, state, places);
  paintOutOfWindow(player, c, state, places, mine);
  paintPending(player, c, state, places);
  paintLayers(player, c, state, places);
  paintPositions(player, c, state, places);
  paintSeen(player, c, state, places, mine);
  paintLimit(player, c, state, places);
  paintMarks(player, c, state, places, marks, cursor);
  paintCellAxis(player, c, places, foot);
  if (places.over >= 0) paintWhole(player, c, state, places);
}

/** @param {Player} player @param {Context} c @param {KvState} state @param {Places} places */
function paintTaken(player, c, state, places) {
  const { band, high, k, v, each } = places;
  const gap = xOf(places, 1) - xOf(places, 0) > 5 ? 1 : 0;
  for (const { from, to, seq, share, shared } of columnsOf(state, places)) {
    if (seq < 0) continue;
    c.fillStyle = colourOf(player, seq);
    const single = gap > 0;
    for (let cell = from; cell < to; cell += single ? 1 : to - from) {
      const x = xOf(places, cell);
      const w = Math.max(0.6, xOf(places, single ? cell + 1 : to) - x - gap);
      c.globalAlpha = 0.25 + 0.75 * share;
      c.fillRect(x, band, w, high);
      c.globalAlpha *= 0.82;
      c.fillRect(x, k, w, each);
      c.fillRect(x, v, w, each);
      if (!shared) continue;
      c.globalAlpha = 1;
      c.fillStyle = player.palette.page;
      c.fillRect(x, band + high - 4, w, 1.5);
      c.fillStyle = colourOf(player, seq);
    }
  }
  c.globalAlpha = 1;
}

/** Cells that have left the window are pale: no later token sees them. @param {Player} player @param {Context} c @param {KvState} state
 * @param {Places} places @param {Uint8Array} mine */
function paintOutOfWindow({ palette }, c, { window, newest, pos, nSeqs }, places, mine) {
  const { from, to } = places.range;
  const left = (/** @type {number} */ cell) => nSeqs[cell] > 0 && mine[cell] === 1 && newest.pos - pos[cell] >= window;
  if (window <= 0 || newest.seq < 0) return;
  c.fillStyle = palette.page;
  c.globalAlpha = 0.62;
  for (let cell = from; cell < to; cell++) {
    if (!left(cell)) continue;
    const begin = cell;
    while (cell + 1 < to && left(cell + 1)) cell++;
    for (const [y, h] of [[places.k, places.each], [places.v, places.each]]) c.fillRect(xOf(places, begin), y, xOf(places, cell + 1) - xOf(places, begin), h);
  }
  c.globalAlpha = 1;
}

/** The slot's cells in the layers that have not written them yet are empty. @param {Player} player @param {Context} c @param {KvState} state @param {Places} places */
function paintPending({ palette }, c, state, places) {
  const { nLayer } = state.shape;
  for (const [top, pending] of /** @type {[number, Uint8Array][]} */ ([[places.k, state.pending.k], [places.v, state.pending.v]])) {
    const high = places.each / nLayer;
    c.fillStyle = palette.page;
    for (let il = 0; il < nLayer; il++) {
      if (!pending[il]) continue;
      let to = il;
      while (to + 1 < nLayer && pending[to + 1]) to++;
      for (const run of inRange(state.slot, places.range)) c.fillRect(xOf(places, run.cell), top + il * high, widthOf(places, run), (to - il + 1) * high);
      il = to;
    }
    c.strokeStyle = palette.ink;
    c.lineWidth = 1;
    for (const run of inRange(state.slot, places.range)) c.strokeRect(Math.round(xOf(places, run.cell)) - 0.5, Math.round(top) - 0.5, Math.round(widthOf(places, run)) + 1, Math.round(places.each) + 1);
  }
}

/** @param {Run[]} runs @param {Range} range @returns {Run[]} */
function inRange(runs, { from, to }) {
  return runs
    .map(({ cell, n }) => ({ cell: Math.max(cell, from), n: Math.min(cell + n, to) - Math.max(cell, from) }))
    .filter((run) => run.n > 0);
}

/** @param {Places} places @param {Run} run */
function widthOf(places, run) {
  return Math.max(1.5, xOf(places, run.cell + run.n) - xOf(places, run.cell));
}

/** Lines between layers, and their numbers where there is room. @param {Player} player @param {Context} c @param {KvState} state @param {Places} places */
function paintLayers({ palette, fonts }, c, state, places) {
  const { nLayer } = state.shape;
  const high = places.each / nLayer;
  if (high < 4) return;
  c.fillStyle = palette.page;
  for (const top of [places.k, places.v]) for (let il = 1; il < nLayer; il++) c.fillRect(places.left, Math.round(top + il * high) - 0.5, places.wide, 1);
  if (high < 11) return;
  c.font = `9.5px ${fonts.mono}`;
  c.textAlign = "right";
  c.fillStyle = palette.faint;
  for (const top of [places.k, places.v]) for (let il = 0; il < nLayer; il++) c.fillText(String(state.shape.layers[il]), places.left - 26, top + (il + 0.5) * high + 0.5);
}

/** Positions as numbers: of each cell, or where there is no room for that, at the beginning of each run and at round numbers.
 * @param {Player} player @param {Context} c @param {KvState} state @param {Places} places */
function paintPositions({ fonts }, c, state, places) {
  const { range, band, high } = places;
  const room = xOf(places, 1) - xOf(places, 0);
  let widest = 0;
  for (let cell = range.from; cell < range.to; cell++) widest = Math.max(widest, state.pos[cell]);
  const need = 6.2 * String(widest).length + 2;
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].find((n) => n * room >= need * (n > 1 ? 1.6 : 1)) ?? 20000;
  c.font = `${high > 16 ? 10.5 : 9.5}px ${fonts.mono}`;
  c.textAlign = every > 1 ? "left" : "center";
  c.fillStyle = "#10151d";
  for (let cell = range.from, free = -1; cell < range.to; cell++) {
    const pos = state.pos[cell];
    if (!state.nSeqs[cell]) continue;
    const begins = cell === range.from || state.pos[cell - 1] !== pos - 1 || state.seq[cell - 1] !== state.seq[cell];
    const x = xOf(places, cell);
    if ((!begins && pos % every) || x < free) continue;
    if (every > 1 && runEnd(state, cell, range.to, Math.ceil(need / room)) - cell < need / room) continue;
    c.fillText(String(pos), every > 1 ? x + 2 : x + (room - 1) / 2, band + high / 2 + 0.5);
    free = x + need + (every > 1 ? 3 : -2);
  }
}

/** Where the positions that follow one another from a cell on end, at most `most` cells on. @param {KvState} state @param {number} cell
 * @param {number} end @param {number} most */
function runEnd({ pos, seq, nSeqs }, cell, end, most) {
  let to = cell + 1;
  while (to < end && to - cell < most && nSeqs[to] && pos[to] === pos[to - 1] + 1 && seq[to] === seq[cell]) to++;
  return to;
}

/** A bar over the cells that the newest token attends to. @param {Player} player @param {Context} c @param {KvState} state @param {Places} places @param {Uint8Array} mine */
function paintSeen({ palette }, c, state, places, mine) {
  const { from, to } = places.range;
  c.fillStyle = palette.ink;
  for (let cell = from; cell < to; cell++) {
    if (!sees(state, cell, mine[cell] === 1)) continue;
    let end = cell + 1;
    while (end < to && sees(state, end, mine[end] === 1)) end++;
    c.fillRect(xOf(places, cell), places.band - 4, Math.max(1, xOf(places, end) - xOf(places, cell) - 1), 2);
    cell = end;
  }
}

/** Where attention stops looking: n_kv. @param {Player} player @param {Context} c @param {KvState} state @param {Places} places */
function paintLimit({ palette, fonts }, c, { nKv }, places) {
  const { from, to } = places.range;
  if (nKv <= from || nKv >= to) return;
  const x = Math.round(xOf(places, nKv)) + 0.5;
  c.strokeStyle = palette.soft;
  c.setLineDash([3, 3]);
  c.beginPath();
  c.moveTo(x, places.band - 4);
  c.lineTo(x, places.foot);
  c.stroke();
  c.setLineDash([]);
  c.font = `10px ${fonts.ui}`;
  c.fillStyle = palette.soft;
  c.textAlign = x > places.left + places.wide - 50 ? "right" : "left";
  c.fillText("n_kv", x + (c.textAlign === "left" ? 4 : -4), places.band + places.high / 2);
}

/** @param {Player} player @param {Context} c @param {KvState} state @param {Places} places @param {Marks} marks @param {number} cursor */
function paintMarks({ palette }, c, state, places, marks, cursor) {
  const { from, to } = places.range;
  const bottom = places.v + places.each;
  const frame = (/** @type {number} */ a, /** @type {number} */ b) => {
    const x = Math.round(xOf(places, a)) - 0.5;
    c.strokeRect(x - 0.5, places.band - 1, Math.max(3, Math.round(xOf(places, b)) - x), bottom - places.band + 2);
  };
  c.strokeStyle = palette.accent;
  c.lineWidth = 2;
  if (marks.found) c.setLineDash([4, 3]);
  for (const run of runsOf(marks.cells)) if (run.cell < to && run.cell + run.n > from) frame(Math.max(from, run.cell), Math.min(to, run.cell + run.n));
  c.setLineDash([]);
  if (marks.layer >= 0) {
    const high = places.each / state.shape.nLayer;
    const top = marks.which ? places.v : places.k;
    for (const run of inRange(state.slot, places.range)) c.strokeRect(Math.round(xOf(places, run.cell)) - 1, top + marks.layer * high - 1, widthOf(places, run) + 2, Math.max(3, high + 2));
  }
  if (marks.gone) for (const cell of marks.cells) cross(c, xOf(places, cell), xOf(places, cell + 1), places.band, places.high);
  if (cursor >= from && cursor < to) {
    c.strokeStyle = palette.ink;
    frame(cursor, cursor + 1);
  }
  c.lineWidth = 1;
}

/** @param {Context} c @param {number} x0 @param {number} x1 @param {number} y @param {number} h */
function cross(c, x0, x1, y, h) {
  const [x, r] = [(x0 + x1) / 2, Math.min(5, h / 2 - 2, Math.max(2, (x1 - x0) / 2 - 2))];
  c.beginPath();
  c.moveTo(x - r, y + h / 2 - r);
  c.lineTo(x + r, y + h / 2 + r);
  c.moveTo(x + r, y + h / 2 - r);
  c.lineTo(x - r, y + h / 2 + r);
  c.stroke();
}

/** @param {Set<number>} cells @returns {Run[]} */
export function runsOf(cells) {
  /** @type {Run[]} */
  const runs = [];
  for (const cell of [...cells].sort((p, q) => p - q)) {
    const last = runs[runs.length - 1];
    if (last && last.cell + last.n === cell) last.n++;
    else runs.push({ cell, n: 1 });
  }
  return runs;
}

/** @param {Player} player @param {Context} c @param {Places} places @param {number} top */
function paintCellAxis({ palette, fonts }, c, places, top) {
  const { from, to } = places.range;
  const wanted = Math.max(2, places.wide / 64);
  const step = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384].find((s) => (to - from) / s <= wanted) ?? 32768;
  c.font = `10px ${fonts.ui}`;
  c.textAlign = "left";
  c.fillStyle = palette.faint;
  c.fillText("cell", 12, top + 6);
  for (let cell = Math.ceil(from / step) * step; cell < to; cell += step) {
    const x = xOf(places, cell);
    c.fillRect(Math.round(x), top - 2, 1, 3);
    c.fillText(String(cell), x + 3, top + 6);
  }
}

/** The whole cache in one bar, and the part of it that is drawn below. @param {Player} player @param {Context} c @param {KvState} state @param {Places} places */
function paintWhole(player, c, state, places) {
  const { palette } = player;
  const whole = { ...places, range: { from: 0, to: state.shape.nCells } };
  c.fillStyle = palette.line;
  c.fillRect(places.left, places.over, places.wide, 5);
  for (const { from, to, seq, share } of columnsOf(state, whole)) {
    if (seq < 0) continue;
    c.globalAlpha = 0.3 + 0.7 * share;
    c.fillStyle = colourOf(player, seq);
    c.fillRect(xOf(whole, from), places.over, Math.max(0.6, xOf(whole, to) - xOf(whole, from)), 5);
  }
  c.globalAlpha = 1;
  c.strokeStyle = palette.ink;
  const [x0, x1] = [xOf(whole, places.range.from), xOf(whole, places.range.to)];
  c.strokeRect(Math.round(x0) - 0.5, places.over - 1.5, Math.max(4, Math.round(x1 - x0)), 8);
}
