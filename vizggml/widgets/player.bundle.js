// vizggml player, bundled; sources sha256:7e151028d7a24e484658604b908d8919f858fea46e3f0f5e2369b2e233b66d0b
// arrange.js
var WIDE = { graph: [280, 2], map: [120, 0.7], timeline: [250, 1.4], events: [132, 1], tables: [132, 1] };
var NARROW = { graph: [214, 1.2], map: [120, 0.6], timeline: [244, 1], events: [155, 1.1], tables: [155, 1] };
var NARROW_MOST = 270;
var [MOST_WITHOUT, TIMELINE_WITHOUT] = [264, 292];
var DETAIL = [180, 1];
var COLUMNS = "minmax(0, 1.12fr) minmax(0, 1fr)";
var GROUPED = { graph: [214, 43], map: [147, 27], timeline: [170, 30], events: [160, 57], tables: [160, 57] };
var [TEXT, TABS] = [41, 32];
function arrangeGroup(names, height, mapOf) {
  const room = height - TABS - (names.includes("tokens") ? TEXT : 0);
  const [least, most] = GROUPED.map;
  const filled = mapOf && room > 0 ? 100 * Math.max(least, mapOf(most * room / 100)) / room : most;
  const left = names.includes("timeline") ? Math.max(0, most - filled) : 0;
  const rows = names.flatMap((name) => {
    if (name === "tokens") return ["max-content"];
    const [least2, all] = GROUPED[name] ?? DETAIL;
    const share2 = name === "map" ? all - left : name === "timeline" ? all + left : all;
    return name === "graph" ? [`minmax(${least2}px, ${share2}fr)`, "max-content"] : [`minmax(${least2}px, ${share2}fr)`];
  });
  const areas = names.flatMap((name) => name === "graph" ? [name, "groups"] : [name]).map((name) => `"${name}"`);
  if (names[names.length - 1] !== "timeline") {
    areas.push('"."');
    rows.push("0px");
  }
  return { gridTemplateAreas: areas.join(" "), gridTemplateRows: rows.join(" "), gridTemplateColumns: "minmax(0, 1fr)" };
}
function bandsOf(names) {
  const details = names.filter((name) => !(name in WIDE) && name !== "tokens");
  const pairs = details.flatMap((name, k) => k % 2 ? [] : [{ left: [name], right: details.slice(k + 1, k + 2) }]);
  return [...mainBands(names), ...pairs];
}
function mainBands(names) {
  const has = (wanted) => wanted.filter((name) => names.includes(name));
  const memory = has(["map", "timeline"]);
  const words = has(["events", "tables"]);
  if (names.includes("graph")) {
    if (!memory.length) return [{ left: ["graph"], right: words }];
    return [{ left: ["graph"], right: memory }, { left: words.slice(0, 1), right: words.slice(1) }];
  }
  const rest = has(["map", "events", "tables"]);
  const [first, ...more2] = rest.length === 3 ? ["events", "map", "tables"] : rest;
  const below = { left: rest.slice(0, 1).length ? [first] : [], right: more2 };
  return [{ left: has(["timeline"]), right: [] }, below];
}
function arrange(names, wide, least) {
  const without = !wide && !names.includes("graph");
  const sizes = wide ? WIDE : without ? { ...NARROW, timeline: [TIMELINE_WITHOUT, 1.4] } : NARROW;
  const most = wide ? Infinity : without ? MOST_WITHOUT : NARROW_MOST;
  const areas = [];
  const rows = [];
  const add = (left, right, row) => {
    areas.push(`"${left} ${right}"`);
    rows.push(row);
  };
  const sizeOf = (name) => sizes[name] ?? DETAIL;
  const share2 = (name) => `minmax(${Math.max(sizeOf(name)[0], Math.min(least[name] ?? 0, most))}px, ${sizeOf(name)[1]}fr)`;
  if (names.includes("tokens")) add("tokens", "tokens", "max-content");
  if (!wide) {
    for (const name of names) if (name !== "tokens") add(name, name, share2(name));
  } else {
    for (const { left, right } of bandsOf(names)) {
      const sides = [left, right].filter((side) => side.length);
      if (sides.length === 1) for (const name of sides[0]) add(name, name, share2(name));
      else if (sides.length === 2) for (const name of right) add(left[0], name, share2(name));
    }
  }
  return { gridTemplateAreas: areas.join(" "), gridTemplateRows: rows.join(" "), gridTemplateColumns: COLUMNS };
}

// dom.js
function el(tag, className = "", attributes = {}, children = []) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === void 0) continue;
    if (name === "text") made.textContent = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
var SHAPES = {
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
  fold: "M5 3.5l3 3 3-3M5 12.5l3-3 3 3"
};
function icon(name) {
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
function iconButton(shape, label, act) {
  const made = el("button", "vg-button", { type: "button", title: label, "aria-label": label }, [icon(shape)]);
  made.addEventListener("click", act);
  return made;
}
function setIcon(button, shape, label) {
  button.replaceChildren(icon(shape));
  button.title = label;
  button.setAttribute("aria-label", label);
}
var MAX_RATIO = 2;
var BITMAP_PIXELS = 16e6;
function setText(node, text) {
  const only = node.firstChild;
  if (only instanceof Text && !only.nextSibling) {
    if (only.data !== text) only.data = text;
  } else if (node.textContent !== text) {
    node.textContent = text;
  }
}
var Surface = class {
  /** @param {string} label @param {(() => void)} resized called after a change of size */
  constructor(label, resized) {
    this.canvas = el("canvas", "vg-canvas", { role: "img", "aria-label": label });
    this.box = el("div", "vg-surface", {}, [this.canvas]);
    this.width = 0;
    this.height = 0;
    this.ratio = 1;
    this.context = /** @type {CanvasRenderingContext2D} */
    this.canvas.getContext("2d", { alpha: false });
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
    const context = (
      /** @type {CanvasRenderingContext2D} */
      bitmap.getContext("2d", { alpha: false })
    );
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
};
function cutEnd(text, room) {
  if (text.length <= room) return text;
  return room < 5 ? "" : `${text.slice(0, room - 1)}…`;
}

// copy.js
var SHOWN_MS = 1200;
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByField(text);
  }
}
function copyByField(text) {
  const focused = (
    /** @type {HTMLElement | null} */
    document.activeElement
  );
  const field = document.createElement("textarea");
  field.value = text;
  field.style.cssText = "position:fixed;top:0;left:0;opacity:0";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
  return done;
}
function copyButton(what, read) {
  const label = `Copy ${what}`;
  let timer = 0;
  const button = iconButton("copy", label, async () => {
    const done = await copyText(read());
    setIcon(button, done ? "check" : "copy", done ? "Copied" : "The browser did not let it be copied");
    clearTimeout(timer);
    timer = setTimeout(() => setIcon(button, "copy", label), SHOWN_MS);
  });
  button.classList.add("vg-copy");
  return button;
}

// detail_plot.js
var TALL = 46;
var DetailPlot = class {
  /** @param {Player} player @param {Pane} pane the pane to be drawn again when the size changes @param {Naming} naming */
  constructor(player, pane, naming) {
    this.player = player;
    this.pane = pane;
    this.naming = naming;
    this.step = player.step;
    this.cursor = -1;
    this.strong = el("strong");
    this.rest = el("span");
    this.line = el("p", "vg-saying", {}, [this.strong, this.rest]);
    this.surface = new Surface(naming.title, () => player.redraw(pane));
    this.surface.canvas.tabIndex = 0;
    this.surface.box.style.minHeight = `${TALL}px`;
    this.empty = el("div", "vg-empty", { text: naming.empty });
    this.spoken = el("div", "vg-unseen", { "aria-live": "polite" });
    this.main = el("div", "vg-stack", {}, [this.line, this.surface.box, this.empty, this.spoken]);
    this.element = el("div", "vg-stack vg-detail", {}, [this.main]);
    this.listen();
  }
  listen() {
    const { box, canvas } = this.surface;
    box.addEventListener("pointermove", (event) => this.showCard(this.findAt(event.offsetX, event.offsetY), event.offsetX, event.offsetY));
    box.addEventListener("pointerleave", () => this.player.tip.hide());
    canvas.addEventListener("blur", () => {
      if (this.cursor >= 0) this.setCursor(-1);
    });
    box.addEventListener("click", (event) => {
      const k = this.findAt(event.offsetX, event.offsetY);
      if (k >= 0) this.choose(k);
    });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }
  /** Up and down walk over what is drawn, enter chooses it. @param {KeyboardEvent} event */
  onKey(event) {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Enter" && this.cursor >= 0) this.choose(this.cursor);
    else if (event.key === "Escape" && this.cursor >= 0) this.setCursor(-1);
    else if (by) this.setCursor(this.nextOf(this.cursor, by));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  /** @param {number} k */
  setCursor(k) {
    this.cursor = k;
    const at = k < 0 ? null : this.placeOf(k);
    if (at) this.showCard(k, at.x, at.y);
    else this.player.tip.hide();
    const card2 = k < 0 ? null : this.cardOf(k);
    setText(this.spoken, card2 ? [card2.head, ...card2.pairs.map((pair) => pair.join(" "))].join(", ") : "");
    this.player.redraw(this.pane);
  }
  /** @param {number} k @param {number} x @param {number} y */
  showCard(k, x, y) {
    const card2 = k < 0 ? null : this.cardOf(k);
    if (card2) this.player.tip.show(this.surface.box, x, y, card2.head, card2.pairs);
    else this.player.tip.hide();
  }
  /** @param {number} step */
  draw(step) {
    this.step = step;
    const words = this.prepare(step);
    setHidden(this.empty, words !== null);
    setHidden(this.line, words === null);
    setHidden(this.surface.box, words === null);
    if (!words) return;
    setText(this.strong, words.strong);
    setText(this.rest, words.rest);
    this.strong.classList.toggle("vg-wrong", words.bad === true);
    const whole2 = `${words.strong}; ${words.rest}`;
    if (this.line.title !== whole2) this.line.title = whole2;
    const said = [this.naming.title, words.strong, words.rest].filter(Boolean).join(": ") + (this.naming.keys ? `. Up and down: ${this.naming.keys}.` : "");
    if (this.surface.canvas.getAttribute("aria-label") !== said) this.surface.canvas.setAttribute("aria-label", said);
    const { width, height } = this.surface;
    if (width < 60 || height < 20) return;
    const c = this.surface.begin();
    c.fillStyle = this.player.palette.page;
    c.fillRect(0, 0, width, height);
    c.textBaseline = "middle";
    c.textAlign = "left";
    this.paint(c, width, height, step);
  }
  /** Reads the step; what to say of it, null where there is nothing. @param {number} step @returns {Words | null} */
  prepare(step) {
    return step < 0 ? null : { strong: "", rest: "" };
  }
  /** @param {Context} _c @param {number} _w @param {number} _h @param {number} _step */
  paint(_c, _w, _h, _step) {
  }
  /** What stands at a place, -1 for nothing. @param {number} _x @param {number} _y */
  findAt(_x, _y) {
    return -1;
  }
  /** What the card says of it. @param {number} _k @returns {Card | null} */
  cardOf(_k) {
    return null;
  }
  /** Where its card goes. @param {number} _k @returns {{x: number, y: number} | null} */
  placeOf(_k) {
    return null;
  }
  /** The one after or before `k`, from -1 the first or the current one. @param {number} k @param {number} _by */
  nextOf(k, _by) {
    return k;
  }
  /** @param {number} _k */
  choose(_k) {
  }
  stop() {
    this.surface.stop();
  }
};
function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}
function counted(n, thing) {
  return `${n} ${thing}${n === 1 ? "" : "s"}`;
}
function eventsOf({ tracks, relations }, kind) {
  return relations.keep(`events ${kind}`, () => {
    const index = tracks.kindNamed[kind]?.index ?? -1;
    const found = [];
    for (let i = 0; i < tracks.n; i++) if (tracks.kind[i] === index) found.push(i);
    return Int32Array.from(found);
  });
}
function hatch(c, x, y, w, h, colour) {
  c.save();
  c.beginPath();
  c.rect(x, y, w, h);
  c.clip();
  c.strokeStyle = colour;
  c.lineWidth = 1;
  c.beginPath();
  for (let k = Math.floor((x - h) / 5) * 5; k < x + w; k += 5) {
    c.moveTo(k, y + h);
    c.lineTo(k + h, y);
  }
  c.stroke();
  c.restore();
}

// list.js
var TALLEST = 12e6;
var REST_MS = 150;
var VirtualList = class {
  /**
   * @param {{label: string, rowHeight: number, makeRow: () => HTMLElement, fillRow: (row: HTMLElement, index: number) => void,
   *   choose?: (index: number) => void, className?: string}} options
   */
  constructor({ label, rowHeight, makeRow, fillRow, choose: choose3, className = "" }) {
    this.rowHeight = rowHeight;
    this.makeRow = makeRow;
    this.fillRow = fillRow;
    this.length = 0;
    this.current = -1;
    this.first = 0;
    this.seen = 0;
    this.full = 0;
    this.scale = 1;
    this.scrolled = 0;
    this.rest = 0;
    this.pool = [];
    this.window = el("div", "vg-list-window");
    this.holder = el("div", "vg-list-rows", {}, [this.window]);
    this.element = el("div", `vg-list ${className}`, { role: "listbox", "aria-label": label, tabindex: "0" }, [this.holder]);
    this.element.addEventListener("scroll", () => this.onScroll(), { passive: true });
    if (choose3) this.holder.addEventListener("click", (event) => this.onClick(event, choose3));
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
  onClick(event, choose3) {
    const row = (
      /** @type {HTMLElement} */
      event.target.closest(".vg-row")
    );
    const slot = this.pool.find((s) => s.element === row);
    if (slot && slot.index >= 0) choose3(slot.index);
  }
  onScroll() {
    const top = this.element.scrollTop;
    if (Math.abs(top - this.scrolled) < 1) return;
    if (this.rest) this.settle(top - this.scrolled);
    else this.scrolled = top;
    this.first = this.clamp(Math.round(this.scrolled * this.scale / this.rowHeight));
    this.render(false);
  }
  /** Brings the scroller to the first row, and `by` further. @param {number} by */
  settle(by) {
    clearTimeout(this.rest);
    this.rest = 0;
    this.element.scrollTop = this.first * this.rowHeight / this.scale + by;
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
    this.scale = this.length * this.rowHeight / (full || 1) || 1;
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
    if (this.seen < 1 || index < 0 || index >= this.first && index < this.first + this.seen) return;
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
};

// sentence.js
var FLAGS = [
  [1, "INPUT"],
  [2, "OUTPUT"],
  [4, "PARAM"],
  [8, "LOSS"],
  [16, "COMPUTE"]
];
function formatBytes(n) {
  if (n < 0) return "the rest";
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let unit = -1;
  let value = n;
  do {
    value /= 1024;
    unit++;
  } while (value >= 1024 && unit < units.length - 1);
  return `${trim(fixed(value, 2))} ${units[unit]}`;
}
function formatNs(ns) {
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 1e6) return `${trim(fixed(ns / 1e3, 1))} us`;
  if (ns < 1e9) return `${trim(fixed(ns / 1e6, 1))} ms`;
  return `${trim(fixed(ns / 1e9, 2))} s`;
}
function formatDims(ne) {
  let n = ne.length;
  while (n > 1 && ne[n - 1] === 1) n--;
  return Array.from({ length: n }, (_, i) => String(ne[i])).join(" x ");
}
function fixed(value, digits) {
  const scale = 10 ** digits;
  const scaled2 = value * scale;
  const floor = Math.floor(scaled2);
  const exact = Number.isInteger(value * 2 ** (digits + 1));
  if (exact && scaled2 - floor === 0.5 && floor % 2 === 0) return (floor / scale).toFixed(digits);
  return value.toFixed(digits);
}
function trim(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
function formatFloat(value) {
  return Number.isFinite(value) ? trim(fixed(value, 4)) : String(value);
}
function formatCount(n) {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, " ");
}
var UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
var SHORT = /* @__PURE__ */ new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["	", "\\t"]
]);
function visible(text) {
  return text.replace(UNSEEN, (c) => SHORT.get(c) ?? escaped(c.codePointAt(0) ?? 0));
}
function escaped(code) {
  if (code < 256) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 65536) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}
function visiblePiece(piece) {
  return visible(piece.replace(/\r?\n/g, "⏎").replace(/\t/g, "⇥"));
}
function formatField(tracks, type, value) {
  switch (type) {
    case "tensor":
      return tracks.name(value);
    case "bytes":
      return formatBytes(value);
    case "ns":
      return formatNs(value);
    case "dims":
      return formatDims(value);
    case "bool":
      return value ? "yes" : "no";
    case "float":
      return formatFloat(value);
    case "floats":
      return Array.from(value, formatFloat).join(", ");
    case "tensors":
      return Array.from(value, (t) => tracks.name(t)).join(", ");
    case "ints":
    case "strs":
      return Array.from(value, String).join(", ");
    case "flags":
      return FLAGS.filter(([bit]) => value & Number(bit)).map(([, name]) => name).join(", ") || "none";
    default:
      return String(value);
  }
}
var FIELD = /\{(cause\.)?(\w+)(?::(\w+))?\}/g;
function sentence(tracks, i) {
  const kind = tracks.kindOf(i);
  const cause = tracks.cause[i];
  let template = kind.sentence;
  while (template && typeof template === "object") {
    template = choose(template, template.by === "cause" ? cause < 0 ? "" : tracks.kindOf(cause).name : tracks.field(i, template.by));
  }
  return String(template || kind.name).replace(FIELD, (whole2, ofCause, field, as) => {
    const at = ofCause ? cause : i;
    const type = at < 0 ? void 0 : tracks.kindOf(at).types[field];
    if (type === void 0) return whole2;
    const value = tracks.field(at, field);
    return as === "size" ? formatSizes(value) : formatField(tracks, type, value);
  });
}
function choose({ cases, else: otherwise2 }, value) {
  const key = formatKey(value);
  if (Object.hasOwn(cases, key)) return cases[key];
  return typeof value === "number" && value < 0 && Object.hasOwn(cases, "<0") ? cases["<0"] : otherwise2;
}
function formatSizes(value) {
  return typeof value === "number" ? formatBytes(Math.abs(value)) : Array.from(value, formatSizes).join(", ");
}
function formatKey(value) {
  return typeof value === "boolean" ? value ? "true" : "false" : String(value);
}

// container.js
var MAGIC = [86, 71, 67, 79, 76, 0, 0, 1];
var SCHEMA = 2;
var ARRAYS = { u1: Uint8Array, i4: Int32Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
function readContainer(bytes, kind = "tracks") {
  const { buffer, start, length } = aligned(bytes);
  const head = new Uint8Array(buffer, start, Math.min(length, 16));
  if (length < 16 || MAGIC.some((byte, i) => head[i] !== byte)) {
    throw new Error(`tracks: ${length} bytes do not begin as a columns container does`);
  }
  const headerLength = new DataView(buffer, start).getUint32(8, true);
  if (16 + headerLength > length) {
    throw new Error(`tracks: a header of ${headerLength} bytes ends past the data (${length} bytes)`);
  }
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start + 16, headerLength)));
  if (header.schema !== SCHEMA) throw new Error(`tracks: schema ${header.schema}, this player reads schema ${SCHEMA}`);
  if (header.kind !== kind) throw new Error(`${kind}: the container holds ${header.kind}, not ${kind}`);
  const origin = start + Math.ceil((16 + headerLength) / 8) * 8;
  return new Container(header, buffer, origin, start + length);
}
function aligned(bytes) {
  if (bytes instanceof ArrayBuffer) return { buffer: bytes, start: 0, length: bytes.byteLength };
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteOffset % 8 === 0 && bytes.buffer instanceof ArrayBuffer) {
    return { buffer: bytes.buffer, start: bytes.byteOffset, length: bytes.byteLength };
  }
  return { buffer: view.slice().buffer, start: 0, length: bytes.byteLength };
}
var Container = class {
  /**
   * @param {any} header
   * @param {ArrayBuffer} buffer
   * @param {number} origin where the columns begin
   * @param {number} end
   */
  constructor(header, buffer, origin, end) {
    this.meta = header.meta;
    this.strings = header.strings;
    this.specs = header.columns;
    this.buffer = buffer;
    this.origin = origin;
    this.end = end;
    this.views = /* @__PURE__ */ new Map();
  }
  /** @param {string} name */
  has(name) {
    return Object.hasOwn(this.specs, name);
  }
  /**
   * The column's values, rows one after another; an empty column where there is none of that name.
   * @param {string} name
   * @returns {any}
   */
  column(name) {
    const known = this.views.get(name);
    if (known) return known;
    const view = this.has(name) ? this.open(name) : new Float64Array(0);
    this.views.set(name, view);
    return view;
  }
  /** @param {string} name @returns {Column} */
  open(name) {
    const { dtype, shape, offset } = this.specs[name];
    const type = ARRAYS[dtype];
    if (!type) throw new Error(`column ${name}: type ${dtype} is none of ${Object.keys(ARRAYS).join(", ")}`);
    const n = shape.reduce((a, b) => a * b, 1);
    const from = this.origin + offset;
    if (!(offset >= 0) || from + n * type.BYTES_PER_ELEMENT > this.end) {
      throw new Error(`column ${name}: ${n} values at ${offset} end past the data (${this.end - this.origin} bytes)`);
    }
    return new type(this.buffer, from, n);
  }
};

// tracks.js
function upperBound(values, value, lo = 0, hi = values.length) {
  while (lo < hi) {
    const mid = lo + hi >>> 1;
    if (values[mid] <= value) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
var Track = class {
  /** @param {Container} columns @param {string} name */
  constructor(columns, name) {
    this.columns = columns;
    this.name = name;
    this.a = columns.column(`t.${name}.a`);
    this.b = columns.column(`t.${name}.b`);
    this.length = this.a.length;
    this.stride = columns.meta.tracks?.[name]?.stride ?? 0;
    this.ck = columns.column(`t.${name}.ck`);
    this.ckrow = columns.column(`t.${name}.ckrow`);
    this.sorted = null;
  }
  /** @param {string} column */
  col(column) {
    return this.columns.column(`t.${this.name}.${column}`);
  }
  /** The string that `column` holds in `row`. @param {string} column @param {number} row @returns {string} */
  str(column, row) {
    return this.columns.strings[this.col(column)[row]] ?? "";
  }
  /** Calls `visit` with each row open at event `i`. @param {number} i @param {(row: number) => void} visit */
  each(i, visit) {
    const { a, b, ck, ckrow, stride } = this;
    let from = -1;
    if (stride > 0 && ck.length > 1) {
      const j = Math.min(Math.floor(i / stride), ck.length - 2);
      for (let k = ck[j]; k < ck[j + 1]; k++) if (b[ckrow[k]] > i) visit(ckrow[k]);
      from = j * stride;
    }
    for (let r = upperBound(a, from); r < a.length && a[r] <= i; r++) if (b[r] > i) visit(r);
  }
  /** A number that two events share only where no row begins or ends between them. @param {number} i */
  epoch(i) {
    return upperBound(this.a, i) + upperBound(this.ends, i);
  }
  /** Where rows end, in order. */
  get ends() {
    return this.sorted ??= Int32Array.from(this.b).sort();
  }
  /** The rows open at event `i`. @param {number} i */
  openAt(i) {
    const rows = [];
    this.each(i, (row) => rows.push(row));
    return rows;
  }
};
var Tracks = class {
  /** @param {ArrayBuffer | ArrayBufferView} bytes */
  constructor(bytes) {
    const columns = readContainer(bytes);
    this.columns = columns;
    this.meta = columns.meta;
    this.strings = columns.strings;
    this.kind = columns.column("ev.kind");
    this.node = columns.column("ev.node");
    this.cause = columns.column("ev.cause");
    this.row = columns.column("ev.row");
    this.n = this.kind.length;
    this.nTensors = columns.column("tensor.name").length;
    this.kinds = this.meta.kinds.map((kind, index) => ({
      ...kind,
      index,
      types: Object.fromEntries(kind.fields),
      tensorFields: kind.fields.filter((f) => f[1] === "tensor").map((f) => f[0])
    }));
    this.kindNamed = Object.fromEntries(this.kinds.map((kind) => [kind.name, kind]));
    this.opened = /* @__PURE__ */ new Map();
  }
  /** @param {string} name */
  track(name) {
    let track = this.opened.get(name);
    if (!track) this.opened.set(name, track = new Track(this.columns, name));
    return track;
  }
  /** @param {number} i @returns {Kind} */
  kindOf(i) {
    return this.kinds[this.kind[i]];
  }
  /**
   * A field of event `i`: number, string, boolean or an array of them; undefined where its kind has no such field.
   * @param {number} i
   * @param {string} field
   * @returns {any}
   */
  field(i, field) {
    const kind = this.kindOf(i);
    const type = kind.types[field];
    if (type === void 0) return void 0;
    const row = this.row[i];
    const name = `k.${kind.name}.${field}`;
    const { columns, strings } = this;
    switch (type) {
      case "str":
        return strings[columns.column(name)[row]] ?? "";
      case "bool":
        return columns.column(name)[row] !== 0;
      case "dims":
        return columns.column(name).subarray(4 * row, 4 * row + 4);
      case "ints":
      case "tensors":
      case "strs":
      case "floats": {
        const ptr = columns.column(`${name}.ptr`);
        const values = columns.column(`${name}.val`).subarray(ptr[row], ptr[row + 1]);
        return type === "strs" ? Array.from(values, (v) => strings[v] ?? "") : values;
      }
      default:
        return columns.column(name)[row];
    }
  }
  /** The tensor that event `i` is about: its first tensor field, else the node it happened in. @param {number} i */
  tensorOf(i) {
    const kind = this.kindOf(i);
    for (const field of kind.tensorFields) {
      const t = this.columns.column(`k.${kind.name}.${field}`)[this.row[i]];
      if (t >= 0) return t;
    }
    return this.node[i];
  }
  /** Whether event `i` speaks of tensor `t`. @param {number} i @param {number} t */
  speaksOf(i, t) {
    const kind = this.kindOf(i);
    return kind.tensorFields.some((f) => this.columns.column(`k.${kind.name}.${f}`)[this.row[i]] === t);
  }
  /** A string of the tensor table: name, type, op or desc. @param {string} column @param {number} t @returns {string} */
  tensorString(column, t) {
    return this.strings[this.columns.column(`tensor.${column}`)[t]] ?? "";
  }
  /** @param {number} t */
  name(t) {
    return t < 0 ? "none" : this.tensorString("name", t) || `tensor ${t}`;
  }
  /** @param {number} t */
  ne(t) {
    return this.columns.column("tensor.ne").subarray(4 * t, 4 * t + 4);
  }
  /** @param {number} t @returns {number} */
  nbytes(t) {
    return this.columns.column("tensor.nbytes")[t] ?? 0;
  }
  /** The next event after `i` in `direction` (+1, -1) for which `test` holds, or -1.
   * @param {number} i @param {number} direction @param {(i: number) => boolean} test */
  find(i, direction, test) {
    for (let j = i + direction; j >= 0 && j < this.n; j += direction) if (test(j)) return j;
    return -1;
  }
};

// arena.js
var HEADER = 32;
var RECORD = 336;
var PAD = 12;
var HEIGHT = 66;
var WHOLE = { top: 5, high: 11 };
var NEAR = { top: 30, high: 20 };
var NEAR_OBJECTS = 3;
var ROW = 23;
var arenaDetail = {
  name: "arena",
  title: "Arena",
  has: ({ tracks }) => tracks.track("arena").length > 0,
  make: (player, pane) => new ArenaView(player, pane)
};
var ArenaView = class extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Arena",
      keys: "object by object",
      empty: "No context stands at this step. ggml.Context(mem_size) makes one, and each tensor made in it is an object here."
    });
    this.arena = null;
    this.chosen = -1;
    this.offered = "";
    this.current = -1;
    this.select = el("select", "vg-select", { "aria-label": "Which context" });
    this.select.addEventListener("change", () => {
      this.chosen = Number(this.select.value);
      player.redraw(pane);
    });
    this.tools = [this.select];
    this.surface.box.style.flex = `0 0 ${HEIGHT}px`;
    const heads = ["offset", "size", "padding", "what it is"];
    this.head = el("div", "vg-grid-head", {}, heads.map((text, k) => el("span", k < 3 ? "vg-right" : "", { text })));
    this.list = new VirtualList({
      label: "Objects of the context",
      rowHeight: ROW,
      makeRow: () => el("div", "vg-grid-row", {}, heads.map((_, k) => el("span", k < 3 ? "vg-right" : ""))),
      fillRow: (row, index) => this.fillRow(row, index),
      choose: (index) => this.choose(index)
    });
    this.main.append(this.head, this.list.element);
    this.element.classList.add("vg-table");
    this.element.style.setProperty("--vg-columns", "minmax(56px, 0.8fr) minmax(56px, 0.8fr) minmax(44px, 0.5fr) minmax(0, 2.2fr)");
  }
  /** @param {number} step */
  prepare(step) {
    const { tracks } = this.player;
    const track = tracks.track("arena");
    const [context, used, n, size, noAlloc] = ["context", "used", "n_objects", "mem_size", "no_alloc"].map((name) => track.col(name));
    const open = track.openAt(step);
    this.offer(open.map((r) => context[r]));
    const wanted = this.chosen >= 0 ? this.chosen : this.contextAt(step);
    const row = open.find((r) => context[r] === wanted) ?? open[open.length - 1];
    for (const part of [this.head, this.list.element]) if (part.hidden !== (row === void 0)) part.hidden = row === void 0;
    if (row === void 0) return null;
    const objects = tracks.track("object");
    const ofContext = objects.col("context");
    const rows = objects.openAt(step).filter((r) => ofContext[r] === context[row]);
    const offset = objects.col("offset");
    rows.sort((p, q) => offset[p] - offset[q]);
    this.arena = { context: context[row], used: used[row], size: Math.max(size[row], used[row]), noAlloc: noAlloc[row] === 1, objects: rows };
    this.current = rows.findLastIndex((r) => objects.a[r] <= step && objects.a[r] > step - 4);
    const tensor = this.player.selected >= 0 ? this.player.selected : this.player.relations.tensorAt(step);
    const mine = rows.findIndex((r) => objects.col("tensor")[r] === tensor && tensor >= 0);
    if (mine >= 0) this.current = mine;
    this.list.setLength(rows.length);
    const shown = this.current >= 0 ? this.current : rows.length - 1;
    this.list.setCurrent(shown);
    this.list.show(shown);
    if (tracks.kindOf(step).name === "ContextOverflow" && tracks.field(step, "context") === this.arena.context) {
      return { strong: `does not fit: ${formatBytes(tracks.field(step, "needed"))} needed`, rest: `of ${formatBytes(this.arena.size)}`, bad: true };
    }
    const share2 = this.arena.size ? ` (${percent(this.arena.used / this.arena.size)})` : "";
    return {
      strong: `context ${this.arena.context}: ${formatBytes(this.arena.used)} of ${formatBytes(this.arena.size)} used${share2}`,
      rest: `${counted(n[row], "object")}; ${this.arena.noAlloc ? "no_alloc: records alone, the data lies in buffers" : "each tensor's data follows its record"}`
    };
  }
  /** The context that the step is about: the event's own, else the one that changed last. @param {number} step */
  contextAt(step) {
    const { tracks } = this.player;
    const said = tracks.field(step, "context");
    if (said !== void 0) return said;
    const track = tracks.track("arena");
    const at = upperBound(track.a, step) - 1;
    return at < 0 ? -1 : track.col("context")[at];
  }
  /** The contexts there are at this step, for choosing. @param {number[]} contexts */
  offer(contexts) {
    const ids = [...new Set(contexts)].sort((p, q) => p - q);
    if (this.chosen >= 0 && !ids.includes(this.chosen)) ids.push(this.chosen);
    const key = ids.join(" ");
    if (key === this.offered) return;
    this.offered = key;
    this.select.replaceChildren(el("option", "", { value: "-1", text: "follow the step" }), ...ids.map((id) => el("option", "", { value: String(id), text: `context ${id}` })));
    this.select.value = String(this.chosen);
  }
  /** @param {number} r row of the objects @returns {string} */
  nameOf(r) {
    const { tracks } = this.player;
    const track = tracks.track("object");
    const [tensor, graph] = [track.col("tensor")[r], track.col("graph")[r]];
    if (tensor >= 0) return visible(tracks.name(tensor));
    return graph >= 0 ? `graph ${graph}` : track.str("kind", r).toLowerCase().replace("_", " ");
  }
  /** Header, record or graph, data and padding: bytes. @param {number} r */
  partsOf(r) {
    const track = this.player.tracks.track("object");
    const [size, padding] = [track.col("size")[r], track.col("padding")[r]];
    const record = track.str("kind", r) === "TENSOR" ? Math.min(RECORD, size - padding) : size - padding;
    return { offset: track.col("offset")[r], size, padding, record, data: size - padding - record };
  }
  /** @param {HTMLElement} element @param {number} index */
  fillRow(element, index) {
    const r = this.arena?.objects[index];
    if (r === void 0) return;
    const { offset, size, padding, data } = this.partsOf(r);
    const kind = this.player.tracks.track("object").str("kind", r);
    const what = kind === "TENSOR" ? `${this.nameOf(r)}: record${data > 0 ? ` and ${formatBytes(data)} of data` : ""}` : this.nameOf(r);
    [String(offset), formatBytes(size), padding ? formatBytes(padding) : "0", what].forEach((text, k) => setText(element.children[k], text));
    element.classList.toggle("vg-marked", index === this.current || index === this.cursor);
  }
  /** The objects that are drawn near: the current one, and those about it. */
  near() {
    const { objects } = this.arena ?? { objects: [] };
    const at = this.cursor >= 0 ? this.cursor : this.current >= 0 ? this.current : objects.length - 1;
    const first = Math.max(0, Math.min(at - 1, objects.length - NEAR_OBJECTS));
    const last = Math.min(objects.length, first + NEAR_OBJECTS) - 1;
    if (last < first) return { first, last, from: 0, to: 1 };
    const end = this.partsOf(objects[last]);
    return { first, last, from: this.partsOf(objects[first]).offset - HEADER, to: end.offset + end.size };
  }
  /** @param {Context} c @param {number} w */
  paint(c, w) {
    const { arena, player } = this;
    const { palette } = player;
    if (!arena) return;
    const wide = w - 2 * PAD;
    c.fillStyle = palette.free;
    c.fillRect(PAD, WHOLE.top, wide, WHOLE.high);
    const scale = wide / Math.max(1, arena.size);
    this.paintObjects(c, scale);
    if (!arena.objects.length) return;
    const near = this.near();
    c.strokeStyle = palette.ink;
    c.lineWidth = 1;
    const [x0, x1] = [PAD + near.from * scale, PAD + near.to * scale];
    c.strokeRect(Math.round(x0) - 0.5, WHOLE.top - 2.5, Math.max(3, Math.round(x1 - x0)), WHOLE.high + 5);
    c.strokeStyle = palette.line;
    c.beginPath();
    c.moveTo(x0, WHOLE.top + WHOLE.high + 3);
    c.lineTo(PAD, NEAR.top - 3);
    c.moveTo(Math.max(x1, x0 + 3), WHOLE.top + WHOLE.high + 3);
    c.lineTo(PAD + wide, NEAR.top - 3);
    c.stroke();
    this.paintNear(c, near, wide);
  }
  /** @param {Context} c @param {number} scale */
  paintObjects(c, scale) {
    const { palette } = this.player;
    let drawn = -1;
    for (const r of this.arena?.objects ?? []) {
      const { offset, size } = this.partsOf(r);
      const [x, end] = [PAD + (offset - HEADER) * scale, PAD + (offset + size) * scale];
      if (end < drawn + 0.5) continue;
      c.fillStyle = this.colourOf(r);
      c.fillRect(Math.max(x, drawn), WHOLE.top, Math.max(0.7, end - Math.max(x, drawn) - (end - x > 4 ? 1 : 0)), WHOLE.high);
      drawn = end;
    }
    c.fillStyle = palette.edge;
  }
  /** @param {number} r */
  colourOf(r) {
    const { palette, tracks } = this.player;
    return palette.families[tracks.track("object").str("kind", r) === "TENSOR" ? 0 : 4];
  }
  /** @param {Context} c @param {{first: number, last: number, from: number, to: number}} near @param {number} wide */
  paintNear(c, near, wide) {
    const { palette, fonts } = this.player;
    const x = (byte) => PAD + (byte - near.from) / (near.to - near.from) * wide;
    for (let k = near.first; k <= near.last; k++) {
      const r = this.arena?.objects[k] ?? -1;
      const { offset, size, padding, record, data } = this.partsOf(r);
      const marks = [offset - HEADER, offset, offset + record, offset + record + data, offset + size];
      c.font = `10.5px ${fonts.mono}`;
      ["32", "", "data", ""].forEach((text, part) => {
        const [a, b] = [x(marks[part]), x(marks[part + 1])];
        if (b - a < 0.2) return;
        c.fillStyle = part === 0 ? palette.families[6] : part === 2 ? palette.families[2] : part === 3 ? palette.free : this.colourOf(r);
        c.fillRect(a, NEAR.top, Math.max(0.7, b - a - (part === 3 || part === 1 + (data ? 1 : 0) ? 1 : 0)), NEAR.high);
        if (part === 3) hatch(c, a, NEAR.top, b - a, NEAR.high, palette.faint);
        const words = part === 1 ? `${this.nameOf(r)} ${record}` : part === 2 ? `data ${data}` : text;
        c.fillStyle = "#10151d";
        const shown = cutEnd(words, Math.floor((b - a - 6) / 6.4));
        if (shown && shown.length * 6.4 < b - a) c.fillText(shown, a + 4, NEAR.top + NEAR.high / 2 + 0.5);
      });
      c.font = `10px ${fonts.ui}`;
      c.fillStyle = palette.faint;
      if (x(offset + size) - x(offset) > 60) c.fillText(`${offset}${padding ? `, ${padding} B padding` : ""}`, x(offset), NEAR.top + NEAR.high + 9);
      if (k === this.current || k === this.cursor) {
        c.strokeStyle = palette.accent;
        c.lineWidth = 2;
        c.strokeRect(x(offset - HEADER) + 1, NEAR.top - 1, x(offset + size) - x(offset - HEADER) - 2, NEAR.high + 2);
      }
    }
  }
  /** @param {number} px @param {number} y */
  findAt(px, y) {
    const { arena } = this;
    if (!arena?.objects.length) return -1;
    const near = this.near();
    const wide = this.surface.width - 2 * PAD;
    const whole2 = y < NEAR.top - 8;
    const byte = whole2 ? (px - PAD) / wide * arena.size : near.from + (px - PAD) / wide * (near.to - near.from);
    return arena.objects.findIndex((r) => {
      const { offset, size } = this.partsOf(r);
      return byte >= offset - HEADER && byte < offset + size;
    });
  }
  /** @param {number} k */
  cardOf(k) {
    const r = this.arena?.objects[k];
    if (r === void 0) return null;
    const { offset, size, padding, record, data } = this.partsOf(r);
    const pairs = [["object", `${k}, ${this.player.tracks.track("object").str("kind", r)}`], ["header", `${HEADER} B before it`], ["offset", String(offset)], ["record", `${record} B`]];
    if (data > 0) pairs.push(["data", formatBytes(data)]);
    pairs.push(["padding", `${padding} B`], ["ends at", String(offset + size)]);
    return { head: this.nameOf(r), pairs };
  }
  /** @param {number} _k */
  placeOf(_k) {
    return { x: this.surface.width / 2, y: NEAR.top + NEAR.high };
  }
  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    const n = this.arena?.objects.length ?? 0;
    return n ? Math.max(0, Math.min(n - 1, k < 0 ? Math.max(0, this.current) : k + by)) : -1;
  }
  /** @param {number} k */
  choose(k) {
    const tensor = this.player.tracks.track("object").col("tensor")[this.arena?.objects[k] ?? -1] ?? -1;
    if (tensor >= 0) this.player.select(tensor);
  }
  stop() {
    this.list.stop();
    super.stop();
  }
};
function percent(share2) {
  return share2 > 0 && share2 < 1e-3 ? "under 0.1 %" : `${(100 * share2).toFixed(share2 < 0.1 ? 1 : 0)} %`;
}

// links.js
var TARGETS = (
  /** @type {const} */
  ["tensor", "event", "more"]
);
var Links = class {
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
      fill(
        /** @type {HTMLElement} */
        node,
        item,
        k + 1 < items.length ? " " : ""
      );
    });
    while (element.children.length > items.length) element.lastElementChild?.remove();
  }
};
function fill(node, item, space) {
  if (node.title) node.title = "";
  if (typeof item === "string") return setText(node, item + space);
  setText(node, item.text + (item.after ?? "") + space);
  for (const name of TARGETS) {
    const value = item[name];
    if (value !== void 0) node.dataset[name] = String(value);
    else if (node.dataset[name] !== void 0) delete node.dataset[name];
  }
}
function hint(node) {
  if (!node.parentElement?.classList.contains("vg-links") || node.title) return;
  const { tensor, event, more: more2 } = node.dataset;
  const text = node.textContent?.trim() ?? "";
  node.title = event !== void 0 ? "Go to this event" : tensor !== void 0 ? `Select ${text}` : more2 !== void 0 ? "Show all" : text;
}

// value_plots.js
var MAP = { left: 46, right: 72, top: 6, height: 132, foot: 30 };
var BARS = { left: 46, right: 72, top: 8, height: 56, foot: 18 };
var DIVERGING = {
  light: [[5, 84, 150], [246, 246, 244], [176, 72, 8]],
  dark: [[98, 178, 240], [34, 41, 52], [255, 150, 80]]
};
function formatValue(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "+inf" : "-inf";
  return String(Number(value.toPrecision(4)));
}
function runBegin(j, n, k) {
  return Math.floor(j * n / Math.max(1, k));
}
function range(a, b) {
  return b - a <= 1 ? String(a) : `${a} to ${b - 1}`;
}
function mix(scale, at) {
  const f = Math.min(1, Math.abs(at));
  const end = at < 0 ? scale[0] : scale[2];
  return (
    /** @type {Rgb} */
    scale[1].map((v, k) => Math.round(v + (end[k] - v) * f))
  );
}
var Plot = class {
  /** @param {Player} player @param {Pane} pane @param {string} label @param {number} height */
  constructor(player, pane, label, height) {
    this.player = player;
    this.values = null;
    this.cursor = -1;
    this.drawn = -1;
    this.surface = new Surface(label, () => {
      this.drawn = -1;
      player.redraw(pane);
    });
    this.element = this.surface.box;
    this.element.classList.add("vg-plot");
    this.element.style.height = `${height}px`;
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", `${label}: arrow keys read it`);
    this.said = el("div", "vg-unseen", { "aria-live": "polite" });
    this.element.append(this.said);
    for (
      const name of
      /** @type {const} */
      ["pointermove", "pointerdown"]
    ) {
      this.element.addEventListener(name, (event) => this.read(this.cellAt(event.offsetX, event.offsetY)));
    }
    this.element.addEventListener("pointerleave", () => this.read(-1));
    this.element.addEventListener("blur", () => this.read(-1));
    this.element.addEventListener("keydown", (event) => this.onKey(event));
  }
  /** Draws the values of row `row` of the trace. @param {Values} values @param {number} row */
  draw(values, row) {
    if (row === this.drawn || this.surface.width < 10) return;
    this.drawn = row;
    this.values = values;
    if (this.cursor >= this.count) this.cursor = -1;
    this.paint();
  }
  invalidate() {
    this.drawn = -1;
  }
  /** Shows a cell's values in the tip. @param {number} cell */
  read(cell2) {
    if (!this.values || cell2 < 0) {
      this.player.tip.hide();
    } else {
      const [x, y] = this.centreOf(cell2);
      const [head, pairs] = this.tell(cell2, this.values);
      this.player.tip.show(this.element, x, y, head, pairs);
      this.said.textContent = `${head}: ${pairs.map((pair) => pair.join(" ")).join(", ")}`;
    }
    if (cell2 === this.cursor) return;
    this.cursor = cell2;
    if (this.values) this.paint();
  }
  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = this.steps[event.key];
    if (step === void 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (this.count) this.read(this.cursor < 0 ? 0 : Math.max(0, Math.min(this.count - 1, this.cursor + step)));
  }
  /** How many cells there are. @returns {number} */
  get count() {
    return 0;
  }
  /** By how many cells each key goes. @returns {Record<string, number>} */
  get steps() {
    return { ArrowLeft: -1, ArrowRight: 1 };
  }
  paint() {
  }
  /** @param {number} _x @param {number} _y @returns {number} */
  cellAt(_x, _y) {
    return -1;
  }
  /** @param {number} _cell @returns {[number, number]} */
  centreOf(_cell) {
    return [0, 0];
  }
  /** @param {number} _cell @param {Values} _values @returns {[string, [string, string][]]} */
  tell(_cell, _values) {
    return ["", []];
  }
  begin() {
    const { palette, fonts } = this.player;
    const c = this.surface.begin();
    c.fillStyle = palette.page;
    c.fillRect(0, 0, this.surface.width, this.surface.height);
    c.font = `10.5px ${fonts.ui}`;
    c.textBaseline = "middle";
    c.textAlign = "left";
    c.fillStyle = palette.soft;
    return c;
  }
  stop() {
    this.surface.stop();
  }
};
var HeatMap = class extends Plot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, "Heat map", MAP.top + MAP.height + MAP.foot);
    this.bitmap = el("canvas");
  }
  get count() {
    return this.values ? this.values.rows * this.values.columns : 0;
  }
  get steps() {
    const down = this.values?.columns ?? 1;
    return { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -down, ArrowDown: down };
  }
  /** Where the map lies. */
  get frame() {
    const { rows, columns } = this.values ?? { rows: 1, columns: 1 };
    const room = this.surface.width - MAP.left - MAP.right;
    const w = Math.min(room, 26 * columns);
    const h = Math.min(MAP.height, 26 * rows);
    return { x: MAP.left, y: MAP.top, w, h, cw: w / Math.max(1, columns), ch: h / Math.max(1, rows) };
  }
  /** The largest magnitude among the cells: both ends of the scale. */
  get limit() {
    let most = 0;
    for (const v of this.values?.cells ?? []) if (Number.isFinite(v)) most = Math.max(most, Math.abs(v));
    return most;
  }
  paint() {
    const c = this.begin();
    const { values, surface } = this;
    if (!values) return;
    if (!this.count) return c.fillText("no elements", MAP.left, MAP.top + 10);
    const { palette } = this.player;
    const { x, y, w, h, cw, ch } = this.frame;
    const limit = this.limit;
    this.bake(values, limit);
    c.imageSmoothingEnabled = false;
    c.drawImage(this.bitmap, x, y, w, h);
    c.strokeStyle = palette.line;
    c.lineWidth = 1;
    c.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
    this.paintAxes(c, values);
    paintLegend(palette, c, surface.width - MAP.right + 14, MAP.top, MAP.height, limit);
    if (this.cursor < 0) return;
    c.strokeStyle = palette.ink;
    c.lineWidth = 1.5;
    c.strokeRect(x + this.cursor % values.columns * cw - 0.75, y + Math.floor(this.cursor / values.columns) * ch - 0.75, cw + 1.5, ch + 1.5);
  }
  /** @param {Values} values @param {number} limit */
  bake({ rows, columns, cells }, limit) {
    const { palette } = this.player;
    this.bitmap.width = columns;
    this.bitmap.height = rows;
    const b = (
      /** @type {CanvasRenderingContext2D} */
      this.bitmap.getContext("2d")
    );
    const image = b.createImageData(columns, rows);
    const scale = DIVERGING[palette.dark ? "dark" : "light"];
    const odd = palette.dark ? [0, 0, 0] : [30, 30, 30];
    for (let k = 0; k < rows * columns; k++) {
      const rgb = Number.isFinite(cells[k]) ? mix(scale, limit ? cells[k] / limit : 0) : odd;
      image.data.set([...rgb, 255], 4 * k);
    }
    b.putImageData(image, 0, 0);
  }
  /** @param {CanvasRenderingContext2D} c @param {Values} values */
  paintAxes(c, { ne }) {
    const { x, y, w, h } = this.frame;
    const nRows = ne[1] * ne[2] * ne[3];
    const one = nRows === 1;
    c.fillStyle = this.player.palette.soft;
    c.textAlign = "right";
    c.fillText("0", x - 5, y + Math.min(6, h / 2));
    if (!one && h > 20) c.fillText(String(nRows - 1), x - 5, y + h - 6);
    c.textAlign = "left";
    c.fillText(`i0: 0 to ${ne[0] - 1}`, x, y + h + 10);
    const down = ne[2] * ne[3] > 1 ? "down: rows, i1 fastest" : "down: i1";
    c.fillText(one ? "one row" : down, x, y + h + 23);
  }
  /** @param {number} px @param {number} py */
  cellAt(px, py) {
    const { x, y, w, h, cw, ch } = this.frame;
    if (!this.values || px < x || py < y || px >= x + w || py >= y + h) return -1;
    return Math.floor((py - y) / ch) * this.values.columns + Math.floor((px - x) / cw);
  }
  /** @param {number} cell @returns {[number, number]} */
  centreOf(cell2) {
    const { x, y, cw, ch } = this.frame;
    const columns = this.values?.columns ?? 1;
    return [x + (cell2 % columns + 0.5) * cw, y + (Math.floor(cell2 / columns) + 0.5) * ch];
  }
  /** @param {number} cell @param {Values} values @returns {[string, [string, string][]]} */
  tell(cell2, { ne, rows, columns, cells }) {
    const nRows = ne[1] * ne[2] * ne[3];
    const [j, i] = [Math.floor(cell2 / columns), cell2 % columns];
    const [r0, r1] = [runBegin(j, nRows, rows), runBegin(j + 1, nRows, rows)];
    const [a, b] = [runBegin(i, ne[0], columns), runBegin(i + 1, ne[0], columns)];
    const n = (r1 - r0) * (b - a);
    const pairs = [["i0", range(a, b)]];
    if (r1 - r0 === 1) [1, 2, 3].forEach((d) => ne[d] > 1 && pairs.push([`i${d}`, String(Math.floor(r0 / ne.slice(1, d).reduce((p, q) => p * q, 1)) % ne[d])]));
    else pairs.push([ne[2] * ne[3] > 1 ? "rows" : "i1", range(r0, r1)]);
    if (n > 1) pairs.push(["mean of", `${formatCount(n)} values`]);
    return [formatValue(cells[cell2]), pairs];
  }
};
function paintLegend(palette, c, x, y, h, limit) {
  const scale = DIVERGING[palette.dark ? "dark" : "light"];
  const ramp = c.createLinearGradient(0, y, 0, y + h);
  for (let k = 0; k <= 8; k++) ramp.addColorStop(k / 8, `rgb(${mix(scale, 1 - k / 4).join(",")})`);
  c.fillStyle = ramp;
  c.fillRect(x, y, 9, h);
  c.strokeStyle = palette.line;
  c.strokeRect(x - 0.5, y - 0.5, 10, h + 1);
  c.fillStyle = palette.soft;
  c.textAlign = "left";
  const end = String(Number(limit.toPrecision(3)));
  c.fillText(end, x + 13, y + 5);
  c.fillText("0", x + 13, y + h / 2);
  c.fillText(limit ? `-${end}` : "0", x + 13, y + h - 5);
}
var Histogram = class extends Plot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, "Histogram", BARS.top + BARS.height + BARS.foot);
  }
  get count() {
    return this.values?.bins.length ?? 0;
  }
  get frame() {
    const w = this.surface.width - BARS.left - BARS.right;
    return { x: BARS.left, y: BARS.top, w, h: BARS.height, bar: w / Math.max(1, this.count) };
  }
  paint() {
    const c = this.begin();
    const { values } = this;
    if (!values) return;
    const { palette } = this.player;
    const { x, y, w, h, bar: bar2 } = this.frame;
    const [low, high] = [values.stats[0], values.stats[1]];
    let most = 1;
    for (let k = 0; k < this.count; k++) most = Math.max(most, values.bins[k]);
    for (let k = 0; k < this.count; k++) {
      const high2 = values.bins[k] ? Math.max(1, values.bins[k] / most * h) : 0;
      c.fillStyle = k === this.cursor ? palette.accent : palette.source;
      c.globalAlpha = k === this.cursor ? 1 : 0.75;
      c.fillRect(x + k * bar2, y + h - high2, Math.max(1, bar2 - 1), high2);
    }
    c.globalAlpha = 1;
    c.fillStyle = palette.edge;
    c.fillRect(x, y + h, w, 1);
    c.fillStyle = palette.soft;
    c.textAlign = "right";
    c.fillText(formatCount(most), x - 5, y + 4);
    c.fillText("0", x - 5, y + h - 4);
    c.textAlign = "left";
    c.fillText(formatValue(low), x, y + h + 10);
    c.textAlign = "right";
    c.fillText(formatValue(high), x + w, y + h + 10);
    const zero = x + (0 - low) / (high - low) * w;
    c.textAlign = "center";
    if (!(zero > x && zero < x + w)) return;
    c.fillStyle = palette.edge;
    c.fillRect(Math.round(zero), y, 1, h + 4);
    c.fillStyle = palette.soft;
    if (zero > x + 50 && zero < x + w - 50) c.fillText("0", zero, y + h + 10);
  }
  /** @param {number} px @param {number} py */
  cellAt(px, py) {
    const { x, y, w, h, bar: bar2 } = this.frame;
    return px < x || px >= x + w || py < y || py > y + h ? -1 : Math.floor((px - x) / bar2);
  }
  /** @param {number} cell @returns {[number, number]} */
  centreOf(cell2) {
    const { x, y, h, bar: bar2 } = this.frame;
    return [x + (cell2 + 0.5) * bar2, y + h / 2];
  }
  /** @param {number} cell @param {Values} values @returns {[string, [string, string][]]} */
  tell(cell2, { stats, bins }) {
    const width = (stats[1] - stats[0]) / bins.length;
    const all = Array.from(bins).reduce((sum, n) => sum + n, 0);
    const share2 = all ? `${(100 * bins[cell2] / all).toFixed(1)} %` : "0 %";
    const head = `${formatCount(bins[cell2])} value${bins[cell2] === 1 ? "" : "s"}, ${share2}`;
    return [head, [["from", formatValue(stats[0] + cell2 * width)], ["to", formatValue(stats[0] + (cell2 + 1) * width)]]];
  }
};

// block.js
var NARROW2 = 620;
var FIELD_COLOURS = [4, 0, 2, 3, 1, 5, 6];
var STRONGEST = 70;
var UNKNOWN = -2;
var blockDetail = {
  name: "block",
  title: "Block",
  has: ({ tracks }) => tracks.columns.column("blk.tensor").length > 0,
  make: (player, pane) => new BlockView(player, pane)
};
function blocksOf({ tracks }, t, step) {
  const [tensor, event, block] = ["tensor", "event", "block"].map((name) => tracks.columns.column(`blk.${name}`));
  const newest = /* @__PURE__ */ new Map();
  for (let r = 0; r < tensor.length; r++) if (tensor[r] === t && event[r] <= step) newest.set(block[r], r);
  return [...newest.entries()].sort(([p], [q]) => p - q).map(([, r]) => r);
}
function tensorAt(player, step) {
  const { relations, selected, tracks } = player;
  const t = selected >= 0 ? selected : relations.tensorAt(step);
  if (t >= 0) {
    const found = [t, relations.root(t), ...relations.sources(t)].find((s) => s >= 0 && blocksOf(player, s, step).length > 0);
    if (found !== void 0) return found;
    if (selected >= 0) return UNKNOWN;
  }
  const [tensor, event] = ["tensor", "event"].map((name) => tracks.columns.column(`blk.${name}`));
  let last = -1;
  for (let r = 0; r < tensor.length; r++) if (event[r] <= step && (last < 0 || event[r] > event[last])) last = r;
  return last < 0 ? UNKNOWN : tensor[last];
}
var BlockView = class {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.player = player;
    this.pane = pane;
    this.tensor = UNKNOWN;
    this.chosen = 0;
    this.rows = [];
    this.drawn = "";
    this.name = new Links();
    this.facts = el("p");
    this.back = el("button", "vg-button", { type: "button", text: "‹", title: "The block before", "aria-label": "The block before" });
    this.next = el("button", "vg-button", { type: "button", text: "›", title: "The next block", "aria-label": "The next block" });
    this.back.addEventListener("click", () => this.turn(-1));
    this.next.addEventListener("click", () => this.turn(1));
    this.bytes = el("div", "vg-block-cells vg-block-bytes", { role: "img", "aria-label": "Bytes" });
    this.fields = el("div", "vg-block-fields");
    this.scales = el("p", "vg-block-said");
    this.codes = el("div", "vg-block-cells vg-block-codes", { role: "img", "aria-label": "Codes" });
    this.said = el("p", "vg-block-said");
    this.inside = el("div", "vg-block-in", {}, [
      el("div", "vg-block-head", {}, [this.name.element, this.facts, this.back, this.next]),
      el("h4", "", { text: "Bytes, coloured by field" }),
      this.bytes,
      el("h4", "", { text: "Fields" }),
      this.fields,
      el("h4", "", { text: "Codes, coloured by the value that each stands for: below 0, above 0" }),
      this.codes,
      this.scales,
      this.said
    ]);
    this.empty = el("div", "vg-empty", { text: "No block is known of this tensor at this step. vg.record(values=True) keeps the first blocks of each quantized weight that is read." });
    this.empty.hidden = true;
    this.element = el("div", "vg-block vg-scroll", { tabindex: "-1" }, [this.inside, this.empty]);
    this.element.addEventListener("click", (event) => {
      const link = (
        /** @type {HTMLElement} */
        event.target.closest?.("[data-tensor]")
      );
      if (link instanceof HTMLElement) player.select(Number(link.dataset.tensor));
    });
    this.sizer = new ResizeObserver((entries) => this.element.classList.toggle("vg-block-narrow", entries[entries.length - 1].contentRect.width < NARROW2));
    this.sizer.observe(this.element);
  }
  /** @param {number} by */
  turn(by) {
    this.chosen = Math.max(0, Math.min(this.rows.length - 1, this.chosen + by));
    this.player.redraw(this.pane);
  }
  /** @param {number} step */
  draw(step) {
    const { player } = this;
    const t = tensorAt(player, step);
    const none = t === UNKNOWN;
    if (this.inside.hidden !== none) {
      this.inside.hidden = none;
      this.empty.hidden = !none;
    }
    if (none) return;
    this.rows = blocksOf(player, t, step);
    if (t !== this.tensor) this.chosen = 0;
    this.tensor = t;
    const told = this.rows.findIndex((r) => this.col("blk.event")[r] === step);
    if (told >= 0 && this.drawn.split(" ")[1] !== String(step)) this.chosen = told;
    const row = this.rows[Math.min(this.chosen, this.rows.length - 1)];
    const key = `${row} ${told >= 0 ? step : ""} ${this.rows.length} ${player.palette.dark}`;
    if (key === this.drawn) return;
    this.drawn = key;
    this.drawBlock(t, row);
  }
  /** @param {string} name */
  col(name) {
    return this.player.tracks.columns.column(name);
  }
  /** @param {string} name @param {number} row */
  text(name, row) {
    return this.player.tracks.columns.strings[this.col(name)[row]] ?? "";
  }
  /** @param {string} part @param {number} row @returns {[number, number]} */
  span(part, row) {
    const ptr = this.col(`blk.${part}.ptr`);
    return [ptr[row], ptr[row + 1]];
  }
  /** @param {number} t @param {number} row */
  drawBlock(t, row) {
    const { tracks } = this.player;
    const data = this.col("blk.data.val").subarray(...this.span("data", row));
    const [first, last] = this.span("element", row);
    const n = last - first;
    const number = this.col("blk.block")[row];
    this.name.show([t < 0 ? "rows of no tensor" : { text: visible(tracks.name(t)), tensor: t }]);
    const bits = Number((8 * data.length / n).toFixed(3));
    setText(this.facts, `block ${number}, ${this.text("blk.how", row)} as ${this.text("blk.type", row)}: ${n} elements in ${data.length} bytes, ${bits} bits each`);
    this.back.disabled = this.chosen <= 0;
    this.next.disabled = this.chosen >= this.rows.length - 1;
    this.drawBytes(data, row);
    this.drawCodes(row, first, n);
  }
  /** @param {Uint8Array} data @param {number} row */
  drawBytes(data, row) {
    const [first, last] = this.span("field", row);
    const [start, stop] = [this.col("blkf.start"), this.col("blkf.stop")];
    const lines = [];
    const cells = [];
    for (let f = first; f < last; f++) {
      const colour = `var(--vg-families-${FIELD_COLOURS[(f - first) % FIELD_COLOURS.length]})`;
      const [name, says, meaning] = ["name", "says", "meaning"].map((column) => this.text(`blkf.${column}`, f));
      const range3 = stop[f] - start[f] > 1 ? `bytes ${start[f]}–${stop[f] - 1}` : `byte ${start[f]}`;
      const swatch = el("i");
      swatch.style.background = colour;
      lines.push(swatch, el("span", "vg-mono", { text: name }), el("span", "vg-soft", { text: range3 }), el("span", "vg-block-meaning", { text: meaning }), el("span", "vg-soft vg-mono vg-block-says", { text: says, title: says }));
      for (let i = start[f]; i < stop[f]; i++) {
        const cell2 = el("span", "", { text: data[i].toString(16).padStart(2, "0"), title: `byte ${i} of ${name}: ${data[i]}` });
        cell2.style.background = colour;
        cells.push(cell2);
      }
    }
    this.fields.replaceChildren(...lines);
    this.bytes.replaceChildren(...cells);
  }
  /** @param {number} row @param {number} first @param {number} n */
  drawCodes(row, first, n) {
    const [codes, values, originals, costs] = ["code", "value", "original", "importance"].map((name) => this.col(`blke.${name}`).subarray(first, first + n));
    const [g0, g1] = this.span("group", row);
    const groups = g1 - g0;
    const [scale, low] = [this.col("blkg.scale"), this.col("blkg.min")];
    const limit = values.reduce((most, x) => Math.max(most, Number.isFinite(x) ? Math.abs(x) : 0), 0);
    const cells = [];
    for (let i = 0; i < n; i++) {
      const group = g0 + Math.floor(i * groups / n);
      const told = [`element ${i}: code ${codes[i]}, value ${formatValue(values[i])}`, `scale ${formatValue(scale[group])}${low[group] ? `, minimum ${formatValue(low[group])}` : ""}`];
      if (!Number.isNaN(originals[i])) told.push(`was ${formatValue(originals[i])}, off by ${formatValue(values[i] - originals[i])}`);
      if (!Number.isNaN(costs[i])) told.push(`importance ${formatValue(costs[i])}`);
      const cell2 = el("span", "", { text: String(codes[i]), title: told.join("\n") });
      const share2 = limit && Number.isFinite(values[i]) ? Math.round(STRONGEST * Math.abs(values[i]) / limit) : 0;
      cell2.style.background = `color-mix(in srgb, var(--vg-families-${values[i] < 0 ? 0 : 4}) ${share2}%, var(--vg-panel))`;
      cells.push(cell2);
    }
    this.codes.replaceChildren(...cells);
    setText(this.scales, groups === 1 ? `One scale for all: ${formatValue(scale[g0])}${low[g0] ? `, and a minimum: ${formatValue(low[g0])}` : ""}.` : `${groups} groups of ${n / groups}, each with its scale: ${range2(scale.subarray(g0, g1))}${low.subarray(g0, g1).some((x) => x !== 0) ? `, and its minimum: ${range2(low.subarray(g0, g1))}` : ""}.`);
    setText(this.said, errorWords(values, originals));
  }
  stop() {
    this.sizer.disconnect();
  }
};
function range2(x) {
  return `${formatValue(Math.min(...x))} to ${formatValue(Math.max(...x))}`;
}
function errorWords(values, originals) {
  if (Number.isNaN(originals[0])) return "What it was made of is not known: only encoding tells that.";
  const errors = Array.from(values, (v, i) => v - originals[i]);
  const rms = (x) => Math.sqrt(Array.from(x).reduce((sum, e) => sum + e * e, 0) / x.length);
  const size = rms(originals);
  const share2 = size ? ` (${(100 * rms(errors) / size).toFixed(1)} % of the original's)` : "";
  return `Error beside the original: root mean square ${formatValue(rms(errors))}${share2}, at most ${formatValue(Math.max(...errors.map(Math.abs)))}.`;
}

// detail_table.js
var ROW2 = 23;
function tableDetail(table) {
  return {
    name: table.name,
    title: table.title,
    has: (player) => table.track === "" || player.tracks.track(table.track).length > 0,
    make: (player, pane) => new TableView(player, pane, table)
  };
}
var TableView = class {
  /** @param {Player} player @param {Pane} pane the pane to be drawn again when the size changes @param {Table} table */
  constructor(player, pane, table) {
    this.player = player;
    this.table = table;
    this.rows = [];
    this.head = el("div", "vg-grid-head", {}, table.columns.map((c) => el("span", c.right ? "vg-right" : "", { text: c.head })));
    this.head.hidden = table.columns.every((c) => c.head === "");
    this.empty = el("div", "vg-empty");
    this.surface = new Surface(`${table.title}, drawn`, () => player.redraw(pane));
    this.surface.box.hidden = !table.plot;
    this.surface.box.style.flex = `0 0 ${table.plotHeight ?? 0}px`;
    this.list = new VirtualList({
      label: table.title,
      rowHeight: ROW2,
      makeRow: () => el("div", "vg-grid-row", {}, table.columns.map((c) => el("span", c.right ? "vg-right" : ""))),
      fillRow: (row, index) => this.fillRow(row, index),
      choose: (index) => {
        const t = this.rows[index]?.tensor ?? -1;
        if (t >= 0) player.select(t);
      }
    });
    this.element = el("div", "vg-stack vg-table", {}, [this.surface.box, this.head, this.list.element, this.empty]);
    this.element.style.setProperty("--vg-columns", table.widths);
  }
  /** @param {HTMLElement} element @param {number} index */
  fillRow(element, index) {
    const row = this.rows[index];
    if (!row) return;
    for (let k = 0; k < element.children.length; k++) {
      setText(element.children[k], row.cells[k]);
      if (row.titled) element.children[k].title = row.cells[k];
    }
    element.classList.toggle("vg-marked", row.marked === true);
    element.classList.toggle("vg-bad", row.bad === true);
  }
  /** @param {number} step */
  draw(step) {
    const { table, list, surface } = this;
    this.rows = table.rows(this.player, step);
    const none = this.rows.length === 0;
    if (this.empty.hidden === none) {
      this.empty.hidden = !none;
      this.head.style.visibility = none ? "hidden" : "";
    }
    setText(this.empty, none ? table.empty : "");
    list.setLength(this.rows.length);
    const at = this.rows.findIndex((row) => row.marked);
    if (at >= 0) list.show(at);
    if (table.plot && surface.width > 10) {
      const c = surface.begin();
      c.fillStyle = this.player.palette.page;
      c.fillRect(0, 0, surface.width, surface.height);
      table.plot(this.player, c, surface.width, surface.height, step);
    }
  }
  stop() {
    this.surface.stop();
    this.list.stop();
  }
};

// counts.js
var MOST_COUNTS = 400;
var NEVER = -1;
var countsDetail = tableDetail({
  name: "counts",
  title: "Counts",
  track: "count",
  columns: [{ head: "tensor" }, { head: "uses", right: true }, { head: "children left", right: true }, { head: "views left", right: true }, { head: "" }],
  widths: "minmax(0, 2fr) 40px 74px 60px minmax(0, 1.2fr)",
  rows: countRows,
  empty: "Nothing is counted yet: build_forward_expand counts uses, alloc_graph counts children and views."
});
function countRows(player, step) {
  const { tracks, relations } = player;
  const track = tracks.track("count");
  const [tensor, which, value] = ["tensor", "which", "value"].map((n) => track.col(n));
  const counts = /* @__PURE__ */ new Map();
  track.each(step, (r) => {
    let entry = counts.get(tensor[r]);
    if (!entry) counts.set(tensor[r], entry = [NEVER, NEVER, NEVER]);
    entry[which[r]] = value[r];
  });
  const current = relations.tensorAt(step);
  const near = /* @__PURE__ */ new Set([current, ...relations.sources(current)]);
  const planned = [...counts.values()].some((c) => c[1] > 0 || c[2] > 0);
  const waits = (c) => planned ? c[1] > 0 || c[2] > 0 : c[0] > 0;
  const rest = [...counts].filter(([t, c]) => !near.has(t) && waits(c)).map(([t]) => t);
  const order = [...near].filter((t) => counts.has(t)).concat(rest.slice(-MOST_COUNTS).reverse());
  return order.map((t) => {
    const c = counts.get(t) ?? [NEVER, NEVER, NEVER];
    const role = t === current ? "current node" : near.has(t) ? "read by it" : "";
    return { cells: [visible(tracks.name(t)), ...c.map((n) => n === NEVER ? "–" : String(n)), role], marked: t === current, tensor: t };
  });
}

// free.js
var freeDetail = tableDetail({
  name: "free",
  title: "Free list",
  track: "block",
  columns: [{ head: "block" }, { head: "offset", right: true }, { head: "size", right: true }, { head: "how it came" }, { head: "in this search" }],
  widths: "38px minmax(54px, 0.7fr) minmax(62px, 0.8fr) minmax(0, 1.1fr) minmax(0, 1.4fr)",
  rows: freeRows,
  empty: "No free block at this step: the allocator has none before a plan begins (galloc.reserve, galloc.alloc_graph)."
});
function searchedAt({ tracks }, step) {
  const said = /* @__PURE__ */ new Map();
  const kind = (i) => tracks.kindOf(i).name;
  let from = step;
  while (from > 0 && (kind(from) === "BlockConsidered" || kind(from) === "BlockChosen")) from--;
  if (kind(from) !== "SearchBegin") return said;
  for (let i = from + 1; i <= step; i++) {
    const key = `${tracks.field(i, "chunk")} ${tracks.field(i, "offset")}`;
    const words = kind(i) === "BlockChosen" ? `chosen: ${tracks.field(i, "rule")}` : `${i - from}: ${tracks.field(i, "verdict")}`;
    said.set(key, visible(words));
  }
  return said;
}
function originOf({ tracks }, row) {
  const since = tracks.track("block").a[row];
  const node = tracks.node[since];
  const who = node >= 0 ? visible(tracks.name(node)) : "";
  switch (tracks.kindOf(since).name) {
    case "BlockInserted":
      return who ? `freed after ${who}` : "freed";
    case "BlockMerged":
      return who ? `merged after ${who}` : "merged";
    case "BlockSplit":
    case "BlockChosen":
      return who ? `left over by ${who}` : "left over";
    default:
      return "there from the start";
  }
}
function freeRows(player, step) {
  const { tracks } = player;
  const track = tracks.track("block");
  const [chunk, offset, size, owner] = ["chunk", "offset", "size", "owner"].map((n) => track.col(n));
  const rows = track.openAt(step).filter((r) => owner[r] < 0);
  rows.sort((p, q) => chunk[p] - chunk[q] || offset[p] - offset[q]);
  const [atChunk, atOffset] = [tracks.field(step, "chunk"), tracks.field(step, "offset")];
  const said = searchedAt(player, step);
  let block = 0;
  return rows.map((r, k) => {
    block = k > 0 && chunk[rows[k - 1]] === chunk[r] ? block + 1 : 0;
    const open = size[r] < 0 || size[r] > 2 ** 50;
    const marked = chunk[r] === atChunk && offset[r] === atOffset;
    const place3 = rows.some((q) => chunk[q] !== chunk[r]) ? `${chunk[r]}.${block}` : String(block);
    const words = said.get(`${chunk[r]} ${offset[r]}`) ?? "";
    return { cells: [place3, String(offset[r]), open ? "to the end" : formatBytes(size[r]), originOf(player, r), words], marked, titled: true };
  });
}

// plans.js
var MAX_CHUNKS = 16;
var FAR_LESS = 0.7;
var PADDING = 256;
function chunkNumber(plan, allocator, chunk) {
  return Math.max(0, plan.allocators.indexOf(allocator)) * MAX_CHUNKS + chunk;
}
function chunkName(plan, number) {
  const chunk = `chunk ${number % MAX_CHUNKS}`;
  return plan.allocators.length > 1 ? `buffer ${Math.floor(number / MAX_CHUNKS)}, ${chunk}` : chunk;
}
function graphWords(tracks, graph) {
  const { columns } = tracks;
  const ptr = columns.column("graph.leaf_ptr");
  for (const t of columns.column("graph.leaf").subarray(ptr[graph] ?? 0, ptr[graph + 1] ?? 0)) {
    if (tracks.name(t) !== "inp_tokens") continue;
    const n = tracks.ne(t)[0];
    return `graph ${graph} (${n} token${n === 1 ? "" : "s"})`;
  }
  return `graph ${graph}`;
}
function planWords(tracks, plan, bound) {
  const { size, graph } = plan.buffers;
  const least = bound ? `; lower bound ${formatBytes(bound)}` : "";
  if (!size) return `Needs ${formatBytes(plan.used)}; no buffer is allocated for it${least}`;
  const own = graph >= 0 && graph !== plan.graph ? `, reserved for ${graphWords(tracks, graph)}` : "";
  const takes = plan.used >= size ? "this plan uses all of it" : `this plan uses up to ${formatBytes(plan.used)}`;
  return `Buffer ${formatBytes(size)}${own}; ${takes}${least}`;
}
function readPlans(tracks) {
  const life = tracks.track("life");
  const planOf2 = life.col("plan");
  const rows = /* @__PURE__ */ new Map();
  for (let r = 0; r < life.length; r++) {
    const list = rows.get(planOf2[r]);
    if (list) list.push(r);
    else rows.set(planOf2[r], [r]);
  }
  const sorted = [...rows].sort((p, q) => p[0] - q[0]);
  const openers = [tracks.kindNamed.ReserveBegin?.index, tracks.kindNamed.AllocGraphBegin?.index];
  let before = -1;
  const begins = sorted.map(([, list]) => {
    const first = life.a[list[0]];
    const opened = tracks.find(first + 1, -1, (i) => i <= before || openers.includes(tracks.kind[i]));
    return before = opened > before ? opened : first;
  });
  return sorted.map(([plan, list], k) => readPlan(tracks, plan, list, begins[k], begins[k + 1] ?? tracks.n));
}
function readPlan(tracks, plan, list, begin, end) {
  const life = tracks.track("life");
  const [offset, size, chunk, first, last, tensor] = ["offset", "size", "chunk", "first", "last", "tensor"].map((c) => life.col(c));
  const extents = /* @__PURE__ */ new Map();
  let positions = 1;
  const rowOf = /* @__PURE__ */ new Map();
  for (const r of list) {
    extents.set(chunk[r], Math.max(extents.get(chunk[r]) ?? 0, offset[r] + size[r]));
    positions = Math.max(positions, last[r] + 1, first[r] + 1);
    rowOf.set(tensor[r], r);
  }
  const allocators = allocatorsOf(tracks, list);
  const sizes = chunkSizes(tracks, begin, end, allocators);
  let total = 0;
  let used = 0;
  const chunks = [...extents].sort((p, q) => p[0] - q[0]).map(([number, extent]) => {
    const whole2 = Math.max(sizes.get(number) ?? 0, extent);
    const entry = { chunk: number, base: total, size: extent < FAR_LESS * whole2 ? extent : whole2, whole: whole2 };
    total += entry.size;
    used += whole2 - extent < PADDING ? whole2 : extent;
    return entry;
  });
  const top = list.reduce((best, r) => offset[r] + size[r] > offset[best] + size[best] ? r : best, list[0]);
  const peakPosition = first[top];
  const atPeak = list.filter((r) => first[r] <= peakPosition && last[r] >= peakPosition).sort((p, q) => size[q] - size[p]);
  return {
    plan,
    graph: tracks.field(begin, "graph") ?? -1,
    allocators,
    begin,
    end,
    rows: Int32Array.from(list),
    rowOf,
    positions,
    chunks,
    size: total,
    whole: chunks.reduce((sum, entry) => sum + entry.whole, 0),
    used,
    buffers: buffersOf(tracks, begin, end),
    top,
    peakPosition,
    atPeak
  };
}
function allocatorsOf(tracks, list) {
  const life = tracks.track("life");
  const [chunk, allocator] = [life.col("chunk"), life.col("allocator")];
  const found = [];
  for (const r of list) if (allocator[r] >= 0) found[Math.floor(chunk[r] / MAX_CHUNKS)] = allocator[r];
  return Array.from(found, (a) => a ?? -1);
}
function chunkSizes(tracks, begin, end, allocators) {
  const track = tracks.track("chunk");
  const [chunk, size, allocator] = ["chunk", "size", "allocator"].map((c) => track.col(c));
  const sizes = /* @__PURE__ */ new Map();
  for (let r = 0; r < track.length && track.a[r] < end; r++) {
    const buffer = allocators.indexOf(allocator[r]);
    if (track.b[r] <= begin || buffer < 0) continue;
    const number = buffer * MAX_CHUNKS + chunk[r];
    sizes.set(number, Math.max(sizes.get(number) ?? 0, size[r]));
  }
  return sizes;
}
function buffersOf(tracks, begin, end) {
  const track = tracks.track("buffer");
  const size = track.col("size");
  const galloc = tracks.field(begin, "galloc") ?? -1;
  const told = track.openAt(Math.min(end, tracks.n) - 1).filter((r) => track.str("usage", r) === "compute");
  const all = told.map((r) => {
    const cause = tracks.cause[track.a[r]];
    const reserve = cause >= 0 && tracks.kindOf(cause).name === "ReserveBegin" ? cause : -1;
    return { size: size[r], reserve, galloc: reserve < 0 ? -1 : tracks.field(reserve, "galloc") };
  });
  const own = all.filter((b) => b.galloc === galloc);
  const standing = own.length ? own : all;
  const last = standing.reduce((most, b) => Math.max(most, b.reserve), -1);
  return {
    size: standing.reduce((sum, b) => sum + b.size, 0),
    reserve: last,
    graph: last < 0 ? -1 : tracks.field(last, "graph")
  };
}

// relations.js
var Relations = class {
  /** @param {Tracks} tracks */
  constructor(tracks) {
    this.tracks = tracks;
    this.kept = {};
  }
  /** @template T @param {string} key @param {() => T} make @returns {T} */
  keep(key, make) {
    return this.kept[key] ??= make();
  }
  /** Tensors that `t` reads, in slot order. @param {number} t @returns {Int32Array} */
  sources(t) {
    return neighbours(this.keep("sources", () => this.adjacency("edge.dst", "edge.src")), t);
  }
  /** Tensors that read `t`. @param {number} t @returns {Int32Array} */
  consumers(t) {
    return neighbours(this.keep("consumers", () => this.adjacency("edge.src", "edge.dst")), t);
  }
  /** @param {string} from @param {string} to */
  adjacency(from, to) {
    const { columns, nTensors } = this.tracks;
    const keys = columns.column(from);
    const values = columns.column(to);
    const ptr = new Uint32Array(nTensors + 1);
    for (let e = 0; e < keys.length; e++) ptr[keys[e] + 1]++;
    for (let t = 0; t < nTensors; t++) ptr[t + 1] += ptr[t];
    const next = ptr.slice();
    const list = new Int32Array(keys.length);
    for (let e = 0; e < keys.length; e++) list[next[keys[e]]++] = values[e];
    return { ptr, list };
  }
  /** The tensor whose memory `t` looks at: itself, unless it is a view. @param {number} t */
  root(t) {
    const viewSrc = this.tracks.columns.column("tensor.view_src");
    let at = t;
    for (let hops = 0; hops < 64 && viewSrc[at] >= 0; hops++) at = viewSrc[at];
    return at;
  }
  /** For each tensor the graph it is a node (else a leaf) of and its position in execution order, -1 where none. */
  get home() {
    return this.keep("home", () => {
      const { columns, nTensors } = this.tracks;
      const graph = new Int32Array(nTensors).fill(-1);
      const position = new Int32Array(nTensors).fill(-1);
      const ptr = columns.column("graph.ptr");
      const nodes = columns.column("graph.node");
      const leafPtr = columns.column("graph.leaf_ptr");
      const leafs = columns.column("graph.leaf");
      for (let g = 0; g + 1 < ptr.length; g++) {
        for (let k = ptr[g]; k < ptr[g + 1]; k++) {
          graph[nodes[k]] = g;
          position[nodes[k]] = k - ptr[g];
        }
        for (let k = leafPtr[g]; k < leafPtr[g + 1]; k++) if (graph[leafs[k]] < 0) graph[leafs[k]] = g;
      }
      return { graph, position };
    });
  }
  /** For each event the node last worked at and the graph last spoken of, -1 before the first. */
  get focus() {
    return this.keep("focus", () => {
      const { tracks } = this;
      const graphs = tracks.kinds.map((kind) => {
        const field = kind.fields.find(([, type]) => type === "graph");
        return field ? tracks.columns.column(`k.${kind.name}.${field[0]}`) : null;
      });
      const home = this.home.graph;
      const node = new Int32Array(tracks.n);
      const graph = new Int32Array(tracks.n);
      const whole2 = tracks.columns.column("graph.part_of");
      for (let i = 0, n = -1, g = -1; i < tracks.n; i++) {
        const at = tracks.node[i];
        if (at >= 0) n = at;
        const said = graphs[tracks.kind[i]]?.[tracks.row[i]];
        if (said !== void 0) g = whole2[said] >= 0 ? whole2[said] : said;
        else if (at >= 0 && home[at] >= 0 && home[at] !== g && this.home.position[at] >= 0 && !this.has(g, at)) g = home[at];
        node[i] = n;
        graph[i] = g;
      }
      return { node, graph };
    });
  }
  /** Whether `t` is a node of a graph. @param {number} graph @param {number} t @returns {boolean} */
  has(graph, t) {
    if (graph < 0) return false;
    return this.keep(`nodes ${graph}`, () => {
      const ptr = this.tracks.columns.column("graph.ptr");
      return new Set(this.tracks.columns.column("graph.node").subarray(ptr[graph], ptr[graph + 1]));
    }).has(t);
  }
  /** The tensor in the middle of attention at event `i`, or -1. @param {number} i */
  tensorAt(i) {
    const node = this.tracks.node[i];
    return node >= 0 ? node : this.tracks.tensorOf(i);
  }
  /** Where event `i` stands in the execution order, or -1. @param {number} i */
  positionAt(i) {
    const node = this.focus.node[i];
    return node < 0 ? -1 : this.home.position[node];
  }
  /** The memory plans in the order in which they were made. @returns {Plan[]} */
  get plans() {
    return this.keep("plans", () => readPlans(this.tracks));
  }
  /** The plan that holds at event `i`, or null where none was made. @param {number} i @returns {Plan | null} */
  planAt(i) {
    const { plans } = this;
    const starts = this.keep("planStarts", () => plans.map((plan) => plan.begin));
    return plans[Math.max(0, upperBound(starts, i) - 1)] ?? null;
  }
  /** The life row of tensor `t` in the plan that holds at `i`: its own, or its twin's at the same position; -1 none.
   * @param {number} t @param {number} i */
  lifeRow(t, i) {
    const plan = this.planAt(i);
    if (!plan || t < 0) return -1;
    const root = this.root(t);
    return plan.rowOf.get(root) ?? -1;
  }
  /** Every tensor that `t` is computed from. @param {number} t @returns {Set<number>} */
  ancestors(t) {
    const seen = /* @__PURE__ */ new Set([t]);
    const todo = [t];
    while (todo.length) {
      for (const s of this.sources(
        /** @type {number} */
        todo.pop()
      )) {
        if (!seen.has(s)) {
          seen.add(s);
          todo.push(s);
        }
      }
    }
    seen.delete(t);
    return seen;
  }
};
function neighbours({ ptr, list }, t) {
  return t < 0 ? list.subarray(0, 0) : list.subarray(ptr[t], ptr[t + 1]);
}

// tensor_facts.js
function shapeOf(tracks, t) {
  const table = (name) => tracks.columns.column(`tensor.${name}`);
  return {
    ne: Array.from(tracks.ne(t)),
    nb: Array.from(table("nb").subarray(4 * t, 4 * t + 4)),
    blck: table("blck_size")[t] ?? 1,
    size: table("type_size")[t] ?? 0
  };
}
function isContiguous({ ne, nb, blck, size }, from) {
  if (ne[0] !== blck && nb[0] !== size) return false;
  let next = size * Math.floor(ne[0] / blck);
  for (let d = 1; d < 4; d++) {
    if (d > from) {
      if (ne[d] !== 1 && nb[d] !== next) return false;
      next *= ne[d];
    } else {
      next = ne[d] * nb[d];
    }
  }
  return true;
}
function layoutOf(shape) {
  const { ne, nb, blck, size } = shape;
  return {
    contiguous: isContiguous(shape, 0),
    contiguous_1: isContiguous(shape, 1),
    contiguous_2: isContiguous(shape, 2),
    contiguous_rows: ne[0] === blck || nb[0] === size,
    permuted: nb[0] > nb[1] || nb[1] > nb[2] || nb[2] > nb[3],
    transposed: nb[0] > nb[1]
  };
}
function layoutWords(layout) {
  if (layout.contiguous) return "contiguous: no gaps";
  if (layout.transposed) return "transposed: nb[0] > nb[1]";
  if (layout.permuted) return "permuted: strides out of order";
  return layout.contiguous_rows ? "rows contiguous, gaps between" : "strided: gaps within rows";
}
function walkOf({ ne, nb, blck, size }) {
  const steps = ne.map((n, d) => ({ dim: d, nb: nb[d], n: d === 0 ? Math.ceil(n / blck) : n })).filter((s) => s.n > 1);
  let inner = size;
  return steps.sort((p, q) => p.nb - q.nb || p.dim - q.dim).map((step) => {
    const jump = { ...step, inner };
    inner += (step.n - 1) * step.nb;
    return jump;
  });
}
function eventsOf2({ tracks, relations }, kind, field, t) {
  const index = relations.keep(`events ${kind}.${field}`, () => {
    const known = tracks.kindNamed[kind];
    const names = tracks.columns.column(`k.${kind}.${field}`);
    const ptr = new Uint32Array(tracks.nTensors + 1);
    for (let r = 0; r < names.length; r++) if (names[r] >= 0) ptr[names[r] + 1]++;
    for (let k = 0; k < tracks.nTensors; k++) ptr[k + 1] += ptr[k];
    const next = ptr.slice();
    const list = new Int32Array(names.length);
    if (known && names.length) {
      for (let i = 0, r = 0; i < tracks.n && r < names.length; i++) {
        if (tracks.kind[i] !== known.index) continue;
        if (names[r] >= 0) list[next[names[r]]++] = i;
        r++;
      }
    }
    return { ptr, list };
  });
  return index.list.subarray(index.ptr[t], index.ptr[t + 1]);
}
function nearest(events, step, from = 0, to = Infinity) {
  let found = -1;
  for (let k = 0; k < events.length; k++) {
    const i = events[k];
    if (i < from || i >= to) continue;
    if (i > step && found >= 0) break;
    found = i;
    if (i > step) break;
  }
  return found;
}
function rowsOf({ tracks, relations }, name, t) {
  const { ptr, list } = relations.keep(`rows ${name}`, () => {
    const track = tracks.track(name);
    const tensor = track.col("tensor");
    const starts = new Uint32Array(tracks.nTensors + 1);
    for (let r = 0; r < track.length; r++) if (tensor[r] >= 0) starts[tensor[r] + 1]++;
    for (let k = 0; k < tracks.nTensors; k++) starts[k + 1] += starts[k];
    const next = starts.slice();
    const rows = new Int32Array(track.length);
    for (let r = 0; r < track.length; r++) if (tensor[r] >= 0) rows[next[tensor[r]]++] = r;
    return { ptr: starts, list: rows };
  });
  return list.subarray(ptr[t], ptr[t + 1]);
}
function rowAt(player, name, t, step) {
  const rows = rowsOf(player, name, t);
  const { a, b } = player.tracks.track(name);
  for (let k = rows.length - 1; k >= 0; k--) if (a[rows[k]] <= step) return b[rows[k]] > step ? rows[k] : -1;
  return -1;
}
function wasThere(player, name, t, step) {
  const rows = rowsOf(player, name, t);
  return rows.length > 0 && player.tracks.track(name).a[rows[0]] <= step;
}
function chainOf(player, t) {
  const { tracks, relations } = player;
  const viewSrc = tracks.columns.column("tensor.view_src");
  const made = relations.keep("view rows", () => {
    const tensor = tracks.columns.column("k.ViewCreated.tensor");
    return new Map(Array.from(tensor, (view, row) => (
      /** @type {const} */
      [view, row]
    )));
  });
  const askedSrc = tracks.columns.column("k.ViewCreated.asked_src");
  const askedOffs = tracks.columns.column("k.ViewCreated.asked_offs");
  const asked = [];
  for (let at = t; asked.length < 16; ) {
    const row = made.get(at);
    if (row === void 0 || askedSrc[row] < 0) break;
    at = askedSrc[row];
    asked.push({ tensor: at, offs: askedOffs[row] });
  }
  const flat = viewSrc[t] >= 0 ? { tensor: viewSrc[t], offs: tracks.columns.column("tensor.view_offs")[t] } : null;
  return { asked: asked.length || !flat ? asked : [flat], flat };
}
function planOf({ plans }, t, step) {
  let found = null;
  for (const plan of plans) {
    if (!plan.rowOf.has(t)) continue;
    if (plan.begin > step && found) break;
    found = plan;
  }
  return found;
}
function lifeAt(player, t, step) {
  const { tracks, relations } = player;
  const root = relations.root(t);
  const plan = planOf(relations, root, step);
  const row = plan?.rowOf.get(root);
  if (!plan || row === void 0) return null;
  const [from, to] = windowOf(relations, plan, tracks.n);
  const fixed2 = relations.keep(`life ${row}`, () => neighboursOf(tracks, plan, row));
  const life = tracks.track("life");
  const cell2 = (name) => life.col(name)[row];
  const assigned = nearest(eventsOf2(player, "TensorAssigned", "tensor", root), step, from, to);
  const searched = nearest(eventsOf2(player, "SearchBegin", "tensor", root), step, from, to);
  return {
    ...fixed2,
    offset: cell2("offset"),
    size: cell2("size"),
    padded: searched >= 0 ? tracks.field(searched, "size") : -1,
    where: chunkName(plan, cell2("chunk")),
    first: cell2("first"),
    last: cell2("last"),
    positions: plan.positions,
    reuses: cell2("reuses"),
    freedBy: cell2("freed_by"),
    freedAt: nearest(eventsOf2(player, "TensorFreed", "tensor", root), step, from, to),
    twinFreedAt: twinFreed(player, root, plan.begin),
    assignedAt: assigned >= 0 ? assigned : nearest(eventsOf2(player, "ParentReused", "tensor", root), step, from, to)
  };
}
function twinFreed(player, t, before) {
  const { tracks, relations } = player;
  const { graph, position } = relations.home;
  if (graph[t] < 0 || position[t] < 0) return -1;
  return relations.keep(`twin of ${t} before ${before}`, () => {
    const ptr = tracks.columns.column("graph.ptr");
    const nodes = tracks.columns.column("graph.node");
    const count = (g) => ptr[g + 1] - ptr[g];
    for (let i = before; i >= 0; i--) {
      if (tracks.kindOf(i).name !== "ReserveBegin") continue;
      const g = tracks.field(i, "graph");
      if (g < 0 || g === graph[t] || count(g) !== count(graph[t])) continue;
      const twin = nodes[ptr[g] + position[t]];
      if (tracks.name(twin) !== tracks.name(t)) continue;
      const freed = nearest(eventsOf2(player, "TensorFreed", "tensor", twin), tracks.n, i);
      if (freed >= 0) return freed;
    }
    return -1;
  });
}
function windowOf({ plans }, plan, n) {
  return [plan.begin, plans[plans.indexOf(plan) + 1]?.begin ?? n];
}
function neighboursOf(tracks, plan, row) {
  const life = tracks.track("life");
  const [chunk, offset, size, first, last, tensor, reuses] = ["chunk", "offset", "size", "first", "last", "tensor", "reuses"].map((c) => life.col(c));
  const heirs = [];
  let [before, after] = [-1, -1];
  for (const r of plan.rows) {
    if (r === row || chunk[r] !== chunk[row]) continue;
    if (reuses[r] === tensor[row]) heirs.push(tensor[r]);
    if (offset[r] >= offset[row] + size[row] || offset[r] + size[r] <= offset[row]) continue;
    if (last[r] < first[row] && (before < 0 || last[r] > last[before])) before = r;
    if (first[r] > last[row] && (after < 0 || first[r] < first[after])) after = r;
  }
  return { heirs, before: before < 0 ? -1 : tensor[before], after: after < 0 ? -1 : tensor[after] };
}
function placeAt(player, t, step) {
  const { tracks } = player;
  const row = rowAt(player, "place", t, step);
  if (row < 0) return null;
  const place3 = tracks.track("place");
  const buffers = tracks.track("buffer");
  const buffer = place3.col("buffer")[row];
  const held = buffers.openAt(step).find((r) => buffers.col("buffer")[r] === buffer);
  const name = held === void 0 ? "" : buffers.str("buft", held);
  return { buffer, name, offset: place3.col("offset")[row], size: place3.col("size")[row] };
}
function valuesAt({ tracks, relations }, t, step) {
  const events = tracks.columns.column("v.event");
  const rows = relations.keep("value rows", () => {
    const made = /* @__PURE__ */ new Map();
    tracks.columns.column("v.tensor").forEach((tensor, r) => {
      const list = made.get(tensor);
      if (list) list.push(r);
      else made.set(tensor, [r]);
    });
    return made;
  }).get(t);
  if (!rows) return null;
  let row = rows[0];
  for (const r of rows) if (events[r] <= step + 1) row = r;
  const event = Math.max(0, events[row] - 1);
  const evaluations = tracks.track("eval");
  const open = evaluations.openAt(event);
  return { row, event, evaluation: open.length ? evaluations.col("index")[open[0]] : -1, later: event > step };
}

// stride_walk.js
var [COLUMNS2, ROWS, SLABS] = [4, 4, 2];
var [CELL, GAP, TOP, LEFT] = [22, 18, 32, 12];
var [BAR, BAR_ROW] = [14, 31];
var BARS_TOP = TOP + ROWS * CELL + 26;
var STEPS = 5;
var LETTER = 10.5 * 0.602;
var WALK_HEIGHT = BARS_TOP + 4 * BAR_ROW;
var StrideWalk = class {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.player = player;
    this.shape = null;
    this.cells = [];
    this.drawn = "";
    this.surface = new Surface("Strides", () => {
      this.drawn = "";
      player.redraw(pane);
    });
    this.element = this.surface.box;
    this.element.classList.add("vg-plot");
    this.element.style.height = `${WALK_HEIGHT}px`;
    for (
      const name of
      /** @type {const} */
      ["pointermove", "pointerdown"]
    ) this.element.addEventListener(name, (event) => this.point(event));
    this.element.addEventListener("pointerleave", () => player.tip.hide());
  }
  invalidate() {
    this.drawn = "";
  }
  /** @param {Shape} shape */
  draw(shape) {
    const { surface, player } = this;
    const key = JSON.stringify(shape);
    if (key === this.drawn || surface.width < 10) return;
    this.drawn = key;
    this.shape = shape;
    this.cells = placeCells(shape, surface.width);
    surface.canvas.setAttribute("aria-label", describe(shape));
    const c = surface.begin();
    c.fillStyle = player.palette.page;
    c.fillRect(0, 0, surface.width, surface.height);
    paintCells(player, c, shape, this.cells);
    paintJumps(player, c, shape, surface.width);
  }
  /** @param {PointerEvent} event */
  point(event) {
    const { player, shape } = this;
    const cell2 = this.cells.find((k) => event.offsetX >= k.x && event.offsetX < k.x + k.w && event.offsetY >= k.y && event.offsetY < k.y + k.h);
    if (!cell2 || !shape) return player.tip.hide();
    const head = shape.blck > 1 ? `block ${cell2.at[0]} of row [${cell2.at.slice(1, 3).join(", ")}]` : `element [${cell2.at.slice(0, 3).join(", ")}]`;
    const sum = cell2.at.map((i, d) => i ? `${i} x ${shape.nb[d]}` : "").filter(Boolean).join(" + ");
    const pairs = [["at byte", sum ? `${sum} = ${cell2.byte}` : "0"]];
    if (shape.blck > 1) pairs.push(["elements", `${cell2.at[0] * shape.blck} to ${(cell2.at[0] + 1) * shape.blck - 1}, ${shape.size} bytes`]);
    player.tip.show(this.element, event.offsetX, event.offsetY, head, pairs);
  }
  stop() {
    this.surface.stop();
  }
};
function dimensionsShown({ ne }) {
  const more2 = [1, 2, 3].filter((d) => ne[d] > 1);
  return { down: more2[0] ?? 1, slab: more2[1] ?? 2 };
}
function placeCells(shape, width) {
  const { ne, nb, blck } = shape;
  const { down, slab } = dimensionsShown(shape);
  const across = Math.min(COLUMNS2, Math.ceil(ne[0] / blck));
  const slabs = Math.min(SLABS, ne[slab]);
  const w = Math.min(64, Math.floor((width - 2 * LEFT - (SLABS - 1) * GAP) / (SLABS * COLUMNS2)));
  const cells = [];
  for (let s = 0; s < slabs; s++) {
    for (let j = 0; j < Math.min(ROWS, ne[down]); j++) {
      for (let i = 0; i < across; i++) {
        const at = [i, 0, 0, 0];
        at[down] = j;
        if (slabs > 1) at[slab] = s;
        const byte = at.reduce((sum, k, d) => sum + k * nb[d], 0);
        cells.push({ x: LEFT + s * (COLUMNS2 * w + GAP) + i * w, y: TOP + j * CELL, w, h: CELL, at, byte });
      }
    }
  }
  return cells;
}
function paintCells({ palette, fonts }, c, shape, cells) {
  const { down, slab } = dimensionsShown(shape);
  const order = [...cells].sort((p, q) => p.byte - q.byte);
  c.textBaseline = "middle";
  c.textAlign = "left";
  c.font = `10.5px ${fonts.ui}`;
  c.fillStyle = palette.soft;
  const what = shape.blck > 1 ? `blocks of ${shape.blck}` : "elements";
  const slabs = cells.some((cell2) => cell2.at[slab] > 0);
  c.fillText(`the byte where each of the first ${what} begins`, LEFT, 8);
  c.fillText(`i0 to the right, i${down} down${slabs ? `, i${slab} beside` : ""}`, LEFT, 23);
  order.forEach((cell2, k) => {
    const { x, y, w, h } = cell2;
    c.globalAlpha = 0.12 + 0.5 * (k / Math.max(1, order.length - 1));
    c.fillStyle = palette.source;
    c.fillRect(x, y, w - 1, h - 1);
    c.globalAlpha = 1;
  });
  paintWay(palette, c, order);
  c.textAlign = "center";
  c.font = `10.5px ${fonts.mono}`;
  c.fillStyle = palette.ink;
  for (const cell2 of cells) {
    const text = byteLabel(cell2.byte, cell2.w);
    c.fillText(text, cell2.x + cell2.w / 2 - 0.5, cell2.y + cell2.h / 2);
  }
  c.textAlign = "left";
}
function byteLabel(byte, room) {
  const text = String(byte);
  return text.length * LETTER < room - 3 ? text : formatBytes(byte).replace(/(\.\d)?\d* (.)iB/, "$1$2").replace(" B", "");
}
function paintWay(palette, c, order) {
  const down = order.length > 1 && order[1].y > order[0].y;
  const x = (k) => down ? k.x + 6.5 : k.x + k.w / 2 - 0.5;
  const y = (k) => down ? k.y + k.h / 2 : k.y + k.h - 4;
  c.strokeStyle = palette.accent;
  c.fillStyle = palette.accent;
  c.lineWidth = 1;
  const ways = [0, 1].map(() => [new Path2D(), new Path2D()]);
  order.slice(1).forEach((to, k) => {
    const from = order[k];
    const [dx, dy] = [x(to) - x(from), y(to) - y(from)];
    const length = Math.hypot(dx, dy) || 1;
    const near = Math.abs(dy) < 1 && dx > 0 && dx < to.w + 1;
    const [line, head] = ways[near || Math.abs(dx) < 1 && Math.abs(dy) < CELL + 1 ? 0 : 1];
    const [ux, uy] = [dx / length, dy / length];
    const [ex, ey] = [x(to) - 3 * ux, y(to) - 3 * uy];
    line.moveTo(x(from) + 3 * ux, y(from) + 3 * uy);
    line.lineTo(ex, ey);
    head.moveTo(ex + 3 * ux, ey + 3 * uy);
    head.lineTo(ex - 2.5 * uy - 2 * ux, ey + 2.5 * ux - 2 * uy);
    head.lineTo(ex + 2.5 * uy - 2 * ux, ey - 2.5 * ux - 2 * uy);
  });
  ways.forEach(([line, head], k) => {
    c.globalAlpha = k ? 0.3 : 0.9;
    c.stroke(line);
    c.fill(head);
  });
  c.globalAlpha = 1;
}
function paintJumps({ palette, fonts }, c, shape, width) {
  const jumps = walkOf(shape);
  c.textBaseline = "middle";
  c.font = `10.5px ${fonts.ui}`;
  c.fillStyle = palette.soft;
  if (!jumps.length) return c.fillText("one element: nothing to walk", LEFT, BARS_TOP + 8);
  jumps.forEach((jump, k) => {
    const top = BARS_TOP + k * BAR_ROW;
    const shown = Math.min(STEPS, jump.n);
    const box = Math.min(64, (width - 2 * LEFT - 24) / STEPS);
    const gap = jump.nb - jump.inner;
    const unit = jump.dim === 0 && shape.blck > 1 ? `${jump.n} blocks` : `${jump.n} steps`;
    c.fillStyle = palette.ink;
    c.font = `600 10.5px ${fonts.ui}`;
    const name = `nb[${jump.dim}] = ${jump.nb}`;
    c.fillText(name, LEFT, top);
    const after = LEFT + c.measureText(name).width + 6;
    c.font = `10.5px ${fonts.ui}`;
    c.fillStyle = palette.soft;
    c.fillText(`${unit} of ${formatBytes(jump.nb)}${gap > 0 ? `, ${formatBytes(gap)} of each skipped` : gap < 0 ? ", overlapping" : ""}`, after, top);
    for (let s = 0; s < shown; s++) {
      const x = LEFT + s * box;
      c.fillStyle = palette.free;
      c.fillRect(x, top + 8, box - 1, BAR);
      c.fillStyle = palette.source;
      c.globalAlpha = 0.45;
      c.fillRect(x, top + 8, Math.max(1.5, (box - 1) * Math.min(1, jump.inner / jump.nb)), BAR);
      c.globalAlpha = 1;
      c.fillStyle = palette.ink;
      c.fillText(`i${jump.dim} = ${s}`, x + 3, top + 8 + BAR / 2 + 0.5);
    }
    c.fillStyle = palette.soft;
    if (jump.n > shown) c.fillText("...", LEFT + shown * box + 4, top + 8 + BAR / 2);
  });
}
function describe(shape) {
  const jumps = walkOf(shape).map((jump) => `dimension ${jump.dim} in ${jump.n} steps of ${jump.nb} bytes`);
  return jumps.length ? `Memory walks ${jumps.join(", then ")}` : "One element";
}

// theme.js
var LIGHT = {
  page: "#ffffff",
  panel: "#f7f8fa",
  raised: "#ffffff",
  ink: "#1b2330",
  soft: "#596476",
  faint: "#8b95a5",
  line: "#dfe3e9",
  edge: "#aab3c0",
  accent: "#c2410c",
  onAccent: "#ffffff",
  accentWash: "#fdeee6",
  source: "#0072b2",
  consumer: "#8a5a00",
  free: "#eef1f4",
  good: "#00795a",
  bad: "#b3261e",
  onFamily: "#10151d",
  families: ["#3f8fc7", "#c27ba8", "#2f9f80", "#d98a5b", "#d9a12b", "#aab2bf", "#76808f"],
  status: ["#ffffff", "#d3d9e1", "#9aa6b5", "#56b4e9", "#c2410c", "#2f9f80", "#c8cdd5", "#e6dfcf"],
  areas: ["#9aa6b5", "#56b4e9", "#e0a43b", "#2f9f80", "#c27ba8"],
  backends: ["#6f5bb3", "#0e8c99", "#9c7a12", "#a8446c"],
  dark: false
};
var DARK = {
  page: "#12161d",
  panel: "#181d26",
  raised: "#1f2530",
  ink: "#e6eaf1",
  soft: "#a0abbb",
  faint: "#717d8f",
  line: "#2c3441",
  edge: "#566174",
  accent: "#ff8f57",
  onAccent: "#1a1209",
  accentWash: "#3a2519",
  source: "#56b4e9",
  consumer: "#f0c05a",
  free: "#1e242e",
  good: "#3ecfa3",
  bad: "#ff8a80",
  onFamily: "#0b0e13",
  families: ["#4a9fd6", "#c886b0", "#35ab8a", "#dc8f5f", "#d3a23a", "#667184", "#8b96a8"],
  status: ["#12161d", "#3a4352", "#66748a", "#4aa5dc", "#ff8f57", "#35ab8a", "#363f4c", "#514a3a"],
  areas: ["#66748a", "#4aa5dc", "#d3a23a", "#35ab8a", "#c886b0"],
  backends: ["#a48fe3", "#43bcc7", "#cfa94a", "#dc7ba3"],
  dark: true
};
var FAMILIES = [
  "matrix product",
  "norm, soft max",
  "element by element",
  "position",
  "rows, copies",
  "view",
  "leaf"
];
var OPS = [
  "MUL_MAT MUL_MAT_ID OUT_PROD FLASH_ATTN_EXT CONV_2D IM2COL",
  "RMS_NORM NORM GROUP_NORM L2_NORM SOFT_MAX SOFT_MAX_BACK SUM SUM_ROWS MEAN ARGMAX ARGSORT",
  "",
  "ROPE ROPE_BACK TIMESTEP_EMBEDDING DIAG_MASK_INF",
  "GET_ROWS SET_ROWS CPY CONT DUP CONCAT REPEAT PAD SET",
  "VIEW RESHAPE PERMUTE TRANSPOSE",
  "NONE"
];
var FAMILY_OF = new Map(OPS.flatMap((ops, family) => ops.split(" ").map((op) => (
  /** @type {const} */
  [op, family]
))));
var ELEMENTWISE = 2;
function familyOf(op) {
  return FAMILY_OF.get(op || "NONE") ?? ELEMENTWISE;
}
var STATUS = ["not yet met", "visited", "in the graph", "has memory", "computing", "done", "freed", "skipped"];
var AREA_GROUPS = ["other", "building", "planning memory", "computing", "tokens and cache"];
var AREAS = {
  arena: 1,
  tensor: 1,
  graph: 1,
  buffers: 2,
  "free list": 2,
  galloc: 2,
  plan: 2,
  sched: 2,
  compute: 3,
  quant: 3,
  reuse: 4,
  KV: 4,
  tokens: 4
};
function areaGroup(area) {
  return (
    /** @type {Record<string, number>} */
    AREAS[area] ?? 0
  );
}
function watchTheme(root, wanted, changed) {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const find = () => {
    if (wanted === "light" || wanted === "dark") return wanted === "dark";
    const jupyter = document.body?.dataset.jpThemeLight;
    return jupyter === void 0 ? media.matches : jupyter === "false";
  };
  let palette = find() ? DARK : LIGHT;
  apply(root, palette);
  const update = () => {
    const next = find() ? DARK : LIGHT;
    if (next === palette) return;
    palette = next;
    apply(root, palette);
    changed(palette);
  };
  media.addEventListener("change", update);
  const observer = new MutationObserver(update);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  return {
    get palette() {
      return palette;
    },
    stop() {
      media.removeEventListener("change", update);
      observer.disconnect();
    }
  };
}
function apply(root, palette) {
  root.dataset.vgTheme = palette.dark ? "dark" : "light";
  root.style.colorScheme = palette.dark ? "dark" : "light";
  for (const [name, value] of Object.entries(palette)) {
    if (typeof value === "string") root.style.setProperty(`--vg-${name}`, value);
    else if (Array.isArray(value)) value.forEach((v, i) => root.style.setProperty(`--vg-${name}-${i}`, v));
  }
}

// values.js
var FIGURES = ["minimum", "maximum", "mean", "rms", "not finite"];
var MEANINGS = ["", "", "", "root of the mean of the squares", "infinities and NaN, left out of the other figures"];
var ValuesSection = class {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.player = player;
    this.said = new Links();
    this.figures = FIGURES.map(() => el("div", "vg-dd vg-tabular", { role: "definition" }));
    this.map = new HeatMap(player, pane);
    this.histogram = new Histogram(player, pane);
    const pairs = FIGURES.map((name, k) => el("div", "", {}, [el("div", "vg-dt", { role: "term", text: name, title: MEANINGS[k] || void 0 }), this.figures[k]]));
    this.drawn = el("div", "vg-values", {}, [el("div", "vg-figures", {}, pairs), this.map.element, this.histogram.element]);
    this.drawn.hidden = !player.tracks.columns.column("v.event").length;
    this.element = el("section", "vg-part vg-part-values", { "aria-label": "Values", "data-part": "values" }, [el("h4", "", { text: "Values" }), el("p", "vg-values-said", {}, [this.said.element]), this.drawn]);
  }
  /** @param {number} t @param {number} step */
  draw(t, step) {
    const { player } = this;
    const taken2 = valuesAt(player, t, step);
    const shown = taken2 !== null && !taken2.later;
    if (shown) this.drawValues(t, taken2.row);
    this.said.show(this.say(t, taken2));
    this.drawn.classList.toggle("vg-without", !shown);
  }
  /** @param {number} t @param {number} row */
  drawValues(t, row) {
    const { player } = this;
    const { columns } = player.tracks;
    const stats = columns.column("v.stats").subarray(5 * row, 5 * row + 5);
    const ptr = columns.column("v.ptr");
    const [rows, across] = columns.column("v.grid").subarray(2 * row, 2 * row + 2);
    const values = {
      ne: Array.from(player.tracks.ne(t)),
      rows,
      columns: across,
      cells: columns.column("v.val").subarray(ptr[row], ptr[row + 1]),
      stats,
      bins: columns.column("v.bins").subarray(32 * row, 32 * row + 32)
    };
    this.map.draw(values, row);
    this.histogram.draw(values, row);
    this.figures.forEach((figure, k) => setText(figure, k === 4 ? formatCount(stats[k]) : formatValue(stats[k])));
  }
  /** @param {number} t @param {import("./tensor_facts.js").Taken | null} taken @returns {import("./links.js").Item[]} */
  say(t, taken2) {
    const { tracks, relations } = this.player;
    if (!tracks.columns.column("v.event").length) return ["Recorded without values: vg.record(values=True) keeps them."];
    if (!taken2) {
      const root = relations.root(t);
      if (root !== t) return ["A view computes nothing: its bytes are those of", { text: tracks.name(root), tensor: root }];
      return ["None: values are kept of what is computed while recording."];
    }
    const at = { text: `event ${taken2.event}`, event: taken2.event };
    if (taken2.later) return ["Not computed yet at this step: first values after", at];
    return taken2.evaluation >= 0 ? [`Of evaluation ${taken2.evaluation}, taken after`, at] : ["Taken after", at];
  }
  invalidate() {
    this.map.invalidate();
    this.histogram.invalidate();
  }
  stop() {
    this.map.stop();
    this.histogram.stop();
  }
};

// inspector.js
var VIEW_OPS = /* @__PURE__ */ new Set(["VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"]);
var LONG = /* @__PURE__ */ new Set(["asked", "sources", "consumers"]);
var WIDE2 = 620;
var FEW = 6;
var PARTS = (
  /** @type {const} */
  ["strides", "values", "facts", "chain", "life", "kin"]
);
var LATE_MS = 100;
var PREDICATES = (
  /** @type {const} */
  [
    ["contiguous", "ggml_is_contiguous: no gaps between elements"],
    ["contiguous_1", "ggml_is_contiguous_1: no gaps from dimension 2 up; rows may lie apart"],
    ["contiguous_2", "ggml_is_contiguous_2: no gaps in dimension 3"],
    ["contiguous_rows", "ggml_is_contiguous_rows: no gaps within a row"],
    ["permuted", "ggml_is_permuted: the strides do not rise from nb[0] to nb[3]"],
    ["transposed", "ggml_is_transposed: nb[0] is larger than nb[1]"]
  ]
);
var inspectorDetail = {
  name: "tensor",
  title: "Tensor",
  has: () => true,
  make: (player, pane) => new Inspector(player, pane)
};
var Inspector = class {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.player = player;
    this.shown = -1;
    this.rows = {};
    this.allReaders = false;
    this.dotted = -1;
    this.named = this.fixed = this.walked = -1;
    this.known = { t: -1, step: -1, life: null };
    this.unseen = /* @__PURE__ */ new Set();
    this.late = /* @__PURE__ */ new Set();
    this.name = el("h3", "vg-inspector-name vg-mono");
    this.dot = el("span", "vg-status-dot", { "aria-hidden": "true" });
    this.status = el("span");
    this.why = el("span", "vg-soft");
    this.release = el("button", "vg-link", { type: "button", text: "follow the step", title: "Let go of the selection (Esc)" });
    this.line = el("p", "vg-inspector-line");
    this.chips = PREDICATES.map(([, title2]) => el("span", "vg-chip", { title: title2 }));
    this.walk = new StrideWalk(player, pane);
    this.values = new ValuesSection(player, pane);
    this.empty = el("div", "vg-empty", { text: "No tensor at this step. Choose one in the graph, in the memory map, or by a search." });
    this.empty.hidden = true;
    const planned = player.tracks.track("life").length > 0;
    const middle = planned ? [this.makeLife(), this.makeChain()] : [this.makeChain(), this.makeLife()];
    this.left = el("div", "vg-inspector-side", {}, [this.makeFacts(), ...middle, this.makeKin()]);
    this.right = el("div", "vg-inspector-side", {}, [this.makeWalk(), this.values.element]);
    this.sides = el("div", "vg-inspector-sides", {}, [this.left, this.right]);
    this.body = el("div", "vg-inspector-body", {}, [this.makeTitle(), this.makeHead(), this.sides]);
    this.element = el("div", `vg-inspector vg-scroll${planned ? " vg-planned" : ""}`, { tabindex: "-1" }, [this.body, this.empty]);
    this.element.addEventListener("click", (event) => this.onClick(event));
    this.element.addEventListener("pointerover", (event) => hint(
      /** @type {HTMLElement} */
      event.target
    ));
    this.sizer = new ResizeObserver((entries) => this.element.classList.toggle("vg-two", entries[entries.length - 1].contentRect.width >= WIDE2));
    this.sizer.observe(this.element);
    this.watcher = new IntersectionObserver((entries) => this.onSight(entries), { root: this.element, rootMargin: "60px 0px" });
    for (const part of this.body.querySelectorAll("[data-part]")) this.watcher.observe(part);
  }
  // ---- making
  /** It stays in sight, whatever is scrolled to. */
  makeTitle() {
    return el("div", "vg-inspector-title", {}, [this.name, copyButton("the name", () => this.player.tracks.name(this.shown))]);
  }
  makeHead() {
    const { player } = this;
    this.release.addEventListener("click", () => player.select(-1));
    return el("header", "vg-inspector-head", {}, [
      el("div", "vg-inspector-state", {}, [el("span", "vg-key", {}, [this.dot, this.status]), this.why, this.release]),
      this.line
    ]);
  }
  makeFacts() {
    return this.section("facts", "Shape and place", [
      ["type", "type"],
      ["block", "block", "the least that the type can keep"],
      ["ne", "ne", "elements in each dimension"],
      ["nb", "nb", "bytes from one element to the next in each dimension"],
      ["size", "bytes"],
      ["layout", "layout"],
      ["plan", "plan offset", "offset in the chunk, and the size with its padding, as the graph allocator planned them", true],
      ["place", "buffer offset", "where it lies at this step", true],
      ["flags", "flags"]
    ]);
  }
  makeWalk() {
    return el("section", "vg-part vg-part-strides", { "aria-label": "Strides", "data-part": "strides" }, [
      el("h4", "", { text: "Strides: a walk through memory" }),
      this.walk.element,
      el("div", "vg-chips", {}, this.chips)
    ]);
  }
  makeChain() {
    return this.section("chain", "View chain", [
      ["asked", "view of", "what it was made from, step by step"],
      ["flat", "flattened to", "ggml keeps one step: view_src and view_offs"]
    ]);
  }
  makeLife() {
    return this.section("life", "Life", [
      ["made", "created", "in its context: nothing is computed then"],
      ["assigned", "gets memory"],
      ["computed", "computed"],
      ["freed", "freed"],
      ["lives", "lives", "positions in the execution order"],
      ["reuses", "its bytes before", "whose memory it took"],
      ["heirs", "its bytes after", "who took its memory"]
    ]);
  }
  makeKin() {
    return this.section("kin", "Graph", [
      ["sources", "reads"],
      ["consumers", "read by"]
    ]);
  }
  /** A section of named lines. @param {string} name @param {string} title @param {[string, string, string?, boolean?][]} rows name,
   * label, what it means, whether its value can be copied */
  section(name, title2, rows) {
    const cells = rows.flatMap(([key, label, meaning, copied]) => {
      const links = this.rows[key] = new Links();
      const value = el("div", "vg-dd", { role: "definition" }, [links.element]);
      if (copied) value.append(copyButton(`the ${label}`, () => links.copied));
      if (LONG.has(key)) value.classList.add("vg-long");
      return [el("div", "vg-dt", { role: "term", text: label, title: meaning }), value];
    });
    return el("section", `vg-part vg-part-${name}`, { "aria-label": title2, "data-part": name }, [el("h4", "", { text: title2 }), el("div", "vg-facts", {}, cells)]);
  }
  /** @param {MouseEvent} event */
  onClick(event) {
    const link = (
      /** @type {HTMLElement} */
      event.target.closest?.("[data-tensor], [data-event], [data-more]")
    );
    if (!(link instanceof HTMLElement)) return;
    if (link.dataset.tensor) {
      const t = Number(link.dataset.tensor);
      this.player.select(t);
      this.player.pane("graph")?.lookAt(t);
    } else if (link.dataset.event) this.player.go(Number(link.dataset.event));
    else if (link.dataset.more) {
      this.allReaders = true;
      this.drawKin(this.shown, this.player.step);
    }
  }
  // ---- drawing
  /** @param {number} step */
  draw(step) {
    const { player } = this;
    const { selected } = player;
    const t = selected >= 0 ? selected : this.tensorBy(step);
    if (this.body.hidden !== t < 0) {
      this.body.hidden = t < 0;
      this.empty.hidden = t >= 0;
    }
    if (t < 0) return;
    if (t !== this.shown) this.allReaders = false;
    this.shown = t;
    for (const part of PARTS) {
      if (this.unseen.has(part)) this.late.add(part);
      else this.drawPart(part, t, step);
    }
    this.drawHead(t, step);
    if (this.late.size) player.rest.after(this, LATE_MS, () => this.catchUp());
  }
  /** @param {Part} part @param {number} t @param {number} step */
  drawPart(part, t, step) {
    this.late.delete(part);
    switch (part) {
      case "strides":
        return this.drawStrides(t);
      case "values":
        return this.values.draw(t, step);
      case "facts":
        return this.drawFacts(t, step);
      case "chain":
        return this.drawChain(t);
      case "life":
        return this.drawLife(t, step);
      default:
        return this.drawKin(t, step);
    }
  }
  /** What was out of sight while steps came. */
  catchUp() {
    for (const part of [...this.late]) this.drawPart(part, this.shown, this.player.step);
  }
  /** @param {IntersectionObserverEntry[]} entries */
  onSight(entries) {
    for (const entry of entries) {
      const part = (
        /** @type {Part} */
        /** @type {HTMLElement} */
        entry.target.dataset.part
      );
      if (!entry.isIntersecting) this.unseen.add(part);
      else if (this.unseen.delete(part) && this.late.has(part)) this.drawPart(part, this.shown, this.player.step);
    }
  }
  /** The tensor of the newest event that speaks of one. @param {number} step */
  tensorBy(step) {
    const { tracks, relations } = this.player;
    const at = tracks.find(step + 1, -1, (i) => relations.tensorAt(i) >= 0);
    return at < 0 ? -1 : relations.tensorAt(at);
  }
  /** @param {number} t @param {number} step */
  drawFacts(t, step) {
    this.drawPlace(t, step);
    if (t === this.fixed) return;
    this.fixed = t;
    const { tracks } = this.player;
    const shape = shapeOf(tracks, t);
    const bits = 8 * shape.size / shape.blck;
    const per = Number.isInteger(bits) ? bits : bits.toFixed(2).replace(/0$/, "");
    const type = tracks.tensorString("type", t);
    this.show("type", [shape.size ? `${type} (${per} bits ${shape.blck > 1 ? "a weight" : "an element"})` : type]);
    this.show("block", [shape.blck > 1 ? `${shape.blck} elements in ${shape.size} bytes` : `1 element in ${shape.size} byte${shape.size === 1 ? "" : "s"}`]);
    this.show("ne", [`[${shape.ne.join(", ")}]`]);
    this.show("nb", [`[${shape.nb.join(", ")}]`]);
    const elements = shape.ne.reduce((p, n) => p * n, 1);
    this.show("size", [`${formatBytes(tracks.nbytes(t))} for ${elements} element${elements === 1 ? "" : "s"}`]);
    this.show("layout", [layoutWords(layoutOf(shape))]);
    this.show("flags", [formatField(tracks, "flags", tracks.columns.column("tensor.flags")[t] ?? 0)]);
  }
  /** Where it lies, and where it was planned to. @param {number} t @param {number} step */
  drawPlace(t, step) {
    const { player } = this;
    const { tracks, relations } = player;
    const life = this.life(t, step);
    const root = relations.root(t);
    const place3 = placeAt(player, t, step);
    const offs = root === t ? 0 : tracks.columns.column("tensor.view_offs")[t];
    const own = tracks.columns.column("tensor.external")[root] ? "not planned: its own" : "not planned";
    const padded = life && life.padded > life.size ? `, padded to ${formatBytes(life.padded)}` : "";
    this.show("plan", life ? [`${life.offset + offs} of ${life.where}, ${formatBytes(life.size)}${padded}`] : [own], life ? String(life.offset + offs) : "");
    this.show("place", place3 ? [`${place3.offset} of buffer ${place3.buffer}${place3.name ? ` (${place3.name})` : ""}`] : ["no memory at this step"], place3 ? String(place3.offset) : "");
  }
  /** @param {number} t @param {number} step */
  life(t, step) {
    const { known } = this;
    if (known.t !== t || known.step !== step) this.known = { t, step, life: lifeAt(this.player, t, step) };
    return this.known.life;
  }
  /** @param {number} t */
  drawStrides(t) {
    const shape = shapeOf(this.player.tracks, t);
    this.walk.draw(shape);
    if (t === this.walked) return;
    this.walked = t;
    const layout = layoutOf(shape);
    PREDICATES.forEach(([name], k) => {
      const yes = layout[name];
      setText(this.chips[k], `${yes ? "✓" : "✕"} ${name}`);
      this.chips[k].classList.toggle("vg-no", !yes);
      this.chips[k].setAttribute("aria-label", `${name}: ${yes ? "yes" : "no"}`);
    });
  }
  /** @param {number} t */
  drawChain(t) {
    const { asked, flat } = chainOf(this.player, t);
    const link = ({ tensor, offs }) => ({ ...this.tensor(tensor), after: offs ? ` + ${offs} B` : "" });
    this.show("asked", asked.length ? asked.flatMap((one, k) => k ? ["→", link(one)] : [link(one)]) : ["nothing: bytes of its own"]);
    this.show("flat", flat ? [link(flat), asked.length > 1 ? `one step, not ${asked.length}` : "at once"] : ["nothing to flatten"]);
  }
  /** @param {number} t @param {number} step */
  drawHead(t, step) {
    const { player } = this;
    const { tracks } = player;
    const row = rowAt(player, "node", t, step);
    const status = row < 0 ? 0 : tracks.track("node").col("status")[row];
    const leaf = isLeaf(tracks, t);
    const gone = row < 0 && tracks.columns.column("tensor.created")[t] <= step && wasThere(player, "node", t, step);
    setText(this.status, gone ? "gone with its graph" : leaf && (row < 0 || status === 2) ? "a leaf" : STATUS[status]);
    if (this.dotted !== status) this.dot.style.background = `var(--vg-status-${status})`;
    this.dotted = status;
    const chosen = player.selected >= 0;
    setText(this.why, chosen ? "selected:" : player.relations.tensorAt(step) >= 0 ? "of this event" : "of the event before");
    if (this.release.hidden === chosen) this.release.hidden = !chosen;
    if (t === this.named) return;
    this.named = t;
    setText(this.name, visible(tracks.name(t)));
    this.name.title = visible(tracks.name(t));
    setText(this.line, sentenceOf(player, t));
  }
  /** @param {number} t @param {number} step */
  drawLife(t, step) {
    const { player } = this;
    const { tracks, relations } = player;
    const created = tracks.columns.column("tensor.created")[t];
    const life = this.life(t, step);
    const root = relations.root(t);
    this.show("made", created >= 0 ? [this.event(created)] : ["before the recording"]);
    const bytesOf = root === t ? [] : ["with", this.tensor(root)];
    const placed = nearest(eventsOf2(player, "TensorPlaced", "tensor", t), step);
    const given = life && life.assignedAt >= 0 ? life.assignedAt : placed;
    this.show("assigned", given >= 0 ? [this.event(given), ...bytesOf] : bytesOf.length ? bytesOf : ["never in this trace"]);
    this.show("computed", this.computed(t, step));
    this.show("freed", this.freed(life));
    this.show("lives", life ? [`position ${life.first} to ${life.last} of ${life.positions}`, ...bytesOf] : ["for as long as its buffer"]);
    const before = life && (life.reuses >= 0 ? [this.tensor(life.reuses), "in place"] : life.before >= 0 ? [this.tensor(life.before), "after its end"] : null);
    this.show("reuses", before ?? [life ? "nobody's in this plan" : "none"]);
    const heirs = life && (life.heirs.length ? [...life.heirs.map((h) => this.tensor(h)), "in place"] : life.after >= 0 ? [this.tensor(life.after), "after its end"] : null);
    this.show("heirs", heirs ?? [life ? "nobody in this plan" : "none"]);
  }
  /** @param {number} t @param {number} step @returns {Item[]} */
  computed(t, step) {
    const { tracks } = this.player;
    if (isLeaf(tracks, t)) return ["never: a leaf"];
    const begun = nearest(eventsOf2(this.player, "NodeBegin", "tensor", t), step);
    if (begun >= 0) return [this.event(begun)];
    const skipped = nearest(eventsOf2(this.player, "NodeSkipped", "tensor", t), step);
    if (skipped >= 0) return [this.event(skipped), "skipped: nothing to compute"];
    return [VIEW_OPS.has(tracks.tensorString("op", t)) ? "nothing to compute: a view" : "not in this trace"];
  }
  /** @param {ReturnType<typeof lifeAt>} life @returns {Item[]} */
  freed(life) {
    if (!life) return ["not by the plan"];
    if (life.freedBy < 0) return ["by nobody: kept to the end"];
    const after = ["after", this.tensor(life.freedBy)];
    if (life.freedAt >= 0) return [this.event(life.freedAt), ...after];
    return life.twinFreedAt >= 0 ? [...after, "as reserved at", this.event(life.twinFreedAt)] : after;
  }
  /** @param {number} t @param {number} step */
  drawKin(t, step) {
    const { relations } = this.player;
    const list = (all2) => Array.from(all2, (s) => s < 0 ? "none" : this.tensor(s));
    const sources = list(relations.sources(t));
    this.show("sources", sources.length ? sources : ["nothing"]);
    const all = relations.consumers(t);
    const here = all.filter((s) => relations.home.graph[s] === relations.focus.graph[step]);
    const readers = [...new Set(here.length ? here : all)];
    const few2 = this.allReaders || readers.length <= FEW + 1 ? readers : readers.slice(0, FEW);
    const rest = readers.length - few2.length;
    this.show("consumers", readers.length ? [...list(few2), ...rest ? [{ text: `and ${rest} more`, more: "1" }] : []] : ["nobody"]);
  }
  /** @param {string} row @param {Item[]} items @param {string} [copied] what its button copies */
  show(row, items, copied) {
    this.rows[row].show(items, copied);
    const button = (
      /** @type {HTMLElement | null} */
      this.rows[row].element.nextElementSibling
    );
    const seen = copied ? "" : "hidden";
    if (button && button.style.visibility !== seen) button.style.visibility = seen;
  }
  /** @param {number} t @returns {import("./links.js").Link} */
  tensor(t) {
    return { text: visible(this.player.tracks.name(t)), tensor: t };
  }
  /** @param {number} i @returns {import("./links.js").Link} */
  event(i) {
    return { text: `event ${i}`, event: i };
  }
  invalidate() {
    this.walk.invalidate();
    this.values.invalidate();
  }
  stop() {
    this.sizer.disconnect();
    this.watcher.disconnect();
    this.walk.stop();
    this.values.stop();
  }
};
function isLeaf(tracks, t) {
  const op = tracks.tensorString("op", t);
  return op === "" || op === "NONE";
}
function sentenceOf({ tracks, relations }, t) {
  const name = (s) => visible(tracks.name(s));
  const op = tracks.tensorString("op", t);
  const flags = tracks.columns.column("tensor.flags")[t] ?? 0;
  const viewSrc = tracks.columns.column("tensor.view_src")[t];
  if (isLeaf(tracks, t)) {
    if (flags & 1) return `An input: ${formatDims(tracks.ne(t))} numbers written before the graph computes.`;
    return viewSrc >= 0 ? `A view of ${name(viewSrc)}, read as it is.` : "A leaf: its bytes are there before the graph computes, as of a weight or a cache.";
  }
  const shape = formatDims(tracks.ne(t));
  if (VIEW_OPS.has(op)) return `${op}: reads the bytes of ${name(viewSrc >= 0 ? viewSrc : relations.sources(t)[0] ?? -1)} as ${shape}; nothing is computed, no byte moves.`;
  const sources = Array.from(relations.sources(t), name).join(" and ");
  const what = tracks.tensorString("desc", t) || op;
  if (viewSrc >= 0) return `${what} of ${sources}: the result goes into the bytes of ${name(viewSrc)}.`;
  return sources ? `${what} of ${sources} gives ${shape}.` : `${what} gives ${shape}.`;
}

// brush.js
var CLICK = 4;
function listenBrush(view, begin) {
  const { box } = view.surface;
  box.addEventListener("pointerdown", (event) => {
    const drag = event.button ? null : begin(event);
    if (!drag) return;
    box.setPointerCapture(event.pointerId);
    view.brush = drag;
  });
  box.addEventListener("pointermove", (event) => {
    if (!view.brush) return;
    view.brush.to = event.offsetX;
    view.player.redraw(view.pane);
  });
  box.addEventListener("pointerup", () => {
    const { brush } = view;
    view.brush = null;
    if (brush && Math.abs(brush.to - brush.from) >= CLICK) view.zoomBy(brush);
  });
  box.addEventListener("dblclick", () => view.zoomTo(null));
}

// kv_state.js
var NO_ONE = -1;
function cacheAt({ tracks }, step) {
  const said = tracks.kindOf(step).fields.find(([, type]) => type === "cache");
  if (said) return tracks.field(step, said[0]);
  const slot = tracks.track("slot");
  const at = upperBound(slot.a, step) - 1;
  if (at >= 0) return slot.col("cache")[at];
  for (const name of ["slot", "cell", "cache"]) {
    const track = tracks.track(name);
    if (track.length) return track.col("cache")[name === "slot" ? 0 : track.length - 1];
  }
  return NO_ONE;
}
function cachesAt(player, step) {
  const cache = cacheAt(player, step);
  return pairsOf(player).find((pair) => pair.includes(cache)) ?? [cache];
}
function pairsOf({ tracks, relations }) {
  return relations.keep("cache pairs", () => {
    const made = tracks.track("cache");
    const [caches, windows] = ["cache", "n_swa"].map((name) => made.col(name));
    const pairs = [];
    for (let r = 1; r < made.length; r++) if (windows[r] > 0 && windows[r - 1] <= 0) pairs.push([caches[r - 1], caches[r]]);
    return pairs;
  });
}
function shapeOf2({ tracks, relations }, cache) {
  return relations.keep(`cache ${cache}`, () => {
    const made = tracks.track("cache");
    const row = made.col("cache").indexOf(cache);
    const [cells, at, written, layers] = [tracks.track("cell"), tracks.track("cell").col("cell"), tracks.track("kv"), tracks.track("kv").col("layer")];
    const [caches, seqs] = ["cache", "seq"].map((name) => cells.col(name));
    const met = /* @__PURE__ */ new Set();
    let used = 0;
    for (let r = 0; r < cells.length; r++) {
      if (caches[r] !== cache) continue;
      used = Math.max(used, at[r] + 1);
      met.add(seqs[r]);
    }
    let nLayer = 1;
    for (let r = 0; r < written.length && row < 0; r++) nLayer = Math.max(nLayer, layers[r] + 1);
    const [ofCache, numbers] = ["cache", "layer"].map((name) => tracks.columns.column(`cache_layer.${name}`));
    const kept2 = [...numbers].filter((_, r) => ofCache[r] === cache);
    const number = (name) => row < 0 ? 0 : made.col(name)[row];
    return {
      cache,
      nCells: row < 0 ? Math.max(32, used) : number("n_cells"),
      nLayer: row < 0 ? nLayer : number("n_layer"),
      layers: kept2.length ? kept2 : Array.from({ length: row < 0 ? nLayer : number("n_layer") }, (_, il) => il),
      window: row < 0 ? 0 : number("n_swa"),
      typeK: row < 0 ? "" : made.str("type_k", row),
      typeV: row < 0 ? "" : made.str("type_v", row),
      bytesK: number("nbytes_k"),
      bytesV: number("nbytes_v"),
      nHead: headsOf(tracks, cache, "n_head"),
      nHeadKv: headsOf(tracks, cache, "n_head_kv"),
      used,
      seqs: [...met].sort((p, q) => p - q)
    };
  });
}
function headsOf(tracks, cache, name) {
  const [caches, values] = [tracks.columns.column("cache_layer.cache"), tracks.columns.column(`cache_layer.${name}`)];
  let [least, most] = [Infinity, 0];
  for (let r = 0; r < caches.length; r++) {
    if (caches[r] !== cache || !values[r]) continue;
    least = Math.min(least, values[r]);
    most = Math.max(most, values[r]);
  }
  return most ? [least, most] : [0, 0];
}
function kvAt(player, step, which = 0) {
  const { tracks } = player;
  const cache = cachesAt(player, step)[which] ?? NO_ONE;
  if (cache < 0) return null;
  const shape = shapeOf2(player, cache);
  const seq = new Int16Array(shape.nCells).fill(NO_ONE);
  const pos = new Int32Array(shape.nCells).fill(NO_ONE);
  const nSeqs = new Uint8Array(shape.nCells);
  const sequences = /* @__PURE__ */ new Map();
  let taken2 = 0;
  const track = tracks.track("cell");
  const [caches, cells, positions, seqs] = ["cache", "cell", "pos", "seq"].map((n) => track.col(n));
  track.each(step, (r) => {
    const cell2 = cells[r];
    if (caches[r] !== cache || cell2 >= shape.nCells) return;
    if (!nSeqs[cell2]) taken2++;
    if (!nSeqs[cell2] || seqs[r] < seq[cell2]) seq[cell2] = seqs[r];
    nSeqs[cell2]++;
    pos[cell2] = positions[r];
    sequences.set(seqs[r], (sequences.get(seqs[r]) ?? 0) + 1);
  });
  return { shape, seq, pos, nSeqs, taken: taken2, sequences, window: shape.window, ...slotAt(player, shape, step, seq, pos) };
}
function slotAt({ tracks }, { cache, nLayer }, step, seq, pos) {
  const slots = tracks.track("slot");
  const [caches, cells, counts, nKvs] = ["cache", "cell", "n_cells", "n_kv"].map((n) => slots.col(n));
  const slot = [];
  let [begin, nKv, cells0] = [-1, 0, 0];
  slots.each(step, (r) => {
    if (caches[r] !== cache) return;
    slot.push({ cell: cells[r], n: counts[r] });
    cells0 += counts[r];
    [begin, nKv] = [slots.a[r], nKvs[r]];
  });
  const [k, v] = [new Uint8Array(nLayer), new Uint8Array(nLayer)];
  if (begin >= 0) {
    const done = [new Int32Array(nLayer), new Int32Array(nLayer)];
    const kv = tracks.track("kv");
    const [ofCache, layer, which, n] = ["cache", "layer", "which", "n_cells"].map((name) => kv.col(name));
    for (let r = upperBound(kv.a, begin - 1); r < kv.length && kv.a[r] <= step; r++) if (ofCache[r] === cache && layer[r] < nLayer) done[which[r]][layer[r]] += n[r];
    for (let il = 0; il < nLayer; il++) [k[il], v[il]] = [done[0][il] < cells0 ? 1 : 0, done[1][il] < cells0 ? 1 : 0];
  }
  let newest = { seq: NO_ONE, pos: NO_ONE };
  const last = slot[slot.length - 1];
  for (let cell2 = last ? last.cell + last.n - 1 : -1; last && cell2 >= last.cell; cell2--) {
    if (seq[cell2] >= 0) {
      newest = { seq: seq[cell2], pos: pos[cell2] };
      break;
    }
  }
  return { slot, nKv, pending: { k, v }, newest };
}
function sees({ newest, pos, nKv, window }, cell2, shares) {
  if (newest.seq < 0 || !shares || cell2 >= nKv || pos[cell2] > newest.pos) return false;
  return window <= 0 || newest.pos - pos[cell2] < window;
}
function cellsOf({ tracks }, step, { shape }, wanted) {
  const mine = new Uint8Array(shape.nCells);
  const track = tracks.track("cell");
  const [caches, cells, seqs] = ["cache", "cell", "seq"].map((n) => track.col(n));
  track.each(step, (r) => {
    if (caches[r] === shape.cache && seqs[r] === wanted && cells[r] < shape.nCells) mine[cells[r]] = 1;
  });
  return mine;
}
function sequencesOf({ tracks }, step, cache, cell2) {
  const track = tracks.track("cell");
  const [caches, cells, seqs] = ["cache", "cell", "seq"].map((n) => track.col(n));
  return track.openAt(step).filter((r) => caches[r] === cache && cells[r] === cell2).map((r) => seqs[r]).sort((p, q) => p - q);
}
function lastChange(player, step, cache) {
  const { tracks } = player;
  const [ops, found] = [eventsOf(player, "SeqOp"), eventsOf(player, "CellsFound")];
  let at = upperBound(ops, step) - 1;
  while (at >= 0 && tracks.field(ops[at], "cache") !== cache) at--;
  if (at < 0) return "";
  const op = ops[at];
  if (upperBound(found, step) > upperBound(found, op)) return "";
  const [name, seq, to, delta] = ["op", "seq_id", "seq_dst", "delta"].map((f) => tracks.field(op, f));
  const [p0, p1] = ["p0", "p1"].map((f) => tracks.field(op, f));
  const range3 = p1 >= 2 ** 31 - 1 ? p0 > 0 ? `from ${p0} on` : "" : `${p0} to ${p1 - 1}`;
  const what = seq < 0 ? "every sequence" : `sequence ${seq}`;
  const words = {
    remove: `removed: ${what} ${range3}`,
    copy: `copied: ${what} ${range3} to sequence ${to}`,
    keep: `kept: ${what} alone`,
    shift: `moved by ${delta}: ${what} ${range3}`,
    add: `moved by ${delta}: ${what} ${range3}`
  };
  return (words[name] ?? String(name)).trim();
}

// kv_paint.js
var LEFT2 = 42;
var RIGHT = 12;
var AXIS = 16;
var SEEN = 5;
var LAYER = 30;
var SEQUENCE_FAMILIES = [0, 3, 2, 1, 4];
function familyOfSequence(seq) {
  return SEQUENCE_FAMILIES[seq % SEQUENCE_FAMILIES.length];
}
function colourOf({ palette }, seq) {
  return palette.families[familyOfSequence(seq)];
}
function placesOf(state, range3, w, h) {
  const { nCells, nLayer } = state.shape;
  const whole2 = range3.from === 0 && range3.to === nCells;
  const over = whole2 || h < 96 ? -1 : 4;
  const band = over < 0 ? 4 + SEEN : 18 + SEEN;
  const high = h > 150 ? 20 : 14;
  const k = band + high + 5;
  const each = Math.min(nLayer * LAYER, Math.max(8, (h - AXIS - 3 - k - 5) / 2));
  return { left: LEFT2, wide: w - LEFT2 - RIGHT, range: range3, over, band, high, k, v: k + each + 5, each, foot: k + 2 * each + 8 };
}
function xOf({ left, wide, range: range3 }, cell2) {
  return left + (cell2 - range3.from) / (range3.to - range3.from) * wide;
}
function cellAt({ left, wide, range: range3 }, x) {
  return Math.floor(range3.from + (x - left) / wide * (range3.to - range3.from));
}
function columnsOf({ seq, nSeqs }, { range: range3, wide }) {
  const per = Math.max(1, (range3.to - range3.from) / wide);
  const made = [];
  let last = null;
  for (let at = range3.from; at < range3.to; at += per) {
    const [from, to] = [Math.floor(at), Math.min(range3.to, Math.max(Math.floor(at) + 1, Math.floor(at + per)))];
    let [taken2, shared, first, votes] = [0, false, -1, 0];
    for (let cell2 = from; cell2 < to; cell2++) {
      if (!nSeqs[cell2]) continue;
      taken2++;
      if (votes === 0) first = seq[cell2];
      votes += seq[cell2] === first ? 1 : -1;
      if (nSeqs[cell2] > 1) shared = true;
    }
    const share2 = taken2 / Math.max(1, to - from);
    if (last && last.seq === first && last.shared === shared && last.share === share2) last.to = to;
    else made.push(last = { from, to, seq: first, share: share2, shared });
  }
  return made;
}
function paintKv(player, c, state, places, marks, mine, cursor) {
  const { palette, fonts } = player;
  const { left, wide, band, high, k, v, each, foot } = places;
  c.font = `11px ${fonts.ui}`;
  c.fillStyle = palette.soft;
  c.textAlign = "right";
  for (
    const [text, y] of
    /** @type {const} */
    [["pos", band + high / 2], ["K", k + each / 2], ["V", v + each / 2]]
  ) c.fillText(text, left - 8, y);
  c.fillStyle = palette.panel;
  for (const [y, h] of [[band, high], [k, each], [v, each]]) c.fillRect(left, y, wide, h);
  paintTaken(player, c, state, places);
  paintOutOfWindow(player, c, state, places, mine);
  paintPending(player, c, state, places);
  paintLayers(player, c, state, places);
  paintPositions(player, c, state, places);
  paintSeen(player, c, state, places, mine);
  paintLimit(player, c, state, places);
  paintMarks(player, c, state, places, marks, cursor);
  paintCellAxis(player, c, places, foot);
  if (places.over >= 0) paintWhole(player, c, state, places);
}
function paintTaken(player, c, state, places) {
  const { band, high, k, v, each } = places;
  const gap = xOf(places, 1) - xOf(places, 0) > 5 ? 1 : 0;
  for (const { from, to, seq, share: share2, shared } of columnsOf(state, places)) {
    if (seq < 0) continue;
    c.fillStyle = colourOf(player, seq);
    const single = gap > 0;
    for (let cell2 = from; cell2 < to; cell2 += single ? 1 : to - from) {
      const x = xOf(places, cell2);
      const w = Math.max(0.6, xOf(places, single ? cell2 + 1 : to) - x - gap);
      c.globalAlpha = 0.25 + 0.75 * share2;
      c.fillRect(x, band, w, high);
      c.globalAlpha *= 0.82;
      c.fillRect(x, k, w, each);
      c.fillRect(x, v, w, each);
      if (!shared) continue;
      c.globalAlpha = 1;
      c.fillStyle = player.palette.page;
      c.fillRect(x, band + high - 4, w, 1.5);
      c.fillStyle = colourOf(player, seq);
    }
  }
  c.globalAlpha = 1;
}
function paintOutOfWindow({ palette }, c, { window, newest, pos, nSeqs }, places, mine) {
  const { from, to } = places.range;
  const left = (cell2) => nSeqs[cell2] > 0 && mine[cell2] === 1 && newest.pos - pos[cell2] >= window;
  if (window <= 0 || newest.seq < 0) return;
  c.fillStyle = palette.page;
  c.globalAlpha = 0.62;
  for (let cell2 = from; cell2 < to; cell2++) {
    if (!left(cell2)) continue;
    const begin = cell2;
    while (cell2 + 1 < to && left(cell2 + 1)) cell2++;
    for (const [y, h] of [[places.k, places.each], [places.v, places.each]]) c.fillRect(xOf(places, begin), y, xOf(places, cell2 + 1) - xOf(places, begin), h);
  }
  c.globalAlpha = 1;
}
function paintPending({ palette }, c, state, places) {
  const { nLayer } = state.shape;
  for (
    const [top, pending] of
    /** @type {[number, Uint8Array][]} */
    [[places.k, state.pending.k], [places.v, state.pending.v]]
  ) {
    const high = places.each / nLayer;
    c.fillStyle = palette.page;
    for (let il = 0; il < nLayer; il++) {
      if (!pending[il]) continue;
      let to = il;
      while (to + 1 < nLayer && pending[to + 1]) to++;
      for (const run of inRange(state.slot, places.range)) c.fillRect(xOf(places, run.cell), top + il * high, widthOf(places, run), (to - il + 1) * high);
      il = to;
    }
    c.strokeStyle = palette.ink;
    c.lineWidth = 1;
    for (const run of inRange(state.slot, places.range)) c.strokeRect(Math.round(xOf(places, run.cell)) - 0.5, Math.round(top) - 0.5, Math.round(widthOf(places, run)) + 1, Math.round(places.each) + 1);
  }
}
function inRange(runs, { from, to }) {
  return runs.map(({ cell: cell2, n }) => ({ cell: Math.max(cell2, from), n: Math.min(cell2 + n, to) - Math.max(cell2, from) })).filter((run) => run.n > 0);
}
function widthOf(places, run) {
  return Math.max(1.5, xOf(places, run.cell + run.n) - xOf(places, run.cell));
}
function paintLayers({ palette, fonts }, c, state, places) {
  const { nLayer } = state.shape;
  const high = places.each / nLayer;
  if (high < 4) return;
  c.fillStyle = palette.page;
  for (const top of [places.k, places.v]) for (let il = 1; il < nLayer; il++) c.fillRect(places.left, Math.round(top + il * high) - 0.5, places.wide, 1);
  if (high < 11) return;
  c.font = `9.5px ${fonts.mono}`;
  c.textAlign = "right";
  c.fillStyle = palette.faint;
  for (const top of [places.k, places.v]) for (let il = 0; il < nLayer; il++) c.fillText(String(state.shape.layers[il]), places.left - 26, top + (il + 0.5) * high + 0.5);
}
function paintPositions({ fonts }, c, state, places) {
  const { range: range3, band, high } = places;
  const room = xOf(places, 1) - xOf(places, 0);
  let widest = 0;
  for (let cell2 = range3.from; cell2 < range3.to; cell2++) widest = Math.max(widest, state.pos[cell2]);
  const need = 6.2 * String(widest).length + 2;
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4].find((n) => n * room >= need * (n > 1 ? 1.6 : 1)) ?? 2e4;
  c.font = `${high > 16 ? 10.5 : 9.5}px ${fonts.mono}`;
  c.textAlign = every > 1 ? "left" : "center";
  c.fillStyle = "#10151d";
  for (let cell2 = range3.from, free = -1; cell2 < range3.to; cell2++) {
    const pos = state.pos[cell2];
    if (!state.nSeqs[cell2]) continue;
    const begins = cell2 === range3.from || state.pos[cell2 - 1] !== pos - 1 || state.seq[cell2 - 1] !== state.seq[cell2];
    const x = xOf(places, cell2);
    if (!begins && pos % every || x < free) continue;
    if (every > 1 && runEnd(state, cell2, range3.to, Math.ceil(need / room)) - cell2 < need / room) continue;
    c.fillText(String(pos), every > 1 ? x + 2 : x + (room - 1) / 2, band + high / 2 + 0.5);
    free = x + need + (every > 1 ? 3 : -2);
  }
}
function runEnd({ pos, seq, nSeqs }, cell2, end, most) {
  let to = cell2 + 1;
  while (to < end && to - cell2 < most && nSeqs[to] && pos[to] === pos[to - 1] + 1 && seq[to] === seq[cell2]) to++;
  return to;
}
function paintSeen({ palette }, c, state, places, mine) {
  const { from, to } = places.range;
  c.fillStyle = palette.ink;
  for (let cell2 = from; cell2 < to; cell2++) {
    if (!sees(state, cell2, mine[cell2] === 1)) continue;
    let end = cell2 + 1;
    while (end < to && sees(state, end, mine[end] === 1)) end++;
    c.fillRect(xOf(places, cell2), places.band - 4, Math.max(1, xOf(places, end) - xOf(places, cell2) - 1), 2);
    cell2 = end;
  }
}
function paintLimit({ palette, fonts }, c, { nKv }, places) {
  const { from, to } = places.range;
  if (nKv <= from || nKv >= to) return;
  const x = Math.round(xOf(places, nKv)) + 0.5;
  c.strokeStyle = palette.soft;
  c.setLineDash([3, 3]);
  c.beginPath();
  c.moveTo(x, places.band - 4);
  c.lineTo(x, places.foot);
  c.stroke();
  c.setLineDash([]);
  c.font = `10px ${fonts.ui}`;
  c.fillStyle = palette.soft;
  c.textAlign = x > places.left + places.wide - 50 ? "right" : "left";
  c.fillText("n_kv", x + (c.textAlign === "left" ? 4 : -4), places.band + places.high / 2);
}
function paintMarks({ palette }, c, state, places, marks, cursor) {
  const { from, to } = places.range;
  const bottom = places.v + places.each;
  const frame2 = (a, b) => {
    const x = Math.round(xOf(places, a)) - 0.5;
    c.strokeRect(x - 0.5, places.band - 1, Math.max(3, Math.round(xOf(places, b)) - x), bottom - places.band + 2);
  };
  c.strokeStyle = palette.accent;
  c.lineWidth = 2;
  if (marks.found) c.setLineDash([4, 3]);
  for (const run of runsOf(marks.cells)) if (run.cell < to && run.cell + run.n > from) frame2(Math.max(from, run.cell), Math.min(to, run.cell + run.n));
  c.setLineDash([]);
  if (marks.layer >= 0) {
    const high = places.each / state.shape.nLayer;
    const top = marks.which ? places.v : places.k;
    for (const run of inRange(state.slot, places.range)) c.strokeRect(Math.round(xOf(places, run.cell)) - 1, top + marks.layer * high - 1, widthOf(places, run) + 2, Math.max(3, high + 2));
  }
  if (marks.gone) for (const cell2 of marks.cells) cross(c, xOf(places, cell2), xOf(places, cell2 + 1), places.band, places.high);
  if (cursor >= from && cursor < to) {
    c.strokeStyle = palette.ink;
    frame2(cursor, cursor + 1);
  }
  c.lineWidth = 1;
}
function cross(c, x0, x1, y, h) {
  const [x, r] = [(x0 + x1) / 2, Math.min(5, h / 2 - 2, Math.max(2, (x1 - x0) / 2 - 2))];
  c.beginPath();
  c.moveTo(x - r, y + h / 2 - r);
  c.lineTo(x + r, y + h / 2 + r);
  c.moveTo(x + r, y + h / 2 - r);
  c.lineTo(x - r, y + h / 2 + r);
  c.stroke();
}
function runsOf(cells) {
  const runs = [];
  for (const cell2 of [...cells].sort((p, q) => p - q)) {
    const last = runs[runs.length - 1];
    if (last && last.cell + last.n === cell2) last.n++;
    else runs.push({ cell: cell2, n: 1 });
  }
  return runs;
}
function paintCellAxis({ palette, fonts }, c, places, top) {
  const { from, to } = places.range;
  const wanted = Math.max(2, places.wide / 64);
  const step = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384].find((s) => (to - from) / s <= wanted) ?? 32768;
  c.font = `10px ${fonts.ui}`;
  c.textAlign = "left";
  c.fillStyle = palette.faint;
  c.fillText("cell", 12, top + 6);
  for (let cell2 = Math.ceil(from / step) * step; cell2 < to; cell2 += step) {
    const x = xOf(places, cell2);
    c.fillRect(Math.round(x), top - 2, 1, 3);
    c.fillText(String(cell2), x + 3, top + 6);
  }
}
function paintWhole(player, c, state, places) {
  const { palette } = player;
  const whole2 = { ...places, range: { from: 0, to: state.shape.nCells } };
  c.fillStyle = palette.line;
  c.fillRect(places.left, places.over, places.wide, 5);
  for (const { from, to, seq, share: share2 } of columnsOf(state, whole2)) {
    if (seq < 0) continue;
    c.globalAlpha = 0.3 + 0.7 * share2;
    c.fillStyle = colourOf(player, seq);
    c.fillRect(xOf(whole2, from), places.over, Math.max(0.6, xOf(whole2, to) - xOf(whole2, from)), 5);
  }
  c.globalAlpha = 1;
  c.strokeStyle = palette.ink;
  const [x0, x1] = [xOf(whole2, places.range.from), xOf(whole2, places.range.to)];
  c.strokeRect(Math.round(x0) - 0.5, places.over - 1.5, Math.max(4, Math.round(x1 - x0)), 8);
}

// kv_facts.js
var MOST_HEADS = 32;
var MOST_KEYS = 6;
function span([least, most]) {
  return least === most ? String(most) : `${least} to ${most}`;
}
function headsWords({ nHead, nHeadKv }) {
  if (!nHead[1] || !nHeadKv[1]) return "";
  const times = nHead[1] / nHeadKv[1];
  const heads = (n, kind) => `${kind} head${n === 1 ? "" : "s"}`;
  const asked = `${span(nHead)} ${heads(nHead[1], "query")} read ${span(nHeadKv)} ${heads(nHeadKv[1], "KV")}`;
  if (nHead[0] !== nHead[1] || nHeadKv[0] !== nHeadKv[1]) return `${asked}, layer by layer`;
  if (times === 1) return `${asked}, one each`;
  return `${asked}: ${Number(times.toFixed(2))} x smaller than with one each`;
}
function sequenceKeys({ seqs }) {
  return seqs.slice(0, MOST_KEYS).map((seq) => {
    const mark = el("span", "vg-swatch");
    mark.style.background = `var(--vg-families-${familyOfSequence(seq)})`;
    return el("span", "vg-key", {}, [mark, el("span", "", { text: `sequence ${seq}` })]);
  });
}
function makeFacts(host, shape) {
  const sizes = el("div", "vg-pairs");
  for (
    const [side, type, bytes] of
    /** @type {[string, string, number][]} */
    [["K", shape.typeK, shape.bytesK], ["V", shape.typeV, shape.bytesV]]
  ) {
    if (type) sizes.append(el("div", "vg-dt", { role: "term", text: side }), el("div", "vg-dd", { role: "definition", text: type }), el("div", "vg-dd vg-end", { role: "definition", text: formatBytes(bytes) }));
  }
  const total = `${shape.nCells} cells x ${counted(shape.nLayer, "layer")}` + (shape.bytesK ? `, ${formatBytes(shape.bytesK + shape.bytesV)}` : "");
  const parts = [el("section", "", {}, [el("h3", "", { text: "reserved" }), sizes, el("p", "vg-soft", { text: total })])];
  if (shape.seqs.length) parts.push(el("section", "", {}, [el("h3", "", { text: "colours" }), el("div", "vg-kv-keys", {}, sequenceKeys(shape))]));
  const words = headsWords(shape);
  if (words) parts.push(el("section", "", {}, [el("h3", "", { text: "grouped heads, in each layer" }), headsDrawn(shape, words), el("p", "", { text: words })]));
  parts.push(
    el("section", "", {}, [
      el("h3", "", { text: "read it so" }),
      el("p", "vg-soft", { text: "A column is a cell, a line of it a layer. Outlined: what this evaluation writes, empty until its layer has computed it. The bar above marks the cells that the newest token attends to." + (shape.window ? " Pale cells have left the window: a new token may take them." : "") })
    ])
  );
  host.replaceChildren(...parts);
}
function headsDrawn({ nHead, nHeadKv }, words) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const queries = Math.min(nHead[1], MOST_HEADS);
  const keys = Math.max(1, Math.round(queries * nHeadKv[1] / nHead[1]));
  const [wide, high] = [184, 46];
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${wide} ${high}`, class: "vg-heads", role: "img", "aria-label": words })) svg.setAttribute(name, value);
  const each = wide / queries;
  const group = queries / keys;
  const add = (tag, attributes) => {
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
    svg.append(made);
  };
  for (let q = 0; q < queries; q++) {
    const [x, centre] = [q * each, (Math.floor(q / group) + 0.5) * group * each];
    add("path", { d: `M${x + each / 2} 14L${centre} 32`, stroke: "var(--vg-edge)", fill: "none" });
    add("rect", { x: x + 0.75, y: 2, width: Math.max(1, each - 1.5), height: 12, rx: 2, fill: "var(--vg-families-0)" });
  }
  for (let k = 0; k < keys; k++) {
    const x = (k + 0.5) * group * each;
    const half = Math.min(16, group * each / 2 - 1);
    add("rect", { x: x - half, y: 32, width: 2 * half, height: 12, rx: 2, fill: "var(--vg-families-2)" });
  }
  return svg;
}

// kv.js
var FACTS = { width: 560, height: 190 };
var FEWEST = 32;
var kvDetail = {
  name: "kv",
  title: "KV cache",
  has: ({ tracks }) => tracks.track("cell").length > 0 || tracks.track("cache").length > 0,
  make: (player, pane) => pairsOf(player).length ? new KvPair(player, pane) : new KvView(player, pane)
};
var KvPair = class {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.views = [new KvView(player, pane, 0), new KvView(player, pane, 1)];
    this.tools = this.views.flatMap((view) => view.tools);
    this.element = el("div", "vg-stack vg-kv-pair", {}, this.views.map((view) => view.element));
  }
  /** @param {number} step */
  draw(step) {
    for (const view of this.views) view.draw(step);
    const alone = !this.views[1].state;
    for (const element of [this.views[1].element, this.views[1].button]) if (element.hidden !== alone) element.hidden = alone;
  }
  stop() {
    for (const view of this.views) view.stop();
  }
};
function layersWords(layers) {
  const words = [];
  for (let k = 0; k < layers.length; k++) {
    let to = k;
    while (to + 1 < layers.length && layers[to + 1] === layers[to] + 1) to++;
    words.push(to > k ? `${layers[k]} to ${layers[to]}` : String(layers[k]));
    k = to;
  }
  return `layer${layers.length === 1 ? "" : "s"} ${words.join(", ")}`;
}
var KvView = class extends DetailPlot {
  /** @param {Player} player @param {Pane} pane @param {number} [which] of two caches, the second with a window */
  constructor(player, pane, which) {
    super(player, pane, {
      title: which === 1 ? "KV cache of the layers with a window" : "KV cache",
      keys: "cell by cell",
      empty: "No cache stands at this step. Record a context of a model: with vg.record() as trace: ctx.decode(tokens)."
    });
    this.state = null;
    this.which = which ?? 0;
    this.paired = which !== void 0;
    this.named = which === 1 ? "All cells of the window" : "All cells";
    this.mine = new Uint8Array(0);
    this.zoomed = null;
    this.brush = null;
    this.all = false;
    this.button = el("button", "vg-button vg-text-button", { type: "button", text: this.named, "aria-pressed": "false", title: "Show the whole cache, or the cells that the trace uses" });
    this.button.addEventListener("click", () => this.toggleAll());
    this.tools = [this.button];
    this.foot = el("div", "vg-kv-foot");
    this.facts = el("aside", "vg-kv-facts", { "aria-label": "Of this cache" });
    this.shown = -1;
    this.main.append(this.foot);
    this.element.classList.add("vg-kv");
    this.element.append(this.facts);
    this.sizer = new ResizeObserver((entries) => {
      const { width, height } = entries[entries.length - 1].contentRect;
      this.element.classList.toggle("vg-low", width < FACTS.width || height < FACTS.height);
    });
    this.sizer.observe(this.element);
    listenBrush(this, (event) => this.state ? { from: event.offsetX, to: event.offsetX } : null);
  }
  /** @param {import("./brush.js").Drag} drag */
  zoomBy(drag) {
    const { state } = this;
    if (!state) return;
    const places = this.places(state);
    const [a, b] = [cellAt(places, drag.from), cellAt(places, drag.to)].sort((p, q) => p - q);
    const from = Math.max(0, a);
    this.zoomTo({ from, to: Math.min(state.shape.nCells, Math.max(from + 4, b + 1)) });
  }
  /** @param {{from: number, to: number} | null} range */
  zoomTo(range3) {
    this.zoomed = range3;
    this.button.textContent = range3 ? "Zoom out" : this.named;
    this.player.redraw(this.pane);
  }
  toggleAll() {
    if (this.zoomed) return this.zoomTo(null);
    this.all = !this.all;
    this.button.setAttribute("aria-pressed", String(this.all));
    this.player.redraw(this.pane);
  }
  /** @param {KvState} state */
  rangeOf({ shape }) {
    if (this.zoomed && this.zoomed.to <= shape.nCells) return this.zoomed;
    const used = Math.max(FEWEST, Math.ceil(shape.used / 8) * 8);
    return { from: 0, to: this.all ? shape.nCells : Math.min(shape.nCells, used) };
  }
  /** @param {KvState} state */
  places(state) {
    return placesOf(state, this.rangeOf(state), this.surface.width, this.surface.height);
  }
  /** @param {number} step */
  prepare(step) {
    const state = this.state = kvAt(this.player, step, this.which);
    if (!state) return null;
    this.mine = cellsOf(this.player, step, state, state.newest.seq);
    if (this.shown !== state.shape.cache) this.showFacts(state);
    const { taken: taken2, shape, sequences, nKv } = state;
    const each = (shape.bytesK + shape.bytesV) / Math.max(1, shape.nCells);
    const bytes = each ? ` (${formatBytes(Math.round(each * taken2))} of ${formatBytes(shape.bytesK + shape.bytesV)})` : "";
    const parts = [...sequences].sort((p, q) => p[0] - q[0]).map(([seq, n]) => `sequence ${seq}: ${n}`);
    const change = lastChange(this.player, step, shape.cache);
    const sight = this.paired ? shape.window ? `Last ${shape.window} positions: ` : "Every position: " : "";
    const looked = nKv ? `attention looks at the first ${nKv} (n_kv)` : "";
    return {
      strong: `${sight}${taken2} of ${counted(shape.nCells, "cell")} taken${bytes}`,
      rest: [this.paired ? layersWords(shape.layers) : "", change, parts.slice(0, 6).join(", "), looked].filter(Boolean).join("; ")
    };
  }
  /** @param {KvState} state */
  showFacts({ shape }) {
    this.shown = shape.cache;
    makeFacts(this.facts, shape);
    const sides = shape.typeK ? `K ${shape.typeK} ${formatBytes(shape.bytesK)}, V ${shape.typeV} ${formatBytes(shape.bytesV)}` : "";
    const words = [sides, counted(shape.nLayer, "layer"), headsWords(shape)].filter(Boolean).join("; ");
    this.foot.replaceChildren(...sequenceKeys(shape), el("span", "", { text: words }));
    this.foot.title = words;
  }
  /** @param {CanvasRenderingContext2D} c @param {number} _w @param {number} h @param {number} step */
  paint(c, _w, h, step) {
    const { state, player } = this;
    if (!state) return;
    const places = this.places(state);
    paintKv(player, c, state, places, this.marksAt(step, state), this.mine, this.cursor);
    if (!this.brush) return;
    c.globalAlpha = 0.16;
    c.fillStyle = player.palette.accent;
    c.fillRect(Math.min(this.brush.from, this.brush.to), 0, Math.abs(this.brush.to - this.brush.from), h);
    c.globalAlpha = 1;
  }
  /** What the step's event speaks of. @param {number} step @param {KvState} state */
  marksAt(step, state) {
    const { tracks } = this.player;
    const kind = tracks.kindOf(step).name;
    const marks = { cells: /* @__PURE__ */ new Set(), gone: false, found: false, layer: -1, which: 0 };
    if (this.paired && tracks.kindOf(step).fields.some(([name]) => name === "cache") && tracks.field(step, "cache") !== state.shape.cache) return marks;
    if (kind === "CellSet" || kind === "CellFreed" || kind === "WindowEvicted") {
      marks.cells.add(tracks.field(step, "cell"));
      marks.gone = kind !== "CellSet";
    } else if (kind === "CellsFound") {
      marks.cells = new Set(tracks.field(step, "cells"));
      marks.found = true;
    } else if (kind === "KvWritten") {
      marks.layer = state.shape.layers.indexOf(tracks.field(step, "layer"));
      marks.which = tracks.field(step, "which") === "V" ? 1 : 0;
    } else if (kind === "SeqOp") {
      const [seq, p0, p1] = ["seq_id", "p0", "p1"].map((name) => tracks.field(step, name));
      const mine = seq < 0 ? null : cellsOf(this.player, step, state, seq);
      state.pos.forEach((pos, cell2) => {
        if (pos >= p0 && pos < p1 && pos >= 0 && (!mine || mine[cell2])) marks.cells.add(cell2);
      });
    }
    return marks;
  }
  /** A place is cell * 2 layers + layer, V's after K's; over the positions the cell's first. @param {number} x @param {number} y */
  findAt(x, y) {
    const { state } = this;
    if (!state || this.brush) return -1;
    const places = this.places(state);
    const cell2 = cellAt(places, x);
    if (x < places.left || cell2 < places.range.from || cell2 >= places.range.to || y < places.band - 5 || y > places.v + places.each) return -1;
    return cell2;
  }
  /** The layer and side at a height, -1 over the positions. @param {number} y */
  layerAt(y) {
    const { state } = this;
    if (!state) return { layer: -1, which: 0 };
    const places = this.places(state);
    const which = y >= places.v ? 1 : 0;
    const at = Math.floor((y - (which ? places.v : places.k)) / places.each * state.shape.nLayer);
    return { layer: y < places.k || at >= state.shape.nLayer ? -1 : at, which };
  }
  /** @param {number} k @param {number} x @param {number} y */
  showCard(k, x, y) {
    this.pointed = this.layerAt(y);
    super.showCard(k, x, y);
  }
  /** @param {number} cell */
  cardOf(cell2) {
    const { state, player, step } = this;
    if (!state) return null;
    const { shape } = state;
    const { layer, which } = this.pointed ?? { layer: -1, which: 0 };
    const pairs = [];
    if (state.nSeqs[cell2]) {
      const seqs = sequencesOf(player, step, shape.cache, cell2);
      pairs.push(["position", String(state.pos[cell2])], [seqs.length > 1 ? "sequences" : "sequence", seqs.join(", ")]);
      const seen = sees(state, cell2, this.mine[cell2] === 1);
      if (state.newest.seq >= 0) pairs.push(["attended", seen ? `yes, by position ${state.newest.pos}` : `no: ${this.whyUnseen(state, cell2)}`]);
    } else pairs.push(["holds", "nothing"]);
    const bytes = (which ? shape.bytesV : shape.bytesK) / Math.max(1, shape.nCells * shape.nLayer);
    const fresh = state.slot.some((run) => cell2 >= run.cell && cell2 < run.cell + run.n);
    if (layer >= 0) {
      const waits = fresh && (which ? state.pending.v : state.pending.k)[layer];
      pairs.push(["layer", `${shape.layers[layer]}, ${which ? "V" : "K"}`], ["bytes", `${formatBytes(Math.round(bytes))} of ${which ? shape.typeV : shape.typeK}`]);
      if (state.nSeqs[cell2]) pairs.push(["written", waits ? "not yet" : fresh ? "in this evaluation" : "earlier"]);
    } else if (shape.bytesK) pairs.push(["bytes", `${formatBytes(Math.round((shape.bytesK + shape.bytesV) / shape.nCells))} in ${counted(shape.nLayer, "layer")}`]);
    return { head: `cell ${cell2}`, pairs };
  }
  /** @param {KvState} state @param {number} cell */
  whyUnseen(state, cell2) {
    if (this.mine[cell2] !== 1) return "another sequence";
    if (cell2 >= state.nKv) return "beyond n_kv";
    return state.pos[cell2] > state.newest.pos ? "it comes later" : `out of the window of ${state.window}`;
  }
  /** @param {number} cell */
  placeOf(cell2) {
    if (!this.state) return null;
    const places = this.places(this.state);
    return { x: (xOf(places, cell2) + xOf(places, cell2 + 1)) / 2, y: places.band + places.high / 2 };
  }
  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    if (!this.state) return -1;
    const { from, to } = this.rangeOf(this.state);
    if (k < 0) return this.state.slot[0]?.cell ?? from;
    return Math.max(from, Math.min(to - 1, k + by));
  }
  stop() {
    this.sizer.disconnect();
    super.stop();
  }
};

// pages.js
var PAD2 = 12;
var TOP2 = 20;
var BAR2 = 22;
var PAGES_HEIGHT = TOP2 + BAR2 + 8;
function partsAt({ tracks }, step) {
  const track = tracks.track("pages");
  const [name, offset] = ["name", "offset"].map((n) => track.col(n));
  const rows = track.openAt(step);
  const parts = rows.filter((r) => name[r] >= 0).sort((p, q) => offset[p] - offset[q]);
  return { track, parts, whole: rows.find((r) => name[r] < 0) ?? -1 };
}
function share(pages, of) {
  return of > 0 ? `${Math.floor(100 * pages / of)} %` : "";
}
function pageRows(player, step) {
  const { track, parts, whole: whole2 } = partsAt(player, step);
  const [pages, of] = ["pages", "of"].map((n) => track.col(n));
  const layer = player.tracks.field(step, "name");
  return (whole2 >= 0 ? [whole2, ...parts] : parts).map((r) => ({
    cells: [r === whole2 ? "the whole file" : visible(track.str("name", r)), String(pages[r]), String(of[r]), share(pages[r], of[r])],
    marked: track.a[r] === step && (r === whole2 || track.str("name", r) === layer)
  }));
}
function paintPages(player, c, w, h, step) {
  const { palette, fonts, tracks } = player;
  const { track, parts, whole: whole2 } = partsAt(player, step);
  const [pages, of] = ["pages", "of"].map((n) => track.col(n));
  const shown = parts.length ? parts : whole2 >= 0 ? [whole2] : [];
  const total = shown.reduce((sum, r) => sum + of[r], 0);
  if (!total) return;
  const wide = w - 2 * PAD2;
  const layer = tracks.field(step, "name");
  let before = 0;
  for (const r of shown) {
    const x = PAD2 + before / total * wide;
    const room = Math.max(0.5, of[r] / total * wide - 1);
    c.fillStyle = palette.line;
    c.fillRect(x, TOP2, room, BAR2);
    const high = Math.min(1, pages[r] / Math.max(1, of[r])) * BAR2;
    c.fillStyle = palette.status[3];
    c.fillRect(x, TOP2 + BAR2 - high, room, high);
    const name = r === whole2 ? "" : cutEnd(visible(track.str("name", r)), Math.floor((room - 8) / 6.4));
    if (name) {
      c.fillStyle = high > BAR2 / 2 ? "#10151d" : palette.soft;
      c.font = `10.5px ${fonts.mono}`;
      c.textBaseline = "middle";
      c.fillText(name, x + 5, TOP2 + BAR2 / 2 + 0.5);
    }
    if (track.a[r] === step && track.str("name", r) === layer) {
      c.fillStyle = palette.accent;
      c.fillRect(x, TOP2 + BAR2 + 2, Math.max(2, room), 3);
    }
    before += of[r];
  }
  c.fillStyle = palette.soft;
  c.font = `11px ${fonts.ui}`;
  c.textBaseline = "middle";
  const said = whole2 >= 0 ? `${pages[whole2]} of ${of[whole2]} pages touched` : "the file";
  c.fillText(`${said}; from its beginning to its end, each part filled by what is in memory`, PAD2, TOP2 / 2);
}
var pagesDetail = tableDetail({
  name: "pages",
  title: "Pages",
  track: "pages",
  columns: [{ head: "part of the file" }, { head: "in memory", right: true }, { head: "pages", right: true }, { head: "share", right: true }],
  widths: "minmax(0, 2fr) 0.8fr 0.7fr 0.6fr",
  rows: pageRows,
  plot: paintPages,
  plotHeight: PAGES_HEIGHT,
  empty: "Nobody has asked which pages are in memory yet."
});

// reuse.js
var STRIP = 40;
var PAD3 = 12;
var BAR3 = { top: 6, high: 14 };
var ROW3 = 23;
var WIDEST = 26;
var MOST_WHYS = 2;
var reuseDetail = {
  name: "reuse",
  title: "Reuse",
  has: ({ tracks }) => tracks.track("reuse").length > 0 || tracks.kindNamed.ReuseDecided !== void 0 && tracks.kind.includes(tracks.kindNamed.ReuseDecided.index),
  make: (player, pane) => new ReuseView(player, pane)
};
function askedAt(player, step) {
  const decided = eventsOf(player, "ReuseDecided");
  const track = player.tracks.track("reuse");
  const at = upperBound(decided, step) - 1;
  const [last, before] = [decided[at] ?? -1, decided[at - 1] ?? -1];
  const open = track.openAt(step).sort((p, q) => track.a[p] - track.a[q]);
  const now = open.filter((r) => track.a[r] > last);
  if (now.length) return { rows: now, decided: -1 };
  return { rows: open.filter((r) => track.a[r] > before), decided: last };
}
function verdictOf({ tracks }, { rows, decided }) {
  const track = tracks.track("reuse");
  const ok = track.col("ok");
  const hold = rows.filter((r) => ok[r]).length;
  const failed = rows.filter((r) => !ok[r]).map((r) => `${track.str("condition", r)} ${track.str("had", r)} → ${track.str("needs", r)}`);
  if (decided < 0) return rows.length ? { strong: `asking: ${hold} of ${rows.length} hold so far`, rest: failed.join(", "), bad: failed.length > 0 } : null;
  if (tracks.field(decided, "reused")) return { strong: `graph reused: ${hold} of ${counted(rows.length, "condition")} hold`, rest: "" };
  const more2 = failed.length > MOST_WHYS ? ` and ${failed.length - MOST_WHYS} more` : "";
  const why = failed.length ? failed.slice(0, MOST_WHYS).join(", ") + more2 : String(tracks.field(decided, "why"));
  return { strong: `built anew: ${why}`, rest: rows.length ? `${hold} of ${counted(rows.length, "condition")} hold` : "", bad: true };
}
var ReuseView = class extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Reuse",
      keys: "evaluation by evaluation",
      empty: "No graph was asked for yet. From the second decode of a context on, its standing graph is checked."
    });
    this.asked = { rows: [], decided: -1 };
    this.surface.box.style.flex = `0 0 ${STRIP}px`;
    this.surface.box.style.minHeight = `${STRIP}px`;
    const heads = ["asked by", "condition", "had", "needs", "holds"];
    const right = (k) => k === 2 || k === 3 ? "vg-right" : "";
    this.head = el("div", "vg-grid-head", {}, heads.map((text, k) => el("span", right(k), { text })));
    this.list = new VirtualList({
      label: "Conditions in the order in which they were asked",
      rowHeight: ROW3,
      makeRow: () => el("div", "vg-grid-row", {}, heads.map((_, k) => el("span", right(k)))),
      fillRow: (row, index) => this.fillRow(row, index)
    });
    this.main.append(this.head, this.list.element);
    this.element.classList.add("vg-table");
    this.element.style.setProperty("--vg-columns", "minmax(0, 1.4fr) minmax(0, 1.2fr) minmax(36px, 0.7fr) minmax(36px, 0.7fr) 44px");
  }
  /** @param {number} step */
  prepare(step) {
    this.asked = askedAt(this.player, step);
    const words = verdictOf(this.player, this.asked);
    for (const part of [this.head, this.list.element]) if (part.hidden !== !words) part.hidden = !words;
    this.list.setLength(this.asked.rows.length);
    const { a } = this.player.tracks.track("reuse");
    const at = this.asked.rows.findIndex((r) => a[r] === step);
    if (at >= 0) this.list.show(at);
    if (!words) return null;
    const { reused, known } = this.counts();
    return { ...words, rest: [words.rest, `${reused} of ${counted(known, "evaluation")} reused a graph`].filter(Boolean).join("; ") };
  }
  counts() {
    return this.player.relations.keep("reuse counts", () => {
      const reused = this.player.tracks.track("eval").col("reused");
      return { known: reused.length, reused: Array.from(reused).filter(Boolean).length };
    });
  }
  /** @param {HTMLElement} element @param {number} index */
  fillRow(element, index) {
    const r = this.asked.rows[index];
    const track = this.player.tracks.track("reuse");
    if (r === void 0) return;
    const ok = track.col("ok")[r] === 1;
    [...["owner", "condition", "had", "needs"].map((name) => track.str(name, r)), ok ? "✓ yes" : "✗ no"].forEach((text, k) => setText(element.children[k], text));
    element.classList.toggle("vg-marked", track.a[r] === this.step);
    element.classList.toggle("vg-bad", !ok);
  }
  /** @param {number} k row of the evaluations */
  x(k) {
    const n = this.player.tracks.track("eval").length;
    return PAD3 + k * Math.min(WIDEST, (this.surface.width - 2 * PAD3) / Math.max(1, n));
  }
  /** @param {CanvasRenderingContext2D} c @param {number} w @param {number} _h @param {number} step */
  paint(c, w, _h, step) {
    const { palette, fonts, tracks } = this.player;
    const track = tracks.track("eval");
    const reused = track.col("reused");
    const wide = this.x(1) - this.x(0);
    const gap = wide > 5 ? 2 : 0;
    const current = upperBound(track.a, step) - 1;
    for (let k = 0; k < track.length; k++) {
      c.globalAlpha = k <= current ? 1 : 0.3;
      c.fillStyle = reused[k] ? palette.families[2] : palette.families[3];
      const short2 = reused[k] ? 0 : 4;
      c.fillRect(this.x(k), BAR3.top + (reused[k] ? BAR3.high / 2 : 0), Math.max(0.7, wide - gap), BAR3.high / 2 + short2 - (reused[k] ? 0 : -3));
    }
    c.globalAlpha = 1;
    for (
      const [k, colour] of
      /** @type {[number, string][]} */
      [[current, palette.accent], [this.cursor, palette.ink]]
    ) {
      if (k < 0) continue;
      c.strokeStyle = colour;
      c.lineWidth = 2;
      c.strokeRect(this.x(k) - 1, BAR3.top - 3, Math.max(4, wide - gap + 2), BAR3.high + 6);
    }
    c.font = `10px ${fonts.ui}`;
    c.fillStyle = palette.faint;
    let x = PAD3;
    for (
      const [text, family] of
      /** @type {[string, number][]} */
      [["built anew", 3], ["reused", 2]]
    ) {
      c.fillStyle = palette.families[family];
      c.fillRect(x, STRIP - 11, 8, family === 3 ? 8 : 5);
      c.fillStyle = palette.soft;
      c.fillText(text, x + 12, STRIP - 7);
      x += 76;
    }
    if (w > 330) c.fillText("one bar an evaluation", x + 6, STRIP - 7);
  }
  /** @param {number} x */
  findAt(x) {
    const k = Math.floor((x - PAD3) / (this.x(1) - this.x(0)));
    return k >= 0 && k < this.player.tracks.track("eval").length ? k : -1;
  }
  /** @param {number} k */
  cardOf(k) {
    const track = this.player.tracks.track("eval");
    const [index, n, pos, reused, ns] = ["index", "n_tokens", "pos", "reused", "ns"].map((name) => track.col(name)[k]);
    const pairs = [["graph", reused ? "reused" : "built anew"]];
    if (n) pairs.push(["tokens", `${n} at position ${pos}`]);
    if (ns) pairs.push(["computed in", formatNs(ns)]);
    return { head: `evaluation ${index}`, pairs };
  }
  /** @param {number} k */
  placeOf(k) {
    return { x: this.x(k), y: BAR3.top + BAR3.high };
  }
  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    const track = this.player.tracks.track("eval");
    const from = k < 0 ? upperBound(track.a, this.step) - 1 : k + by;
    return Math.max(0, Math.min(track.length - 1, from));
  }
  /** To the verdict of that evaluation, or where it begins. @param {number} k */
  choose(k) {
    const track = this.player.tracks.track("eval");
    const decided = eventsOf(this.player, "ReuseDecided");
    const verdict = decided[upperBound(decided, track.a[k] - 1)] ?? -1;
    this.player.go(verdict >= 0 && verdict < track.b[k] ? verdict : track.a[k]);
  }
  stop() {
    this.list.stop();
    super.stop();
  }
};

// routing_paint.js
var RIGHT2 = 12;
var FOOT = 4;
var TALLEST2 = 18;
var READABLE = 11;
var LEAST = 3;
function roomFor(h) {
  return Math.max(1, Math.floor((h - topOf(h) - FOOT) / 14));
}
function topOf(h) {
  return barsOf(h) + 6 + 16;
}
function barsOf(h) {
  return Math.max(16, Math.min(64, Math.round(h * 0.22)));
}
function placesOf2({ nExpert, lines }, w, h) {
  const left = w > 460 ? 118 : w > 300 ? 84 : 40;
  const wide = w - left - RIGHT2;
  const barsHigh = barsOf(h);
  const top = topOf(h);
  const room = Math.max(LEAST, h - top - FOOT);
  const per = Math.ceil(lines.length * LEAST / room);
  const n = Math.ceil(lines.length / per);
  return { left, wide, each: wide / nExpert, bars: barsHigh + 6, barsHigh, axis: barsHigh + 6 + 9, top, high: Math.min(TALLEST2, room / n), per, n };
}
function paintRouting(player, c, routed, places, pieces2, at) {
  paintLoad(player, c, routed, places);
  paintGrid(player, c, routed, places);
  paintNames(player, c, routed, places, pieces2);
  paintAt(player, c, places, at);
}
function paintLoad({ palette, fonts }, c, { load, nExpert, nUsed, nTokens }, { left, wide, each, bars, barsHigh, axis }) {
  const most = Math.max(1, ...load);
  const gap = each > 5 ? 1 : 0;
  c.font = `10px ${fonts.ui}`;
  c.textAlign = "right";
  c.fillStyle = palette.soft;
  c.fillText("tokens", left - 8, bars - barsHigh / 2 + 1);
  c.fillStyle = palette.faint;
  c.fillText("expert", left - 8, axis);
  const even = bars - nTokens * nUsed / nExpert / most * (barsHigh - 12);
  if (nTokens > 1) {
    c.strokeStyle = palette.soft;
    c.setLineDash([3, 3]);
    c.beginPath();
    c.moveTo(left, Math.round(even) + 0.5);
    c.lineTo(left + wide, Math.round(even) + 0.5);
    c.stroke();
    c.setLineDash([]);
  }
  c.fillStyle = palette.families[0];
  for (let e = 0; e < nExpert; e++) {
    const h = load[e] / most * (barsHigh - 12);
    if (load[e]) c.fillRect(left + e * each, bars - h, Math.max(1, each - gap), h);
  }
  c.fillStyle = palette.line;
  c.fillRect(left, bars, wide, 1);
  c.textAlign = "center";
  c.font = `9.5px ${fonts.mono}`;
  const every = [1, 2, 4, 8, 16, 32, 64, 128].find((s) => s * each >= 22) ?? 256;
  for (let e = 0; e < nExpert; e++) {
    if (load[e] && each >= 14) {
      const y = bars - load[e] / most * (barsHigh - 12) - 5;
      c.fillStyle = palette.page;
      c.fillRect(left + (e + 0.5) * each - 6, y - 5, 12, 9);
      c.fillStyle = palette.soft;
      c.fillText(String(load[e]), left + (e + 0.5) * each, y);
    }
    if (e % every) continue;
    c.fillStyle = palette.faint;
    c.fillText(String(e), left + (e + 0.5) * each, axis);
  }
}
function paintGrid({ palette }, c, { lines, nUsed, most }, { left, wide, each, top, high, per, n }) {
  c.fillStyle = palette.panel;
  c.fillRect(left, top, wide, n * high);
  const gapX = each > 5 ? 1 : 0;
  const gapY = high > 5 ? 1 : 0;
  lines.forEach(({ experts, weights, begin, now }, t) => {
    const y = top + Math.floor(t / per) * high;
    c.fillStyle = now ? palette.families[0] : palette.soft;
    for (let k = begin; k < begin + nUsed; k++) {
      c.globalAlpha = (0.18 + 0.82 * weights[k] / most) * (now ? 1 : 0.6);
      c.fillRect(left + experts[k] * each, y, Math.max(1, each - gapX), Math.max(1, high - gapY));
    }
  });
  c.globalAlpha = 1;
}
function paintNames({ palette, fonts }, c, { lines }, { left, top, high, per }, pieces2) {
  const first = lines.findIndex((line) => line.now);
  c.fillStyle = palette.accent;
  const from = top + Math.floor(first / per) * high;
  c.fillRect(left - 5, from, 2, Math.ceil((lines.length - first) / per) * high - (high > 5 ? 1 : 0));
  const every = per * Math.max(1, Math.ceil(READABLE / high));
  c.font = `10.5px ${fonts.mono}`;
  c.textAlign = "right";
  for (let t = 0; t < lines.length; t += every) {
    const { pos, now } = lines[t];
    const y = Math.max(top + 6, top + (Math.floor(t / per) + 0.5) * high);
    c.fillStyle = now ? palette.ink : palette.faint;
    c.fillText(String(pos), left - 10, y);
    const piece = pieces2.get(pos);
    if (!piece || left < 80 || every > 1) continue;
    c.fillText(short(visiblePiece(piece), left > 100 ? 10 : 5), left - 18 - 6.4 * 4, y);
  }
}
function short(text, most) {
  const letters = [...text];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
}
function paintAt({ palette }, c, { left, each, bars, barsHigh, top, high, n }, { expert, line }) {
  if (expert < 0) return;
  c.strokeStyle = palette.ink;
  c.lineWidth = 1;
  const x = Math.round(left + expert * each) - 0.5;
  const w = Math.max(3, Math.round(each) + (each > 5 ? 0 : 1));
  if (line < 0) c.strokeRect(x, bars - barsHigh + 2, w, top + n * high - bars + barsHigh - 1);
  else c.strokeRect(x, Math.round(top + line * high) - 0.5, w, Math.max(3, Math.round(high)));
}

// routing_state.js
function layersOf({ tracks, relations }) {
  return relations.keep("routed layers", () => [...new Set(tracks.track("route").col("layer"))].sort((p, q) => p - q));
}
function rowsOf2({ tracks, relations }, layer) {
  return relations.keep(`routes of layer ${layer}`, () => {
    const layers = tracks.track("route").col("layer");
    const found = [];
    for (let r = 0; r < layers.length; r++) if (layers[r] === layer) found.push(r);
    return found;
  });
}
function rowAt2(player, step, layer) {
  const { a } = player.tracks.track("route");
  if (layer < 0) return upperBound(a, step) - 1;
  return rowsOf2(player, layer).findLast((r) => a[r] <= step) ?? -1;
}
function routedAt(player, step, wanted, room) {
  const track = player.tracks.track("route");
  const row = rowAt2(player, step, wanted);
  if (row < 0) return null;
  const number = (name) => track.col(name)[row];
  const layer = number("layer");
  const nExpert = number("n_expert");
  const lines = [];
  const load = new Int32Array(nExpert);
  const rows = rowsOf2(player, layer);
  for (let k = rows.indexOf(row); k >= 0 && (rows[k] === row || lines.length < room); k--) lines.unshift(...linesOf(player, rows[k], rows[k] === row, lines[0]?.pos ?? Infinity));
  if (lines.length > room) lines.splice(0, Math.max(0, Math.min(lines.length - room, lines.findIndex((line) => line.now))));
  let most = 0;
  for (const { experts, weights, begin, now } of lines) {
    for (let k = begin; k < begin + number("n_used"); k++) {
      if (now) load[experts[k]]++;
      most = Math.max(most, weights[k]);
    }
  }
  return {
    ...{ layer, row, nExpert, load, lines, most },
    ...{ evaluation: number("eval"), nUsed: number("n_used"), nTokens: number("n_tokens"), nRead: number("n_read") },
    ...{ nbytes: number("nbytes"), bytesRead: number("nbytes_read") }
  };
}
function linesOf({ tracks }, row, now, before) {
  const track = tracks.track("route");
  const event = track.a[row];
  const n = track.col("n_used")[row];
  const [positions, experts, weights] = ["positions", "experts", "weights"].map((name) => tracks.field(event, name));
  const lines = [];
  for (let t = 0; t < positions.length; t++) if (now || positions[t] < before) lines.push({ pos: positions[t], experts, weights, begin: t * n, now, event });
  return lines;
}
function wholeOf(player, step, evaluation) {
  const track = player.tracks.track("route");
  const [evals, nbytes, read] = ["eval", "nbytes", "nbytes_read"].map((name) => track.col(name));
  const whole2 = { nLayer: layersOf(player).length, nRouted: 0, nbytes: 0, bytesRead: 0 };
  for (let r = upperBound(track.a, step) - 1; r >= 0 && evals[r] >= evaluation; r--) {
    if (evals[r] !== evaluation) continue;
    whole2.nRouted++;
    whole2.nbytes += nbytes[r];
    whole2.bytesRead += read[r];
  }
  return whole2;
}
function piecesAt({ tracks }, step) {
  const track = tracks.track("token");
  const pos = track.col("pos");
  const pieces2 = /* @__PURE__ */ new Map();
  track.each(step, (r) => pieces2.set(pos[r], track.str("piece", r)));
  return pieces2;
}

// routing.js
var FACTS2 = { width: 560, height: 190 };
var routingDetail = {
  name: "routing",
  title: "Routing",
  has: ({ tracks }) => tracks.track("route").length > 0,
  make: (player, pane) => new RoutingView(player, pane)
};
function percent2(part, whole2) {
  const share2 = 100 * part / Math.max(1, whole2);
  return `${share2 >= 1 || share2 === 0 ? Math.round(share2) : share2.toFixed(1)} %`;
}
var RoutingView = class extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Routing",
      keys: "expert by expert, those that have tokens",
      empty: "No token has been sent to an expert at this step."
    });
    this.routed = null;
    this.layer = -1;
    this.pieces = /* @__PURE__ */ new Map();
    this.choice = el("select", "vg-select", { "aria-label": "Which layer", title: "Which layer" }, [
      el("option", "", { value: "-1", text: "newest layer" }),
      ...layersOf(player).map((il) => el("option", "", { value: String(il), text: `layer ${il}` }))
    ]);
    this.choice.addEventListener("change", () => {
      this.layer = Number(this.choice.value);
      this.player.redraw(this.pane);
    });
    this.tools = [this.choice];
    this.read = bar();
    this.whole = bar();
    this.busiest = el("p");
    this.facts = el("aside", "vg-routing-facts", { "aria-label": "Of these experts" }, [
      section("weights read in this layer", this.read.parts),
      section("weights read in this evaluation", this.whole.parts),
      section("busiest", [this.busiest]),
      section("read it so", [
        el("p", "vg-soft", {
          text: "A column is an expert, a line a token; the stronger its colour, the more the expert's result counts. Grey: tokens of earlier evaluations. Dashed: what each expert would have if all had as many."
        })
      ])
    ]);
    this.element.classList.add("vg-routing");
    this.element.append(this.facts);
    this.sizer = new ResizeObserver((entries) => {
      const { width, height } = entries[entries.length - 1].contentRect;
      this.element.classList.toggle("vg-low", width < FACTS2.width || height < FACTS2.height);
    });
    this.sizer.observe(this.element);
  }
  /** @param {number} step */
  prepare(step) {
    const { player } = this;
    const routed = this.routed = routedAt(player, step, this.layer, roomFor(this.surface.height));
    if (!routed) return null;
    this.pieces = piecesAt(player, step);
    const { layer, nTokens, nUsed, nRead, nExpert, nbytes, bytesRead, evaluation } = routed;
    this.showFacts(routed, step);
    const evals = player.tracks.track("eval");
    const [index, count] = ["index", "n_tokens"].map((name) => evals.col(name));
    const behind = evals.openAt(step).some((r) => index[r] !== evaluation);
    const all = count[index.indexOf(evaluation)] ?? nTokens;
    const tokens = all > nTokens ? `${nTokens} of ${counted(all, "token")}, whose logits are wanted` : counted(nTokens, "token");
    return {
      strong: `layer ${layer}: ${nRead} of ${counted(nExpert, "expert")} read, ${percent2(bytesRead, nbytes)} of bytes`,
      rest: [`${tokens}, ${nUsed} experts each`, behind ? `of evaluation ${evaluation}: not yet routed in this one` : `evaluation ${evaluation}`].join("; ")
    };
  }
  /** @param {Routed} routed @param {number} step */
  showFacts(routed, step) {
    const { nbytes, bytesRead, nRead, nExpert, nTokens, load, evaluation } = routed;
    this.read.show(bytesRead / nbytes, `${nRead} of ${nExpert} experts: ${formatBytes(bytesRead)} of ${formatBytes(nbytes)}`);
    const whole2 = wholeOf(this.player, step, evaluation);
    const so = whole2.nRouted < whole2.nLayer ? `${whole2.nRouted} of ${whole2.nLayer} layers so far` : counted(whole2.nLayer, "layer");
    this.whole.show(whole2.bytesRead / Math.max(1, whole2.nbytes), `${so}: ${formatBytes(whole2.bytesRead)} of ${formatBytes(whole2.nbytes)}`);
    const busiest = load.indexOf(Math.max(...load));
    const even = nTokens * routed.nUsed / nExpert;
    setText(this.busiest, nTokens > 1 ? `expert ${busiest}: ${load[busiest]} of ${nTokens} tokens; ${Number(even.toFixed(1))} if all had as many` : "one token: each of its experts has it");
  }
  places() {
    return this.routed ? placesOf2(this.routed, this.surface.width, this.surface.height) : null;
  }
  /** @param {CanvasRenderingContext2D} c */
  paint(c) {
    const [routed, places] = [this.routed, this.places()];
    if (routed && places) paintRouting(this.player, c, routed, places, this.pieces, this.at(this.cursor));
  }
  /** A place is an expert, plus as many as there are for each line of tokens above it and the bars. @param {number} k */
  at(k) {
    const n = this.routed?.nExpert ?? 1;
    return k < 0 ? { expert: -1, line: -1 } : { expert: k % n, line: Math.floor(k / n) - 1 };
  }
  /** @param {number} x @param {number} y */
  findAt(x, y) {
    const [routed, places] = [this.routed, this.places()];
    if (!routed || !places || x < places.left || x >= places.left + places.wide) return -1;
    const expert = Math.min(routed.nExpert - 1, Math.floor((x - places.left) / places.each));
    const line = Math.floor((y - places.top) / places.high);
    if (line >= places.n) return -1;
    return expert + routed.nExpert * Math.max(0, line + 1);
  }
  /** The tokens of a line. @param {number} line */
  tokensAt(line) {
    const [routed, places] = [this.routed, this.places()];
    return routed && places ? routed.lines.slice(line * places.per, (line + 1) * places.per) : [];
  }
  /** @param {number} k */
  cardOf(k) {
    const { routed } = this;
    if (!routed) return null;
    const { expert, line } = this.at(k);
    const { load, nTokens, nUsed, nbytes, nExpert } = routed;
    const pairs = [];
    const tokens = line < 0 ? [] : this.tokensAt(line);
    if (tokens.length === 1) {
      const { pos, experts, weights, begin } = tokens[0];
      const piece = this.pieces.get(pos);
      pairs.push(["token", piece ? `${pos} ${visiblePiece(piece)}` : `at position ${pos}`]);
      const rank = Array.from({ length: nUsed }, (_, i) => experts[begin + i]).indexOf(expert);
      pairs.push(["weight", rank < 0 ? "not chosen" : `${weights[begin + rank].toFixed(3)}, choice ${rank + 1} of ${nUsed}`]);
    } else if (tokens.length > 1) pairs.push(["tokens", `at positions ${tokens[0].pos} to ${tokens[tokens.length - 1].pos}`]);
    pairs.push(["has", `${load[expert]} of ${counted(nTokens, "token")}`]);
    pairs.push(["bytes", `${formatBytes(Math.round(nbytes / nExpert))}, ${load[expert] ? "read" : "not read"}`]);
    return { head: `expert ${expert}`, pairs };
  }
  /** @param {number} k */
  placeOf(k) {
    const places = this.places();
    if (!places) return null;
    const { expert, line } = this.at(k);
    return { x: places.left + (expert + 0.5) * places.each, y: line < 0 ? places.bars - 6 : places.top + (line + 0.5) * places.high };
  }
  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    const { routed } = this;
    if (!routed) return -1;
    const { expert } = this.at(k);
    for (let e = k < 0 ? 0 : expert + by; e >= 0 && e < routed.nExpert; e += by) if (routed.load[e]) return e;
    return k < 0 ? -1 : expert;
  }
  /** Where that token was sent there; the weights as the selected tensor. @param {number} k */
  choose(k) {
    const { player } = this;
    const [token] = this.tokensAt(this.at(k).line);
    if (token && !token.now) player.go(token.event);
    else if (this.routed) player.select(player.tracks.field(player.tracks.track("route").a[this.routed.row], "tensor"));
  }
  stop() {
    this.sizer.disconnect();
    super.stop();
  }
};
function bar() {
  const fill2 = el("span");
  const words = el("p");
  const parts = [el("div", "vg-share", {}, [fill2]), words];
  const show = (share2, text) => {
    const width = `${(100 * share2).toFixed(1)}%`;
    if (fill2.style.width !== width) fill2.style.width = width;
    setText(words, text);
  };
  return { parts, show };
}
function section(title2, parts) {
  return el("section", "", {}, [el("h3", "", { text: title2 }), ...parts]);
}

// scratch.js
var LEFT3 = 12;
var TOP3 = 20;
var FOOT2 = 16;
var scratchDetail = {
  name: "scratch",
  title: "Scratch",
  has: ({ tracks }) => tracks.track("scratch").length > 0,
  make: (player, pane) => new ScratchView(player, pane)
};
function scratchAt(player, step) {
  const { tracks, relations } = player;
  const track = tracks.track("scratch");
  const [graph, tensor, size] = ["graph", "tensor", "work_size"].map((name) => track.col(name));
  const open = track.openAt(step);
  if (!open.length) return null;
  const [focus, whole2] = [relations.focus.graph[step], tracks.columns.column("graph.part_of")];
  const latest = (rows2) => rows2.reduce((at, r) => track.a[r] > track.a[at] ? r : at, rows2[0]);
  const mine = open.filter((r) => graph[r] === focus || whole2[graph[r]] === focus);
  const g = graph[latest(mine.length ? mine : open)];
  const { position } = relations.home;
  const rows = open.filter((r) => graph[r] === g).sort((p, q) => position[tensor[p]] - position[tensor[q]]);
  const winner = rows.reduce((at, r) => size[r] > size[at] ? r : at, rows[0]);
  const ptr = tracks.columns.column("graph.ptr");
  const begun = rows.reduce((least, r) => Math.min(least, track.a[r]), Infinity);
  const end = eventsOf(player, "PlanEnd").findLast((i) => i <= step && i > begun && tracks.field(i, "graph") === g) ?? -1;
  return { graph: g, rows, n: Math.max(rows.length, ptr[g + 1] - ptr[g]), winner, most: size[winner], end };
}
function termsOf({ tracks }, row) {
  const { a } = tracks.track("scratch");
  for (let i = a[row]; i >= Math.max(0, a[row] - 1); i--) if (tracks.kindOf(i).name === "NodePlanned") return String(tracks.field(i, "terms"));
  return "";
}
var ScratchView = class extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Scratch",
      keys: "node by node, those that need any",
      empty: "No scratch is planned at this step. ggml.graph_plan(graph, n_threads) plans it, before a graph is computed."
    });
    this.plan = null;
    this.focus = -1;
  }
  /** @param {number} step */
  prepare(step) {
    const { player } = this;
    const { tracks, relations, selected } = player;
    const plan = this.plan = scratchAt(player, step);
    if (!plan) return null;
    const track = tracks.track("scratch");
    const [tensor, tasks, size] = ["tensor", "n_tasks", "work_size"].map((name2) => track.col(name2));
    const about2 = selected >= 0 ? selected : relations.tensorAt(step);
    this.focus = plan.rows.find((r2) => tensor[r2] === about2) ?? -1;
    const name = visible(tracks.name(tensor[plan.winner]));
    let strong = plan.most ? `largest so far ${formatBytes(plan.most)}, ${name}` : "no node needs scratch so far";
    if (plan.end >= 0) {
      const [work, padding] = ["work_size", "padding"].map((field) => tracks.field(plan.end, field));
      strong = work ? `work size ${formatBytes(work)} = ${name} ${formatBytes(plan.most)} + padding ${formatBytes(padding)}` : "no node needs scratch: work size 0";
    }
    const r = this.focus;
    const terms = r < 0 ? "" : termsOf(player, r);
    const rest = r < 0 ? "" : `${visible(tracks.name(tensor[r]))}: ${counted(tasks[r], "task")}, ${size[r] ? `${formatBytes(size[r])}${terms ? `: ${terms}` : ""}` : "no scratch"}`;
    return { strong, rest };
  }
  /** @param {number} row */
  x(row) {
    const { plan, player, surface } = this;
    const tensor = player.tracks.track("scratch").col("tensor")[row];
    const at = player.relations.home.position[tensor];
    return LEFT3 + at / Math.max(1, plan?.n ?? 1) * (surface.width - 2 * LEFT3);
  }
  /** @param {CanvasRenderingContext2D} c @param {number} w @param {number} h */
  paint(c, w, h) {
    const { plan, player } = this;
    if (!plan) return;
    const { palette, fonts, tracks } = player;
    const track = tracks.track("scratch");
    const [size, maximum] = ["work_size", "maximum"].map((name) => track.col(name));
    const foot = h - FOOT2;
    const y = (bytes) => foot - bytes / Math.max(1, plan.most) * (foot - TOP3);
    const wide = (w - 2 * LEFT3) / plan.n;
    c.strokeStyle = palette.line;
    c.lineWidth = 1;
    c.strokeRect(LEFT3 - 0.5, foot + 0.5, w - 2 * LEFT3, 0);
    for (const r of plan.rows) {
      if (!size[r]) continue;
      c.fillStyle = r === plan.winner ? palette.accent : palette.families[0];
      c.fillRect(this.x(r), y(size[r]), Math.max(1.2, wide - (wide > 3 ? 1 : 0)), foot - y(size[r]));
    }
    c.strokeStyle = palette.ink;
    c.beginPath();
    let before = 0;
    for (const r of plan.rows) {
      const now = Math.max(before, maximum[r], size[r]);
      c.lineTo(this.x(r), y(before));
      c.lineTo(this.x(r), y(now));
      before = now;
    }
    const last = plan.rows[plan.rows.length - 1];
    c.lineTo(this.x(last) + wide, y(before));
    c.stroke();
    this.paintWinner(c, w, y(plan.most));
    for (
      const [r, colour] of
      /** @type {[number, string][]} */
      [[this.focus, palette.accent], [this.cursor >= 0 ? this.cursor : -1, palette.ink]]
    ) {
      if (r < 0) continue;
      c.fillStyle = colour;
      const x = this.x(r) + Math.max(1, wide) / 2;
      c.beginPath();
      c.moveTo(x, foot + 3);
      c.lineTo(x - 4, foot + 10);
      c.lineTo(x + 4, foot + 10);
      c.fill();
      c.fillRect(x - 0.5, TOP3, 1, foot - TOP3);
    }
    const right = this.focus >= 0 && this.x(this.focus) < w / 2;
    c.font = `10px ${fonts.ui}`;
    c.fillStyle = palette.faint;
    c.textAlign = right ? "right" : "left";
    c.fillText(`${plan.n} nodes, in execution order`, right ? w - LEFT3 : LEFT3, foot + 9);
    c.textAlign = "left";
  }
  /** @param {CanvasRenderingContext2D} c @param {number} w @param {number} y */
  paintWinner(c, w, y) {
    const { plan, player } = this;
    if (!plan?.most) return;
    const { palette, fonts, tracks } = player;
    const name = visible(tracks.name(tracks.track("scratch").col("tensor")[plan.winner]));
    const x = this.x(plan.winner);
    c.font = `600 11px ${fonts.ui}`;
    c.fillStyle = palette.accent;
    c.textAlign = x > w * 0.6 ? "right" : "left";
    c.fillText(`${name} ${formatBytes(plan.most)}`, x + (c.textAlign === "right" ? 2 : 0), y - 10);
    c.textAlign = "left";
  }
  /** @param {number} x */
  findAt(x) {
    const { plan, surface, player } = this;
    if (!plan) return -1;
    const at = Math.floor((x - LEFT3) / (surface.width - 2 * LEFT3) * plan.n);
    const [tensor, size] = ["tensor", "work_size"].map((name) => player.tracks.track("scratch").col(name));
    const { position } = player.relations.home;
    const near = plan.rows.filter((r) => Math.abs(position[tensor[r]] - at) <= Math.ceil(plan.n * 3 / surface.width));
    return near.reduce((best, r) => best < 0 || size[r] > size[best] ? r : best, -1);
  }
  /** @param {number} row */
  cardOf(row) {
    const { tracks } = this.player;
    const track = tracks.track("scratch");
    const terms = termsOf(this.player, row);
    const pairs = [["tasks", String(track.col("n_tasks")[row])], ["scratch", formatBytes(track.col("work_size")[row])]];
    if (terms) pairs.push(["formula", terms]);
    pairs.push(["largest so far", formatBytes(track.col("maximum")[row])]);
    return { head: visible(tracks.name(track.col("tensor")[row])), pairs };
  }
  /** @param {number} row */
  placeOf(row) {
    return { x: this.x(row), y: TOP3 };
  }
  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    const size = this.player.tracks.track("scratch").col("work_size");
    const rows = (this.plan?.rows ?? []).filter((r) => size[r] > 0);
    if (k < 0) return this.focus >= 0 && rows.includes(this.focus) ? this.focus : rows[0] ?? -1;
    return rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(k) + by))] ?? -1;
  }
  /** @param {number} row */
  choose(row) {
    this.player.select(this.player.tracks.track("scratch").col("tensor")[row]);
  }
};

// folding.js
var GAP2 = 36;
var GUTTER = 56;
var MARGIN = 20;
var HEADER2 = 26;
var CARD = { w: 250, h: 84, second: 18 };
var MOST_COLUMNS = 96;
var CROWDED = 0.45;
var Folding = class {
  /** @param {GraphJson} graph */
  constructor(graph) {
    this.graph = graph;
    this.indexOf = new Map(graph.sections.map((s, i) => [s.id, i]));
    const n = graph.sections.length;
    this.fold = new Int32Array(n).fill(-1);
    this.folds = foldsOf(graph);
    this.folds.forEach((fold, f) => {
      for (const id of fold.sections) this.fold[this.indexOf.get(id) ?? -1] = f;
    });
    this.rows = Array.from({ length: n }, () => []);
    this.sectionOf = Int32Array.from(graph.nodes.section, (id) => this.indexOf.get(id) ?? 0);
    this.sectionOf.forEach((s, row) => this.rows[s].push(row));
    this.rowOf = rowsByTensor(graph, this.rows, this.indexOf);
    this.open = new Uint8Array(n);
    this.dx = new Float64Array(n);
    this.dy = new Float64Array(n);
    this.itemOf = new Int32Array(n);
    this.column = new Int32Array(n);
    this.version = 0;
    const { src, dst } = graph.edges;
    this.inner = edgeLists(n, src, (e) => this.sectionOf[src[e]] === this.sectionOf[dst[e]] ? this.sectionOf[src[e]] : -1);
    this.across = Int32Array.from(src.keys()).filter((e) => this.sectionOf[src[e]] !== this.sectionOf[dst[e]]);
    const { tensor } = graph.nodes;
    this.into = edgeLists(tensor.length, dst, (e) => dst[e]);
    this.outOf = edgeLists(tensor.reduce((most, t) => Math.max(most, t), 0) + 1, src, (e) => tensor[src[e]]);
    this.items = [];
    this.width = 0;
    this.height = 0;
    this.arrange(1.5);
  }
  /** @param {number} s an index into the sections */
  foldable(s) {
    return this.fold[s] >= 0;
  }
  get closed() {
    return this.fold.some((f, s) => f >= 0 && !this.open[s]);
  }
  /** Whether row `row` is drawn as a box of its own. @param {number} row */
  shown(row) {
    const s = this.sectionOf[row];
    return !this.foldable(s) || this.open[s] === 1;
  }
  /** @param {number} row */
  x(row) {
    return this.graph.nodes.x[row] + this.dx[this.sectionOf[row]];
  }
  /** @param {number} row */
  y(row) {
    return this.graph.nodes.y[row] + this.dy[this.sectionOf[row]];
  }
  /** Opens or closes sections. What stays keeps its column, unless that would make all too small.
   * @param {number[]} sections @param {boolean} open @param {number} aspect */
  set(sections, open, aspect) {
    for (const s of sections) if (this.foldable(s)) this.open[s] = open ? 1 : 0;
    const items = this.makeItems();
    for (const item of items) item.column = this.column[item.sections[0]];
    const kept2 = stand(items);
    const fit = Math.min(aspect / kept2.width, 1 / kept2.height);
    const { items: free, scale } = this.bestColumns(aspect);
    if (fit > CROWDED * scale) this.adopt(items);
    else this.adopt(free);
  }
  /** Puts cards and open sections one under the other, in as many columns as fill a pane of that aspect best.
   * @param {number} aspect width over height */
  arrange(aspect) {
    this.adopt(this.bestColumns(aspect).items);
  }
  /** @param {number} aspect */
  bestColumns(aspect) {
    const items = this.makeItems();
    let best = 1;
    let bestScale = -1;
    for (let columns = 1; columns <= Math.min(items.length, MOST_COLUMNS); columns += 1 + (columns >> 4)) {
      const { width, height } = place(items, columns);
      const scale = Math.min(aspect / width, 1 / height);
      if (scale > bestScale * 1.02) [best, bestScale] = [columns, scale];
    }
    place(items, best);
    return { items, scale: bestScale };
  }
  /** @param {Item[]} items where they are to stand */
  adopt(items) {
    Object.assign(this, stand(items), { items });
    this.version++;
    items.forEach((item, k) => {
      for (const s of item.sections) {
        this.itemOf[s] = k;
        this.column[s] = item.column;
        const section2 = this.graph.sections[s];
        this.dx[s] = item.x - section2.x;
        this.dy[s] = item.y - section2.y;
      }
    });
  }
  /** What a section is unlike, in a few words; nothing where it is like the others. @param {number} s */
  unlike(s) {
    const d = this.graph.sections[s].differs;
    if (!d) return "";
    const parts = [];
    const nodes = (list) => `${list.length} node${list.length > 1 ? "s" : ""}`;
    if (d.added.length) parts.push(`+${nodes(d.added)}`);
    if (d.removed.length) parts.push(`−${nodes(d.removed)}`);
    if (d.changed.length) parts.push(`${d.changed.length} changed`);
    return `unlike ${this.graph.sections[this.indexOf.get(d.like) ?? 0].label}: ${parts.join(", ")}`;
  }
  /** @returns {Item[]} */
  makeItems() {
    const { graph: { sections }, folds } = this;
    const items = [];
    let run = -1;
    sections.forEach((section2, s) => {
      const fold = this.fold[s];
      const last = items[items.length - 1];
      const base = { x: 0, y: 0, column: 0 };
      if (fold < 0 || this.open[s]) {
        items.push({ ...base, sections: [s], card: false, foldable: fold >= 0, label: section2.label, second: this.unlike(s), w: section2.w, h: section2.h });
        run = -1;
      } else if (fold === run) {
        last.sections.push(s);
      } else {
        items.push({ ...base, sections: [s], card: true, foldable: true, label: "", second: "", w: CARD.w, h: CARD.h });
        run = fold;
      }
    });
    for (const item of items) {
      if (!item.card) continue;
      const n = item.sections.length;
      const fold = folds[this.fold[item.sections[0]]];
      const [, word, inTurn] = /^(.*?)(?:\s*[x×]\s*\d+)?(?:, (.*))?$/.exec(fold.label) ?? [];
      item.label = n === 1 ? sections[item.sections[0]].label : `${word || "block"} × ${n}`;
      item.second = n === 1 ? this.unlike(item.sections[0]) : inTurn ?? "";
      if (item.second) item.h += CARD.second;
    }
    return items;
  }
  /** A line from a box, or the card it is folded into, to another; null inside one card. @param {number} edge */
  crossing(edge) {
    const { src, dst } = this.graph.edges;
    const from = this.anchor(src[edge]);
    const to = this.anchor(dst[edge]);
    if (from.item === to.item && from.card) return null;
    return { key: `${from.key}>${to.key}`, from, to };
  }
  /** @param {number} row */
  anchor(row) {
    const item = this.items[this.itemOf[this.sectionOf[row]]];
    if (item.card) {
      const at = { x: item.x + item.w / 2, y: item.y + item.h / 2, w: item.w, h: item.h };
      return { ...at, item, card: true, key: `c${item.sections[0]}` };
    }
    const { w, h } = this.graph.nodes;
    return { x: this.x(row), y: this.y(row), w: w[row], h: h[row], item, card: false, key: `r${row}` };
  }
};
function place(items, columns) {
  const total = items.reduce((sum, item) => sum + item.h + GAP2, 0);
  let column = 0;
  let filled = 0;
  for (const item of items) {
    if (filled > 0 && column + 1 < columns && filled + (item.h + GAP2) / 2 > total * (column + 1) / columns) column++;
    item.column = column;
    filled += item.h + GAP2;
  }
  return stand(items);
}
function stand(items) {
  const n = items.reduce((most, item) => Math.max(most, item.column), 0) + 1;
  const wide = new Float64Array(n);
  for (const item of items) wide[item.column] = Math.max(wide[item.column], item.w);
  const left = new Float64Array(n);
  for (let c = 0, x = MARGIN; c < n; x += wide[c] + GUTTER, c++) left[c] = x;
  const y = new Float64Array(n).fill(MARGIN);
  for (const item of items) {
    item.x = left[item.column] + (wide[item.column] - item.w) / 2;
    item.y = y[item.column];
    y[item.column] += item.h + GAP2;
  }
  return { width: left[n - 1] + wide[n - 1] + MARGIN, height: Math.max(...y) - GAP2 + MARGIN };
}
function edgeLists(n, edges, key) {
  const ptr = new Uint32Array(n + 1);
  for (let e = 0; e < edges.length; e++) if (key(e) >= 0) ptr[key(e) + 1]++;
  for (let k = 0; k < n; k++) ptr[k + 1] += ptr[k];
  const next = ptr.slice();
  const list = new Int32Array(ptr[n]);
  for (let e = 0; e < edges.length; e++) if (key(e) >= 0) list[next[key(e)]++] = e;
  return (k) => k >= 0 && k < n ? list.subarray(ptr[k], ptr[k + 1]) : list.subarray(0, 0);
}
function foldsOf(graph) {
  const folded = new Set(graph.folds.flatMap((fold) => fold.sections));
  if (!folded.size) return graph.folds;
  const alone = graph.sections.filter((s) => s.layer >= 0 && !folded.has(s.id));
  return [...graph.folds, ...alone.map((s) => ({ sections: [s.id], label: s.label }))];
}
function rowsByTensor(graph, rows, indexOf) {
  const rowOf = /* @__PURE__ */ new Map();
  for (const section2 of graph.sections) {
    const own = new Set(section2.nodes);
    for (const row of rows[indexOf.get(section2.id) ?? 0]) {
      const t = graph.nodes.tensor[row];
      if (own.has(t) || !rowOf.has(t)) rowOf.set(t, row);
    }
  }
  return rowOf;
}

// graph_paint.js
var MONO = 0.602;
var PAD4 = 9;
var WEIGHT = ".weight";
var [NAMED, NOTED, NEAR2] = [0.36, 0.7, 1.75];
var [EDGES_FROM, OUTLINED_FROM, ROUND_FROM] = [0.07, 0.2, 0.35];
var NEAR_LINES = 5;
function detail(scale) {
  return scale < NAMED ? 0 : scale < NOTED ? 1 : scale < NEAR2 ? 2 : 3;
}
function nearType(scale, h) {
  const pitch = Math.min(16 / scale, h / (NEAR_LINES + 0.4));
  return { pitch, size: Math.min(12.5 / scale, pitch * 0.84) };
}
function roundRect(c, x, y, w, h, r) {
  c.beginPath();
  c.roundRect(x, y, w, h, r);
}
function inSight(size, view) {
  const [left, top] = [-view.x / view.scale, -view.y / view.scale];
  return { left, top, right: left + size.width / view.scale, bottom: top + size.height / view.scale };
}
function isSeen(item, seen) {
  return item.x < seen.right && item.x + item.w > seen.left && item.y < seen.bottom && item.y + item.h > seen.top;
}
var GraphPainter = class {
  /** @param {Tracks} tracks @param {Folding} folding */
  constructor(tracks, folding) {
    this.tracks = tracks;
    this.folding = folding;
    this.paths = /* @__PURE__ */ new Map();
    this.acrossPath = null;
  }
  /** Frames, edges, boxes and their words; with `members` all else is dimmed.
   * @param {Context} c in CSS pixels @param {{width: number, height: number}} size @param {View} view @param {Palette} palette
   * @param {Fonts} fonts @param {Set<number> | null} members tensors */
  paint(c, size, view, palette, fonts, members) {
    c.fillStyle = palette.page;
    c.fillRect(0, 0, size.width, size.height);
    this.within(c, view, () => {
      const seen = inSight(size, view);
      this.frames(c, palette, fonts, seen, view.scale, null);
      this.edges(c, palette, seen, view.scale);
      this.boxes(c, palette, seen, view.scale);
      this.words(c, palette, fonts, seen, view.scale, null);
    });
    if (members) this.paintOnly(c, size, view, palette, fonts, members);
  }
  /** Dims what is painted and paints `members` over it, as bright as before.
   * @param {Context} c @param {{width: number, height: number}} size @param {View} view @param {Palette} palette
   * @param {Fonts} fonts @param {Set<number>} members */
  paintOnly(c, size, view, palette, fonts, members) {
    c.globalAlpha = 0.84;
    c.fillStyle = palette.page;
    c.fillRect(0, 0, size.width, size.height);
    c.globalAlpha = 1;
    this.within(c, view, () => {
      const { folding } = this;
      const { tensor, w, h } = folding.graph.nodes;
      const seen = inSight(size, view);
      this.frames(c, palette, fonts, seen, view.scale, members);
      c.strokeStyle = palette.soft;
      c.lineWidth = Math.max(1.1, 0.8 / view.scale);
      c.beginPath();
      const drawn = /* @__PURE__ */ new Set();
      for (let row = 0; row < tensor.length; row++) {
        if (!members.has(tensor[row])) continue;
        for (const e of folding.into(row)) if (members.has(tensor[folding.graph.edges.src[e]])) this.trace(c, e, seen, drawn);
      }
      c.stroke();
      c.fillStyle = palette.raised;
      c.strokeStyle = palette.edge;
      c.lineWidth = 1;
      c.beginPath();
      for (let row = 0; row < tensor.length; row++) {
        if (members.has(tensor[row]) && folding.shown(row)) c.roundRect(folding.x(row) - w[row] / 2, folding.y(row) - h[row] / 2, w[row], h[row], 4);
      }
      c.fill();
      c.stroke();
      this.words(c, palette, fonts, seen, view.scale, members);
    });
  }
  /** @param {Context} c @param {View} view @param {() => void} act */
  within(c, view, act) {
    c.save();
    c.translate(view.x, view.y);
    c.scale(view.scale, view.scale);
    act();
    c.restore();
  }
  /** Of `members`, the cards alone that hold some. @param {Context} c @param {Palette} palette @param {Fonts} fonts
   * @param {Seen} seen @param {number} scale @param {Set<number> | null} members */
  frames(c, palette, fonts, seen, scale, members) {
    c.textBaseline = "middle";
    for (const item of this.folding.items) {
      if (!isSeen(item, seen)) continue;
      if (!members) frame(c, palette, item);
      else if (!this.holds(item, members)) continue;
      else if (item.card) frame(c, palette, item);
      title(c, palette, fonts, item, scale, seen, false);
    }
  }
  /** The labels that lie over boxes, because theirs is no room of their own: painted last.
   * @param {Context} c @param {{width: number, height: number}} size @param {View} view @param {Palette} palette
   * @param {Fonts} fonts @param {Set<number> | null} members */
  titles(c, size, view, palette, fonts, members) {
    const seen = inSight(size, view);
    c.textBaseline = "middle";
    for (const item of this.folding.items) {
      if (!item.card && isSeen(item, seen) && (!members || this.holds(item, members))) title(c, palette, fonts, item, view.scale, seen, true);
    }
  }
  /** @param {Item} item @param {Set<number>} members */
  holds(item, members) {
    return item.sections.some((s) => this.folding.graph.sections[s].nodes.some((t) => members.has(t)));
  }
  /** The open sections in sight. @param {Seen} seen @returns {number[]} */
  openIn(seen) {
    return this.folding.items.filter((item) => !item.card && isSeen(item, seen)).map((item) => item.sections[0]);
  }
  /** @param {Context} c @param {Palette} palette @param {Seen} seen @param {number} scale */
  edges(c, palette, seen, scale) {
    const { folding } = this;
    c.strokeStyle = palette.edge;
    c.lineWidth = scale > 1 ? 1.2 / scale : Math.max(1, 0.6 / scale);
    if (this.acrossPath?.version !== folding.version) {
      const path = new Path2D();
      const drawn = /* @__PURE__ */ new Set();
      for (const e of folding.across) this.trace(path, e, null, drawn);
      this.acrossPath = { version: folding.version, path };
    }
    c.stroke(this.acrossPath.path);
    if (scale < EDGES_FROM) return;
    for (const s of this.openIn(seen)) this.placed(c, s, `e${s}`, (path) => this.traceSection(path, s), (path) => c.stroke(path));
  }
  /** @param {Path2D} path @param {number} s */
  traceSection(path, s) {
    const { folding } = this;
    for (const e of folding.inner(s)) traceInside(path, folding.graph.edges.points[e], 0, 0, null);
  }
  /** Draws a path of section `s`, made once. @param {Context} c @param {number} s @param {string} key
   * @param {(path: Path2D) => void} make @param {(path: Path2D) => void} draw */
  placed(c, s, key, make, draw) {
    let path = this.paths.get(key);
    if (!path) {
      make(path = new Path2D());
      this.paths.set(key, path);
    }
    const { dx, dy } = this.folding;
    c.translate(dx[s], dy[s]);
    draw(path);
    c.translate(-dx[s], -dy[s]);
  }
  /** Adds edge `e` to the path. @param {Context | Path2D} c @param {number} e
   * @param {Seen | null} seen @param {Set<string> | null} drawn */
  trace(c, e, seen, drawn) {
    const { folding } = this;
    const { src, dst, points } = folding.graph.edges;
    const s = folding.sectionOf[src[e]];
    if (s === folding.sectionOf[dst[e]]) {
      if (folding.shown(src[e])) traceInside(c, points[e], folding.dx[s], folding.dy[s], seen);
      return;
    }
    const line = folding.crossing(e);
    if (!line || drawn && drawn.has(line.key)) return;
    drawn?.add(line.key);
    traceAcross(c, line.from, line.to);
  }
  /** @param {Context} c @param {Palette} palette @param {Seen} seen @param {number} scale */
  boxes(c, palette, seen, scale) {
    const { folding } = this;
    const { x, y, w, h } = folding.graph.nodes;
    const round = scale >= ROUND_FROM;
    c.fillStyle = scale < OUTLINED_FROM ? palette.line : palette.raised;
    c.strokeStyle = palette.edge;
    c.lineWidth = 1 / Math.max(1, scale);
    for (const s of this.openIn(seen)) {
      const make = (path) => {
        for (const row of folding.rows[s]) {
          const box = (
            /** @type {const} */
            [x[row] - w[row] / 2, y[row] - h[row] / 2, w[row], h[row]]
          );
          if (round) path.roundRect(...box, 4);
          else path.rect(...box);
        }
      };
      this.placed(c, s, `${round ? "r" : "b"}${s}`, make, (path) => {
        c.fill(path);
        if (scale >= OUTLINED_FROM) c.stroke(path);
      });
    }
  }
  /** What the boxes in sight say, in letters that can be read or not at all. @param {Context} c @param {Palette} palette
   * @param {Fonts} fonts @param {Seen} seen @param {number} scale @param {Set<number> | null} members */
  words(c, palette, fonts, seen, scale, members) {
    const level = detail(scale);
    if (!level) return;
    const { folding, tracks } = this;
    const { tensor, w, h } = folding.graph.nodes;
    const rows = this.openIn(seen).flatMap((s) => folding.rows[s]).filter((r) => (!members || members.has(tensor[r])) && isSeen({ x: folding.x(r) - w[r] / 2, y: folding.y(r) - h[r] / 2, w: w[r], h: h[r] }, seen));
    const lines = level === 3 ? nearLines(scale, h[rows[0]] ?? 34) : level === 2 ? [[-2.5, Math.max(11, 9 / scale)], [10.5, Math.max(9.5, 8.3 / scale)]] : [[0, Math.max(11, 9.5 / scale)]];
    c.textBaseline = level === 1 ? "middle" : "alphabetic";
    lines.forEach(([down, size], k) => {
      c.font = `${k === 0 && level === 3 ? "600 " : ""}${size}px ${fonts.mono}`;
      c.fillStyle = k === 0 ? palette.ink : palette.soft;
      for (const row of rows) {
        const room = Math.floor((w[row] - PAD4 - (k === 0 ? 9 : 4)) / (size * MONO));
        const text = this.line(tensor[row], k, level);
        const fits = k === 0 ? nameIn(text, room) : cutEnd(text, room);
        if (room > 3) c.fillText(fits, folding.x(row) - w[row] / 2 + PAD4, folding.y(row) + down);
      }
    });
    if (level < 2) return;
    for (const row of rows) {
      c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
      c.fillRect(folding.x(row) + w[row] / 2 - 8, folding.y(row) - h[row] / 2 + 4, 4, 4);
    }
  }
  /** Line `k` of what a box says. @param {number} t @param {number} k @param {number} level */
  line(t, k, level) {
    const { tracks } = this;
    if (k === 0) return visible(tracks.name(t));
    const op = tracks.tensorString("desc", t);
    const leaf = op === "" || op === "NONE";
    const type = tracks.tensorString("type", t);
    if (level === 2) return `${leaf ? type : op}  ${formatDims(tracks.ne(t))}`;
    if (k === 1) return leaf ? `${type}, a leaf` : `${op}  ${type}`;
    const n = Math.max(1, ...[1, 2, 3, 4].filter((d) => tracks.ne(t)[d - 1] !== 1));
    const numbers = k === 2 ? tracks.ne(t) : tracks.columns.column("tensor.nb").subarray(4 * t, 4 * t + 4);
    return `${k === 2 ? "ne" : "nb"} ${Array.from(numbers.subarray(0, n)).join(", ")}`;
  }
};
function nameIn(name, room) {
  if (name.length <= room) return name;
  const bare = name.replace(/-\d+(?=$| )/, "").replace(/^blk\.\d+\./, "");
  if (bare.length <= room || !bare.endsWith(WEIGHT)) return cutEnd(bare, room);
  const stem = bare.slice(0, -WEIGHT.length);
  return stem.length + 2 <= room ? `${stem}.w` : room < 6 ? "" : `${stem.slice(0, room - 3)}….w`;
}
function nearLines(scale, h) {
  const { pitch, size } = nearType(scale, h);
  return [0, 1, 2, 3].map((k) => [(k - (NEAR_LINES - 1) / 2) * pitch + size * 0.36, size]);
}
function frame(c, palette, item) {
  c.fillStyle = palette.panel;
  c.strokeStyle = palette.line;
  c.lineWidth = 1;
  if (item.card) {
    for (let k = Math.min(2, item.sections.length - 1); k > 0; k--) {
      roundRect(c, item.x + 5 * k, item.y + 5 * k, item.w, item.h, 8);
      c.fill();
      c.stroke();
    }
    c.fillStyle = palette.raised;
  }
  roundRect(c, item.x, item.y, item.w, item.h, 8);
  c.fill();
  c.stroke();
}
var WIDTHS = /* @__PURE__ */ new Map();
function widthOf2(c, fonts, label) {
  let width = WIDTHS.get(label);
  if (width === void 0) {
    c.font = `600 100px ${fonts.ui}`;
    WIDTHS.set(label, width = c.measureText(label).width / 100);
  }
  return width;
}
function title(c, palette, fonts, item, scale, seen, last) {
  const least = item.card ? 14 : 11;
  const size = scale > 1.2 ? least * 1.2 / scale : Math.max(least, 10.5 / scale);
  const tight = !item.card && size > HEADER2 - 8;
  if (tight && !last) return;
  const room = (item.w - 24) / size / 0.56;
  const number = (/(\d+ to )?\d+$/.exec(item.label)?.[0] ?? "").replace(" to ", "–");
  const label = item.label.length <= room || item.card ? cutEnd(item.label, Math.floor(room)) : number.length <= room ? number : "";
  if (!label) return;
  const width = widthOf2(c, fonts, label) * size;
  const [left, top] = [Math.max(item.x + 14, Math.min(seen.left + 10 / scale, item.x + item.w - width - 14)), Math.max(item.y, Math.min(seen.top, item.y + item.h - HEADER2))];
  const out = !item.card && (top > item.y || left > item.x + 14);
  const over = tight || out;
  if (over !== last) return;
  const y = item.card ? item.y + 22 : over ? top + 3 / scale + size * 0.65 : item.y + HEADER2 / 2 + 1;
  if (over) {
    c.fillStyle = palette.panel;
    c.globalAlpha = 0.92;
    c.fillRect(left - 6 / scale, top + 1 / scale, width + 12 / scale, size * 1.3 + 3 / scale);
    c.globalAlpha = 1;
  }
  c.font = `600 ${size}px ${fonts.ui}`;
  c.fillStyle = item.card ? palette.ink : palette.soft;
  c.fillText(label, left, y);
  if (!over) more(c, palette, fonts, item, scale, y, width);
}
function more(c, palette, fonts, item, scale, y, width) {
  const small = scale > 1.2 ? 13 / scale : Math.max(11, 9.5 / scale);
  if (!item.foldable || small > (item.card ? 20 : 16)) return;
  c.font = `${small}px ${fonts.ui}`;
  const word = item.card ? "open" : "fold";
  const fold = c.measureText(word).width;
  const room = item.w - 28 - width - fold;
  if (room > 8) {
    c.fillStyle = palette.faint;
    c.textAlign = "right";
    c.fillText(word, item.x + item.w - 14, y);
    c.textAlign = "left";
  }
  c.fillStyle = item.second.startsWith("unlike") ? palette.consumer : palette.soft;
  const second = cutEnd(item.second, Math.floor((item.card ? item.w - 24 : room - 20) / (small * 0.5)));
  if (item.card) c.fillText(second, item.x + 14, item.y + item.h - 15);
  else if (room > 8) c.fillText(second, item.x + 24 + width, y);
}
function traceInside(c, p, dx, dy, seen) {
  const n = p.length;
  if (n < 4) return;
  if (seen) {
    const x = [p[0] + dx, p[n - 2] + dx];
    const y = [p[1] + dy, p[n - 1] + dy];
    if (Math.max(...y) < seen.top || Math.min(...y) > seen.bottom) return;
    if (Math.max(...x) < seen.left - 300 || Math.min(...x) > seen.right + 300) return;
  }
  c.moveTo(p[0] + dx, p[1] + dy);
  if (n / 2 % 3 === 1) {
    for (let k = 2; k + 5 < n; k += 6) {
      c.bezierCurveTo(p[k] + dx, p[k + 1] + dy, p[k + 2] + dx, p[k + 3] + dy, p[k + 4] + dx, p[k + 5] + dy);
    }
  } else {
    for (let k = 2; k < n; k += 2) c.lineTo(p[k] + dx, p[k + 1] + dy);
  }
}
function traceAcross(c, from, to) {
  if (from.item.column === to.item.column && to.y > from.y) {
    const [y0, y1] = [from.y + from.h / 2, to.y - to.h / 2];
    const bend2 = Math.min(Math.max(HEADER2, (y1 - y0) / 2), 90);
    c.moveTo(from.x, y0);
    c.bezierCurveTo(from.x, y0 + bend2, to.x, y1 - bend2, to.x, y1);
    return;
  }
  const right = to.item.column >= from.item.column;
  const x0 = from.x + (right ? from.w / 2 : -from.w / 2);
  const x1 = to.x + (right ? -to.w / 2 : to.w / 2);
  const bend = (right ? 1 : -1) * Math.min(Math.max(40, Math.abs(x1 - x0) / 2), 160);
  c.moveTo(x0, from.y);
  c.bezierCurveTo(x0 + bend, from.y, x1 - bend, to.y, x1, to.y);
}

// marks.js
var MARKS = {
  added: { colour: (p) => p.good, dash: [], line: "solid", wide: 2, words: "added" },
  removed: { colour: (p) => p.bad, dash: [5, 3], line: "dashed", wide: 2, words: "removed" },
  changed: { colour: (p) => p.consumer, dash: [2, 2], line: "dotted", wide: 2, words: "changed" },
  grown: { colour: (p) => p.backends[0], dash: [], line: "solid", wide: 2, words: "grown" },
  shrunk: { colour: (p) => p.backends[0], dash: [5, 3], line: "dashed", wide: 2, words: "shrunk" },
  longer: { colour: (p) => p.soft, dash: [], line: "solid", wide: 1.25, words: "lives longer" },
  shorter: { colour: (p) => p.soft, dash: [2, 3], line: "dotted", wide: 1.25, words: "lives shorter" },
  moved: { colour: (p) => p.source, dash: [], line: "solid", wide: 1.25, words: "moved" }
};
function byMark(marks) {
  return (
    /** @type {Mark[]} */
    Object.keys(MARKS).map((mark) => (
      /** @type {[Mark, number[]]} */
      [mark, [...marks].filter(([, m]) => m === mark).map(([t]) => t)]
    )).filter(([, tensors]) => tensors.length)
  );
}
function markKeys(palette, marks) {
  return byMark(marks).map(([mark, tensors]) => {
    const { colour, line, wide, words } = MARKS[mark];
    const sample = el("span", "vg-mark");
    sample.style.border = `${Math.ceil(wide)}px ${line} ${colour(palette)}`;
    return el("span", "vg-key", {}, [sample, el("span", "", { text: `${words} (${tensors.length})` })]);
  });
}
function markWords(marks) {
  return byMark(marks).map(([mark, tensors]) => `${tensors.length} ${MARKS[mark].words}`).join(", ");
}

// graph_marks.js
var BAR4 = 4;
var WHOLE_BELOW = 0.3;
var STRIP2 = { left: 14, top: 40, height: 30 };
var STACKED = [5, 6, 7, 4, 3, 2, 1];
var MAP2 = { w: 132, h: 88, margin: 8 };
function stroke(wide, least, scale) {
  return scale > 1 ? wide / scale : Math.max(wide, least / scale);
}
function paintStatus(c, player, folding, status, size, view, members) {
  const { tensor, w, h } = folding.graph.nodes;
  const colours = player.palette.status;
  const whole2 = view.scale < WHOLE_BELOW;
  const seen = inSight(size, view);
  const rows = colours.map(() => []);
  for (const item of folding.items) {
    if (!isSeen(item, seen)) continue;
    if (item.card) paintStrip(c, player, folding, item, status, members);
    else for (const row of folding.rows[item.sections[0]]) if (!members || members.has(tensor[row])) rows[status[tensor[row]]]?.push(row);
  }
  for (let s = 1; s < colours.length; s++) {
    c.fillStyle = colours[s];
    for (const row of rows[s]) c.fillRect(folding.x(row) - w[row] / 2 + 0.5, folding.y(row) - h[row] / 2 + 0.5, whole2 ? w[row] - 1 : BAR4, h[row] - 1);
  }
}
function paintStrip(c, player, folding, item, status, members) {
  const { sections } = folding.graph;
  const colours = player.palette.status;
  const n = item.sections.length;
  const width = item.w - 2 * STRIP2.left;
  const top = item.y + STRIP2.top;
  const counts = new Uint16Array(colours.length);
  item.sections.forEach((s, k) => {
    counts.fill(0);
    let any = !members;
    for (const t of sections[s].nodes) {
      counts[status[t]]++;
      any ||= members?.has(t) ?? false;
    }
    c.globalAlpha = any ? 1 : 0.2;
    const x = item.x + STRIP2.left + width * k / n;
    const w = Math.max(1, width / n - (n > 60 ? 0 : 1));
    c.fillStyle = player.palette.line;
    c.fillRect(x, top, w, STRIP2.height);
    let y = top + STRIP2.height;
    for (const value of STACKED) {
      if (!counts[value]) continue;
      const part = STRIP2.height * counts[value] / (sections[s].nodes.length || 1);
      y -= part;
      c.fillStyle = colours[value];
      c.fillRect(x, y, w, part);
    }
    if (sections[s].differs && n > 1) {
      c.fillStyle = player.palette.consumer;
      c.fillRect(x, top - 4, w, 2);
    }
    c.globalAlpha = 1;
  });
}
function outline(c, folding, row, by) {
  const { w, h } = folding.graph.nodes;
  c.roundRect(folding.x(row) - w[row] / 2 - by, folding.y(row) - h[row] / 2 - by, w[row] + 2 * by, h[row] + 2 * by, 4 + by);
}
function paintKin(c, player, { folding, painter }, t, way, scale, members) {
  const { palette } = player;
  const { src, dst } = folding.graph.edges;
  const { tensor } = folding.graph.nodes;
  c.lineWidth = stroke(1.6, 1.4, scale);
  for (const sources of [true, false]) {
    c.strokeStyle = sources ? palette.source : palette.consumer;
    c.beginPath();
    const boxes = /* @__PURE__ */ new Set();
    const drawn = /* @__PURE__ */ new Set();
    const light = (e) => {
      if (members && !(members.has(tensor[src[e]]) && members.has(tensor[dst[e]]))) return;
      painter.trace(c, e, null, drawn);
      boxes.add(sources ? src[e] : dst[e]);
    };
    if (!sources) folding.outOf(t).forEach(light);
    else for (const to of way ? [t, ...way] : [t]) folding.into(folding.rowOf.get(to) ?? -1).forEach(light);
    for (const row of boxes) if (folding.shown(row)) outline(c, folding, row, 1);
    c.stroke();
  }
}
function paintFound(c, player, folding, found, scale) {
  if (!found.length) return;
  c.strokeStyle = player.palette.ink;
  c.lineWidth = stroke(1.5, 1.2, scale);
  c.setLineDash([4, 3]);
  c.beginPath();
  for (const t of found) {
    const row = folding.rowOf.get(t);
    if (row !== void 0 && folding.shown(row)) outline(c, folding, row, 4);
  }
  c.stroke();
  c.setLineDash([]);
}
function paintMarks2(c, player, folding, marks, scale) {
  byMark(marks).forEach(([mark, tensors], k) => {
    const { colour, dash, wide } = MARKS[mark];
    const boxes = new Path2D();
    const ticks = new Path2D();
    const ticked = /* @__PURE__ */ new Set();
    for (const t of tensors) {
      const row = folding.rowOf.get(t);
      if (row === void 0) continue;
      if (folding.shown(row)) {
        outline(boxes, folding, row, 2);
        continue;
      }
      const section2 = folding.sectionOf[row];
      if (ticked.has(section2)) continue;
      ticked.add(section2);
      const { x, w } = cell(folding, row);
      const foot = folding.items[folding.itemOf[section2]].y + STRIP2.top + STRIP2.height;
      ticks.rect(x, foot - 3 * (k + 1), Math.max(2, w - 1), 2.5);
    }
    c.strokeStyle = c.fillStyle = colour(player.palette);
    c.lineWidth = stroke(wide, wide * 0.9, scale);
    c.setLineDash(dash.map((d) => d / Math.max(1, scale)));
    c.stroke(boxes);
    c.setLineDash([]);
    c.fill(ticks);
  });
}
function cell(folding, row) {
  const section2 = folding.sectionOf[row];
  const item = folding.items[folding.itemOf[section2]];
  const wide = (item.w - 2 * STRIP2.left) / item.sections.length;
  return { x: item.x + STRIP2.left + wide * item.sections.indexOf(section2), w: wide };
}
function paintUnlike(c, player, folding, scale, members) {
  if (scale < 0.3) return;
  const size = Math.max(12, 9 / scale);
  c.font = `700 ${size}px ${player.fonts.ui}`;
  c.textBaseline = "middle";
  c.textAlign = "center";
  for (const item of folding.items) {
    const differs = item.card ? void 0 : folding.graph.sections[item.sections[0]].differs;
    if (!differs) continue;
    const signs = (
      /** @type {[number, string][]} */
      [...differs.added.map((t) => [t, "+"]), ...differs.changed.map(([t]) => [t, "≠"])]
    );
    for (const [t, sign] of signs) {
      const row = folding.rowOf.get(t);
      if (row === void 0 || folding.sectionOf[row] !== item.sections[0] || members && !members.has(t)) continue;
      const x = folding.x(row) - folding.graph.nodes.w[row] / 2;
      const y = folding.y(row) - folding.graph.nodes.h[row] / 2 + 3;
      c.fillStyle = player.palette.consumer;
      c.beginPath();
      c.arc(x, y, size * 0.56, 0, 7);
      c.fill();
      c.fillStyle = player.palette.page;
      c.fillText(sign, x, y + 0.5);
    }
  }
  c.textAlign = "left";
}
function paintPlaces(c, player, folding, step, size, view, members) {
  const { tracks, relations } = player;
  const seen = inSight(size, view);
  const place3 = tracks.track("place");
  const [tensor, buffer, offset] = ["tensor", "buffer", "offset"].map((n) => place3.col(n));
  const rowOf = /* @__PURE__ */ new Map();
  place3.each(step, (r) => rowOf.set(tensor[r], r));
  const { nodes } = folding.graph;
  const viewOffset = tracks.columns.column("tensor.view_offs");
  const viewSrc = tracks.columns.column("tensor.view_src");
  c.fillStyle = player.palette.soft;
  c.textBaseline = "alphabetic";
  for (const item of folding.items) {
    if (item.card || !isSeen(item, seen)) continue;
    for (const row of folding.rows[item.sections[0]]) {
      const [w, h, t] = [nodes.w[row], nodes.h[row], nodes.tensor[row]];
      const [left, top] = [folding.x(row) - w / 2, folding.y(row) - h / 2];
      if (!isSeen({ x: left, y: top, w, h }, seen) || members && !members.has(t)) continue;
      const { pitch, size: high } = nearType(view.scale, h);
      c.font = `${high}px ${player.fonts.mono}`;
      const root = relations.root(t);
      const r = rowOf.get(t) ?? rowOf.get(root);
      const from = r === void 0 ? -1 : offset[r] + (rowOf.has(t) ? 0 : viewOffset[t]);
      const text = r !== void 0 ? `offset ${from}, buffer ${buffer[r]}` : viewSrc[t] >= 0 ? `${viewOffset[t]} B into ${visible(tracks.name(root))}` : "no memory yet";
      const room = Math.floor((w - 13) / (high * 0.602));
      c.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, left + 9, top + h / 2 + (NEAR_LINES - 1) / 2 * pitch + high * 0.36);
    }
  }
}
function paintRings(c, player, folding, row, scale) {
  const { palette, selected } = player;
  const chosen = folding.rowOf.get(selected);
  if (chosen !== void 0 && folding.shown(chosen)) {
    c.strokeStyle = palette.ink;
    c.lineWidth = stroke(2, 1.5, scale);
    c.beginPath();
    outline(c, folding, chosen, 2);
    c.stroke();
  }
  if (row < 0) return;
  c.strokeStyle = palette.accent;
  c.lineWidth = stroke(2.5, 2, scale);
  if (!folding.shown(row)) return paintCellRing(c, player, folding, row, scale);
  c.beginPath();
  outline(c, folding, row, 3);
  c.stroke();
}
function paintCellRing(c, player, folding, row, scale) {
  const section2 = folding.sectionOf[row];
  const item = folding.items[folding.itemOf[section2]];
  const { x, w } = cell(folding, row);
  roundRect(c, x - 2, item.y + STRIP2.top - 2, Math.max(4, w) + 3, STRIP2.height + 4, 2);
  c.stroke();
  if (item.sections.length < 2) return;
  c.fillStyle = player.palette.accent;
  const [size, title2] = [Math.max(11, 9.5 / scale), Math.max(14, 10.5 / scale)];
  const label = folding.graph.sections[section2].label;
  const { fonts } = player;
  if (widthOf2(c, fonts, item.label) * title2 + widthOf2(c, fonts, label) * size + 78 * (size / 11) > item.w) return;
  c.fillStyle = player.palette.accent;
  c.font = `600 ${size}px ${fonts.ui}`;
  c.textBaseline = "middle";
  c.textAlign = "right";
  c.fillText(label, item.x + item.w - 20 - 34 * (size / 11), item.y + 22);
  c.textAlign = "left";
}
function minimap({ width, height }, folding, view) {
  if (folding.width * view.scale <= width + 2 && folding.height * view.scale <= height + 2) return null;
  const s = Math.min(Math.min(MAP2.w, width * 0.22) / folding.width, Math.min(MAP2.h, height * 0.42) / folding.height);
  const [w, h] = [folding.width * s, folding.height * s];
  return { x: width - w - MAP2.margin, y: height - h - MAP2.margin, w, h, s };
}
function paintMinimap(c, player, size, folding, view, row) {
  const at = minimap(size, folding, view);
  if (!at) return;
  const { palette } = player;
  c.fillStyle = palette.page;
  c.strokeStyle = palette.edge;
  c.lineWidth = 1;
  c.beginPath();
  c.rect(at.x - 0.5, at.y - 0.5, at.w + 1, at.h + 1);
  c.fill();
  c.stroke();
  c.fillStyle = palette.line;
  for (const item of folding.items) {
    c.fillRect(at.x + item.x * at.s, at.y + item.y * at.s, Math.max(1, item.w * at.s), Math.max(1, item.h * at.s));
  }
  c.save();
  c.beginPath();
  c.rect(at.x, at.y, at.w, at.h);
  c.clip();
  c.strokeStyle = palette.soft;
  const f = at.s / view.scale;
  c.strokeRect(at.x - view.x * f, at.y - view.y * f, size.width * f, size.height * f);
  c.restore();
  if (row < 0) return;
  const where = folding.anchor(row);
  c.fillStyle = palette.accent;
  c.fillRect(at.x + where.x * at.s - 2, at.y + where.y * at.s - 2, 4, 4);
}

// splits.js
var STRIPE = 3.5;
var WHOLE_BELOW2 = 0.3;
var NOWHERE = 255;
function backendsOf({ tracks, relations }) {
  return relations.keep("backends", () => {
    const track = tracks.track("split");
    const names = [...new Set(Array.from({ length: track.length }, (_, r) => track.str("backend", r)))];
    return names.length > 1 ? names : [];
  });
}
function colourOf2({ palette }, k) {
  return palette.backends[k % palette.backends.length];
}
function nameBackends(player, legend) {
  const names = backendsOf(player);
  names.forEach((name, k) => {
    const mark = el("span", "vg-swatch vg-stripe");
    mark.style.background = `var(--vg-backends-${k % 4})`;
    legend.append(el("span", "vg-key", {}, [mark, el("span", "", { text: visible(name) })]));
  });
  if (names.length) legend.append(el("span", "vg-key", {}, [el("span", "vg-line-mark vg-copied"), el("span", "", { text: "copy to another backend" })]));
}
function backendByTensor(player, step) {
  const names = backendsOf(player);
  if (!names.length) return null;
  const { tracks, relations } = player;
  const [splits, copies] = [tracks.track("split"), tracks.track("copy")];
  const rows = splits.openAt(step);
  if (!rows.length) return null;
  return relations.keep(`backend ${rows.join()}`, () => {
    const of = new Uint8Array(tracks.nTensors).fill(NOWHERE);
    const [graph, first] = ["graph", "first_node"].map((n) => splits.col(n));
    const [ptr, node] = [tracks.columns.column("graph.ptr"), tracks.columns.column("graph.node")];
    const indexOf = (name) => names.indexOf(name);
    const nodeAt = (r) => ptr[graph[r]] + first[r];
    for (const r of rows) {
      const end = rows.filter((q) => graph[q] === graph[r] && first[q] > first[r]).reduce((least, q) => Math.min(least, nodeAt(q)), ptr[graph[r] + 1]);
      for (let k = nodeAt(r); k < end; k++) of[node[k]] = indexOf(splits.str("backend", r));
    }
    const copy = copies.col("copy");
    for (const r of copies.openAt(step)) if (copy[r] >= 0) of[copy[r]] = indexOf(copies.str("backend", r));
    return of;
  });
}
function paintBackends(c, player, folding, step, scale, strip) {
  const of = backendByTensor(player, step);
  if (!of) return;
  const { tensor, w, h } = folding.graph.nodes;
  const high = scale < WHOLE_BELOW2 ? 8 : STRIPE;
  for (let row = 0; row < tensor.length; row++) {
    if (of[tensor[row]] === NOWHERE || !folding.shown(row)) continue;
    c.fillStyle = colourOf2(player, of[tensor[row]]);
    c.fillRect(folding.x(row) - w[row] / 2 + 0.5, folding.y(row) + h[row] / 2 - high - 0.5, w[row] - 1, high);
  }
  for (const item of folding.items) {
    if (!item.card) continue;
    const wide = (item.w - 2 * strip.left) / item.sections.length;
    item.sections.forEach((s, k) => {
      const placed = folding.graph.sections[s].nodes.map((t) => of[t]).filter((b) => b !== NOWHERE);
      placed.sort();
      placed.forEach((b, n) => {
        c.fillStyle = colourOf2(player, b);
        const part = (wide - 1) / placed.length;
        c.fillRect(item.x + strip.left + wide * k + part * n, item.y + strip.top + strip.height + 3, part + 0.2, STRIPE);
      });
    });
  }
}
function paintCopies(c, player, { folding, painter }, step, scale) {
  const of = backendByTensor(player, step);
  if (!of) return;
  const copied = copiesAt(player, step);
  if (!copied.size) return;
  const { src, dst } = folding.graph.edges;
  const rows = folding.graph.nodes.tensor;
  const folded = /* @__PURE__ */ new Map();
  c.lineWidth = Math.max(2.2, 1.6 / scale);
  for (const t of copied.keys()) {
    for (const e of folding.outOf(t)) {
      const to = of[rows[dst[e]]];
      const copy = copied.get(t)?.find((k) => k.backend === to);
      if (!copy) continue;
      if (!folding.shown(dst[e])) folded.set(`${folding.sectionOf[dst[e]]} ${to}`, { row: dst[e], ...copy });
      c.strokeStyle = colourOf2(player, to);
      c.setLineDash(copy.there ? [] : [6, 4]);
      c.beginPath();
      painter.trace(c, e, null, null);
      c.stroke();
    }
  }
  c.setLineDash([]);
  for (const copy of folded.values()) paintArrival(c, player, folding, copy);
}
function paintArrival(c, player, folding, { row, backend, there }) {
  const { x, w } = cell(folding, row);
  const { item } = folding.anchor(row);
  const [middle, top] = [x + w / 2, item.y + STRIP2.top - 9];
  c.beginPath();
  c.moveTo(middle - 5, top);
  c.lineTo(middle + 5, top);
  c.lineTo(middle, top + 8);
  c.closePath();
  c.fillStyle = there ? colourOf2(player, backend) : player.palette.raised;
  c.strokeStyle = colourOf2(player, backend);
  c.lineWidth = 1.5;
  c.fill();
  c.stroke();
}
function copiesInto(player, folding, sections, step) {
  const of = backendByTensor(player, step);
  if (!of) return [];
  const names = backendsOf(player);
  const { tensor } = folding.graph.nodes;
  const { dst } = folding.graph.edges;
  const said = [];
  for (const [t, list] of copiesAt(player, step)) {
    for (const { backend } of list) {
      const into = folding.outOf(t).find((e) => sections.includes(folding.sectionOf[dst[e]]) && of[tensor[dst[e]]] === backend);
      if (into !== void 0) said.push(`${visible(player.tracks.name(t))} to ${visible(names[backend] ?? "")}`);
    }
  }
  return said;
}
function copiesAt(player, step) {
  const { tracks } = player;
  const track = tracks.track("copy");
  const [tensor, nbytes] = ["tensor", "nbytes"].map((n) => track.col(n));
  const names = backendsOf(player);
  const copied = /* @__PURE__ */ new Map();
  track.each(step, (r) => {
    const list = copied.get(tensor[r]) ?? [];
    list.push({ backend: names.indexOf(track.str("backend", r)), there: nbytes[r] >= 0 });
    copied.set(tensor[r], list);
  });
  return copied;
}
function splitRows({ tracks, relations }, step) {
  const [splits, copies] = [tracks.track("split"), tracks.track("copy")];
  const [graph, split, first] = ["graph", "split", "first_node"].map((n) => splits.col(n));
  const [tensor, nbytes, ofGraph, ofSplit, copy] = ["tensor", "nbytes", "graph", "split", "copy"].map((n) => copies.col(n));
  const [ptr, node] = [tracks.columns.column("graph.ptr"), tracks.columns.column("graph.node")];
  const open = splits.openAt(step);
  const about2 = relations.focus.graph[step];
  const shown = open.some((r) => graph[r] === about2) ? about2 : graph[open[open.length - 1]];
  const brought = copies.openAt(step);
  const rows = open.filter((r) => graph[r] === shown);
  const current = relations.focus.node[step];
  const nodes = Array.from(node.subarray(ptr[shown] ?? 0, ptr[shown + 1] ?? 0));
  const at = nodes.indexOf(current);
  return rows.map((r, k) => {
    const end = k + 1 < rows.length ? first[rows[k + 1]] : nodes.length;
    const inputs = brought.filter((q) => ofGraph[q] === shown && ofSplit[q] === split[r]).sort((p, q) => copy[p] - copy[q]);
    const words = inputs.map((q) => visible(tracks.name(tensor[q])) + (nbytes[q] >= 0 ? ` ${formatBytes(nbytes[q])}` : ""));
    const said = tracks.field(step, "graph") === shown ? tracks.field(step, "split") : void 0;
    const marked = said === void 0 ? at >= first[r] && at < end : said === split[r];
    const name = nodes.length > first[r] ? visible(tracks.name(nodes[first[r]])) : "";
    return {
      cells: [String(split[r]), visible(splits.str("backend", r)), `${first[r]}: ${name}`, String(end - first[r]), words.join(", ") || "none copied"],
      marked,
      titled: true
    };
  });
}
var splitsDetail = tableDetail({
  name: "splits",
  title: "Splits",
  track: "split",
  columns: [{ head: "split", right: true }, { head: "backend" }, { head: "first node" }, { head: "nodes", right: true }, { head: "inputs copied" }],
  widths: "40px minmax(50px, 0.5fr) minmax(0, 1fr) 44px minmax(0, 2fr)",
  rows: splitRows,
  empty: "No graph is split at this step."
});

// threads_paint.js
var MOST = 16;
function xOf2(clock, ns) {
  return clock.left + (ns - clock.from) / Math.max(1, clock.to - clock.from) * (clock.right - clock.left);
}
function paintBars({ tracks, palette, fonts }, c, clock, { top, high, from, to, done }) {
  const track = tracks.track("thread");
  const [tensor, thread, begin, end, wait] = ["tensor", "thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
  const bar2 = Math.max(1.5, high - (high > 8 ? 4 : 1));
  c.font = `10px ${fonts.mono}`;
  c.textAlign = "left";
  for (let r = from; r < to; r++) {
    if (thread[r] >= MOST || end[r] + wait[r] <= clock.from || begin[r] >= clock.to) continue;
    const y = top + thread[r] * high;
    const [x0, x1, x2] = [begin[r], end[r], end[r] + wait[r]].map((ns) => Math.max(clock.left, Math.min(clock.right, xOf2(clock, ns))));
    c.globalAlpha = r < done ? 1 : 0.3;
    c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[r]))];
    c.fillRect(x0, y, Math.max(0.6, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), bar2);
    if (x2 - x1 > 1.5 && high > 8) hatch(c, x1, y, x2 - x1 - 1, bar2, palette.faint);
    if (high < 13) continue;
    const name = tracks.name(tensor[r]);
    if (name.length * 6.1 + 8 > x1 - x0) continue;
    c.fillStyle = "#10151d";
    c.fillText(name, x0 + 4, y + bar2 / 2 + 0.5);
  }
  c.globalAlpha = 1;
}
function tickOf(span2, wanted) {
  const rough = Math.max(1, span2 / wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) ?? 10 * power;
}
function paintAxis({ palette, fonts }, c, clock, top, bottom) {
  const span2 = Math.max(1, clock.to - clock.from);
  const tick = tickOf(span2, Math.max(2, (clock.right - clock.left) / 90));
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(tick / 1e6))));
  c.font = `10px ${fonts.ui}`;
  c.textAlign = "center";
  c.lineWidth = 1;
  for (let ns = Math.ceil(clock.from / tick) * tick; ns <= clock.to; ns += tick) {
    const x = xOf2(clock, ns);
    c.strokeStyle = palette.line;
    c.beginPath();
    c.moveTo(Math.round(x) + 0.5, top);
    c.lineTo(Math.round(x) + 0.5, bottom);
    c.stroke();
    if (x > clock.right - 14) continue;
    c.fillStyle = palette.faint;
    c.fillText((ns / 1e6).toFixed(digits), x, bottom + 8);
  }
  c.fillStyle = palette.soft;
  c.textAlign = "left";
  c.fillText("ms", 12, bottom + 8);
}
function paintNames2({ palette, fonts }, c, span2, middle, top, high) {
  c.fillStyle = palette.soft;
  c.textAlign = "left";
  c.font = `10.5px ${fonts.ui}`;
  c.fillText(formatNs(span2.end), 12, middle);
  for (let k = 0; k < span2.threads && high >= 9; k++) c.fillText(`thread ${k}`, 12, top + k * high + (high - 3) / 2);
}

// threads.js
var LEFT4 = 66;
var RIGHT3 = 12;
var WHOLE2 = { top: 5, row: 6 };
var AXIS2 = 17;
var GAP3 = 14;
var NEAR3 = 16;
var LANE = 44;
var BITMAPS = 40;
var threadsDetail = {
  name: "threads",
  title: "Threads",
  has: ({ tracks }) => tracks.track("thread").length > 0,
  make: (player, pane) => new ThreadsView(player, pane)
};
function spansOf({ tracks, relations }) {
  return relations.keep("thread spans", () => {
    const track = tracks.track("thread");
    const [evaluation, thread, end, wait] = ["eval", "thread", "end_ns", "wait_ns"].map((n) => track.col(n));
    const made = /* @__PURE__ */ new Map();
    for (let r = 0; r < track.length; r++) {
      const span2 = made.get(evaluation[r]) ?? { evaluation: evaluation[r], from: r, to: r, threads: 1, end: 1 };
      made.set(evaluation[r], span2);
      span2.to = r + 1;
      span2.threads = Math.max(span2.threads, thread[r] + 1);
      span2.end = Math.max(span2.end, end[r] + wait[r]);
    }
    return made;
  });
}
function shareOf({ tracks, relations }, span2) {
  return relations.keep(`thread share ${span2.evaluation}`, () => {
    const track = tracks.track("thread");
    const [begin, end, wait, polling] = ["begin_ns", "end_ns", "wait_ns", "polling"].map((n) => track.col(n));
    let [worked, waited, longest, woken] = [0, 0, -1, 0];
    for (let r = span2.from; r < span2.to; r++) {
      worked += end[r] - begin[r];
      waited += wait[r];
      if (polling[r] === 0) woken++;
      if (wait[r] > 0 && (longest < 0 || wait[r] > wait[longest])) longest = r;
    }
    const all = span2.threads * span2.end;
    return { busy: worked / all, waited: waited / all, longest, woken };
  });
}
var ThreadsView = class extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Threads",
      keys: "bar by bar",
      empty: "Nothing is computing at this step. Go to a NodeBegin event; ctx.decode(tokens) or ggml.graph_compute makes them."
    });
    this.span = null;
    this.at = -1;
    this.zoomed = null;
    this.zoomedIn = -1;
    this.brush = null;
    this.baked = /* @__PURE__ */ new Map();
    this.button = el("button", "vg-button vg-text-button", { type: "button", text: "Follow the step", disabled: "" });
    this.button.addEventListener("click", () => this.zoomTo(null));
    this.tools = [this.button, el("span", "vg-hint", { text: "drag to zoom" })];
    listenBrush(
      this,
      ({ offsetX, offsetY }) => this.span ? { from: offsetX, to: offsetX, whole: offsetY < this.places().top - GAP3 / 2 } : null
    );
  }
  /** @param {import("./brush.js").Drag & {whole: boolean}} drag */
  zoomBy(drag) {
    const clock = drag.whole ? this.wholeClock() : this.clock();
    const ns = (x) => clock.from + (x - clock.left) / (clock.right - clock.left) * (clock.to - clock.from);
    const [from, to] = [ns(drag.from), ns(drag.to)].sort((p, q) => p - q);
    this.zoomTo({ from: Math.max(0, from), to: Math.min(this.span?.end ?? to, Math.max(from + 100, to)) });
  }
  /** @param {Range | null} range */
  zoomTo(range3) {
    this.zoomed = range3;
    this.zoomedIn = this.span?.evaluation ?? -1;
    this.button.disabled = range3 === null;
    this.player.redraw(this.pane);
  }
  /** @param {number} step */
  prepare(step) {
    const { player } = this;
    const { tracks } = player;
    const track = tracks.track("thread");
    this.at = upperBound(track.a, step) - 1;
    this.span = this.at < 0 ? null : spansOf(player).get(track.col("eval")[this.at]) ?? null;
    if (!this.span) return null;
    if (this.zoomed && this.zoomedIn !== this.span.evaluation) this.zoomTo(null);
    const { busy, waited, longest, woken } = shareOf(player, this.span);
    const threads = `${this.span.threads} thread${this.span.threads === 1 ? "" : "s"}`;
    const wait = longest < 0 ? "nobody waits" : `longest wait ${formatNs(track.col("wait_ns")[longest])}: thread ${track.col("thread")[longest]} after ${visible(tracks.name(track.col("tensor")[longest]))}`;
    return { strong: `${threads} busy ${Math.round(100 * busy)} % of ${formatNs(this.span.end)}`, rest: `${Math.round(100 * waited)} % waiting at barriers; ${wait}${woken ? `; woken from sleep ${woken} time${woken === 1 ? "" : "s"}` : ""}` };
  }
  places() {
    const { threads } = (
      /** @type {Span} */
      this.span
    );
    const drawn = Math.min(MOST, threads);
    const small = Math.max(1.5, Math.min(WHOLE2.row, 24 / drawn));
    const top = WHOLE2.top + small * drawn + GAP3;
    const high = Math.min(LANE, (this.surface.height - AXIS2 - top) / drawn);
    return { drawn, small, top, high, bottom: top + high * drawn };
  }
  /** @returns {Clock} */
  wholeClock() {
    return { left: LEFT4, right: this.surface.width - RIGHT3, from: 0, to: this.span?.end ?? 1 };
  }
  /** The part that is drawn to read: what was chosen, else the nodes around the step, a page of them at a time. @returns {Clock} */
  clock() {
    const whole2 = this.wholeClock();
    const { span: span2, at, player } = this;
    if (this.zoomed) return { ...whole2, ...this.zoomed };
    if (!span2) return whole2;
    const track = player.tracks.track("thread");
    const [begin, end, wait] = ["begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
    const around = NEAR3 * span2.threads;
    const from = span2.from + Math.floor((at - span2.from) / around) * around;
    let [first, last] = [Infinity, 0];
    for (let r = from; r < Math.min(span2.to, from + around); r++) [first, last] = [Math.min(first, begin[r]), Math.max(last, end[r] + wait[r])];
    return { ...whole2, from: first, to: last };
  }
  /** @param {CanvasRenderingContext2D} c @param {number} _w @param {number} h @param {number} step */
  paint(c, _w, h, step) {
    const { span: span2, at, player } = this;
    if (!span2) return;
    const { palette } = player;
    const { drawn, small, top, high, bottom } = this.places();
    const [whole2, clock] = [this.wholeClock(), this.clock()];
    this.paintWhole(c, whole2, small, drawn);
    const [x0, x1] = [xOf2(whole2, clock.from), xOf2(whole2, clock.to)];
    c.strokeStyle = palette.ink;
    c.lineWidth = 1;
    c.strokeRect(Math.round(x0) - 0.5, WHOLE2.top - 3.5, Math.max(3, Math.round(x1 - x0)), small * drawn + 6);
    paintAxis(player, c, clock, top, bottom);
    paintBars(player, c, clock, { from: span2.from, to: span2.to, done: at + 1, top, high });
    this.paintCurrent(c, clock, top, high, step);
    paintNames2(player, c, { ...span2, threads: drawn }, WHOLE2.top + small * drawn / 2, top, high);
    if (!this.brush) return;
    c.globalAlpha = 0.16;
    c.fillStyle = palette.accent;
    const y = this.brush.whole ? 0 : top - 4;
    c.fillRect(Math.min(this.brush.from, this.brush.to), y, Math.abs(this.brush.to - this.brush.from), this.brush.whole ? top - 6 : h);
    c.globalAlpha = 1;
  }
  /** All of the evaluation, small; what has not begun yet is pale. @param {CanvasRenderingContext2D} c @param {Clock} whole @param {number} small
   * @param {number} drawn threads */
  paintWhole(c, whole2, small, drawn) {
    const { span: span2, at, player, surface } = this;
    if (!span2) return;
    const { width, ratio } = surface;
    const high = WHOLE2.top + small * drawn + 1;
    const of = `${span2.evaluation} ${span2.to} ${width} ${small} ${ratio}`;
    let bitmap = this.baked.get(of);
    if (!bitmap) {
      if (this.baked.size >= BITMAPS) this.baked.clear();
      bitmap = el("canvas");
      [bitmap.width, bitmap.height] = [Math.round(width * ratio), Math.ceil(high * ratio)];
      const context = (
        /** @type {CanvasRenderingContext2D} */
        bitmap.getContext("2d")
      );
      context.scale(ratio, ratio);
      paintBars(player, context, whole2, { from: span2.from, to: span2.to, done: span2.to, top: WHOLE2.top, high: small });
      this.baked.set(of, bitmap);
    }
    c.drawImage(bitmap, 0, 0, bitmap.width / ratio, bitmap.height / ratio);
    const x = xOf2(whole2, player.tracks.track("thread").col("end_ns")[at]);
    c.globalAlpha = 0.7;
    c.fillStyle = player.palette.page;
    c.fillRect(x, WHOLE2.top, whole2.right - x, small * drawn);
    c.globalAlpha = 1;
  }
  invalidate() {
    this.baked.clear();
  }
  /** Rings around the current node, the selected one and the one the keys are at. @param {CanvasRenderingContext2D} c @param {Clock} clock
   * @param {number} top @param {number} high @param {number} step */
  paintCurrent(c, clock, top, high, step) {
    const { span: span2, player } = this;
    const track = player.tracks.track("thread");
    const [tensor, thread, begin, end] = ["tensor", "thread", "begin_ns", "end_ns"].map((n) => track.col(n));
    const about2 = player.relations.tensorAt(step);
    c.lineWidth = 2;
    for (let r = span2?.from ?? 0; r < (span2?.to ?? 0); r++) {
      const mine = tensor[r] === about2 || tensor[r] === player.selected;
      if (!mine && r !== this.cursor || thread[r] >= MOST || end[r] < clock.from || begin[r] > clock.to) continue;
      const [x0, x1] = [Math.max(clock.left, xOf2(clock, begin[r])), Math.min(clock.right, xOf2(clock, end[r]))];
      c.strokeStyle = mine ? player.palette.accent : player.palette.ink;
      c.strokeRect(x0, top + thread[r] * high, Math.max(3, x1 - x0), high - 4);
    }
  }
  /** @param {number} x @param {number} y */
  findAt(x, y) {
    const { span: span2 } = this;
    if (!span2 || this.brush || x < LEFT4) return -1;
    const { top, high, bottom, small } = this.places();
    const below = y >= top - GAP3 / 2;
    if (y > bottom) return -1;
    const clock = below ? this.clock() : this.wholeClock();
    const lane = Math.floor(below ? (y - top) / high : (y - WHOLE2.top) / small);
    const ns = clock.from + (x - clock.left) / (clock.right - clock.left) * (clock.to - clock.from);
    const track = this.player.tracks.track("thread");
    const [thread, begin, end, wait] = ["thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n));
    for (let r = span2.from; r < span2.to; r++) if (thread[r] === lane && ns >= begin[r] && ns < end[r] + wait[r]) return r;
    return -1;
  }
  /** @param {number} r */
  cardOf(r) {
    const { tracks } = this.player;
    const track = tracks.track("thread");
    const [tensor, thread, begin, end, wait] = ["tensor", "thread", "begin_ns", "end_ns", "wait_ns"].map((n) => track.col(n)[r]);
    const pairs = [["op", tracks.tensorString("desc", tensor)], ["thread", String(thread)], ["began", formatNs(begin)], ["worked", formatNs(end - begin)], ["waited", wait ? formatNs(wait) : "no"]];
    const [chunks, polling] = ["chunks", "polling"].map((n) => track.col(n)[r]);
    if (polling >= 0) pairs.push(["taken up", polling ? "while polling" : "woken from sleep"]);
    if (chunks > 0) pairs.push(["chunks taken", `${chunks} of the product's ${this.chunksOf(r)}`]);
    return { head: visible(tracks.name(tensor)), pairs };
  }
  /** The chunks that all threads took of the node of row `r`. @param {number} r */
  chunksOf(r) {
    const track = this.player.tracks.track("thread");
    const [tensor, chunks] = ["tensor", "chunks"].map((n) => track.col(n));
    let all = 0;
    for (let q = this.span?.from ?? 0; q < (this.span?.to ?? 0); q++) if (tensor[q] === tensor[r] && chunks[q] > 0) all += chunks[q];
    return all;
  }
  /** @param {number} r */
  placeOf(r) {
    if (!this.span) return null;
    const track = this.player.tracks.track("thread");
    const { top, high } = this.places();
    return { x: Math.max(LEFT4, Math.min(this.surface.width - RIGHT3, xOf2(this.clock(), track.col("begin_ns")[r]))), y: top + track.col("thread")[r] * high };
  }
  /** @param {number} k @param {number} by */
  nextOf(k, by) {
    if (!this.span) return -1;
    return k < 0 ? this.at : Math.max(this.span.from, Math.min(this.span.to - 1, k + by));
  }
  /** @param {number} r */
  choose(r) {
    this.player.select(this.player.tracks.track("thread").col("tensor")[r]);
  }
};

// details.js
var DETAILS = [
  inspectorDetail,
  blockDetail,
  freeDetail,
  countsDetail,
  scratchDetail,
  kvDetail,
  routingDetail,
  reuseDetail,
  arenaDetail,
  splitsDetail,
  pagesDetail,
  threadsDetail
];
var DetailPane = class {
  /** @param {Player} player @param {Detail} detail */
  constructor(player, detail2) {
    this.name = detail2.name;
    this.title = detail2.title;
    this.view = detail2.make(player, this);
    this.body = el("div", "vg-stack", {}, [this.view.element]);
    this.tools = this.view.tools ?? [];
  }
  /** @param {number} step */
  draw(step) {
    this.view.draw(step);
  }
  invalidate() {
    this.view.invalidate?.();
  }
  stop() {
    this.view.stop?.();
  }
};
var DetailsPane = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "tables";
    this.title = "Details";
    this.details = DETAILS.filter((detail2) => detail2.has(player));
    this.views = /* @__PURE__ */ new Map();
    this.tabs = el("div", "vg-tabs", { role: "tablist", "aria-label": "Details" });
    this.extra = el("div", "vg-tools");
    this.body = el("div", "vg-stack", { role: "tabpanel" });
    this.tools = [this.tabs, this.extra];
    this.detail = this.details[0];
    this.makeTabs();
    this.choose(this.detail);
  }
  makeTabs() {
    for (const detail2 of this.details) {
      const tab = el("button", "vg-tab", { type: "button", role: "tab", text: detail2.title });
      tab.addEventListener("click", () => this.choose(detail2));
      this.tabs.append(tab);
    }
    this.tabs.addEventListener("keydown", (event) => {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const n = this.details.length;
      this.choose(this.details[(this.details.indexOf(this.detail) + by + n) % n]);
      this.tabs.children[this.details.indexOf(this.detail)].focus();
    });
  }
  /** The detail of that name, brought to the front. @param {string} name */
  chooseNamed(name) {
    const detail2 = this.details.find((d) => d.name === name);
    if (detail2) this.choose(detail2);
  }
  /** @param {Detail} detail */
  choose(detail2) {
    this.detail = detail2;
    [...this.tabs.children].forEach((tab, k) => {
      const chosen = this.details[k] === detail2;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    });
    const view = this.view;
    this.body.replaceChildren(view.element);
    this.extra.replaceChildren(...view.tools ?? []);
    this.showTab(
      /** @type {HTMLElement} */
      this.tabs.children[this.details.indexOf(detail2)]
    );
    this.player.redraw(this);
  }
  /** Brings a tab into sight where they are more than fit. @param {HTMLElement} tab */
  showTab(tab) {
    const { tabs } = this;
    if (!tab || !tabs.clientWidth) return;
    tabs.scrollLeft = Math.max(tab.offsetLeft + tab.offsetWidth - tabs.offsetLeft - tabs.clientWidth, Math.min(tabs.scrollLeft, tab.offsetLeft - tabs.offsetLeft));
  }
  get view() {
    let view = this.views.get(this.detail);
    if (!view) this.views.set(this.detail, view = this.detail.make(this.player, this));
    return view;
  }
  /** @param {number} step */
  draw(step) {
    this.view.draw(step);
  }
  invalidate() {
    for (const view of this.views.values()) view.invalidate?.();
  }
  stop() {
    for (const view of this.views.values()) view.stop?.();
  }
};

// events.js
var ROW4 = 24;
var EventsPane = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "events";
    this.title = "Events";
    this.passing = null;
    this.list = new VirtualList({
      label: "Events",
      rowHeight: ROW4,
      makeRow: () => el("div", "vg-event", {}, [el("span", "vg-number"), el("span", "vg-dot"), el("span", "vg-line")]),
      fillRow: (row, index) => this.fillRow(row, index),
      choose: (index) => player.go(this.eventAt(index)),
      className: "vg-events"
    });
    this.body = el("div", "vg-stack", {}, [this.list.element]);
    this.choice = el("select", "vg-select", { "aria-label": "Which events" });
    this.choice.addEventListener("change", () => this.filter(this.choice.value));
    this.count = el("span", "vg-hint vg-tabular");
    this.tools = [this.count, this.choice];
    this.fillChoice();
    this.filter("");
  }
  fillChoice() {
    const { tracks } = this.player;
    const counts = new Uint32Array(tracks.kinds.length);
    for (let i = 0; i < tracks.n; i++) counts[tracks.kind[i]]++;
    this.counts = counts;
    this.choice.append(el("option", "", { value: "", text: "all events" }));
    const areas = [...new Set(tracks.kinds.filter((k) => counts[k.index]).map((k) => k.area))];
    for (const area of areas) {
      const kinds = tracks.kinds.filter((k) => k.area === area && counts[k.index]);
      const group = el("optgroup", "", { label: area });
      group.append(el("option", "", { value: `area:${area}`, text: `all of ${area}` }));
      for (const kind of kinds) group.append(el("option", "", { value: `kind:${kind.index}`, text: `${kind.name} (${counts[kind.index]})` }));
      this.choice.append(group);
    }
  }
  /** @param {string} which */
  filter(which) {
    const { tracks } = this.player;
    const wanted = new Uint8Array(tracks.kinds.length);
    for (const kind of tracks.kinds) {
      wanted[kind.index] = which === "" || which === `area:${kind.area}` || which === `kind:${kind.index}` ? 1 : 0;
    }
    if (which === "") {
      this.passing = null;
    } else {
      const total = tracks.kinds.reduce((sum, k) => sum + (wanted[k.index] ? this.counts?.[k.index] ?? 0 : 0), 0);
      this.passing = new Uint32Array(total);
      for (let i = 0, n = 0; i < tracks.n; i++) if (wanted[tracks.kind[i]]) this.passing[n++] = i;
    }
    const length = this.passing ? this.passing.length : tracks.n;
    setText(this.count, this.passing ? `${formatCount(length)} event${length === 1 ? "" : "s"}` : "");
    this.list.setLength(length);
    this.player.redraw(this);
  }
  /** @param {number} index */
  eventAt(index) {
    return this.passing ? this.passing[index] : index;
  }
  /** @param {HTMLElement} row @param {number} index */
  fillRow(row, index) {
    const { tracks } = this.player;
    const i = this.eventAt(index);
    const [number, dot, line] = (
      /** @type {any} */
      row.children
    );
    setText(number, String(i));
    const colour = `vg-dot vg-area-${areaGroup(tracks.kindOf(i).area)}`;
    if (dot.className !== colour) dot.className = colour;
    setText(line, visible(sentence(tracks, i)));
  }
  /** @param {number} step */
  indexOf(step) {
    return this.passing ? upperBound(this.passing, step) - 1 : step;
  }
  /** @param {number} step */
  prepare(step) {
    this.list.show(this.indexOf(step));
  }
  /** @param {number} step */
  draw(step) {
    this.list.setCurrent(this.indexOf(step));
  }
  invalidate() {
  }
  stop() {
    this.list.stop();
  }
};

// graph_camera.js
var [SMALLEST, LARGEST] = [0.02, 4];
var COMFORT = 1.15;
var LEGIBLE = 0.85;
var [MUTE, POOR] = [0.36, 0.6];
var PAN = 80;
var GraphCamera = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.surface = new Surface("The computation graph, coloured by status at this step", () => this.resized());
  }
  /** @returns {Drawing | null} */
  get shown() {
    return null;
  }
  resized() {
  }
  /** Asks for a frame of this pane. */
  redraw() {
    this.player.redraw(
      /** @type {any} */
      this
    );
  }
  aspect() {
    return this.surface.height > 0 ? this.surface.width / this.surface.height : 1.5;
  }
  /** @param {Drawing} drawing @returns {View} */
  viewOf(drawing) {
    if (drawing.view) return drawing.view;
    const { width, height } = this.surface;
    const { folding } = drawing;
    const scale = Math.min(COMFORT, width / folding.width, height / folding.height);
    const x = (width - folding.width * scale) / 2;
    const y = Math.max(0, (height - folding.height * scale) / 2);
    return drawing.view = { scale, x, y };
  }
  fit() {
    const drawing = this.shown;
    if (!drawing) return;
    drawing.view = null;
    drawing.byHand = true;
    this.redraw();
  }
  /** @param {number} factor @param {number} [x] @param {number} [y] the point that stays */
  zoom(factor, x = this.surface.width / 2, y = this.surface.height / 2) {
    const drawing = this.shown;
    if (!drawing) return;
    const view = this.viewOf(drawing);
    const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor));
    const f = scale / view.scale;
    drawing.view = { scale, x: x - (x - view.x) * f, y: y - (y - view.y) * f };
    drawing.byHand = true;
    this.redraw();
  }
  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const drawing = this.shown;
    if (!drawing) return;
    const view = this.viewOf(drawing);
    drawing.view = { scale: view.scale, x: view.x + dx, y: view.y + dy };
    this.redraw();
  }
  /** @param {string} arrow the key of an arrow */
  panBy(arrow) {
    const side = arrow === "ArrowLeft" ? 1 : arrow === "ArrowRight" ? -1 : 0;
    this.pan(side * PAN, side ? 0 : arrow === "ArrowUp" ? PAN : -PAN);
  }
  /** Brings a point of the world into sight, moving no more than needed. @param {Drawing} drawing
   * @param {number} x @param {number} y @param {boolean} centre */
  bringIn(drawing, x, y, centre) {
    const view = this.viewOf(drawing);
    const [sx, sy] = [x * view.scale + view.x, y * view.scale + view.y];
    const { width, height } = this.surface;
    const edge = Math.min(60, width / 6, height / 6);
    if (!centre && sx >= edge && sx <= width - edge && sy >= edge && sy <= height - edge) return;
    drawing.view = { scale: view.scale, x: view.x + width / 2 - sx, y: view.y + height / 2 - sy };
  }
  /** A node that is followed can be read, unless somebody went away from it. @param {Drawing} drawing @param {number} x
   * @param {number} y */
  followIn(drawing, x, y) {
    if (drawing.byHand || this.viewOf(drawing).scale >= POOR) return this.bringIn(drawing, x, y, false);
    drawing.view = { scale: LEGIBLE, x: 0, y: 0 };
    this.bringIn(drawing, x, y, true);
  }
  /** Nearer, if the words in boxes cannot be read. @param {Drawing} drawing */
  comeNear(drawing) {
    const { scale } = this.viewOf(drawing);
    if (scale < LEGIBLE) this.zoom(LEGIBLE / scale);
  }
  /** Opens or folds `sections` so that the first of them stays where it is on the screen; folding one again gives back the
   * view that it was opened in. @param {Drawing} drawing @param {number[]} sections @param {boolean} open */
  keepInPlace(drawing, sections, open) {
    const { folding, before } = drawing;
    const [s] = sections;
    const view = this.viewOf(drawing);
    const from = folding.items[folding.itemOf[s]];
    const at = { x: (from.x + from.w / 2) * view.scale + view.x, y: from.y * view.scale + view.y };
    const kept2 = sections.length === 1 ? before.get(s) : void 0;
    folding.set(sections, open, this.aspect());
    if (open) before.set(s, view);
    before.forEach((_, other) => {
      if (other !== s || !open) before.delete(other);
    });
    if (!open && kept2) {
      drawing.view = kept2;
      return;
    }
    const to = folding.items[folding.itemOf[s]];
    const { width, height } = this.surface;
    const scale = view.scale < MUTE && open ? LEGIBLE : view.scale;
    const x = between(at.x, 40, width - 40);
    const y = between(at.y, 12, Math.max(12, height * 0.6));
    const middle = to.w * scale < width ? between(x, to.w * scale / 2 + 8, width - to.w * scale / 2 - 8) : to.w * scale / 2 + 8;
    drawing.view = { scale, x: middle - (to.x + to.w / 2) * scale, y: y - to.y * scale };
    const row = folding.rowOf.get(this.player.relations.tensorAt(this.player.step)) ?? -1;
    if (open && row >= 0 && folding.sectionOf[row] === s) this.bringIn(drawing, folding.x(row), folding.y(row), false);
  }
};
function between(v, lo, hi) {
  return Math.min(Math.max(hi, lo), Math.max(lo, v));
}

// graph_filter.js
var MODES = [
  ["all", "all nodes"],
  ["ancestors", "ancestors (a)"],
  ["descendants", "descendants (d)"],
  ["live", "alive now (l)"]
];
function reach({ relations }, t, up) {
  const seen = /* @__PURE__ */ new Set([t]);
  for (const at of seen) for (const next of up ? relations.sources(at) : relations.consumers(at)) seen.add(next);
  return seen;
}
var GraphFilter = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.mode = "all";
    this.key = "";
    this.kept = null;
  }
  /** The tensors that stay bright at a step; null for all. `about` is the selected or the current one.
   * @param {number} step @param {number} about @param {() => Iterable<number>} shown the tensors that are drawn */
  members(step, about2, shown) {
    const { mode, player } = this;
    if (mode === "all" || mode !== "live" && about2 < 0) return this.keep("", () => null);
    if (mode !== "live") return this.keep(`${mode} ${about2}`, () => reach(player, about2, mode === "ancestors"));
    const plan = player.relations.planAt(step);
    const position = player.relations.positionAt(step);
    if (!plan) return this.keep("no plan", () => /* @__PURE__ */ new Set());
    return this.keep(`live ${plan.plan} ${position}`, () => {
      const life = player.tracks.track("life");
      const [tensor, first, last] = ["tensor", "first", "last"].map((name) => life.col(name));
      const alive = /* @__PURE__ */ new Set();
      for (const r of plan.rows) if (first[r] <= position && position <= last[r]) alive.add(tensor[r]);
      return new Set([...shown()].filter((t) => alive.has(player.relations.root(t))));
    });
  }
  /** @param {string} key @param {() => Set<number> | null} make */
  keep(key, make) {
    if (key !== this.key) [this.key, this.kept] = [key, make()];
    return this.kept;
  }
};

// graph_pointer.js
var CLICK2 = 4;
var PINCH = 0.01;
var WHEEL = 15e-4;
var FEW2 = 5;
function listenGraph(pane) {
  const { box } = pane.surface;
  const down = /* @__PURE__ */ new Map();
  let [moved, map] = [false, false];
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target !== pane.surface.canvas) return;
    if (!down.size) [moved, map] = [false, onMinimap(pane, event.offsetX, event.offsetY, false)];
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    const from = down.get(event.pointerId);
    if (!from) return event.target === pane.surface.canvas ? hover(pane, event) : pane.player.tip.hide();
    const to = pointIn(box, event);
    if (!moved && Math.hypot(to.x - from.x, to.y - from.y) < CLICK2) return;
    moved = true;
    pane.player.tip.hide();
    const before = spread(down);
    down.set(event.pointerId, to);
    const after = spread(down);
    if (map) return onMinimap(pane, to.x, to.y, true);
    pane.pan(after.x - before.x, after.y - before.y);
    if (down.size > 1) pane.zoom(after.wide / before.wide, after.x, after.y);
  });
  const up = (event) => {
    const was = down.delete(event.pointerId);
    if (was && !moved && !map && event.type === "pointerup" && !down.size) click(pane, event);
  };
  box.addEventListener("pointerup", up);
  box.addEventListener("pointercancel", up);
  box.addEventListener("pointerleave", () => pane.player.tip.hide());
  box.addEventListener("dblclick", (event) => {
    if (event.target === pane.surface.canvas && !hit(pane, event.offsetX, event.offsetY).item) pane.fit();
  });
  box.addEventListener("wheel", (event) => wheel(pane, event), { passive: false });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target !== box) return;
    event.preventDefault();
    pane.toggleHere();
  });
}
function pointIn(box, event) {
  const { left, top } = box.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}
function spread(down) {
  const points = [...down.values()];
  const [x, y] = [points.reduce((sum, p) => sum + p.x, 0) / points.length, points.reduce((sum, p) => sum + p.y, 0) / points.length];
  return { x, y, wide: points.length > 1 ? Math.max(8, Math.hypot(points[1].x - points[0].x, points[1].y - points[0].y)) : 1 };
}
function wheel(pane, event) {
  if (!event.ctrlKey && document.activeElement !== pane.surface.box) return;
  event.preventDefault();
  const side = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
  if (!event.ctrlKey && Math.abs(side) > (event.shiftKey ? 0 : Math.abs(event.deltaY))) pane.pan(-side, 0);
  else pane.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? PINCH : WHEEL)), event.offsetX, event.offsetY);
}
function onMinimap(pane, x, y, dragged) {
  const drawing = pane.shown;
  const at = drawing && minimap(pane.surface, drawing.folding, pane.viewOf(drawing));
  if (!drawing || !at) return false;
  const within2 = (v, lo, size) => Math.min(size, Math.max(0, v - lo));
  if (!dragged && (x < at.x || y < at.y || x > at.x + at.w || y > at.y + at.h)) return false;
  pane.bringIn(drawing, within2(x, at.x, at.w) / at.s, within2(y, at.y, at.h) / at.s, true);
  pane.player.redraw(pane);
  return true;
}
function hit(pane, x, y) {
  const drawing = pane.shown;
  if (!drawing) return { row: -1, item: null, wx: 0, wy: 0 };
  const view = pane.viewOf(drawing);
  const [wx, wy] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
  const { folding } = drawing;
  const item = folding.items.find((i) => wx >= i.x && wx <= i.x + i.w && wy >= i.y && wy <= i.y + i.h) ?? null;
  const { w, h } = folding.graph.nodes;
  const rows = item && !item.card ? folding.rows[item.sections[0]] : [];
  const row = rows.find((r) => Math.abs(folding.x(r) - wx) <= w[r] / 2 && Math.abs(folding.y(r) - wy) <= h[r] / 2) ?? -1;
  return { row, item, wx, wy };
}
function click(pane, event) {
  const drawing = pane.shown;
  if (!drawing) return;
  const { row, item, wx, wy } = hit(pane, event.offsetX, event.offsetY);
  if (row >= 0) pane.player.select(drawing.folding.graph.nodes.tensor[row]);
  else if (item?.foldable && (item.card || wy < item.y + HEADER2)) toggleItem(pane, drawing, item, wx, event.shiftKey);
  else pane.player.select(-1);
}
function toggleItem(pane, drawing, item, wx, all) {
  if (!item.card || all || item.sections.length === 1) return pane.setOpen(drawing, item.sections, item.card);
  pane.setOpen(drawing, [item.sections[cellAt2(item, wx)]], true);
}
function hover(pane, event) {
  const drawing = pane.shown;
  const { tracks, tip } = pane.player;
  const { row, item, wx, wy } = hit(pane, event.offsetX, event.offsetY);
  const head = row < 0 && item && (item.card || wy < item.y + HEADER2) ? item : null;
  pane.surface.box.style.cursor = row >= 0 || (head?.foldable ?? false) ? "pointer" : "grab";
  if (!drawing || row < 0 && !head) return tip.hide();
  if (row < 0) return head && tip.show(pane.surface.box, event.offsetX, event.offsetY, head.label, aboutItem(pane, drawing, head, wx));
  const t = drawing.folding.graph.nodes.tensor[row];
  const op = tracks.tensorString("desc", t) || tracks.tensorString("op", t);
  tip.show(pane.surface.box, event.offsetX, event.offsetY, visible(tracks.name(t)), [
    ["op", op === "NONE" || op === "" ? "none: a leaf" : op],
    ["type", `${tracks.tensorString("type", t)}  ${formatDims(tracks.ne(t))}`],
    ["size", formatBytes(tracks.nbytes(t))],
    ["status", STATUS[pane.status[t]]],
    ...otherwise(drawing, row, t)
  ]);
}
function otherwise({ folding }, row, t) {
  const d = folding.graph.sections[folding.sectionOf[row]].differs;
  if (!d) return [];
  const like = folding.graph.sections[folding.indexOf.get(d.like) ?? 0].label;
  if (d.added.includes(t)) return [["added", `${like} has no such node`]];
  return d.changed.filter(([changed]) => changed === t).map(([, text]) => [`≠ ${like}`, visible(text)]);
}
function aboutItem(pane, { folding }, item, wx) {
  const { sections } = folding.graph;
  const { player } = pane;
  const s = item.sections[cellAt2(item, wx)];
  const told = [];
  if (item.card && item.sections.length > 1) told.push(["pointed at", `${sections[s].label}, ${sections[s].nodes.length} nodes; a click opens it, with Shift all`]);
  else told.push(["nodes", String(sections[s].nodes.length)]);
  const d = sections[s].differs;
  if (d) {
    const name = (t) => visible(player.tracks.name(t));
    told.push(["unlike", sections[folding.indexOf.get(d.like) ?? 0].label]);
    if (d.added.length) told.push(["added", few(d.added.map(name))]);
    if (d.removed.length) told.push(["not here", few(d.removed.map(name))]);
    if (d.changed.length) told.push(["changed", few(d.changed.map(([t, text]) => `${name(t)}: ${visible(text)}`))]);
  }
  const copies = item.card ? copiesInto(player, folding, item.sections, player.step) : [];
  if (copies.length) told.push(["copies", few(copies)]);
  return told;
}
function few(words) {
  return words.length <= FEW2 ? words.join("; ") : `${words.slice(0, FEW2).join("; ")}; and ${words.length - FEW2} more`;
}
function cellAt2(item, wx) {
  const k = Math.floor((wx - item.x - STRIP2.left) / (item.w - 2 * STRIP2.left) * item.sections.length);
  return Math.min(item.sections.length - 1, Math.max(0, k));
}

// search_query.js
var UNITS = (
  /** @type {Record<string, number>} */
  { "": 1, b: 1, k: 1024, kib: 1024, kb: 1e3, m: 1024 ** 2, mib: 1024 ** 2, mb: 1e6, g: 1024 ** 3, gib: 1024 ** 3, gb: 1e9 }
);
var LAYER2 = /(?:^|\s)(?:layer|blk|block)(?::|\s+)(\d+)(?=\s|$)/gi;
var SIZE = /^([<>]=?)(\d+(?:\.\d+)?)\s*([kmg]?i?b?)$/i;
var FIELD2 = /^(op|type|name):(.+)$/i;
function parseQuery(tracks, query, layerOf) {
  const tests = [];
  const rest = query.replace(LAYER2, (_, number) => {
    tests.push((t) => layerOf(t) === Number(number));
    return " ";
  });
  for (const word of rest.replace(/([<>]=?)\s+/g, "$1").trim().toLowerCase().split(/\s+/).filter(Boolean)) {
    const size = SIZE.exec(word);
    const field = FIELD2.exec(word);
    if (size && size[3] in UNITS) tests.push(sizeTest(tracks, size[1], Number(size[2]) * UNITS[size[3]]));
    else if (field) tests.push(fieldTest(tracks, field[1], field[2]));
    else tests.push((t) => ["name", "op", "desc", "type"].some((c) => tracks.tensorString(c, t).toLowerCase().includes(word)));
  }
  return tests.length ? (t) => tests.every((test) => test(t)) : null;
}
function sizeTest(tracks, compare2, bytes) {
  if (compare2 === ">") return (t) => tracks.nbytes(t) > bytes;
  if (compare2 === ">=") return (t) => tracks.nbytes(t) >= bytes;
  return compare2 === "<" ? (t) => tracks.nbytes(t) < bytes : (t) => tracks.nbytes(t) <= bytes;
}
function fieldTest(tracks, field, wanted) {
  const columns = field === "op" ? ["op", "desc"] : [field];
  return (t) => columns.some((c) => tracks.tensorString(c, t).toLowerCase().includes(wanted));
}

// search.js
var MOST2 = 40;
var GraphSearch = class {
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
    this.taken = false;
    this.matches = [];
    this.input = el("input", "vg-search", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search tensors by name, op, type, size or layer",
      title: "Words of a name, op or type; op:MUL_MAT  type:Q4_1  >1MiB  layer:3. Enter: next, Shift Enter: previous, Esc: done",
      role: "combobox",
      "aria-expanded": "false",
      autocomplete: "off",
      spellcheck: "false"
    });
    this.list = el("ul", "vg-results", { role: "listbox", "aria-label": "Tensors found" });
    this.list.hidden = true;
    this.count = el("span", "vg-found", { role: "status" });
    this.element = el("div", "vg-search-box", {}, [this.input, this.count, this.list]);
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.list.hidden = true, 150));
    this.list.addEventListener("pointerdown", (event) => {
      const item = (
        /** @type {HTMLElement} */
        event.target.closest("li")
      );
      const k = item ? [...this.list.children].indexOf(item) : -1;
      if (k < 0 || k >= Math.min(MOST2, this.matches.length)) return;
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
    const items = this.matches.slice(0, MOST2).map((t) => {
      const op = tracks.tensorString("desc", t) || "NONE";
      const graph = this.elsewhere(t);
      const where = graph < 0 ? "" : ` · graph ${graph}`;
      return el("li", "", { role: "option" }, [
        el("span", "vg-mono", { text: visible(tracks.name(t)) }),
        el("span", "vg-soft", { text: `${op === "NONE" ? "leaf" : op} · ${tracks.tensorString("type", t)} · ${formatDims(tracks.ne(t))} · ${formatBytes(tracks.nbytes(t))}${where}` })
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
    this.list.children[Math.min(this.active, MOST2)]?.scrollIntoView({ block: "nearest" });
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
};

// graph.js
var DEAR = 10;
var [REST, QUIET] = [120, 250];
var LOW = 220;
var GraphPane = class extends GraphCamera {
  /** @param {Player} player */
  constructor(player) {
    super(player);
    this.name = "graph";
    this.title = "Graph";
    this.drawings = /* @__PURE__ */ new Map();
    this.current = -1;
    this.indexOfGraph = new Map(player.layout.graphs.map((g, i) => [g.graph, i]));
    this.follow = true;
    this.followed = -1;
    this.showPath = false;
    this.filter = new GraphFilter(player);
    this.status = new Uint8Array(player.tracks.nTensors);
    this.found = [];
    this.marks = /* @__PURE__ */ new Map();
    this.cost = 0;
    this.resting = 0;
    this.size = [0, 0];
    this.note = el("div", "vg-empty");
    this.legend = el("div", "vg-legend");
    this.markLegend = el("span", "vg-mark-legend");
    this.search = new GraphSearch(player, (found) => this.setFound(found), (t) => this.reveal(t), (t) => this.elsewhere(t), (t) => this.layerOf(t));
    this.choice = el("select", "vg-select", { "aria-label": "Which graph", title: "Which graph, and its nodes" });
    this.choice.addEventListener("change", () => this.choose(Number(this.choice.value)));
    const nearer = el("div", "vg-nearer", { role: "group", "aria-label": "Zoom" }, [
      iconButton("faster", "Zoom in (z)", () => this.zoom(1.3)),
      iconButton("slower", "Zoom out (Z)", () => this.zoom(1 / 1.3)),
      iconButton("fit", "Fit (f)", () => this.fit())
    ]);
    this.surface.box.append(nearer);
    this.body = el("div", "vg-stack", {}, [this.surface.box, this.note, this.legend]);
    this.surface.box.tabIndex = 0;
    this.surface.box.setAttribute("role", "group");
    this.tools = this.makeTools();
    this.fillLegend();
    this.fillChoice();
    listenGraph(this);
  }
  makeTools() {
    this.foldButton = iconButton("unfold", "Open all blocks", () => this.toggleAll());
    this.followButton = iconButton("follow", "Keep the current node in sight", () => this.toggleFollow());
    this.followButton.setAttribute("aria-pressed", "true");
    this.pathButton = iconButton("path", "Light the way to the inputs (i)", () => this.togglePath());
    this.pathButton.setAttribute("aria-pressed", "false");
    const options = MODES.map(([mode, text]) => el("option", "", { value: mode, text }));
    this.filterChoice = el("select", "vg-select vg-filter", { "aria-label": "Which nodes stay bright", title: "Which nodes stay bright: of the selected node, else of the current one" }, options);
    this.filterChoice.addEventListener("change", () => this.setFilter(
      /** @type {Mode} */
      this.filterChoice?.value
    ));
    const group = el("div", "vg-group", {}, [this.foldButton, this.followButton, this.pathButton]);
    return [this.search.element, this.choice, this.filterChoice, group];
  }
  fillLegend() {
    STATUS.forEach((text, status) => {
      const mark = el("span", "vg-swatch");
      mark.style.background = `var(--vg-status-${status})`;
      this.legend.append(el("span", "vg-key", {}, [mark, el("span", "", { text })]));
    });
    nameBackends(this.player, this.legend);
    this.legend.append(this.markLegend);
  }
  fillChoice() {
    const { graphs } = this.player.layout;
    for (const [index, graph] of graphs.entries()) {
      this.choice.append(el("option", "", { value: String(index), text: `graph ${graph.graph} (${graph.n_nodes})` }));
    }
    this.choice.hidden = graphs.length < 2;
    if (!graphs.length) this.note.textContent = "No graph was built in this trace.";
    this.note.hidden = graphs.length > 0;
  }
  // ---- which graph, folded how
  /** @param {number} index @returns {Drawing} */
  drawing(index) {
    let drawing = this.drawings.get(index);
    if (!drawing) {
      const folding = new Folding(this.player.layout.graphs[index]);
      this.adopt(folding);
      const painter = new GraphPainter(this.player.tracks, folding);
      drawing = { folding, painter, view: null, bitmap: null, drawn: null, key: "", before: /* @__PURE__ */ new Map(), byHand: false };
      this.drawings.set(index, drawing);
    }
    return drawing;
  }
  /** A graph that is met for the first time opens the blocks that are open in the one shown. @param {Folding} folding */
  adopt(folding) {
    const shown = this.drawings.get(this.current)?.folding;
    if (shown && shown.open.length === folding.open.length) folding.open.set(shown.open);
    folding.arrange(this.aspect());
  }
  get shown() {
    return this.current < 0 ? null : this.drawing(this.current);
  }
  /** @param {number} index */
  choose(index) {
    const before = this.shown;
    this.current = index;
    this.choice.value = String(index);
    if (this.foldButton) this.foldButton.hidden = !this.drawing(index).folding.folds.length;
    const now = (
      /** @type {Drawing} */
      this.shown
    );
    if (before && !now.view && before.folding.width === now.folding.width && before.folding.height === now.folding.height) {
      now.view = before.view && { ...before.view };
    }
    this.redraw();
    const baked = [...this.drawings.values()].filter((d) => d.bitmap && d !== this.shown);
    while (baked.length >= this.surface.most) baked.shift().bitmap = null;
  }
  /** Another size fits the graph anew; a pane that was only out of sight comes back as it was. */
  resized() {
    const { width, height } = this.surface;
    if (width < 2 || height < 2) return;
    this.surface.box.classList.toggle("vg-low", height < LOW);
    const same = this.size[0] === width && this.size[1] === height;
    this.size = [width, height];
    if (same) {
      for (const drawing of this.drawings.values()) drawing.bitmap = null;
      return this.redraw();
    }
    for (const [index, drawing] of this.drawings) {
      drawing.bitmap = null;
      drawing.view = null;
      drawing.before.clear();
      if (index === this.current) drawing.folding.arrange(this.aspect());
    }
    this.redraw();
  }
  invalidate() {
    for (const drawing of this.drawings.values()) drawing.bitmap = null;
    this.fillMarks();
  }
  toggleFollow() {
    this.follow = !this.follow;
    this.followed = -1;
    if (this.shown) this.shown.byHand = false;
    this.followButton?.setAttribute("aria-pressed", String(this.follow));
    this.redraw();
  }
  togglePath() {
    this.showPath = !this.showPath;
    this.pathButton?.setAttribute("aria-pressed", String(this.showPath));
    this.redraw();
  }
  /** @param {Mode} mode */
  setFilter(mode) {
    this.filter.mode = mode;
    if (this.filterChoice) this.filterChoice.value = mode;
    this.filterChoice?.classList.toggle("vg-on", mode !== "all");
    this.redraw();
  }
  /** @param {Mode} mode */
  toggleFilter(mode) {
    this.setFilter(this.filter.mode === mode ? "all" : mode);
  }
  /** Outlines tensors, and says in a legend as what; an empty map takes all marks away.
   * @param {Map<number, import("./marks.js").Mark>} marks */
  mark(marks) {
    this.marks = marks;
    this.fillMarks();
    this.redraw();
  }
  fillMarks() {
    this.markLegend.replaceChildren(...markKeys(this.player.palette, this.marks));
    this.legend.classList.toggle("vg-marking", this.marks.size > 0);
  }
  toggleAll() {
    const drawing = this.shown;
    if (!drawing) return;
    const { folding } = drawing;
    folding.open.fill(folding.closed ? 1 : 0);
    for (let s = 0; s < folding.open.length; s++) if (!folding.foldable(s)) folding.open[s] = 0;
    folding.arrange(this.aspect());
    drawing.view = null;
    drawing.byHand = false;
    this.followed = -1;
    drawing.before.clear();
    this.folded(drawing);
  }
  /** Opens or folds blocks; what is looked at stays in sight. @param {Drawing} drawing @param {number[]} sections
   * @param {boolean} open */
  setOpen(drawing, sections, open) {
    this.keepInPlace(drawing, sections, open);
    this.folded(drawing);
  }
  /** After blocks were opened or folded: the button, and the other graphs of the same form. @param {Drawing} drawing */
  folded(drawing) {
    const { closed, open } = drawing.folding;
    if (this.foldButton) setIcon(this.foldButton, closed ? "unfold" : "fold", closed ? "Open all blocks" : "Fold all blocks");
    for (const [index, other] of this.drawings) {
      if (index === this.current || other.folding.open.length !== open.length) continue;
      other.folding.open.set(open);
      other.folding.arrange(this.aspect());
      other.view = other.bitmap = null;
    }
    this.redraw();
  }
  /** Opens or folds the block of the current node, else the first that can be. */
  toggleHere() {
    const drawing = this.shown;
    if (!drawing) return;
    const { folding } = drawing;
    const row = folding.rowOf.get(this.player.relations.tensorAt(this.player.step)) ?? -1;
    const here = row < 0 ? -1 : folding.sectionOf[row];
    const section2 = here >= 0 && folding.foldable(here) ? here : folding.fold.findIndex((f) => f >= 0);
    if (section2 >= 0) this.setOpen(drawing, [section2], !folding.open[section2]);
  }
  /** The graph that tensor `t` is of, when it is not the one that is shown; else -1. @param {number} t */
  elsewhere(t) {
    return this.shown?.folding.rowOf.has(t) ? -1 : this.player.relations.home.graph[t] ?? -1;
  }
  /** The layer of tensor `t` by its name, else by where it stands in the graph; -1 for none. @param {number} t @returns {number} */
  layerOf(t) {
    const named = this.player.tracks.columns.column("tensor.layer")[t];
    if (named >= 0) return named;
    const folding = this.shown?.folding;
    const row = folding?.rowOf.get(t);
    return folding && row !== void 0 ? folding.graph.sections[folding.sectionOf[row]].layer : -1;
  }
  /** Opens what hides tensor `t` and brings it into the middle. @param {number} t */
  reveal(t) {
    const { graph } = this.player.relations.home;
    const index = this.indexOfGraph.get(graph[t]) ?? -1;
    if (!this.shown?.folding.rowOf.has(t) && index >= 0) this.choose(index);
    const drawing = this.shown;
    const row = drawing?.folding.rowOf.get(t);
    if (!drawing || row === void 0) return;
    if (!drawing.folding.shown(row)) this.setOpen(drawing, [drawing.folding.sectionOf[row]], true);
    this.comeNear(drawing);
    this.bringIn(drawing, drawing.folding.x(row), drawing.folding.y(row), true);
    this.redraw();
  }
  /** Brings tensor `t` into sight, where the shown graph has it. @param {number} t */
  lookAt(t) {
    const drawing = this.shown;
    const row = drawing?.folding.rowOf.get(t);
    if (!drawing || row === void 0 || this.surface.width < 2) return;
    const { x, y } = drawing.folding.anchor(row);
    this.bringIn(drawing, x, y, false);
    this.redraw();
  }
  /** @param {number[]} found */
  setFound(found) {
    this.found = found;
    this.redraw();
  }
  // ---- a step
  /** @param {number} step */
  draw(step) {
    this.followGraph(step);
    const drawing = this.shown;
    if (!drawing || this.surface.width < 2) return;
    const { player, surface, status } = this;
    const { folding, painter } = drawing;
    const t = player.relations.tensorAt(step);
    const row = folding.rowOf.get(t) ?? -1;
    if (this.follow && row >= 0 && step !== this.followed) {
      const at = folding.anchor(row);
      if (folding.shown(row) && folding.foldable(folding.sectionOf[row])) this.followIn(drawing, at.x, at.y);
      else this.bringIn(drawing, at.x, at.y, false);
    }
    this.followed = step;
    const about2 = player.selected >= 0 ? player.selected : t;
    const members = this.filter.members(step, about2, () => folding.rowOf.keys());
    const live = this.filter.mode === "live";
    this.blit(drawing, live ? null : members);
    this.readStatus(step);
    const c = surface.begin();
    const view = this.viewOf(drawing);
    if (live && members) painter.paintOnly(c, surface, view, player.palette, player.fonts, members);
    painter.within(c, view, () => {
      paintStatus(c, player, folding, status, surface, view, members);
      paintBackends(c, player, folding, step, view.scale, STRIP2);
      paintCopies(c, player, drawing, step, view.scale);
      if (about2 >= 0) paintKin(c, player, drawing, about2, this.showPath ? reach(player, about2, true) : null, view.scale, members);
      painter.titles(c, surface, view, player.palette, player.fonts, members);
      paintUnlike(c, player, folding, view.scale, members);
      if (this.marks.size) paintMarks2(c, player, folding, this.marks, view.scale);
      paintFound(c, player, folding, this.found, view.scale);
      if (detail(view.scale) === 3) paintPlaces(c, player, folding, step, surface, view, members);
      paintRings(c, player, folding, row, view.scale);
    });
    paintMinimap(c, player, surface, folding, view, row);
    player.rest.after(this, QUIET, () => this.tell(drawing, t));
  }
  /** What a screen reader says of the pane. @param {Drawing} drawing @param {number} t the current node */
  tell({ folding }, t) {
    const { player } = this;
    const { tracks, selected } = player;
    const { graph } = folding;
    const about2 = (of) => {
      const row = folding.rowOf.get(of);
      const place3 = row === void 0 ? "not in this graph" : graph.sections[folding.sectionOf[row]].label;
      const op = tracks.tensorString("desc", of);
      return `${visible(tracks.name(of))}, ${op && op !== "NONE" ? op : "leaf"} ${formatDims(tracks.ne(of))}, ${STATUS[this.status[of]]}, ${place3}`;
    };
    const parts = [`Graph ${graph.graph}, ${/** @type {any} */
    graph.n_nodes} nodes`];
    if (t >= 0) parts.push(`current: ${about2(t)}`);
    if (selected >= 0) parts.push(`selected: ${about2(selected)}`);
    if (this.marks.size) parts.push(`marked: ${markWords(this.marks)}`);
    if (this.filter.mode !== "all") parts.push(`bright: ${this.filter.mode}, ${this.filter.kept?.size ?? 0} tensors`);
    const text = `${parts.join("; ")}. Enter opens or folds the block of the current node`;
    if (this.surface.box.getAttribute("aria-label") !== text) this.surface.box.setAttribute("aria-label", text);
  }
  /** @param {number} step */
  followGraph(step) {
    const { layout, relations } = this.player;
    if (this.current >= 0 && (!this.follow || step === this.followed)) return;
    const told = relations.focus.graph[step];
    const index = this.indexOfGraph.get(told >= 0 ? told : relations.planAt(step)?.graph ?? -1) ?? (told >= 0 ? this.current : 0);
    if (index !== this.current && index < layout.graphs.length) this.choose(Math.max(0, index));
  }
  /** The bitmap of what does not change with the step; one that is dear and only moved is not made anew at once.
   * @param {Drawing} drawing @param {Set<number> | null} members */
  blit(drawing, members) {
    const view = this.viewOf(drawing);
    const key = `${drawing.folding.version} ${members ? this.filter.key : ""}`;
    const { drawn, bitmap } = drawing;
    const same = bitmap && drawing.key === key;
    const moved = !drawn || drawn.scale !== view.scale || drawn.x !== view.x || drawn.y !== view.y;
    if (same && moved && this.cost > DEAR) {
      this.blitMoved(
        bitmap,
        /** @type {View} */
        drawn,
        view
      );
      clearTimeout(this.resting);
      this.resting = setTimeout(() => {
        this.cost = 0;
        this.redraw();
      }, REST);
      return;
    }
    if (!same || moved) {
      const begun = performance.now();
      const { bitmap: made, context } = bitmap ? { bitmap, context: this.surface.over(bitmap) } : this.surface.layer();
      drawing.painter.paint(context, this.surface, view, this.player.palette, this.player.fonts, members);
      Object.assign(drawing, { bitmap: made, drawn: view, key });
      this.cost = (this.cost + performance.now() - begun) / 2;
    }
    this.surface.blit(
      /** @type {HTMLCanvasElement} */
      drawing.bitmap
    );
  }
  /** @param {HTMLCanvasElement} bitmap @param {View} drawn @param {View} view */
  blitMoved(bitmap, drawn, view) {
    const c = this.surface.begin();
    const { width, height } = this.surface;
    const f = view.scale / drawn.scale;
    c.fillStyle = this.player.palette.page;
    c.fillRect(0, 0, width, height);
    c.drawImage(bitmap, view.x - drawn.x * f, view.y - drawn.y * f, width * f, height * f);
  }
  /** @param {number} step */
  readStatus(step) {
    const track = this.player.tracks.track("node");
    const tensor = track.col("tensor");
    const value = track.col("status");
    const { status } = this;
    status.fill(0);
    track.each(step, (row) => {
      status[tensor[row]] = value[row];
    });
  }
  stop() {
    clearTimeout(this.resting);
    this.surface.stop();
    setText(this.note, "");
  }
};

// groups.js
var GROUPS = [
  { name: "memory", title: "Memory", panes: ["map", "timeline"] },
  { name: "events", title: "Events", panes: ["events"] },
  { name: "details", title: "Details", panes: ["tables"] }
];
var [HIGH, SHORT2] = [1180, 900];
var Groups = class {
  /** @param {Player} player @param {string[]} names the panes that there are */
  constructor(player, names) {
    this.player = player;
    this.groups = GROUPS.map((group) => ({ ...group, panes: group.panes.filter((name) => names.includes(name)) })).filter((group) => group.panes.length);
    this.chosen = this.groups[0];
    this.on = false;
    this.tabs = this.groups.map((group, k) => {
      const tab = el("button", "vg-tab", { type: "button", role: "tab", text: group.title, title: `${group.title} (${k + 1})` });
      tab.addEventListener("click", () => this.choose(group));
      return tab;
    });
    this.element = el("div", "vg-groups vg-tabs", { role: "tablist", "aria-label": "What stands under the graph" }, this.tabs);
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.show();
  }
  /** Whether a pane is one of those that wait behind a tab. @param {string} name */
  hides(name) {
    return this.on && !this.chosen.panes.includes(name) && this.groups.some((group) => group.panes.includes(name));
  }
  /** @param {boolean} on */
  turn(on) {
    this.on = on && this.groups.length > 1;
    this.show();
  }
  /** @param {Group | undefined} group */
  choose(group) {
    if (!group || !this.on) return;
    this.chosen = group;
    this.show();
    this.player.rearrange();
  }
  /** The group that a pane is of comes to the front. @param {string} name */
  bring(name) {
    if (this.hides(name)) this.choose(this.groups.find((group) => group.panes.includes(name)));
  }
  show() {
    this.element.hidden = !this.on;
    this.groups.forEach((group, k) => {
      const chosen = group === this.chosen;
      this.tabs[k].setAttribute("aria-selected", String(chosen));
      this.tabs[k].tabIndex = chosen ? 0 : -1;
    });
  }
  /** @param {KeyboardEvent} event */
  onKey(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const n = this.groups.length;
    this.choose(this.groups[(this.groups.indexOf(this.chosen) + by + n) % n]);
    this.tabs[this.groups.indexOf(this.chosen)].focus();
  }
};

// keys.js
var LEAP = 10;
var STRIDE = 100;
var BINDINGS = [
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
  { keys: ["?"], shown: "?", does: "this card", act: (p) => p.help.toggle() }
];
var BY_KEY = new Map(BINDINGS.flatMap((binding) => binding.keys.map((key) => (
  /** @type {const} */
  [key, binding]
))));
var ARROWS = /* @__PURE__ */ new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);
function takesKey(target, key) {
  if (target.matches("input[type=range]")) return false;
  if (target.matches("input, textarea, select, [contenteditable]")) return true;
  return (key === " " || key === "Enter") && target.matches("button, a, [role=tab]");
}
function onKey(player, event) {
  if (event.ctrlKey || event.metaKey || event.altKey && !ARROWS.has(event.key) || event.defaultPrevented) return;
  const target = (
    /** @type {HTMLElement} */
    event.target
  );
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
function listenKeys(player, whole2) {
  player.root.addEventListener("keydown", (event) => onKey(player, event));
  if (!whole2) return () => {
  };
  const onPage = (event) => {
    if (event.target === document.body || event.target === document.documentElement) onKey(player, event);
  };
  document.addEventListener("keydown", onPage);
  return () => document.removeEventListener("keydown", onPage);
}
var Help = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    const rows = BINDINGS.map(({ shown, does }) => el("div", "vg-help-row", {}, [el("kbd", "", { text: shown }), el("span", "", { text: does })]));
    this.close = el("button", "vg-button vg-text-button", { type: "button", text: "Close" });
    this.close.addEventListener("click", () => this.toggle());
    this.card = el("div", "vg-help-card", { role: "dialog", "aria-modal": "true", "aria-label": "Keys", tabindex: "-1" }, [
      el("div", "vg-help-head", {}, [el("h2", "", { text: "Keys" }), this.close]),
      el("div", "vg-help-rows", {}, rows),
      el("p", "vg-soft", { text: "Ctrl and the wheel zoom graph, map and timeline; drag over the timeline to zoom, double-click for all of it. In the graph two fingers zoom too, and Enter opens or folds the current block. In a heat map or a histogram, the arrows read a cell." })
    ]);
    this.element = el("div", "vg-help", {}, [this.card]);
    this.element.hidden = true;
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.toggle();
    });
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
};

// candidates.js
var HOPS = 3;
var PARTS2 = /* @__PURE__ */ new Set(["SearchBegin", "BlockConsidered", "BlockChosen", "BlockSplit", "BlockRemoved", "ChunkOpened", "ChunkGrown", "TensorAssigned"]);
function searchAt(tracks, step) {
  if (!PARTS2.has(tracks.kindOf(step).name)) return null;
  let begin = step;
  for (let hop = 0; hop < HOPS && begin >= 0 && tracks.kindOf(begin).name !== "SearchBegin"; hop++) begin = tracks.cause[begin];
  if (begin < 0 || tracks.kindOf(begin).name !== "SearchBegin") return null;
  const allocator = tracks.field(begin, "allocator");
  const size = tracks.field(begin, "size");
  const search = { begin, allocator, tensor: tracks.field(begin, "tensor"), size, candidates: [], taken: false };
  for (let i = begin + 1; i <= step; i++) {
    if (tracks.cause[i] !== begin) continue;
    const kind = tracks.kindOf(i).name;
    if (kind === "BlockConsidered") search.candidates.push(considered(tracks, i));
    else if (kind === "BlockChosen") choose2(tracks, i, search);
  }
  tell(search);
  return search;
}
function considered(tracks, event) {
  const at = (name) => tracks.field(event, name);
  const end = at("phase") === "last block";
  const verdict = at("verdict");
  const size = at("size");
  const fits = verdict !== "too small";
  const label = end ? "the free end" : `block ${at("block")} · ${formatBytes(size)}`;
  const won = verdict === "best so far";
  return { event, chunk: at("chunk"), block: at("block"), offset: at("offset"), size, end, fits, won, label, words: end ? endWords(at("reuse_factor")) : "" };
}
function endWords(reuse) {
  return reuse < 0 ? `the chunk grows by ${formatBytes(-reuse)}` : `${formatBytes(reuse)} of the chunk stay unused`;
}
function choose2(tracks, event, search) {
  search.taken = true;
  const [chunk, offset] = [tracks.field(event, "chunk"), tracks.field(event, "offset")];
  if (search.candidates.some((c) => c.chunk === chunk && c.offset === offset)) return;
  const rule = tracks.field(event, "rule");
  const label = rule === "new chunk" ? "a new chunk" : "the free end";
  const words = rule === "new chunk" ? "no other has room" : endWords(tracks.field(event, "reuse_factor"));
  const [block, size] = [tracks.field(event, "block"), tracks.field(event, "size")];
  search.candidates.push({ event, chunk, block, offset, size, end: true, fits: true, won: true, label, words });
}
function tell({ candidates, size, taken: taken2 }) {
  const best = candidates.findLast((c) => c.won);
  for (const c of candidates) {
    c.won = c === best;
    if (c.end) {
      if (!c.fits) c.words = `too small: ${formatBytes(c.size)} < ${formatBytes(size)}`;
      else if (taken2) c.words = c.won ? `taken: ${c.words}` : `not better: ${c.words}`;
    } else if (!c.fits) c.words = `too small: ${formatBytes(c.size)} < ${formatBytes(size)}`;
    else if (!c.won) c.words = "fits, but not the best";
    else if (taken2) c.words = c.size === size ? "taken: fits exactly" : "taken: the best fit";
    else c.words = "fits: the best so far";
  }
}
function searchWords(tracks, search) {
  const what = search.tensor >= 0 ? ` for ${tracks.name(search.tensor)}` : "";
  return [`Looking for ${formatBytes(search.size)}${what}`, ...search.candidates.map((c) => `${c.label}: ${c.words}`)].join("; ");
}

// map_blocks.js
var UNKNOWN2 = -2;
var UNKNOWN_WORDS = "held from before the recording";
function paintFree(player, c, { x, w, y, h }) {
  const { palette } = player;
  c.fillStyle = palette.free;
  c.fillRect(x, y, w, h);
  c.strokeStyle = palette.edge;
  c.lineWidth = 1;
  c.setLineDash([2, 3]);
  if (w > 3) c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  c.setLineDash([]);
  if (w < 34) return;
  c.fillStyle = palette.faint;
  c.font = `11px ${player.fonts.ui}`;
  c.textBaseline = "middle";
  c.fillText("free", x + 6, y + h / 2);
}
function paintOwned(player, c, { x, w, y, h, owner, size }) {
  const { palette, tracks, selected, relations } = player;
  c.fillStyle = palette.families[familyOf(tracks.tensorString("op", owner))];
  c.fillRect(x, y, Math.max(1, w - 1), h);
  if (selected >= 0 && relations.root(selected) === owner) {
    c.strokeStyle = palette.ink;
    c.lineWidth = 2;
    c.strokeRect(x + 1, y + 1, Math.max(1, w - 3), h - 2);
  }
  paintName(player, c, { x, w, y, h, owner, size }, palette.onFamily);
}
function paintName({ tracks, fonts }, c, { x, w, y, h, owner, size }, ink) {
  const room = Math.floor((w - 10) / 6.4);
  const name = cutEnd(visible(tracks.name(owner)), room);
  if (!name) return;
  const bytes = formatBytes(size);
  c.fillStyle = ink;
  c.textBaseline = "middle";
  c.font = `10.5px ${fonts.mono}`;
  const two = h >= 34 && bytes.length <= room;
  c.fillText(name, x + 6, y + h / 2 - (two ? 7 : 0));
  c.font = `10.5px ${fonts.ui}`;
  if (two) c.fillText(bytes, x + 6, y + h / 2 + 8);
}
function paintUnknown(player, c, { x, w, y, h, size }) {
  const { palette, fonts } = player;
  c.fillStyle = palette.edge;
  c.fillRect(x, y, Math.max(1, w - 1), h);
  c.fillStyle = palette.ink;
  c.textBaseline = "middle";
  c.font = `10.5px ${fonts.ui}`;
  const room = Math.floor((w - 10) / 6);
  const two = h >= 34;
  c.fillText(cutEnd(two ? UNKNOWN_WORDS : `${UNKNOWN_WORDS}, ${formatBytes(size)}`, room), x + 6, y + h / 2 - (two ? 7 : 0));
  if (two && formatBytes(size).length <= room) c.fillText(formatBytes(size), x + 6, y + h / 2 + 8);
}

// map_buffers.js
var BufferBars = class {
  /** @param {MapPane} pane @param {number} left where bars begin, and as much is left free at their right @param {number} high */
  constructor(pane, left, high) {
    this.pane = pane;
    this.left = left;
    this.high = high;
    this.kept = /* @__PURE__ */ new Map();
  }
  /** Paints a buffer's bar with the tensors chosen and current marked. @param {CanvasRenderingContext2D} c @param {number} step
   * @param {Lane} lane @param {number} top @returns {Block[]} */
  paint(c, step, lane, top) {
    const { player, surface } = this.pane;
    const { palette, selected, tracks } = player;
    const wide = surface.width - 2 * this.left;
    const key = [tracks.track("place").epoch(step), top, surface.width, surface.ratio, palette.page].join(" ");
    let kept2 = this.kept.get(lane.id);
    if (kept2?.key !== key) this.kept.set(lane.id, kept2 = this.make(key, step, lane, top, wide));
    c.drawImage(kept2.bitmap, this.left, top, wide, this.high);
    for (const owner of /* @__PURE__ */ new Set([player.relations.tensorAt(step), selected])) {
      const block = kept2.of.get(owner);
      if (!block) continue;
      c.fillStyle = owner === selected ? palette.ink : palette.accent;
      c.fillRect(block.x - 1, top - 2, Math.max(3, block.w), this.high + 4);
      paintName(player, c, block, palette.page);
    }
    return kept2.blocks;
  }
  /** @param {string} key @param {number} step @param {Lane} lane @param {number} top @param {number} wide @returns {Kept} */
  make(key, step, lane, top, wide) {
    const { player, surface } = this.pane;
    const { palette, tracks } = player;
    const track = tracks.track("place");
    const [buffer, offset, size, tensor] = ["buffer", "offset", "size", "tensor"].map((n) => track.col(n));
    const bitmap = el("canvas");
    bitmap.width = Math.max(1, Math.round(wide * surface.ratio));
    bitmap.height = Math.max(1, Math.round(this.high * surface.ratio));
    const c = (
      /** @type {CanvasRenderingContext2D} */
      bitmap.getContext("2d", { alpha: false })
    );
    c.scale(surface.ratio, surface.ratio);
    c.fillStyle = palette.panel;
    c.fillRect(0, 0, wide, this.high);
    const blocks = [];
    track.each(step, (row) => {
      if (buffer[row] !== lane.id) return;
      const x = offset[row] / lane.extent * wide;
      const w = Math.max(0.5, size[row] / lane.extent * wide);
      c.fillStyle = palette.families[blocks.length % 2 ? 5 : 6];
      c.fillRect(x, 0, w, this.high);
      paintName(player, c, { x, w, y: 0, h: this.high, owner: tensor[row], size: size[row] }, palette.onFamily);
      blocks.push({ x: this.left + x, w, y: top, h: this.high, owner: tensor[row], offset: offset[row], size: size[row], endless: false, allocator: -1, chunk: -1 });
    });
    return { key, bitmap, blocks, of: new Map(blocks.map((block) => [block.owner, block])) };
  }
};

// map_chips.js
var CHIP_LINE = 14;
var GAP4 = 12;
var LONGEST = 34;
function chipsAt(player, step, view) {
  const search = searchAt(player.tracks, step);
  if (!search) return actionChips(player, step, view);
  const opens = player.tracks.kindOf(step).name === "ChunkOpened" ? actionChips(player, step, view) : [];
  return [...opens, ...searchChips(player, step, view, search)];
}
function searchChips({ tracks }, step, view, search) {
  if (search.allocator !== view.allocator) return [];
  const kind = tracks.kindOf(step).name;
  return search.candidates.filter((c) => c.chunk === view.chunk).map((c) => {
    const size = taken(c, search, view.extent);
    const chip = { offset: c.offset, size, label: c.label, words: c.words, tone: toneOf(c.won), dashed: !c.won };
    if (!c.won) return chip;
    if (kind === "BlockSplit") {
      const rest = tracks.field(step, "size");
      const stays = rest < 0 ? "the rest stays free" : `${formatBytes(rest)} stay free`;
      return { ...chip, size: search.size, label: `split: ${formatBytes(search.size)} taken`, words: stays, cut: tracks.field(step, "offset") };
    }
    if (kind === "ChunkGrown") {
      const [before, after] = [tracks.field(step, "size_before"), tracks.field(step, "size")];
      return { ...chip, offset: before, size: after - before, label: `the chunk grows by ${formatBytes(after - before)}`, words: `${formatBytes(before)} to ${formatBytes(after)}` };
    }
    return search.taken && kind !== "BlockChosen" ? { ...chip, size: search.size } : chip;
  });
}
function toneOf(won) {
  return won ? "won" : "lost";
}
function taken(c, search, extent) {
  const all = Math.min(c.size < 0 ? extent : c.size, Math.max(0, extent - c.offset));
  return c.end ? Math.min(search.size, all) : all;
}
function actionChips(player, step, view) {
  const { tracks, relations } = player;
  const kind = tracks.kindOf(step).name;
  const field = (name2) => tracks.field(step, name2);
  const allocator = field("allocator") ?? relations.planAt(step)?.allocators[field("buffer_id") ?? 0];
  if (field("chunk") !== view.chunk || allocator !== void 0 && allocator !== view.allocator) return [];
  const whole2 = { offset: 0, size: view.extent, tone: toneOf(true), dashed: true };
  if (kind === "ChunkOpened") return [{ ...whole2, label: "this chunk opens", words: "one free block" }];
  if (kind === "ChunkGrown") {
    const [before, after] = [field("size_before"), field("size")];
    return [{ ...whole2, offset: before, size: after - before, label: `the chunk grows by ${formatBytes(after - before)}`, words: `${formatBytes(before)} to ${formatBytes(after)}` }];
  }
  const offset = field("offset");
  if (offset === void 0) return [];
  const size = Math.min(field("size") < 0 ? Infinity : field("size"), Math.max(0, view.extent - offset));
  const chip = (label, words, dashed = false) => ({ offset, size, label, words, tone: toneOf(true), dashed });
  const name = (of) => visible(tracks.name(field(of)));
  const where = `${formatBytes(field("size"))} at ${offset}`;
  switch (kind) {
    case "BlockMerged": {
      const side = field("side");
      const rest = field("size") < 0 ? "now the free end" : `now ${formatBytes(field("size"))}`;
      const joined = chip(side === "both" ? "joins both neighbours" : `joins the free block ${side === "next" ? "after" : "before"}`, rest, true);
      return [joined, { ...joined, offset: field("freed_offset"), size: field("freed_size"), label: "", words: "", dashed: false }];
    }
    case "BlockInserted":
      return [chip("a free block of its own", where, true)];
    case "BlockSplit":
      return [{ ...chip("split here", ""), offset: offset - field("taken"), size: field("taken"), cut: offset }];
    case "BlockRemoved":
      return [chip("used up: exact fit", where)];
    case "BlockChosen":
    case "TensorAssigned":
      return [chip(`${name("tensor")} goes here`, where)];
    case "ParentReused":
      return [chip(`${name("tensor")} in place`, `over ${name("parent")}`)];
    case "TensorFreed":
    case "Released":
      return [chip(`${name("tensor")} is freed`, where, true)];
    case "ExtraTailFreed":
      return [chip("the tail is freed", where, true)];
    default:
      return [];
  }
}
function paintChips(player, c, view, chips) {
  const { palette } = player;
  for (const chip of [...chips].sort((p, q) => Number(p.tone === "won") - Number(q.tone === "won"))) {
    const x = view.x(chip.offset);
    const w = Math.max(3, view.x(chip.offset + chip.size) - x);
    c.strokeStyle = chip.tone === "won" ? palette.accent : palette.soft;
    c.lineWidth = chip.tone === "won" ? 2 : 1.5;
    c.setLineDash(chip.dashed ? [4, 3] : []);
    c.strokeRect(x, view.top - 1, w, view.bar + 2);
    c.setLineDash([]);
    if (chip.cut === void 0) continue;
    const at = view.x(chip.cut);
    c.beginPath();
    c.moveTo(at, view.top - 5);
    c.lineTo(at, view.top + view.bar + 5);
    c.stroke();
  }
  paintWords(player, c, view, chips.filter((chip) => chip.label));
}
function paintWords({ palette, fonts }, c, view, chips) {
  const faces = [`600 11px ${fonts.ui}`, `11px ${fonts.ui}`];
  const measured = chips.map((chip) => {
    const lines = [cutEnd(chip.label, LONGEST), chip.words];
    const widths = lines.map((text, k) => (c.font = faces[k], c.measureText(text).width));
    const from = Math.max(view.x(chip.offset), view.left);
    const to = Math.min(view.x(chip.offset + chip.size), view.right);
    return { chip, lines, w: Math.max(...widths), centre: (from + Math.max(to, from)) / 2, x: 0 };
  });
  const { shown, left } = place2(measured, view);
  c.textBaseline = "middle";
  for (const { chip, lines, w, centre, x } of shown) {
    const won = chip.tone === "won";
    c.strokeStyle = won ? palette.accent : palette.edge;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(Math.min(Math.max(centre, x), x + w), view.y + 2 * CHIP_LINE);
    c.lineTo(Math.min(Math.max(centre, view.left), view.right), view.top - 2);
    c.stroke();
    c.fillStyle = won ? palette.accent : palette.ink;
    c.font = faces[0];
    c.fillText(lines[0], x, view.y + CHIP_LINE / 2);
    c.fillStyle = won ? palette.accent : palette.soft;
    c.font = faces[1];
    c.fillText(lines[1], x, view.y + CHIP_LINE * 1.5);
  }
  if (!left) return;
  c.fillStyle = palette.faint;
  c.font = faces[1];
  c.fillText(`+ ${left}`, view.left, view.y + CHIP_LINE / 2);
}
function place2(chips, view) {
  const shown = [...chips].sort((p, q) => p.centre - q.centre);
  const width = () => shown.reduce((sum, s) => sum + s.w + GAP4, 0) + (shown.length < chips.length ? 28 : 0);
  while (shown.length > 1 && width() > view.right - view.left) {
    const lost = chips.find((chip) => chip.chip.tone === "lost" && shown.includes(chip));
    if (!lost) break;
    shown.splice(shown.indexOf(lost), 1);
  }
  let from = view.left + (shown.length < chips.length ? 28 : 0);
  for (const s of shown) {
    s.x = Math.max(from, s.centre - s.w / 2);
    from = s.x + s.w + GAP4;
  }
  let to = view.right;
  for (const s of shown.toReversed()) {
    s.x = Math.min(s.x, to - s.w);
    to = s.x - GAP4;
  }
  return { shown, left: chips.length - shown.length };
}

// map_lanes.js
function readGroups(tracks) {
  const groups = /* @__PURE__ */ new Map();
  for (const name of ["chunk", "block"]) {
    const track = tracks.track(name);
    const [allocator, chunk, size, offset, owner] = ["allocator", "chunk", "size", "offset", "owner"].map((n) => track.col(n));
    for (let r = 0; r < track.length; r++) {
      let group = groups.get(allocator[r]);
      if (!group) groups.set(allocator[r], group = { allocator: allocator[r], lanes: [], from: track.a[r], to: 0, holds: false });
      let lane = group.lanes.find((l) => l.chunk === chunk[r]);
      if (!lane) {
        lane = { kind: "chunk", id: 0, allocator: allocator[r], chunk: chunk[r], extent: 1, label: "", usage: "" };
        group.lanes.push(lane);
      }
      group.from = Math.min(group.from, track.a[r]);
      if (name === "block" && owner[r] < 0) continue;
      lane.extent = Math.max(lane.extent, size[r] + (name === "block" ? offset[r] : 0));
      if (name === "chunk") continue;
      group.holds = true;
      group.to = Math.max(group.to, track.b[r]);
    }
  }
  for (const group of groups.values()) group.lanes.sort((p, q) => p.chunk - q.chunk);
  return [...groups.values()].sort((p, q) => p.from - q.from || p.allocator - q.allocator);
}
function readBuffers(tracks) {
  const track = tracks.track("buffer");
  const lanes = /* @__PURE__ */ new Map();
  for (let r = 0; r < track.length; r++) {
    const id = track.col("buffer")[r];
    const usage = track.str("usage", r);
    const extent = Math.max(1, track.col("size")[r], lanes.get(id)?.extent ?? 1);
    if (usage !== "compute") lanes.set(id, { kind: "buffer", id, allocator: -1, chunk: -1, extent, label: `${track.str("buft", r)} buffer`, usage });
  }
  const place3 = tracks.track("place");
  const [buffer, tensor] = [place3.col("buffer"), place3.col("tensor")];
  const first = /* @__PURE__ */ new Map();
  for (let r = place3.length - 1; r >= 0; r--) first.set(buffer[r], tensor[r]);
  for (const lane of lanes.values()) {
    if (tracks.name(first.get(lane.id) ?? -1).startsWith("cache_")) lane.label = "KV cache";
    if (lane.usage === "any") lane.usage = "";
  }
  return [...lanes.values()].filter((lane) => first.has(lane.id));
}
var Lanes = class {
  /** @param {import("./player.js").Player} player */
  constructor({ tracks, relations }) {
    this.tracks = tracks;
    this.relations = relations;
    this.groups = readGroups(tracks);
    this.buffers = readBuffers(tracks);
    const working = this.groups.some((g) => g.holds) ? this.groups.filter((g) => g.holds) : this.groups.slice(0, 1);
    this.places = [];
    for (const group of working) {
      const free = this.places.find((place3) => place3.groups[place3.groups.length - 1].to <= group.from);
      if (free) free.groups.push(group);
      else this.places.push({ rows: 0, groups: [group] });
    }
    for (const place3 of this.places) place3.rows = Math.max(...place3.groups.map((g) => g.lanes.length));
    this.rows = this.places.reduce((sum, place3) => sum + place3.rows, 0);
  }
  get none() {
    return !this.groups.length && !this.buffers.length;
  }
  /** Whether a line is kept for the allocators that do not work at a step. */
  get idle() {
    return this.groups.length > this.places.length;
  }
  /** The chunks shown at a step from top to bottom; null for a place with nothing in it. @param {number} step
   * @returns {(Lane | null)[]} */
  chunksAt(step) {
    return this.places.flatMap(({ rows, groups }) => {
      const group = groups.findLast((g) => g.from <= step) ?? groups[0];
      return Array.from({ length: rows }, (_, k) => group.lanes[k] ?? null);
    });
  }
  /** What the others do: nothing. @param {(Lane | null)[]} chunks those shown */
  idleWords(chunks) {
    const shown = new Set(chunks.map((lane) => lane?.allocator));
    const others = this.groups.filter((g) => !shown.has(g.allocator)).map((g) => g.allocator);
    const listed = others.length > 4 ? `${others.slice(0, 4).join(", ")} and ${others.length - 4} more` : others.join(", ");
    return `${others.length > 1 ? "allocators" : "allocator"} ${listed} ${others.length > 1 ? "hold" : "holds"} nothing now`;
  }
  /** The plan that an allocator carries out at a step. @param {number} allocator @param {number} step */
  planOf(allocator, step) {
    const { plans } = this.relations;
    const alone = this.groups.length < 2;
    return plans.findLast((plan) => plan.begin <= step && (plan.allocators.includes(allocator) || alone && !plan.allocators.length)) ?? null;
  }
  /** The type of the buffer that a chunk becomes, told by its size where there are several. @param {Lane} lane
   * @param {import("./plans.js").Plan | undefined} plan */
  typeOf({ allocator, chunk }, plan) {
    const track = this.tracks.track("buffer");
    const size = track.col("size");
    const rows = Array.from(size, (_, r) => r).filter((r) => track.str("usage", r) === "compute");
    const names = new Set(rows.map((r) => track.str("buft", r)));
    if (names.size === 1) return `${[...names][0]} `;
    const planned = plan?.chunks.find((entry) => entry.chunk === chunkNumber(plan, allocator, chunk));
    const found = new Set(rows.filter((r) => size[r] === planned?.whole).map((r) => track.str("buft", r)));
    return found.size === 1 ? `${[...found][0]} ` : "";
  }
  /** What a chunk is for, as far as the trace says. @param {Lane} lane @param {number} step */
  nameOf(lane, step) {
    const { plans } = this.relations;
    const plan = this.planOf(lane.allocator, step);
    const planned = plan ?? plans.find((p) => p.allocators.includes(lane.allocator));
    const group = this.groups.find((g) => g.allocator === lane.allocator);
    const many = this.groups.filter((g) => g.holds).length > 1;
    const type = this.typeOf(lane, planned);
    const whose = planned || !many ? `${type}compute buffer` : `allocator ${lane.allocator}`;
    const buffer = planned && planned.allocators.length > 1 && !type ? ` ${planned.allocators.indexOf(lane.allocator)}` : "";
    const graph = plan && plan.graph >= 0 ? `, planned for ${graphWords(this.tracks, plan.graph)}` : "";
    return `${whose}${buffer}${group && group.lanes.length > 1 ? `, chunk ${lane.chunk}` : ""}${graph}`;
  }
};

// map_motion.js
var LASTS_MS = 200;
var SEAM = 8;
var Motion = class {
  /** @param {Player} player @param {import("./dom.js").Surface} surface */
  constructor(player, surface) {
    this.player = player;
    this.surface = surface;
    this.canvas = el("canvas", "vg-canvas vg-motion", { "aria-hidden": "true" });
    surface.box.append(this.canvas);
    this.context = /** @type {CanvasRenderingContext2D} */
    this.canvas.getContext("2d");
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.frame = 0;
    this.step = -1;
  }
  /** The map shows a step: moves what its event moves, if it is the one after the last shown.
   * @param {number} step @param {LaneView[]} views */
  show(step, views) {
    const one = step === this.step + 1;
    this.step = step;
    this.end();
    if (!one || this.still.matches) return;
    for (const view of views) {
      const move = moveAt(this.player, step, view);
      if (move) return this.begin(move);
    }
  }
  /** @param {Move} move */
  begin(move) {
    const { canvas, context: c, surface } = this;
    const { width, height } = surface.canvas;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    canvas.style.width = surface.canvas.style.width;
    canvas.style.height = surface.canvas.style.height;
    canvas.dataset.moving = move.name;
    let begun = -1;
    const paint = (now) => {
      if (begun < 0) begun = now;
      const t = (now - begun) / LASTS_MS;
      if (t >= 1) return this.end();
      this.clear();
      c.setTransform(surface.ratio, 0, 0, surface.ratio, 0, 0);
      move.paint(c, t * (2 - t));
      this.frame = requestAnimationFrame(paint);
    };
    this.frame = requestAnimationFrame(paint);
  }
  clear() {
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }
  end() {
    if (!this.frame) return;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.clear();
    delete this.canvas.dataset.moving;
  }
  stop() {
    this.end();
  }
};
function moveAt(player, step, view) {
  const { tracks, palette } = player;
  const kind = tracks.kindOf(step).name;
  if (tracks.field(step, "allocator") !== view.allocator || tracks.field(step, "chunk") !== view.chunk) return null;
  const at = (offset2) => Math.min(Math.max(view.x(offset2), view.left), view.right);
  const fill2 = (c, colour2, from2, to2) => {
    c.fillStyle = colour2;
    c.fillRect(from2, view.top, Math.max(0, to2 - from2), view.bar);
  };
  const offset = tracks.field(step, "offset");
  if (kind === "BlockSplit") {
    const [from2, to2] = [at(offset - tracks.field(step, "taken")), at(offset)];
    return { name: "split", paint: (c, t) => fill2(c, palette.free, from2 + (to2 - from2) * t, to2) };
  }
  if (kind !== "BlockMerged" && kind !== "BlockInserted") return null;
  const freed = kind === "BlockMerged" ? [tracks.field(step, "freed_offset"), tracks.field(step, "freed_size")] : [offset, tracks.field(step, "size")];
  const [from, to] = [at(freed[0]), at(freed[0] + freed[1])];
  const owner = tracks.cause[step] >= 0 ? tracks.tensorOf(tracks.cause[step]) : -1;
  const colour = owner >= 0 ? palette.families[familyOf(tracks.tensorString("op", owner))] : palette.edge;
  const seams = kind === "BlockMerged" ? [from, to].filter((x) => x > at(offset) && x < view.right) : [];
  return {
    name: kind === "BlockMerged" ? "merge" : "free",
    paint: (c, t) => {
      c.globalAlpha = 1 - t;
      fill2(c, colour, from, to);
      c.globalAlpha = 1;
      for (const x of seams) fill2(c, palette.page, x - SEAM / 2 * (1 - t), x + SEAM / 2 * (1 - t));
    }
  };
}

// phase.js
var OPENERS = ["ReserveBegin", "AllocGraphBegin"];
var ENDS = ["ReserveEnd", "AllocGraphEnd"];
var TELLING = ["TensorAssigned", "ParentReused", "NodeBegin", "NodeSkipped"];
var PLACED = ["TensorAssigned", "ParentReused"];
function madeAt({ tracks, relations }, plan) {
  return relations.keep(`made ${plan.plan}`, () => {
    if (!OPENERS.includes(tracks.kindOf(plan.begin).name)) return plan.begin;
    const ends = new Set(ENDS.map((name) => tracks.kindNamed[name]?.index));
    const at = tracks.find(plan.begin, 1, (i) => i >= plan.end || ends.has(tracks.kind[i]));
    return at < 0 || at >= plan.end ? plan.begin : at;
  });
}
function phaseAt(player, plan, step) {
  if (step < plan.begin) return "before";
  const made = madeAt(player, plan);
  if (step <= made && made > plan.begin) return "planning";
  const { tracks, relations } = player;
  const computes = relations.keep("computes", () => {
    const kind = tracks.kindNamed.ComputeBegin?.index;
    const found = [];
    for (let i = 0; i < tracks.n; i++) if (tracks.kind[i] === kind) found.push(i);
    return found;
  });
  const last = computes[upperBound(computes, step) - 1] ?? -1;
  return last >= made ? "computed" : "planned";
}
function positionIn({ tracks, relations }, plan, step) {
  if (plan.graph < 0) return relations.positionAt(step);
  const positions = relations.keep(`positions ${plan.graph}`, () => {
    const ptr = tracks.columns.column("graph.ptr");
    const nodes = tracks.columns.column("graph.node").subarray(ptr[plan.graph], ptr[plan.graph + 1]);
    return new Map(Array.from(nodes, (t, k) => [t, k]));
  });
  return positions.get(relations.focus.node[step]) ?? -1;
}
function peakEvent(player, plan, step) {
  const { tracks } = player;
  const life = tracks.track("life");
  const at = life.a[plan.top];
  if (PLACED.includes(tracks.kindOf(at).name)) return at;
  return eventOf(player, plan, plan.peakPosition, step);
}
function placedBy({ tracks, relations }, plan) {
  const { plans } = relations;
  const places = tracks.track("life").a;
  const same = (other) => other.allocators.join() === plan.allocators.join();
  for (let k = plans.indexOf(plan); k >= 0; k--) {
    if (same(plans[k]) && PLACED.includes(tracks.kindOf(places[plans[k].top]).name)) return plans[k];
  }
  return null;
}
function eventOf(player, plan, position, step) {
  const { tracks } = player;
  const telling = new Set(TELLING.map((name) => tracks.kindNamed[name]?.index));
  const here = (i) => tracks.node[i] >= 0 && positionIn(player, plan, i) === position;
  const wanted = [(i) => telling.has(tracks.kind[i]) && here(i), here];
  const from = Math.max(plan.begin, Math.min(step, plan.end - 1));
  for (const fits of wanted) {
    if (fits(from)) return from;
    const back = tracks.find(from, -1, (i) => i < plan.begin || fits(i));
    const ahead = tracks.find(from, 1, (i) => i >= plan.end || fits(i));
    const found = [back, ahead].filter((i) => i >= plan.begin && i < plan.end);
    if (found.length) return found.reduce((best, i) => Math.abs(i - step) < Math.abs(best - step) ? i : best);
  }
  return -1;
}

// reserve.js
function reason({ tracks }, r) {
  const track = tracks.track("reserve");
  const why = track.str("why", r);
  const [had, needed, tensor] = ["had", "needed", "tensor"].map((n) => track.col(n)[r]);
  const name = tensor >= 0 ? visible(tracks.name(tensor)) : "a tensor";
  switch (why) {
    case "asked":
      return "";
    case "node count":
      return had ? `it has ${needed} nodes, the last plan ${had}` : "there was no plan yet";
    case "leaf count":
      return `it has ${needed} leafs, the last plan ${had}`;
    case "tensor size":
      return `${name} needs ${formatBytes(needed)}, planned were ${formatBytes(had)}`;
    case "backend":
      return `${name} is on backend ${needed} now, on ${had} before`;
    default:
      return visible(why);
  }
}
var ReserveLine = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.row = -2;
    this.now = false;
    this.element = el("button", "vg-reserve", { type: "button", title: "To where this was planned" });
    this.element.addEventListener("click", () => this.row >= 0 && player.go(player.tracks.track("reserve").a[this.row]));
    this.element.hidden = player.tracks.track("reserve").length === 0;
  }
  /** @param {number} step */
  draw(step) {
    if (this.element.hidden) return;
    const { tracks } = this.player;
    const track = tracks.track("reserve");
    const row = upperBound(track.a, step) - 1;
    const now = row >= 0 && step < track.b[row];
    if (row === this.row && now === this.now) return;
    Object.assign(this, { row, now });
    this.element.disabled = row < 0;
    this.element.classList.toggle("vg-marked", now);
    setText(this.element, row < 0 ? "No memory is planned yet in this recording." : this.words(row, now));
  }
  /** @param {number} row @param {boolean} now */
  words(row, now) {
    const { tracks } = this.player;
    const track = tracks.track("reserve");
    const buffer = track.col("anew")[row] ? "in a new buffer" : "the buffer that stands is large enough";
    const size = track.col("size")[row];
    const graph = track.col("graph")[row];
    const what = graph >= 0 ? `graph ${graph}` : "a graph";
    const first = track.str("why", row) === "asked" || track.str("why", row) === "node count" && !track.col("had")[row];
    const why = reason(this.player, row);
    return `${now ? "Being planned" : "Planned"}${first ? "" : " anew"} for ${what}${why && `, ${why}`}: ${formatBytes(size)}, ${buffer}`;
  }
};

// ticks.js
var UNITS2 = ["B", "KiB", "MiB", "GiB", "TiB"];
function countTicks(from, to, wanted) {
  const rough = (to - from) / wanted;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) ?? 10 * power);
  const out = [];
  for (let p = Math.ceil(from / step) * step; p < to; p += step) out.push(p);
  return out;
}
function byteTicks(from, to, wanted) {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max((to - from) / Math.max(1, wanted), 1))));
  let unit = 0;
  while (unit < UNITS2.length - 1 && step / 1024 ** (unit + 1) >= 0.5) unit++;
  const out = [];
  for (let value = Math.ceil(from / step) * step; value <= to; value += step) {
    const short2 = (unit > 0 || from === 0) && value >= 1024 ** (unit + 1) && value % 1024 ** (unit + 1) === 0;
    out.push({ value, label: value === 0 ? "0" : short2 ? formatBytes(value) : `${value / 1024 ** unit} ${UNITS2[unit]}` });
  }
  return out;
}

// live.js
var FINEST = 3;
var [CROWDED2, COARSE] = [0.5, 12];
function liveSets({ tracks, relations }) {
  return relations.keep("live", () => {
    const track = tracks.track("live");
    const [plan, position, bytes] = ["plan", "position", "bytes"].map((n) => track.col(n));
    const sets = /* @__PURE__ */ new Map();
    const lengths = /* @__PURE__ */ new Map();
    for (let r = 0; r < track.length; r++) lengths.set(plan[r], Math.max(lengths.get(plan[r]) ?? 0, position[r] + 1));
    for (const [number, n] of lengths) sets.set(number, { bytes: new Float64Array(n), bound: 0, n });
    for (let r = 0; r < track.length; r++) {
      const set = (
        /** @type {LiveSet} */
        sets.get(plan[r])
      );
      set.bytes[position[r]] = bytes[r];
      set.bound = Math.max(set.bound, bytes[r]);
    }
    return sets;
  });
}
function liveSet(player, plan) {
  return liveSets(player).get(plan) ?? null;
}
function paintBound({ palette }, c, set, { x, y }) {
  const at = Math.round(y(set.bound)) + 0.5;
  c.strokeStyle = palette.soft;
  c.lineWidth = 1.5;
  c.setLineDash([1.5, 3]);
  c.beginPath();
  c.moveTo(x(0), at);
  c.lineTo(x(set.n), at);
  c.stroke();
  c.setLineDash([]);
  c.lineWidth = 1;
}
function paintLiveSet({ palette }, c, set, { x, y }, position) {
  const last = Math.min(position, set.n - 1);
  if (last < 0) return;
  c.beginPath();
  c.moveTo(x(0), y(0));
  const each = x(1) - x(0);
  const stride = Math.max(1, Math.round((each < CROWDED2 ? COARSE : FINEST) / each));
  for (let p = 0; p <= last; p += stride) {
    let most = 0;
    for (let k = p; k < Math.min(p + stride, last + 1); k++) most = Math.max(most, set.bytes[k]);
    c.lineTo(x(p), y(most));
    c.lineTo(x(Math.min(p + stride, last + 1)), y(most));
  }
  c.lineJoin = "round";
  c.strokeStyle = palette.page;
  c.lineWidth = 3.5;
  c.stroke();
  c.strokeStyle = palette.ink;
  c.lineWidth = 1.5;
  c.stroke();
  c.lineWidth = 1;
}

// usage.js
function usageAt({ tracks }, step, allocators) {
  const sizes = /* @__PURE__ */ new Map();
  const chunk = tracks.track("chunk");
  const key = (track, r) => track.col("allocator")[r] * 16 + track.col("chunk")[r];
  chunk.each(step, (r) => {
    if (allocators.has(chunk.col("allocator")[r])) sizes.set(key(chunk, r), chunk.col("size")[r]);
  });
  const usage = { held: 0, free: 0, pieces: 0, largest: 0, padding: 0, size: 0 };
  for (const size2 of sizes.values()) usage.size += size2;
  const block = tracks.track("block");
  const [offset, size, owner] = ["offset", "size", "owner"].map((n) => block.col(n));
  const told = new Map([...sizes.keys()].map((k) => [k, []]));
  block.each(step, (r) => {
    if (!allocators.has(block.col("allocator")[r])) return;
    told.get(key(block, r))?.push({ offset: offset[r], size: size[r] });
    if (owner[r] >= 0) {
      usage.held += size[r];
      usage.padding += Math.max(0, size[r] - tracks.nbytes(owner[r]));
      return;
    }
    const end = sizes.get(key(block, r)) ?? 0;
    const there = Math.min(size[r] < 0 ? end : offset[r] + size[r], end) - offset[r];
    if (there <= 0) return;
    usage.free += there;
    usage.pieces++;
    usage.largest = Math.max(usage.largest, there);
  });
  for (const [k, blocks] of told) for (const [from, to] of unknownParts(blocks, sizes.get(k))) usage.held += to - from;
  return usage;
}
function unknownParts(blocks, size) {
  const parts = [];
  let end = 0;
  for (const block of [...blocks].sort((p, q) => p.offset - q.offset)) {
    if (block.offset > end && end < size) parts.push([end, Math.min(block.offset, size)]);
    end = block.size < 0 ? Infinity : Math.max(end, block.offset + block.size);
  }
  if (blocks.length && end < size) parts.push([end, size]);
  return parts;
}
function everUsed({ tracks, relations }, plan) {
  return relations.keep(`used ${plan.plan}`, () => {
    const block = tracks.track("block");
    const [allocator, chunk, offset, size, owner] = ["allocator", "chunk", "offset", "size", "owner"].map((n) => block.col(n));
    const held = /* @__PURE__ */ new Map();
    for (let r = upperBound(block.a, plan.begin - 1); r < block.length && block.a[r] < plan.end; r++) {
      if (owner[r] < 0 || !plan.allocators.includes(allocator[r])) continue;
      const key = allocator[r] * 16 + chunk[r];
      const list = held.get(key);
      if (list) list.push([offset[r], offset[r] + size[r]]);
      else held.set(key, [[offset[r], offset[r] + size[r]]]);
    }
    return [...held.values()].reduce((sum, list) => sum + covered(list), 0);
  });
}
function covered(list) {
  let [sum, end] = [0, 0];
  for (const [from, to] of list.sort((p, q) => p[0] - q[0])) {
    sum += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return sum;
}
var TILES = (
  /** @type {const} */
  [
    ["held", "By tensors at this step, padding included"],
    ["lower bound", "The most that lives at any one time: no plan of this graph takes less"],
    ["free in pieces", "Free within the chunk's size so far, and in how many pieces"],
    ["largest free", "The largest tensor that fits without growing the chunk. Far less than all that is free: the memory is fragmented"],
    ["padding", "What the tensors held do not need: each begins at a multiple of the alignment"],
    ["never used", "The part of the buffer that holds nothing at any time in this plan"]
  ]
);
var UsageLine = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.values = {};
    this.element = el("div", "vg-usage", { "aria-label": "How the memory is used" });
    for (const [name, title2] of TILES) {
      this.values[name] = el("div", "vg-dd", { role: "definition" });
      this.element.append(el("div", "", { title: title2 }, [el("div", "vg-dt", { role: "term", text: name }), this.values[name]]));
    }
  }
  /** @param {number} step @param {Set<number>} allocators those whose chunks are shown @returns {string} the same in words */
  draw(step, allocators) {
    const { player, values } = this;
    const plan = player.relations.planAt(step);
    const usage = usageAt(player, step, allocators);
    const bound = plan ? liveSet(player, plan.plan)?.bound ?? 0 : 0;
    const buffer = plan ? plan.buffers.size || plan.whole : 0;
    const never = plan ? Math.max(0, buffer - everUsed(player, plan)) : 0;
    setText(values.held, formatBytes(usage.held));
    setText(values["lower bound"], bound ? formatBytes(bound) : "–");
    setText(values["free in pieces"], usage.pieces ? `${formatBytes(usage.free)} in ${usage.pieces}` : "0 B");
    setText(values["largest free"], formatBytes(usage.largest));
    setText(values.padding, formatBytes(usage.padding));
    setText(values["never used"], buffer ? `${formatBytes(never)} (${percent3(never, buffer)})` : "–");
    const pieces2 = usage.pieces === 1 ? "1 piece" : `${usage.pieces} pieces`;
    return `${formatBytes(usage.held)} of ${formatBytes(usage.size)} are held, ${formatBytes(usage.free)} are free in ${pieces2}, the largest ${formatBytes(usage.largest)}.`;
  }
};
function percent3(part, whole2) {
  const share2 = 100 * part / whole2;
  return part > 0 && share2 < 1 ? "< 1 %" : `${Math.round(share2)} %`;
}

// map.js
var LEFT5 = 12;
var RIGHT4 = 12;
var MARK = 2 * CHIP_LINE + 9;
var AXIS3 = 16;
var HEAD = 18;
var GAP5 = 8;
var CHUNK_BAR = 38;
var BUFFER_BAR = 14;
var QUIET2 = 22;
var RESERVE = 24;
var [USAGE, USAGE_OF_TWO] = [38, 70];
var THINNEST = 2;
var [MOST3, MOST_OF_SEVERAL] = [200, 244];
var ENDLESS = 2 ** 50;
var QUIET_MS = 350;
var TICK_WIDTH = 110;
var MapPane = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "map";
    this.title = "Memory map";
    this.lanes = new Lanes(player);
    this.surface = new Surface("Memory at this step: chunks to scale, with tensors and free blocks", () => this.resized());
    this.note = el("div", "vg-empty", { text: "No memory was planned in this trace." });
    this.note.hidden = !this.lanes.none;
    this.scroller = el("div", "vg-stack vg-scroll", {}, [this.surface.box, this.note]);
    this.reserve = new ReserveLine(player);
    this.usage = new UsageLine(player);
    this.usage.element.hidden = !this.lanes.rows;
    this.motion = new Motion(player, this.surface);
    this.bufferBar = this.lanes.rows ? BUFFER_BAR : CHUNK_BAR;
    this.bars = new BufferBars(this, LEFT5, this.bufferBar);
    this.body = el("div", "vg-stack", {}, [this.reserve.element, this.scroller, this.usage.element]);
    this.fitter = new ResizeObserver((entries) => this.fit(entries[entries.length - 1].contentRect.height - (player.short ? 0 : this.line)));
    this.fitter.observe(this.body);
    this.high = this.lanes.none ? 0 : this.heightOf(CHUNK_BAR);
    this.surface.box.style.minHeight = `${this.high}px`;
    this.tools = [
      el("span", "vg-hint", { text: "bytes, to scale" }),
      el("div", "vg-group", {}, [
        iconButton("slower", "Zoom out", () => this.zoomBy(2)),
        iconButton("faster", "Zoom in on what is touched now", () => this.zoomBy(1 / 2)),
        iconButton("fit", "The whole of it", () => this.zoomTo(0, 1))
      ])
    ];
    this.blocks = [];
    this.views = [];
    this.fresh = false;
    this.least = 0;
    this.from = 0;
    this.to = 1;
    this.drawn = "";
    this.listen();
  }
  invalidate() {
    this.drawn = "";
  }
  /** What stands over and under the lanes. */
  get line() {
    const usage = this.player.tiny ? USAGE_OF_TWO : USAGE;
    return (this.reserve.element.hidden ? 0 : RESERVE) + (this.lanes.rows ? usage : 0);
  }
  get tall() {
    return Math.min(this.high || 40, this.lanes.rows > 1 ? MOST_OF_SEVERAL : MOST3) + this.line;
  }
  resized() {
    this.drawn = "";
    this.player.redraw(this);
  }
  /** All that the picture depends on, in one string: where it is the same, nothing is drawn. @param {number} step */
  contents(step) {
    const { tracks, relations, selected } = this.player;
    const acts = tracks.field(step, "chunk") !== void 0 || tracks.kindOf(step).name === "SearchBegin";
    const rows = ["block", "chunk", "place"].map((name) => tracks.track(name).epoch(step));
    return [acts ? step : -1, relations.planAt(step)?.plan, selected, relations.tensorAt(step), ...rows].join(" ");
  }
  /** @param {number} bar how high a chunk's bar is */
  heightOf(bar2) {
    const { rows, idle, buffers } = this.lanes;
    return rows * (HEAD + GAP5 + MARK + bar2 + AXIS3) + (idle ? QUIET2 : 0) + buffers.length * (HEAD + GAP5 + this.bufferBar) + 4;
  }
  /** No lane is cut in two where they do not all fit: those below are scrolled to. @param {number} room */
  fit(room) {
    const whole2 = this.whole(room);
    this.scroller.style.maxHeight = whole2 < room && whole2 < this.heightOf(CHUNK_BAR) ? `${whole2}px` : "none";
  }
  /** What of `room` the lanes fill that fit into it whole. @param {number} room */
  whole(room) {
    const { rows, buffers } = this.lanes;
    const each = HEAD + GAP5 + this.bufferBar;
    const high = this.heightOf(CHUNK_BAR);
    const over = Math.max(0, Math.ceil((high - room) / each));
    return over > buffers.length || over && !rows ? room : high - over * each;
  }
  /** What of `room` the pane fills. @param {number} room */
  wants(room) {
    const line = this.player.short ? 0 : this.line;
    return this.lanes.rows ? Math.min(room, this.whole(room - line) + line) : room;
  }
  chunkBar() {
    const spare = (this.surface.height - this.heightOf(CHUNK_BAR)) / (this.lanes.rows || 1);
    return CHUNK_BAR + Math.max(0, Math.min(80, spare));
  }
  /** @param {number} step */
  draw(step) {
    const { surface } = this;
    this.fresh = false;
    if (surface.width < 2 || this.lanes.none) return;
    const shown = this.contents(step);
    this.fresh = shown !== this.drawn;
    if (this.fresh) this.paint(step);
    this.drawn = shown;
    this.motion.show(step, this.views);
  }
  /** @param {number} step */
  write(step) {
    this.reserve.draw(step);
    if (!this.fresh || !this.lanes.rows) return;
    const chunks = this.lanes.chunksAt(step);
    const usage = this.usage.draw(step, new Set(chunks.flatMap((lane) => lane ? [lane.allocator] : [])));
    this.player.rest.after(this, QUIET_MS, () => this.say(step, usage));
  }
  /** @param {number} step */
  paint(step) {
    const { surface } = this;
    const { palette } = this.player;
    const c = surface.begin();
    c.fillStyle = palette.page;
    c.fillRect(0, 0, surface.width, surface.height);
    this.blocks = [];
    this.views = [];
    const bar2 = this.chunkBar();
    let y = 2;
    const chunks = this.lanes.chunksAt(step);
    for (const lane of chunks) {
      if (lane) this.drawChunk(c, step, lane, y, bar2);
      y += HEAD + MARK + bar2 + AXIS3 + GAP5;
    }
    if (this.lanes.idle) {
      c.font = `11px ${this.player.fonts.ui}`;
      c.fillStyle = palette.faint;
      c.fillText(this.lanes.idleWords(chunks), LEFT5, y + QUIET2 / 2 - 7);
      y += QUIET2;
    }
    for (const lane of this.lanes.buffers) {
      this.drawBuffer(c, step, lane, y);
      y += HEAD + this.bufferBar + GAP5;
    }
  }
  /** What the picture shows, for those who do not see it. @param {number} step @param {string} usage */
  say(step, usage) {
    const search = searchAt(this.player.tracks, step);
    const words = search ? `${visible(searchWords(this.player.tracks, search))}.` : "";
    this.surface.canvas.setAttribute("aria-label", `Memory at this step. ${usage} ${words}`.trim());
  }
  /** The bytes that a chunk's bar stands for. @param {Lane} lane @param {number} step */
  extentOf(lane, step) {
    return Math.max(this.least, this.reachOf(lane, step));
  }
  /** The bytes that the longest bar needs at a step. @param {number} step @returns {number} */
  reach(step) {
    return Math.max(0, ...this.lanes.chunksAt(step).map((lane) => lane ? this.reachOf(lane, step) : 0));
  }
  /** Draws bars for at least so many bytes, as another map beside this one does. @param {number} bytes */
  setLeast(bytes) {
    if (bytes === this.least) return;
    this.least = bytes;
    this.resized();
  }
  /** What the plan of a step reaches of a chunk, so the scale holds while the plan does. @param {Lane} lane @param {number} step */
  reachOf(lane, step) {
    const plan = this.lanes.planOf(lane.allocator, step);
    const chunk = plan?.chunks.find((k) => k.chunk === chunkNumber(plan, lane.allocator, lane.chunk));
    return Math.max(chunk ? chunk.size : lane.extent, 1);
  }
  /** Where a lane's bar ends: short of the right side where it is drawn to the scale of a larger one.
   * @param {Lane} lane @param {number} extent @param {number} step */
  endOf(lane, extent, step) {
    const own = this.reachOf(lane, step);
    return own < extent ? Math.max(LEFT5, Math.min(this.x(own, extent), this.surface.width - RIGHT4)) : this.surface.width - RIGHT4;
  }
  /** The x of an offset in a lane of that extent. @param {number} offset @param {number} extent */
  x(offset, extent) {
    const wide = this.surface.width - LEFT5 - RIGHT4;
    return LEFT5 + (offset / extent - this.from) / (this.to - this.from) * wide;
  }
  /** @param {CanvasRenderingContext2D} c @param {string} left @param {string} right @param {number} y */
  head(c, left, right, y) {
    const { palette, fonts } = this.player;
    c.textBaseline = "middle";
    c.font = `12px ${fonts.ui}`;
    c.fillStyle = palette.ink;
    const room = this.surface.width - LEFT5 - RIGHT4 - c.measureText(right).width - HEAD;
    const most = c.measureText(left).width;
    c.fillText(most > room ? cutEnd(left, Math.floor(left.length * room / most)) : left, LEFT5, y + HEAD / 2);
    c.fillStyle = palette.soft;
    c.textAlign = "right";
    c.fillText(right, this.surface.width - RIGHT4, y + HEAD / 2);
    c.textAlign = "left";
  }
  /** @param {CanvasRenderingContext2D} c @param {number} step @param {Lane} whole @param {number} y @param {number} bar */
  drawChunk(c, step, whole2, y, bar2) {
    const { tracks, palette } = this.player;
    const lane = { ...whole2, extent: this.extentOf(whole2, step) };
    const track = tracks.track("block");
    const [allocator, chunk, offset, size, owner] = ["allocator", "chunk", "offset", "size", "owner"].map((n) => track.col(n));
    const top = y + HEAD + MARK;
    const now = this.chunkSize(lane, step);
    let used = 0;
    c.save();
    c.beginPath();
    c.rect(LEFT5, y + HEAD, this.surface.width - LEFT5 - RIGHT4, MARK + bar2 + AXIS3);
    c.clip();
    c.fillStyle = palette.panel;
    const end = this.endOf(whole2, lane.extent, step);
    c.fillRect(LEFT5, top, end - LEFT5, bar2);
    const owned = [];
    track.each(step, (row) => {
      if (allocator[row] !== lane.allocator || chunk[row] !== lane.chunk) return;
      const endless = size[row] < 0 || offset[row] + size[row] > ENDLESS;
      const end2 = endless ? lane.extent : offset[row] + size[row];
      const x = this.x(offset[row], lane.extent);
      const w = Math.max(THINNEST, this.x(end2, lane.extent) - x);
      const block = { x, w, y: top, h: bar2, owner: owner[row], offset: offset[row], size: size[row], endless, allocator: lane.allocator, chunk: lane.chunk };
      this.blocks.push(block);
      if (owner[row] >= 0) {
        used += size[row];
        owned.push(block);
      } else if (!endless) {
        paintFree(this.player, c, block);
      }
    });
    for (const block of owned) paintOwned(this.player, c, block);
    for (const [from, to] of unknownParts(this.blocks.filter((b) => b.allocator === lane.allocator && b.chunk === lane.chunk), now)) {
      const x = this.x(from, lane.extent);
      const block = { x, w: Math.max(THINNEST, this.x(to, lane.extent) - x), y: top, h: bar2, owner: UNKNOWN2, offset: from, size: to - from, endless: false, allocator: lane.allocator, chunk: lane.chunk };
      this.blocks.push(block);
      paintUnknown(this.player, c, block);
      used += to - from;
    }
    this.drawExtent(c, lane, now, top, bar2, end);
    const view = this.viewOf(lane, y + HEAD, top, bar2);
    this.views.push(view);
    paintChips(this.player, c, view, chipsAt(this.player, step, view));
    this.drawAxis(c, lane, top + bar2);
    c.restore();
    const said = (now >= 0 || lane.chunk === 0) && this.lookedFor(lane, step);
    this.head(c, this.lanes.nameOf(lane, step), said || this.heldWords(lane, step, used, now), y);
  }
  /** How much of a chunk is taken, and at which point of the plan that is so. @param {Lane} lane @param {number} step
   * @param {number} used @param {number} now how large it is, -1 where it is not open */
  heldWords(lane, step, used, now) {
    if (now < 0) return "nothing planned yet";
    const plan = this.player.relations.planAt(step);
    const phase = plan?.allocators.includes(lane.allocator) ? phaseAt(this.player, plan, step) : "before";
    const of = `${formatBytes(used)} held of ${formatBytes(Math.max(used, now))}`;
    return phase === "planned" && plan && madeAt(this.player, plan) > plan.begin ? `when all is planned: ${of}` : of;
  }
  /** @param {Lane} lane @param {number} y @param {number} top @param {number} bar @returns {import("./map_chips.js").LaneView} */
  viewOf({ allocator, chunk, extent }, y, top, bar2) {
    const right = this.surface.width - RIGHT4;
    return { x: (offset) => this.x(offset, extent), left: LEFT5, right, y, top, bar: bar2, extent, allocator, chunk };
  }
  /** What is searched in an allocator's chunks at a step, if anything is. @param {Lane} lane @param {number} step */
  lookedFor(lane, step) {
    const { tracks } = this.player;
    const search = searchAt(tracks, step);
    if (!search || search.allocator !== lane.allocator || tracks.kindOf(step).name === "TensorAssigned") return "";
    return `looking for ${formatBytes(search.size)}${search.tensor >= 0 ? ` for ${visible(tracks.name(search.tensor))}` : ""}`;
  }
  /** How large a chunk is by now, -1 where it is not open. @param {Lane} lane @param {number} step */
  chunkSize(lane, step) {
    const track = this.player.tracks.track("chunk");
    const [allocator, chunk, size] = ["allocator", "chunk", "size"].map((n) => track.col(n));
    let now = -1;
    track.each(step, (row) => {
      if (allocator[row] === lane.allocator && chunk[row] === lane.chunk) now = size[row];
    });
    return now;
  }
  /** The chunk's size so far: what lies beyond is not asked for yet.
   * @param {CanvasRenderingContext2D} c @param {Lane} lane @param {number} now @param {number} top @param {number} bar
   * @param {number} end where the bar ends */
  drawExtent(c, lane, now, top, bar2, end) {
    const { palette } = this.player;
    const x = Math.round(this.x(now, lane.extent)) - 0.5;
    c.lineWidth = 1;
    if (now >= 0 && now < lane.extent) {
      c.strokeStyle = palette.soft;
      c.beginPath();
      c.moveTo(x, top - 3);
      c.lineTo(x, top + bar2 + 3);
      c.stroke();
    }
    c.strokeStyle = palette.line;
    c.strokeRect(LEFT5 + 0.5, top + 0.5, end - LEFT5 - 1, bar2 - 1);
  }
  /** @param {CanvasRenderingContext2D} c @param {Lane} lane @param {number} y */
  drawAxis(c, lane, y) {
    const { palette, fonts } = this.player;
    c.fillStyle = palette.faint;
    c.font = `10.5px ${fonts.ui}`;
    c.textBaseline = "middle";
    const [from, to] = [lane.extent * this.from, lane.extent * this.to];
    for (const { value, label } of byteTicks(from, to, Math.max(2, Math.floor(this.surface.width / TICK_WIDTH)))) {
      const x = this.x(value, lane.extent);
      const half = c.measureText(label).width / 2;
      c.textAlign = "center";
      c.fillText(label, Math.min(Math.max(x, LEFT5 + half), this.surface.width - RIGHT4 - half), y + AXIS3 / 2 + 2);
      c.fillRect(Math.round(x), y, 1, 3);
    }
    c.textAlign = "left";
  }
  /** @param {CanvasRenderingContext2D} c @param {number} step @param {Lane} lane @param {number} y */
  drawBuffer(c, step, lane, y) {
    const blocks = this.bars.paint(c, step, lane, y + HEAD);
    this.blocks.push(...blocks);
    this.head(c, `${lane.label}${lane.usage ? ` · ${lane.usage}` : ""}`, `${blocks.length} tensors in ${formatBytes(lane.extent)}`, y);
  }
  listen() {
    const { box } = this.surface;
    box.addEventListener("pointermove", (event) => this.hover(event));
    box.addEventListener("pointerleave", () => this.player.tip.hide());
    box.addEventListener("click", (event) => this.player.select(this.hit(event.offsetX, event.offsetY)?.owner ?? -1));
    box.addEventListener("dblclick", () => this.zoomTo(0, 1));
    box.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        const at = this.from + (event.offsetX - LEFT5) / (this.surface.width - LEFT5 - RIGHT4) * (this.to - this.from);
        const f = Math.exp(event.deltaY * 0.01);
        this.zoomTo(at - (at - this.from) * f, at + (this.to - at) * f);
      },
      { passive: false }
    );
  }
  /** About the block that the event of this step speaks of, else about the middle. @param {number} factor */
  zoomBy(factor) {
    const { tracks, step } = this.player;
    const lane = this.lanes.chunksAt(step)[0];
    const offset = tracks.field(step, "offset");
    const inChunk = lane && offset !== void 0 && tracks.field(step, "chunk") !== void 0;
    const said = inChunk ? (offset + Math.max(0, tracks.field(step, "size")) / 2) / this.extentOf(lane, step) : -1;
    const half = (this.to - this.from) * factor / 2;
    const centre = factor < 1 && said >= 0 && said <= 1 ? said : (this.from + this.to) / 2;
    const from = Math.min(Math.max(0, centre - half), Math.max(0, 1 - 2 * half));
    this.zoomTo(from, from + 2 * half);
  }
  /** @param {number} from @param {number} to */
  zoomTo(from, to) {
    this.from = Math.max(0, from);
    this.to = Math.min(1, Math.max(to, this.from + 1e-6));
    this.resized();
  }
  /** @param {number} x @param {number} y @returns {Block | undefined} */
  hit(x, y) {
    const near = this.blocks.filter((b) => y >= b.y && y <= b.y + b.h && x >= b.x - 2 && x <= b.x + b.w + 2);
    return near.find((b) => x >= b.x && x <= b.x + b.w && b.owner >= 0) ?? near.find((b) => b.owner >= 0) ?? near[0];
  }
  /** @param {PointerEvent} event */
  hover(event) {
    const block = this.hit(event.offsetX, event.offsetY);
    if (!block) return this.player.tip.hide();
    const { tip, tracks, step } = this.player;
    const where = (
      /** @type {[string, string][]} */
      [
        ["offset", String(block.offset)],
        ["size", block.endless ? "to the end of the address space" : formatBytes(block.size)]
      ]
    );
    if (block.owner === UNKNOWN2) return tip.show(this.surface.box, event.offsetX, event.offsetY, UNKNOWN_WORDS, where);
    if (block.owner < 0) {
      const search = searchAt(tracks, step);
      const looked = search?.candidates.find((c) => c.chunk === block.chunk && c.offset === block.offset && search.allocator === block.allocator);
      if (looked) where.push(["in this search", looked.words]);
      return tip.show(this.surface.box, event.offsetX, event.offsetY, "free block", where);
    }
    const head = visible(tracks.name(block.owner));
    tip.show(this.surface.box, event.offsetX, event.offsetY, head, [...where, ...lifeOf(this.player, block.owner, step)]);
  }
  stop() {
    this.motion.stop();
    this.fitter.disconnect();
    this.surface.stop();
  }
};
function lifeOf(player, t, step) {
  const { tracks, relations } = player;
  const row = relations.lifeRow(t, step);
  if (row < 0) return [];
  const life = tracks.track("life");
  const cell2 = (name) => life.col(name)[row];
  const pairs = [["lives", `position ${cell2("first")} to ${cell2("last")} in the execution order`]];
  pairs.push(["freed by", cell2("freed_by") >= 0 ? visible(tracks.name(cell2("freed_by"))) : "nobody: kept"]);
  if (cell2("reuses") >= 0) pairs.push(["reuses", visible(tracks.name(cell2("reuses")))]);
  const plan = relations.planAt(step);
  const heir = plan && [...plan.rows].find((r) => life.col("reuses")[r] === life.col("tensor")[row]);
  if (heir !== null && heir !== void 0) pairs.push(["reused by", visible(tracks.name(life.col("tensor")[heir]))]);
  return pairs;
}

// notice.js
var SHOWN_MS2 = 2600;
var Notice = class {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.element = el("div", "vg-notice", { role: "status", "aria-live": "polite" });
    this.timer = 0;
    root.append(this.element);
  }
  /** @param {string} text */
  say(text) {
    this.element.textContent = text;
    this.element.classList.add("vg-shown");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.element.classList.remove("vg-shown"), SHOWN_MS2);
  }
  /** What was said is of a step that is left. */
  hide() {
    clearTimeout(this.timer);
    this.element.classList.remove("vg-shown");
  }
  stop() {
    clearTimeout(this.timer);
  }
};

// now.js
var [HINT_MS, QUIET_MS2] = [100, 350];
function splitGgml(text) {
  const at = text.lastIndexOf(", ");
  return at < 0 ? [text || "nowhere: ours alone", ""] : [text.slice(0, at), text.slice(at + 2)];
}
function splitOurs(text) {
  const at = text.indexOf(": ");
  return at < 0 ? [text, ""] : [text.slice(at + 2), text.slice(0, at)];
}
var Place = class {
  /** @param {string} word */
  constructor(word) {
    this.whole = "";
    this.name = el("span", "vg-mono");
    this.directory = el("span", "vg-directory");
    this.file = el("span");
    const path = el("span", "vg-mono vg-soft vg-path", {}, [document.createTextNode(" "), this.directory, this.file]);
    this.element = el("div", "vg-place", {}, [el("span", "vg-soft", { text: `${word} ` }), this.name, path]);
  }
  /** @param {string} name @param {string} path */
  show(name, path) {
    const cut = path.lastIndexOf("/") + 1;
    setText(this.name, name);
    setText(this.directory, path.slice(0, cut));
    setText(this.file, path.slice(cut));
    this.whole = path ? `${name}, ${path}` : name;
  }
  hint() {
    this.element.title = this.whole;
  }
};
var Now = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.dot = el("span", "vg-dot");
    this.kind = el("span", "vg-kind");
    this.line = el("p", "vg-sentence");
    this.ggml = new Place("in ggml");
    this.ours = new Place("in vizggml");
    this.why = el("button", "vg-button vg-text-button", { type: "button", text: "Why?" });
    this.why.addEventListener("click", () => player.goToCause());
    this.back = el("button", "vg-button vg-text-button", { type: "button", text: "Back", title: "To where you were (b)" });
    this.back.addEventListener("click", () => player.goBack());
    this.live = el("div", "vg-unseen", { "aria-live": "polite", "aria-atomic": "true" });
    this.element = el("div", "vg-nowbar", {}, [
      el("div", "vg-nowline", {}, [this.line, el("div", "vg-group", {}, [this.why, this.back])]),
      el("div", "vg-where", {}, [
        el("span", "vg-key", {}, [this.dot, this.kind]),
        this.ggml.element,
        this.ours.element
      ]),
      this.live
    ]);
  }
  /** @param {number} step */
  draw(step) {
    const { tracks } = this.player;
    const kind = tracks.kindOf(step);
    const text = visible(sentence(tracks, step));
    setText(this.line, text);
    setText(this.kind, kind.name);
    this.ggml.show(...splitGgml(kind.ggml));
    this.ours.show(...splitOurs(kind.ours));
    const dot = `vg-dot vg-area-${areaGroup(kind.area)}`;
    if (this.dot.className !== dot) this.dot.className = dot;
    const cause = tracks.cause[step];
    setAble(this.why, cause >= 0);
    setAble(this.back, this.player.history.length > 0);
    this.player.rest.after(this, HINT_MS, () => this.hint(text, cause));
    this.player.rest.after(this.live, QUIET_MS2, () => setText(this.live, text));
  }
  /** What is said under the pointer. @param {string} text @param {number} cause */
  hint(text, cause) {
    this.line.title = text;
    this.why.title = cause >= 0 ? `To its cause (w): ${visible(sentence(this.player.tracks, cause))}` : "Nothing in this trace caused this event";
    for (const place3 of [this.ggml, this.ours]) place3.hint();
  }
};
function setAble(button, able) {
  if (button.disabled === able) button.disabled = !able;
}

// rest.js
var Rest = class {
  constructor() {
    this.waiting = /* @__PURE__ */ new Map();
    this.timer = 0;
  }
  /** Calls `act` once `name`, mostly who asks, has not asked again for `ms`. @param {unknown} name @param {number} ms @param {() => void} act */
  after(name, ms, act) {
    this.waiting.set(name, { due: performance.now() + ms, act });
    if (!this.timer) this.timer = setTimeout(() => this.look(), ms);
  }
  look() {
    this.timer = 0;
    const now = performance.now();
    const ready = [...this.waiting].filter(([, { due }]) => due <= now);
    for (const [name] of ready) this.waiting.delete(name);
    for (const [, { act }] of ready) act();
    const next = Math.min(...[...this.waiting.values()].map(({ due }) => due));
    if (Number.isFinite(next) && !this.timer) this.timer = setTimeout(() => this.look(), Math.max(1, next - performance.now()));
  }
  stop() {
    clearTimeout(this.timer);
    this.waiting.clear();
  }
};

// block.css
var block_default = '.vg-block { flex: 1 1 auto; min-height: 0; overflow-x: hidden; border-top: 1px solid var(--vg-line); font-size: 12px; }\n.vg-block-in { padding: 8px 12px 14px; max-width: 940px; }\n.vg-block-head { display: flex; align-items: center; gap: 8px; min-height: 24px; }\n.vg-block-head .vg-links { flex: 0 0 auto; max-width: 60%; font-weight: 600; }\n.vg-block-head p { flex: 1 1 auto; margin: 0; min-width: 0; color: var(--vg-soft); white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n.vg-block h4 { margin: 10px 0 4px; font-size: 11px; font-weight: 600; line-height: 16px; color: var(--vg-soft); }\n.vg-block-cells { display: grid; grid-template-columns: repeat(32, minmax(0, 1fr)); gap: 1px; font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 10.5px; line-height: 18px; text-align: center; }\n.vg-block-cells span { overflow: hidden; border-radius: 2px; cursor: default; }\n.vg-block-bytes span { color: #10151d; }\n.vg-block-fields { display: grid; grid-template-columns: 10px 56px 92px minmax(0, 1.2fr) minmax(0, 1fr); gap: 2px 10px; align-items: baseline; line-height: 18px; font-variant-numeric: tabular-nums; }\n.vg-block-fields i { width: 10px; height: 10px; border-radius: 2px; align-self: start; margin-top: 4px; }\n.vg-block-fields span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }\n.vg-block-said { margin: 4px 0 0; line-height: 18px; }\n.vg-block-fields .vg-block-meaning { white-space: normal; }\n.vg-block-narrow .vg-block-cells { grid-template-columns: repeat(16, minmax(0, 1fr)); }\n.vg-block-narrow .vg-block-fields { grid-template-columns: 10px 58px 74px minmax(0, 1fr); }\n.vg-block-narrow .vg-block-says { display: none; }\n';

// compare.css
var compare_default = '/* two traces side by side */\n.vg-compare { box-sizing: border-box; display: flex; flex-direction: column; width: 100%; border: 1px solid var(--vg-line); border-radius: 6px; overflow: hidden; background: var(--vg-page); color: var(--vg-ink); font: 13px/1.4 var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif); -webkit-font-smoothing: antialiased; text-align: left; }\n.vg-compare *, .vg-compare *::before { box-sizing: border-box; }\n.vg-compare [hidden] { display: none !important; }\n.vg-compare button, .vg-compare input, .vg-compare select { font: inherit; color: inherit; margin: 0; }\n.vg-compare :focus-visible { outline: 2px solid var(--vg-accent); outline-offset: -2px; }\n.vg-cmp-fill { height: 100vh; border: 0; border-radius: 0; overflow-y: auto; }\n.vg-cmp-head { flex: none; padding: 20px 24px 16px; }\n.vg-cmp-claim { margin: 0; font-weight: 400; font-size: 22px; line-height: 1.3; letter-spacing: -0.01em; color: var(--vg-ink); }\n.vg-cmp-set { display: block; font-size: 13px; line-height: 20px; letter-spacing: 0; color: var(--vg-soft); }\n.vg-cmp-did { display: block; font-weight: 600; }\n.vg-cmp-did::first-letter { text-transform: uppercase; }\n.vg-cmp-figures { display: flex; flex-wrap: wrap; gap: 12px 36px; margin: 16px 0 0; }\n.vg-cmp-figures:empty { display: none; }\n.vg-cmp-figure { min-width: 96px; }\n.vg-cmp-figure .vg-dt { font-size: 11.5px; font-weight: 400; color: var(--vg-soft); }\n.vg-cmp-figure .vg-dd { margin: 0; font-variant-numeric: tabular-nums; }\n.vg-cmp-values { font-size: 16px; line-height: 24px; white-space: nowrap; }\n.vg-cmp-values b { font-weight: 600; }\n.vg-cmp-was { color: var(--vg-soft); }\n.vg-cmp-arrow { margin: 0 6px; color: var(--vg-faint); }\n.vg-cmp-by { font-size: 12px; color: var(--vg-soft); }\n.vg-cmp-same .vg-cmp-values b { font-weight: 400; color: var(--vg-soft); }\n.vg-cmp-same .vg-cmp-by { color: var(--vg-faint); }\n.vg-cmp-said { margin: 14px 0 0; padding: 0; list-style: none; max-width: 980px; font-size: 12.5px; line-height: 19px; color: var(--vg-soft); }\n.vg-cmp-said:empty { display: none; }\n\n.vg-cmp-table { flex: none; position: relative; display: flex; flex-direction: column; height: 236px; border-top: 1px solid var(--vg-line); }\n.vg-cmp-tools { flex: none; display: flex; align-items: center; gap: 8px 12px; padding: 6px 12px 6px 24px; }\n.vg-cmp-tools .vg-search { flex: 0 1 150px; width: auto; min-width: 90px; }\n.vg-cmp-tools .vg-select { flex: none; }\n.vg-cmp-chips { flex: 1; display: flex; flex-wrap: wrap; gap: 4px; min-width: 0; }\n.vg-cmp-chip { display: inline-flex; align-items: center; gap: 5px; height: 24px; padding: 0 8px; border: 1px solid transparent; border-radius: 12px !important; background: none; font-size: 12px !important; color: var(--vg-soft) !important; white-space: nowrap; cursor: pointer; }\n.vg-cmp-chip:hover { background: var(--vg-panel); color: var(--vg-ink) !important; }\n.vg-cmp-chip[aria-pressed="true"] { color: var(--vg-ink) !important; background: var(--vg-panel); border-color: var(--vg-edge); }\n.vg-cmp-n { font-variant-numeric: tabular-nums; color: var(--vg-faint); }\n.vg-cmp-sign { display: inline-block; width: 12px; text-align: center; font-size: 11px; color: var(--vg-soft); }\n.vg-cmp-sign.vg-cmp-removed { color: var(--vg-bad); font-weight: 700; }\n.vg-cmp-sign.vg-cmp-added { color: var(--vg-good); font-weight: 700; }\n.vg-cmp-sign.vg-cmp-grown, .vg-cmp-sign.vg-cmp-shrunk, .vg-cmp-sign.vg-cmp-changed { color: var(--vg-source); }\n.vg-compare { --vg-columns: minmax(110px, 0.8fr) minmax(120px, 1.2fr) minmax(90px, 0.8fr) minmax(72px, 0.5fr) minmax(120px, 2.4fr) 84px; }\n.vg-cmp-columns, .vg-cmp-row { padding: 0 24px; }\n.vg-cmp-row { cursor: pointer; line-height: 24px; }\n.vg-cmp-kind .vg-cmp-sign { margin-right: 5px; }\n.vg-cmp-list .vg-now { background: var(--vg-accentWash); box-shadow: inset 3px 0 var(--vg-accent); }\n.vg-cmp-list { border-top: 0; }\n.vg-cmp-table .vg-empty { flex: none; margin: 0; padding: 8px 24px; }\n\n.vg-cmp-bar { flex: none; display: flex; align-items: center; gap: 12px; height: 38px; padding: 0 24px; border-top: 1px solid var(--vg-line); background: var(--vg-panel); }\n.vg-cmp-link[aria-pressed="true"] { border-color: transparent; }\n.vg-cmp-link { flex: none; min-width: 76px; }\n.vg-cmp-status { flex: 1; margin: 0; font-size: 12.5px; color: var(--vg-soft); white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n.vg-cmp-sides { flex: 1 0 auto; display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1px; background: var(--vg-line); border-top: 1px solid var(--vg-line); }\n.vg-cmp-side { display: flex; flex-direction: column; min-width: 0; background: var(--vg-page); }\n.vg-cmp-label { display: flex; align-items: baseline; gap: 8px; height: 34px; margin: 0; padding: 9px 12px 0; font-size: 13px; font-weight: 400; line-height: 18px; white-space: nowrap; overflow: hidden; }\n.vg-cmp-label b { font-weight: 600; }\n.vg-cmp-label .vg-soft { font-size: 12px; overflow: hidden; text-overflow: ellipsis; }\n.vg-cmp-alone { margin-left: auto; font-size: 11.5px; color: var(--vg-source); }\n.vg-cmp-mark { padding: 0 8px; border-radius: 9px; background: var(--vg-accentWash); color: var(--vg-accent); font-size: 11.5px; }\n.vg-cmp-strip { position: relative; height: 8px; margin: 0 12px 8px; cursor: pointer; }\n.vg-cmp-strip-canvas { display: block; width: 100%; height: 8px; }\n.vg-cmp-pin { position: absolute; top: -2px; left: -1px; width: 2px; height: 12px; border-radius: 1px; background: var(--vg-accent); pointer-events: none; }\n.vg-cmp-host { flex: 1 0 auto; height: var(--vg-cmp-height, 1040px); }\n.vg-cmp-host > .vg-player { border-width: 1px 0 0; border-radius: 0; }\n.vg-cmp-narrow { --vg-columns: minmax(100px, 0.8fr) minmax(100px, 1fr) minmax(76px, 0.5fr) minmax(150px, 2.4fr) 78px; }\n.vg-cmp-narrow .vg-cmp-op { display: none; }\n.vg-cmp-narrow .vg-cmp-table { height: 282px; }\n.vg-cmp-narrow .vg-cmp-sides { grid-template-columns: minmax(0, 1fr); }\n.vg-cmp-narrow .vg-cmp-head { padding: 16px 14px 12px; }\n.vg-cmp-narrow .vg-cmp-claim { font-size: 19px; }\n.vg-cmp-narrow .vg-cmp-figures { gap: 10px 26px; }\n.vg-cmp-narrow .vg-cmp-tools { flex-wrap: wrap; padding: 6px 14px; }\n.vg-cmp-narrow .vg-cmp-chips { order: 3; flex-basis: 100%; }\n.vg-cmp-narrow .vg-cmp-columns, .vg-cmp-narrow .vg-cmp-row, .vg-cmp-narrow .vg-cmp-bar { padding: 0 14px; }\n';

// details.css
var details_default = "/* details that are drawings */\n.vg-detail .vg-stack { min-width: 0; }\n.vg-saying { flex: none; margin: 0; height: 24px; line-height: 24px; padding: 0 12px; font-size: 12px; color: var(--vg-soft); white-space: nowrap; overflow: hidden; text-overflow: ellipsis; contain: strict; border-top: 1px solid var(--vg-line); font-variant-numeric: tabular-nums; }\n.vg-saying strong { font-weight: 600; color: var(--vg-ink); margin-right: 10px; }\n.vg-saying strong.vg-wrong { color: var(--vg-bad); }\n.vg-detail .vg-canvas:focus-visible { outline-offset: -2px; }\n.vg-detail .vg-grid-head { border-top: 0; }\n.vg-pane .vg-tools > .vg-text-button { flex: none; white-space: nowrap; height: 24px; }\n.vg-pane-tables .vg-tabs { flex: 0 1 auto; }\n.vg-pane-tables .vg-tools > .vg-tools { flex: none; }\n.vg-pane-tables .vg-tools > .vg-tools .vg-hint { display: none; }\n.vg-pane-tables .vg-tools > .vg-tools .vg-select { max-width: 128px; }\n.vg-pane-tables .vg-tools > .vg-tools .vg-text-button:disabled { display: none; }\n.vg-grid-head > span { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n\n.vg-pane-tables .vg-tools > .vg-tabs { gap: 0; padding-right: 12px; mask-image: linear-gradient(to right, #000 calc(100% - 12px), transparent); }\n.vg-pane-tables .vg-tools > .vg-tabs .vg-tab { padding: 0 6px; }\n";

// graph.css
var graph_default = '.vg-nearer { position: absolute; left: 8px; bottom: 8px; display: flex; flex-direction: column; border: 1px solid var(--vg-line); border-radius: 5px; background: var(--vg-raised); overflow: hidden; }\n.vg-nearer .vg-button { border-radius: 0; }\n.vg-nearer .vg-button + .vg-button { border-top: 1px solid var(--vg-line); }\n/* over a low picture they lie flat, under what is drawn */\n.vg-low .vg-nearer { flex-direction: row; }\n.vg-low .vg-nearer .vg-button + .vg-button { border-top: 0; border-left: 1px solid var(--vg-line); }\n.vg-pane-graph .vg-tools { flex-wrap: nowrap; }\n.vg-pane-graph .vg-select { flex: 0 1 auto; min-width: 92px; }\n.vg-pane-graph .vg-select:not(.vg-filter) { flex-shrink: 0; max-width: 150px; }\n.vg-tiny .vg-pane-graph .vg-tools { gap: 5px; }\n.vg-tiny:not(.vg-mini) .vg-pane-graph .vg-search-box { min-width: 72px; flex-shrink: 1; }\n.vg-filter.vg-on { color: var(--vg-accent); border-color: var(--vg-accent); background: var(--vg-accentWash); }\n.vg-found { position: absolute; right: 7px; top: 1px; line-height: 22px; font-size: 11px; color: var(--vg-soft); pointer-events: none; font-variant-numeric: tabular-nums; }\n.vg-found:empty { display: none; }\n.vg-pane-graph .vg-search-box { flex: 0 4 220px; }\n.vg-search-box:has(.vg-found:not(:empty)) .vg-search { padding-right: 66px; }\n.vg-search-box input[type="search"]::-webkit-search-cancel-button { display: none; }\n.vg-pane-graph .vg-mark-legend { display: none; }\n.vg-pane-graph .vg-marking .vg-mark-legend { display: flex; padding: 0; flex: 1 0 100%; flex-wrap: wrap; gap: 2px 10px; }\n.vg-mark { flex: none; width: 14px; height: 9px; border-radius: 2px; }\n.vg-pane-graph .vg-pane-head { z-index: 3; }\n.vg-pane-graph .vg-results { left: 0; right: auto; width: min(440px, 90vw); }\n';

// inspector.css
var inspector_default = ".vg-inspector { flex: 1 1 auto; min-height: 0; overflow-x: hidden; border-top: 1px solid var(--vg-line); contain: strict; font-size: 12px; }\n.vg-inspector-head { padding: 0 12px 6px; }\n.vg-inspector-title { position: sticky; z-index: 2; top: 0; flex: none; padding: 5px 12px 3px; background: var(--vg-page); display: flex; align-items: center; gap: 4px; min-width: 0; }\n.vg-inspector-name { margin: 0; font-size: 14px; font-weight: 600; line-height: 22px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n.vg-inspector-state { contain: size layout; display: flex; align-items: center; gap: 10px; height: 20px; white-space: nowrap; overflow: hidden; }\n.vg-status-dot { width: 8px; height: 8px; border-radius: 2px; box-shadow: inset 0 0 0 1px color-mix(in srgb, var(--vg-ink) 25%, transparent); }\n.vg-inspector-line { contain: size layout; margin: 2px 0 0; height: 34px; line-height: 17px; overflow: hidden; display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow-wrap: anywhere; }\n.vg-inspector-sides, .vg-inspector-side { display: contents; }\n.vg-inspector-body { display: flex; flex-direction: column; }\n.vg-part { padding: 4px 12px 10px; min-width: 0; }\n.vg-part h4 { margin: 0 0 4px; padding: 6px 0 0; border-top: 1px solid var(--vg-line); font-size: 11px; font-weight: 600; line-height: 16px; color: var(--vg-soft); }\n.vg-part-facts { order: 1; }\n.vg-part-strides { order: 2; }\n.vg-part-chain { order: 3; }\n.vg-part-life { order: 4; }\n.vg-planned .vg-part-life { order: 1; }\n.vg-part-kin { order: 5; }\n.vg-part-values { order: 6; }\n.vg-facts { display: grid; grid-template-columns: 92px minmax(0, 1fr); gap: 0 10px; margin: 0; font-variant-numeric: tabular-nums; }\n.vg-facts .vg-dt { color: var(--vg-soft); font-weight: 400; line-height: 22px; white-space: nowrap; }\n.vg-facts .vg-dt[title] { text-decoration: underline dotted var(--vg-edge) 1px; text-underline-offset: 3px; cursor: help; }\n.vg-facts .vg-dd { contain: size layout; display: flex; align-items: center; gap: 4px; margin: 0; min-width: 0; height: 22px; line-height: 22px; }\n.vg-facts .vg-dd.vg-long { height: 44px; align-items: flex-start; }\n.vg-links { display: flex; flex-wrap: wrap; column-gap: 6px; min-width: 0; max-height: 44px; overflow: clip; }\n.vg-facts .vg-copy { margin-left: -2px; }\n.vg-links > * { min-width: 0; max-width: 100%; overflow: clip; text-overflow: ellipsis; white-space: nowrap; }\n.vg-facts .vg-dd:not(.vg-long) .vg-links { flex-wrap: nowrap; }\n.vg-facts .vg-dd.vg-long .vg-links { overflow: hidden auto; scrollbar-width: thin; }\n.vg-part-life .vg-links > span { flex: none; max-width: 100%; }\n.vg-player .vg-link { padding: 0; border: 0; background: none; color: var(--vg-source); cursor: pointer; font-size: 12px; text-align: left; line-height: inherit; }\n.vg-player .vg-link:hover { text-decoration: underline; text-underline-offset: 2px; }\n.vg-player .vg-link:focus-visible { outline-offset: 0; border-radius: 2px; }\n.vg-copy { flex: none; min-width: 22px; height: 20px; color: var(--vg-faint); }\n.vg-copy .vg-icon { width: 13px; height: 13px; }\n.vg-player .vg-plot { flex: none; min-height: 0; margin: 0 -12px; touch-action: pan-y; cursor: crosshair; }\n.vg-chips { display: flex; flex-wrap: wrap; gap: 4px 10px; min-height: 36px; padding-top: 4px; align-content: flex-start; }\n.vg-chip { font-size: 11px; line-height: 16px; white-space: nowrap; cursor: help; }\n.vg-chip.vg-no { color: var(--vg-faint); }\n.vg-values-said { contain: size layout; margin: 0; height: 36px; line-height: 18px; color: var(--vg-soft); }\n.vg-values-said .vg-links > * { white-space: normal; line-height: 18px; }\n.vg-figures { display: grid; grid-template-columns: repeat(5, minmax(0, auto)); justify-content: space-between; gap: 2px 12px; margin: 2px 0 8px; }\n.vg-figures .vg-dt { color: var(--vg-soft); font-weight: 400; font-size: 11px; white-space: nowrap; }\n.vg-figures .vg-dd { margin: 0; font-size: 12px; }\n.vg-values.vg-without { visibility: hidden; }\n.vg-two .vg-inspector-sides { display: flex; align-items: flex-start; }\n.vg-two .vg-inspector-side { display: flex; flex-direction: column; flex: 1 1 0; min-width: 0; }\n.vg-two .vg-inspector-side { max-width: 620px; }\n";

// kv.css
var kv_default = "/* the KV cache */\n.vg-kv { flex-direction: row; }\n.vg-kv.vg-low { flex-direction: column; }\n.vg-kv-facts { flex: 0 0 212px; display: flex; flex-direction: column; gap: 12px; padding: 10px 14px; border-left: 1px solid var(--vg-line); border-top: 1px solid var(--vg-line); overflow-y: auto; font-size: 12px; scrollbar-width: thin; }\n.vg-kv-facts h3 { margin: 0 0 3px; font-size: 11px; font-weight: 400; color: var(--vg-soft); }\n.vg-kv-facts p { margin: 0; }\n.vg-kv-facts .vg-pairs { grid-template-columns: 16px auto 1fr; }\n.vg-kv-facts .vg-end { text-align: right; }\n.vg-heads { display: block; width: 100%; height: 46px; }\n.vg-low .vg-kv-facts { display: none; }\n.vg-kv-foot { display: none; flex: none; height: 22px; line-height: 22px; padding: 0 12px; font-size: 11.5px; color: var(--vg-soft); white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n.vg-low .vg-kv-foot { display: block; }\n.vg-kv-foot .vg-key { margin-right: 12px; }\n.vg-kv-keys { display: flex; flex-wrap: wrap; gap: 2px 12px; }\n.vg-kv-pair > .vg-kv { flex: 1 1 0; min-height: 0; }\n.vg-kv-pair > .vg-kv + .vg-kv { border-top: 1px solid var(--vg-line); }\n";

// map.css
var map_default = ".vg-motion { pointer-events: none; }\n.vg-usage { flex: none; display: grid; grid-template-columns: 0.85fr 0.95fr 1.25fr 0.95fr 0.75fr 1.5fr; grid-auto-rows: 32px; height: 38px; contain: strict; margin: 0; padding: 0 12px 6px; gap: 0 10px; }\n.vg-usage > div { min-width: 0; cursor: help; }\n.vg-usage .vg-dt, .vg-usage .vg-dd { margin: 0; line-height: 16px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n.vg-usage .vg-dt { font-size: 10.5px; font-weight: 400; color: var(--vg-faint); }\n.vg-usage .vg-dd { font-size: 12px; color: var(--vg-ink); font-variant-numeric: tabular-nums; }\n.vg-tiny .vg-usage { grid-template-columns: repeat(3, minmax(0, 1fr)); height: 70px; }\n";

// notice.css
var notice_default = ".vg-notice { position: absolute; z-index: 15; left: 50%; bottom: 14px; max-width: calc(100% - 24px); padding: 6px 14px; transform: translateX(-50%); border: 1px solid var(--vg-line); border-radius: 6px; background: var(--vg-raised); box-shadow: 0 4px 16px rgb(0 0 0 / 0.18); font-size: 12.5px; pointer-events: none; visibility: hidden; opacity: 0; }\n.vg-notice.vg-shown { visibility: visible; opacity: 1; }\n@media (prefers-reduced-motion: no-preference) {\n  .vg-notice { transition: opacity 160ms, visibility 160ms; }\n}\n";

// live.css
var live_default = '/* the controls of a live run, and the card of what a token was chosen from */\n.vg-livepanel { height: auto; overflow: visible; margin-bottom: 8px; }\n.vg-live-head { display: flex; flex-direction: column; gap: 8px; padding: 10px 12px; }\n.vg-livepanel textarea.vg-live-prompt { width: 100%; min-height: 48px; resize: vertical; padding: 7px 10px; border: 1px solid var(--vg-line); border-radius: 4px; background: var(--vg-page); color: var(--vg-ink); font: inherit; font-size: 14px; line-height: 1.45; }\n.vg-livepanel .vg-live-prompt:focus, .vg-livepanel .vg-live-number:focus { outline: 2px solid var(--vg-accent); outline-offset: -1px; }\n.vg-live-row { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 18px; }\n.vg-live-buttons { display: flex; gap: 6px; }\n.vg-live-buttons .vg-button { height: 30px; min-width: 58px; font-size: 13px; margin: 0; color: var(--vg-ink); }\n.vg-live-buttons .vg-play { color: var(--vg-onAccent); border-color: transparent; font-weight: 600; }\n.vg-live-buttons .vg-button:disabled { color: var(--vg-faint); background: none; border-color: var(--vg-line); font-weight: 400; }\n.vg-live-fields { display: flex; flex-wrap: wrap; gap: 6px 14px; }\n.vg-live-field { display: inline-flex; align-items: center; gap: 6px; font-size: 12px; color: var(--vg-soft); }\n.vg-livepanel .vg-live-number { height: 28px; padding: 0 6px; border: 1px solid var(--vg-line); border-radius: 4px; background: var(--vg-page); color: var(--vg-ink); font-size: 13px; font-variant-numeric: tabular-nums; width: 64px; }\n.vg-live-status { flex: 1 1 auto; min-width: 120px; font-size: 12px; color: var(--vg-soft); font-variant-numeric: tabular-nums; }\n.vg-live-error { padding: 6px 12px; font-size: 13px; color: var(--vg-bad); border-top: 1px solid var(--vg-line); overflow-wrap: anywhere; }\n.vg-live-text { max-height: 168px; overflow-y: auto; scrollbar-width: thin; padding: 8px 12px 10px; border-top: 1px solid var(--vg-line); font-size: 14px; line-height: 26px; white-space: pre-wrap; overflow-wrap: anywhere; }\n.vg-live-read { color: var(--vg-soft); }\n.vg-livepanel .vg-live-made .vg-token { line-height: 22px; }\n.vg-tip.vg-choice { width: 270px; max-width: calc(100% - 12px); padding: 8px 10px; z-index: 20; }\n.vg-choice-about { font-size: 11.5px; line-height: 1.35; color: var(--vg-soft); white-space: normal; }\n.vg-choice-drawn { margin-top: 5px; }\n.vg-choice-row { display: grid; grid-template-columns: minmax(60px, 92px) 1fr 52px; align-items: center; gap: 8px; height: 20px; margin-top: 2px; font-size: 12px; color: var(--vg-ink); }\n.vg-choice-row:first-of-type { margin-top: 4px; }\n.vg-choice-piece { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; overflow: hidden; text-overflow: ellipsis; }\n.vg-choice-track { height: 8px; border-radius: 2px; background: var(--vg-panel); overflow: hidden; }\n.vg-choice-bar { display: block; height: 100%; background: var(--vg-status-3); }\n.vg-choice-p { text-align: right; font-variant-numeric: tabular-nums; color: var(--vg-soft); }\n.vg-chosen .vg-choice-bar { background: var(--vg-accent); }\n.vg-chosen .vg-choice-piece, .vg-chosen .vg-choice-p { font-weight: 600; color: var(--vg-ink); }\n';

// routing.css
var routing_default = "/* routing */\n.vg-routing { flex-direction: row; }\n.vg-routing.vg-low { flex-direction: column; }\n.vg-routing-facts { flex: 0 0 212px; display: flex; flex-direction: column; gap: 12px; padding: 10px 14px; border-left: 1px solid var(--vg-line); border-top: 1px solid var(--vg-line); overflow-y: auto; font-size: 12px; scrollbar-width: thin; font-variant-numeric: tabular-nums; }\n.vg-routing-facts h3 { margin: 0 0 3px; font-size: 11px; font-weight: 400; color: var(--vg-soft); }\n.vg-routing-facts p { margin: 0; }\n.vg-low .vg-routing-facts { display: none; }\n.vg-share { height: 6px; margin: 2px 0 4px; background: var(--vg-free); border-radius: 3px; overflow: hidden; }\n.vg-share span { display: block; height: 100%; background: var(--vg-families-0); }\n";

// style.css
var style_default = `.vg-player {
  position: relative;
  box-sizing: border-box;
  display: flex;
  flex-direction: column;
  width: 100%;
  height: 100%;
  border: 1px solid var(--vg-line);
  border-radius: 6px;
  overflow: hidden;
  background: var(--vg-page);
  color: var(--vg-ink);
  font: 13px/1.4 var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif);
  -webkit-font-smoothing: antialiased;
  text-align: left;
}
.vg-player *, .vg-player *::before { box-sizing: border-box; }
.vg-player [hidden] { display: none !important; }
.vg-player :focus-visible { outline: 2px solid var(--vg-accent); outline-offset: -2px; }
.vg-player:focus { outline: none; }
.vg-player:focus-visible { border-color: var(--vg-edge); }
.vg-broken { padding: 12px 16px; font: 13px/1.5 system-ui, sans-serif; border-left: 3px solid #c2410c; }
.vg-fill { height: 100vh; border: 0; border-radius: 0; }

.vg-mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px; }
.vg-soft { color: var(--vg-soft); }
.vg-tabular, .vg-number { font-variant-numeric: tabular-nums; }
.vg-unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.vg-icon { width: 16px; height: 16px; display: block; fill: none; stroke: currentColor; stroke-width: 1.4; stroke-linecap: round; stroke-linejoin: round; }

/* controls */
.vg-player button, .vg-player input, .vg-player select { font: inherit; color: inherit; margin: 0; }
.vg-button { display: inline-flex; align-items: center; justify-content: center; min-width: 26px; height: 26px; padding: 0 4px; border: 0; border-radius: 4px; background: none; color: var(--vg-soft); cursor: pointer; }
.vg-button:hover:not(:disabled) { background: var(--vg-panel); color: var(--vg-ink); }
.vg-button:disabled { color: var(--vg-faint); opacity: 0.55; cursor: default; }
.vg-button[aria-pressed="true"] { color: var(--vg-accent); background: var(--vg-accentWash); }
.vg-text-button { padding: 0 10px; border: 1px solid var(--vg-line); font-size: 12px; }
.vg-play { color: var(--vg-onAccent); background: var(--vg-accent); min-width: 34px; margin: 0 3px; }
.vg-play:hover:not(:disabled) { background: var(--vg-accent); color: var(--vg-onAccent); filter: brightness(1.08); }
.vg-play .vg-icon { fill: currentColor; }
.vg-play:focus-visible { outline-color: var(--vg-ink); outline-offset: 1px; }
.vg-group, .vg-pane-head { isolation: isolate; }
.vg-group { display: inline-flex; align-items: center; gap: 1px; }
.vg-select { height: 24px; max-width: 190px; padding: 0 4px; border: 1px solid var(--vg-line); border-radius: 4px; background: var(--vg-page); font-size: 12px; color: var(--vg-soft); }
.vg-mini:not(.vg-grouped) .vg-pane-events .vg-hint { display: none; }
.vg-hint { font-size: 11.5px; color: var(--vg-faint); white-space: nowrap; }

/* head: transport and the sentence */
.vg-head { flex: none; border-bottom: 1px solid var(--vg-line); }
.vg-transport { display: grid; grid-template-columns: auto minmax(160px, 1fr) auto auto; align-items: center; gap: 4px 14px; padding: 7px 12px 5px; }
.vg-speed { display: inline-flex; align-items: center; margin-left: 8px; }
.vg-rate { min-width: 48px; text-align: center; font-size: 12px; color: var(--vg-soft); }
.vg-slide { contain: layout paint; position: relative; display: flex; flex-direction: column; justify-content: center; height: 26px; }
.vg-slider { appearance: none; width: 100%; height: 16px; background: none; cursor: pointer; position: relative; z-index: 1; margin: 0; }
.vg-slider::-webkit-slider-runnable-track { height: 4px; border-radius: 2px; background: linear-gradient(to right, var(--vg-accent) var(--vg-done, 0%), var(--vg-line) var(--vg-done, 0%)); }
.vg-slider::-moz-range-track { height: 4px; border-radius: 2px; background: var(--vg-line); }
.vg-slider::-moz-range-progress { height: 4px; border-radius: 2px; background: var(--vg-accent); }
.vg-slider::-webkit-slider-thumb { appearance: none; width: 12px; height: 12px; margin-top: -4px; border-radius: 50%; border: 2px solid var(--vg-page); background: var(--vg-accent); box-shadow: 0 0 0 1px var(--vg-accent); }
.vg-slider::-moz-range-thumb { width: 9px; height: 9px; border-radius: 50%; border: 2px solid var(--vg-page); background: var(--vg-accent); }
.vg-strip { width: 100%; height: 4px; border-radius: 2px; opacity: 0.85; }
.vg-count { display: inline-flex; align-items: baseline; gap: 6px; font-size: 12px; white-space: nowrap; }
.vg-goto { height: 24px; padding: 0 6px; border: 1px solid var(--vg-line); border-radius: 4px; background: var(--vg-page); text-align: right; font-size: 13px; }
.vg-kin { gap: 6px; }
.vg-pair { display: inline-flex; align-items: center; border: 1px solid var(--vg-line); border-radius: 4px; }
.vg-pair .vg-button { min-width: 22px; height: 22px; padding: 0 2px; }
.vg-pair-word { font-size: 11.5px; color: var(--vg-soft); }
.vg-nowbar { padding: 4px 12px 8px; }
.vg-nowline { display: flex; align-items: flex-start; gap: 12px; height: 42px; }
.vg-nowline .vg-group { gap: 6px; flex: none; margin-top: 2px; }
.vg-sentence { flex: 1; margin: 0; font-size: 15px; line-height: 21px; height: 42px; overflow: hidden; display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow-wrap: anywhere; contain: strict; }
.vg-where { contain: strict; display: flex; gap: 4px 18px; height: 18px; font-size: 12px; white-space: nowrap; overflow: hidden; }
.vg-where .vg-mono { font-size: 11.5px; }
.vg-kind { font-weight: 600; }
/* a path gives way, a function's name does not */
.vg-place { display: grid; grid-template-columns: max-content max-content minmax(0, max-content); word-spacing: 2px; white-space: pre; }
.vg-path { overflow: hidden; text-overflow: ellipsis; }
.vg-narrow .vg-directory { display: none; }

.vg-dot { display: inline-block; width: 7px; height: 7px; border-radius: 50%; flex: none; background: var(--vg-areas-0); }
.vg-dot.vg-area-1 { background: var(--vg-areas-1); }
.vg-dot.vg-area-2 { background: var(--vg-areas-2); }
.vg-dot.vg-area-3 { background: var(--vg-areas-3); }
.vg-dot.vg-area-4 { background: var(--vg-areas-4); }

/* panes */
.vg-panes { display: grid; gap: 1px; background: var(--vg-line); flex: 1 1 auto; min-height: 0; overflow-y: auto; scrollbar-width: thin; }
.vg-pane { display: flex; flex-direction: column; min-width: 0; min-height: 0; background: var(--vg-page); contain: layout paint; }
.vg-pane-head { flex: none; display: flex; align-items: center; gap: 10px; min-height: 32px; padding: 2px 6px 2px 12px; }
.vg-title { flex: none; margin: 0; font-size: 12px; font-weight: 600; line-height: 1.3; color: var(--vg-ink); white-space: nowrap; border: 0; padding: 0; }
.vg-tools { flex: 1; display: flex; align-items: center; justify-content: flex-end; gap: 8px; min-width: 0; }
.vg-stack { flex: 1; display: flex; flex-direction: column; min-height: 0; position: relative; }
.vg-scroll { overflow-y: auto; scrollbar-width: thin; }
.vg-surface { position: relative; flex: 1 1 auto; min-height: 60px; contain: strict; touch-action: none; user-select: none; }
.vg-canvas { position: absolute; inset: 0; display: block; }
.vg-empty { padding: 10px 12px; font-size: 12px; color: var(--vg-faint); }
.vg-pane-tokens { min-height: 40px; max-height: 84px; flex-direction: row; align-items: flex-start; }
.vg-pane-tokens > .vg-stack { align-self: stretch; }
.vg-pane-tokens .vg-pane-head { order: 1; }
.vg-pane-tokens .vg-title { display: none; }
.vg-legend { flex: none; display: flex; flex-wrap: wrap; gap: 2px 10px; padding: 5px 12px 6px; font-size: 11px; color: var(--vg-soft); }
.vg-key { display: inline-flex; align-items: center; gap: 5px; white-space: nowrap; }
.vg-swatch { width: 9px; height: 9px; border-radius: 2px; box-shadow: inset 0 0 0 1px color-mix(in srgb, var(--vg-ink) 18%, transparent); }
.vg-reserve { flex: none; height: 24px; padding: 0 12px; border: 0; background: none; text-align: left; font-size: 12px !important; color: var(--vg-soft) !important; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; cursor: pointer; }
.vg-reserve.vg-marked { color: var(--vg-ink) !important; background: var(--vg-accentWash); }
.vg-reserve:disabled { cursor: default; }
.vg-line-mark { width: 14px; border-top: 2px solid var(--vg-ink); }
.vg-swatch.vg-stripe { width: 14px; height: 4px; }
.vg-line-mark.vg-copied { border-top-color: var(--vg-soft); }
.vg-line-mark.vg-dotted { border-top: 2px dotted var(--vg-soft); }

/* search */
.vg-search-box { position: relative; flex: 0 1 170px; min-width: 90px; }
.vg-search { width: 100%; height: 24px; padding: 0 8px; border: 1px solid var(--vg-line); border-radius: 4px; background: var(--vg-page); font-size: 12px; }
.vg-player .vg-search::placeholder, .vg-compare .vg-search::placeholder { color: var(--vg-faint); }
.vg-results { position: absolute; z-index: 5; top: 27px; right: 0; width: min(360px, 90vw); max-height: 240px; overflow-y: auto; margin: 0; padding: 4px; list-style: none; background: var(--vg-raised); border: 1px solid var(--vg-line); border-radius: 6px; box-shadow: 0 6px 20px rgb(0 0 0 / 0.16); font-size: 12px; }
.vg-results li { display: flex; justify-content: space-between; gap: 12px; padding: 3px 8px; border-radius: 4px; white-space: nowrap; cursor: pointer; }
.vg-results li span { overflow: hidden; text-overflow: ellipsis; }
.vg-results li:hover, .vg-results li.vg-now { background: var(--vg-accentWash); }

/* lists and tables */
.vg-list { flex: 1 1 auto; min-height: 0; overflow-y: auto; overflow-x: hidden; contain: strict; scrollbar-width: thin; border-top: 1px solid var(--vg-line); }
.vg-list-rows { contain: strict; }
.vg-list-window { position: sticky; top: 0; contain: strict; }
.vg-row { contain: strict; cursor: pointer; }
.vg-event { padding: 0 12px 0 6px; font-size: 12.5px; line-height: 24px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.vg-event .vg-number { display: inline-block; width: 56px; height: 24px; vertical-align: top; contain: strict; text-align: right; font-size: 11.5px; color: var(--vg-faint); }
.vg-event .vg-dot { height: 7px; margin: 0 10px; vertical-align: 1px; }
.vg-event:hover { background: var(--vg-panel); }
.vg-event.vg-now { background: var(--vg-accentWash); box-shadow: inset 3px 0 var(--vg-accent); }
.vg-event.vg-now .vg-number { color: var(--vg-accent); font-weight: 600; }
.vg-tabs { display: flex; flex-wrap: nowrap; overflow-x: auto; scrollbar-width: none; gap: 2px; min-width: 0; }
.vg-tab { flex: none; height: 24px; padding: 0 8px; border: 0; border-radius: 4px; background: none; font-size: 12px !important; color: var(--vg-soft) !important; cursor: pointer; white-space: nowrap; }
.vg-tab:hover { background: var(--vg-panel); }
.vg-tab[aria-selected="true"] { color: var(--vg-ink) !important; background: var(--vg-panel); box-shadow: inset 0 -2px var(--vg-accent); border-radius: 4px 4px 0 0; }
.vg-grid-head, .vg-grid-row { display: grid; grid-template-columns: var(--vg-columns); column-gap: 12px; align-items: center; padding: 0 12px; font-size: 12px; }
.vg-grid-head { flex: none; height: 24px; font-size: 11px; color: var(--vg-faint); border-top: 1px solid var(--vg-line); }
.vg-table .vg-list { border-top: 0; }
.vg-table .vg-grid-head[hidden] + .vg-list { border-top: 1px solid var(--vg-line); }
.vg-grid-row { font-variant-numeric: tabular-nums; cursor: default; }
.vg-grid-row > span { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.vg-grid-row:hover { background: var(--vg-panel); }
.vg-right { text-align: right; }
.vg-marked { background: var(--vg-accentWash); box-shadow: inset 3px 0 var(--vg-accent); }
.vg-bad > span:nth-child(5) { color: var(--vg-bad); font-weight: 600; }
.vg-table .vg-empty { position: absolute; top: 62px; left: 0; }

/* text */
.vg-text { padding: 5px 12px 6px; font-size: 14px; line-height: 24px; }
.vg-token { display: inline; padding: 1px 0; margin: 0; border: 0; border-bottom: 2px solid transparent; border-radius: 2px; background: none; font-size: 14px !important; white-space: pre-wrap; cursor: pointer; text-align: left; }
.vg-token:hover { background: var(--vg-panel); }
.vg-token.vg-sampled { border-bottom-color: var(--vg-status-3); }
.vg-token.vg-later { color: var(--vg-faint); }
.vg-token.vg-sampled.vg-later { border-bottom-color: var(--vg-line); }
.vg-token.vg-now { background: var(--vg-accentWash); border-bottom-color: var(--vg-accent); }
.vg-sample { font-size: 11px !important; cursor: default; color: var(--vg-soft); }
.vg-pane-tokens .vg-tools { gap: 12px; }

/* tip, keys */
.vg-tip { position: absolute; z-index: 10; top: 0; left: 0; max-width: 380px; padding: 7px 10px; border: 1px solid var(--vg-line); border-radius: 6px; background: var(--vg-raised); box-shadow: 0 4px 16px rgb(0 0 0 / 0.14); font-size: 12px; pointer-events: none; }
.vg-tip-head { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-weight: 600; margin-bottom: 3px; overflow-wrap: anywhere; }
.vg-pairs { display: grid; grid-template-columns: auto 1fr; gap: 1px 12px; margin: 0; font-variant-numeric: tabular-nums; }
.vg-pairs .vg-dt { color: var(--vg-soft); font-weight: 400; }
.vg-pairs .vg-dd { margin: 0; overflow-wrap: anywhere; }
.vg-help { position: absolute; z-index: 20; inset: 0; display: flex; align-items: flex-start; justify-content: center; padding: 24px; background: color-mix(in srgb, var(--vg-page) 72%, transparent); overflow-y: auto; }
.vg-help-card { width: min(680px, 100%); padding: 16px 22px 12px; border: 1px solid var(--vg-line); border-radius: 8px; background: var(--vg-raised); box-shadow: 0 10px 34px rgb(0 0 0 / 0.2); }
.vg-help-head { display: flex; justify-content: space-between; align-items: center; margin-bottom: 10px; }
.vg-help-head h2 { margin: 0; font-size: 15px; }
.vg-help-rows { columns: 2 260px; column-gap: 32px; }
.vg-help-row { display: grid; grid-template-columns: 84px 1fr; align-items: baseline; padding: 3px 0; font-size: 12.5px; break-inside: avoid; }
.vg-help kbd { justify-self: start; padding: 1px 7px; border: 1px solid var(--vg-line); border-bottom-width: 2px; border-radius: 4px; background: var(--vg-panel); font: 11.5px ui-monospace, Menlo, Consolas, monospace; }
.vg-help p { margin: 10px 0 4px; font-size: 12px; }

/* one group of panes under the graph */
.vg-groups { grid-area: groups; align-items: stretch; height: 30px; padding: 0 8px; background: var(--vg-page); }
.vg-groups .vg-tab { height: 30px; padding: 0 12px; }
.vg-groups .vg-tab[aria-selected="true"] { background: none; font-weight: 600; }
.vg-grouped .vg-pane-events .vg-title, .vg-grouped .vg-pane-tables .vg-title { display: none; }
.vg-grouped .vg-pane-tokens { max-height: 40px; }
.vg-short .vg-usage, .vg-short .vg-reserve, .vg-short .vg-peak, .vg-short .vg-pane-timeline .vg-legend { display: none; }
.vg-one .vg-groups { display: none; }

/* one pane alone */
.vg-one .vg-panes { display: flex; }
.vg-one .vg-alone { flex: 1; max-height: none; }
.vg-one .vg-alone { height: auto; min-height: 320px; }
.vg-single .vg-expand { display: none; }

.vg-narrow .vg-transport { grid-template-columns: auto auto minmax(0, 1fr); }
.vg-narrow .vg-slide { grid-column: 1 / -1; grid-row: 2; height: 22px; }
.vg-narrow .vg-kin { justify-self: end; gap: 4px; }
.vg-narrow .vg-speed { margin-left: 2px; }
.vg-narrow .vg-rate { min-width: 40px; }
.vg-narrow .vg-transport { gap: 4px 8px; }
.vg-narrow .vg-where { gap: 4px 14px; }
.vg-narrow .vg-nowbar { padding: 3px 12px 6px; }
.vg-narrow .vg-where { margin-top: 3px; }
.vg-narrow .vg-pane-graph .vg-select { max-width: 150px; }
.vg-tiny .vg-transport { display: flex; flex-wrap: wrap; justify-content: space-between; }
.vg-tiny .vg-where { display: grid; grid-template-columns: 128px minmax(0, 1fr); height: 36px; gap: 0 8px; line-height: 18px; }
.vg-tiny .vg-where .vg-place { grid-column: 2; }
.vg-mini .vg-where { grid-template-columns: minmax(0, 1fr); height: 54px; }
.vg-mini .vg-where .vg-place { grid-column: 1; }
.vg-tiny .vg-slide { flex: 1 0 100%; order: 1; }
.vg-tiny .vg-kin { order: 2; }
.vg-tiny .vg-pane-head { flex-wrap: wrap; }
.vg-mini .vg-pane-head { gap: 2px 10px; }
.vg-mini .vg-tools { flex: 1 1 auto; min-width: min-content; max-width: 100%; gap: 4px; }
.vg-mini .vg-tools .vg-hint { display: none; }
.vg-mini .vg-pane-graph .vg-title { display: none; }
.vg-mini .vg-pane-graph .vg-tools { flex-wrap: wrap; min-width: 0; }
.vg-mini .vg-pane-graph .vg-search-box { flex: 1 1 calc(100% - 136px); }
.vg-mini .vg-pane-graph .vg-tools > .vg-select { order: 1; flex: 1 1 40%; max-width: none; }
.vg-mini .vg-pane-timeline .vg-select { max-width: 104px; }
.vg-mini .vg-pane-tables .vg-tools { min-width: 0; }
.vg-mini .vg-nowline, .vg-mini .vg-sentence { height: 63px; }
.vg-mini .vg-sentence { -webkit-line-clamp: 3; }
.vg-mini .vg-nowline { gap: 6px; }
.vg-mini .vg-nowline .vg-group { flex-direction: column; }
.vg-mini .vg-nowline .vg-text-button { width: 58px; height: 24px; }
.vg-wide .vg-nowline, .vg-wide .vg-sentence { height: 26px; }
.vg-wide .vg-sentence { display: block; line-height: 26px; white-space: nowrap; text-overflow: ellipsis; }
.vg-wide .vg-nowline .vg-group { margin-top: 0; }
@media (prefers-reduced-motion: no-preference) {
  .vg-button:hover, .vg-tab:hover { transition: background-color 120ms, color 120ms; }
}
.vg-grouped .vg-pane-tables .vg-tools > .vg-tabs { margin-right: auto; }
`;

// timeline.css
var timeline_default = '.vg-footnote { flex: none; height: 20px; contain: strict; padding: 1px 12px; font-size: 12px; line-height: 18px; color: var(--vg-soft); white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n.vg-peaks { flex: none; }\n.vg-peak { display: flex; align-items: flex-start; gap: 8px; height: 28px; padding: 3px 12px 0; contain: strict; }\n.vg-at-peak { flex: none; height: 22px; }\n.vg-peak-list { flex: 1 1 auto; min-width: 0; height: 22px; display: flex; flex-wrap: wrap; align-items: center; align-content: flex-start; gap: 6px 4px; overflow: hidden; font-size: 12px; line-height: 22px; white-space: nowrap; }\n.vg-peak-list > .vg-soft { display: none; }\n.vg-player .vg-peak-more { flex: none; height: 22px; min-width: 64px; padding: 0; border: 0; background: none; font-size: 12px; text-align: right; color: var(--vg-source); cursor: pointer; }\n.vg-peak-more.vg-none { visibility: hidden; }\n.vg-peak.vg-all { height: auto; max-height: 90px; contain: none; }\n.vg-all .vg-peak-list { height: auto; max-height: 84px; overflow-y: auto; }\n.vg-all .vg-peak-list > .vg-soft { display: inline; }\n.vg-peak-chip { flex: none; display: inline-flex; align-items: center; gap: 5px; height: 22px; padding: 0 7px; border: 1px solid var(--vg-line); border-radius: 11px !important; background: none; font-size: 12px !important; cursor: pointer; }\n.vg-peak-chip .vg-mono { font-size: 11.5px; }\n.vg-peak-chip:hover { background: var(--vg-panel); }\n.vg-peak-chip[aria-pressed="true"] { border-color: var(--vg-ink); background: var(--vg-panel); }\n.vg-mark-legend { flex: none; display: flex; flex-wrap: wrap; gap: 2px 14px; padding: 3px 12px 0; font-size: 11px; color: var(--vg-soft); }\n.vg-rows .vg-key-live { visibility: hidden; }\n.vg-tiny .vg-footnote { height: 38px; white-space: normal; }\n.vg-pane-timeline .vg-select { max-width: 170px; }\n.vg-snug .vg-pane-timeline .vg-hint { display: none; }\n.vg-tiny .vg-pane-timeline .vg-select { max-width: 120px; }\n';

// styles.js
var css = [style_default, block_default, compare_default, details_default, graph_default, inspector_default, kv_default, map_default, routing_default, timeline_default, notice_default, live_default].join("\n");

// peak.js
var MOST4 = 24;
var FIT_MS = 60;
var PeakLine = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
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
    this.made = /* @__PURE__ */ new WeakMap();
    this.chips = /* @__PURE__ */ new Map();
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
    const chips = new Map(plan.atPeak.slice(0, MOST4).map((row) => this.chip(row)));
    const more2 = plan.atPeak.slice(MOST4);
    const rest = more2.length ? [el("span", "vg-soft", { text: `and ${more2.length} more, ${formatBytes(more2.reduce((sum, r) => sum + size[r], 0))}` })] : [];
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
      el("span", "vg-soft vg-tabular", { text: bytes })
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
};

// timeline_paint.js
var THIN = 2;
var NAMED2 = 12;
var TICK_HEIGHT = 22;
var MOST_TICKS = 8;
function bake(pane, c, plan) {
  const { player, surface } = pane;
  const { palette, tracks } = player;
  c.fillStyle = palette.page;
  c.fillRect(0, 0, surface.width, surface.height);
  if (pane.stack.from) paintRowAxis(pane, c);
  else paintByteAxis(pane, c, plan);
  clip(pane, c);
  const tensor = tracks.track("life").col("tensor");
  const pale = palette.dark ? 0.42 : 0.38;
  const boxes = [];
  for (const row of plan.rows) {
    const { x, y, w, h } = pane.box(plan, row);
    if (x > surface.width || x + w < LEFT6 || y > surface.height || y + h < 0) continue;
    c.globalAlpha = h < THIN ? 0.8 : pale;
    c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
    c.fillRect(x, h < THIN ? y - 0.5 : y, w - (w > 3 ? 0.5 : 0), h < THIN ? THIN : h - (h > 3 ? 0.5 : 0));
    boxes.push({ t: tensor[row], x, y, w, h });
  }
  c.globalAlpha = 1;
  paintNames3(pane, c, boxes, palette.ink);
  if (pane.stack.from) paintRowNames(pane, c, plan);
  else if (pane.live) paintBound(player, c, pane.live, { x: (p) => pane.x(p), y: (bytes) => pane.y(bytes) });
  paintMarks3(pane, c, plan);
  c.restore();
  paintPeak(pane, c, plan);
}
function paintStep(pane, c, plan, step, position, ahead) {
  clip(pane, c);
  if (!ahead) paintAlive(pane, c, plan, position);
  paintSelected(pane, c, plan, step);
  if (pane.live && !pane.stack.from && !ahead) paintLiveSet(pane.player, c, pane.live, { x: (p) => pane.x(p), y: (bytes) => pane.y(bytes) }, position);
  c.restore();
  paintHead(pane, c, position, ahead);
  paintBrush(pane, c);
}
function clip({ surface }, c) {
  c.save();
  c.beginPath();
  c.rect(LEFT6, TOP4, surface.width - LEFT6 - RIGHT5, surface.height - TOP4 - BOTTOM);
  c.clip();
}
function paintByteAxis(pane, c, plan) {
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  const { y0, y1 } = pane.window;
  c.font = `10.5px ${fonts.ui}`;
  c.textBaseline = "middle";
  c.textAlign = "right";
  c.lineWidth = 1;
  for (const { value, label } of byteTicks(y0, y1, Math.max(1, Math.min(MOST_TICKS, Math.floor((height - TOP4 - BOTTOM) / TICK_HEIGHT))))) {
    const y = Math.round(pane.y(value)) + 0.5;
    c.strokeStyle = palette.line;
    c.beginPath();
    c.moveTo(LEFT6, y);
    c.lineTo(width - RIGHT5, y);
    c.stroke();
    c.fillStyle = palette.faint;
    c.fillText(label, LEFT6 - 6, y);
  }
  axisNames(pane, c, "offset");
  c.strokeStyle = palette.edge;
  for (const chunk of plan.chunks.slice(1)) {
    const y = Math.round(pane.y(chunk.base)) + 0.5;
    if (y < TOP4 || y > height - BOTTOM) continue;
    c.strokeRect(LEFT6, y, width - LEFT6 - RIGHT5, 0.01);
    c.fillText(chunkName(plan, chunk.chunk), LEFT6 + 4, y - 7);
  }
}
function axisNames(pane, c, up) {
  const { width, height } = pane.surface;
  c.font = `10.5px ${pane.player.fonts.ui}`;
  c.fillStyle = pane.player.palette.soft;
  c.textAlign = "right";
  c.fillText("position in the execution order (not time)", width - RIGHT5, height - BOTTOM + 27);
  c.textAlign = "left";
  c.fillText(up, 12, 7);
}
function paintRowAxis(pane, c) {
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  const n = pane.stack.top;
  c.textBaseline = "middle";
  c.lineWidth = 1;
  c.strokeStyle = palette.line;
  c.strokeRect(LEFT6 + 0.5, TOP4 + 0.5, width - LEFT6 - RIGHT5 - 1, height - TOP4 - BOTTOM - 1);
  axisNames(pane, c, `${n} tensors`);
  c.font = `10.5px ${fonts.ui}`;
  c.fillStyle = palette.faint;
  c.textAlign = "right";
  const [above, below] = pane.order === "size" ? ["largest", "smallest"] : ["first", "last"];
  if (pane.window.y1 >= n) c.fillText(above, LEFT6 - 6, TOP4 + 8);
  if (pane.window.y0 <= 0) c.fillText(below, LEFT6 - 6, height - BOTTOM - 8);
  c.textAlign = "left";
}
function paintRowNames(pane, c, plan) {
  const { tracks, palette, fonts } = pane.player;
  if (Math.abs(pane.y(1) - pane.y(0)) < NAMED2) return;
  const life = tracks.track("life");
  c.textBaseline = "middle";
  c.font = `10px ${fonts.mono}`;
  c.fillStyle = palette.soft;
  for (const row of plan.rows) {
    const { x, y, w, h } = pane.box(plan, row);
    if (y > pane.surface.height || y + h < 0) continue;
    const text = `${visible(tracks.name(life.col("tensor")[row]))} ${formatBytes(life.col("size")[row])}`;
    const wide = c.measureText(text).width;
    if (wide + 8 < w) continue;
    const right = x + w + 5 + wide < pane.surface.width - RIGHT5;
    c.fillText(text, right ? x + w + 5 : Math.max(LEFT6 + 2, x - 5 - wide), y + h / 2);
  }
}
function paintMarks3(pane, c, plan) {
  const tensor = pane.player.tracks.track("life").col("tensor");
  for (const row of pane.marks.size ? plan.rows : []) {
    const mark = pane.marks.get(tensor[row]);
    if (!mark) continue;
    const { colour, dash, wide } = MARKS[mark];
    const { x, y, w, h } = pane.box(plan, row);
    c.strokeStyle = colour(pane.player.palette);
    c.lineWidth = wide;
    c.setLineDash(dash);
    c.beginPath();
    if (h < 2 * THIN) c.rect(x, y - wide / 2 - 1, w, 0);
    else c.rect(x + 1, y + 1, Math.max(1, w - 2), h - 2);
    c.stroke();
  }
  c.setLineDash([]);
  c.lineWidth = 1;
}
function paintPeak(pane, c, plan) {
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  const rows = pane.stack.from !== null;
  const x = Math.round(pane.x(plan.peakPosition + 0.5)) + 0.5;
  const y = Math.round(pane.y(plan.size)) + 0.5;
  if (rows ? x < LEFT6 || x > width - RIGHT5 : y < TOP4 - 2) return;
  c.strokeStyle = palette.ink;
  c.lineWidth = 1;
  c.setLineDash([5, 4]);
  c.beginPath();
  c.moveTo(rows ? x : LEFT6, rows ? TOP4 : y);
  c.lineTo(rows ? x : width - RIGHT5, rows ? height - BOTTOM : y);
  c.stroke();
  c.setLineDash([]);
  c.fillStyle = palette.ink;
  c.font = `600 11px ${fonts.ui}`;
  c.textAlign = "right";
  c.textBaseline = "middle";
  const words = peakWords(plan);
  const right = rows ? Math.min(width - RIGHT5, Math.max(x + 4, LEFT6 + c.measureText(words).width)) : width - RIGHT5;
  c.fillText(words, right, rows ? 7 : Math.max(7, y - 8));
  c.textAlign = "left";
}
function peakWords({ used, buffers }) {
  return buffers.size > used ? `uses up to ${formatBytes(used)} of ${formatBytes(buffers.size)}` : `peak ${formatBytes(used)}`;
}
function paintAlive(pane, c, plan, position) {
  if (position < 0) return;
  const { palette, tracks } = pane.player;
  const life = tracks.track("life");
  const [first, last, tensor] = ["first", "last", "tensor"].map((n) => life.col(n));
  c.strokeStyle = palette.page;
  c.lineWidth = 1;
  const boxes = [];
  for (const row of plan.rows) {
    if (first[row] > position || last[row] < position) continue;
    const { x, y, w, h } = pane.box(plan, row);
    c.fillStyle = palette.families[familyOf(tracks.tensorString("op", tensor[row]))];
    c.fillRect(x, h < THIN ? y - 1 : y, w, h < THIN ? THIN + 1 : h);
    if (h > 4) c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    boxes.push({ t: tensor[row], x, y, w, h });
  }
  paintNames3(pane, c, boxes, palette.onFamily);
}
function paintNames3({ player }, c, boxes, ink) {
  const named = /* @__PURE__ */ new Map();
  c.fillStyle = ink;
  c.font = `10px ${player.fonts.mono}`;
  c.textBaseline = "middle";
  const roomy = boxes.filter(({ x, w, h }) => h >= NAMED2 && x + w - Math.max(x, LEFT6) >= 16);
  for (const { t, x, y, w, h } of roomy.sort((a, b) => a.w - b.w)) {
    const name = visible(player.tracks.name(t));
    const wide = name.length * 6.1 + 10;
    const middle = Math.round(y + h / 2);
    const there = named.get(middle) ?? [];
    let from = Math.max(x, LEFT6);
    for (const other of there) if (from < other.to && other.from < from + wide) from = other.end;
    if (x + w - from < wide) continue;
    c.fillText(name, from + 5, y + h / 2 + 0.5);
    named.set(middle, [...there, { from, to: from + wide, end: x + w }]);
  }
}
function paintSelected(pane, c, plan, step) {
  const { selected, relations, palette } = pane.player;
  const row = selected < 0 ? -1 : relations.lifeRow(selected, step);
  if (row < 0) return;
  const { x, y, w, h } = pane.box(plan, row);
  c.strokeStyle = palette.ink;
  c.lineWidth = 2;
  c.strokeRect(x - 1, y - 1, w + 2, h + 2);
}
function paintHead(pane, c, position, ahead) {
  const { x0, x1 } = pane.window;
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  if (position < x0 || position >= x1) return paintTicks(pane, c, -100, -100);
  const x = pane.x(position + 0.5);
  const bottom = height - BOTTOM;
  c.fillStyle = palette.accent;
  c.fillRect(Math.round(x) - 0.75, TOP4, 1.5, bottom - TOP4);
  c.font = `600 11px ${fonts.ui}`;
  const held = pane.live?.bytes[position];
  const said = held === void 0 ? "" : ahead ? `: ${formatBytes(held)} in the plan to come` : ` runs with ${formatBytes(held)} live`;
  const text = `node ${position}${said}`;
  const w = c.measureText(text).width + 10;
  const left = Math.max(2, Math.min(Math.max(LEFT6 - 4, x - w / 2), width - RIGHT5 - w));
  paintTicks(pane, c, left, left + w);
  c.font = `600 11px ${fonts.ui}`;
  c.fillStyle = palette.accent;
  c.beginPath();
  c.roundRect(left, bottom + 1, w, 16, 3);
  c.fill();
  c.fillStyle = palette.onAccent;
  c.textBaseline = "middle";
  c.textAlign = "center";
  c.fillText(text, left + w / 2, bottom + 9.5);
  c.textAlign = "left";
}
function paintTicks(pane, c, from, to) {
  const { palette, fonts } = pane.player;
  const { width, height } = pane.surface;
  c.font = `10.5px ${fonts.ui}`;
  c.fillStyle = palette.faint;
  c.textBaseline = "middle";
  c.textAlign = "center";
  for (const p of countTicks(pane.window.x0, pane.window.x1, Math.max(2, Math.floor(width / 110)))) {
    const x = pane.x(p + 0.5);
    if (x < width - RIGHT5 && (x < from - 16 || x > to + 16)) c.fillText(String(p), x, height - BOTTOM + 9);
  }
  c.textAlign = "left";
}
function paintBrush(pane, c) {
  if (!pane.brush) return;
  const { palette } = pane.player;
  const { x, y, toX, toY } = pane.brush;
  const rect = (
    /** @type {const} */
    [Math.min(x, toX), Math.min(y, toY), Math.abs(toX - x), Math.abs(toY - y)]
  );
  c.fillStyle = palette.accent;
  c.globalAlpha = 0.12;
  c.fillRect(...rect);
  c.globalAlpha = 1;
  c.strokeStyle = palette.accent;
  c.lineWidth = 1;
  c.strokeRect(rect[0] + 0.5, rect[1] + 0.5, rect[2], rect[3]);
}

// timeline_rows.js
var ORDERS = [
  ["address", "by address", "Up is the address: what overlaps in height uses the same memory again"],
  ["birth", "by tensor, oldest first", "Each tensor has a row, the first born on top"],
  ["size", "by tensor, largest first", "Each tensor has a row, the largest on top"]
];
function stackOf({ tracks, relations }, plan, order) {
  if (order === "address") return { top: plan.size || 1, from: null };
  return relations.keep(`stack ${plan.plan} ${order}`, () => {
    const life = tracks.track("life");
    const [first, last, size] = ["first", "last", "size"].map((n2) => life.col(n2));
    const sorted = Array.from(plan.rows).sort((p, q) => (order === "size" ? size[q] - size[p] : 0) || first[p] - first[q] || last[p] - last[q] || p - q);
    const n = sorted.length;
    return { top: n, from: new Map(sorted.map((row, k) => [row, n - 1 - k])) };
  });
}
function spanOf({ tracks }, plan, stack, row) {
  const at = stack.from?.get(row);
  if (at !== void 0) return [at, at + 1];
  const life = tracks.track("life");
  const base = plan.chunks.find((k) => k.chunk === life.col("chunk")[row])?.base ?? 0;
  const from = base + life.col("offset")[row];
  return [from, from + life.col("size")[row]];
}

// timeline_zoom.js
var FEWEST2 = 2;
var ROOM = 0.6;
function whole(plan, top) {
  return { x0: 0, x1: plan.positions, y0: 0, y1: top };
}
function within(from, to, least, end) {
  const size = Math.min(end, Math.max(to - from, least));
  const low = Math.min(Math.max(0, (from + to) / 2 - size / 2), end - size);
  return [low, low + size];
}
function kept(w, full, least) {
  const [x0, x1] = within(w.x0, w.x1, Math.min(FEWEST2, full.x1), full.x1);
  const [y0, y1] = within(w.y0, w.y1, least, full.y1);
  return { x0, x1, y0, y1 };
}
function scaled(w, factor, x, y) {
  const about2 = (value, centre) => centre + (value - centre) * factor;
  return { x0: about2(w.x0, x), x1: about2(w.x1, x), y0: about2(w.y0, y), y1: about2(w.y1, y) };
}
function about(first, last, from, to) {
  const wide = Math.max(2, (last + 1 - first) * ROOM);
  const high = Math.max((to - from) * ROOM * 2, to - from > 1 ? 0 : 6);
  return { x0: first - wide, x1: last + 1 + wide, y0: from - high, y1: to + high };
}

// timeline_pointer.js
var NEAR4 = 3;
function listenPointer(pane) {
  const { box } = pane.surface;
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !pane.plan) return;
    if (event.offsetY > pane.surface.height - BOTTOM) return pane.goTo(Math.floor(pane.inverse(event.offsetX, 0).p));
    pane.brush = { x: event.offsetX, y: event.offsetY, toX: event.offsetX, toY: event.offsetY };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (!pane.brush) return hover2(pane, event);
    Object.assign(pane.brush, { toX: event.offsetX, toY: event.offsetY });
    pane.player.redraw(pane);
  });
  box.addEventListener("pointerup", () => endBrush(pane));
  box.addEventListener("pointercancel", () => {
    pane.brush = null;
    pane.resized();
  });
  box.addEventListener("pointerleave", () => pane.player.tip.hide());
  box.addEventListener("dblclick", () => pane.zoomOut());
  box.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const { p, up } = pane.inverse(event.offsetX, event.offsetY);
      pane.zoomTo(scaled(pane.window, Math.exp(event.deltaY * 0.01), p, up));
    },
    { passive: false }
  );
}
function endBrush(pane) {
  const { brush, plan } = pane;
  pane.brush = null;
  if (!brush || !plan) return;
  const { x, y, toX, toY } = brush;
  if (Math.hypot(toX - x, toY - y) < CLICK) {
    const row = hit2(pane, x, y);
    pane.player.select(row < 0 ? -1 : pane.player.tracks.track("life").col("tensor")[row]);
    return pane.player.redraw(pane);
  }
  const p = pane.inverse(Math.min(x, toX), Math.max(y, toY));
  const q = pane.inverse(Math.max(x, toX), Math.min(y, toY));
  const full = whole(plan, pane.stack.top);
  const wide = Math.abs(toX - x) > CLICK * 2;
  const high = Math.abs(toY - y) > CLICK * 4;
  pane.zoomTo({
    x0: wide ? Math.max(0, Math.floor(p.p)) : pane.window.x0,
    x1: wide ? Math.min(full.x1, Math.max(Math.ceil(q.p), Math.floor(p.p) + 2)) : pane.window.x1,
    y0: high ? p.up : pane.window.y0,
    y1: high ? q.up : pane.window.y1
  });
}
function hit2(pane, x, y) {
  const { plan, player } = pane;
  if (!plan) return -1;
  const { p } = pane.inverse(x, y);
  const life = player.tracks.track("life");
  const [first, last] = ["first", "last"].map((n) => life.col(n));
  let near = -1;
  let least = NEAR4;
  for (const row of plan.rows) {
    if (first[row] > p || last[row] + 1 < p) continue;
    const [from, to] = spanOf(player, plan, pane.stack, row);
    const [top, bottom] = [pane.y(to), pane.y(from)];
    const away = y < top ? top - y : y > bottom ? y - bottom : 0;
    if (away < least) [near, least] = [row, away];
  }
  return near;
}
function hover2(pane, event) {
  const row = hit2(pane, event.offsetX, event.offsetY);
  if (row < 0) return pane.player.tip.hide();
  const { tracks, tip, step } = pane.player;
  const life = tracks.track("life");
  const t = life.col("tensor")[row];
  const mark = pane.marks.get(t);
  tip.show(pane.surface.box, event.offsetX, event.offsetY, visible(tracks.name(t)), [
    .../** @type {[string, string][]} */
    mark ? [["compared", mark]] : [],
    ["offset", String(life.col("offset")[row])],
    ["size", formatBytes(life.col("size")[row])],
    ...lifeOf(pane.player, t, step)
  ]);
}

// timeline.js
var LEFT6 = 66;
var RIGHT5 = 12;
var TOP4 = 20;
var BOTTOM = 36;
var QUIET_MS3 = 350;
var STEP = 1.6;
var LEAST_BYTES = 64;
var LEAST_ROWS = 4;
var TimelinePane = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "timeline";
    this.title = "Memory timeline";
    this.plan = null;
    this.live = null;
    this.order = "address";
    this.stack = { top: 1, from: null };
    this.window = { x0: 0, x1: 1, y0: 0, y1: 1 };
    this.marks = /* @__PURE__ */ new Map();
    this.baked = /* @__PURE__ */ new Map();
    this.drawn = "";
    this.brush = null;
    this.surface = new Surface("Lifetimes of tensors over the execution order", () => this.resized());
    this.note = el("div", "vg-empty", { text: "No memory was planned in this trace." });
    this.note.hidden = player.tracks.track("life").length > 0;
    this.peak = new PeakLine(player);
    this.peak.element.hidden = !this.note.hidden;
    this.legend = el("div", "vg-legend");
    this.markLegend = el("div", "vg-mark-legend");
    this.markLegend.hidden = true;
    this.body = el("div", "vg-stack", {}, [this.surface.box, this.note, this.peak.element, this.markLegend, this.legend]);
    this.choice = el("select", "vg-select", { "aria-label": "How the timeline is stacked", title: "How the timeline is stacked (y)" });
    this.reset = iconButton("fit", "All of the plan (X)", () => this.zoomOut());
    this.tools = this.makeTools();
    this.makeLegend();
    listenPointer(this);
  }
  /** @returns {HTMLElement[]} */
  makeTools() {
    for (const [value, text, title2] of ORDERS) this.choice.append(el("option", "", { value, text, title: title2 }));
    this.choice.addEventListener("change", () => this.setOrder(
      /** @type {Order} */
      this.choice.value
    ));
    this.reset.disabled = true;
    const group = el("div", "vg-group", {}, [
      iconButton("slower", "Zoom out", () => this.zoomBy(STEP)),
      iconButton("faster", "Zoom in on this position", () => this.zoomBy(1 / STEP)),
      iconButton("follow", "Zoom to the selected tensor (x)", () => this.zoomToTensor()),
      this.reset
    ]);
    return this.note.hidden ? [el("span", "vg-hint", { text: "drag to zoom" }), this.choice, group] : [];
  }
  makeLegend() {
    const { tracks } = this.player;
    const there = new Set(tracks.track("life").col("tensor").map((t) => familyOf(tracks.tensorString("op", t))));
    FAMILIES.forEach((text, k) => {
      if (!there.has(k)) return;
      const mark = el("span", "vg-swatch");
      mark.style.background = `var(--vg-families-${k})`;
      this.legend.append(el("span", "vg-key", {}, [mark, el("span", "", { text })]));
    });
    if (!tracks.track("live").length) return;
    const lines = [
      ["live set", "vg-line-mark", "What is needed at each node, up to now"],
      ["lower bound", "vg-line-mark vg-dotted", "The largest live set: no plan of this graph takes less"]
    ];
    for (const [text, mark, title2] of lines) this.legend.append(el("span", "vg-key vg-key-live", { title: title2 }, [el("span", mark), el("span", "", { text })]));
  }
  invalidate() {
    this.markLegend.replaceChildren(...markKeys(this.player.palette, this.marks));
    this.forget();
  }
  /** What is baked and drawn no longer holds. */
  forget() {
    this.baked.clear();
    this.drawn = "";
  }
  resized() {
    this.forget();
    this.player.redraw(this);
  }
  // ---- what is shown
  /** Outlines tensors, and says in a legend as what; an empty map for none. @param {Map<number, Mark>} marks */
  mark(marks) {
    this.marks = marks;
    this.markLegend.hidden = !marks.size;
    this.markLegend.replaceChildren(...markKeys(this.player.palette, marks));
    this.resized();
  }
  /** @param {Order} order */
  setOrder(order) {
    this.order = order;
    this.choice.value = order;
    this.legend.classList.toggle("vg-rows", order !== "address");
    if (this.plan) this.stack = stackOf(this.player, this.plan, order);
    this.zoomOut();
  }
  nextOrder() {
    const names = ORDERS.map(([name]) => name);
    this.setOrder(names[(names.indexOf(this.order) + 1) % names.length]);
  }
  /** @param {Plan | null} plan */
  setPlan(plan) {
    if (!this.reset.disabled) this.forget();
    this.plan = plan;
    this.reset.disabled = true;
    if (!plan) return;
    this.stack = stackOf(this.player, plan, this.order);
    this.window = whole(plan, this.stack.top);
    this.live = liveSet(this.player, plan.plan);
  }
  // ---- zoom
  /** @param {Window} window */
  zoomTo(window) {
    const { plan } = this;
    if (!plan) return;
    const full = whole(plan, this.stack.top);
    this.window = kept(window, full, this.least);
    const all = Object.entries(full).every(([side, value]) => Math.abs(value - this.window[
      /** @type {keyof Window} */
      side
    ]) < 1e-6);
    if (all) this.window = full;
    this.reset.disabled = all;
    this.forget();
    this.player.redraw(this);
  }
  get least() {
    return Math.min(this.stack.top, this.stack.from ? LEAST_ROWS : LEAST_BYTES);
  }
  zoomOut() {
    if (this.plan) this.zoomTo(whole(this.plan, this.stack.top));
  }
  /** About the position of this step, and the tensor that it is about. @param {number} factor */
  zoomBy(factor) {
    const { x0, x1, y0, y1 } = this.window;
    const { plan, player } = this;
    if (!plan) return;
    const position = positionIn(player, plan, player.step);
    const row = player.relations.lifeRow(player.relations.tensorAt(player.step), player.step);
    const [from, to] = row < 0 ? [y0, y1] : spanOf(player, plan, this.stack, row);
    const x = position >= x0 && position < x1 ? position + 0.5 : (x0 + x1) / 2;
    const middle = (from + to) / 2;
    this.zoomTo(scaled(this.window, factor, x, middle >= y0 && middle <= y1 ? middle : (y0 + y1) / 2));
  }
  /** To the selected tensor, else to the one of this step. */
  zoomToTensor() {
    const { plan, player } = this;
    const { relations, selected, step, tracks } = player;
    const row = relations.lifeRow(selected >= 0 ? selected : relations.tensorAt(step), step);
    if (!plan || row < 0) return;
    const life = tracks.track("life");
    const [from, to] = spanOf(player, plan, this.stack, row);
    this.zoomTo(about(life.col("first")[row], life.col("last")[row], from, to));
  }
  /** @param {number} p */
  x(p) {
    const { x0, x1 } = this.window;
    return LEFT6 + (p - x0) / (x1 - x0) * (this.surface.width - LEFT6 - RIGHT5);
  }
  /** @param {number} up bytes, or rows */
  y(up) {
    const { y0, y1 } = this.window;
    const high = this.surface.height - TOP4 - BOTTOM;
    return TOP4 + high - (up - y0) / (y1 - y0) * high;
  }
  /** @param {number} x @param {number} y */
  inverse(x, y) {
    const { x0, x1, y0, y1 } = this.window;
    const high = this.surface.height - TOP4 - BOTTOM;
    return { p: x0 + (x - LEFT6) / (this.surface.width - LEFT6 - RIGHT5) * (x1 - x0), up: y0 + (TOP4 + high - y) / high * (y1 - y0) };
  }
  /** The rectangle of a life row in pixels. @param {Plan} plan @param {number} row */
  box(plan, row) {
    const life = this.player.tracks.track("life");
    const [from, to] = spanOf(this.player, plan, this.stack, row);
    const x = this.x(life.col("first")[row]);
    const y = this.y(to);
    return { x, y, w: Math.max(1, this.x(life.col("last")[row] + 1) - x), h: Math.max(1, this.y(from) - y) };
  }
  // ---- drawing
  /** @param {number} step */
  draw(step) {
    const plan = this.player.relations.planAt(step);
    if (plan !== this.plan) this.setPlan(plan);
    if (!plan || this.surface.width < 100) return;
    const position = positionIn(this.player, plan, step);
    const ahead = phaseAt(this.player, plan, step) === "before";
    const key = `${plan.plan} ${position} ${this.player.selected} ${ahead}`;
    if (key === this.drawn && !this.brush) return;
    this.drawn = this.brush ? "" : key;
    this.surface.blit(this.baked.get(plan) ?? this.keep(plan));
    paintStep(this, this.surface.begin(), plan, step, position, ahead);
    this.player.rest.after(this, QUIET_MS3, () => this.say(position, ahead));
  }
  write() {
    if (this.peak.plan !== this.plan) this.peak.show(this.plan);
    else this.peak.mark();
  }
  /** @param {Plan} plan */
  keep(plan) {
    const { baked, surface } = this;
    const [oldest] = baked;
    const spare = oldest && baked.size >= surface.most ? oldest[1] : null;
    if (spare) baked.delete(oldest[0]);
    const { bitmap, context } = spare ? { bitmap: spare, context: surface.over(spare) } : surface.layer();
    bake(this, context, plan);
    baked.set(plan, bitmap);
    return bitmap;
  }
  /** What the picture shows, for those who do not see it. @param {number} position @param {boolean} ahead whether the plan is
   * still to be made */
  say(position, ahead) {
    const held = this.live?.bytes[position];
    const now = position < 0 || held === void 0 ? "" : `At position ${position} of ${this.plan?.positions}, ${formatBytes(held)} ${ahead ? "will be " : ""}live. `;
    this.surface.canvas.setAttribute("aria-label", `Lifetimes of tensors over the execution order. ${now}${this.peak.describe()}${this.marks.size ? ` Marked: ${markWords(this.marks)}.` : ""}`);
  }
  /** To the nearest event that places or computes the node at a position. @param {number} position */
  goTo(position) {
    const target = this.plan ? eventOf(this.player, this.plan, position, this.player.step) : -1;
    if (target >= 0) this.player.go(target);
  }
  stop() {
    this.peak.fitter.disconnect();
    this.surface.stop();
  }
};

// tip.js
var Tip = class {
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
};

// choice.js
var SHOWN = 5;
function aboutToken({ id, pos, p }) {
  return `token ${id} at position ${pos}, drawn with ${percent4(p)} after temperature and filters`;
}
function percent4(p) {
  return p >= 0.9995 ? "100 %" : `${(100 * p).toFixed(p < 1e-3 ? 2 : 1)} %`;
}
var ChoiceCard = class {
  /** @param {HTMLElement} root what the card stays inside of */
  constructor(root) {
    this.root = root;
    this.element = el("div", "vg-tip vg-choice", { role: "tooltip" });
    this.element.hidden = true;
    root.append(this.element);
  }
  /** The five likeliest, and the chosen one where it is further down. @param {HTMLElement} beside @param {Sampled} token */
  show(beside, token) {
    const { text, top } = token;
    const chosen = top.findIndex(([piece]) => piece === text);
    const rows = top.filter((_, k) => k < SHOWN || k === chosen).map(([piece, p], k) => {
      const bar2 = el("span", "vg-choice-bar");
      bar2.style.width = `${Math.max(1, 100 * p)}%`;
      return el("div", `vg-choice-row ${k === Math.min(chosen, SHOWN) ? "vg-chosen" : ""}`, {}, [
        el("span", "vg-choice-piece", { text: visiblePiece(piece) || "∅" }),
        el("span", "vg-choice-track", {}, [bar2]),
        el("span", "vg-choice-p", { text: percent4(p) })
      ]);
    });
    const head = rows.length ? [el("div", "vg-choice-about", { text: "The likeliest here, at temperature 1" })] : [];
    this.element.replaceChildren(...head, ...rows, el("div", "vg-choice-about vg-choice-drawn", { text: aboutToken(token) }));
    this.element.hidden = false;
    const outer = this.root.getBoundingClientRect();
    const inner = beside.getBoundingClientRect();
    const [w, h] = [this.element.offsetWidth, this.element.offsetHeight];
    const x = Math.max(6, Math.min(inner.left - outer.left, outer.width - w - 6));
    const under = inner.bottom - outer.top + 6;
    const y = under + h > outer.height && inner.top - outer.top > h + 6 ? inner.top - outer.top - h - 6 : under;
    this.element.style.transform = `translate(${x}px, ${y}px)`;
  }
  hide() {
    this.element.hidden = true;
  }
};

// tokens.js
var MOST5 = 600;
var REST_MS2 = 120;
var PAD5 = 6;
var TokensPane = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "tokens";
    this.title = "Text";
    this.track = player.tracks.track("token");
    this.text = el("div", "vg-text", { role: "group", "aria-label": "Tokens so far" });
    this.body = el("div", "vg-stack vg-scroll", {}, [this.text]);
    this.tools = [
      el("span", "vg-key", {}, [el("span", "vg-token vg-sample", { text: "prompt" })]),
      el("span", "vg-key", {}, [el("span", "vg-token vg-sampled vg-sample", { text: "sampled" })])
    ];
    this.card = new ChoiceCard(player.root);
    this.shown = -1;
    this.first = 0;
    this.made = [];
    this.text.addEventListener("click", (event) => {
      const k = this.made.indexOf(
        /** @type {HTMLElement} */
        event.target
      );
      if (k >= 0) player.go(this.track.a[this.first + k]);
    });
    this.pointer = { x: -1, y: -1 };
    this.onKey = () => this.card.hide();
    this.listen();
    if (!this.track.length) this.text.append(el("span", "vg-soft", { text: "No text in this trace." }));
    else this.make(0);
  }
  /** The card comes with the pointer or with the focus of the keyboard, and goes with a click or any key. */
  listen() {
    const { text, card: card2 } = this;
    text.addEventListener("pointerover", (event) => {
      if (this.moved(event)) this.offer(event.target);
    });
    this.player.root.addEventListener("pointermove", (event) => this.moved(event));
    text.addEventListener("focusin", (event) => {
      if (
        /** @type {HTMLElement} */
        event.target.matches(":focus-visible")
      ) this.offer(event.target);
    });
    for (const kind of ["pointerleave", "focusout", "click"]) text.addEventListener(kind, () => card2.hide());
    document.addEventListener("keydown", this.onKey, true);
  }
  /** Whether the pointer moved, and not the text under it. @param {PointerEvent} event */
  moved({ clientX: x, clientY: y }) {
    const { pointer } = this;
    if (x === pointer.x && y === pointer.y) return false;
    this.pointer = { x, y };
    return true;
  }
  /** Shows what a token was chosen from. @param {EventTarget | null} target */
  offer(target) {
    const k = this.made.indexOf(
      /** @type {HTMLElement} */
      target
    );
    const choice = k >= 0 ? this.choice(this.first + k) : null;
    if (choice) this.card.show(this.made[k], choice);
    else this.card.hide();
  }
  /** The token in `row` with what it was chosen from; nothing for a token of the prompt. @param {number} row
   * @returns {import("./choice.js").Sampled | null} */
  choice(row) {
    const { track } = this;
    const candidates = this.player.tracks.track("candidate");
    if (!track.col("sampled")[row] || !candidates.length) return null;
    const top = candidates.openAt(track.a[row]).map((r) => (
      /** @type {[string, number]} */
      [candidates.str("piece", r), candidates.col("p")[r]]
    ));
    const [id, pos, p] = ["token", "pos", "p"].map((name) => track.col(name)[row]);
    return top.length ? { text: track.str("piece", row), id, pos, p, top } : null;
  }
  /** Makes the tokens from row `first` on; those to come are there already, faint, so that no line moves. @param {number} first */
  make(first) {
    const { track } = this;
    this.first = first;
    this.made = [];
    for (let row = first; row < Math.min(track.length, first + MOST5); row++) {
      const sampled = track.col("sampled")[row] !== 0;
      const p = track.col("p")[row];
      const about2 = `token ${track.col("token")[row]} at position ${track.col("pos")[row]}`;
      const told = sampled ? `${about2}, sampled with probability ${p.toFixed(3)}` : `${about2}, from the prompt`;
      const title2 = this.choice(row) ? void 0 : told;
      const piece = track.str("piece", row) || `#${track.col("token")[row]}`;
      this.made.push(
        el("button", `vg-token ${sampled ? "vg-sampled" : ""}`, { type: "button", text: visiblePiece(piece), title: title2, "data-row": String(row) })
      );
    }
    this.text.replaceChildren(...this.made);
    this.shown = -1;
  }
  /** @param {number} step */
  draw(step) {
    const { track } = this;
    if (!track.length) return;
    const so_far = upperBound(track.a, step);
    if (so_far < this.first || so_far > this.first + this.made.length) this.make(Math.max(0, so_far - Math.floor(MOST5 / 2)));
    if (so_far === this.shown) return;
    const from = this.shown < 0 ? 0 : Math.max(0, Math.min(this.shown, so_far) - this.first - 1);
    const to = this.shown < 0 ? this.made.length : Math.min(this.made.length, Math.max(this.shown, so_far) - this.first + 1);
    for (let k = from; k < to; k++) {
      const row = this.first + k;
      this.made[k].classList.toggle("vg-later", row >= so_far);
      this.made[k].classList.toggle("vg-now", row === so_far - 1);
    }
    this.shown = so_far;
    this.player.rest.after(this, REST_MS2, () => this.follow());
  }
  /** Brings the line of the newest token into sight, where there are more lines than room. */
  follow() {
    const { body } = this;
    const now = this.made[this.shown - 1 - this.first];
    if (!now || body.scrollHeight <= body.clientHeight) return;
    const [top, bottom] = [now.offsetTop - PAD5, now.offsetTop + now.offsetHeight + PAD5];
    body.scrollTop = Math.max(bottom - body.clientHeight, Math.min(body.scrollTop, top));
  }
  invalidate() {
  }
  stop() {
    document.removeEventListener("keydown", this.onKey, true);
    this.card.element.remove();
  }
};

// transport.js
var SPEEDS = [1, 2, 4, 8, 15, 30, 60, 120, 250, 500, 1e3, 2500];
var FIRST_SPEED = 3;
var STRIP3 = 5;
var Transport = class {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.speed = FIRST_SPEED;
    this.playing = 0;
    this.due = 0;
    this.last = 0;
    this.playButton = iconButton("play", "Play (space)", () => this.toggle());
    this.playButton.classList.add("vg-play");
    this.rate = el("span", "vg-rate vg-tabular");
    this.slider = el("input", "vg-slider", { type: "range", min: "0", max: String(player.tracks.n - 1), step: "1", "aria-label": "Event" });
    this.slider.addEventListener("input", () => player.go(Number(this.slider.value), false));
    this.strip = el("canvas", "vg-strip", { "aria-hidden": "true" });
    this.number = el("input", "vg-goto vg-tabular", { type: "text", inputmode: "numeric", "aria-label": `Go to event, 0 to ${player.tracks.n - 1}`, title: "Go to event (g)" });
    this.number.addEventListener("keydown", (event) => this.onNumber(event));
    this.number.addEventListener("blur", () => this.showStep(player.step));
    this.number.style.width = `${String(player.tracks.n).length + 2.5}ch`;
    this.element = el("div", "vg-transport", {}, [this.makeButtons(), this.makeSlider(), this.makeCount(), this.makeKin()]);
    this.showSpeed();
  }
  makeButtons() {
    const { player } = this;
    return el("div", "vg-group", {}, [
      iconButton("start", "To the start (Home)", () => player.go(0)),
      iconButton("back", "One event back (left arrow)", () => player.stepBy(-1)),
      this.playButton,
      iconButton("forward", "One event forward (right arrow)", () => player.stepBy(1)),
      iconButton("end", "To the end (End)", () => player.go(player.tracks.n - 1)),
      el("span", "vg-speed", {}, [iconButton("slower", "Slower (-)", () => this.setSpeed(-1)), this.rate, iconButton("faster", "Faster (+)", () => this.setSpeed(1))])
    ]);
  }
  makeSlider() {
    return el("div", "vg-slide", {}, [this.slider, this.strip]);
  }
  makeCount() {
    return el("label", "vg-count", {}, [this.number, el("span", "vg-soft vg-tabular", { text: `of 0–${formatCount(this.player.tracks.n - 1)}` })]);
  }
  makeKin() {
    const { player } = this;
    const pair = (word, what, keys) => el("span", "vg-pair", { role: "group", "aria-label": `Same ${word}` }, [
      iconButton("left", `Previous event of this ${word} (${keys[0]})`, () => player.goToKin(what, -1)),
      el("span", "vg-pair-word", { text: word }),
      iconButton("right", `Next event of this ${word} (${keys[1]})`, () => player.goToKin(what, 1))
    ]);
    const help = iconButton("help", "Keys (?)", () => player.help.toggle());
    return el("div", "vg-group vg-kin", {}, [pair("kind", "kind", "pn"), pair("tensor", "tensor", "Tt"), pair("node", "node", ",."), help]);
  }
  /** @param {KeyboardEvent} event */
  onNumber(event) {
    if (event.key === "Enter") {
      const wanted = Number(this.number.value.replace(/[\s\u2009,_]/g, ""));
      if (Number.isFinite(wanted) && this.number.value.trim() !== "") this.player.go(Math.round(wanted));
      else this.showStep(this.player.step);
      this.player.root.focus();
    } else if (event.key === "Escape") {
      this.player.root.focus();
    } else {
      return;
    }
    event.stopPropagation();
    event.preventDefault();
  }
  askNumber() {
    this.number.focus();
    this.number.select();
  }
  /** @param {number} step */
  draw(step) {
    if (document.activeElement !== this.number) this.showStep(step);
    const value = String(step);
    if (this.slider.value !== value) this.slider.value = value;
    this.slider.style.setProperty("--vg-done", `${100 * step / Math.max(1, this.player.tracks.n - 1)}%`);
  }
  /** @param {number} step */
  showStep(step) {
    const text = String(step);
    if (this.number.value !== text) this.number.value = text;
  }
  // ---- playing
  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }
  play() {
    const { player } = this;
    if (player.step >= player.tracks.n - 1) player.go(0, false);
    this.last = performance.now();
    this.due = 0;
    setIcon(this.playButton, "pause", "Pause (space)");
    const tick = (now) => {
      this.due += (now - this.last) / 1e3 * SPEEDS[this.speed];
      this.last = now;
      const steps = Math.floor(this.due);
      this.due -= steps;
      if (steps > 0) player.go(player.step + steps, false);
      if (player.step >= player.tracks.n - 1) this.pause();
      else if (this.playing) this.playing = requestAnimationFrame(tick);
    };
    this.playing = requestAnimationFrame(tick);
  }
  pause() {
    if (this.playing) cancelAnimationFrame(this.playing);
    this.playing = 0;
    setIcon(this.playButton, "play", "Play (space)");
  }
  /** @param {number} by */
  setSpeed(by) {
    this.speed = Math.max(0, Math.min(SPEEDS.length - 1, this.speed + by));
    this.showSpeed();
  }
  showSpeed() {
    setText(this.rate, `${SPEEDS[this.speed]}/s`);
  }
  /** Paints what kinds of events lie where. Called once the first picture stands, and when the theme changes. */
  paintStrip() {
    const { tracks, palette } = this.player;
    const columns = 1e3;
    this.strip.width = columns;
    this.strip.height = STRIP3;
    const c = this.strip.getContext("2d");
    if (!c) return;
    const groups = tracks.kinds.map((kind) => areaGroup(kind.area));
    const counts = new Uint32Array(AREA_GROUPS.length);
    for (let x = 0; x < columns; x++) {
      counts.fill(0);
      const to = Math.max(Math.floor((x + 1) * tracks.n / columns), Math.floor(x * tracks.n / columns) + 1);
      for (let i = Math.floor(x * tracks.n / columns); i < to && i < tracks.n; i++) counts[groups[tracks.kind[i]]]++;
      c.fillStyle = palette.areas[counts.indexOf(Math.max(...counts))];
      c.fillRect(x, 0, 1, STRIP3);
    }
    this.strip.title = AREA_GROUPS.slice(1).join(", ");
  }
  stop() {
    this.pause();
  }
};

// twins.js
function twinOffer({ tracks, step }, tensor, direction) {
  const names = tracks.columns.column("tensor.name");
  const name = names[tensor];
  if (name < 0) return null;
  const twins = Array.from(names, (_, t) => t).filter((t) => t !== tensor && names[t] === name);
  if (!twins.length) return null;
  const to = tracks.find(step, direction, (i) => twins.some((t) => tracks.speaksOf(i, t)));
  const twin = to < 0 ? -1 : twins.find((t) => tracks.speaksOf(to, t)) ?? -1;
  return twin < 0 ? null : { tensor, twin, to, from: step, direction };
}
function nameAmongTwins({ tracks, relations }, tensor) {
  const names = tracks.columns.column("tensor.name");
  const graph = relations.home.graph[tensor];
  const name = visible(tracks.name(tensor));
  const alone = names[tensor] < 0 || names.indexOf(names[tensor]) === names.lastIndexOf(names[tensor]);
  return alone || graph < 0 ? name : `${name} of graph ${graph}`;
}
function offerWords({ tracks, relations }, { tensor, twin, direction }) {
  const graph = (t) => relations.home.graph[t];
  const name = visible(tracks.name(tensor));
  const of = graph(tensor) >= 0 ? `${name} of graph ${graph(tensor)}` : `this ${name}`;
  const other = graph(twin) >= 0 && graph(twin) !== graph(tensor) ? `the ${name} of graph ${graph(twin)}` : `another ${name}`;
  const [when, key] = direction > 0 ? ["later", "t"] : ["earlier", "T"];
  return `No ${when} event names ${of}. Press ${key} again to go on with ${other}.`;
}
function wayOut(direction, selected) {
  if (direction < 0) return " t goes forward.";
  return selected ? " T goes back; Home, then t, begins at the first." : " T goes back.";
}

// warm.js
var PAUSE_MS = 60;
function pieces(player) {
  const { tracks, relations } = player;
  const middle = tracks.n >> 1;
  const of = (step) => Math.max(0, relations.tensorAt(step));
  const events = (
    /** @type {const} */
    ["TensorAssigned", "SearchBegin", "TensorFreed", "ParentReused", "TensorPlaced", "NodeBegin", "NodeSkipped"]
  );
  return [
    () => relations.focus,
    () => relations.plans,
    () => relations.sources(0),
    () => relations.consumers(0),
    ...["block", "chunk", "place"].map((name) => () => tracks.track(name).ends),
    ...events.map((kind) => () => eventsOf2(player, kind, "tensor", 0)),
    () => rowAt(player, "node", of(middle), middle),
    () => placeAt(player, of(middle), middle),
    () => valuesAt(player, of(middle), middle),
    () => lifeAt(player, of(middle), middle),
    () => searchAt(tracks, middle),
    () => liveSet(player, 0),
    ...relations.plans.map((plan) => () => everUsed(player, plan))
  ];
}
function warm(player) {
  const todo = [() => void todo.push(...pieces(player))];
  const { requestIdleCallback: idle } = (
    /** @type {{requestIdleCallback?: typeof requestIdleCallback}} */
    globalThis
  );
  let handle = 0;
  const work = (deadline) => {
    do
      todo.shift()?.();
    while (todo.length && (deadline?.timeRemaining() ?? 0) > 4);
    if (todo.length) again();
  };
  const again = () => {
    handle = idle ? idle(work, { timeout: 2e3 }) : setTimeout(work, PAUSE_MS);
  };
  again();
  return () => {
    todo.length = 0;
    if (idle) cancelIdleCallback(handle);
    else clearTimeout(handle);
  };
}

// compare_head.js
function arrows(text) {
  return visible(text).replaceAll("->", "→");
}
var CompareHead = class {
  /** @param {any} meta */
  constructor(meta) {
    const [first, ...rest] = meta.summary;
    const [set, did] = halves(first, meta.params.length > 0);
    const claim = el("h1", "vg-cmp-claim", {}, [
      ...set ? [el("span", "vg-cmp-set", { text: arrows(set) })] : [],
      el("span", "vg-cmp-did", { text: arrows(did) })
    ]);
    const figures = el("div", "vg-cmp-figures", {}, meta.differ ? meta.figures.map(card) : []);
    const said = el("ul", "vg-cmp-said", {}, rest.map((line) => el("li", "", { text: arrows(line) })));
    this.element = el("header", "vg-cmp-head", {}, [claim, figures, said]);
  }
};
function halves(line, named) {
  const at = named ? line.lastIndexOf(": ") : -1;
  return at < 0 ? ["", line] : [line.slice(0, at), line.slice(at + 2)];
}
function card([title2, a, b, difference]) {
  const same = difference === "same" || difference === "";
  const values = same ? [el("b", "", { text: b })] : [el("span", "vg-cmp-was", { text: a }), el("span", "vg-cmp-arrow", { text: "→" }), el("b", "", { text: b })];
  return el("div", same ? "vg-cmp-figure vg-cmp-same" : "vg-cmp-figure", {}, [
    el("div", "vg-dt", { role: "term", text: title2 }),
    el("div", "vg-dd vg-cmp-values", { role: "definition" }, values),
    el("div", "vg-dd vg-cmp-by", { role: "definition", text: same ? "the same" : difference.replaceAll("-", "−") })
  ]);
}

// compare_strip.js
var HEIGHT2 = 8;
var DifferenceStrip = class {
  /** @param {number} n events @param {Int32Array} paired those with a counterpart, rising @param {string} label
   * @param {(step: number) => void} go */
  constructor(n, paired, label, go) {
    this.n = n;
    this.paired = paired;
    this.starts = runStarts(n, paired);
    this.width = 0;
    this.canvas = el("canvas", "vg-cmp-strip-canvas", { "aria-hidden": "true" });
    this.pin = el("span", "vg-cmp-pin");
    this.element = el("div", "vg-cmp-strip", { title: "Where events have no counterpart on the other side" }, [this.canvas, this.pin]);
    this.element.addEventListener("click", (event) => {
      const box = this.element.getBoundingClientRect();
      go(Math.round((event.clientX - box.left) / box.width * (n - 1)));
    });
  }
  /** @param {number} width @param {Palette} palette */
  paint(width, palette) {
    this.width = width;
    const ratio = globalThis.devicePixelRatio || 1;
    const { canvas, paired, n } = this;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.round(HEIGHT2 * ratio);
    const c = (
      /** @type {CanvasRenderingContext2D} */
      canvas.getContext("2d")
    );
    c.fillStyle = palette.line;
    c.fillRect(0, canvas.height / 2 - ratio / 2, canvas.width, ratio);
    c.fillStyle = palette.source;
    for (let x = 0, from = 0; x < canvas.width; x++) {
      const [begin, end] = [Math.floor(x * n / canvas.width), Math.ceil((x + 1) * n / canvas.width)];
      while (from < paired.length && paired[from] < begin) from++;
      const to = upperBound(paired, end - 1);
      const share2 = 1 - (to - from) / Math.max(1, end - begin);
      if (share2 <= 0) continue;
      const height = Math.max(2 * ratio, share2 * canvas.height);
      c.fillRect(x, (canvas.height - height) / 2, 1, height);
    }
  }
  /** @param {number} step */
  setStep(step) {
    this.pin.style.transform = `translateX(${(step / Math.max(1, this.n - 1) * this.width).toFixed(1)}px)`;
  }
  /** The next run's first event in `direction` from `step`; -1 for none. @param {number} step @param {number} direction */
  next(step, direction) {
    const after = upperBound(this.starts, step);
    const k = direction > 0 ? after : after - 1 - (this.starts[after - 1] === step ? 1 : 0);
    return k >= 0 && k < this.starts.length ? this.starts[k] : -1;
  }
};
function runStarts(n, paired) {
  const starts = [];
  for (let k = -1; k < paired.length; k++) {
    const begin = k < 0 ? 0 : paired[k] + 1;
    const end = k + 1 < paired.length ? paired[k + 1] : n;
    if (begin < end) starts.push(begin);
  }
  return Int32Array.from(starts);
}

// compare_table.js
var ROW5 = 24;
var SIGNS = { removed: "−", added: "+", changed: "≠", grown: "▲", shrunk: "▼", longer: "↔", shorter: "↔", moved: "↕" };
var WORDS = { longer: "lives longer", shorter: "lives shorter" };
var CompareTable = class {
  /** @param {any} meta @param {(members: number[][], k: number) => void} show one of a row's tensors, in both
   * @param {() => void} filtered told when other rows stand */
  constructor(meta, show, filtered) {
    this.show = show;
    this.filtered = filtered;
    this.pairs = meta.pairs;
    this.kinds = meta.kinds;
    this.pair = this.pairs[meta.main];
    this.kind = "";
    this.text = "";
    this.shown = [null, -1];
    this.rows = [];
    this.list = new VirtualList({
      label: "Differences",
      rowHeight: ROW5,
      makeRow: () => el("div", "vg-grid-row vg-cmp-row", {}, ["vg-cmp-kind", "vg-mono", "vg-cmp-op", "vg-soft", "vg-soft vg-cmp-how", "vg-right"].map((c) => el("span", c))),
      fillRow: (row, index) => this.fillRow(row, this.rows[index]),
      choose: (index) => this.choose(index),
      className: "vg-cmp-list"
    });
    this.list.element.addEventListener("keydown", (event) => this.onKey(event));
    this.chips = el("div", "vg-cmp-chips", { role: "group", "aria-label": "Which differences" });
    this.choice = el("select", "vg-select", { "aria-label": "Which graph" }, this.pairs.map((pair, k) => el("option", "", { value: String(k), text: visible(pair.role) })));
    this.choice.value = String(meta.main);
    this.choice.addEventListener("change", () => this.setPair(Number(this.choice.value)));
    this.search = el("input", "vg-search", { type: "search", placeholder: "name or op", "aria-label": "Filter the differences by name or op" });
    this.search.addEventListener("input", () => this.setText(this.search.value));
    this.empty = el("p", "vg-empty", { text: "Nothing differs here." });
    const head = ["what", "tensor", "op", "layer", "how", "bytes each"].map((title2) => el("span", title2 === "bytes each" ? "vg-right" : `vg-cmp-${title2}`, { text: title2 }));
    this.element = el("section", "vg-cmp-table", { "aria-label": "Differences" }, [
      el("div", "vg-cmp-tools", {}, [this.choice, this.chips, this.search]),
      el("div", "vg-grid-head vg-cmp-columns", {}, head),
      this.empty,
      this.list.element
    ]);
    this.element.hidden = !this.pairs.some((pair) => pair.rows.length);
    this.setPair(meta.main);
  }
  /** @param {number} k */
  setPair(k) {
    this.pair = this.pairs[k];
    if (!this.pair) return;
    if (!this.pair.counts[this.kind]) this.kind = "";
    const all = this.pair.rows.reduce((sum, row) => sum + row.members.length, 0);
    const kinds = this.kinds.filter((kind) => this.pair.counts[kind]);
    this.chips.replaceChildren(this.chip("", "all", all), ...kinds.map((kind) => this.chip(kind, WORDS[kind] ?? kind, this.pair.counts[kind])));
    this.filter();
  }
  /** @param {string} kind @param {string} word @param {number} n */
  chip(kind, word, n) {
    const made = el("button", "vg-cmp-chip", { type: "button", "data-kind": kind, "aria-pressed": String(kind === this.kind) });
    made.append(...kind ? [el("span", `vg-cmp-sign vg-cmp-${kind}`, { text: SIGNS[kind], "aria-hidden": "true" })] : [], word, el("span", "vg-cmp-n", { text: formatCount(n) }));
    made.addEventListener("click", () => {
      this.kind = this.kind === kind ? "" : kind;
      for (const chip of this.chips.children) chip.setAttribute("aria-pressed", String(
        /** @type {HTMLElement} */
        chip.dataset.kind === this.kind
      ));
      this.filter();
    });
    return made;
  }
  /** @param {string} text */
  setText(text) {
    this.text = text.trim().toLowerCase();
    this.filter();
  }
  filter() {
    const { kind, text } = this;
    this.rows = this.pair.rows.filter((row) => (!kind || row.kinds.includes(kind)) && (!text || `${row.name} ${row.op}`.toLowerCase().includes(text)));
    this.list.setCurrent(this.rows.indexOf(
      /** @type {ChangeRow} */
      this.shown[0]
    ));
    this.list.setLength(this.rows.length);
    this.empty.hidden = this.rows.length > 0;
    this.filtered();
  }
  /** What the rows that stand say of the tensors of one side: of several differences the one that is asked for, else the
   * first. @param {0 | 1} side @returns {Map<number, import("./marks.js").Mark>} */
  marks(side) {
    const marks = /* @__PURE__ */ new Map();
    for (const row of this.rows) for (const members of row.members) if (members[side] >= 0) marks.set(members[side], this.kind || row.kinds[0]);
    return marks;
  }
  /** @param {HTMLElement} element @param {ChangeRow} row */
  fillRow(element, row) {
    const [kind, name, op, layers, details, bytes] = (
      /** @type {any} */
      element.children
    );
    const first = row.kinds[0];
    kind.replaceChildren(el("span", `vg-cmp-sign vg-cmp-${first}`, { text: SIGNS[first], "aria-hidden": "true" }), row.kinds.map((k) => WORDS[k] ?? k).join(", "));
    kind.title = row.kinds.map((k) => WORDS[k] ?? k).join(", ");
    setText(name, visible(row.name) || "unnamed");
    name.title = name.textContent;
    setText(op, row.op === "NONE" ? "" : row.op);
    setText(layers, row.members.length > 1 ? `${row.layers} (${row.members.length})` : row.layers);
    setText(details, arrows(row.details));
    details.title = details.textContent;
    setText(bytes, row.bytes ? `${row.bytes < 0 ? "−" : "+"}${formatBytes(Math.abs(row.bytes))}` : "");
  }
  /** @param {number} index */
  choose(index) {
    const row = this.rows[index];
    if (!row) return;
    const k = this.shown[0] === row ? (this.shown[1] + 1) % row.members.length : 0;
    this.shown = [row, k];
    this.list.setCurrent(index);
    this.show(row.members, k);
  }
  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = this.list.current;
    if (event.key === "Enter" && at >= 0) this.choose(at);
    else if (step) {
      const to = Math.max(0, Math.min(this.rows.length - 1, at + step));
      this.list.show(to);
      if (to !== at) this.choose(to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
  stop() {
    this.list.stop();
  }
};

// compare.js
var NARROW3 = 900;
var HASH_MS = 150;
var PANES = ["graph", "timeline", "map", "events"];
var Compare = class {
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
      iconButton("right", "Next event without a counterpart (])", () => this.jump(1))
    ]);
    this.root.append(this.head.element, this.table.element, el("div", "vg-cmp-bar", {}, [this.link, this.jumps, this.status]), sides);
    this.root.classList.toggle("vg-cmp-fill", options.hash ?? false);
    this.sizer = new ResizeObserver((entries) => this.setWidth(entries[entries.length - 1].contentRect.width));
    const column = (name) => content.column(name);
    this.left = this.makeSide("left", options.left, [column("event.a"), column("event.b"), column("twin.a")], sides);
    this.right = this.makeSide("right", options.right, [column("event.b"), column("event.a"), column("twin.b")], sides);
    this.active = this.left;
    this.tensor = -1;
    this.mark();
    this.setWidth(this.root.clientWidth);
    this.sizer.observe(this.root);
    this.onKey = (event) => this.key(event);
    this.keyHost = options.hash ? document : this.root;
    this.keyHost.addEventListener(
      "keydown",
      /** @type {EventListener} */
      this.onKey
    );
    this.onHash = () => this.readHash();
    if (options.hash) globalThis.addEventListener("hashchange", this.onHash);
    this.follow(this.left);
    this.readHash();
  }
  /** @param {number} width */
  setWidth(width) {
    this.root.classList.toggle("vg-cmp-narrow", width < NARROW3);
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
    const set = this.meta.params.map((p) => `${p[0]} ${p[name === "left" ? 1 : 2]}`).join(", ");
    const tracks = new Tracks(half.tracks);
    const [n, all] = [formatCount(tracks.n - here.length), formatCount(tracks.n)];
    const alone = el("span", "vg-cmp-alone vg-tabular", { text: tracks.n > here.length ? `${n} of ${all} events without a counterpart` : "" });
    const title2 = el("h2", "vg-cmp-label", {}, [el("b", "", { text: label }), el("span", "vg-soft", { text: visible(set) }), alone, mark]);
    const strip = new DifferenceStrip(tracks.n, here, label, (to) => {
      side.player.setStep(to);
      this.stepped(side);
    });
    into.append(el("section", `vg-cmp-side vg-cmp-${name}`, { "aria-label": label }, [title2, strip.element, host]));
    const step = name === "left" ? this.options.step : 0;
    const side = {
      name,
      label,
      mark,
      here,
      there,
      twin,
      tracks,
      strip,
      player: create({
        ...half,
        host,
        step,
        theme: this.options.theme,
        panes: this.options.panes ?? PANES,
        fill: false,
        onStep: () => this.stepped(side),
        onSelect: (tensor) => this.selected(side, tensor)
      }),
      focus: () => host.querySelector(".vg-player")
    };
    host.addEventListener("focusin", () => this.active = side);
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
    if (side === this.left || this.linked) this.keepTensor(side === this.left ? tensor : side.twin[tensor] ?? -1);
    if (!this.linked) return;
    this.moving = true;
    this.other(side).player.select(tensor >= 0 ? side.twin[tensor] ?? -1 : -1);
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
    const target = (
      /** @type {HTMLElement} */
      event.target
    );
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
    if (!player || player.contains(target) || (event.key === " " || event.key === "Enter") && target.matches("button")) return;
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
    this.keyHost.removeEventListener(
      "keydown",
      /** @type {EventListener} */
      this.onKey
    );
    this.sizer.disconnect();
    this.table.stop();
    this.left.player.destroy();
    this.right.player.destroy();
    this.theme.stop();
    this.root.remove();
  }
};
function placedAt(tracks, tensor) {
  const life = tracks.track("life");
  const row = life.col("tensor").indexOf(tensor);
  const created = tracks.columns.column("tensor.created")[tensor] ?? 0;
  return Math.max(0, row < 0 ? created : life.a[row]);
}
function compare(options) {
  try {
    const shown = new Compare(options);
    return {
      step: () => shown.left.player.step(),
      setStep: (i) => {
        shown.left.player.setStep(i);
        shown.follow(shown.left);
      },
      destroy: () => shown.destroy()
    };
  } catch (error) {
    const text = `These traces cannot be compared here: ${error instanceof Error ? error.message : error}`;
    options.host.replaceChildren(el("div", "vg-broken", { role: "alert", text }));
    return { step: () => 0, setStep: () => {
    }, destroy: () => options.host.replaceChildren() };
  }
}

// live_panel.js
var MOST_SEED = 2 ** 32 - 1;
var LivePanel = class {
  /** @param {Options} options */
  constructor({ host, theme, settings, act }) {
    this.act = act;
    this.root = el("div", "vg-player vg-livepanel", { role: "group", "aria-label": "Live run" });
    host.append(el("style", "", { text: css }), this.root);
    this.theme = watchTheme(this.root, theme, () => {
    });
    this.tokens = [];
    this.prompt = el("textarea", "vg-live-prompt", { rows: "2", "aria-label": "Prompt", placeholder: "a prompt", spellcheck: "false" });
    this.prompt.value = settings.prompt;
    this.fields = {
      max_tokens: this.number("tokens", "How many tokens to make", settings.max_tokens, 1, 4096, 1),
      temp: this.number("temperature", "0 takes the likeliest token each time", settings.temp, 0, 10, 0.1),
      seed: this.number("seed", "The same seed draws the same tokens", settings.seed, 0, MOST_SEED, 1)
    };
    this.run = this.button("Run", "Read the prompt in a fresh context (Ctrl+Enter)", "run", "vg-play");
    this.stop = this.button("Stop", "Stop after the token that is being made", "stop");
    this.resume = this.button("Continue", "Go on where it stopped, in the same context", "resume");
    this.status = el("span", "vg-live-status", { role: "status" });
    this.error = el("div", "vg-live-error", { role: "alert" });
    this.read = el("span", "vg-live-read");
    this.made = el("span", "vg-live-made", { role: "listbox", "aria-label": "Sampled tokens" });
    this.text = el("div", "vg-live-text", {}, [this.read, this.made]);
    this.build();
    this.card = new ChoiceCard(this.root);
    this.listen();
  }
  build() {
    const { max_tokens, temp, seed } = this.fields;
    const labels = [max_tokens, temp, seed].map((field) => (
      /** @type {HTMLElement} */
      field.parentElement
    ));
    this.root.append(
      el("div", "vg-live-head", {}, [
        this.prompt,
        el("div", "vg-live-row", {}, [el("div", "vg-live-buttons", {}, [this.run, this.stop, this.resume]), this.status, el("div", "vg-live-fields", {}, labels)])
      ]),
      this.error,
      this.text
    );
  }
  /** @param {string} name @param {string} title @param {number} value @param {number} min @param {number} max @param {number} step */
  number(name, title2, value, min, max, step) {
    const input = el("input", "vg-live-number", { type: "number", title: title2, value: String(value), min: String(min), max: String(max), step: String(step) });
    el("label", "vg-live-field", {}, [el("span", "", { text: name }), input]);
    return input;
  }
  /** @param {string} text @param {string} title @param {string} what @param {string} [more] a class */
  button(text, title2, what, more2 = "") {
    const made = el("button", `vg-button vg-text-button ${more2}`, { type: "button", title: title2, text });
    made.addEventListener("click", () => this.ask(what));
    return made;
  }
  /** @param {string} what */
  ask(what) {
    this.act(what, what === "stop" ? {} : this.settings());
  }
  /** What the fields say; what is no number, or out of bounds, becomes the nearest that is. @returns {Settings} */
  settings() {
    const read = (input, otherwise2) => {
      const value = input.value.trim() === "" || !Number.isFinite(input.valueAsNumber) ? otherwise2 : input.valueAsNumber;
      const within2 = Math.min(Number(input.max), Math.max(Number(input.min), input.step === "1" ? Math.round(value) : value));
      input.value = String(within2);
      return within2;
    };
    const { max_tokens, temp, seed } = this.fields;
    return { prompt: this.prompt.value, max_tokens: read(max_tokens, 24), temp: read(temp, 0.8), seed: read(seed, 1) };
  }
  listen() {
    this.root.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !this.run.disabled) {
        event.preventDefault();
        this.ask("run");
      }
    });
    const token = (event) => {
      const found = (
        /** @type {HTMLElement} */
        event.target.closest(".vg-token")
      );
      return found ? (
        /** @type {HTMLElement} */
        found
      ) : null;
    };
    this.made.addEventListener("click", (event) => {
      const at = token(event);
      if (at) this.act("show", { token: Number(at.dataset.token) });
    });
    for (const kind of ["pointerover", "focusin"]) {
      this.made.addEventListener(kind, (event) => {
        const at = token(event);
        if (at) this.card.show(at, this.tokens[Number(at.dataset.token)]);
      });
    }
    for (const kind of ["pointerleave", "focusout"]) this.made.addEventListener(kind, () => this.card.hide());
    this.made.addEventListener("keydown", (event) => this.onKey(event));
  }
  /** One stop of the tab key for all tokens; arrows go from one to the next. @param {KeyboardEvent} event */
  onKey(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (by === void 0) return;
    event.preventDefault();
    const at = [...this.made.children].indexOf(
      /** @type {Element} */
      document.activeElement
    );
    const to = Math.max(0, Math.min(this.tokens.length - 1, at + by));
    this.focusable(to);
    this.made.children[to].focus();
  }
  /** @param {number} k */
  focusable(k) {
    for (const child of this.made.querySelectorAll("[tabindex='0']")) child.tabIndex = -1;
    const at = (
      /** @type {HTMLElement | undefined} */
      this.made.children[k]
    );
    if (at) at.tabIndex = 0;
  }
  /** Tokens from number `from` on. @param {number} from @param {Sampled[]} tokens */
  add(from, tokens) {
    const bottom = this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 30;
    this.tokens.length = Math.min(from, this.tokens.length);
    while (this.made.children.length > from) this.made.lastChild.remove();
    for (const token of tokens) {
      const made = el("button", "vg-token vg-sampled", {
        type: "button",
        role: "option",
        tabindex: "-1",
        "data-token": String(this.tokens.length),
        text: token.text || `#${token.id}`
      });
      made.setAttribute("aria-label", `${visiblePiece(token.text)}: ${aboutToken(token)}`);
      this.made.append(made);
      this.tokens.push(token);
    }
    if (!this.made.querySelector("[tabindex='0']")) this.focusable(0);
    if (bottom) this.text.scrollTop = this.text.scrollHeight;
  }
  /** @param {State} state */
  update({ running, resumable, status, error, shown, read }) {
    this.run.disabled = running;
    this.stop.disabled = !running;
    this.resume.disabled = !resumable;
    setText(this.status, status);
    setText(this.error, error);
    this.error.hidden = !error;
    setText(this.read, read);
    this.text.hidden = !read && !this.tokens.length;
    const children = [...this.made.children];
    for (const child of this.made.querySelectorAll(".vg-now")) if (children[shown] !== child) child.classList.remove("vg-now");
    children[shown]?.classList.add("vg-now");
    children.forEach((child, k) => child.setAttribute("aria-selected", String(k === shown)));
  }
  destroy() {
    this.theme.stop();
    this.root.remove();
  }
};
function panel(options) {
  return new LivePanel(options);
}

// player.js
var PANES2 = ["tokens", "graph", "map", "timeline", "events", "tables"];
var WORDS2 = /* @__PURE__ */ new Set(["tokens", "events"]);
var HISTORY = 200;
var ADDRESS_MS = 150;
var PANE_HEAD = 34;
var [MINI, TINY, WIDE3, ROOMY] = [480, 660, 1e3, 1200];
var Player = class {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.tracks = new Tracks(options.tracks);
    if (!this.tracks.n) throw new Error("tracks: no events");
    this.layout = options.layout && Array.isArray(options.layout.graphs) ? options.layout : { graphs: [] };
    this.relations = new Relations(this.tracks);
    this.step = this.clamp(options.step ?? 0);
    this.selected = -1;
    this.offer = null;
    this.history = [];
    this.root = el("div", "vg-player", {
      tabindex: "0",
      role: "application",
      "aria-label": "vizggml player. Press question mark for the keys.",
      "data-lm-suppress-shortcuts": "true"
    });
    this.root.append(el("style", "", { text: css }));
    this.theme = watchTheme(this.root, options.theme ?? "auto", () => this.themeChanged());
    options.host.replaceChildren(this.root);
    const ui = getComputedStyle(this.root).fontFamily || "system-ui";
    this.fonts = { ui, mono: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" };
    this.tip = new Tip(this.root);
    this.notice = new Notice(this.root);
    this.help = new Help(this);
    this.transport = new Transport(this);
    this.now = new Now(this);
    this.dirty = /* @__PURE__ */ new Set();
    this.frame = 0;
    this.drawn = false;
    this.expanded = "";
    this.grid = el("div", "vg-panes");
    this.frames = /* @__PURE__ */ new Map();
    this.unseen = /* @__PURE__ */ new Set();
    this.watcher = new IntersectionObserver((entries) => this.onSight(entries), { rootMargin: "80px" });
    this.sizer = new ResizeObserver((entries) => {
      const { width, height } = entries[entries.length - 1].contentRect;
      this.setSize(width, height);
    });
    this.ready = false;
    this.headDirty = true;
    this.rest = new Rest();
    this.panes = makePanes(this, options.panes ?? null);
    this.groups = new Groups(this, options.panes ? [] : this.panes.map((pane) => pane.name));
    this.width = 0;
    this.height = 0;
    this.unlisten = listenKeys(this, options.hash ?? false);
    this.onHash = () => this.readHash();
    this.build();
    this.ready = true;
    this.readHash();
    this.redrawAll();
    this.later = setTimeout(() => {
      this.transport.paintStrip();
      this.cool = warm(this);
    }, 50);
    this.cool = () => {
    };
  }
  get palette() {
    return this.theme.palette;
  }
  build() {
    const { root, options } = this;
    const head = el("header", "vg-head", {}, [this.transport.element, this.now.element]);
    for (const pane of this.panes) {
      this.grid.append(this.makeFrame(pane));
      if (pane.name === "graph") this.grid.append(this.groups.element);
    }
    root.append(head, this.grid, this.help.element);
    this.setSize(root.clientWidth, root.clientHeight);
    this.sizer.observe(root);
    root.dataset.vgPanes = this.panes.map((p) => p.name).join(" ");
    root.classList.toggle("vg-fill", options.fill ?? options.hash ?? false);
    root.classList.toggle("vg-single", this.panes.length === 1);
    root.addEventListener("pointerdown", (event) => {
      if (!/** @type {HTMLElement} */
      event.target.closest("button, input, select, [tabindex]:not(.vg-player)")) root.focus({ preventScroll: true });
    });
    if (options.hash) globalThis.addEventListener("hashchange", this.onHash);
  }
  /** One column or two. Classes, not container queries: those would make every change of style wait for a layout.
   * @param {number} width @param {number} height */
  setSize(width, height) {
    [this.width, this.height] = [width, height];
    this.root.classList.toggle("vg-wide", width >= WIDE3);
    this.root.classList.toggle("vg-narrow", width < WIDE3);
    this.root.classList.toggle("vg-tiny", this.tiny);
    this.root.classList.toggle("vg-mini", width < MINI);
    this.root.classList.toggle("vg-snug", width < ROOMY);
    this.groups.turn(width < WIDE3 && height < HIGH && this.pane("graph") !== void 0);
    this.root.classList.toggle("vg-grouped", this.groups.on);
    this.root.classList.toggle("vg-short", this.short);
    this.rearrange();
  }
  get tiny() {
    return this.width < TINY;
  }
  /** Whether there is no room for what a pane adds to its picture. */
  get short() {
    return this.groups.on && this.height < SHORT2 && !this.expanded;
  }
  /** Which panes stand where. */
  rearrange() {
    const { groups, panes } = this;
    for (const [pane, frame2] of this.frames) {
      const hidden = this.expanded ? pane.name !== this.expanded : groups.hides(pane.name);
      if (frame2.hidden !== hidden) frame2.hidden = hidden;
    }
    const least = Object.fromEntries(panes.map((pane) => [pane.name, pane.tall ? pane.tall + PANE_HEAD : 0]));
    const names = panes.map((pane) => pane.name).filter((name) => !groups.hides(name));
    Object.assign(this.grid.style, groups.on ? arrangeGroup(names, this.grid.clientHeight, (room) => this.pane("map")?.wants(room - PANE_HEAD) + PANE_HEAD) : arrange(names, this.width >= WIDE3, least));
    this.redrawAll();
  }
  /** @param {Pane} pane */
  makeFrame(pane) {
    const expand = iconButton("expand", `Show ${pane.title} alone`, () => this.expand(pane));
    expand.classList.add("vg-expand");
    const frame2 = el("section", `vg-pane vg-pane-${pane.name}`, { "aria-label": pane.title }, [
      el("header", "vg-pane-head", {}, [el("h2", "vg-title", { text: pane.title }), el("div", "vg-tools", {}, [...pane.tools, expand])]),
      pane.body
    ]);
    frame2.style.gridArea = pane.name;
    this.frames.set(pane, frame2);
    this.watcher.observe(frame2);
    return frame2;
  }
  /** The pane of that name, if it is shown. @param {string} name @returns {any} */
  pane(name) {
    return this.panes.find((pane) => pane.name === name);
  }
  /** The pane of that name, brought into sight where others stand before it. @param {string} name @returns {any} */
  bring(name) {
    this.groups.bring(name);
    return this.pane(name);
  }
  /** Shows the k-th group of panes under the graph, where one is shown at a time. @param {number} k */
  showGroup(k) {
    if (this.groups.on) this.groups.choose(this.groups.groups[k]);
    else this.notice.say("All panes are shown.");
  }
  /** Shows one pane alone, or all again. @param {Pane} pane */
  expand(pane) {
    this.expanded = this.expanded === pane.name ? "" : pane.name;
    for (const [other, frame2] of this.frames) {
      frame2.classList.toggle("vg-alone", other.name === this.expanded);
      const button = (
        /** @type {HTMLElement} */
        frame2.querySelector(".vg-expand")
      );
      const alone = other.name === this.expanded;
      setIcon(button, alone ? "shrink" : "expand", alone ? "Show all panes" : `Show ${other.title} alone`);
    }
    this.root.classList.toggle("vg-one", this.expanded !== "");
    this.root.classList.toggle("vg-short", this.short);
    this.rearrange();
  }
  // ---- moving
  /** @param {number} step */
  clamp(step) {
    const whole2 = Math.round(Number(step)) || 0;
    return Math.max(0, Math.min(this.tracks.n - 1, whole2));
  }
  /** To event `step`. @param {number} step @param {boolean} [remember] whether "back" returns here from there */
  go(step, remember = true) {
    const to = this.clamp(step);
    if (to === this.step) return;
    if (remember && Math.abs(to - this.step) > 1) {
      this.history.push(this.step);
      if (this.history.length > HISTORY) this.history.shift();
    }
    this.moveTo(to);
    this.options.onStep?.(to);
  }
  /** @param {number} by */
  stepBy(by) {
    this.go(this.step + by, false);
  }
  /** @param {number} to */
  moveTo(to) {
    this.notice.hide();
    this.step = to;
    this.redrawAll();
    if (this.options.hash) this.writeHash();
  }
  goToCause() {
    const cause = this.tracks.cause[this.step];
    if (cause >= 0) this.go(cause);
    else this.notice.say("Nothing in this trace caused this event.");
  }
  goBack() {
    const to = this.history.pop();
    if (to === void 0) return this.notice.say("There is nowhere to go back to: you have not jumped yet.");
    this.moveTo(to);
    this.options.onStep?.(to);
  }
  /** To the next event of the same kind, tensor or node. @param {"kind" | "tensor" | "node"} what @param {number} direction */
  goToKin(what, direction) {
    const { tracks, step } = this;
    const kind = tracks.kind[step];
    const node = tracks.node[step];
    const tensor = this.selected >= 0 ? this.selected : tracks.tensorOf(step);
    const same = (i) => what === "kind" ? tracks.kind[i] === kind : what === "node" ? tracks.node[i] === node : tracks.speaksOf(i, tensor);
    if (what === "node" && node < 0 || what === "tensor" && tensor < 0) return this.notice.say(`This event is about no ${what}.`);
    const to = tracks.find(step, direction, same);
    if (to >= 0) return this.go(to);
    if (what === "tensor" && this.goOn(tensor, direction)) return;
    const more2 = what === "tensor" ? wayOut(direction, this.selected >= 0) : "";
    const which = what === "kind" ? `of the kind ${tracks.kindOf(step).name}` : `${what === "tensor" ? "that names" : "at the node"} ${nameAmongTwins(this, what === "tensor" ? tensor : node)}`;
    this.notice.say(`No ${direction > 0 ? "later" : "earlier"} event ${which}.${more2}`);
  }
  /** Past a tensor's last event: offers the tensor of the same name in another graph, and goes there when asked again.
   * @param {number} tensor @param {number} direction @returns {boolean} whether there is one */
  goOn(tensor, direction) {
    const { offer } = this;
    if (offer && offer.tensor === tensor && offer.from === this.step && offer.direction === direction) {
      this.offer = null;
      if (this.selected >= 0) this.select(offer.twin);
      this.go(offer.to);
      return true;
    }
    this.offer = twinOffer(this, tensor, direction);
    if (this.offer) this.notice.say(offerWords(this, this.offer));
    return this.offer !== null;
  }
  /** To the first event of the next or previous node. @param {number} direction */
  goToNode(direction) {
    const { tracks } = this;
    const node = tracks.node[this.step];
    let to = tracks.find(this.step, direction, (i) => tracks.node[i] >= 0 && tracks.node[i] !== node);
    if (to < 0) return this.notice.say(direction > 0 ? "No later node." : "No earlier node.");
    if (direction < 0) {
      const there = tracks.node[to];
      while (to > 0 && tracks.node[to - 1] === there) to--;
    }
    this.go(to);
  }
  /** The name of the selected tensor, else of the event's, to the clipboard. */
  async copyName() {
    const t = this.selected >= 0 ? this.selected : this.tracks.tensorOf(this.step);
    if (t < 0) return this.notice.say("This event is about no tensor.");
    const name = this.tracks.name(t);
    this.notice.say(await copyText(name) ? `Copied: ${visible(name)}` : "The browser did not let it be copied.");
  }
  /** Marks a tensor in every pane; -1 for none. @param {number} tensor */
  select(tensor) {
    const t = Number.isInteger(tensor) && tensor >= 0 && tensor < this.tracks.nTensors ? tensor : -1;
    if (t === this.selected) return;
    this.selected = t;
    this.options.onSelect?.(t);
    this.redrawAll();
    if (this.options.hash) this.writeHash();
  }
  /** Outlines tensors in graph and timeline, each as what its mark says. @param {Map<number, import("./marks.js").Mark>} marks */
  mark(marks) {
    for (const name of ["graph", "timeline"]) this.pane(name)?.mark(marks);
  }
  escape() {
    if (this.help.shown) this.help.toggle();
    else if (this.expanded) this.expand(this.pane(this.expanded));
    else this.select(-1);
  }
  readHash() {
    if (!this.options.hash) return;
    const said = new URLSearchParams(globalThis.location.hash.slice(1));
    if (said.has("step")) this.step = this.clamp(Number(said.get("step")));
    if (said.has("tensor")) this.selected = Math.min(this.tracks.nTensors - 1, Number(said.get("tensor")) | 0);
    this.redrawAll();
  }
  writeHash() {
    this.rest.after(this, ADDRESS_MS, () => {
      const tensor = this.selected >= 0 ? `&tensor=${this.selected}` : "";
      globalThis.history.replaceState(null, "", `#step=${this.step}${tensor}`);
    });
  }
  // ---- drawing: at once for the first change in a frame, once more at its end if more came
  /** @param {Pane} pane */
  redraw(pane) {
    if (!this.ready) return;
    this.dirty.add(pane);
    this.schedule();
  }
  redrawAll() {
    if (!this.ready) return;
    for (const pane of this.panes) this.dirty.add(pane);
    this.headDirty = true;
    this.schedule();
  }
  schedule() {
    if (!this.drawn) {
      this.drawn = true;
      this.paint();
    }
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.drawn = false;
        this.paint();
        this.drawn = false;
      });
    }
  }
  /** Scrolling first, while the layout is clean; then drawings, since a font that is set in one waits for the style of all
   * that has changed; then words: so that a step costs one style and one layout. */
  paint() {
    const { step } = this;
    const due = this.panes.filter((pane) => this.dirty.has(pane) && !this.unseen.has(pane) && (!this.expanded || pane.name === this.expanded));
    for (const pane of due) pane.prepare?.(step);
    for (const pane of due) {
      this.dirty.delete(pane);
      if (!WORDS2.has(pane.name)) pane.draw(step);
    }
    for (const pane of due) {
      if (WORDS2.has(pane.name)) pane.draw(step);
      pane.write?.(step);
    }
    if (!this.headDirty) return;
    this.headDirty = false;
    this.transport.draw(step);
    this.now.draw(step);
  }
  /** @param {IntersectionObserverEntry[]} entries */
  onSight(entries) {
    for (const entry of entries) {
      const pane = [...this.frames].find(([, frame2]) => frame2 === entry.target)?.[0];
      if (!pane) continue;
      if (entry.isIntersecting) this.unseen.delete(pane);
      else this.unseen.add(pane);
    }
    this.schedule();
  }
  themeChanged() {
    for (const pane of this.panes) pane.invalidate();
    this.transport.paintStrip();
    this.redrawAll();
  }
  destroy() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.later);
    this.cool();
    this.rest.stop();
    globalThis.removeEventListener("hashchange", this.onHash);
    this.unlisten();
    this.watcher.disconnect();
    this.sizer.disconnect();
    this.transport.stop();
    this.notice.stop();
    this.theme.stop();
    for (const pane of this.panes) pane.stop();
    this.root.remove();
  }
};
function makePanes(player, wanted) {
  const names = wanted ? PANES2.filter((name) => wanted.includes(name)) : PANES2;
  const makers = {
    tokens: () => new TokensPane(player),
    graph: () => new GraphPane(player),
    map: () => new MapPane(player),
    timeline: () => new TimelinePane(player),
    events: () => new EventsPane(player),
    tables: () => new DetailsPane(player)
  };
  const shown = names.filter((name) => name !== "tokens" || wanted !== null || player.tracks.track("token").length > 0);
  const details = DETAILS.filter((detail2) => wanted?.includes(detail2.name));
  return [...shown.map((name) => makers[name]()), ...details.map((detail2) => new DetailPane(player, detail2))];
}
function create(options) {
  try {
    const player = new Player(options);
    return {
      step: () => player.step,
      setStep: (i) => player.moveTo(player.clamp(i)),
      select: (tensor) => player.select(tensor),
      mark: (marks) => player.mark(marks),
      reach: () => player.pane("map")?.reach(player.step) ?? 0,
      scale: (bytes) => player.pane("map")?.setLeast(bytes),
      destroy: () => player.destroy()
    };
  } catch (error) {
    const text = `This trace cannot be shown: ${error instanceof Error ? error.message : error}`;
    options.host.replaceChildren(el("div", "vg-broken", { role: "alert", text }));
    return { step: () => 0, setStep: () => {
    }, select: () => {
    }, mark: () => {
    }, reach: () => 0, scale: () => {
    }, destroy: () => options.host.replaceChildren() };
  }
}
export {
  Player,
  Tracks,
  compare,
  create,
  panel,
  sentence
};
