// A long list of which only the rows in sight exist: a pool of elements, always on whole rows, over a native scroller.

import { el } from "./dom.js";

const TALLEST = 12e6;
const REST_MS = 150;

/** @typedef {{element: HTMLElement, index: number, marked: boolean}} Slot */

export class VirtualList {
  /**
   * @param {{label: string, rowHeight: number, makeRow: () => HTMLElement, fillRow: (row: HTMLElement, index: number) => void,
   *   choose?: (index: number) => void, className?: string}} options
   */
  constructor({ label, rowHeight, makeRow, fillRow, choose, className = "" }) {
    this.rowHeight = rowHeight;
    this.makeRow = makeRow;
    this.fillRow = fillRow;
    this.length = 0;
    this.current = -1;
    /** The first row in sight, and how many are. */
    this.first = 0;
    this.seen = 0;
    this.full = 0;
    this.scale = 1;
    /** Where the scroller stands, and the timer that brings it to `first`: a jump moves no scroller before it rests. */
    this.scrolled = 0;
    this.rest = 0;
    /** @type {Slot[]} */
    this.pool = [];
    /** The rows in sight, one under the other; it sticks to the top, so that scrolling changes words and moves nothing. */
    this.window = el("div", "vg-list-window");
    this.holder = el("div", "vg-list-rows", {}, [this.window]);
    this.element = el("div", `vg-list ${className}`, { role: "listbox", "aria-label": label, tabindex: "0" }, [this.holder]);
    this.element.addEventListener("scroll", () => this.onScroll(), { passive: true });
    if (choose) this.holder.addEventListener("click", (event) => this.onClick(event, choose));
    this.observer = new ResizeObserver((entries) => this.setHeight(entries[entries.length - 1].contentRect.height));
    this.observer.observe(this.element);
  }

  /** @param {number} height */
  setHeight(height) {
    this.seen = Math.floor(height / this.rowHeight);
    this.window.style.height = `${this.seen * this.rowHeight}px`;
    this.spread(true);
    if (this.current >= 0) this.show(this.current);
    this.render(true);
  }

  /** @param {MouseEvent} event @param {(index: number) => void} choose */
  onClick(event, choose) {
    const row = /** @type {HTMLElement} */ (event.target).closest(".vg-row");
    const slot = this.pool.find((s) => s.element === row);
    if (slot && slot.index >= 0) choose(slot.index);
  }

  onScroll() {
    const top = this.element.scrollTop;
    if (Math.abs(top - this.scrolled) < 1) return;
    if (this.rest) this.settle(top - this.scrolled);
    else this.scrolled = top;
    this.first = this.clamp(Math.round((this.scrolled * this.scale) / this.rowHeight));
    this.render(false);
  }

  /** Brings the scroller to the first row, and `by` further. @param {number} by */
  settle(by) {
    clearTimeout(this.rest);
    this.rest = 0;
    this.element.scrollTop = (this.first * this.rowHeight) / this.scale + by;
    this.scrolled = this.element.scrollTop;
  }

  /** @param {number} first */
  clamp(first) {
    return Math.max(0, Math.min(first, this.length - this.seen));
  }

  /** The list has `length` rows now; all that is in sight is filled again. @param {number} length */
  setLength(length) {
    if (length !== this.length) {
      this.length = length;
      this.spread(false);
      this.first = this.clamp(this.first);
    }
    this.render(true);
  }

  /** The scroller is as high as all rows, and as what a whole number of rows leaves over. @param {boolean} anew */
  spread(anew) {
    const full = Math.min(this.length * this.rowHeight, TALLEST);
    this.scale = (this.length * this.rowHeight) / (full || 1) || 1;
    if (full === this.full && !anew) return;
    this.full = full;
    this.holder.style.height = this.length > this.seen ? `${full}px` : `${this.seen * this.rowHeight}px`;
  }

  /** Marks row `index` (-1: none). @param {number} index */
  setCurrent(index) {
    this.current = index;
    this.render(false);
  }

  /** Moves if row `index` is out of sight. @param {number} index */
  show(index) {
    if (this.seen < 1 || index < 0 || (index >= this.first && index < this.first + this.seen)) return;
    this.first = this.clamp(index - Math.floor(this.seen * 0.4));
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.settle(0), REST_MS);
  }

  /** @param {boolean} refill whether rows that stay are filled again */
  render(refill) {
    const { pool, seen, first } = this;
    while (pool.length < seen) this.addSlot();
    for (let k = 0; k < pool.length; k++) {
      const slot = pool[k];
      const index = k < seen && first + k < this.length ? first + k : -1;
      if (slot.index !== index || refill) this.fillSlot(slot, index);
      const marked = index >= 0 && index === this.current;
      if (slot.marked === marked) continue;
      slot.marked = marked;
      slot.element.classList.toggle("vg-now", marked);
      slot.element.setAttribute("aria-selected", String(marked));
    }
  }

  addSlot() {
    const element = this.makeRow();
    element.classList.add("vg-row");
    element.setAttribute("role", "option");
    element.style.height = `${this.rowHeight}px`;
    this.pool.push({ element, index: -2, marked: false });
    this.window.append(element);
  }

  /** Makes every row anew: what a row consists of has changed. */
  clear() {
    this.pool = [];
    this.window.replaceChildren();
    this.first = 0;
  }

  /** @param {Slot} slot @param {number} index */
  fillSlot(slot, index) {
    const { element } = slot;
    if (slot.index !== index) {
      if (element.hidden !== index < 0) element.hidden = index < 0;
      if (index >= 0) element.setAttribute("aria-posinset", String(index + 1));
      slot.index = index;
    }
    if (index >= 0) this.fillRow(element, index);
  }

  stop() {
    clearTimeout(this.rest);
    this.observer.disconnect();
  }
}
