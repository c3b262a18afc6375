// The controls of a live run: a prompt, its settings, run, stop, continue, and the text with what each token was chosen from.

import { ChoiceCard, aboutToken } from "./choice.js";
import { el, setText } from "./dom.js";
import { visiblePiece } from "./sentence.js";
import { css } from "./styles.js";
import { watchTheme } from "./theme.js";

/** @typedef {import("./choice.js").Sampled} Sampled */
/** @typedef {{prompt: string, max_tokens: number, temp: number, seed: number}} Settings */
/** @typedef {{running: boolean, resumable: boolean, status: string, error: string, shown: number, read: string}} State `read` is the
 * prompt that was read, `shown` the token whose step the player shows, -1 for none */
/** @typedef {{host: HTMLElement, theme: string, settings: Settings, act: (what: string, more?: object) => void}} Options */

const MOST_SEED = 2 ** 32 - 1;

export class LivePanel {
  /** @param {Options} options */
  constructor({ host, theme, settings, act }) {
    this.act = act;
    this.root = el("div", "vg-player vg-livepanel", { role: "group", "aria-label": "Live run" });
    host.append(el("style", "", { text: css }), this.root);
    this.theme = watchTheme(this.root, theme, () => {});
    /** @type {Sampled[]} */
    this.tokens = [];
    this.prompt = el("textarea", "vg-live-prompt", { rows: "2", "aria-label": "Prompt", placeholder: "a prompt", spellcheck: "false" });
    this.prompt.value = settings.prompt;
    this.fields = {
      max_tokens: this.number("tokens", "How many tokens to make", settings.max_tokens, 1, 4096, 1),
      temp: this.number("temperature", "0 takes the likeliest token each time", settings.temp, 0, 10, 0.1),
      seed: this.number("seed", "The same seed draws the same tokens", settings.seed, 0, MOST_SEED, 1),
    };
    this.run = this.button("Run", "Read the prompt in a fresh context (Ctrl+Enter)", "run", "vg-play");
    this.stop = this.button("Stop", "Stop after the token that is being made", "stop");
    this.resume = this.button("Continue", "Go on where it stopped, in the same context", "resume");
    this.status = el("span", "vg-live-status", { role: "status" });
    this.error = el("div", "vg-live-error", { role: "alert" });
    this.read = el("span", "vg-live-read");
    this.made = el("span", "vg-live-made", { role: "listbox", "aria-label": "Sampled tokens" });
    this.text = el("div", "vg-live-text", {}, [this.read, this.made]);
    this.build();
    this.card = new ChoiceCard(this.root);
    this.listen();
  }

  build() {
    const { max_tokens, temp, seed } = this.fields;
    const labels = [max_tokens, temp, seed].map((field) => /** @type {HTMLElement} */ (field.parentElement));
    this.root.append(
      el("div", "vg-live-head", {}, [
        this.prompt,
        el("div", "vg-live-row", {}, [el("div", "vg-live-buttons", {}, [this.run, this.stop, this.resume]), this.status, el("div", "vg-live-fields", {}, labels)]),
      ]),
      this.error,
      this.text,
    );
  }

  /** @param {string} name @param {string} title @param {number} value @param {number} min @param {number} max @param {number} step */
  number(name, title, value, min, max, step) {
    const input = el("input", "vg-live-number", { type: "number", title, value: String(value), min: String(min), max: String(max), step: String(step) });
    el("label", "vg-live-field", {}, [el("span", "", { text: name }), input]);
    return input;
  }

  /** @param {string} text @param {string} title @param {string} what @param {string} [more] a class */
  button(text, title, what, more = "") {
    const made = el("button", `vg-button vg-text-button ${more}`, { type: "button", title, text });
    made.addEventListener("click", () => this.ask(what));
    return made;
  }

  /** @param {string} what */
  ask(what) {
    this.act(what, what === "stop" ? {} : this.settings());
  }

  /** What the fields say; what is no number, or out of bounds, becomes the nearest that is. @returns {Settings} */
  settings() {
    const read = (/** @type {HTMLInputElement} */ input, /** @type {number} */ otherwise) => {
      const value = input.value.trim() === "" || !Number.isFinite(input.valueAsNumber) ? otherwise : input.valueAsNumber;
      const within = Math.min(Number(input.max), Math.max(Number(input.min), input.step === "1" ? Math.round(value) : value));
      input.value = String(within);
      return within;
    };
    const { max_tokens, temp, seed } = this.fields;
    return { prompt: this.prompt.value, max_tokens: read(max_tokens, 24), temp: read(temp, 0.8), seed: read(seed, 1) };
  }

  listen() {
    this.root.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !this.run.disabled) {
        event.preventDefault();
        this.ask("run");
      }
    });
    const token = (/** @type {Event} */ event) => {
      const found = /** @type {HTMLElement} */ (event.target).closest(".vg-token");
      return found ? /** @type {HTMLElement} */ (found) : null;
    };
    this.made.addEventListener("click", (event) => {
      const at = token(event);
      if (at) this.act("show", { token: Number(at.dataset.token) });
    });
    for (const kind of ["pointerover", "focusin"]) {
      this.made.addEventListener(kind, (event) => {
        const at = token(event);
        if (at) this.card.show(at, this.tokens[Number(at.dataset.token)]);
      });
    }
    for (const kind of ["pointerleave", "focusout"]) this.made.addEventListener(kind, () => this.card.hide());
    this.made.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** One stop of the tab key for all tokens; arrows go from one to the next. @param {KeyboardEvent} event */
  onKey(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const at = [...this.made.children].indexOf(/** @type {Element} */ (document.activeElement));
    const to = Math.max(0, Math.min(this.tokens.length - 1, at + by));
    this.focusable(to);
    /** @type {HTMLElement} */ (this.made.children[to]).focus();
  }

  /** @param {number} k */
  focusable(k) {
    for (const child of this.made.querySelectorAll("[tabindex='0']")) /** @type {HTMLElement} */ (child).tabIndex = -1;
    const at = /** @type {HTMLElement | undefined} */ (this.made.children[k]);
    if (at) at.tabIndex = 0;
  }

  /** Tokens from number `from` on. @param {number} from @param {Sampled[]} tokens */
  add(from, tokens) {
    const bottom = this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 30;
    this.tokens.length = Math.min(from, this.tokens.length);
    while (this.made.children.length > from) /** @type {Element} */ (this.made.lastChild).remove();
    for (const token of tokens) {
      const made = el("button", "vg-token vg-sampled", {
        type: "button",
        role: "option",
        tabindex: "-1",
        "data-token": String(this.tokens.length),
        text: token.text || `#${token.id}`,
      });
      made.setAttribute("aria-label", `${visiblePiece(token.text)}: ${aboutToken(token)}`);
      this.made.append(made);
      this.tokens.push(token);
    }
    if (!this.made.querySelector("[tabindex='0']")) this.focusable(0);
    if (bottom) this.text.scrollTop = this.text.scrollHeight;
  }

  /** @param {State} state */
  update({ running, resumable, status, error, shown, read }) {
    this.run.disabled = running;
    this.stop.disabled = !running;
    this.resume.disabled = !resumable;
    setText(this.status, status);
    setText(this.error, error);
    this.error.hidden = !error;
    setText(this.read, read);
    this.text.hidden = !read && !this.tokens.length;
    const children = [...this.made.children];
    for (const child of this.made.querySelectorAll(".vg-now")) if (children[shown] !== child) child.classList.remove("vg-now");
    children[shown]?.classList.add("vg-now");
    children.forEach((child, k) => child.setAttribute("aria-selected", String(k === shown)));
  }

  destroy() {
    this.theme.stop();
    this.root.remove();
  }
}

/** Puts the controls of a live run into `host`. @param {Options} options */
export function panel(options) {
  return new LivePanel(options);
}
