// The details: each looks at one thing closely and follows the step. Together they are tabs of one pane; asked for by
// name, each is a pane of its own.

import { arenaDetail } from "./arena.js";
import { blockDetail } from "./block.js";
import { countsDetail } from "./counts.js";
import { el } from "./dom.js";
import { freeDetail } from "./free.js";
import { inspectorDetail } from "./inspector.js";
import { kvDetail } from "./kv.js";
import { pagesDetail } from "./pages.js";
import { reuseDetail } from "./reuse.js";
import { routingDetail } from "./routing.js";
import { scratchDetail } from "./scratch.js";
import { splitsDetail } from "./splits.js";
import { threadsDetail } from "./threads.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {{element: HTMLElement, draw: (step: number) => void, invalidate?: () => void, stop?: () => void, tools?: HTMLElement[]}} DetailView
 *   `tools` stand in the pane's head where the detail is a pane of its own, and at its right where it is a tab */
/** @typedef {{name: string, title: string, has: (player: Player) => boolean, make: (player: Player, pane: Pane) => DetailView}} Detail
 *   `has` says whether the trace holds anything of it */

/** In the order of the tabs. @type {Detail[]} */
export const DETAILS = [
  inspectorDetail,
  blockDetail,
  freeDetail,
  countsDetail,
  scratchDetail,
  kvDetail,
  routingDetail,
  reuseDetail,
  arenaDetail,
  splitsDetail,
  pagesDetail,
  threadsDetail,
];

/** One detail as a pane. */
export class DetailPane {
  /** @param {Player} player @param {Detail} detail */
  constructor(player, detail) {
    this.name = detail.name;
    this.title = detail.title;
    this.view = detail.make(player, this);
    this.body = el("div", "vg-stack", {}, [this.view.element]);
    this.tools = this.view.tools ?? [];
  }

  /** @param {number} step */
  draw(step) {
    this.view.draw(step);
  }

  invalidate() {
    this.view.invalidate?.();
  }

  stop() {
    this.view.stop?.();
  }
}

/** All details that have something to show, one at a time. */
export class DetailsPane {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "tables";
    this.title = "Details";
    this.details = DETAILS.filter((detail) => detail.has(player));
    /** Made when they are first looked at. @type {Map<Detail, DetailView>} */
    this.views = new Map();
    this.tabs = el("div", "vg-tabs", { role: "tablist", "aria-label": "Details" });
    this.extra = el("div", "vg-tools");
    this.body = el("div", "vg-stack", { role: "tabpanel" });
    this.tools = [this.tabs, this.extra];
    this.detail = this.details[0];
    this.makeTabs();
    this.choose(this.detail);
  }

  makeTabs() {
    for (const detail of this.details) {
      const tab = el("button", "vg-tab", { type: "button", role: "tab", text: detail.title });
      tab.addEventListener("click", () => this.choose(detail));
      this.tabs.append(tab);
    }
    this.tabs.addEventListener("keydown", (event) => {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const n = this.details.length;
      this.choose(this.details[(this.details.indexOf(this.detail) + by + n) % n]);
      /** @type {HTMLElement} */ (this.tabs.children[this.details.indexOf(this.detail)]).focus();
    });
  }

  /** The detail of that name, brought to the front. @param {string} name */
  chooseNamed(name) {
    const detail = this.details.find((d) => d.name === name);
    if (detail) this.choose(detail);
  }

  /** @param {Detail} detail */
  choose(detail) {
    this.detail = detail;
    [...this.tabs.children].forEach((tab, k) => {
      const chosen = this.details[k] === detail;
      tab.setAttribute("aria-selected", String(chosen));
      /** @type {HTMLElement} */ (tab).tabIndex = chosen ? 0 : -1;
    });
    const view = this.view;
    this.body.replaceChildren(view.element);
    this.extra.replaceChildren(...(view.tools ?? []));
    this.showTab(/** @type {HTMLElement} */ (this.tabs.children[this.details.indexOf(detail)]));
    this.player.redraw(this);
  }

  /** Brings a tab into sight where they are more than fit. @param {HTMLElement} tab */
  showTab(tab) {
    const { tabs } = this;
    if (!tab || !tabs.clientWidth) return;
    tabs.scrollLeft = Math.max(tab.offsetLeft + tab.offsetWidth - tabs.offsetLeft - tabs.clientWidth, Math.min(tabs.scrollLeft, tab.offsetLeft - tabs.offsetLeft));
  }

  get view() {
    let view = this.views.get(this.detail);
    if (!view) this.views.set(this.detail, (view = this.detail.make(this.player, this)));
    return view;
  }

  /** @param {number} step */
  draw(step) {
    this.view.draw(step);
  }

  invalidate() {
    for (const view of this.views.values()) view.invalidate?.();
  }

  stop() {
    for (const view of this.views.values()) view.stop?.();
  }
}
