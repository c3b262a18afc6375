// Search among tensors by name, op, type, size or layer; the matches one after the other.

import { el } from "./dom.js";
import { parseQuery } from "./search_query.js";
import { formatBytes, formatDims, visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */

const MOST = 40;

export class GraphSearch {
  /**
   * @param {Player} player
   * @param {(found: number[]) => void} found told what matches, for marking
   * @param {(tensor: number) => void} reveal
   * @param {(tensor: number) => number} elsewhere the graph of a tensor that is not in the one shown; else -1
   * @param {(tensor: number) => number} layerOf its layer, -1 for none
   */
  constructor(player, found, reveal, elsewhere, layerOf) {
    this.layerOf = layerOf;
    this.player = player;
    this.found = found;
    this.reveal = reveal;
    this.elsewhere = elsewhere;
    this.active = -1;
    /** Whether the marked match was selected: Enter then takes the next. */
    this.taken = false;
    /** @type {number[]} */
    this.matches = [];
    this.input = el("input", "vg-search", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search tensors by name, op, type, size or layer",
      title: "Words of a name, op or type; op:MUL_MAT  type:Q4_1  >1MiB  layer:3. Enter: next, Shift Enter: previous, Esc: done",
      role: "combobox",
      "aria-expanded": "false",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.list = el("ul", "vg-results", { role: "listbox", "aria-label": "Tensors found" });
    this.list.hidden = true;
    this.count = el("span", "vg-found", { role: "status" });
    this.element = el("div", "vg-search-box", {}, [this.input, this.count, this.list]);
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.input.addEventListener("blur", () => setTimeout(() => (this.list.hidden = true), 150));
    this.list.addEventListener("pointerdown", (event) => {
      const item = /** @type {HTMLElement} */ (event.target).closest("li");
      const k = item ? [...this.list.children].indexOf(item) : -1;
      if (k < 0 || k >= Math.min(MOST, this.matches.length)) return;
      this.take(k);
    });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  update() {
    const { tracks } = this.player;
    const test = parseQuery(tracks, this.input.value, this.layerOf);
    /** @type {number[][]} */
    const [here, elsewhere] = [[], []];
    for (let t = 0; test && t < tracks.nTensors; t++) if (test(t)) (this.elsewhere(t) < 0 ? here : elsewhere).push(t);
    this.matches = [...here, ...elsewhere];
    this.active = -1;
    this.found(this.matches);
    this.fill(test !== null);
    this.tell();
  }

  /** Which match of how many. */
  tell() {
    const n = this.matches.length;
    this.count.textContent = !this.input.value.trim() ? "" : this.active < 0 ? `${n} found` : `${this.active + 1} of ${n}`;
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
        el("span", "vg-soft", { text: `${op === "NONE" ? "leaf" : op} · ${tracks.tensorString("type", t)} · ${formatDims(tracks.ne(t))} · ${formatBytes(tracks.nbytes(t))}${where}` }),
      ]);
    });
    const rest = this.matches.length - items.length;
    if (rest > 0) items.push(el("li", "vg-soft", { text: `and ${rest} more` }));
    if (asked && !this.matches.length) items.push(el("li", "vg-soft", { text: "nothing matches" }));
    this.list.replaceChildren(...items);
    this.list.hidden = !asked;
    this.input.setAttribute("aria-expanded", String(asked));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const { key, shiftKey } = event;
    if ((key === "ArrowDown" || key === "ArrowUp") && this.matches.length) {
      this.list.hidden = false;
      this.mark(this.active + (key === "ArrowDown" ? 1 : -1));
    } else if (key === "Enter" && this.matches.length) {
      this.take(this.active >= 0 && !this.taken ? this.active : this.active + (shiftKey ? -1 : 1));
    } else if (key === "Escape") {
      this.input.value = "";
      this.update();
      this.player.root.focus();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Marks match `k` in the list, from the end on again from the start. @param {number} k */
  mark(k) {
    const n = this.matches.length;
    this.active = k === -2 ? n - 1 : (k + n) % n;
    this.taken = false;
    [...this.list.children].forEach((item, at) => item.classList.toggle("vg-now", at === this.active));
    this.list.children[Math.min(this.active, MOST)]?.scrollIntoView({ block: "nearest" });
    this.tell();
  }

  /** Selects match `k` and brings it into sight. @param {number} k */
  take(k) {
    if (!this.matches.length) return;
    this.mark(k);
    this.taken = true;
    this.list.hidden = true;
    this.player.select(this.matches[this.active]);
    this.reveal(this.matches[this.active]);
  }
}
