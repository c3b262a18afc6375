// The values of a tensor as the trace keeps them: figures, heat map and histogram; or why there are none.

import { el, setText } from "./dom.js";
import { Links } from "./links.js";
import { formatCount } from "./sentence.js";
import { valuesAt } from "./tensor_facts.js";
import { HeatMap, Histogram, formatValue } from "./value_plots.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */

const FIGURES = ["minimum", "maximum", "mean", "rms", "not finite"];
const MEANINGS = ["", "", "", "root of the mean of the squares", "infinities and NaN, left out of the other figures"];

export class ValuesSection {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    this.player = player;
    this.said = new Links();
    this.figures = FIGURES.map(() => el("div", "vg-dd vg-tabular", { role: "definition" }));
    this.map = new HeatMap(player, pane);
    this.histogram = new Histogram(player, pane);
    const pairs = FIGURES.map((name, k) => el("div", "", {}, [el("div", "vg-dt", { role: "term", text: name, title: MEANINGS[k] || undefined }), this.figures[k]]));
    this.drawn = el("div", "vg-values", {}, [el("div", "vg-figures", {}, pairs), this.map.element, this.histogram.element]);
    this.drawn.hidden = !player.tracks.columns.column("v.event").length;
    this.element = el("section", "vg-part vg-part-values", { "aria-label": "Values", "data-part": "values" }, [el("h4", "", { text: "Values" }), el("p", "vg-values-said", {}, [this.said.element]), this.drawn]);
  }

  /** @param {number} t @param {number} step */
  draw(t, step) {
    const { player } = this;
    const taken = valuesAt(player, t, step);
    const shown = taken !== null && !taken.later;
    if (shown) this.drawValues(t, taken.row);
    this.said.show(this.say(t, taken));
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
      bins: columns.column("v.bins").subarray(32 * row, 32 * row + 32),
    };
    this.map.draw(values, row);
    this.histogram.draw(values, row);
    this.figures.forEach((figure, k) => setText(figure, k === 4 ? formatCount(stats[k]) : formatValue(stats[k])));
  }

  /** @param {number} t @param {import("./tensor_facts.js").Taken | null} taken @returns {import("./links.js").Item[]} */
  say(t, taken) {
    const { tracks, relations } = this.player;
    if (!tracks.columns.column("v.event").length) return ["Recorded without values: vg.record(values=True) keeps them."];
    if (!taken) {
      const root = relations.root(t);
      if (root !== t) return ["A view computes nothing: its bytes are those of", { text: tracks.name(root), tensor: root }];
      return ["None: values are kept of what is computed while recording."];
    }
    const at = { text: `event ${taken.event}`, event: taken.event };
    if (taken.later) return ["Not computed yet at this step: first values after", at];
    return taken.evaluation >= 0 ? [`Of evaluation ${taken.evaluation}, taken after`, at] : ["Taken after", at];
  }

  invalidate() {
    this.map.invalidate();
    this.histogram.invalidate();
  }

  stop() {
    this.map.stop();
    this.histogram.stop();
  }
}
