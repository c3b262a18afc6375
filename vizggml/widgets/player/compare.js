// Two traces side by side: what differs above, two players below that step, and select, together.

import { CompareHead } from "./compare_head.js";
import { DifferenceStrip } from "./compare_strip.js";
import { CompareTable } from "./compare_table.js";
import { readContainer } from "./container.js";
import { el, iconButton, setText } from "./dom.js";
import { create } from "./player.js";
import { css } from "./styles.js";
import { formatCount, visible } from "./sentence.js";
import { watchTheme } from "./theme.js";
import { Tracks, upperBound } from "./tracks.js";

/**
 * @typedef {{tracks: ArrayBuffer | ArrayBufferView, layout: any}} Half
 * @typedef {{left: Half, right: Half, diff: ArrayBuffer | ArrayBufferView, host: HTMLElement, panes?: string[] | null, step?: number,
 *   theme?: string, hash?: boolean, height?: string, onStep?: (step: number, right: number) => void}} CompareOptions
 * @typedef {{name: "left" | "right", label: string, tracks: Tracks, here: Int32Array, there: Int32Array, twin: Int32Array,
 *   player: ReturnType<typeof create>, strip: DifferenceStrip, mark: HTMLElement, focus: () => HTMLElement | null}} Side
 */

const NARROW = 900;
const HASH_MS = 150;
const PANES = ["graph", "timeline", "map", "events"];

export class Compare {
  /** @param {CompareOptions} options */
  constructor(options) {
    this.options = options;
    const content = readContainer(options.diff, "comparison");
    this.meta = content.meta;
    this.root = el("div", "vg-compare", { role: "application", "aria-label": "Two traces side by side", "data-lm-suppress-shortcuts": "true" });
    this.root.append(el("style", "", { text: css }));
    this.theme = watchTheme(this.root, options.theme ?? "auto", () => this.paintStrips());
    options.host.replaceChildren(this.root);
    this.linked = true;
    this.moving = false;
    this.hashTimer = 0;
    this.head = new CompareHead(this.meta);
    this.table = new CompareTable(this.meta, (members, k) => this.show(members[k]), () => this.mark());
    this.link = el("button", "vg-button vg-text-button vg-cmp-link", { type: "button", "aria-pressed": "true", text: "Linked", title: "Step and select in both at once (L)" });
    this.link.addEventListener("click", () => this.setLinked(!this.linked));
    this.status = el("p", "vg-cmp-status vg-tabular", { "aria-live": "polite" });
    const sides = el("div", "vg-cmp-sides");
    if (options.height) sides.style.setProperty("--vg-cmp-height", options.height);
    this.jumps = el("span", "vg-pair", { role: "group", "aria-label": "Events without a counterpart" }, [
      iconButton("left", "Previous event without a counterpart ([)", () => this.jump(-1)),
      el("span", "vg-pair-word", { text: "difference" }),
      iconButton("right", "Next event without a counterpart (])", () => this.jump(1)),
    ]);
    this.root.append(this.head.element, this.table.element, el("div", "vg-cmp-bar", {}, [this.link, this.jumps, this.status]), sides);
    this.root.classList.toggle("vg-cmp-fill", options.hash ?? false);
    this.sizer = new ResizeObserver((entries) => this.setWidth(entries[entries.length - 1].contentRect.width));
    const column = (/** @type {string} */ name) => content.column(name);
    this.left = this.makeSide("left", options.left, [column("event.a"), column("event.b"), column("twin.a")], sides);
    this.right = this.makeSide("right", options.right, [column("event.b"), column("event.a"), column("twin.b")], sides);
    this.active = this.left;
    this.tensor = -1;
    this.mark();
    this.setWidth(this.root.clientWidth);
    this.sizer.observe(this.root);
    this.onKey = (/** @type {KeyboardEvent} */ event) => this.key(event);
    this.keyHost = options.hash ? document : this.root;
    this.keyHost.addEventListener("keydown", /** @type {EventListener} */ (this.onKey));
    this.onHash = () => this.readHash();
    if (options.hash) globalThis.addEventListener("hashchange", this.onHash);
    this.follow(this.left);
    this.readHash();
  }

  /** @param {number} width */
  setWidth(width) {
    this.root.classList.toggle("vg-cmp-narrow", width < NARROW);
    this.paintStrips();
  }

  /** Outlines in both what stands in the table. */
  mark() {
    this.left?.player.mark(this.table.marks(0));
    this.right?.player.mark(this.table.marks(1));
  }

  /** Both memory maps show as many bytes on a pixel while the sides are linked. */
  scale() {
    const sides = [this.left.player, this.right.player];
    const most = this.linked ? Math.max(...sides.map((player) => player.reach())) : 0;
    for (const player of sides) player.scale(most);
  }

  paintStrips() {
    for (const { strip, player } of [this.left, this.right]) {
      strip.paint(strip.element.clientWidth, this.theme.palette);
      strip.setStep(player.step());
    }
  }

  /** Takes the active side to its next event without a counterpart. @param {number} direction */
  jump(direction) {
    const side = this.active;
    const to = side.strip.next(side.player.step(), direction);
    if (to < 0) return;
    side.player.setStep(to);
    this.stepped(side);
  }

  /** @param {"left" | "right"} name @param {Half} half @param {Int32Array[]} columns here, there, twin @param {HTMLElement} into @returns {Side} */
  makeSide(name, half, [here, there, twin], into) {
    const label = visible(this.meta.labels[name === "left" ? 0 : 1]);
    const host = el("div", "vg-cmp-host");
    const mark = el("span", "vg-cmp-mark");
    const set = this.meta.params.map((/** @type {string[]} */ p) => `${p[0]} ${p[name === "left" ? 1 : 2]}`).join(", ");
    const tracks = new Tracks(half.tracks);
    const [n, all] = [formatCount(tracks.n - here.length), formatCount(tracks.n)];
    const alone = el("span", "vg-cmp-alone vg-tabular", { text: tracks.n > here.length ? `${n} of ${all} events without a counterpart` : "" });
    const title = el("h2", "vg-cmp-label", {}, [el("b", "", { text: label }), el("span", "vg-soft", { text: visible(set) }), alone, mark]);
    const strip = new DifferenceStrip(tracks.n, here, label, (to) => {
      side.player.setStep(to);
      this.stepped(side);
    });
    into.append(el("section", `vg-cmp-side vg-cmp-${name}`, { "aria-label": label }, [title, strip.element, host]));
    const step = name === "left" ? this.options.step : 0;
    /** @type {Side} */
    const side = {
      name, label, mark, here, there, twin, tracks, strip,
      player: create({
        ...half, host, step, theme: this.options.theme, panes: this.options.panes ?? PANES, fill: false,
        onStep: () => this.stepped(side),
        onSelect: (tensor) => this.selected(side, tensor),
      }),
      focus: () => host.querySelector(".vg-player"),
    };
    host.addEventListener("focusin", () => (this.active = side));
    return side;
  }

  /** @param {Side} side */
  other(side) {
    return side === this.left ? this.right : this.left;
  }

  // ---- together

  /** Where the other side stands when `side` is at event `i`, and whether it answers that very event.
   * @param {Side} side @param {number} i */
  answer(side, i) {
    const k = upperBound(side.here, i) - 1;
    return k < 0 ? { at: 0, exact: false } : { at: side.there[k], exact: side.here[k] === i };
  }

  /** @param {Side} side */
  stepped(side) {
    this.active = side;
    this.follow(side);
    this.writeHash();
  }

  /** Brings the other side along, if they are linked, and says how they stand. @param {Side} side */
  follow(side) {
    const other = this.other(side);
    const { at, exact } = this.answer(side, side.player.step());
    if (this.linked) other.player.setStep(at);
    this.scale();
    side.mark.hidden = true;
    other.mark.hidden = !this.linked || exact;
    setText(other.mark, "waits");
    setText(this.status, this.told(side, other, exact));
    for (const { strip, player } of [side, other]) strip.setStep(player.step());
    this.options.onStep?.(this.left.player.step(), this.right.player.step());
  }

  /** @param {Side} side @param {Side} other @param {boolean} exact */
  told(side, other, exact) {
    const [here, there] = [formatCount(side.player.step()), formatCount(other.player.step())];
    if (!this.linked) return "Each side steps alone.";
    if (exact) return `Both are at the same event: ${formatCount(this.left.player.step())} in ${this.left.label}, ${formatCount(this.right.player.step())} in ${this.right.label}.`;
    return `Event ${here} of ${side.label} has no counterpart: ${other.label} waits at event ${there}.`;
  }

  /** @param {boolean} linked */
  setLinked(linked) {
    this.linked = linked;
    this.link.setAttribute("aria-pressed", String(linked));
    setText(this.link, linked ? "Linked" : "Unlinked");
    this.follow(this.active);
  }

  /** @param {Side} side @param {number} tensor */
  selected(side, tensor) {
    if (this.moving) return;
    if (side === this.left || this.linked) this.keepTensor(side === this.left ? tensor : (side.twin[tensor] ?? -1));
    if (!this.linked) return;
    this.moving = true;
    this.other(side).player.select(tensor >= 0 ? (side.twin[tensor] ?? -1) : -1);
    this.moving = false;
  }

  /** The left side's tensor, for the address. @param {number} tensor */
  keepTensor(tensor) {
    this.tensor = tensor;
    this.writeHash();
  }

  /** A row of the table: selects the tensor in both, and goes to where it gets its place. @param {number[]} tensors of left and right */
  show([a, b]) {
    this.moving = true;
    this.left.player.select(a);
    this.right.player.select(b);
    this.moving = false;
    this.tensor = a;
    const side = a >= 0 ? this.left : this.right;
    side.player.setStep(placedAt(side.tracks, a >= 0 ? a : b));
    if (!this.linked && a >= 0 && b >= 0) this.right.player.setStep(placedAt(this.right.tracks, b));
    this.stepped(side);
  }

  // ---- keys and address

  /** Keys that no player took are the active side's. @param {KeyboardEvent} event */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const ours = this.root.contains(target) || target === document.body || target === document.documentElement;
    if (!ours || target.matches("input, select, textarea")) return;
    const own = { L: () => this.setLinked(!this.linked), "[": () => this.jump(-1), "]": () => this.jump(1) }[event.key];
    if (own) {
      own();
      event.preventDefault();
      return;
    }
    const player = this.active.focus();
    if (!player || player.contains(target) || ((event.key === " " || event.key === "Enter") && target.matches("button"))) return;
    if (target.closest(".vg-list") && event.key.startsWith("Arrow")) return;
    const passed = new KeyboardEvent("keydown", { key: event.key, shiftKey: event.shiftKey, bubbles: false, cancelable: true });
    if (!player.dispatchEvent(passed)) event.preventDefault();
  }

  readHash() {
    if (!this.options.hash) return;
    const said = new URLSearchParams(globalThis.location.hash.slice(1));
    if (said.has("tensor")) this.left.player.select(Number(said.get("tensor")) | 0);
    if (!said.has("step")) return;
    this.left.player.setStep(Number(said.get("step")));
    this.follow(this.left);
    if (!said.has("right")) return;
    this.setLinked(false);
    this.right.player.setStep(Number(said.get("right")));
  }

  writeHash() {
    if (!this.options.hash) return;
    clearTimeout(this.hashTimer);
    this.hashTimer = setTimeout(() => {
      const right = this.linked ? "" : `&right=${this.right.player.step()}`;
      globalThis.history.replaceState(null, "", `#step=${this.left.player.step()}${right}${this.tensor >= 0 ? `&tensor=${this.tensor}` : ""}`);
    }, HASH_MS);
  }

  destroy() {
    clearTimeout(this.hashTimer);
    globalThis.removeEventListener("hashchange", this.onHash);
    this.keyHost.removeEventListener("keydown", /** @type {EventListener} */ (this.onKey));
    this.sizer.disconnect();
    this.table.stop();
    this.left.player.destroy();
    this.right.player.destroy();
    this.theme.stop();
    this.root.remove();
  }
}

/** The event at which a tensor gets its place in a plan; where it is made, if it gets none. @param {Tracks} tracks @param {number} tensor */
function placedAt(tracks, tensor) {
  const life = tracks.track("life");
  const row = life.col("tensor").indexOf(tensor);
  const created = tracks.columns.column("tensor.created")[tensor] ?? 0;
  return Math.max(0, row < 0 ? created : life.a[row]);
}

/**
 * Puts two traces side by side into `host`: what differs, and two players that step together.
 *
 * `left` and `right` are tracks and layout as `create` takes them, `diff` the container of their comparison. `step` is the
 * first event of the left one. `hash` keeps the step in the page's address: for a page that holds nothing else.
 *
 * @param {CompareOptions} options
 */
export function compare(options) {
  try {
    const shown = new Compare(options);
    return {
      step: () => shown.left.player.step(),
      setStep: (/** @type {number} */ i) => {
        shown.left.player.setStep(i);
        shown.follow(shown.left);
      },
      destroy: () => shown.destroy(),
    };
  } catch (error) {
    const text = `These traces cannot be compared here: ${error instanceof Error ? error.message : error}`;
    options.host.replaceChildren(el("div", "vg-broken", { role: "alert", text }));
    return { step: () => 0, setStep: () => {}, destroy: () => options.host.replaceChildren() };
  }
}
