// Who is at the peak: what a plan comes to in words, and each tensor that stands where it reaches highest.

import { el, setText } from "./dom.js";
import { liveSet } from "./live.js";
import { peakEvent, placedBy } from "./phase.js";
import { graphWords, planWords } from "./plans.js";
import { formatBytes, visible } from "./sentence.js";
import { familyOf } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./plans.js").Plan} Plan */
/** @typedef {{words: string, chips: Map<number, HTMLElement>, nodes: HTMLElement[]}} Made */

/** More than this stand in one last word. */
const MOST = 24;
const FIT_MS = 60;

export class PeakLine {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    /** @type {Plan | null} */
    this.plan = null;
    this.words = el("div", "vg-footnote");
    this.button = el("button", "vg-button vg-text-button vg-at-peak", { type: "button", title: "Go to where the plan came to its peak (P)" });
    this.button.addEventListener("click", () => this.goToPlan());
    this.list = el("div", "vg-peak-list", { role: "group", "aria-label": "Tensors at the peak", tabindex: "-1" });
    this.more = el("button", "vg-peak-more", { type: "button", "aria-expanded": "false" });
    this.more.addEventListener("click", () => this.setAll(!this.all));
    this.all = false;
    this.row = el("div", "vg-peak", {}, [this.button, this.list, this.more]);
    this.fitter = new ResizeObserver(() => this.count());
    this.fitter.observe(this.list);
    this.element = el("div", "vg-peaks", {}, [this.words, this.row]);
    /** What was made for the plans met so far. @type {WeakMap<Plan, Made>} */
    this.made = new WeakMap();
    /** @type {Map<number, HTMLElement>} */
    this.chips = new Map();
    /** The tensor that is shown as selected. */
    this.marked = -2;
  }

  /** To where the peak was planned: the event at which the topmost tensor gets its place, in a plan made before where this one
   * only follows it. */
  goToPlan() {
    const { plan, player } = this;
    const maker = plan && placedBy(player, plan);
    this.go(maker);
    if (!plan || !maker || maker === plan) return;
    const { tracks } = player;
    player.notice.say(`Graph ${plan.graph} follows the plan made for ${graphWords(tracks, maker.graph)}. This is where that plan came to its peak; b goes back.`);
  }

  /** To the peak of a plan: the event at which the map is full. @param {Plan | null} plan */
  go(plan = this.plan) {
    const { player } = this;
    const of = plan ?? this.plan;
    const to = of ? peakEvent(player, of, player.step) : -1;
    if (to >= 0 && to !== player.step) player.go(to);
  }

  /** @param {Plan | null} plan */
  show(plan) {
    this.plan = plan;
    this.element.hidden = !plan;
    if (!plan) return;
    const made = this.made.get(plan) ?? this.make(plan);
    this.made.set(plan, made);
    this.chips = made.chips;
    setText(this.words, made.words);
    this.words.title = made.words;
    setText(this.button, `At the peak, position ${plan.peakPosition}`);
    this.list.replaceChildren(...made.nodes);
    this.player.rest.after(this, FIT_MS, () => this.count());
    this.marked = -2;
    this.mark();
  }

  /** @param {Plan} plan @returns {Made} */
  make(plan) {
    const { player } = this;
    const size = player.tracks.track("life").col("size");
    const chips = new Map(plan.atPeak.slice(0, MOST).map((row) => this.chip(row)));
    const more = plan.atPeak.slice(MOST);
    const rest = more.length ? [el("span", "vg-soft", { text: `and ${more.length} more, ${formatBytes(more.reduce((sum, r) => sum + size[r], 0))}` })] : [];
    const words = `${planWords(player.tracks, plan, liveSet(player, plan.plan)?.bound ?? 0)}.`;
    return { words, chips, nodes: [...chips.values(), ...rest] };
  }

  /** @param {number} row of the track of lives @returns {[number, HTMLElement]} the tensor, and its button */
  chip(row) {
    const { tracks } = this.player;
    const life = tracks.track("life");
    const t = life.col("tensor")[row];
    const swatch = el("span", "vg-swatch");
    swatch.style.background = `var(--vg-families-${familyOf(tracks.tensorString("op", t))})`;
    const name = visible(tracks.name(t));
    const bytes = formatBytes(life.col("size")[row]);
    const chip = el("button", "vg-peak-chip", { type: "button", title: `Select ${name} (${bytes}) and go to the peak` }, [
      swatch,
      el("span", "vg-mono", { text: name }),
      el("span", "vg-soft vg-tabular", { text: bytes }),
    ]);
    chip.addEventListener("click", () => {
      this.player.select(t);
      this.go();
    });
    return [t, chip];
  }

  /** Shows all of the tensors at the peak, or one line of them. @param {boolean} all */
  setAll(all) {
    this.all = all;
    this.row.classList.toggle("vg-all", all);
    this.more.setAttribute("aria-expanded", String(all));
    this.count();
  }

  /** Says how many there is no room for. */
  count() {
    const chips = [...this.chips.values()];
    const first = chips[0]?.offsetTop ?? 0;
    const shown = chips.filter((chip) => chip.offsetTop <= first + 4).length;
    const left = (this.plan?.atPeak.length ?? 0) - shown;
    setText(this.more, this.all ? "fewer" : `+${left} more`);
    this.more.classList.toggle("vg-none", left <= 0 && !this.all);
  }

  /** Shows which of them is selected. */
  mark() {
    const chosen = this.player.selected;
    if (chosen === this.marked) return;
    this.marked = chosen;
    for (const [t, chip] of this.chips) {
      const pressed = String(t === chosen);
      if (chip.getAttribute("aria-pressed") !== pressed) chip.setAttribute("aria-pressed", pressed);
    }
  }

  /** What stands at the peak, in words. */
  describe() {
    if (!this.plan) return "";
    const names = [...this.chips.values()].slice(0, 6).map((chip) => chip.textContent?.replace(/(\d)/, " $1"));
    return `${this.words.textContent} At the peak, position ${this.plan.peakPosition}, stand ${this.plan.atPeak.length} tensors: ${names.join(", ")}.`;
  }
}
