// A detail that is rows and columns, with a plot above them where it has one.

import { Surface, el, setText } from "./dom.js";
import { VirtualList } from "./list.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./details.js").Detail} Detail */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {{head: string, right?: boolean}} Column */
/** @typedef {{cells: string[], marked?: boolean, tensor?: number, bad?: boolean, titled?: boolean}} Row `titled` where a cell may be too long to be read */
/** @typedef {{name: string, title: string, track: string, columns: Column[], widths: string, rows: (player: Player, step: number) => Row[],
 *   plot?: (player: Player, c: CanvasRenderingContext2D, w: number, h: number, step: number) => void, plotHeight?: number,
 *   empty: string}} Table `track` is what it reads, empty for a table that is always there */

const ROW = 23;

/** @param {Table} table @returns {Detail} */
export function tableDetail(table) {
  return {
    name: table.name,
    title: table.title,
    has: (player) => table.track === "" || player.tracks.track(table.track).length > 0,
    make: (player, pane) => new TableView(player, pane, table),
  };
}

export class TableView {
  /** @param {Player} player @param {Pane} pane the pane to be drawn again when the size changes @param {Table} table */
  constructor(player, pane, table) {
    this.player = player;
    this.table = table;
    /** @type {Row[]} */
    this.rows = [];
    this.head = el("div", "vg-grid-head", {}, table.columns.map((c) => el("span", c.right ? "vg-right" : "", { text: c.head })));
    this.head.hidden = table.columns.every((c) => c.head === "");
    this.empty = el("div", "vg-empty");
    this.surface = new Surface(`${table.title}, drawn`, () => player.redraw(pane));
    this.surface.box.hidden = !table.plot;
    this.surface.box.style.flex = `0 0 ${table.plotHeight ?? 0}px`;
    this.list = new VirtualList({
      label: table.title,
      rowHeight: ROW,
      makeRow: () => el("div", "vg-grid-row", {}, table.columns.map((c) => el("span", c.right ? "vg-right" : ""))),
      fillRow: (row, index) => this.fillRow(row, index),
      choose: (index) => {
        const t = this.rows[index]?.tensor ?? -1;
        if (t >= 0) player.select(t);
      },
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
      if (row.titled) /** @type {HTMLElement} */ (element.children[k]).title = row.cells[k];
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
}
