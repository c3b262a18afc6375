// A line of words and of buttons that lead to a tensor or to an event. Elements are kept, so that the focus stays.

import { el, setText } from "./dom.js";

/** @typedef {{text: string, after?: string, tensor?: number, event?: number, more?: string}} Link */
/** @typedef {string | Link} Item */

const TARGETS = /** @type {const} */ (["tensor", "event", "more"]);

export class Links {
  constructor() {
    this.element = el("span", "vg-links");
    this.copied = "";
    this.key = "";
  }

  /** @param {Item[]} items @param {string} [copied] what a copy button beside it gives */
  show(items, copied = "") {
    this.copied = copied;
    const key = JSON.stringify(items);
    if (key === this.key) return;
    this.key = key;
    const { element } = this;
    items.forEach((item, k) => {
      const tag = typeof item === "string" ? "span" : "button";
      let node = element.children[k];
      if (node?.localName !== tag) {
        const made = tag === "span" ? el("span") : el("button", "vg-link", { type: "button" });
        if (node) node.replaceWith(made);
        else element.append(made);
        node = made;
      }
      fill(/** @type {HTMLElement} */ (node), item, k + 1 < items.length ? " " : "");
    });
    while (element.children.length > items.length) element.lastElementChild?.remove();
  }
}

/** @param {HTMLElement} node @param {Item} item @param {string} space behind it: not seen, but read aloud and copied */
function fill(node, item, space) {
  if (node.title) node.title = "";
  if (typeof item === "string") return setText(node, item + space);
  setText(node, item.text + (item.after ?? "") + space);
  for (const name of TARGETS) {
    const value = item[name];
    if (value !== undefined) node.dataset[name] = String(value);
    else if (node.dataset[name] !== undefined) delete node.dataset[name];
  }
}

/** Gives a word or a button under the pointer its title: what it does, or all of it where it is cut.
 * @param {HTMLElement} node */
export function hint(node) {
  if (!node.parentElement?.classList.contains("vg-links") || node.title) return;
  const { tensor, event, more } = node.dataset;
  const text = node.textContent?.trim() ?? "";
  node.title = event !== undefined ? "Go to this event" : tensor !== undefined ? `Select ${text}` : more !== undefined ? "Show all" : text;
}
