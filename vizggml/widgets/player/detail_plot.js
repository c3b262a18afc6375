// A detail that is a drawing: a line of words over it, a card for what the pointer or the arrow keys are at.

import { Surface, el, setText } from "./dom.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {CanvasRenderingContext2D} Context */
/** @typedef {{head: string, pairs: [string, string][]}} Card */
/** @typedef {{strong: string, rest: string, bad?: boolean}} Words `strong` is read first; `bad` where it says that something fails */
/** @typedef {{title: string, keys?: string, empty: string}} Naming `keys` says what the arrow keys walk over */

const TALL = 46;

/** Subclasses say what to draw and what stands where. */
export class DetailPlot {
  /** @param {Player} player @param {Pane} pane the pane to be drawn again when the size changes @param {Naming} naming */
  constructor(player, pane, naming) {
    this.player = player;
    this.pane = pane;
    this.naming = naming;
    this.step = player.step;
    /** What the arrow keys are at, -1 for nothing. */
    this.cursor = -1;
    this.strong = el("strong");
    this.rest = el("span");
    this.line = el("p", "vg-saying", {}, [this.strong, this.rest]);
    this.surface = new Surface(naming.title, () => player.redraw(pane));
    this.surface.canvas.tabIndex = 0;
    this.surface.box.style.minHeight = `${TALL}px`;
    this.empty = el("div", "vg-empty", { text: naming.empty });
    this.spoken = el("div", "vg-unseen", { "aria-live": "polite" });
    this.main = el("div", "vg-stack", {}, [this.line, this.surface.box, this.empty, this.spoken]);
    this.element = el("div", "vg-stack vg-detail", {}, [this.main]);
    this.listen();
  }

  listen() {
    const { box, canvas } = this.surface;
    box.addEventListener("pointermove", (event) => this.showCard(this.findAt(event.offsetX, event.offsetY), event.offsetX, event.offsetY));
    box.addEventListener("pointerleave", () => this.player.tip.hide());
    canvas.addEventListener("blur", () => {
      if (this.cursor >= 0) this.setCursor(-1);
    });
    box.addEventListener("click", (event) => {
      const k = this.findAt(event.offsetX, event.offsetY);
      if (k >= 0) this.choose(k);
    });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Up and down walk over what is drawn, enter chooses it. @param {KeyboardEvent} event */
  onKey(event) {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Enter" && this.cursor >= 0) this.choose(this.cursor);
    else if (event.key === "Escape" && this.cursor >= 0) this.setCursor(-1);
    else if (by) this.setCursor(this.nextOf(this.cursor, by));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} k */
  setCursor(k) {
    this.cursor = k;
    const at = k < 0 ? null : this.placeOf(k);
    if (at) this.showCard(k, at.x, at.y);
    else this.player.tip.hide();
    const card = k < 0 ? null : this.cardOf(k);
    setText(this.spoken, card ? [card.head, ...card.pairs.map((pair) => pair.join(" "))].join(", ") : "");
    this.player.redraw(this.pane);
  }

  /** @param {number} k @param {number} x @param {number} y */
  showCard(k, x, y) {
    const card = k < 0 ? null : this.cardOf(k);
    if (card) this.player.tip.show(this.surface.box, x, y, card.head, card.pairs);
    else this.player.tip.hide();
  }

  /** @param {number} step */
  draw(step) {
    this.step = step;
    const words = this.prepare(step);
    setHidden(this.empty, words !== null);
    setHidden(this.line, words === null);
    setHidden(this.surface.box, words === null);
    if (!words) return;
    setText(this.strong, words.strong);
    setText(this.rest, words.rest);
    this.strong.classList.toggle("vg-wrong", words.bad === true);
    const whole = `${words.strong}; ${words.rest}`;
    if (this.line.title !== whole) this.line.title = whole;
    const said = [this.naming.title, words.strong, words.rest].filter(Boolean).join(": ") + (this.naming.keys ? `. Up and down: ${this.naming.keys}.` : "");
    if (this.surface.canvas.getAttribute("aria-label") !== said) this.surface.canvas.setAttribute("aria-label", said);
    const { width, height } = this.surface;
    if (width < 60 || height < 20) return;
    const c = this.surface.begin();
    c.fillStyle = this.player.palette.page;
    c.fillRect(0, 0, width, height);
    c.textBaseline = "middle";
    c.textAlign = "left";
    this.paint(c, width, height, step);
  }

  /** Reads the step; what to say of it, null where there is nothing. @param {number} step @returns {Words | null} */
  prepare(step) {
    return step < 0 ? null : { strong: "", rest: "" };
  }

  /** @param {Context} _c @param {number} _w @param {number} _h @param {number} _step */
  paint(_c, _w, _h, _step) {}

  /** What stands at a place, -1 for nothing. @param {number} _x @param {number} _y */
  findAt(_x, _y) {
    return -1;
  }

  /** What the card says of it. @param {number} _k @returns {Card | null} */
  cardOf(_k) {
    return null;
  }

  /** Where its card goes. @param {number} _k @returns {{x: number, y: number} | null} */
  placeOf(_k) {
    return null;
  }

  /** The one after or before `k`, from -1 the first or the current one. @param {number} k @param {number} _by */
  nextOf(k, _by) {
    return k;
  }

  /** @param {number} _k */
  choose(_k) {}

  stop() {
    this.surface.stop();
  }
}

/** @param {HTMLElement} element @param {boolean} hidden */
export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

/** `1 cell`, `2 cells`. @param {number} n @param {string} thing */
export function counted(n, thing) {
  return `${n} ${thing}${n === 1 ? "" : "s"}`;
}

/** The numbers of the events of one kind, in order. @param {Player} player @param {string} kind @returns {Int32Array} */
export function eventsOf({ tracks, relations }, kind) {
  return relations.keep(`events ${kind}`, () => {
    const index = tracks.kindNamed[kind]?.index ?? -1;
    const found = [];
    for (let i = 0; i < tracks.n; i++) if (tracks.kind[i] === index) found.push(i);
    return Int32Array.from(found);
  });
}

/** Slanted lines over a rectangle. @param {Context} c @param {number} x @param {number} y @param {number} w @param {number} h @param {string} colour */
export function hatch(c, x, y, w, h, colour) {
  c.save();
  c.beginPath();
  c.rect(x, y, w, h);
  c.clip();
  c.strokeStyle = colour;
  c.lineWidth = 1;
  c.beginPath();
  for (let k = Math.floor((x - h) / 5) * 5; k < x + w; k += 5) {
    c.moveTo(k, y + h);
    c.lineTo(k + h, y);
  }
  c.stroke();
  c.restore();
}
