// Colours, light and dark: Okabe and Ito's hues tuned for each ground, and which theme the page asks for.

/**
 * @typedef {{page: string, panel: string, raised: string, ink: string, soft: string, faint: string, line: string, edge: string,
 *   accent: string, onAccent: string, accentWash: string, source: string, consumer: string, free: string, good: string, bad: string,
 *   onFamily: string, families: string[], status: string[], areas: string[], backends: string[], dark: boolean}} Palette
 */

/** @type {Palette} */
const LIGHT = {
  page: "#ffffff",
  panel: "#f7f8fa",
  raised: "#ffffff",
  ink: "#1b2330",
  soft: "#596476",
  faint: "#8b95a5",
  line: "#dfe3e9",
  edge: "#aab3c0",
  accent: "#c2410c",
  onAccent: "#ffffff",
  accentWash: "#fdeee6",
  source: "#0072b2",
  consumer: "#8a5a00",
  free: "#eef1f4",
  good: "#00795a",
  bad: "#b3261e",
  onFamily: "#10151d",
  families: ["#3f8fc7", "#c27ba8", "#2f9f80", "#d98a5b", "#d9a12b", "#aab2bf", "#76808f"],
  status: ["#ffffff", "#d3d9e1", "#9aa6b5", "#56b4e9", "#c2410c", "#2f9f80", "#c8cdd5", "#e6dfcf"],
  areas: ["#9aa6b5", "#56b4e9", "#e0a43b", "#2f9f80", "#c27ba8"],
  backends: ["#6f5bb3", "#0e8c99", "#9c7a12", "#a8446c"],
  dark: false,
};

/** @type {Palette} */
const DARK = {
  page: "#12161d",
  panel: "#181d26",
  raised: "#1f2530",
  ink: "#e6eaf1",
  soft: "#a0abbb",
  faint: "#717d8f",
  line: "#2c3441",
  edge: "#566174",
  accent: "#ff8f57",
  onAccent: "#1a1209",
  accentWash: "#3a2519",
  source: "#56b4e9",
  consumer: "#f0c05a",
  free: "#1e242e",
  good: "#3ecfa3",
  bad: "#ff8a80",
  onFamily: "#0b0e13",
  families: ["#4a9fd6", "#c886b0", "#35ab8a", "#dc8f5f", "#d3a23a", "#667184", "#8b96a8"],
  status: ["#12161d", "#3a4352", "#66748a", "#4aa5dc", "#ff8f57", "#35ab8a", "#363f4c", "#514a3a"],
  areas: ["#66748a", "#4aa5dc", "#d3a23a", "#35ab8a", "#c886b0"],
  backends: ["#a48fe3", "#43bcc7", "#cfa94a", "#dc7ba3"],
  dark: true,
};

export const FAMILIES = [
  "matrix product",
  "norm, soft max",
  "element by element",
  "position",
  "rows, copies",
  "view",
  "leaf",
];

const OPS = [
  "MUL_MAT MUL_MAT_ID OUT_PROD FLASH_ATTN_EXT CONV_2D IM2COL",
  "RMS_NORM NORM GROUP_NORM L2_NORM SOFT_MAX SOFT_MAX_BACK SUM SUM_ROWS MEAN ARGMAX ARGSORT",
  "",
  "ROPE ROPE_BACK TIMESTEP_EMBEDDING DIAG_MASK_INF",
  "GET_ROWS SET_ROWS CPY CONT DUP CONCAT REPEAT PAD SET",
  "VIEW RESHAPE PERMUTE TRANSPOSE",
  "NONE",
];
const FAMILY_OF = new Map(OPS.flatMap((ops, family) => ops.split(" ").map((op) => /** @type {const} */ ([op, family]))));
const ELEMENTWISE = 2;

/** The family that an op is coloured by. @param {string} op */
export function familyOf(op) {
  return FAMILY_OF.get(op || "NONE") ?? ELEMENTWISE;
}

export const STATUS = ["not yet met", "visited", "in the graph", "has memory", "computing", "done", "freed", "skipped"];

export const AREA_GROUPS = ["other", "building", "planning memory", "computing", "tokens and cache"];

const AREAS = {
  arena: 1,
  tensor: 1,
  graph: 1,
  buffers: 2,
  "free list": 2,
  galloc: 2,
  plan: 2,
  sched: 2,
  compute: 3,
  quant: 3,
  reuse: 4,
  KV: 4,
  tokens: 4,
};

/** The group that an event's area belongs to, an index of AREA_GROUPS. @param {string} area */
export function areaGroup(area) {
  return /** @type {Record<string, number>} */ (AREAS)[area] ?? 0;
}

/**
 * Keeps `root` in the theme that `wanted` names; "auto" follows JupyterLab's theme, else the system's.
 * @param {HTMLElement} root
 * @param {string} wanted light, dark or auto
 * @param {(palette: Palette) => void} changed called when the theme changes, not for the first
 */
export function watchTheme(root, wanted, changed) {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const find = () => {
    if (wanted === "light" || wanted === "dark") return wanted === "dark";
    const jupyter = document.body?.dataset.jpThemeLight;
    return jupyter === undefined ? media.matches : jupyter === "false";
  };
  let palette = find() ? DARK : LIGHT;
  apply(root, palette);
  const update = () => {
    const next = find() ? DARK : LIGHT;
    if (next === palette) return;
    palette = next;
    apply(root, palette);
    changed(palette);
  };
  media.addEventListener("change", update);
  const observer = new MutationObserver(update);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  return {
    get palette() {
      return palette;
    },
    stop() {
      media.removeEventListener("change", update);
      observer.disconnect();
    },
  };
}

/** @param {HTMLElement} root @param {Palette} palette */
function apply(root, palette) {
  root.dataset.vgTheme = palette.dark ? "dark" : "light";
  root.style.colorScheme = palette.dark ? "dark" : "light";
  for (const [name, value] of Object.entries(palette)) {
    if (typeof value === "string") root.style.setProperty(`--vg-${name}`, value);
    else if (Array.isArray(value)) value.forEach((v, i) => root.style.setProperty(`--vg-${name}-${i}`, v));
  }
}
