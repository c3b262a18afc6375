// The graph's bitmaps: what does not change from step to step.

import { shorten } from "./dom.js";
import { HEADER } from "./folding.js";
import { formatDims, visible } from "./sentence.js";
import { familyOf } from "./theme.js";

/** @typedef {import("./folding.js").Folding} Folding */
/** @typedef {import("./theme.js").Palette} Palette */
/** @typedef {import("./tracks.js").Tracks} Tracks */
/** @typedef {{scale: number, x: number, y: number}} View screen = world * scale + (x, y) */

export const NAME_SIZE = 11;
const NOTE_SIZE = 9.5;
const MONO = 0.602;
const LEGIBLE = 0.52;

/** The two lines in a tensor's box. @param {Tracks} tracks @param {number} t @param {number} width */
function label(tracks, t, width) {
  const op = tracks.tensorString("desc", t);
  const what = op === "" || op === "NONE" ? tracks.tensorString("type", t) : op;
  const name = shorten(visible(tracks.name(t)), Math.floor((width - 16) / (NAME_SIZE * MONO)));
  return [name, shorten(`${what}  ${formatDims(tracks.ne(t))}`, Math.floor((width - 16) / (NOTE_SIZE * MONO)))];
}

/** @param {CanvasRenderingContext2D} c @param {number} x @param {number} y @param {number} w @param {number} h @param {number} r */
export function roundRect(c, x, y, w, h, r) {
  c.beginPath();
  c.roundRect(x, y, w, h, r);
}

export class GraphPainter {
  /** @param {Tracks} tracks @param {Folding} folding */
  constructor(tracks, folding) {
    this.tracks = tracks;
    this.folding = folding;
    /** @type {Map<number, string[]>} */
    this.labels = new Map();
  }

  /** @param {number} row */
  labelOf(row) {
    let lines = this.labels.get(row);
    if (!lines) {
      const { tensor, w } = this.folding.graph.nodes;
      this.labels.set(row, (lines = label(this.tracks, tensor[row], w[row])));
    }
    return lines;
  }

  /**
   * Frames, edges, boxes and their words.
   * @param {CanvasRenderingContext2D} c in CSS pixels
   * @param {{width: number, height: number}} size
   * @param {View} view
   * @param {Palette} palette
   * @param {{ui: string, mono: string}} fonts
   */
  paint(c, size, view, palette, fonts) {
    c.fillStyle = palette.page;
    c.fillRect(0, 0, size.width, size.height);
    c.save();
    c.translate(view.x, view.y);
    c.scale(view.scale, view.scale);
    const seen = {
      left: -view.x / view.scale,
      top: -view.y / view.scale,
      right: (size.width - view.x) / view.scale,
      bottom: (size.height - view.y) / view.scale,
    };
    this.frames(c, palette, fonts);
    this.edges(c, palette, seen, view.scale);
    this.boxes(c, palette, fonts, seen, view.scale);
    c.restore();
  }

  /** @param {CanvasRenderingContext2D} c @param {Palette} palette @param {{ui: string}} fonts */
  frames(c, palette, fonts) {
    c.textBaseline = "middle";
    for (const item of this.folding.items) {
      c.fillStyle = palette.panel;
      c.strokeStyle = palette.line;
      c.lineWidth = 1;
      if (item.card) {
        for (let k = Math.min(2, item.sections.length - 1); k > 0; k--) {
          roundRect(c, item.x + 5 * k, item.y + 5 * k, item.w, item.h, 8);
          c.fill();
          c.stroke();
        }
        c.fillStyle = palette.raised;
      }
      roundRect(c, item.x, item.y, item.w, item.h, 8);
      c.fill();
      c.stroke();
      c.fillStyle = item.card ? palette.ink : palette.soft;
      c.font = item.card ? `600 14px ${fonts.ui}` : `600 11px ${fonts.ui}`;
      c.fillText(item.label, item.x + 14, item.y + (item.card ? 22 : 14));
      if (!item.foldable) continue;
      c.fillStyle = palette.faint;
      c.font = `11px ${fonts.ui}`;
      c.textAlign = "right";
      c.fillText(item.card ? "open" : "fold", item.x + item.w - 14, item.y + (item.card ? 22 : 14));
      c.textAlign = "left";
    }
  }

  /** @param {CanvasRenderingContext2D} c @param {Palette} palette
   * @param {{left: number, top: number, right: number, bottom: number}} seen @param {number} scale */
  edges(c, palette, seen, scale) {
    const { folding } = this;
    const { src } = folding.graph.edges;
    const drawn = new Set();
    c.strokeStyle = palette.edge;
    c.lineWidth = Math.max(1, 0.6 / scale);
    c.beginPath();
    for (let e = 0; e < src.length; e++) this.trace(c, e, seen, drawn);
    c.stroke();
  }

  /** Adds edge `e` to the path. @param {CanvasRenderingContext2D} c @param {number} e
   * @param {{left: number, top: number, right: number, bottom: number} | null} seen @param {Set<string> | null} drawn */
  trace(c, e, seen, drawn) {
    const { folding } = this;
    const { src, dst, points } = folding.graph.edges;
    const s = folding.sectionOf[src[e]];
    if (s === folding.sectionOf[dst[e]]) {
      if (folding.shown(src[e])) this.traceInside(c, points[e], folding.dx[s], folding.dy[s], seen);
      return;
    }
    const line = folding.crossing(e);
    if (!line || (drawn && drawn.has(line.key))) return;
    drawn?.add(line.key);
    traceAcross(c, line.from, line.to);
  }

  /** @param {CanvasRenderingContext2D} c @param {number[]} p @param {number} dx @param {number} dy
   * @param {{left: number, top: number, right: number, bottom: number} | null} seen */
  traceInside(c, p, dx, dy, seen) {
    const n = p.length;
    if (n < 4) return;
    if (seen) {
      const x = [p[0] + dx, p[n - 2] + dx];
      const y = [p[1] + dy, p[n - 1] + dy];
      if (Math.max(...y) < seen.top || Math.min(...y) > seen.bottom) return;
      if (Math.max(...x) < seen.left - 300 || Math.min(...x) > seen.right + 300) return;
    }
    c.moveTo(p[0] + dx, p[1] + dy);
    if ((n / 2) % 3 === 1) {
      for (let k = 2; k + 5 < n; k += 6) {
        c.bezierCurveTo(p[k] + dx, p[k + 1] + dy, p[k + 2] + dx, p[k + 3] + dy, p[k + 4] + dx, p[k + 5] + dy);
      }
    } else {
      for (let k = 2; k < n; k += 2) c.lineTo(p[k] + dx, p[k + 1] + dy);
    }
  }

  /** @param {CanvasRenderingContext2D} c @param {Palette} palette @param {{mono: string}} fonts
   * @param {{left: number, top: number, right: number, bottom: number}} seen @param {number} scale */
  boxes(c, palette, fonts, seen, scale) {
    const { folding, tracks } = this;
    const { tensor, w, h } = folding.graph.nodes;
    /** @type {number[]} */
    const rows = [];
    c.fillStyle = palette.raised;
    c.strokeStyle = palette.edge;
    c.lineWidth = 1;
    c.beginPath();
    for (let row = 0; row < tensor.length; row++) {
      if (!folding.shown(row)) continue;
      const x = folding.x(row);
      const y = folding.y(row);
      if (x + w[row] < seen.left || x - w[row] > seen.right || y + h[row] < seen.top || y - h[row] > seen.bottom) continue;
      rows.push(row);
      c.roundRect(x - w[row] / 2, y - h[row] / 2, w[row], h[row], 4);
    }
    c.fill();
    c.stroke();
    if (scale < LEGIBLE) return;
    c.textBaseline = "alphabetic";
    c.font = `${NAME_SIZE}px ${fonts.mono}`;
    c.fillStyle = palette.ink;
    for (const row of rows) c.fillText(this.labelOf(row)[0], folding.x(row) - w[row] / 2 + 9, folding.y(row) - 2.5);
    c.font = `${NOTE_SIZE}px ${fonts.mono}`;
    c.fillStyle = palette.soft;
    for (const row of rows) c.fillText(this.labelOf(row)[1], folding.x(row) - w[row] / 2 + 9, folding.y(row) + 10.5);
    for (const row of rows) {
      c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
      c.fillRect(folding.x(row) + w[row] / 2 - 8, folding.y(row) - h[row] / 2 + 4, 4, 4);
    }
  }
}

/** @typedef {{x: number, y: number, w: number, h: number, card: boolean, item: import("./folding.js").Item}} Anchor */

/** A curve between two boxes of different sections, leaving and entering on the sides that face each other.
 * @param {CanvasRenderingContext2D} c @param {Anchor} from @param {Anchor} to */
function traceAcross(c, from, to) {
  if (from.item.column === to.item.column && to.y > from.y) {
    const [y0, y1] = [from.y + from.h / 2, to.y - to.h / 2];
    const bend = Math.min(Math.max(HEADER, (y1 - y0) / 2), 90);
    c.moveTo(from.x, y0);
    c.bezierCurveTo(from.x, y0 + bend, to.x, y1 - bend, to.x, y1);
    return;
  }
  const right = to.item.column >= from.item.column;
  const x0 = from.x + (right ? from.w / 2 : -from.w / 2);
  const x1 = to.x + (right ? -to.w / 2 : to.w / 2);
  const bend = (right ? 1 : -1) * Math.min(Math.max(40, Math.abs(x1 - x0) / 2), 160);
  c.moveTo(x0, from.y);
  c.bezierCurveTo(x0 + bend, from.y, x1 - bend, to.y, x1, to.y);
}
