// When to do something next. Browsers run the timers of a hidden page once a minute at worst, too seldom for
// somebody who is called meanwhile; those of a worker keep time.

/**
 * @typedef {object} Timers
 * @property {() => number} now Unix milliseconds by the local clock
 * @property {(run: () => void, afterMs: number) => number} set
 * @property {(id: number) => void} clear
 */

/** A worker's address, for pages whose policy asks for trusted types. */
function scriptUrl(url) {
  const types = globalThis.trustedTypes;
  return types ? types.createPolicy("jari", { createScriptURL: (text) => text }).createScriptURL(url) : url;
}

/** Both kinds at once: the first to ring counts, so that a worker that is refused or slow costs nothing. */
class BrowserTimers {
  /** @type {Map<number, {run: () => void, own: number}>} */
  #waiting = new Map();
  #last = 0;
  /** @type {Worker | undefined} */
  #worker;

  constructor() {
    try {
      this.#worker = new Worker(scriptUrl(new URL("timer-worker.js", import.meta.url).href));
      this.#worker.onmessage = ({ data }) => this.#ring(data);
    } catch {
      // Another origin's page, or no workers here: its own timers remain.
    }
  }

  now() {
    return Date.now();
  }

  set(run, afterMs) {
    const id = ++this.#last;
    this.#waiting.set(id, { run, own: setTimeout(() => this.#ring(id), afterMs) });
    this.#worker?.postMessage({ id, afterMs });
    return id;
  }

  clear(id) {
    clearTimeout(this.#waiting.get(id)?.own);
    this.#waiting.delete(id);
  }

  #ring(id) {
    const waiting = this.#waiting.get(id);
    this.clear(id);
    waiting?.run();
  }
}

/** @type {Timers | undefined} */
let shared;

/** The timers of this page. @returns {Timers} */
export function browserTimers() {
  shared ??= new BrowserTimers();
  return shared;
}

/** Work that is done again and again, as long after its end as it says itself. */
export class Loop {
  #timers;
  #work;
  /** @type {number | undefined} */
  #timer;
  #dueAt = Infinity;
  #run = 0;
  #works = false;

  /**
   * @param {Timers} timers
   * @param {() => Promise<number | null>} work the milliseconds until the next time; null: it has ended
   */
  constructor(timers, work) {
    this.#timers = timers;
    this.#work = work;
  }

  /** Do it after so long, whatever was planned. */
  start(afterMs) {
    this.stop();
    const wait = Math.max(0, afterMs);
    this.#dueAt = this.#timers.now() + wait;
    const run = this.#run;
    this.#timer = this.#timers.set(() => this.#once(run), wait);
  }

  /** Do it within so long: what is planned earlier, or being done, stays. */
  startWithin(afterMs) {
    if (!this.#works && this.#timers.now() + afterMs < this.#dueAt) this.start(afterMs);
  }

  stop() {
    this.#run += 1;
    this.#works = false;
    this.#dueAt = Infinity;
    if (this.#timer !== undefined) this.#timers.clear(this.#timer);
    this.#timer = undefined;
  }

  async #once(run) {
    if (run !== this.#run) return;
    this.#timer = undefined;
    this.#dueAt = Infinity;
    this.#works = true;
    const afterMs = await this.#work();
    // Stopped or planned anew meanwhile: that stands.
    if (run !== this.#run) return;
    this.#works = false;
    if (afterMs !== null) this.start(afterMs);
  }
}
