// The player: linked panes over one trace. `create` is the whole of its interface.

import { arrange, arrangeGroup } from "./arrange.js";
import { copyText } from "./copy.js";
import { DETAILS, DetailPane, DetailsPane } from "./details.js";
import { el, iconButton, setIcon } from "./dom.js";
import { EventsPane } from "./events.js";
import { GraphPane } from "./graph.js";
import { Groups, HIGH, SHORT } from "./groups.js";
import { Help, listenKeys } from "./keys.js";
import { MapPane } from "./map.js";
import { Notice } from "./notice.js";
import { Now } from "./now.js";
import { Relations } from "./relations.js";
import { Rest } from "./rest.js";
import { visible } from "./sentence.js";
import { css } from "./styles.js";
import { watchTheme } from "./theme.js";
import { TimelinePane } from "./timeline.js";
import { Tip } from "./tip.js";
import { TokensPane } from "./tokens.js";
import { Tracks } from "./tracks.js";
import { Transport } from "./transport.js";
import { nameAmongTwins, offerWords, twinOffer, wayOut } from "./twins.js";
import { warm } from "./warm.js";

export { compare } from "./compare.js";
export { sentence } from "./sentence.js";
export { Tracks } from "./tracks.js";

/**
 * @typedef {{name: string, title: string, body: HTMLElement, tools: HTMLElement[], tall?: number,
 *   prepare?: (step: number) => void, draw: (step: number) => void, write?: (step: number) => void, invalidate: () => void,
 *   stop: () => void}} Pane `tall` is how high its body must be at least; `prepare` scrolls, before anything changes; `write`
 *   changes words, after all is drawn
 * @typedef {{tracks: ArrayBuffer | ArrayBufferView, layout: any, host: HTMLElement, panes?: string[] | null, step?: number,
 *   theme?: string, hash?: boolean, fill?: boolean, onStep?: (step: number) => void, onSelect?: (tensor: number) => void}} Options
 */

const PANES = ["tokens", "graph", "map", "timeline", "events", "tables"];
/** Of words alone: these come after what is drawn. */
const WORDS = new Set(["tokens", "events"]);
const HISTORY = 200;
const ADDRESS_MS = 150;
const PANE_HEAD = 34;
const [MINI, TINY, WIDE, ROOMY] = [480, 660, 1000, 1200];

export class Player {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.tracks = new Tracks(options.tracks);
    if (!this.tracks.n) throw new Error("tracks: no events");
    this.layout = options.layout && Array.isArray(options.layout.graphs) ? options.layout : { graphs: [] };
    this.relations = new Relations(this.tracks);
    this.step = this.clamp(options.step ?? 0);
    this.selected = -1;
    /** @type {import("./twins.js").Offer | null} */
    this.offer = null;
    /** @type {number[]} */
    this.history = [];
    this.root = el("div", "vg-player", {
      tabindex: "0",
      role: "application",
      "aria-label": "vizggml player. Press question mark for the keys.",
      "data-lm-suppress-shortcuts": "true",
    });
    this.root.append(el("style", "", { text: css }));
    this.theme = watchTheme(this.root, options.theme ?? "auto", () => this.themeChanged());
    options.host.replaceChildren(this.root);
    const ui = getComputedStyle(this.root).fontFamily || "system-ui";
    this.fonts = { ui, mono: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" };
    this.tip = new Tip(this.root);
    this.notice = new Notice(this.root);
    this.help = new Help(this);
    this.transport = new Transport(this);
    this.now = new Now(this);
    /** @type {Set<Pane>} */
    this.dirty = new Set();
    this.frame = 0;
    this.drawn = false;
    this.expanded = "";
    this.grid = el("div", "vg-panes");
    /** @type {Map<Pane, HTMLElement>} */
    this.frames = new Map();
    /** @type {Set<Pane>} */
    this.unseen = new Set();
    this.watcher = new IntersectionObserver((entries) => this.onSight(entries), { rootMargin: "80px" });
    this.sizer = new ResizeObserver((entries) => {
      const { width, height } = entries[entries.length - 1].contentRect;
      this.setSize(width, height);
    });
    this.ready = false;
    this.headDirty = true;
    this.rest = new Rest();
    this.panes = makePanes(this, options.panes ?? null);
    this.groups = new Groups(this, options.panes ? [] : this.panes.map((pane) => pane.name));
    this.width = 0;
    this.height = 0;
    this.unlisten = listenKeys(this, options.hash ?? false);
    this.onHash = () => this.readHash();
    this.build();
    this.ready = true;
    this.readHash();
    this.redrawAll();
    this.later = setTimeout(() => {
      this.transport.paintStrip();
      this.cool = warm(this);
    }, 50);
    this.cool = () => {};
  }

  get palette() {
    return this.theme.palette;
  }

  build() {
    const { root, options } = this;
    const head = el("header", "vg-head", {}, [this.transport.element, this.now.element]);
    for (const pane of this.panes) {
      this.grid.append(this.makeFrame(pane));
      if (pane.name === "graph") this.grid.append(this.groups.element);
    }
    root.append(head, this.grid, this.help.element);
    this.setSize(root.clientWidth, root.clientHeight);
    this.sizer.observe(root);
    root.dataset.vgPanes = this.panes.map((p) => p.name).join(" ");
    root.classList.toggle("vg-fill", options.fill ?? options.hash ?? false);
    root.classList.toggle("vg-single", this.panes.length === 1);
    root.addEventListener("pointerdown", (event) => {
      if (!(/** @type {HTMLElement} */ (event.target).closest("button, input, select, [tabindex]:not(.vg-player)"))) root.focus({ preventScroll: true });
    });
    if (options.hash) globalThis.addEventListener("hashchange", this.onHash);
  }

  /** One column or two. Classes, not container queries: those would make every change of style wait for a layout.
   * @param {number} width @param {number} height */
  setSize(width, height) {
    [this.width, this.height] = [width, height];
    this.root.classList.toggle("vg-wide", width >= WIDE);
    this.root.classList.toggle("vg-narrow", width < WIDE);
    this.root.classList.toggle("vg-tiny", this.tiny);
    this.root.classList.toggle("vg-mini", width < MINI);
    this.root.classList.toggle("vg-snug", width < ROOMY);
    this.groups.turn(width < WIDE && height < HIGH && this.pane("graph") !== undefined);
    this.root.classList.toggle("vg-grouped", this.groups.on);
    this.root.classList.toggle("vg-short", this.short);
    this.rearrange();
  }

  get tiny() {
    return this.width < TINY;
  }

  /** Whether there is no room for what a pane adds to its picture. */
  get short() {
    return this.groups.on && this.height < SHORT && !this.expanded;
  }

  /** Which panes stand where. */
  rearrange() {
    const { groups, panes } = this;
    for (const [pane, frame] of this.frames) {
      const hidden = this.expanded ? pane.name !== this.expanded : groups.hides(pane.name);
      if (frame.hidden !== hidden) frame.hidden = hidden;
    }
    const least = Object.fromEntries(panes.map((pane) => [pane.name, pane.tall ? pane.tall + PANE_HEAD : 0]));
    const names = panes.map((pane) => pane.name).filter((name) => !groups.hides(name));
    Object.assign(this.grid.style, groups.on ? arrangeGroup(names, this.grid.clientHeight, (room) => this.pane("map")?.wants(room - PANE_HEAD) + PANE_HEAD) : arrange(names, this.width >= WIDE, least));
    this.redrawAll();
  }

  /** @param {Pane} pane */
  makeFrame(pane) {
    const expand = iconButton("expand", `Show ${pane.title} alone`, () => this.expand(pane));
    expand.classList.add("vg-expand");
    const frame = el("section", `vg-pane vg-pane-${pane.name}`, { "aria-label": pane.title }, [
      el("header", "vg-pane-head", {}, [el("h2", "vg-title", { text: pane.title }), el("div", "vg-tools", {}, [...pane.tools, expand])]),
      pane.body,
    ]);
    frame.style.gridArea = pane.name;
    this.frames.set(pane, frame);
    this.watcher.observe(frame);
    return frame;
  }

  /** The pane of that name, if it is shown. @param {string} name @returns {any} */
  pane(name) {
    return this.panes.find((pane) => pane.name === name);
  }

  /** The pane of that name, brought into sight where others stand before it. @param {string} name @returns {any} */
  bring(name) {
    this.groups.bring(name);
    return this.pane(name);
  }

  /** Shows the k-th group of panes under the graph, where one is shown at a time. @param {number} k */
  showGroup(k) {
    if (this.groups.on) this.groups.choose(this.groups.groups[k]);
    else this.notice.say("All panes are shown.");
  }

  /** Shows one pane alone, or all again. @param {Pane} pane */
  expand(pane) {
    this.expanded = this.expanded === pane.name ? "" : pane.name;
    for (const [other, frame] of this.frames) {
      frame.classList.toggle("vg-alone", other.name === this.expanded);
      const button = /** @type {HTMLElement} */ (frame.querySelector(".vg-expand"));
      const alone = other.name === this.expanded;
      setIcon(button, alone ? "shrink" : "expand", alone ? "Show all panes" : `Show ${other.title} alone`);
    }
    this.root.classList.toggle("vg-one", this.expanded !== "");
    this.root.classList.toggle("vg-short", this.short);
    this.rearrange();
  }

  // ---- moving

  /** @param {number} step */
  clamp(step) {
    const whole = Math.round(Number(step)) || 0;
    return Math.max(0, Math.min(this.tracks.n - 1, whole));
  }

  /** To event `step`. @param {number} step @param {boolean} [remember] whether "back" returns here from there */
  go(step, remember = true) {
    const to = this.clamp(step);
    if (to === this.step) return;
    if (remember && Math.abs(to - this.step) > 1) {
      this.history.push(this.step);
      if (this.history.length > HISTORY) this.history.shift();
    }
    this.moveTo(to);
    this.options.onStep?.(to);
  }

  /** @param {number} by */
  stepBy(by) {
    this.go(this.step + by, false);
  }

  /** @param {number} to */
  moveTo(to) {
    this.notice.hide();
    this.step = to;
    this.redrawAll();
    if (this.options.hash) this.writeHash();
  }

  goToCause() {
    const cause = this.tracks.cause[this.step];
    if (cause >= 0) this.go(cause);
    else this.notice.say("Nothing in this trace caused this event.");
  }

  goBack() {
    const to = this.history.pop();
    if (to === undefined) return this.notice.say("There is nowhere to go back to: you have not jumped yet.");
    this.moveTo(to);
    this.options.onStep?.(to);
  }

  /** To the next event of the same kind, tensor or node. @param {"kind" | "tensor" | "node"} what @param {number} direction */
  goToKin(what, direction) {
    const { tracks, step } = this;
    const kind = tracks.kind[step];
    const node = tracks.node[step];
    const tensor = this.selected >= 0 ? this.selected : tracks.tensorOf(step);
    /** @param {number} i */
    const same = (i) => (what === "kind" ? tracks.kind[i] === kind : what === "node" ? tracks.node[i] === node : tracks.speaksOf(i, tensor));
    if ((what === "node" && node < 0) || (what === "tensor" && tensor < 0)) return this.notice.say(`This event is about no ${what}.`);
    const to = tracks.find(step, direction, same);
    if (to >= 0) return this.go(to);
    if (what === "tensor" && this.goOn(tensor, direction)) return;
    const more = what === "tensor" ? wayOut(direction, this.selected >= 0) : "";
    const which = what === "kind" ? `of the kind ${tracks.kindOf(step).name}` : `${what === "tensor" ? "that names" : "at the node"} ${nameAmongTwins(this, what === "tensor" ? tensor : node)}`;
    this.notice.say(`No ${direction > 0 ? "later" : "earlier"} event ${which}.${more}`);
  }

  /** Past a tensor's last event: offers the tensor of the same name in another graph, and goes there when asked again.
   * @param {number} tensor @param {number} direction @returns {boolean} whether there is one */
  goOn(tensor, direction) {
    const { offer } = this;
    if (offer && offer.tensor === tensor && offer.from === this.step && offer.direction === direction) {
      this.offer = null;
      if (this.selected >= 0) this.select(offer.twin);
      this.go(offer.to);
      return true;
    }
    this.offer = twinOffer(this, tensor, direction);
    if (this.offer) this.notice.say(offerWords(this, this.offer));
    return this.offer !== null;
  }

  /** To the first event of the next or previous node. @param {number} direction */
  goToNode(direction) {
    const { tracks } = this;
    const node = tracks.node[this.step];
    let to = tracks.find(this.step, direction, (i) => tracks.node[i] >= 0 && tracks.node[i] !== node);
    if (to < 0) return this.notice.say(direction > 0 ? "No later node." : "No earlier node.");
    if (direction < 0) {
      const there = tracks.node[to];
      while (to > 0 && tracks.node[to - 1] === there) to--;
    }
    this.go(to);
  }

  /** The name of the selected tensor, else of the event's, to the clipboard. */
  async copyName() {
    const t = this.selected >= 0 ? this.selected : this.tracks.tensorOf(this.step);
    if (t < 0) return this.notice.say("This event is about no tensor.");
    const name = this.tracks.name(t);
    this.notice.say((await copyText(name)) ? `Copied: ${visible(name)}` : "The browser did not let it be copied.");
  }

  /** Marks a tensor in every pane; -1 for none. @param {number} tensor */
  select(tensor) {
    const t = Number.isInteger(tensor) && tensor >= 0 && tensor < this.tracks.nTensors ? tensor : -1;
    if (t === this.selected) return;
    this.selected = t;
    this.options.onSelect?.(t);
    this.redrawAll();
    if (this.options.hash) this.writeHash();
  }

  /** Outlines tensors in graph and timeline, each as what its mark says. @param {Map<number, import("./marks.js").Mark>} marks */
  mark(marks) {
    for (const name of ["graph", "timeline"]) this.pane(name)?.mark(marks);
  }

  escape() {
    if (this.help.shown) this.help.toggle();
    else if (this.expanded) this.expand(this.pane(this.expanded));
    else this.select(-1);
  }

  readHash() {
    if (!this.options.hash) return;
    const said = new URLSearchParams(globalThis.location.hash.slice(1));
    if (said.has("step")) this.step = this.clamp(Number(said.get("step")));
    if (said.has("tensor")) this.selected = Math.min(this.tracks.nTensors - 1, Number(said.get("tensor")) | 0);
    this.redrawAll();
  }

  writeHash() {
    this.rest.after(this, ADDRESS_MS, () => {
      const tensor = this.selected >= 0 ? `&tensor=${this.selected}` : "";
      globalThis.history.replaceState(null, "", `#step=${this.step}${tensor}`);
    });
  }

  // ---- drawing: at once for the first change in a frame, once more at its end if more came

  /** @param {Pane} pane */
  redraw(pane) {
    if (!this.ready) return;
    this.dirty.add(pane);
    this.schedule();
  }

  redrawAll() {
    if (!this.ready) return;
    for (const pane of this.panes) this.dirty.add(pane);
    this.headDirty = true;
    this.schedule();
  }

  schedule() {
    if (!this.drawn) {
      this.drawn = true;
      this.paint();
    }
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.drawn = false;
        this.paint();
        this.drawn = false;
      });
    }
  }

  /** Scrolling first, while the layout is clean; then drawings, since a font that is set in one waits for the style of all
   * that has changed; then words: so that a step costs one style and one layout. */
  paint() {
    const { step } = this;
    const due = this.panes.filter((pane) => this.dirty.has(pane) && !this.unseen.has(pane) && (!this.expanded || pane.name === this.expanded));
    for (const pane of due) pane.prepare?.(step);
    for (const pane of due) {
      this.dirty.delete(pane);
      if (!WORDS.has(pane.name)) pane.draw(step);
    }
    for (const pane of due) {
      if (WORDS.has(pane.name)) pane.draw(step);
      pane.write?.(step);
    }
    if (!this.headDirty) return;
    this.headDirty = false;
    this.transport.draw(step);
    this.now.draw(step);
  }

  /** @param {IntersectionObserverEntry[]} entries */
  onSight(entries) {
    for (const entry of entries) {
      const pane = [...(this.frames)].find(([, frame]) => frame === entry.target)?.[0];
      if (!pane) continue;
      if (entry.isIntersecting) this.unseen.delete(pane);
      else this.unseen.add(pane);
    }
    this.schedule();
  }

  themeChanged() {
    for (const pane of this.panes) pane.invalidate();
    this.transport.paintStrip();
    this.redrawAll();
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.later);
    this.cool();
    this.rest.stop();
    globalThis.removeEventListener("hashchange", this.onHash);
    this.unlisten();
    this.watcher.disconnect();
    this.sizer.disconnect();
    this.transport.stop();
    this.notice.stop();
    this.theme.stop();
    for (const pane of this.panes) pane.stop();
    this.root.remove();
  }
}

/** The panes asked for in the player's order, then the details asked for by name. @param {Player} player @param {string[] | null} wanted
 * @returns {Pane[]} */
function makePanes(player, wanted) {
  const names = wanted ? PANES.filter((name) => wanted.includes(name)) : PANES;
  /** @type {Record<string, () => Pane>} */
  const makers = {
    tokens: () => new TokensPane(player),
    graph: () => new GraphPane(player),
    map: () => new MapPane(player),
    timeline: () => new TimelinePane(player),
    events: () => new EventsPane(player),
    tables: () => new DetailsPane(player),
  };
  const shown = names.filter((name) => name !== "tokens" || wanted !== null || player.tracks.track("token").length > 0);
  const details = DETAILS.filter((detail) => wanted?.includes(detail.name));
  return [...shown.map((name) => makers[name]()), ...details.map((detail) => new DetailPane(player, detail))];
}

/**
 * Puts a player into `host`.
 *
 * `tracks` is the container of tracks, `layout` where the graphs' boxes stand. `panes` names the panes to show (all when
 * left out), `step` the first event, `theme` light, dark or auto. `hash` keeps the step in the page's address and lets
 * the page's keys through: for a page that is the player's own. `onStep` is told of every step that a person makes.
 *
 * @param {Options} options
 */
export function create(options) {
  try {
    const player = new Player(options);
    return {
      step: () => player.step,
      setStep: (/** @type {number} */ i) => player.moveTo(player.clamp(i)),
      select: (/** @type {number} */ tensor) => player.select(tensor),
      mark: (/** @type {Map<number, import("./marks.js").Mark>} */ marks) => player.mark(marks),
      reach: () => player.pane("map")?.reach(player.step) ?? 0,
      scale: (/** @type {number} */ bytes) => player.pane("map")?.setLeast(bytes),
      destroy: () => player.destroy(),
    };
  } catch (error) {
    const text = `This trace cannot be shown: ${error instanceof Error ? error.message : error}`;
    options.host.replaceChildren(el("div", "vg-broken", { role: "alert", text }));
    return { step: () => 0, setStep: () => {}, select: () => {}, mark: () => {}, reach: () => 0, scale: () => {}, destroy: () => options.host.replaceChildren() };
  }
}

export { panel } from "./live_panel.js";
