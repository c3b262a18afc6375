// Making elements and canvases. Text goes in as text: nothing here takes markup.

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} [className]
 * @param {{text?: string, title?: string, [attribute: string]: string | undefined}} [attributes] `text` is the content
 * @param {Node[]} [children]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, className = "", attributes = {}, children = []) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    if (name === "text") made.textContent = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const SHAPES = {
  start: "M3 3v10M13 3.5v9L6 8z",
  back: "M11 3.5v9L4.5 8z",
  play: "M4.5 3v10L12.5 8z",
  pause: "M5 3v10M11 3v10",
  forward: "M5 3.5v9L11.5 8z",
  end: "M13 3v10M3 3.5v9L10 8z",
  slower: "M3.5 8h9",
  faster: "M3.5 8h9M8 3.5v9",
  left: "M9.5 4L5.5 8l4 4",
  right: "M6.5 4l4 4-4 4",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  expand: "M9.5 3H13v3.5M6.5 13H3V9.5M13 3L9 7M3 13l4-4",
  shrink: "M9 3.5V7h3.5M7 12.5V9H3.5M13 3L9 7M3 13l4-4",
  help: "M6 6.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.4M8 11.6v.4",
  copy: "M6 6h7v7H6zM3 10V3h7",
  check: "M3.5 8.5l3 3 6-7",
  follow: "M8 2.5v3M8 10.5v3M2.5 8h3M10.5 8h3M8 6.8v2.4M6.8 8h2.4",
  path: "M4 12V9a3 3 0 0 1 3-3h5M9.5 3.5L12 6 9.5 8.5",
  unfold: "M5 6l3-3 3 3M5 10l3 3 3-3",
  fold: "M5 3.5l3 3 3-3M5 12.5l3-3 3 3",
};

/** An icon of our own, drawn in the colour of the text. @param {keyof typeof SHAPES} name */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "vg-icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", SHAPES[name]);
  svg.append(path);
  return svg;
}

/**
 * A button with an icon.
 * @param {keyof typeof SHAPES} shape
 * @param {string} label what it does, with its key
 * @param {() => void} act
 */
export function iconButton(shape, label, act) {
  const made = el("button", "vg-button", { type: "button", title: label, "aria-label": label }, [icon(shape)]);
  made.addEventListener("click", act);
  return made;
}

/** Swaps a button's icon and label. @param {HTMLElement} button @param {keyof typeof SHAPES} shape @param {string} label */
export function setIcon(button, shape, label) {
  button.replaceChildren(icon(shape));
  button.title = label;
  button.setAttribute("aria-label", label);
}

const MAX_RATIO = 2;
/** Kept in bitmaps by one surface, at most. */
const BITMAP_PIXELS = 16e6;

/** Sets text only where it differs, and in the text node that is there: an untouched node costs no layout, and one that
 * stays is not laid out and painted as a new one. @param {Node} node @param {string} text */
export function setText(node, text) {
  const only = node.firstChild;
  if (only instanceof Text && !only.nextSibling) {
    if (only.data !== text) only.data = text;
  } else if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** A canvas that keeps the size of its box, and bitmaps of the same size. */
export class Surface {
  /** @param {string} label @param {(() => void)} resized called after a change of size */
  constructor(label, resized) {
    this.canvas = el("canvas", "vg-canvas", { role: "img", "aria-label": label });
    this.box = el("div", "vg-surface", {}, [this.canvas]);
    this.width = 0;
    this.height = 0;
    this.ratio = 1;
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false }));
    this.observer = new ResizeObserver((entries) => {
      const { width, height } = entries[entries.length - 1].contentRect;
      if (this.fit(Math.floor(width), Math.floor(height))) resized();
    });
    this.observer.observe(this.box);
  }

  /** @param {number} width @param {number} height @returns {boolean} whether the size changed */
  fit(width, height) {
    const ratio = Math.min(globalThis.devicePixelRatio || 1, MAX_RATIO);
    if (width === this.width && height === this.height && ratio === this.ratio) return false;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    return true;
  }

  /** The context, in CSS pixels. */
  begin() {
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    return this.context;
  }

  /** A bitmap of the surface's size and its context, in CSS pixels. */
  layer() {
    const bitmap = el("canvas");
    bitmap.width = this.canvas.width;
    bitmap.height = this.canvas.height;
    return { bitmap, context: this.over(bitmap) };
  }

  /** The context of such a bitmap, in CSS pixels. @param {HTMLCanvasElement} bitmap */
  over(bitmap) {
    const context = /** @type {CanvasRenderingContext2D} */ (bitmap.getContext("2d", { alpha: false }));
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    return context;
  }

  /** How many bitmaps of this size are worth their memory. */
  get most() {
    return Math.max(8, Math.min(48, Math.floor(BITMAP_PIXELS / (this.canvas.width * this.canvas.height))));
  }

  /** Copies a bitmap of the surface's size onto it. @param {CanvasImageSource} bitmap */
  blit(bitmap) {
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.drawImage(bitmap, 0, 0);
    this.begin();
  }

  stop() {
    this.observer.disconnect();
  }
}

/** @param {string} text @param {number} room characters */
export function shorten(text, room) {
  if (text.length <= room) return text;
  if (room < 2) return "";
  const head = Math.ceil((room - 1) * 0.6);
  return `${text.slice(0, head)}…${text.slice(text.length - (room - 1 - head))}`;
}

/** The beginning of a text that is too long; nothing where too little of it would be left. @param {string} text
 * @param {number} room characters */
export function cutEnd(text, room) {
  if (text.length <= room) return text;
  return room < 5 ? "" : `${text.slice(0, room - 1)}…`;
}
