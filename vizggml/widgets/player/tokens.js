// The token strip: the text so far at this step; a token leads to the event that brought it.

import { ChoiceCard } from "./choice.js";
import { el } from "./dom.js";
import { visiblePiece } from "./sentence.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./player.js").Player} Player */

const MOST = 600;
const REST_MS = 120;
const PAD = 6;

export class TokensPane {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "tokens";
    this.title = "Text";
    this.track = player.tracks.track("token");
    this.text = el("div", "vg-text", { role: "group", "aria-label": "Tokens so far" });
    this.body = el("div", "vg-stack vg-scroll", {}, [this.text]);
    this.tools = [
      el("span", "vg-key", {}, [el("span", "vg-token vg-sample", { text: "prompt" })]),
      el("span", "vg-key", {}, [el("span", "vg-token vg-sampled vg-sample", { text: "sampled" })]),
    ];
    this.card = new ChoiceCard(player.root);
    this.shown = -1;
    this.first = 0;
    /** @type {HTMLElement[]} */
    this.made = [];
    this.text.addEventListener("click", (event) => {
      const k = this.made.indexOf(/** @type {HTMLElement} */ (event.target));
      if (k >= 0) player.go(this.track.a[this.first + k]);
    });
    this.pointer = { x: -1, y: -1 };
    this.onKey = () => this.card.hide();
    this.listen();
    if (!this.track.length) this.text.append(el("span", "vg-soft", { text: "No text in this trace." }));
    else this.make(0);
  }

  /** The card comes with the pointer or with the focus of the keyboard, and goes with a click or any key. */
  listen() {
    const { text, card } = this;
    text.addEventListener("pointerover", (event) => {
      if (this.moved(event)) this.offer(event.target);
    });
    this.player.root.addEventListener("pointermove", (event) => this.moved(event));
    text.addEventListener("focusin", (event) => {
      if (/** @type {HTMLElement} */ (event.target).matches(":focus-visible")) this.offer(event.target);
    });
    for (const kind of ["pointerleave", "focusout", "click"]) text.addEventListener(kind, () => card.hide());
    document.addEventListener("keydown", this.onKey, true);
  }

  /** Whether the pointer moved, and not the text under it. @param {PointerEvent} event */
  moved({ clientX: x, clientY: y }) {
    const { pointer } = this;
    if (x === pointer.x && y === pointer.y) return false;
    this.pointer = { x, y };
    return true;
  }

  /** Shows what a token was chosen from. @param {EventTarget | null} target */
  offer(target) {
    const k = this.made.indexOf(/** @type {HTMLElement} */ (target));
    const choice = k >= 0 ? this.choice(this.first + k) : null;
    if (choice) this.card.show(this.made[k], choice);
    else this.card.hide();
  }

  /** The token in `row` with what it was chosen from; nothing for a token of the prompt. @param {number} row
   * @returns {import("./choice.js").Sampled | null} */
  choice(row) {
    const { track } = this;
    const candidates = this.player.tracks.track("candidate");
    if (!track.col("sampled")[row] || !candidates.length) return null;
    const top = candidates.openAt(track.a[row]).map((r) => /** @type {[string, number]} */ ([candidates.str("piece", r), candidates.col("p")[r]]));
    const [id, pos, p] = ["token", "pos", "p"].map((name) => track.col(name)[row]);
    return top.length ? { text: track.str("piece", row), id, pos, p, top } : null;
  }

  /** Makes the tokens from row `first` on; those to come are there already, faint, so that no line moves. @param {number} first */
  make(first) {
    const { track } = this;
    this.first = first;
    this.made = [];
    for (let row = first; row < Math.min(track.length, first + MOST); row++) {
      const sampled = track.col("sampled")[row] !== 0;
      const p = track.col("p")[row];
      const about = `token ${track.col("token")[row]} at position ${track.col("pos")[row]}`;
      const told = sampled ? `${about}, sampled with probability ${p.toFixed(3)}` : `${about}, from the prompt`;
      const title = this.choice(row) ? undefined : told;
      const piece = track.str("piece", row) || `#${track.col("token")[row]}`;
      this.made.push(
        el("button", `vg-token ${sampled ? "vg-sampled" : ""}`, { type: "button", text: visiblePiece(piece), title, "data-row": String(row) }),
      );
    }
    this.text.replaceChildren(...this.made);
    this.shown = -1;
  }

  /** @param {number} step */
  draw(step) {
    const { track } = this;
    if (!track.length) return;
    const so_far = upperBound(track.a, step);
    if (so_far < this.first || so_far > this.first + this.made.length) this.make(Math.max(0, so_far - Math.floor(MOST / 2)));
    if (so_far === this.shown) return;
    const from = this.shown < 0 ? 0 : Math.max(0, Math.min(this.shown, so_far) - this.first - 1);
    const to = this.shown < 0 ? this.made.length : Math.min(this.made.length, Math.max(this.shown, so_far) - this.first + 1);
    for (let k = from; k < to; k++) {
      const row = this.first + k;
      this.made[k].classList.toggle("vg-later", row >= so_far);
      this.made[k].classList.toggle("vg-now", row === so_far - 1);
    }
    this.shown = so_far;
    this.player.rest.after(this, REST_MS, () => this.follow());
  }

  /** Brings the line of the newest token into sight, where there are more lines than room. */
  follow() {
    const { body } = this;
    const now = this.made[this.shown - 1 - this.first];
    if (!now || body.scrollHeight <= body.clientHeight) return;
    const [top, bottom] = [now.offsetTop - PAD, now.offsetTop + now.offsetHeight + PAD];
    body.scrollTop = Math.max(bottom - body.clientHeight, Math.min(body.scrollTop, top));
  }

  invalidate() {}

  stop() {
    document.removeEventListener("keydown", this.onKey, true);
    this.card.element.remove();
  }
}
