// The keyboard: what each key does, and the card that lists them.

import { el } from "./dom.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {{keys: string[], shown: string, does: string, act: (player: Player, event: KeyboardEvent) => void}} Binding */

const LEAP = 10;
const STRIDE = 100;

/** @type {Binding[]} */
export const BINDINGS = [
  { keys: ["ArrowRight"], shown: "→", does: "one event forward", act: (p) => p.stepBy(1) },
  { keys: ["ArrowLeft"], shown: "←", does: "one event back", act: (p) => p.stepBy(-1) },
  { keys: ["Shift+ArrowRight"], shown: "Shift →", does: "ten forward", act: (p) => p.stepBy(LEAP) },
  { keys: ["Shift+ArrowLeft"], shown: "Shift ←", does: "ten back", act: (p) => p.stepBy(-LEAP) },
  { keys: ["PageDown"], shown: "Page down", does: "a hundred forward", act: (p) => p.stepBy(STRIDE) },
  { keys: ["PageUp"], shown: "Page up", does: "a hundred back", act: (p) => p.stepBy(-STRIDE) },
  { keys: ["Home"], shown: "Home", does: "to the start", act: (p) => p.go(0) },
  { keys: ["End"], shown: "End", does: "to the end", act: (p) => p.go(p.tracks.n - 1) },
  { keys: [" "], shown: "Space", does: "play, pause", act: (p) => p.transport.toggle() },
  { keys: ["+", "="], shown: "+", does: "play faster", act: (p) => p.transport.setSpeed(1) },
  { keys: ["-", "_"], shown: "−", does: "play slower", act: (p) => p.transport.setSpeed(-1) },
  { keys: ["g"], shown: "g", does: "go to an event by number", act: (p) => p.transport.askNumber() },
  { keys: ["n"], shown: "n", does: "next event of this kind", act: (p) => p.goToKin("kind", 1) },
  { keys: ["p"], shown: "p", does: "previous event of this kind", act: (p) => p.goToKin("kind", -1) },
  { keys: ["t"], shown: "t", does: "next event of this tensor", act: (p) => p.goToKin("tensor", 1) },
  { keys: ["T"], shown: "T", does: "previous event of this tensor", act: (p) => p.goToKin("tensor", -1) },
  { keys: ["."], shown: ".", does: "next event of this node", act: (p) => p.goToKin("node", 1) },
  { keys: [","], shown: ",", does: "previous event of this node", act: (p) => p.goToKin("node", -1) },
  { keys: ["j"], shown: "j", does: "to the next node", act: (p) => p.goToNode(1) },
  { keys: ["k"], shown: "k", does: "to the previous node", act: (p) => p.goToNode(-1) },
  { keys: ["w"], shown: "w", does: "why: to the cause of this event", act: (p) => p.goToCause() },
  { keys: ["b"], shown: "b", does: "back to where you were", act: (p) => p.goBack() },
  { keys: ["/"], shown: "/", does: "search tensors", act: (p) => p.pane("graph")?.search.focus() },
  { keys: ["f"], shown: "f", does: "fit the graph", act: (p) => p.pane("graph")?.fit() },
  { keys: ["z"], shown: "z", does: "zoom into the graph", act: (p) => p.pane("graph")?.zoom(1.3) },
  { keys: ["Z"], shown: "Z", does: "zoom out", act: (p) => p.pane("graph")?.zoom(1 / 1.3) },
  { keys: ["a"], shown: "a", does: "only what the node is computed from; again: all", act: (p) => p.pane("graph")?.toggleFilter("ancestors") },
  { keys: ["d"], shown: "d", does: "only what is computed from it", act: (p) => p.pane("graph")?.toggleFilter("descendants") },
  { keys: ["l"], shown: "l", does: "only what holds memory now", act: (p) => p.pane("graph")?.toggleFilter("live") },
  { keys: ["Alt+ArrowLeft", "Alt+ArrowRight", "Alt+ArrowUp", "Alt+ArrowDown"], shown: "Alt →", does: "move the graph; so do the other arrows", act: (p, e) => p.pane("graph")?.panBy(e.key) },
  { keys: ["i"], shown: "i", does: "light the way to the inputs", act: (p) => p.pane("graph")?.togglePath() },
  { keys: ["o"], shown: "o", does: "open or fold the current block", act: (p) => p.pane("graph")?.toggleHere() },
  { keys: ["x"], shown: "x", does: "zoom the timeline to the tensor", act: (p) => p.bring("timeline")?.zoomToTensor() },
  { keys: ["X"], shown: "X", does: "all of the timeline", act: (p) => p.bring("timeline")?.zoomOut() },
  { keys: ["y"], shown: "y", does: "timeline by address, by tensor", act: (p) => p.bring("timeline")?.nextOrder() },
  { keys: ["P"], shown: "P", does: "to where the plan came to its peak", act: (p) => p.bring("timeline")?.peak.goToPlan() },
  { keys: ["1", "2", "3"], shown: "1 2 3", does: "memory, events or details, where one is shown at a time", act: (p, e) => p.showGroup(Number(e.key) - 1) },
  { keys: ["c"], shown: "c", does: "copy the tensor's name", act: (p) => p.copyName() },
  { keys: ["Escape"], shown: "Esc", does: "close, let go of the selection", act: (p) => p.escape() },
  { keys: ["?"], shown: "?", does: "this card", act: (p) => p.help.toggle() },
];

const BY_KEY = new Map(BINDINGS.flatMap((binding) => binding.keys.map((key) => /** @type {const} */ ([key, binding]))));
const ARROWS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);

/** Whether the element takes the key for itself. @param {HTMLElement} target @param {string} key */
function takesKey(target, key) {
  if (target.matches("input[type=range]")) return false;
  if (target.matches("input, textarea, select, [contenteditable]")) return true;
  return (key === " " || key === "Enter") && target.matches("button, a, [role=tab]");
}

/** @param {Player} player @param {KeyboardEvent} event */
function onKey(player, event) {
  if (event.ctrlKey || event.metaKey || (event.altKey && !ARROWS.has(event.key)) || event.defaultPrevented) return;
  const target = /** @type {HTMLElement} */ (event.target);
  if (takesKey(target, event.key)) {
    if (player.root.contains(target)) event.stopPropagation();
    return;
  }
  const held = !ARROWS.has(event.key) ? "" : event.altKey ? "Alt+" : event.shiftKey ? "Shift+" : "";
  const binding = BY_KEY.get(held + event.key);
  if (!binding) return;
  event.preventDefault();
  event.stopPropagation();
  binding.act(player, event);
}

/**
 * Listens on the player, and on the page when nothing else there has the focus and the page is the player's own.
 * @param {Player} player @param {boolean} whole
 */
export function listenKeys(player, whole) {
  player.root.addEventListener("keydown", (event) => onKey(player, event));
  if (!whole) return () => {};
  const onPage = (/** @type {KeyboardEvent} */ event) => {
    if (event.target === document.body || event.target === document.documentElement) onKey(player, event);
  };
  document.addEventListener("keydown", onPage);
  return () => document.removeEventListener("keydown", onPage);
}

/** The card of keys. */
export class Help {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    const rows = BINDINGS.map(({ shown, does }) => el("div", "vg-help-row", {}, [el("kbd", "", { text: shown }), el("span", "", { text: does })]));
    this.close = el("button", "vg-button vg-text-button", { type: "button", text: "Close" });
    this.close.addEventListener("click", () => this.toggle());
    this.card = el("div", "vg-help-card", { role: "dialog", "aria-modal": "true", "aria-label": "Keys", tabindex: "-1" }, [
      el("div", "vg-help-head", {}, [el("h2", "", { text: "Keys" }), this.close]),
      el("div", "vg-help-rows", {}, rows),
      el("p", "vg-soft", { text: "Ctrl and the wheel zoom graph, map and timeline; drag over the timeline to zoom, double-click for all of it. In the graph two fingers zoom too, and Enter opens or folds the current block. In a heat map or a histogram, the arrows read a cell." }),
    ]);
    this.element = el("div", "vg-help", {}, [this.card]);
    this.element.hidden = true;
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.toggle();
    });
    // the button is all there is to reach while the card is open
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Tab") return;
      event.preventDefault();
      this.close.focus();
    });
  }

  get shown() {
    return !this.element.hidden;
  }

  toggle() {
    this.element.hidden = !this.element.hidden;
    if (this.shown) this.close.focus();
    else this.player.root.focus();
  }
}
