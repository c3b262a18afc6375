// What a sampled token was chosen from: a card with the likeliest tokens as bars, beside a token.

import { el } from "./dom.js";
import { visiblePiece } from "./sentence.js";

/** @typedef {{text: string, id: number, pos: number, p: number, top: [string, number][]}} Sampled `p` is its share among those that the
 * samplers left, `top` the likeliest tokens with their probabilities at temperature 1 */

const SHOWN = 5;

/** A token in a line, for a screen reader and a title. @param {Sampled} token */
export function aboutToken({ id, pos, p }) {
  return `token ${id} at position ${pos}, drawn with ${percent(p)} after temperature and filters`;
}

/** @param {number} p */
export function percent(p) {
  return p >= 0.9995 ? "100 %" : `${(100 * p).toFixed(p < 0.001 ? 2 : 1)} %`;
}

export class ChoiceCard {
  /** @param {HTMLElement} root what the card stays inside of */
  constructor(root) {
    this.root = root;
    this.element = el("div", "vg-tip vg-choice", { role: "tooltip" });
    this.element.hidden = true;
    root.append(this.element);
  }

  /** The five likeliest, and the chosen one where it is further down. @param {HTMLElement} beside @param {Sampled} token */
  show(beside, token) {
    const { text, top } = token;
    const chosen = top.findIndex(([piece]) => piece === text);
    const rows = top.filter((_, k) => k < SHOWN || k === chosen).map(([piece, p], k) => {
      const bar = el("span", "vg-choice-bar");
      bar.style.width = `${Math.max(1, 100 * p)}%`;
      return el("div", `vg-choice-row ${k === Math.min(chosen, SHOWN) ? "vg-chosen" : ""}`, {}, [
        el("span", "vg-choice-piece", { text: visiblePiece(piece) || "∅" }),
        el("span", "vg-choice-track", {}, [bar]),
        el("span", "vg-choice-p", { text: percent(p) }),
      ]);
    });
    const head = rows.length ? [el("div", "vg-choice-about", { text: "The likeliest here, at temperature 1" })] : [];
    this.element.replaceChildren(...head, ...rows, el("div", "vg-choice-about vg-choice-drawn", { text: aboutToken(token) }));
    this.element.hidden = false;
    const outer = this.root.getBoundingClientRect();
    const inner = beside.getBoundingClientRect();
    const [w, h] = [this.element.offsetWidth, this.element.offsetHeight];
    const x = Math.max(6, Math.min(inner.left - outer.left, outer.width - w - 6));
    const under = inner.bottom - outer.top + 6;
    const y = under + h > outer.height && inner.top - outer.top > h + 6 ? inner.top - outer.top - h - 6 : under;
    this.element.style.transform = `translate(${x}px, ${y}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}
