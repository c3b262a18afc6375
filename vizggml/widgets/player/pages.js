// Which pages of the mapped file are in memory: the file from its beginning to its end, each layer filled by its share.

import { tableDetail } from "./detail_table.js";
import { cutEnd } from "./dom.js";
import { visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */

const PAD = 12;
const TOP = 20;
const BAR = 22;
const PAGES_HEIGHT = TOP + BAR + 8;

/** The rows of the layers at a step in the order of the file, and the row of the whole file or -1. @param {Player} player
 * @param {number} step */
function partsAt({ tracks }, step) {
  const track = tracks.track("pages");
  const [name, offset] = ["name", "offset"].map((n) => track.col(n));
  const rows = track.openAt(step);
  const parts = rows.filter((r) => name[r] >= 0).sort((p, q) => offset[p] - offset[q]);
  return { track, parts, whole: rows.find((r) => name[r] < 0) ?? -1 };
}

/** @param {number} pages @param {number} of */
function share(pages, of) {
  return of > 0 ? `${Math.floor((100 * pages) / of)} %` : "";
}

/** @param {Player} player @param {number} step @returns {import("./detail_table.js").Row[]} */
function pageRows(player, step) {
  const { track, parts, whole } = partsAt(player, step);
  const [pages, of] = ["pages", "of"].map((n) => track.col(n));
  const layer = player.tracks.field(step, "name");
  return (whole >= 0 ? [whole, ...parts] : parts).map((r) => ({
    cells: [r === whole ? "the whole file" : visible(track.str("name", r)), String(pages[r]), String(of[r]), share(pages[r], of[r])],
    marked: track.a[r] === step && (r === whole || track.str("name", r) === layer),
  }));
}

/** @param {Player} player @param {CanvasRenderingContext2D} c @param {number} w @param {number} h @param {number} step */
function paintPages(player, c, w, h, step) {
  const { palette, fonts, tracks } = player;
  const { track, parts, whole } = partsAt(player, step);
  const [pages, of] = ["pages", "of"].map((n) => track.col(n));
  const shown = parts.length ? parts : whole >= 0 ? [whole] : [];
  const total = shown.reduce((sum, r) => sum + of[r], 0);
  if (!total) return;
  const wide = w - 2 * PAD;
  const layer = tracks.field(step, "name");
  let before = 0;
  for (const r of shown) {
    const x = PAD + (before / total) * wide;
    const room = Math.max(0.5, (of[r] / total) * wide - 1);
    c.fillStyle = palette.line;
    c.fillRect(x, TOP, room, BAR);
    const high = Math.min(1, pages[r] / Math.max(1, of[r])) * BAR;
    c.fillStyle = palette.status[3];
    c.fillRect(x, TOP + BAR - high, room, high);
    const name = r === whole ? "" : cutEnd(visible(track.str("name", r)), Math.floor((room - 8) / 6.4));
    if (name) {
      c.fillStyle = high > BAR / 2 ? "#10151d" : palette.soft;
      c.font = `10.5px ${fonts.mono}`;
      c.textBaseline = "middle";
      c.fillText(name, x + 5, TOP + BAR / 2 + 0.5);
    }
    if (track.a[r] === step && track.str("name", r) === layer) {
      c.fillStyle = palette.accent;
      c.fillRect(x, TOP + BAR + 2, Math.max(2, room), 3);
    }
    before += of[r];
  }
  c.fillStyle = palette.soft;
  c.font = `11px ${fonts.ui}`;
  c.textBaseline = "middle";
  const said = whole >= 0 ? `${pages[whole]} of ${of[whole]} pages touched` : "the file";
  c.fillText(`${said}; from its beginning to its end, each part filled by what is in memory`, PAD, TOP / 2);
}

export const pagesDetail = tableDetail({
  name: "pages",
  title: "Pages",
  track: "pages",
  columns: [{ head: "part of the file" }, { head: "in memory", right: true }, { head: "pages", right: true }, { head: "share", right: true }],
  widths: "minmax(0, 2fr) 0.8fr 0.7fr 0.6fr",
  rows: pageRows,
  plot: paintPages,
  plotHeight: PAGES_HEIGHT,
  empty: "Nobody has asked which pages are in memory yet.",
});
