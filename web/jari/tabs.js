// What the tabs of one browser share: one place, and one tab that asks for all of them.

/**
 * What is kept of a place between visits.
 * @typedef {object} StoredPlace
 * @property {string} token
 * @property {string} [eventId]
 * @property {string} [key]
 * @property {string} [accessToken]
 * @property {number | null} [ticketNumber]
 * @property {number} [score]
 * @property {number} [startAhead] how many stood before it when its rank was first known
 * @property {number} [progress] the highest shown, 0 to 1
 * @property {string} [commitment] of the draw, as first published
 * @property {boolean} [ended] the session is over; coming back is the person's choice
 * @property {import("../jari.js").Held[]} [held]
 * @property {number | null} [holdExpiresAt]
 * @property {string} [reservationId]
 */

/** Keeps a place in localStorage; in memory where there is none. */
export class PlaceStore {
  #name;
  #storage;
  /** @type {StoredPlace | null} */
  #memory = null;

  /** @param {string} name @param {Storage | null} storage */
  constructor(name, storage) {
    this.#name = name;
    this.#storage = storage;
  }

  /** @returns {StoredPlace | null} */
  read() {
    try {
      const text = this.#storage?.getItem(this.#name);
      if (this.#storage) return text ? JSON.parse(text) : null;
    } catch {
      // Storage is refused, or what lies there is not ours.
    }
    return this.#memory;
  }

  /** What another tab wrote a moment ago, once it has come here: tabs of several processes see each other's late. */
  async arrival(withinMs) {
    if (this.read() || !this.#storage) return this.read();
    const heard = new AbortController();
    await new Promise((resolve) => {
      const hear = ({ key }) => key === this.#name && resolve(undefined);
      addEventListener("storage", hear, { signal: heard.signal });
      setTimeout(resolve, withinMs);
    });
    heard.abort();
    return this.read();
  }

  /** @param {Partial<StoredPlace>} change @returns {StoredPlace} */
  write(change) {
    const place = /** @type {StoredPlace} */ ({ ...this.read(), ...change });
    this.#memory = place;
    try {
      this.#storage?.setItem(this.#name, JSON.stringify(place));
    } catch {
      this.#storage = null;
    }
    return place;
  }

  clear() {
    this.#memory = null;
    try {
      this.#storage?.removeItem(this.#name);
    } catch {
      this.#storage = null;
    }
  }
}

/** One tab leads: the one looked at last. The others are told what it learns. */
export class Tabs {
  #name;
  #locks;
  #channel;
  #handlers;
  #leads = false;
  #ended = false;
  #onVisible = () => this.#requestLead();

  /**
   * @param {string} name
   * @param {{onLead: () => void, onFollow: () => void, onMessage: (message: any) => void}} handlers
   * @param {boolean} shared false: this tab cares for itself
   */
  constructor(name, handlers, shared) {
    this.#name = name;
    this.#handlers = handlers;
    this.#locks = shared ? globalThis.navigator?.locks : undefined;
    if (shared && globalThis.BroadcastChannel) {
      this.#channel = new BroadcastChannel(name);
      this.#channel.onmessage = ({ data }) => handlers.onMessage(data);
    }
  }

  get leads() {
    return this.#leads;
  }

  start() {
    if (!this.#locks) return this.#lead();
    document.addEventListener("visibilitychange", this.#onVisible);
    this.#requestLead();
  }

  /** Tell the other tabs. */
  post(message) {
    this.#channel?.postMessage(message);
  }

  /**
   * Nobody else in this browser does the same meanwhile.
   * @template T
   * @param {(waited: boolean) => Promise<T>} work told whether another tab did it just before
   * @returns {Promise<T>}
   */
  async alone(work) {
    if (!this.#locks) return work(false);
    const name = `${this.#name}:alone`;
    const done = await this.#locks.request(name, { ifAvailable: true }, async (lock) => lock && { of: await work(false) });
    return done ? done.of : this.#locks.request(name, () => work(true));
  }

  end() {
    this.#ended = true;
    this.#leads = false;
    this.#release?.();
    globalThis.document?.removeEventListener("visibilitychange", this.#onVisible);
    this.#channel?.close();
  }

  /** @type {(() => void) | undefined} */
  #release;

  /** Take the lead where somebody looks, else stand by until the leading tab ends. */
  async #requestLead() {
    if (this.#ended || this.#leads) return;
    const steal = document.visibilityState === "visible";
    try {
      await this.#locks.request(`${this.#name}:lead`, { steal }, () => this.#hold());
    } catch {
      // Another tab took it: stand by.
      if (this.#leads) this.#follow();
      if (!this.#ended) this.#standBy();
    }
  }

  #standsBy = false;

  async #standBy() {
    // One request waits; it outlives a lead that was taken in between.
    if (this.#standsBy) return;
    this.#standsBy = true;
    try {
      await this.#locks.request(`${this.#name}:lead`, () => {
        this.#standsBy = false;
        return this.#hold();
      });
    } catch {
      if (this.#leads) this.#follow();
      if (!this.#ended) this.#standBy();
    }
  }

  /** Holds the lock for as long as this tab leads. */
  #hold() {
    if (this.#ended || this.#leads) return undefined;
    this.#lead();
    return new Promise((resolve) => {
      this.#release = () => resolve(undefined);
    });
  }

  #lead() {
    this.#leads = true;
    this.#handlers.onLead();
  }

  #follow() {
    this.#leads = false;
    this.#handlers.onFollow();
  }
}
