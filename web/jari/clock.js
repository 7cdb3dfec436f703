// The server's clock, as close as the answers tell it: countdowns are the same on a phone whose clock is wrong.

export class ServerClock {
  #now;
  // Server time less local time lies between these.
  #low = -Infinity;
  #high = Infinity;

  /** @param {() => number} now the local clock, in ms */
  constructor(now) {
    this.#now = now;
  }

  /**
   * An answer told the server's time.
   * @param {number} serverMs
   * @param {number} sentAt when the request went, by the local clock
   * @param {number} slackMs how old the answer may have been before: a cache's, or what rounding took away
   */
  learn(serverMs, sentAt, slackMs = 0) {
    const low = serverMs - this.#now();
    const high = serverMs + slackMs - sentAt;
    this.#low = Math.max(this.#low, low);
    this.#high = Math.min(this.#high, high);
    // A clock was set meanwhile: only the newest counts.
    if (this.#low > this.#high) [this.#low, this.#high] = [low, high];
  }

  /** Server less local, in ms; 0 until an answer told it. */
  get offsetMs() {
    return this.#high === Infinity ? 0 : (this.#low + this.#high) / 2;
  }

  /** Unix ms on the server now. */
  now() {
    return this.#now() + this.offsetMs;
  }
}
