// The top of a comparison: the one sentence that says it, the key figures, and the other sentences.

import { el } from "./dom.js";
import { visible } from "./sentence.js";

/** With an arrow where plain text has two signs. @param {string} text */
export function arrows(text) {
  return visible(text).replaceAll("->", "→");
}

export class CompareHead {
  /** @param {any} meta */
  constructor(meta) {
    const [first, ...rest] = meta.summary;
    const [set, did] = halves(first, meta.params.length > 0);
    const claim = el("h1", "vg-cmp-claim", {}, [
      ...(set ? [el("span", "vg-cmp-set", { text: arrows(set) })] : []),
      el("span", "vg-cmp-did", { text: arrows(did) }),
    ]);
    const figures = el("div", "vg-cmp-figures", {}, meta.differ ? meta.figures.map(card) : []);
    const said = el("ul", "vg-cmp-said", {}, rest.map((/** @type {string} */ line) => el("li", "", { text: arrows(line) })));
    this.element = el("header", "vg-cmp-head", {}, [claim, figures, said]);
  }
}

/** What was set differently, and what that did. @param {string} line @param {boolean} named */
function halves(line, named) {
  const at = named ? line.lastIndexOf(": ") : -1;
  return at < 0 ? ["", line] : [line.slice(0, at), line.slice(at + 2)];
}

/** @param {string[]} figure title, in A, in B, difference */
function card([title, a, b, difference]) {
  const same = difference === "same" || difference === "";
  const values = same ? [el("b", "", { text: b })] : [el("span", "vg-cmp-was", { text: a }), el("span", "vg-cmp-arrow", { text: "→" }), el("b", "", { text: b })];
  return el("div", same ? "vg-cmp-figure vg-cmp-same" : "vg-cmp-figure", {}, [
    el("div", "vg-dt", { role: "term", text: title }),
    el("div", "vg-dd vg-cmp-values", { role: "definition" }, values),
    el("div", "vg-dd vg-cmp-by", { role: "definition", text: same ? "the same" : difference.replaceAll("-", "−") }),
  ]);
}
