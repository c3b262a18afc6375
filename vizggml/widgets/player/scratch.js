// The scratch that each node needs of the work buffer, and the largest so far.

import { tableDetail } from "./detail_table.js";
import { paintScratch } from "./plots.js";
import { formatBytes, visible } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./detail_table.js").Row} Row */

export const scratchDetail = tableDetail({
  name: "scratch",
  title: "Scratch",
  track: "scratch",
  columns: [{ head: "tensor" }, { head: "tasks", right: true }, { head: "scratch", right: true }, { head: "maximum", right: true }],
  widths: "minmax(0, 2fr) 0.6fr 1fr 1fr",
  rows: scratchRows,
  plot: paintScratch,
  plotHeight: 54,
  empty: "No scratch is planned yet.",
});

/** @param {Player} player @param {number} step @returns {Row[]} */
function scratchRows(player, step) {
  const { tracks, relations } = player;
  const track = tracks.track("scratch");
  const [graph, tensor, tasks, size, maximum] = ["graph", "tensor", "n_tasks", "work_size", "maximum"].map((n) => track.col(n));
  const g = relations.focus.graph[step];
  const current = relations.tensorAt(step);
  return track
    .openAt(step)
    .filter((r) => graph[r] === g && (size[r] > 0 || tensor[r] === current))
    .map((r) => ({
      cells: [visible(tracks.name(tensor[r])), String(tasks[r]), formatBytes(size[r]), formatBytes(maximum[r])],
      marked: tensor[r] === current,
      tensor: tensor[r],
    }));
}
