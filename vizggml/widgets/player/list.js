// A long list of which only the rows in sight exist: a pool of elements over a native scroller.

import { el } from "./dom.js";

const TALLEST = 12e6;

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
    this.scrolled = 0;
    this.height = 0;
    this.scale = 1;
    /** Whether the next scroll event is of our own making: reading the scroller then would cost a layout. */
    this.own = false;
    this.top = -1;
    /** @type {Slot[]} */
    this.pool = [];
    /** The rows in sight, one under the other: moved as one, so that a jump changes one transform. */
    this.window = el("div", "vg-list-window");
    this.holder = el("div", "vg-list-rows", {}, [this.window]);
    this.element = el("div", `vg-list ${className}`, { role: "listbox", "aria-label": label, tabindex: "0" }, [this.holder]);
    this.element.addEventListener("scroll", () => this.onScroll(), { passive: true });
    if (choose) this.holder.addEventListener("click", (event) => this.onClick(event, choose));
    this.observer = new ResizeObserver((entries) => {
      this.height = Math.floor(entries[entries.length - 1].contentRect.height);
      if (this.current >= 0) this.show(this.current);
      this.render(true);
    });
    this.observer.observe(this.element);
  }

  /** @param {MouseEvent} event @param {(index: number) => void} choose */
  onClick(event, choose) {
    const row = /** @type {HTMLElement} */ (event.target).closest(".vg-row");
    const slot = this.pool.find((s) => s.element === row);
    if (slot && slot.index >= 0) choose(slot.index);
  }

  onScroll() {
    if (this.own) {
      this.own = false;
      return;
    }
    this.scrolled = this.element.scrollTop;
    this.render(false);
  }

  /** The list has `length` rows now; all that is in sight is filled again. @param {number} length */
  setLength(length) {
    this.length = length;
    const full = length * this.rowHeight;
    this.scale = full > TALLEST ? full / TALLEST : 1;
    this.holder.style.height = `${Math.min(full, TALLEST)}px`;
    this.render(true);
  }

  /** Marks row `index` (-1: none). @param {number} index */
  setCurrent(index) {
    this.current = index;
    this.render(false);
  }

  /** Scrolls if row `index` is out of sight. Cheap while nothing on the page has changed yet. @param {number} index */
  show(index) {
    const top = (index * this.rowHeight) / this.scale;
    const margin = this.rowHeight;
    if (this.height <= 0 || index < 0) return;
    if (top >= this.scrolled && top + margin <= this.scrolled + this.height) return;
    const most = Math.max(0, Math.min(this.length * this.rowHeight, TALLEST) - this.height);
    const to = Math.round(Math.min(most, Math.max(0, top - this.height * 0.4)));
    if (to === this.scrolled) return;
    this.scrolled = to;
    this.own = true;
    this.element.scrollTop = to;
  }

  /** @param {boolean} refill whether rows that stay are filled again */
  render(refill) {
    const { rowHeight, pool } = this;
    if (this.height <= 0) return;
    const wanted = Math.ceil(this.height / rowHeight) + 1;
    while (pool.length < wanted) this.addSlot();
    const first = Math.floor((this.scrolled * this.scale) / rowHeight);
    const top = this.scale > 1 ? this.scrolled : first * rowHeight;
    if (top !== this.top) this.window.style.transform = `translateY(${top}px)`;
    this.top = top;
    pool.forEach((slot, k) => {
      const index = k < wanted && first + k < this.length ? first + k : -1;
      if (slot.index !== index || refill) this.fillSlot(slot, index);
      const marked = index >= 0 && index === this.current;
      if (slot.marked === marked) return;
      slot.marked = marked;
      slot.element.classList.toggle("vg-now", marked);
      slot.element.setAttribute("aria-selected", String(marked));
    });
  }

  addSlot() {
    const element = this.makeRow();
    element.classList.add("vg-row");
    element.setAttribute("role", "option");
    element.style.height = `${this.rowHeight}px`;
    this.pool.push({ element, index: -2, marked: false });
    this.window.append(element);
  }

  /** @param {Slot} slot @param {number} index */
  fillSlot(slot, index) {
    slot.index = index;
    if (slot.element.hidden !== index < 0) slot.element.hidden = index < 0;
    if (index < 0) return;
    slot.element.setAttribute("aria-posinset", String(index + 1));
    this.fillRow(slot.element, index);
  }

  stop() {
    this.observer.disconnect();
  }
}
