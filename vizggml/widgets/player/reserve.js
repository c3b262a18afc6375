// Why memory was planned: one line over the memory map, for the reserve that holds or was the last.

import { el, setText } from "./dom.js";
import { formatBytes, visible } from "./sentence.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */

/** Why row `r` of the track began. @param {Player} player @param {number} r */
function reason({ tracks }, r) {
  const track = tracks.track("reserve");
  const why = track.str("why", r);
  const [had, needed, tensor] = ["had", "needed", "tensor"].map((n) => track.col(n)[r]);
  const name = tensor >= 0 ? visible(tracks.name(tensor)) : "a tensor";
  switch (why) {
    case "asked":
      return "";
    case "node count":
      return had ? `it has ${needed} nodes, the last plan ${had}` : "there was no plan yet";
    case "leaf count":
      return `it has ${needed} leafs, the last plan ${had}`;
    case "tensor size":
      return `${name} needs ${formatBytes(needed)}, planned were ${formatBytes(had)}`;
    case "backend":
      return `${name} is on backend ${needed} now, on ${had} before`;
    default:
      return visible(why);
  }
}

export class ReserveLine {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.row = -2;
    this.now = false;
    this.element = el("button", "vg-reserve", { type: "button", title: "To where this was planned" });
    this.element.addEventListener("click", () => this.row >= 0 && player.go(player.tracks.track("reserve").a[this.row]));
    this.element.hidden = player.tracks.track("reserve").length === 0;
  }

  /** @param {number} step */
  draw(step) {
    if (this.element.hidden) return;
    const { tracks } = this.player;
    const track = tracks.track("reserve");
    const row = upperBound(track.a, step) - 1;
    const now = row >= 0 && step < track.b[row];
    if (row === this.row && now === this.now) return;
    Object.assign(this, { row, now });
    this.element.disabled = row < 0;
    this.element.classList.toggle("vg-marked", now);
    setText(this.element, row < 0 ? "No memory is planned yet in this recording." : this.words(row, now));
  }

  /** @param {number} row @param {boolean} now */
  words(row, now) {
    const { tracks } = this.player;
    const track = tracks.track("reserve");
    const buffer = track.col("anew")[row] ? "in a new buffer" : "the buffer that stands is large enough";
    const size = track.col("size")[row];
    const graph = track.col("graph")[row];
    const what = graph >= 0 ? `graph ${graph}` : "a graph";
    const first = track.str("why", row) === "asked" || (track.str("why", row) === "node count" && !track.col("had")[row]);
    const why = reason(this.player, row);
    return `${now ? "Being planned" : "Planned"}${first ? "" : " anew"} for ${what}${why && `, ${why}`}: ${formatBytes(size)}, ${buffer}`;
  }
}
