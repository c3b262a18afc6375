// What waits until the steps come to rest: words for a screen reader, hints, the page's address. One timer serves all, and
// holding a key down sets none.

export class Rest {
  constructor() {
    /** @type {Map<unknown, {due: number, act: () => void}>} */
    this.waiting = new Map();
    this.timer = 0;
  }

  /** Calls `act` once `name`, mostly who asks, has not asked again for `ms`. @param {unknown} name @param {number} ms @param {() => void} act */
  after(name, ms, act) {
    this.waiting.set(name, { due: performance.now() + ms, act });
    if (!this.timer) this.timer = setTimeout(() => this.look(), ms);
  }

  look() {
    this.timer = 0;
    const now = performance.now();
    const ready = [...this.waiting].filter(([, { due }]) => due <= now);
    for (const [name] of ready) this.waiting.delete(name);
    for (const [, { act }] of ready) act();
    const next = Math.min(...[...this.waiting.values()].map(({ due }) => due));
    if (Number.isFinite(next) && !this.timer) this.timer = setTimeout(() => this.look(), Math.max(1, next - performance.now()));
  }

  stop() {
    clearTimeout(this.timer);
    this.waiting.clear();
  }
}
