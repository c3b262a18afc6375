// The graph pane: the DAG with its layers folded, the status of every node at this step, the current node and its kin.

import { el, iconButton, setIcon, setText } from "./dom.js";
import { Folding } from "./folding.js";
import { GraphCamera } from "./graph_camera.js";
import { GraphFilter, MODES, reach } from "./graph_filter.js";
import { STRIP, paintFound, paintKin, paintMarks, paintMinimap, paintPlaces, paintRings, paintStatus, paintUnlike } from "./graph_marks.js";
import { GraphPainter, detail } from "./graph_paint.js";
import { listenGraph } from "./graph_pointer.js";
import { markKeys, markWords } from "./marks.js";
import { GraphSearch } from "./search.js";
import { formatDims, visible } from "./sentence.js";
import { nameBackends, paintBackends, paintCopies } from "./splits.js";
import { STATUS } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./graph_paint.js").View} View */
/** @typedef {import("./graph_camera.js").Drawing} Drawing */
/** @typedef {import("./graph_filter.js").Mode} Mode */

/** A bitmap that took so many milliseconds is moved about as it is, and made anew when the hand rests. */
const DEAR = 10;
const [REST, QUIET] = [120, 250];

/** Under this height of the picture its buttons lie flat. */
const LOW = 220;

export class GraphPane extends GraphCamera {
  /** @param {Player} player */
  constructor(player) {
    super(player);
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
    this.filter = new GraphFilter(player);
    /** The status of each tensor at the step drawn last. */
    this.status = new Uint8Array(player.tracks.nTensors);
    /** @type {number[]} */
    this.found = [];
    /** @type {Map<number, import("./marks.js").Mark>} */
    this.marks = new Map();
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
      iconButton("fit", "Fit (f)", () => this.fit()),
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
    this.filterChoice.addEventListener("change", () => this.setFilter(/** @type {Mode} */ (this.filterChoice?.value)));
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
      drawing = { folding, painter, view: null, bitmap: null, drawn: null, key: "", before: new Map(), byHand: false };
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
    const now = /** @type {Drawing} */ (this.shown);
    if (before && !now.view && before.folding.width === now.folding.width && before.folding.height === now.folding.height) {
      now.view = before.view && { ...before.view };
    }
    this.redraw();
    const baked = [...this.drawings.values()].filter((d) => d.bitmap && d !== this.shown);
    while (baked.length >= this.surface.most) /** @type {Drawing} */ (baked.shift()).bitmap = null;
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
    const section = here >= 0 && folding.foldable(here) ? here : folding.fold.findIndex((f) => f >= 0);
    if (section >= 0) this.setOpen(drawing, [section], !folding.open[section]);
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
    return folding && row !== undefined ? folding.graph.sections[folding.sectionOf[row]].layer : -1;
  }

  /** Opens what hides tensor `t` and brings it into the middle. @param {number} t */
  reveal(t) {
    const { graph } = this.player.relations.home;
    const index = this.indexOfGraph.get(graph[t]) ?? -1;
    if (!this.shown?.folding.rowOf.has(t) && index >= 0) this.choose(index);
    const drawing = this.shown;
    const row = drawing?.folding.rowOf.get(t);
    if (!drawing || row === undefined) return;
    if (!drawing.folding.shown(row)) this.setOpen(drawing, [drawing.folding.sectionOf[row]], true);
    this.comeNear(drawing);
    this.bringIn(drawing, drawing.folding.x(row), drawing.folding.y(row), true);
    this.redraw();
  }

  /** Brings tensor `t` into sight, where the shown graph has it. @param {number} t */
  lookAt(t) {
    const drawing = this.shown;
    const row = drawing?.folding.rowOf.get(t);
    if (!drawing || row === undefined || this.surface.width < 2) return;
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
    const about = player.selected >= 0 ? player.selected : t;
    const members = this.filter.members(step, about, () => folding.rowOf.keys());
    const live = this.filter.mode === "live";
    this.blit(drawing, live ? null : members);
    this.readStatus(step);
    const c = surface.begin();
    const view = this.viewOf(drawing);
    if (live && members) painter.paintOnly(c, surface, view, player.palette, player.fonts, members);
    painter.within(c, view, () => {
      paintStatus(c, player, folding, status, surface, view, members);
      paintBackends(c, player, folding, step, view.scale, STRIP);
      paintCopies(c, player, drawing, step, view.scale);
      if (about >= 0) paintKin(c, player, drawing, about, this.showPath ? reach(player, about, true) : null, view.scale, members);
      painter.titles(c, surface, view, player.palette, player.fonts, members);
      paintUnlike(c, player, folding, view.scale, members);
      if (this.marks.size) paintMarks(c, player, folding, this.marks, view.scale);
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
    const about = (/** @type {number} */ of) => {
      const row = folding.rowOf.get(of);
      const place = row === undefined ? "not in this graph" : graph.sections[folding.sectionOf[row]].label;
      const op = tracks.tensorString("desc", of);
      return `${visible(tracks.name(of))}, ${op && op !== "NONE" ? op : "leaf"} ${formatDims(tracks.ne(of))}, ${STATUS[this.status[of]]}, ${place}`;
    };
    const parts = [`Graph ${graph.graph}, ${/** @type {any} */ (graph).n_nodes} nodes`];
    if (t >= 0) parts.push(`current: ${about(t)}`);
    if (selected >= 0) parts.push(`selected: ${about(selected)}`);
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
      this.blitMoved(bitmap, /** @type {View} */ (drawn), view);
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
    this.surface.blit(/** @type {HTMLCanvasElement} */ (drawing.bitmap));
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
}
