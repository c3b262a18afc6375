// The event of this step in one sentence, where that happens in ggml and in vizggml, and what caused it.

import { el, setText } from "./dom.js";
import { sentence, visible } from "./sentence.js";
import { areaGroup } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */

const [HINT_MS, QUIET_MS] = [100, 350];

/** `function, path`. @param {string} text @returns {[string, string]} */
function splitGgml(text) {
  const at = text.lastIndexOf(", ");
  return at < 0 ? [text || "nowhere: ours alone", ""] : [text.slice(0, at), text.slice(at + 2)];
}

/** `path: function`. @param {string} text @returns {[string, string]} */
function splitOurs(text) {
  const at = text.indexOf(": ");
  return at < 0 ? [text, ""] : [text.slice(at + 2), text.slice(0, at)];
}

/** A function and the file it is in, the end left out where room is short. */
class Place {
  /** @param {string} word */
  constructor(word) {
    this.whole = "";
    this.name = el("span", "vg-mono");
    this.directory = el("span", "vg-directory");
    this.file = el("span");
    const path = el("span", "vg-mono vg-soft vg-path", {}, [document.createTextNode(" "), this.directory, this.file]);
    this.element = el("div", "vg-place", {}, [el("span", "vg-soft", { text: `${word} ` }), this.name, path]);
  }

  /** @param {string} name @param {string} path */
  show(name, path) {
    const cut = path.lastIndexOf("/") + 1;
    setText(this.name, name);
    setText(this.directory, path.slice(0, cut));
    setText(this.file, path.slice(cut));
    this.whole = path ? `${name}, ${path}` : name;
  }

  hint() {
    this.element.title = this.whole;
  }
}

export class Now {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.dot = el("span", "vg-dot");
    this.kind = el("span", "vg-kind");
    this.line = el("p", "vg-sentence");
    this.ggml = new Place("in ggml");
    this.ours = new Place("in vizggml");
    this.why = el("button", "vg-button vg-text-button", { type: "button", text: "Why?" });
    this.why.addEventListener("click", () => player.goToCause());
    this.back = el("button", "vg-button vg-text-button", { type: "button", text: "Back", title: "To where you were (b)" });
    this.back.addEventListener("click", () => player.goBack());
    this.live = el("div", "vg-unseen", { "aria-live": "polite", "aria-atomic": "true" });
    this.element = el("div", "vg-nowbar", {}, [
      el("div", "vg-nowline", {}, [this.line, el("div", "vg-group", {}, [this.why, this.back])]),
      el("div", "vg-where", {}, [
        el("span", "vg-key", {}, [this.dot, this.kind]),
        this.ggml.element,
        this.ours.element,
      ]),
      this.live,
    ]);
  }

  /** @param {number} step */
  draw(step) {
    const { tracks } = this.player;
    const kind = tracks.kindOf(step);
    const text = visible(sentence(tracks, step));
    setText(this.line, text);
    setText(this.kind, kind.name);
    this.ggml.show(...splitGgml(kind.ggml));
    this.ours.show(...splitOurs(kind.ours));
    const dot = `vg-dot vg-area-${areaGroup(kind.area)}`;
    if (this.dot.className !== dot) this.dot.className = dot;
    const cause = tracks.cause[step];
    setAble(this.why, cause >= 0);
    setAble(this.back, this.player.history.length > 0);
    this.player.rest.after(this, HINT_MS, () => this.hint(text, cause));
    this.player.rest.after(this.live, QUIET_MS, () => setText(this.live, text));
  }

  /** What is said under the pointer. @param {string} text @param {number} cause */
  hint(text, cause) {
    this.line.title = text;
    this.why.title = cause >= 0 ? `To its cause (w): ${visible(sentence(this.player.tracks, cause))}` : "Nothing in this trace caused this event";
    for (const place of [this.ggml, this.ours]) place.hint();
  }
}

/** @param {HTMLButtonElement} button @param {boolean} able */
function setAble(button, able) {
  if (button.disabled === able) button.disabled = !able;
}
