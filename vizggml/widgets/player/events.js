// The event list: every event, or those of one area or kind, with the current one marked.

import { el, setText } from "./dom.js";
import { VirtualList } from "./list.js";
import { formatCount, sentence, visible } from "./sentence.js";
import { areaGroup } from "./theme.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */

const ROW = 24;

export class EventsPane {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "events";
    this.title = "Events";
    /** @type {Uint32Array | null} the events that pass, null for all */
    this.passing = null;
    this.list = new VirtualList({
      label: "Events",
      rowHeight: ROW,
      makeRow: () => el("div", "vg-event", {}, [el("span", "vg-number"), el("span", "vg-dot"), el("span", "vg-line")]),
      fillRow: (row, index) => this.fillRow(row, index),
      choose: (index) => player.go(this.eventAt(index)),
      className: "vg-events",
    });
    this.body = el("div", "vg-stack", {}, [this.list.element]);
    this.choice = el("select", "vg-select", { "aria-label": "Which events" });
    this.choice.addEventListener("change", () => this.filter(this.choice.value));
    this.count = el("span", "vg-hint vg-tabular");
    this.tools = [this.count, this.choice];
    this.fillChoice();
    this.filter("");
  }

  fillChoice() {
    const { tracks } = this.player;
    const counts = new Uint32Array(tracks.kinds.length);
    for (let i = 0; i < tracks.n; i++) counts[tracks.kind[i]]++;
    this.counts = counts;
    this.choice.append(el("option", "", { value: "", text: "all events" }));
    const areas = [...new Set(tracks.kinds.filter((k) => counts[k.index]).map((k) => k.area))];
    for (const area of areas) {
      const kinds = tracks.kinds.filter((k) => k.area === area && counts[k.index]);
      const group = el("optgroup", "", { label: area });
      group.append(el("option", "", { value: `area:${area}`, text: `all of ${area}` }));
      for (const kind of kinds) group.append(el("option", "", { value: `kind:${kind.index}`, text: `${kind.name} (${counts[kind.index]})` }));
      this.choice.append(group);
    }
  }

  /** @param {string} which */
  filter(which) {
    const { tracks } = this.player;
    const wanted = new Uint8Array(tracks.kinds.length);
    for (const kind of tracks.kinds) {
      wanted[kind.index] = which === "" || which === `area:${kind.area}` || which === `kind:${kind.index}` ? 1 : 0;
    }
    if (which === "") {
      this.passing = null;
    } else {
      const total = tracks.kinds.reduce((sum, k) => sum + (wanted[k.index] ? (this.counts?.[k.index] ?? 0) : 0), 0);
      this.passing = new Uint32Array(total);
      for (let i = 0, n = 0; i < tracks.n; i++) if (wanted[tracks.kind[i]]) this.passing[n++] = i;
    }
    const length = this.passing ? this.passing.length : tracks.n;
    setText(this.count, this.passing ? `${formatCount(length)} event${length === 1 ? "" : "s"}` : "");
    this.list.setLength(length);
    this.player.redraw(this);
  }

  /** @param {number} index */
  eventAt(index) {
    return this.passing ? this.passing[index] : index;
  }

  /** @param {HTMLElement} row @param {number} index */
  fillRow(row, index) {
    const { tracks } = this.player;
    const i = this.eventAt(index);
    const [number, dot, line] = /** @type {any} */ (row.children);
    setText(number, String(i));
    const colour = `vg-dot vg-area-${areaGroup(tracks.kindOf(i).area)}`;
    if (dot.className !== colour) dot.className = colour;
    setText(line, visible(sentence(tracks, i)));
  }

  /** @param {number} step */
  indexOf(step) {
    return this.passing ? upperBound(this.passing, step) - 1 : step;
  }

  /** @param {number} step */
  prepare(step) {
    this.list.show(this.indexOf(step));
  }

  /** @param {number} step */
  draw(step) {
    this.list.setCurrent(this.indexOf(step));
  }

  invalidate() {}

  stop() {
    this.list.stop();
  }
}
