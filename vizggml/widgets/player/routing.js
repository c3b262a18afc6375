// Routing: which experts each token of a layer goes to, how the tokens are shared among them, and what is read for that.

import { DetailPlot, counted } from "./detail_plot.js";
import { el, setText } from "./dom.js";
import { paintRouting, placesOf, roomFor } from "./routing_paint.js";
import { layersOf, piecesAt, routedAt, wholeOf } from "./routing_state.js";
import { formatBytes, visiblePiece } from "./sentence.js";

/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./player.js").Pane} Pane */
/** @typedef {import("./routing_state.js").Routed} Routed */

const FACTS = { width: 560, height: 190 };

/** @type {import("./details.js").Detail} */
export const routingDetail = {
  name: "routing",
  title: "Routing",
  has: ({ tracks }) => tracks.track("route").length > 0,
  make: (player, pane) => new RoutingView(player, pane),
};

/** `6 %`, `0.4 %`. @param {number} part @param {number} whole */
export function percent(part, whole) {
  const share = (100 * part) / Math.max(1, whole);
  return `${share >= 1 || share === 0 ? Math.round(share) : share.toFixed(1)} %`;
}

class RoutingView extends DetailPlot {
  /** @param {Player} player @param {Pane} pane */
  constructor(player, pane) {
    super(player, pane, {
      title: "Routing",
      keys: "expert by expert, those that have tokens",
      empty: "No token has been sent to an expert at this step.",
    });
    /** @type {Routed | null} */
    this.routed = null;
    /** The layer that is looked at, -1 for the one that was routed last. */
    this.layer = -1;
    this.pieces = new Map();
    this.choice = el("select", "vg-select", { "aria-label": "Which layer", title: "Which layer" }, [
      el("option", "", { value: "-1", text: "newest layer" }),
      ...layersOf(player).map((il) => el("option", "", { value: String(il), text: `layer ${il}` })),
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
          text: "A column is an expert, a line a token; the stronger its colour, the more the expert's result counts. Grey: tokens of earlier evaluations. Dashed: what each expert would have if all had as many.",
        }),
      ]),
    ]);
    this.element.classList.add("vg-routing");
    this.element.append(this.facts);
    this.sizer = new ResizeObserver((entries) => {
      const { width, height } = entries[entries.length - 1].contentRect;
      this.element.classList.toggle("vg-low", width < FACTS.width || height < FACTS.height);
    });
    this.sizer.observe(this.element);
  }

  /** @param {number} step */
  prepare(step) {
    const { player } = this;
    const routed = (this.routed = routedAt(player, step, this.layer, roomFor(this.surface.height)));
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
      strong: `layer ${layer}: ${nRead} of ${counted(nExpert, "expert")} read, ${percent(bytesRead, nbytes)} of bytes`,
      rest: [`${tokens}, ${nUsed} experts each`, behind ? `of evaluation ${evaluation}: not yet routed in this one` : `evaluation ${evaluation}`].join("; "),
    };
  }

  /** @param {Routed} routed @param {number} step */
  showFacts(routed, step) {
    const { nbytes, bytesRead, nRead, nExpert, nTokens, load, evaluation } = routed;
    this.read.show(bytesRead / nbytes, `${nRead} of ${nExpert} experts: ${formatBytes(bytesRead)} of ${formatBytes(nbytes)}`);
    const whole = wholeOf(this.player, step, evaluation);
    const so = whole.nRouted < whole.nLayer ? `${whole.nRouted} of ${whole.nLayer} layers so far` : counted(whole.nLayer, "layer");
    this.whole.show(whole.bytesRead / Math.max(1, whole.nbytes), `${so}: ${formatBytes(whole.bytesRead)} of ${formatBytes(whole.nbytes)}`);
    const busiest = load.indexOf(Math.max(...load));
    const even = (nTokens * routed.nUsed) / nExpert;
    setText(this.busiest, nTokens > 1 ? `expert ${busiest}: ${load[busiest]} of ${nTokens} tokens; ${Number(even.toFixed(1))} if all had as many` : "one token: each of its experts has it");
  }

  places() {
    return this.routed ? placesOf(this.routed, this.surface.width, this.surface.height) : null;
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
    /** @type {[string, string][]} */
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
}

/** A share as a bar, with its words. */
function bar() {
  const fill = el("span");
  const words = el("p");
  const parts = [el("div", "vg-share", {}, [fill]), words];
  /** @param {number} share @param {string} text */
  const show = (share, text) => {
    const width = `${(100 * share).toFixed(1)}%`;
    if (fill.style.width !== width) fill.style.width = width;
    setText(words, text);
  };
  return { parts, show };
}

/** @param {string} title @param {Node[]} parts */
function section(title, parts) {
  return el("section", "", {}, [el("h3", "", { text: title }), ...parts]);
}
