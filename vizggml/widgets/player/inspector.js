// One tensor, closely: what it is, how its strides walk through memory, where its bytes come from and when they live,
// who reads them, and its values. Sections keep their place from step to step.

import { copyButton } from "./copy.js";
import { el, setText } from "./dom.js";
import { Links, hint } from "./links.js";
import { formatBytes, formatDims, formatField, visible } from "./sentence.js";
import { StrideWalk } from "./stride_walk.js";
import { chainOf, eventsOf, layoutOf, layoutWords, lifeAt, nearest, placeAt, rowAt, shapeOf, wasThere } from "./tensor_facts.js";
import { STATUS } from "./theme.js";
import { ValuesSection } from "./values.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {import("./details.js").Detail} Detail */
/** @typedef {import("./links.js").Item} Item */

const VIEW_OPS = new Set(["VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"]);
/** Lines that may need two: they always have the room. */
const LONG = new Set(["asked", "sources", "consumers"]);
const WIDE = 620;
const FEW = 6;
/** Those that draw come first. */
const PARTS = /** @type {const} */ (["strides", "values", "facts", "chain", "life", "kin"]);
/** What is out of sight shows the step after so long a rest. */
const LATE_MS = 100;
/** @typedef {typeof PARTS[number]} Part */
const PREDICATES = /** @type {const} */ ([
  ["contiguous", "ggml_is_contiguous: no gaps between elements"],
  ["contiguous_1", "ggml_is_contiguous_1: no gaps from dimension 2 up; rows may lie apart"],
  ["contiguous_2", "ggml_is_contiguous_2: no gaps in dimension 3"],
  ["contiguous_rows", "ggml_is_contiguous_rows: no gaps within a row"],
  ["permuted", "ggml_is_permuted: the strides do not rise from nb[0] to nb[3]"],
  ["transposed", "ggml_is_transposed: nb[0] is larger than nb[1]"],
]);

/** @type {Detail} */
export const inspectorDetail = {
  name: "tensor",
  title: "Tensor",
  has: () => true,
  make: (player, pane) => new Inspector(player, pane),
};

export class Inspector {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.player = player;
    this.shown = -1;
    /** @type {Record<string, Links>} */
    this.rows = {};
    this.allReaders = false;
    /** The status that its dot shows. */
    this.dotted = -1;
    /** The tensors that the head, the facts and the strides show. */
    this.named = this.fixed = this.walked = -1;
    /** @type {{t: number, step: number, life: ReturnType<typeof lifeAt>}} */
    this.known = { t: -1, step: -1, life: null };
    /** Parts that are scrolled out of sight, and those of them that do not show this step yet. @type {Set<Part>} */
    this.unseen = new Set();
    /** @type {Set<Part>} */
    this.late = new Set();
    this.name = el("h3", "vg-inspector-name vg-mono");
    this.dot = el("span", "vg-status-dot", { "aria-hidden": "true" });
    this.status = el("span");
    this.why = el("span", "vg-soft");
    this.release = el("button", "vg-link", { type: "button", text: "follow the step", title: "Let go of the selection (Esc)" });
    this.line = el("p", "vg-inspector-line");
    this.chips = PREDICATES.map(([, title]) => el("span", "vg-chip", { title }));
    this.walk = new StrideWalk(player, pane);
    this.values = new ValuesSection(player, pane);
    this.empty = el("div", "vg-empty", { text: "No tensor at this step. Choose one in the graph, in the memory map, or by a search." });
    this.empty.hidden = true;
    // where memory is planned, that comes before strides
    const planned = player.tracks.track("life").length > 0;
    const middle = planned ? [this.makeLife(), this.makeChain()] : [this.makeChain(), this.makeLife()];
    this.left = el("div", "vg-inspector-side", {}, [this.makeFacts(), ...middle, this.makeKin()]);
    this.right = el("div", "vg-inspector-side", {}, [this.makeWalk(), this.values.element]);
    this.sides = el("div", "vg-inspector-sides", {}, [this.left, this.right]);
    this.body = el("div", "vg-inspector-body", {}, [this.makeTitle(), this.makeHead(), this.sides]);
    this.element = el("div", `vg-inspector vg-scroll${planned ? " vg-planned" : ""}`, { tabindex: "-1" }, [this.body, this.empty]);
    this.element.addEventListener("click", (event) => this.onClick(event));
    this.element.addEventListener("pointerover", (event) => hint(/** @type {HTMLElement} */ (event.target)));
    this.sizer = new ResizeObserver((entries) => this.element.classList.toggle("vg-two", entries[entries.length - 1].contentRect.width >= WIDE));
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
      this.line,
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
      ["flags", "flags"],
    ]);
  }

  makeWalk() {
    return el("section", "vg-part vg-part-strides", { "aria-label": "Strides", "data-part": "strides" }, [
      el("h4", "", { text: "Strides: a walk through memory" }),
      this.walk.element,
      el("div", "vg-chips", {}, this.chips),
    ]);
  }

  makeChain() {
    return this.section("chain", "View chain", [
      ["asked", "view of", "what it was made from, step by step"],
      ["flat", "flattened to", "ggml keeps one step: view_src and view_offs"],
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
      ["heirs", "its bytes after", "who took its memory"],
    ]);
  }

  makeKin() {
    return this.section("kin", "Graph", [
      ["sources", "reads"],
      ["consumers", "read by"],
    ]);
  }

  /** A section of named lines. @param {string} name @param {string} title @param {[string, string, string?, boolean?][]} rows name,
   * label, what it means, whether its value can be copied */
  section(name, title, rows) {
    const cells = rows.flatMap(([key, label, meaning, copied]) => {
      const links = (this.rows[key] = new Links());
      const value = el("div", "vg-dd", { role: "definition" }, [links.element]);
      if (copied) value.append(copyButton(`the ${label}`, () => links.copied));
      if (LONG.has(key)) value.classList.add("vg-long");
      return [el("div", "vg-dt", { role: "term", text: label, title: meaning }), value];
    });
    return el("section", `vg-part vg-part-${name}`, { "aria-label": title, "data-part": name }, [el("h4", "", { text: title }), el("div", "vg-facts", {}, cells)]);
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const link = /** @type {HTMLElement} */ (event.target).closest?.("[data-tensor], [data-event], [data-more]");
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
      const part = /** @type {Part} */ (/** @type {HTMLElement} */ (entry.target).dataset.part);
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
    const bits = (8 * shape.size) / shape.blck;
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
    const place = placeAt(player, t, step);
    const offs = root === t ? 0 : tracks.columns.column("tensor.view_offs")[t];
    const own = tracks.columns.column("tensor.external")[root] ? "not planned: its own" : "not planned";
    const padded = life && life.padded > life.size ? `, padded to ${formatBytes(life.padded)}` : "";
    this.show("plan", life ? [`${life.offset + offs} of ${life.where}, ${formatBytes(life.size)}${padded}`] : [own], life ? String(life.offset + offs) : "");
    this.show("place", place ? [`${place.offset} of buffer ${place.buffer}${place.name ? ` (${place.name})` : ""}`] : ["no memory at this step"], place ? String(place.offset) : "");
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
    /** @type {(link: {tensor: number, offs: number}) => Item} */
    const link = ({ tensor, offs }) => ({ ...this.tensor(tensor), after: offs ? ` + ${offs} B` : "" });
    this.show("asked", asked.length ? asked.flatMap((one, k) => (k ? ["→", link(one)] : [link(one)])) : ["nothing: bytes of its own"]);
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
    const placed = nearest(eventsOf(player, "TensorPlaced", "tensor", t), step);
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
    const begun = nearest(eventsOf(this.player, "NodeBegin", "tensor", t), step);
    if (begun >= 0) return [this.event(begun)];
    const skipped = nearest(eventsOf(this.player, "NodeSkipped", "tensor", t), step);
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
    const list = (/** @type {Iterable<number>} */ all) => Array.from(all, (s) => (s < 0 ? "none" : this.tensor(s)));
    const sources = list(relations.sources(t));
    this.show("sources", sources.length ? sources : ["nothing"]);
    const all = relations.consumers(t);
    const here = all.filter((s) => relations.home.graph[s] === relations.focus.graph[step]);
    const readers = [...new Set(here.length ? here : all)];
    const few = this.allReaders || readers.length <= FEW + 1 ? readers : readers.slice(0, FEW);
    const rest = readers.length - few.length;
    this.show("consumers", readers.length ? [...list(few), ...(rest ? [{ text: `and ${rest} more`, more: "1" }] : [])] : ["nobody"]);
  }

  /** @param {string} row @param {Item[]} items @param {string} [copied] what its button copies */
  show(row, items, copied) {
    this.rows[row].show(items, copied);
    const button = /** @type {HTMLElement | null} */ (this.rows[row].element.nextElementSibling);
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
}

/** @param {import("./tracks.js").Tracks} tracks @param {number} t */
function isLeaf(tracks, t) {
  const op = tracks.tensorString("op", t);
  return op === "" || op === "NONE";
}

/** What the tensor is, in a sentence. @param {Player} player @param {number} t */
function sentenceOf({ tracks, relations }, t) {
  const name = (/** @type {number} */ s) => visible(tracks.name(s));
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
