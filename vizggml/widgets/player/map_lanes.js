// The lanes of the memory map: which allocators and buffers there are, and which place each has, so that nothing jumps.

import { chunkNumber, graphWords } from "./plans.js";

/**
 * @typedef {{kind: "chunk" | "buffer", id: number, allocator: number, chunk: number, extent: number, label: string, usage: string}} Lane
 * @typedef {{allocator: number, lanes: Lane[], from: number, to: number, holds: boolean}} Group the chunks of an allocator,
 *   and the events between which it works
 * @typedef {{rows: number, groups: Group[]}} Place where allocators stand that never work at the same time
 */

/** @param {import("./tracks.js").Tracks} tracks @returns {Group[]} */
function readGroups(tracks) {
  /** @type {Map<number, Group>} */
  const groups = new Map();
  for (const name of ["chunk", "block"]) {
    const track = tracks.track(name);
    const [allocator, chunk, size, offset, owner] = ["allocator", "chunk", "size", "offset", "owner"].map((n) => track.col(n));
    for (let r = 0; r < track.length; r++) {
      let group = groups.get(allocator[r]);
      if (!group) groups.set(allocator[r], (group = { allocator: allocator[r], lanes: [], from: track.a[r], to: 0, holds: false }));
      let lane = group.lanes.find((l) => l.chunk === chunk[r]);
      if (!lane) {
        lane = { kind: "chunk", id: 0, allocator: allocator[r], chunk: chunk[r], extent: 1, label: "", usage: "" };
        group.lanes.push(lane);
      }
      group.from = Math.min(group.from, track.a[r]);
      if (name === "block" && owner[r] < 0) continue;
      lane.extent = Math.max(lane.extent, size[r] + (name === "block" ? offset[r] : 0));
      if (name === "chunk") continue;
      group.holds = true;
      group.to = Math.max(group.to, track.b[r]);
    }
  }
  for (const group of groups.values()) group.lanes.sort((p, q) => p.chunk - q.chunk);
  return [...groups.values()].sort((p, q) => p.from - q.from || p.allocator - q.allocator);
}

/** Buffers with the most that each ever holds. @param {import("./tracks.js").Tracks} tracks @returns {Lane[]} */
function readBuffers(tracks) {
  const track = tracks.track("buffer");
  /** @type {Map<number, Lane>} */
  const lanes = new Map();
  for (let r = 0; r < track.length; r++) {
    const id = track.col("buffer")[r];
    const usage = track.str("usage", r);
    const extent = Math.max(1, track.col("size")[r], lanes.get(id)?.extent ?? 1);
    if (usage !== "compute") lanes.set(id, { kind: "buffer", id, allocator: -1, chunk: -1, extent, label: `${track.str("buft", r)} buffer`, usage });
  }
  const place = tracks.track("place");
  const [buffer, tensor] = [place.col("buffer"), place.col("tensor")];
  /** @type {Map<number, number>} */
  const first = new Map();
  for (let r = place.length - 1; r >= 0; r--) first.set(buffer[r], tensor[r]);
  for (const lane of lanes.values()) {
    if (tracks.name(first.get(lane.id) ?? -1).startsWith("cache_")) lane.label = "KV cache";
    if (lane.usage === "any") lane.usage = "";
  }
  return [...lanes.values()].filter((lane) => first.has(lane.id));
}

export class Lanes {
  /** @param {import("./player.js").Player} player */
  constructor({ tracks, relations }) {
    this.tracks = tracks;
    this.relations = relations;
    this.groups = readGroups(tracks);
    this.buffers = readBuffers(tracks);
    const working = this.groups.some((g) => g.holds) ? this.groups.filter((g) => g.holds) : this.groups.slice(0, 1);
    /** @type {Place[]} */
    this.places = [];
    for (const group of working) {
      const free = this.places.find((place) => place.groups[place.groups.length - 1].to <= group.from);
      if (free) free.groups.push(group);
      else this.places.push({ rows: 0, groups: [group] });
    }
    for (const place of this.places) place.rows = Math.max(...place.groups.map((g) => g.lanes.length));
    /** How many bars of chunks there are room for. */
    this.rows = this.places.reduce((sum, place) => sum + place.rows, 0);
  }

  get none() {
    return !this.groups.length && !this.buffers.length;
  }

  /** Whether a line is kept for the allocators that do not work at a step. */
  get idle() {
    return this.groups.length > this.places.length;
  }

  /** The chunks shown at a step from top to bottom; null for a place with nothing in it. @param {number} step
   * @returns {(Lane | null)[]} */
  chunksAt(step) {
    return this.places.flatMap(({ rows, groups }) => {
      const group = groups.findLast((g) => g.from <= step) ?? groups[0];
      return Array.from({ length: rows }, (_, k) => group.lanes[k] ?? null);
    });
  }

  /** What the others do: nothing. @param {(Lane | null)[]} chunks those shown */
  idleWords(chunks) {
    const shown = new Set(chunks.map((lane) => lane?.allocator));
    const others = this.groups.filter((g) => !shown.has(g.allocator)).map((g) => g.allocator);
    const listed = others.length > 4 ? `${others.slice(0, 4).join(", ")} and ${others.length - 4} more` : others.join(", ");
    return `${others.length > 1 ? "allocators" : "allocator"} ${listed} ${others.length > 1 ? "hold" : "holds"} nothing now`;
  }

  /** The plan that an allocator carries out at a step. @param {number} allocator @param {number} step */
  planOf(allocator, step) {
    const { plans } = this.relations;
    const alone = this.groups.length < 2;
    return plans.findLast((plan) => plan.begin <= step && (plan.allocators.includes(allocator) || (alone && !plan.allocators.length))) ?? null;
  }

  /** The type of the buffer that a chunk becomes, told by its size where there are several. @param {Lane} lane
   * @param {import("./plans.js").Plan | undefined} plan */
  typeOf({ allocator, chunk }, plan) {
    const track = this.tracks.track("buffer");
    const size = track.col("size");
    const rows = Array.from(size, (_, r) => r).filter((r) => track.str("usage", r) === "compute");
    const names = new Set(rows.map((r) => track.str("buft", r)));
    if (names.size === 1) return `${[...names][0]} `;
    const planned = plan?.chunks.find((entry) => entry.chunk === chunkNumber(plan, allocator, chunk));
    const found = new Set(rows.filter((r) => size[r] === planned?.whole).map((r) => track.str("buft", r)));
    return found.size === 1 ? `${[...found][0]} ` : "";
  }

  /** What a chunk is for, as far as the trace says. @param {Lane} lane @param {number} step */
  nameOf(lane, step) {
    const { plans } = this.relations;
    const plan = this.planOf(lane.allocator, step);
    const planned = plan ?? plans.find((p) => p.allocators.includes(lane.allocator));
    const group = this.groups.find((g) => g.allocator === lane.allocator);
    const many = this.groups.filter((g) => g.holds).length > 1;
    const type = this.typeOf(lane, planned);
    const whose = planned || !many ? `${type}compute buffer` : `allocator ${lane.allocator}`;
    const buffer = planned && planned.allocators.length > 1 && !type ? ` ${planned.allocators.indexOf(lane.allocator)}` : "";
    const graph = plan && plan.graph >= 0 ? `, planned for ${graphWords(this.tracks, plan.graph)}` : "";
    return `${whose}${buffer}${group && group.lanes.length > 1 ? `, chunk ${lane.chunk}` : ""}${graph}`;
  }
}
