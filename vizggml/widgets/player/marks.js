// Tensors that a comparison marks: what each mark is called, in which colour and with which line it is drawn.

import { el } from "./dom.js";

/** @typedef {import("./theme.js").Palette} Palette */
/** @typedef {"added" | "removed" | "changed" | "grown" | "shrunk" | "longer" | "shorter" | "moved"} Mark */
/** @typedef {{colour: (palette: Palette) => string, dash: number[], line: string, wide: number, words: string}} Style `line` as
 *   CSS says it, `wide` in pixels */

/** @type {Record<Mark, Style>} */
export const MARKS = {
  added: { colour: (p) => p.good, dash: [], line: "solid", wide: 2, words: "added" },
  removed: { colour: (p) => p.bad, dash: [5, 3], line: "dashed", wide: 2, words: "removed" },
  changed: { colour: (p) => p.consumer, dash: [2, 2], line: "dotted", wide: 2, words: "changed" },
  grown: { colour: (p) => p.backends[0], dash: [], line: "solid", wide: 2, words: "grown" },
  shrunk: { colour: (p) => p.backends[0], dash: [5, 3], line: "dashed", wide: 2, words: "shrunk" },
  longer: { colour: (p) => p.soft, dash: [], line: "solid", wide: 1.25, words: "lives longer" },
  shorter: { colour: (p) => p.soft, dash: [2, 3], line: "dotted", wide: 1.25, words: "lives shorter" },
  moved: { colour: (p) => p.source, dash: [], line: "solid", wide: 1.25, words: "moved" },
};

/** The tensors of each mark, in the order of the marks. @param {Map<number, Mark>} marks @returns {[Mark, number[]][]} */
export function byMark(marks) {
  return /** @type {Mark[]} */ (Object.keys(MARKS))
    .map((mark) => /** @type {[Mark, number[]]} */ ([mark, [...marks].filter(([, m]) => m === mark).map(([t]) => t)]))
    .filter(([, tensors]) => tensors.length);
}

/** A legend of the marks there are, with counts. @param {Palette} palette @param {Map<number, Mark>} marks */
export function markKeys(palette, marks) {
  return byMark(marks).map(([mark, tensors]) => {
    const { colour, line, wide, words } = MARKS[mark];
    const sample = el("span", "vg-mark");
    sample.style.border = `${Math.ceil(wide)}px ${line} ${colour(palette)}`;
    return el("span", "vg-key", {}, [sample, el("span", "", { text: `${words} (${tensors.length})` })]);
  });
}

/** The same in words; nothing where there are none. @param {Map<number, Mark>} marks */
export function markWords(marks) {
  return byMark(marks).map(([mark, tensors]) => `${tensors.length} ${MARKS[mark].words}`).join(", ");
}
