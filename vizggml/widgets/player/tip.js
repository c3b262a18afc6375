// The small card beside the pointer.

import { el } from "./dom.js";

export class Tip {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.head = el("div", "vg-tip-head");
    this.rows = el("div", "vg-pairs");
    this.element = el("div", "vg-tip", { role: "tooltip" }, [this.head, this.rows]);
    this.element.hidden = true;
    root.append(this.element);
  }

  /**
   * @param {HTMLElement} box where x and y count from
   * @param {number} x
   * @param {number} y
   * @param {string} head
   * @param {[string, string][]} pairs
   */
  show(box, x, y, head, pairs) {
    this.head.textContent = head;
    this.rows.replaceChildren(...pairs.flatMap(([key, value]) => [el("div", "vg-dt", { role: "term", text: key }), el("div", "vg-dd", { role: "definition", text: value })]));
    this.element.hidden = false;
    const outer = this.root.getBoundingClientRect();
    const inner = box.getBoundingClientRect();
    const [w, h] = [this.element.offsetWidth, this.element.offsetHeight];
    const left = inner.left - outer.left + x;
    const top = inner.top - outer.top + y;
    const at = left + 16 + w > outer.width ? left - w - 12 : left + 16;
    const under = top + 16 + h > outer.height ? top - h - 12 : top + 16;
    this.element.style.transform = `translate(${Math.max(4, at)}px, ${Math.max(4, under)}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}
