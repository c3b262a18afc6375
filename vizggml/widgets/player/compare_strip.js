// Where along a trace its events have no counterpart in the other: a strip to look at and click, and the way to the next.

import { el } from "./dom.js";
import { upperBound } from "./tracks.js";

/** @typedef {import("./theme.js").Palette} Palette */

const HEIGHT = 8;

export class DifferenceStrip {
  /** @param {number} n events @param {Int32Array} paired those with a counterpart, rising @param {string} label
   * @param {(step: number) => void} go */
  constructor(n, paired, label, go) {
    this.n = n;
    this.paired = paired;
    /** The first event of each run without counterpart. */
    this.starts = runStarts(n, paired);
    this.width = 0;
    this.canvas = el("canvas", "vg-cmp-strip-canvas", { "aria-hidden": "true" });
    this.pin = el("span", "vg-cmp-pin");
    this.element = el("div", "vg-cmp-strip", { title: "Where events have no counterpart on the other side" }, [this.canvas, this.pin]);
    this.element.addEventListener("click", (event) => {
      const box = this.element.getBoundingClientRect();
      go(Math.round(((event.clientX - box.left) / box.width) * (n - 1)));
    });
  }

  /** @param {number} width @param {Palette} palette */
  paint(width, palette) {
    this.width = width;
    const ratio = globalThis.devicePixelRatio || 1;
    const { canvas, paired, n } = this;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.round(HEIGHT * ratio);
    const c = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    c.fillStyle = palette.line;
    c.fillRect(0, canvas.height / 2 - ratio / 2, canvas.width, ratio);
    c.fillStyle = palette.source;
    for (let x = 0, from = 0; x < canvas.width; x++) {
      const [begin, end] = [Math.floor((x * n) / canvas.width), Math.ceil(((x + 1) * n) / canvas.width)];
      while (from < paired.length && paired[from] < begin) from++;
      const to = upperBound(paired, end - 1);
      const share = 1 - (to - from) / Math.max(1, end - begin);
      if (share <= 0) continue;
      const height = Math.max(2 * ratio, share * canvas.height);
      c.fillRect(x, (canvas.height - height) / 2, 1, height);
    }
  }

  /** @param {number} step */
  setStep(step) {
    this.pin.style.transform = `translateX(${((step / Math.max(1, this.n - 1)) * this.width).toFixed(1)}px)`;
  }

  /** The next run's first event in `direction` from `step`; -1 for none. @param {number} step @param {number} direction */
  next(step, direction) {
    const after = upperBound(this.starts, step);
    const k = direction > 0 ? after : after - 1 - (this.starts[after - 1] === step ? 1 : 0);
    return k >= 0 && k < this.starts.length ? this.starts[k] : -1;
  }
}

/** @param {number} n @param {Int32Array} paired */
function runStarts(n, paired) {
  const starts = [];
  for (let k = -1; k < paired.length; k++) {
    const begin = k < 0 ? 0 : paired[k] + 1;
    const end = k + 1 < paired.length ? paired[k + 1] : n;
    if (begin < end) starts.push(begin);
  }
  return Int32Array.from(starts);
}
