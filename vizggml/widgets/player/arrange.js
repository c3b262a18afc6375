// Where the panes stand: in one column or two, so that those that are shown fill the player.

/** The height of each pane at least, and its share of what is left over. @type {Record<string, [number, number]>} */
const WIDE = { graph: [280, 2], map: [120, 0.7], timeline: [250, 1.4], events: [132, 1], tables: [132, 1] };
/** @type {Record<string, [number, number]>} */
const NARROW = { graph: [214, 1.2], map: [120, 0.6], timeline: [244, 1], events: [155, 1.1], tables: [155, 1] };
/** More than this none gets by need alone where all stand in one column. */
const NARROW_MOST = 270;
/** The same, and the timeline's least height, where there is no graph. */
const [MOST_WITHOUT, TIMELINE_WITHOUT] = [264, 292];
/** Of a detail that is a pane of its own. @type {[number, number]} */
const DETAIL = [180, 1];
const COLUMNS = "minmax(0, 1.12fr) minmax(0, 1fr)";

/** Where one group stands under the graph: each part's share; the graph keeps its place whatever the group. @type {Record<string, [number, number]>} */
const GROUPED = { graph: [214, 43], map: [147, 27], timeline: [170, 30], events: [160, 57], tables: [160, 57] };

/** @typedef {{left: string[], right: string[]}} Band panes one under the other, beside each other; one side may be empty */

/** What text and tabs take of a player with one group under the graph. */
const [TEXT, TABS] = [41, 32];

/** The grid of the tokens, the graph, the tabs and one group of panes, as CSS. What the map leaves is the timeline's.
 * @param {string[]} names the panes shown @param {number} height of the grid
 * @param {((room: number) => number) | undefined} mapOf how much of so many pixels the map fills */
export function arrangeGroup(names, height, mapOf) {
  const room = height - TABS - (names.includes("tokens") ? TEXT : 0);
  const [least, most] = GROUPED.map;
  const filled = mapOf && room > 0 ? (100 * Math.max(least, mapOf((most * room) / 100))) / room : most;
  const left = names.includes("timeline") ? Math.max(0, most - filled) : 0;
  const rows = names.flatMap((name) => {
    if (name === "tokens") return ["max-content"];
    const [least, all] = GROUPED[name] ?? DETAIL;
    const share = name === "map" ? all - left : name === "timeline" ? all + left : all;
    return name === "graph" ? [`minmax(${least}px, ${share}fr)`, "max-content"] : [`minmax(${least}px, ${share}fr)`];
  });
  const areas = names.flatMap((name) => (name === "graph" ? [name, "groups"] : [name])).map((name) => `"${name}"`);
  if (names[names.length - 1] !== "timeline") {
    // as many lines between panes as where there are two
    areas.push('"."');
    rows.push("0px");
  }
  return { gridTemplateAreas: areas.join(" "), gridTemplateRows: rows.join(" "), gridTemplateColumns: "minmax(0, 1fr)" };
}

/** @param {string[]} names @returns {Band[]} */
function bandsOf(names) {
  const details = names.filter((name) => !(name in WIDE) && name !== "tokens");
  const pairs = details.flatMap((name, k) => (k % 2 ? [] : [{ left: [name], right: details.slice(k + 1, k + 2) }]));
  return [...mainBands(names), ...pairs];
}

/** @param {string[]} names @returns {Band[]} */
function mainBands(names) {
  const has = (/** @type {string[]} */ wanted) => wanted.filter((name) => names.includes(name));
  const memory = has(["map", "timeline"]);
  const words = has(["events", "tables"]);
  if (names.includes("graph")) {
    if (!memory.length) return [{ left: ["graph"], right: words }];
    return [{ left: ["graph"], right: memory }, { left: words.slice(0, 1), right: words.slice(1) }];
  }
  const rest = has(["map", "events", "tables"]);
  const [first, ...more] = rest.length === 3 ? ["events", "map", "tables"] : rest;
  const below = { left: rest.slice(0, 1).length ? [first] : [], right: more };
  return [{ left: has(["timeline"]), right: [] }, below];
}

/**
 * The grid of the panes, as CSS.
 * @param {string[]} names the panes shown
 * @param {boolean} wide whether there is room for two columns
 * @param {Record<string, number>} least pixels that a pane needs, where it needs more than most
 */
export function arrange(names, wide, least) {
  const without = !wide && !names.includes("graph");
  /** @type {Record<string, [number, number]>} */
  const sizes = wide ? WIDE : without ? { ...NARROW, timeline: [TIMELINE_WITHOUT, 1.4] } : NARROW;
  const most = wide ? Infinity : without ? MOST_WITHOUT : NARROW_MOST;
  /** @type {string[]} */
  const areas = [];
  /** @type {string[]} */
  const rows = [];
  const add = (/** @type {string} */ left, /** @type {string} */ right, /** @type {string} */ row) => {
    areas.push(`"${left} ${right}"`);
    rows.push(row);
  };
  const sizeOf = (/** @type {string} */ name) => sizes[name] ?? DETAIL;
  const share = (/** @type {string} */ name) => `minmax(${Math.max(sizeOf(name)[0], Math.min(least[name] ?? 0, most))}px, ${sizeOf(name)[1]}fr)`;
  if (names.includes("tokens")) add("tokens", "tokens", "max-content");
  if (!wide) {
    for (const name of names) if (name !== "tokens") add(name, name, share(name));
  } else {
    for (const { left, right } of bandsOf(names)) {
      const sides = [left, right].filter((side) => side.length);
      if (sides.length === 1) for (const name of sides[0]) add(name, name, share(name));
      else if (sides.length === 2) for (const name of right) add(left[0], name, share(name));
    }
  }
  return { gridTemplateAreas: areas.join(" "), gridTemplateRows: rows.join(" "), gridTemplateColumns: COLUMNS };
}
