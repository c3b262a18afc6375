// Which nodes stay bright: all, what one is computed from, what is computed from it, or what holds memory now.

/** @typedef {import("./player.js").Player} Player */
/** @typedef {"all" | "ancestors" | "descendants" | "live"} Mode */

/** @type {[Mode, string][]} */
export const MODES = [
  ["all", "all nodes"],
  ["ancestors", "ancestors (a)"],
  ["descendants", "descendants (d)"],
  ["live", "alive now (l)"],
];

/** Everything that is reached from `t` by going to sources, or to consumers; `t` with it.
 * @param {Player} player @param {number} t @param {boolean} up @returns {Set<number>} */
export function reach({ relations }, t, up) {
  const seen = new Set([t]);
  for (const at of seen) for (const next of up ? relations.sources(at) : relations.consumers(at)) seen.add(next);
  return seen;
}

export class GraphFilter {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    /** @type {Mode} */
    this.mode = "all";
    this.key = "";
    /** @type {Set<number> | null} */
    this.kept = null;
  }

  /** The tensors that stay bright at a step; null for all. `about` is the selected or the current one.
   * @param {number} step @param {number} about @param {() => Iterable<number>} shown the tensors that are drawn */
  members(step, about, shown) {
    const { mode, player } = this;
    if (mode === "all" || (mode !== "live" && about < 0)) return this.keep("", () => null);
    if (mode !== "live") return this.keep(`${mode} ${about}`, () => reach(player, about, mode === "ancestors"));
    const plan = player.relations.planAt(step);
    const position = player.relations.positionAt(step);
    if (!plan) return this.keep("no plan", () => new Set());
    return this.keep(`live ${plan.plan} ${position}`, () => {
      const life = player.tracks.track("life");
      const [tensor, first, last] = ["tensor", "first", "last"].map((name) => life.col(name));
      const alive = new Set();
      for (const r of plan.rows) if (first[r] <= position && position <= last[r]) alive.add(tensor[r]);
      return new Set([...shown()].filter((t) => alive.has(player.relations.root(t))));
    });
  }

  /** @param {string} key @param {() => Set<number> | null} make */
  keep(key, make) {
    if (key !== this.key) [this.key, this.kept] = [key, make()];
    return this.kept;
  }
}
