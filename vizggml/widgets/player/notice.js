// A short line at the foot of the player that says why a key did nothing, or that something was copied.

import { el } from "./dom.js";

const SHOWN_MS = 2600;

export class Notice {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.element = el("div", "vg-notice", { role: "status", "aria-live": "polite" });
    this.timer = 0;
    root.append(this.element);
  }

  /** @param {string} text */
  say(text) {
    this.element.textContent = text;
    this.element.classList.add("vg-shown");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.element.classList.remove("vg-shown"), SHOWN_MS);
  }

  /** What was said is of a step that is left. */
  hide() {
    clearTimeout(this.timer);
    this.element.classList.remove("vg-shown");
  }

  stop() {
    clearTimeout(this.timer);
  }
}
