// The graph pane: the DAG with its layers folded, the status of every node at this step, the current node and its kin.

import { Surface, el, iconButton, setIcon, setText } from "./dom.js";
import { Folding } from "./folding.js";
import { STRIP, paintFound, paintKin, paintMinimap, paintRings, paintStatus } from "./graph_marks.js";
import { GraphPainter } from "./graph_paint.js";
import { listenGraph } from "./graph_pointer.js";
import { GraphSearch } from "./search.js";
import { nameBackends, paintBackends, paintCopies } from "./splits.js";
import { STATUS } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./graph_paint.js").View} View */
/** @typedef {{folding: Folding, painter: GraphPainter, view: View | null, bitmap: HTMLCanvasElement | null}} Drawing */

const [SMALLEST, LARGEST] = [0.02, 4];
const COMFORT = 1.15;
const LEGIBLE = 0.85;
const BITMAPS = 8;

export class GraphPane {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.name = "graph";
    this.title = "Graph";
    /** @type {Map<number, Drawing>} */
    this.drawings = new Map();
    this.current = -1;
    /** @type {Map<number, number>} the layout's index of each graph */
    this.indexOfGraph = new Map(player.layout.graphs.map((/** @type {any} */ g, /** @type {number} */ i) => [g.graph, i]));
    this.follow = true;
    /** The step whose node was brought in: a view that a person chose stays until the next. */
    this.followed = -1;
    this.showPath = false;
    /** The status of each tensor at the step drawn last. */
    this.status = new Uint8Array(player.tracks.nTensors);
    /** @type {number[]} */
    this.found = [];
    this.surface = new Surface("The computation graph, coloured by status at this step", () => this.resized());
    this.note = el("div", "vg-empty");
    this.legend = el("div", "vg-legend");
    this.search = new GraphSearch(player, (found) => this.setFound(found), (t) => this.reveal(t), (t) => this.elsewhere(t));
    this.choice = el("select", "vg-select", { "aria-label": "Which graph", title: "Which graph, and its nodes" });
    this.choice.addEventListener("change", () => this.choose(Number(this.choice.value)));
    this.body = el("div", "vg-stack", {}, [this.surface.box, this.note, this.legend]);
    this.surface.box.tabIndex = 0;
    this.surface.box.setAttribute("aria-label", "Graph: Enter opens or folds the block of the current node");
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
    const group = el("div", "vg-group", {}, [
      this.foldButton,
      this.followButton,
      this.pathButton,
      iconButton("slower", "Zoom out (Z)", () => this.zoom(1 / 1.3)),
      iconButton("faster", "Zoom in (z)", () => this.zoom(1.3)),
      iconButton("fit", "Fit (f)", () => this.fit()),
    ]);
    return [this.search.element, this.choice, group];
  }

  fillLegend() {
    STATUS.forEach((text, status) => {
      const mark = el("span", "vg-swatch");
      mark.style.background = `var(--vg-status-${status})`;
      this.legend.append(el("span", "vg-key", {}, [mark, el("span", "", { text })]));
    });
    nameBackends(this.player, this.legend);
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

  // ---- which graph, folded how, seen from where

  /** @param {number} index @returns {Drawing} */
  drawing(index) {
    let drawing = this.drawings.get(index);
    if (!drawing) {
      const folding = new Folding(this.player.layout.graphs[index]);
      this.adopt(folding);
      drawing = { folding, painter: new GraphPainter(this.player.tracks, folding), view: null, bitmap: null };
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

  aspect() {
    return this.surface.height > 0 ? this.surface.width / this.surface.height : 1.5;
  }

  get shown() {
    return this.current < 0 ? null : this.drawing(this.current);
  }

  /** @param {number} index */
  choose(index) {
    const before = this.shown;
    this.current = index;
    this.choice.value = String(index);
    const now = /** @type {Drawing} */ (this.shown);
    if (before && !now.view && before.folding.width === now.folding.width && before.folding.height === now.folding.height) {
      now.view = before.view && { ...before.view };
    }
    this.player.redraw(this);
    this.keepFew();
  }

  keepFew() {
    const baked = [...this.drawings.values()].filter((d) => d.bitmap && d !== this.shown);
    while (baked.length >= BITMAPS) /** @type {Drawing} */ (baked.shift()).bitmap = null;
  }

  resized() {
    for (const [index, drawing] of this.drawings) {
      drawing.bitmap = null;
      drawing.view = null;
      if (index === this.current) drawing.folding.arrange(this.aspect());
    }
    this.player.redraw(this);
  }

  invalidate() {
    for (const drawing of this.drawings.values()) drawing.bitmap = null;
  }

  /** @param {Drawing} drawing @returns {View} */
  viewOf(drawing) {
    if (drawing.view) return drawing.view;
    const { width, height } = this.surface;
    const { folding } = drawing;
    const scale = Math.min(COMFORT, width / folding.width, height / folding.height);
    const x = (width - folding.width * scale) / 2;
    const y = Math.max(0, (height - folding.height * scale) / 2);
    return (drawing.view = { scale, x, y });
  }

  fit() {
    const drawing = this.shown;
    if (!drawing) return;
    drawing.view = null;
    drawing.bitmap = null;
    this.player.redraw(this);
  }

  /** @param {number} factor @param {number} [x] @param {number} [y] the point that stays */
  zoom(factor, x = this.surface.width / 2, y = this.surface.height / 2) {
    const drawing = this.shown;
    if (!drawing) return;
    const view = this.viewOf(drawing);
    const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor));
    const f = scale / view.scale;
    drawing.view = { scale, x: x - (x - view.x) * f, y: y - (y - view.y) * f };
    drawing.bitmap = null;
    this.player.redraw(this);
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const drawing = this.shown;
    if (!drawing) return;
    const view = this.viewOf(drawing);
    drawing.view = { scale: view.scale, x: view.x + dx, y: view.y + dy };
    drawing.bitmap = null;
    this.player.redraw(this);
  }

  /** Brings a world rectangle's centre into sight, moving no more than needed. @param {Drawing} drawing
   * @param {number} x @param {number} y @param {boolean} centre */
  bringIn(drawing, x, y, centre) {
    const view = this.viewOf(drawing);
    const [sx, sy] = [x * view.scale + view.x, y * view.scale + view.y];
    const { width, height } = this.surface;
    const edge = Math.min(60, width / 6, height / 6);
    if (!centre && sx >= edge && sx <= width - edge && sy >= edge && sy <= height - edge) return;
    drawing.view = { scale: view.scale, x: view.x + width / 2 - sx, y: view.y + height / 2 - sy };
    drawing.bitmap = null;
  }

  /** Section `s` from its top at a size that can be read; its current node in the middle, if it has that.
   * @param {Drawing} drawing @param {number} s */
  lookAt(drawing, s) {
    const { folding } = drawing;
    const item = folding.items[folding.itemOf[s]];
    const row = folding.rowOf.get(this.player.relations.tensorAt(this.player.step)) ?? -1;
    const here = row >= 0 && folding.sectionOf[row] === s;
    const { width, height } = this.surface;
    const x = here ? folding.x(row) : item.x + item.w / 2;
    const y = here ? folding.y(row) : item.y + Math.min(item.h, height / LEGIBLE) / 2;
    drawing.view = { scale: LEGIBLE, x: width / 2 - x * LEGIBLE, y: height / 2 - y * LEGIBLE };
  }

  toggleFollow() {
    this.follow = !this.follow;
    this.followButton?.setAttribute("aria-pressed", String(this.follow));
    this.player.redraw(this);
  }

  togglePath() {
    this.showPath = !this.showPath;
    this.pathButton?.setAttribute("aria-pressed", String(this.showPath));
    this.player.redraw(this);
  }

  toggleAll() {
    const drawing = this.shown;
    if (!drawing) return;
    this.setOpen(drawing, [...drawing.folding.open.keys()], drawing.folding.closed);
    drawing.view = null;
  }

  /** Opens or folds blocks. One that opens is brought in at a size at which its words can be read.
   * @param {Drawing} drawing @param {number[]} sections @param {boolean} open */
  setOpen(drawing, sections, open) {
    drawing.folding.set(sections, open, this.aspect());
    drawing.view = null;
    drawing.bitmap = null;
    if (open && sections.length === 1 && this.viewOf(drawing).scale < LEGIBLE) this.lookAt(drawing, sections[0]);
    const { closed } = drawing.folding;
    if (this.foldButton) setIcon(this.foldButton, closed ? "unfold" : "fold", closed ? "Open all blocks" : "Fold all blocks");
    for (const [index, other] of this.drawings) {
      if (index === this.current || other.folding.open.length !== drawing.folding.open.length) continue;
      other.folding.open.set(drawing.folding.open);
      other.folding.arrange(this.aspect());
      other.view = other.bitmap = null;
    }
    this.player.redraw(this);
  }

  /** Opens or folds the block of the current node, else the first that can be. */
  toggleHere() {
    const drawing = this.shown;
    if (!drawing) return;
    const { folding } = drawing;
    const row = folding.rowOf.get(this.player.relations.tensorAt(this.player.step)) ?? -1;
    const here = row < 0 ? -1 : folding.sectionOf[row];
    const section = here >= 0 && folding.foldable(here) ? here : folding.fold.findIndex((f) => f >= 0);
    if (section >= 0) this.setOpen(drawing, [section], !folding.open[section]);
  }

  /** The graph that tensor `t` is of, when it is not the one that is shown; else -1. @param {number} t */
  elsewhere(t) {
    return this.shown?.folding.rowOf.has(t) ? -1 : this.player.relations.home.graph[t] ?? -1;
  }

  /** Opens what hides tensor `t` and brings it into the middle. @param {number} t */
  reveal(t) {
    const { graph } = this.player.relations.home;
    const index = this.indexOfGraph.get(graph[t]) ?? -1;
    if (!this.shown?.folding.rowOf.has(t) && index >= 0) this.choose(index);
    const drawing = this.shown;
    const row = drawing?.folding.rowOf.get(t);
    if (!drawing || row === undefined) return;
    const section = drawing.folding.sectionOf[row];
    if (!drawing.folding.shown(row)) this.setOpen(drawing, [section], true);
    if (this.viewOf(drawing).scale < LEGIBLE) this.zoom(1 / this.viewOf(drawing).scale);
    this.bringIn(drawing, drawing.folding.x(row), drawing.folding.y(row), true);
    this.player.redraw(this);
  }

  /** @param {number[]} found */
  setFound(found) {
    this.found = found;
    this.player.redraw(this);
  }

  // ---- a step

  /** @param {number} step */
  draw(step) {
    this.followGraph(step);
    const drawing = this.shown;
    if (!drawing || this.surface.width < 2) return;
    const t = this.player.relations.tensorAt(step);
    const row = drawing.folding.rowOf.get(t) ?? -1;
    if (this.follow && row >= 0 && step !== this.followed) {
      const at = drawing.folding.anchor(row);
      this.bringIn(drawing, at.x, at.y, false);
    }
    this.followed = step;
    this.blit(drawing);
    this.readStatus(step);
    const c = this.surface.begin();
    const view = this.viewOf(drawing);
    const { player } = this;
    const about = player.selected >= 0 && this.showPath ? player.selected : t;
    c.save();
    c.translate(view.x, view.y);
    c.scale(view.scale, view.scale);
    paintStatus(c, player, drawing.folding, this.status, view.scale);
    paintBackends(c, player, drawing.folding, step, view.scale, STRIP);
    paintCopies(c, player, drawing, step, view.scale);
    if (about >= 0) paintKin(c, player, drawing, about, this.showPath ? player.relations.ancestors(about) : null, view.scale);
    paintFound(c, player, drawing.folding, this.found, view.scale);
    paintRings(c, player, drawing.folding, row, view.scale);
    c.restore();
    paintMinimap(c, player, this.surface, drawing.folding, view, row);
  }

  /** @param {number} step */
  followGraph(step) {
    const g = this.player.relations.focus.graph[step];
    const index = this.indexOfGraph.get(g) ?? -1;
    if (index >= 0 && index !== this.current && (this.follow || this.current < 0)) this.choose(index);
    else if (this.current < 0 && this.player.layout.graphs.length) this.choose(0);
  }

  /** @param {Drawing} drawing */
  blit(drawing) {
    if (!drawing.bitmap) {
      const { bitmap, context } = this.surface.layer();
      drawing.painter.paint(context, this.surface, this.viewOf(drawing), this.player.palette, this.player.fonts);
      drawing.bitmap = bitmap;
    }
    this.surface.blit(drawing.bitmap);
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
    this.surface.stop();
    setText(this.note, "");
  }
}
