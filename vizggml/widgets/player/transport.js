// The transport: play, step, jump; the slider over all events with what happens where.

import { el, iconButton, setIcon, setText } from "./dom.js";
import { formatCount } from "./sentence.js";
import { AREA_GROUPS, areaGroup } from "./theme.js";

/** @typedef {import("./player.js").Player} Player */

export const SPEEDS = [1, 2, 4, 8, 15, 30, 60, 120, 250, 500, 1000, 2500];
const FIRST_SPEED = 3;
const STRIP = 5;

export class Transport {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.speed = FIRST_SPEED;
    this.playing = 0;
    this.due = 0;
    this.last = 0;
    this.playButton = iconButton("play", "Play (space)", () => this.toggle());
    this.playButton.classList.add("vg-play");
    this.rate = el("span", "vg-rate vg-tabular");
    this.slider = el("input", "vg-slider", { type: "range", min: "0", max: String(player.tracks.n - 1), step: "1", "aria-label": "Event" });
    this.slider.addEventListener("input", () => player.go(Number(this.slider.value), false));
    this.strip = el("canvas", "vg-strip", { "aria-hidden": "true" });
    this.number = el("input", "vg-goto vg-tabular", { type: "text", inputmode: "numeric", "aria-label": `Go to event, 0 to ${player.tracks.n - 1}`, title: "Go to event (g)" });
    this.number.addEventListener("keydown", (event) => this.onNumber(event));
    this.number.addEventListener("blur", () => this.showStep(player.step));
    this.number.style.width = `${String(player.tracks.n).length + 2.5}ch`;
    this.element = el("div", "vg-transport", {}, [this.makeButtons(), this.makeSlider(), this.makeCount(), this.makeKin()]);
    this.showSpeed();
  }

  makeButtons() {
    const { player } = this;
    return el("div", "vg-group", {}, [
      iconButton("start", "To the start (Home)", () => player.go(0)),
      iconButton("back", "One event back (left arrow)", () => player.stepBy(-1)),
      this.playButton,
      iconButton("forward", "One event forward (right arrow)", () => player.stepBy(1)),
      iconButton("end", "To the end (End)", () => player.go(player.tracks.n - 1)),
      el("span", "vg-speed", {}, [iconButton("slower", "Slower (-)", () => this.setSpeed(-1)), this.rate, iconButton("faster", "Faster (+)", () => this.setSpeed(1))]),
    ]);
  }

  makeSlider() {
    return el("div", "vg-slide", {}, [this.slider, this.strip]);
  }

  makeCount() {
    return el("label", "vg-count", {}, [this.number, el("span", "vg-soft vg-tabular", { text: `of 0–${formatCount(this.player.tracks.n - 1)}` })]);
  }

  makeKin() {
    const { player } = this;
    /** @param {string} word @param {"kind" | "tensor" | "node"} what @param {string} keys */
    const pair = (word, what, keys) =>
      el("span", "vg-pair", { role: "group", "aria-label": `Same ${word}` }, [
        iconButton("left", `Previous event of this ${word} (${keys[0]})`, () => player.goToKin(what, -1)),
        el("span", "vg-pair-word", { text: word }),
        iconButton("right", `Next event of this ${word} (${keys[1]})`, () => player.goToKin(what, 1)),
      ]);
    const help = iconButton("help", "Keys (?)", () => player.help.toggle());
    return el("div", "vg-group vg-kin", {}, [pair("kind", "kind", "pn"), pair("tensor", "tensor", "Tt"), pair("node", "node", ",."), help]);
  }

  /** @param {KeyboardEvent} event */
  onNumber(event) {
    if (event.key === "Enter") {
      const wanted = Number(this.number.value.replace(/[\s\u2009,_]/g, ""));
      if (Number.isFinite(wanted) && this.number.value.trim() !== "") this.player.go(Math.round(wanted));
      else this.showStep(this.player.step);
      this.player.root.focus();
    } else if (event.key === "Escape") {
      this.player.root.focus();
    } else {
      return;
    }
    event.stopPropagation();
    event.preventDefault();
  }

  askNumber() {
    this.number.focus();
    this.number.select();
  }

  /** @param {number} step */
  draw(step) {
    if (document.activeElement !== this.number) this.showStep(step);
    const value = String(step);
    if (this.slider.value !== value) this.slider.value = value;
    this.slider.style.setProperty("--vg-done", `${(100 * step) / Math.max(1, this.player.tracks.n - 1)}%`);
  }

  /** @param {number} step */
  showStep(step) {
    const text = String(step);
    if (this.number.value !== text) this.number.value = text;
  }

  // ---- playing

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    const { player } = this;
    if (player.step >= player.tracks.n - 1) player.go(0, false);
    this.last = performance.now();
    this.due = 0;
    setIcon(this.playButton, "pause", "Pause (space)");
    const tick = (/** @type {number} */ now) => {
      this.due += ((now - this.last) / 1000) * SPEEDS[this.speed];
      this.last = now;
      const steps = Math.floor(this.due);
      this.due -= steps;
      if (steps > 0) player.go(player.step + steps, false);
      if (player.step >= player.tracks.n - 1) this.pause();
      else if (this.playing) this.playing = requestAnimationFrame(tick);
    };
    this.playing = requestAnimationFrame(tick);
  }

  pause() {
    if (this.playing) cancelAnimationFrame(this.playing);
    this.playing = 0;
    setIcon(this.playButton, "play", "Play (space)");
  }

  /** @param {number} by */
  setSpeed(by) {
    this.speed = Math.max(0, Math.min(SPEEDS.length - 1, this.speed + by));
    this.showSpeed();
  }

  showSpeed() {
    setText(this.rate, `${SPEEDS[this.speed]}/s`);
  }

  /** Paints what kinds of events lie where. Called once the first picture stands, and when the theme changes. */
  paintStrip() {
    const { tracks, palette } = this.player;
    const columns = 1000;
    this.strip.width = columns;
    this.strip.height = STRIP;
    const c = this.strip.getContext("2d");
    if (!c) return;
    const groups = tracks.kinds.map((kind) => areaGroup(kind.area));
    const counts = new Uint32Array(AREA_GROUPS.length);
    for (let x = 0; x < columns; x++) {
      counts.fill(0);
      const to = Math.max(Math.floor(((x + 1) * tracks.n) / columns), Math.floor((x * tracks.n) / columns) + 1);
      for (let i = Math.floor((x * tracks.n) / columns); i < to && i < tracks.n; i++) counts[groups[tracks.kind[i]]]++;
      c.fillStyle = palette.areas[counts.indexOf(Math.max(...counts))];
      c.fillRect(x, 0, 1, STRIP);
    }
    this.strip.title = AREA_GROUPS.slice(1).join(", ");
  }

  stop() {
    this.pause();
  }
}
