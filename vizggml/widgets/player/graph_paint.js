// The graph's bitmaps: what does not change from step to step. The nearer, the more a box says.

import { cutEnd } from "./dom.js";
import { HEADER } from "./folding.js";
import { formatDims, visible } from "./sentence.js";
import { familyOf } from "./theme.js";

/** @typedef {import("./folding.js").Folding} Folding */
/** @typedef {import("./folding.js").Item} Item */
/** @typedef {import("./theme.js").Palette} Palette */
/** @typedef {import("./tracks.js").Tracks} Tracks */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{scale: number, x: number, y: number}} View screen = world * scale + (x, y) */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Seen the part of the world in sight */
/** @typedef {{ui: string, mono: string}} Fonts */

const MONO = 0.602;
const PAD = 9;
const WEIGHT = ".weight";
/** From these scales on a box says its name; its operation and shape too; ne and nb (and, at a step, its offset) too. */
const [NAMED, NOTED, NEAR] = [0.36, 0.7, 1.75];
const [EDGES_FROM, OUTLINED_FROM, ROUND_FROM] = [0.07, 0.2, 0.35];
export const NEAR_LINES = 5;

/** How many kinds of things a box says at a scale: 0 none, 1 names, 2 operation and shape, 3 all. @param {number} scale */
export function detail(scale) {
  return scale < NAMED ? 0 : scale < NOTED ? 1 : scale < NEAR ? 2 : 3;
}

/** Line and letters of a near box, in the world's pixels. @param {number} scale @param {number} h */
export function nearType(scale, h) {
  const pitch = Math.min(16 / scale, h / (NEAR_LINES + 0.4));
  return { pitch, size: Math.min(12.5 / scale, pitch * 0.84) };
}

/** @param {Context} c @param {number} x @param {number} y @param {number} w @param {number} h @param {number} r */
export function roundRect(c, x, y, w, h, r) {
  c.beginPath();
  c.roundRect(x, y, w, h, r);
}

/** @param {{width: number, height: number}} size @param {View} view @returns {Seen} */
export function inSight(size, view) {
  const [left, top] = [-view.x / view.scale, -view.y / view.scale];
  return { left, top, right: left + size.width / view.scale, bottom: top + size.height / view.scale };
}

/** @param {{x: number, y: number, w: number, h: number}} item @param {Seen} seen */
export function isSeen(item, seen) {
  return item.x < seen.right && item.x + item.w > seen.left && item.y < seen.bottom && item.y + item.h > seen.top;
}

export class GraphPainter {
  /** @param {Tracks} tracks @param {Folding} folding */
  constructor(tracks, folding) {
    this.tracks = tracks;
    this.folding = folding;
    /** Paths that a section keeps wherever it stands. @type {Map<string, Path2D>} */
    this.paths = new Map();
    /** @type {{version: number, path: Path2D} | null} */
    this.acrossPath = null;
  }

  /** Frames, edges, boxes and their words; with `members` all else is dimmed.
   * @param {Context} c in CSS pixels @param {{width: number, height: number}} size @param {View} view @param {Palette} palette
   * @param {Fonts} fonts @param {Set<number> | null} members tensors */
  paint(c, size, view, palette, fonts, members) {
    c.fillStyle = palette.page;
    c.fillRect(0, 0, size.width, size.height);
    this.within(c, view, () => {
      const seen = inSight(size, view);
      this.frames(c, palette, fonts, seen, view.scale, null);
      this.edges(c, palette, seen, view.scale);
      this.boxes(c, palette, seen, view.scale);
      this.words(c, palette, fonts, seen, view.scale, null);
    });
    if (members) this.paintOnly(c, size, view, palette, fonts, members);
  }

  /** Dims what is painted and paints `members` over it, as bright as before.
   * @param {Context} c @param {{width: number, height: number}} size @param {View} view @param {Palette} palette
   * @param {Fonts} fonts @param {Set<number>} members */
  paintOnly(c, size, view, palette, fonts, members) {
    c.globalAlpha = 0.84;
    c.fillStyle = palette.page;
    c.fillRect(0, 0, size.width, size.height);
    c.globalAlpha = 1;
    this.within(c, view, () => {
      const { folding } = this;
      const { tensor, w, h } = folding.graph.nodes;
      const seen = inSight(size, view);
      this.frames(c, palette, fonts, seen, view.scale, members);
      c.strokeStyle = palette.soft;
      c.lineWidth = Math.max(1.1, 0.8 / view.scale);
      c.beginPath();
      const drawn = new Set();
      for (let row = 0; row < tensor.length; row++) {
        if (!members.has(tensor[row])) continue;
        for (const e of folding.into(row)) if (members.has(tensor[folding.graph.edges.src[e]])) this.trace(c, e, seen, drawn);
      }
      c.stroke();
      c.fillStyle = palette.raised;
      c.strokeStyle = palette.edge;
      c.lineWidth = 1;
      c.beginPath();
      for (let row = 0; row < tensor.length; row++) {
        if (members.has(tensor[row]) && folding.shown(row)) c.roundRect(folding.x(row) - w[row] / 2, folding.y(row) - h[row] / 2, w[row], h[row], 4);
      }
      c.fill();
      c.stroke();
      this.words(c, palette, fonts, seen, view.scale, members);
    });
  }

  /** @param {Context} c @param {View} view @param {() => void} act */
  within(c, view, act) {
    c.save();
    c.translate(view.x, view.y);
    c.scale(view.scale, view.scale);
    act();
    c.restore();
  }

  /** Of `members`, the cards alone that hold some. @param {Context} c @param {Palette} palette @param {Fonts} fonts
   * @param {Seen} seen @param {number} scale @param {Set<number> | null} members */
  frames(c, palette, fonts, seen, scale, members) {
    c.textBaseline = "middle";
    for (const item of this.folding.items) {
      if (!isSeen(item, seen)) continue;
      if (!members) frame(c, palette, item);
      else if (!this.holds(item, members)) continue;
      else if (item.card) frame(c, palette, item);
      title(c, palette, fonts, item, scale, seen, false);
    }
  }

  /** The labels that lie over boxes, because theirs is no room of their own: painted last.
   * @param {Context} c @param {{width: number, height: number}} size @param {View} view @param {Palette} palette
   * @param {Fonts} fonts @param {Set<number> | null} members */
  titles(c, size, view, palette, fonts, members) {
    const seen = inSight(size, view);
    c.textBaseline = "middle";
    for (const item of this.folding.items) {
      if (!item.card && isSeen(item, seen) && (!members || this.holds(item, members))) title(c, palette, fonts, item, view.scale, seen, true);
    }
  }

  /** @param {Item} item @param {Set<number>} members */
  holds(item, members) {
    return item.sections.some((s) => this.folding.graph.sections[s].nodes.some((t) => members.has(t)));
  }

  /** The open sections in sight. @param {Seen} seen @returns {number[]} */
  openIn(seen) {
    return this.folding.items.filter((item) => !item.card && isSeen(item, seen)).map((item) => item.sections[0]);
  }

  /** @param {Context} c @param {Palette} palette @param {Seen} seen @param {number} scale */
  edges(c, palette, seen, scale) {
    const { folding } = this;
    c.strokeStyle = palette.edge;
    c.lineWidth = scale > 1 ? 1.2 / scale : Math.max(1, 0.6 / scale);
    if (this.acrossPath?.version !== folding.version) {
      const path = new Path2D();
      const drawn = new Set();
      for (const e of folding.across) this.trace(path, e, null, drawn);
      this.acrossPath = { version: folding.version, path };
    }
    c.stroke(this.acrossPath.path);
    if (scale < EDGES_FROM) return;
    for (const s of this.openIn(seen)) this.placed(c, s, `e${s}`, (path) => this.traceSection(path, s), (path) => c.stroke(path));
  }

  /** @param {Path2D} path @param {number} s */
  traceSection(path, s) {
    const { folding } = this;
    for (const e of folding.inner(s)) traceInside(path, folding.graph.edges.points[e], 0, 0, null);
  }

  /** Draws a path of section `s`, made once. @param {Context} c @param {number} s @param {string} key
   * @param {(path: Path2D) => void} make @param {(path: Path2D) => void} draw */
  placed(c, s, key, make, draw) {
    let path = this.paths.get(key);
    if (!path) {
      make((path = new Path2D()));
      this.paths.set(key, path);
    }
    const { dx, dy } = this.folding;
    c.translate(dx[s], dy[s]);
    draw(path);
    c.translate(-dx[s], -dy[s]);
  }

  /** Adds edge `e` to the path. @param {Context | Path2D} c @param {number} e
   * @param {Seen | null} seen @param {Set<string> | null} drawn */
  trace(c, e, seen, drawn) {
    const { folding } = this;
    const { src, dst, points } = folding.graph.edges;
    const s = folding.sectionOf[src[e]];
    if (s === folding.sectionOf[dst[e]]) {
      if (folding.shown(src[e])) traceInside(c, points[e], folding.dx[s], folding.dy[s], seen);
      return;
    }
    const line = folding.crossing(e);
    if (!line || (drawn && drawn.has(line.key))) return;
    drawn?.add(line.key);
    traceAcross(c, line.from, line.to);
  }

  /** @param {Context} c @param {Palette} palette @param {Seen} seen @param {number} scale */
  boxes(c, palette, seen, scale) {
    const { folding } = this;
    const { x, y, w, h } = folding.graph.nodes;
    const round = scale >= ROUND_FROM;
    c.fillStyle = scale < OUTLINED_FROM ? palette.line : palette.raised;
    c.strokeStyle = palette.edge;
    c.lineWidth = 1 / Math.max(1, scale);
    for (const s of this.openIn(seen)) {
      /** @param {Path2D} path */
      const make = (path) => {
        for (const row of folding.rows[s]) {
          const box = /** @type {const} */ ([x[row] - w[row] / 2, y[row] - h[row] / 2, w[row], h[row]]);
          if (round) path.roundRect(...box, 4);
          else path.rect(...box);
        }
      };
      this.placed(c, s, `${round ? "r" : "b"}${s}`, make, (path) => {
        c.fill(path);
        if (scale >= OUTLINED_FROM) c.stroke(path);
      });
    }
  }

  /** What the boxes in sight say, in letters that can be read or not at all. @param {Context} c @param {Palette} palette
   * @param {Fonts} fonts @param {Seen} seen @param {number} scale @param {Set<number> | null} members */
  words(c, palette, fonts, seen, scale, members) {
    const level = detail(scale);
    if (!level) return;
    const { folding, tracks } = this;
    const { tensor, w, h } = folding.graph.nodes;
    const rows = this.openIn(seen)
      .flatMap((s) => folding.rows[s])
      .filter((r) => (!members || members.has(tensor[r])) && isSeen({ x: folding.x(r) - w[r] / 2, y: folding.y(r) - h[r] / 2, w: w[r], h: h[r] }, seen));
    const lines = level === 3 ? nearLines(scale, h[rows[0]] ?? 34) : level === 2 ? [[-2.5, Math.max(11, 9 / scale)], [10.5, Math.max(9.5, 8.3 / scale)]] : [[0, Math.max(11, 9.5 / scale)]];
    c.textBaseline = level === 1 ? "middle" : "alphabetic";
    lines.forEach(([down, size], k) => {
      c.font = `${k === 0 && level === 3 ? "600 " : ""}${size}px ${fonts.mono}`;
      c.fillStyle = k === 0 ? palette.ink : palette.soft;
      for (const row of rows) {
        const room = Math.floor((w[row] - PAD - (k === 0 ? 9 : 4)) / (size * MONO));
        const text = this.line(tensor[row], k, level);
        const fits = k === 0 ? nameIn(text, room) : cutEnd(text, room);
        if (room > 3) c.fillText(fits, folding.x(row) - w[row] / 2 + PAD, folding.y(row) + down);
      }
    });
    if (level < 2) return;
    for (const row of rows) {
      c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
      c.fillRect(folding.x(row) + w[row] / 2 - 8, folding.y(row) - h[row] / 2 + 4, 4, 4);
    }
  }

  /** Line `k` of what a box says. @param {number} t @param {number} k @param {number} level */
  line(t, k, level) {
    const { tracks } = this;
    if (k === 0) return visible(tracks.name(t));
    const op = tracks.tensorString("desc", t);
    const leaf = op === "" || op === "NONE";
    const type = tracks.tensorString("type", t);
    if (level === 2) return `${leaf ? type : op}  ${formatDims(tracks.ne(t))}`;
    if (k === 1) return leaf ? `${type}, a leaf` : `${op}  ${type}`;
    const n = Math.max(1, ...[1, 2, 3, 4].filter((d) => tracks.ne(t)[d - 1] !== 1));
    const numbers = k === 2 ? tracks.ne(t) : tracks.columns.column("tensor.nb").subarray(4 * t, 4 * t + 4);
    return `${k === 2 ? "ne" : "nb"} ${Array.from(numbers.subarray(0, n)).join(", ")}`;
  }
}

/** A name as far as there is room for it: without its layer, which its block tells; its end left out before its beginning, but
 * never that it is a weight. @param {string} name @param {number} room in characters */
export function nameIn(name, room) {
  if (name.length <= room) return name;
  const bare = name.replace(/-\d+(?=$| )/, "").replace(/^blk\.\d+\./, "");
  if (bare.length <= room || !bare.endsWith(WEIGHT)) return cutEnd(bare, room);
  const stem = bare.slice(0, -WEIGHT.length);
  return stem.length + 2 <= room ? `${stem}.w` : room < 6 ? "" : `${stem.slice(0, room - 3)}….w`;
}

/** How far under its middle each line of a near box stands, and its size; the last is left for the step.
 * @param {number} scale @param {number} h */
function nearLines(scale, h) {
  const { pitch, size } = nearType(scale, h);
  return [0, 1, 2, 3].map((k) => [(k - (NEAR_LINES - 1) / 2) * pitch + size * 0.36, size]);
}

/** @param {Context} c @param {Palette} palette @param {Item} item */
function frame(c, palette, item) {
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
}

/** @type {Map<string, number>} */
const WIDTHS = new Map();

/** The width of a bold label in letters of one pixel. @param {Context} c @param {Fonts} fonts @param {string} label */
export function widthOf(c, fonts, label) {
  let width = WIDTHS.get(label);
  if (width === undefined) {
    c.font = `600 100px ${fonts.ui}`;
    WIDTHS.set(label, (width = c.measureText(label).width / 100));
  }
  return width;
}

/** A frame's label, whether it can be opened or folded, and what it is unlike; as far as there is room to read it. The
 * label of an open section whose head is out of sight stands at the edge.
 * @param {Context} c @param {Palette} palette @param {Fonts} fonts @param {Item} item @param {number} scale @param {Seen} seen
 * @param {boolean} last whether those are painted that lie over boxes, or the others */
function title(c, palette, fonts, item, scale, seen, last) {
  const least = item.card ? 14 : 11;
  const size = scale > 1.2 ? (least * 1.2) / scale : Math.max(least, 10.5 / scale);
  const tight = !item.card && size > HEADER - 8;
  if (tight && !last) return;
  const room = (item.w - 24) / size / 0.56;
  const number = (/(\d+ to )?\d+$/.exec(item.label)?.[0] ?? "").replace(" to ", "–");
  const label = item.label.length <= room || item.card ? cutEnd(item.label, Math.floor(room)) : number.length <= room ? number : "";
  if (!label) return;
  const width = widthOf(c, fonts, label) * size;
  const [left, top] = [Math.max(item.x + 14, Math.min(seen.left + 10 / scale, item.x + item.w - width - 14)), Math.max(item.y, Math.min(seen.top, item.y + item.h - HEADER))];
  const out = !item.card && (top > item.y || left > item.x + 14);
  const over = tight || out;
  if (over !== last) return;
  const y = item.card ? item.y + 22 : over ? top + 3 / scale + size * 0.65 : item.y + HEADER / 2 + 1;
  if (over) {
    c.fillStyle = palette.panel;
    c.globalAlpha = 0.92;
    c.fillRect(left - 6 / scale, top + 1 / scale, width + 12 / scale, size * 1.3 + 3 / scale);
    c.globalAlpha = 1;
  }
  c.font = `600 ${size}px ${fonts.ui}`;
  c.fillStyle = item.card ? palette.ink : palette.soft;
  c.fillText(label, left, y);
  if (!over) more(c, palette, fonts, item, scale, y, width);
}

/** @param {Context} c @param {Palette} palette @param {Fonts} fonts @param {Item} item @param {number} scale @param {number} y
 * @param {number} width of the label */
function more(c, palette, fonts, item, scale, y, width) {
  const small = scale > 1.2 ? 13 / scale : Math.max(11, 9.5 / scale);
  if (!item.foldable || small > (item.card ? 20 : 16)) return;
  c.font = `${small}px ${fonts.ui}`;
  const word = item.card ? "open" : "fold";
  const fold = c.measureText(word).width;
  const room = item.w - 28 - width - fold;
  if (room > 8) {
    c.fillStyle = palette.faint;
    c.textAlign = "right";
    c.fillText(word, item.x + item.w - 14, y);
    c.textAlign = "left";
  }
  c.fillStyle = item.second.startsWith("unlike") ? palette.consumer : palette.soft;
  const second = cutEnd(item.second, Math.floor((item.card ? item.w - 24 : room - 20) / (small * 0.5)));
  if (item.card) c.fillText(second, item.x + 14, item.y + item.h - 15);
  else if (room > 8) c.fillText(second, item.x + 24 + width, y);
}

/** @param {Context | Path2D} c @param {number[]} p @param {number} dx @param {number} dy @param {Seen | null} seen */
function traceInside(c, p, dx, dy, seen) {
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

/** @typedef {{x: number, y: number, w: number, h: number, card: boolean, item: Item}} Anchor */

/** A curve between two boxes of different sections, leaving and entering on the sides that face each other.
 * @param {Context | Path2D} c @param {Anchor} from @param {Anchor} to */
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
