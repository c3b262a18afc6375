// Search among tensors by name, op or type.

import { el } from "./dom.js";
import { formatDims, visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */

const MOST = 40;

export class GraphSearch {
  /**
   * @param {Player} player
   * @param {(found: number[]) => void} found told what matches, for marking
   * @param {(tensor: number) => void} reveal
   * @param {(tensor: number) => number} elsewhere the graph of a tensor that is not in the one shown; else -1
   */
  constructor(player, found, reveal, elsewhere) {
    this.player = player;
    this.found = found;
    this.reveal = reveal;
    this.elsewhere = elsewhere;
    this.active = -1;
    /** @type {number[]} */
    this.matches = [];
    this.input = el("input", "vg-search", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search tensors by name, op or type",
      role: "combobox",
      "aria-expanded": "false",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.list = el("ul", "vg-results", { role: "listbox", "aria-label": "Tensors found" });
    this.list.hidden = true;
    this.element = el("div", "vg-search-box", {}, [this.input, this.list]);
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.input.addEventListener("blur", () => setTimeout(() => (this.list.hidden = true), 150));
    this.list.addEventListener("pointerdown", (event) => {
      const item = /** @type {HTMLElement} */ (event.target).closest("li");
      if (item) this.take([...this.list.children].indexOf(item));
    });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  update() {
    const words = this.input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const { tracks } = this.player;
    this.matches = [];
    for (let t = 0; words.length && t < tracks.nTensors; t++) {
      const text = ["name", "op", "desc", "type"].map((c) => tracks.tensorString(c, t)).join(" ").toLowerCase();
      if (words.every((word) => text.includes(word))) this.matches.push(t);
    }
    this.matches = [...this.matches.filter((t) => this.elsewhere(t) < 0), ...this.matches.filter((t) => this.elsewhere(t) >= 0)];
    this.active = -1;
    this.found(this.matches);
    this.fill(words.length > 0);
  }

  /** @param {boolean} asked */
  fill(asked) {
    const { tracks } = this.player;
    const items = this.matches.slice(0, MOST).map((t) => {
      const op = tracks.tensorString("desc", t) || "NONE";
      const graph = this.elsewhere(t);
      const where = graph < 0 ? "" : ` · graph ${graph}`;
      return el("li", "", { role: "option" }, [
        el("span", "vg-mono", { text: visible(tracks.name(t)) }),
        el("span", "vg-soft", { text: `${op === "NONE" ? "leaf" : op} · ${tracks.tensorString("type", t)} · ${formatDims(tracks.ne(t))}${where}` }),
      ]);
    });
    const rest = this.matches.length - items.length;
    if (rest > 0) items.push(el("li", "vg-soft", { text: `and ${rest} more` }));
    if (asked && !this.matches.length) items.push(el("li", "vg-soft", { text: "nothing of that name, op or type" }));
    this.list.replaceChildren(...items);
    this.list.hidden = !asked;
    this.input.setAttribute("aria-expanded", String(asked));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const most = Math.min(this.matches.length, MOST);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.active = most ? (this.active + (event.key === "ArrowDown" ? 1 : most - 1) + (this.active < 0 && event.key === "ArrowUp" ? 1 : 0)) % most : -1;
      [...this.list.children].forEach((item, k) => item.classList.toggle("vg-now", k === this.active));
      this.list.children[this.active]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && most) {
      event.preventDefault();
      this.take(Math.max(0, this.active));
    } else if (event.key === "Escape") {
      this.input.value = "";
      this.update();
      this.player.root.focus();
    } else {
      return;
    }
    event.stopPropagation();
  }

  /** @param {number} k */
  take(k) {
    const t = this.matches[k];
    if (t === undefined) return;
    this.list.hidden = true;
    this.player.select(t);
    this.reveal(t);
  }
}
