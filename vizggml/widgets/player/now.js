// The event of this step in one sentence, where that happens in ggml and in vizggml, and what caused it.

import { el, setText } from "./dom.js";
import { sentence, visible } from "./sentence.js";
import { areaGroup } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */

const QUIET_MS = 350;

export class Now {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.dot = el("span", "vg-dot");
    this.kind = el("span", "vg-kind");
    this.line = el("p", "vg-sentence");
    this.ggml = el("span", "vg-mono");
    this.ours = el("span", "vg-mono");
    this.why = el("button", "vg-button vg-text-button", { type: "button", text: "Why?" });
    this.why.addEventListener("click", () => player.goToCause());
    this.back = el("button", "vg-button vg-text-button", { type: "button", text: "Back", title: "To where you were (b)" });
    this.back.addEventListener("click", () => player.goBack());
    this.live = el("div", "vg-unseen", { "aria-live": "polite", "aria-atomic": "true" });
    this.element = el("div", "vg-nowbar", {}, [
      el("div", "vg-nowline", {}, [this.line, el("div", "vg-group", {}, [this.why, this.back])]),
      el("div", "vg-where", {}, [
        el("span", "vg-key", {}, [this.dot, this.kind]),
        el("span", "vg-place", {}, [el("span", "vg-soft", { text: "in ggml" }), this.ggml]),
        el("span", "vg-place", {}, [el("span", "vg-soft", { text: "in vizggml" }), this.ours]),
      ]),
      this.live,
    ]);
    this.timer = 0;
  }

  /** @param {number} step */
  draw(step) {
    const { tracks } = this.player;
    const kind = tracks.kindOf(step);
    const text = visible(sentence(tracks, step));
    setText(this.line, text);
    this.line.title = text;
    setText(this.kind, kind.name);
    setText(this.ggml, kind.ggml || "nowhere: ours alone");
    setText(this.ours, kind.ours);
    const dot = `vg-dot vg-area-${areaGroup(kind.area)}`;
    if (this.dot.className !== dot) this.dot.className = dot;
    const cause = tracks.cause[step];
    this.setAble(this.why, cause >= 0);
    this.setAble(this.back, this.player.history.length > 0);
    this.say(text);
  }

  /** @param {HTMLButtonElement} button @param {boolean} able */
  setAble(button, able) {
    if (button.disabled === able) button.disabled = !able;
    if (button !== this.why) return;
    const title = able ? "To the event that caused this one (w)" : "Nothing in this trace caused this event";
    if (button.title !== title) button.title = title;
  }

  /** Says the sentence aloud once the steps come to rest. @param {string} text */
  say(text) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => setText(this.live, text), QUIET_MS);
  }

  stop() {
    clearTimeout(this.timer);
  }
}
