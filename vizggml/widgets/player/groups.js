// Where the player is too narrow and too low for all panes, one group of them stands under the graph, chosen by tabs.

import { el } from "./dom.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {{name: string, title: string, panes: string[]}} Group */

/** @type {Group[]} */
const GROUPS = [
  { name: "memory", title: "Memory", panes: ["map", "timeline"] },
  { name: "events", title: "Events", panes: ["events"] },
  { name: "details", title: "Details", panes: ["tables"] },
];
/** From this height on all panes have room in one column; under the other, those of the memory keep to what matters most. */
export const [HIGH, SHORT] = [1180, 900];

export class Groups {
  /** @param {Player} player @param {string[]} names the panes that there are */
  constructor(player, names) {
    this.player = player;
    this.groups = GROUPS.map((group) => ({ ...group, panes: group.panes.filter((name) => names.includes(name)) })).filter((group) => group.panes.length);
    this.chosen = this.groups[0];
    /** Whether one is shown at a time. */
    this.on = false;
    this.tabs = this.groups.map((group, k) => {
      const tab = el("button", "vg-tab", { type: "button", role: "tab", text: group.title, title: `${group.title} (${k + 1})` });
      tab.addEventListener("click", () => this.choose(group));
      return tab;
    });
    this.element = el("div", "vg-groups vg-tabs", { role: "tablist", "aria-label": "What stands under the graph" }, this.tabs);
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.show();
  }

  /** Whether a pane is one of those that wait behind a tab. @param {string} name */
  hides(name) {
    return this.on && !this.chosen.panes.includes(name) && this.groups.some((group) => group.panes.includes(name));
  }

  /** @param {boolean} on */
  turn(on) {
    this.on = on && this.groups.length > 1;
    this.show();
  }

  /** @param {Group | undefined} group */
  choose(group) {
    if (!group || !this.on) return;
    this.chosen = group;
    this.show();
    this.player.rearrange();
  }

  /** The group that a pane is of comes to the front. @param {string} name */
  bring(name) {
    if (this.hides(name)) this.choose(this.groups.find((group) => group.panes.includes(name)));
  }

  show() {
    this.element.hidden = !this.on;
    this.groups.forEach((group, k) => {
      const chosen = group === this.chosen;
      this.tabs[k].setAttribute("aria-selected", String(chosen));
      this.tabs[k].tabIndex = chosen ? 0 : -1;
    });
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const n = this.groups.length;
    this.choose(this.groups[(this.groups.indexOf(this.chosen) + by + n) % n]);
    this.tabs[this.groups.indexOf(this.chosen)].focus();
  }
}
