// The live connection: pushes while a place is near the front, opened again when it breaks.

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
/** Where it never opened there may be none: asked for again this seldom. */
const ABSENT_WAIT_MS = 300_000;
const OPENING_TIMEOUT_MS = 8_000;

export class Push {
  #url;
  #WebSocket;
  #timers;
  #hello;
  #onMessage;
  #onChange;
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {number | undefined} */
  #timer;
  #wanted = false;
  #hasAnswered = false;
  #failures = 0;
  #isLive = false;

  /**
   * @param {object} options
   * @param {string} options.url
   * @param {typeof WebSocket | undefined} options.WebSocket
   * @param {import("./timers.js").Timers} options.timers
   * @param {() => object} options.hello what is sent first
   * @param {(message: any) => void} options.onMessage
   * @param {() => void} options.onChange it became live, or is no more
   */
  constructor({ url, WebSocket, timers, hello, onMessage, onChange }) {
    this.#url = url;
    this.#WebSocket = WebSocket;
    this.#timers = timers;
    this.#hello = hello;
    this.#onMessage = onMessage;
    this.#onChange = onChange;
  }

  /** Whether the server has answered on the connection that is open now. */
  get isLive() {
    return this.#isLive;
  }

  /** Keep one open. */
  want() {
    if (this.#wanted || !this.#WebSocket) return;
    this.#wanted = true;
    this.#open();
  }

  unwant() {
    this.#wanted = false;
    this.#clearTimer();
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
    this.#setLive(false);
  }

  #open() {
    let socket;
    try {
      socket = new this.#WebSocket(this.#url);
    } catch {
      return this.#broke();
    }
    this.#socket = socket;
    const mine = (run) => (event) => socket === this.#socket && run(event);
    socket.onopen = mine(() => socket.send(JSON.stringify(this.#hello())));
    socket.onmessage = mine(({ data }) => this.#heard(data));
    socket.onclose = mine(() => this.#broke());
    this.#clearTimer();
    this.#timer = this.#timers.set(() => !this.#isLive && socket === this.#socket && socket.close(), OPENING_TIMEOUT_MS);
  }

  #heard(data) {
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return;
    }
    // Not followed: crowded, or the place is not known. Polls tell more.
    if (message.status === "error" && !this.#isLive) return this.#socket?.close();
    this.#failures = 0;
    this.#hasAnswered = true;
    this.#setLive(true);
    this.#onMessage(message);
  }

  #broke() {
    this.#socket = undefined;
    this.#setLive(false);
    if (!this.#wanted) return;
    this.#failures += 1;
    const doubled = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(this.#failures - 1, 10));
    const wait = this.#hasAnswered ? doubled : ABSENT_WAIT_MS;
    this.#clearTimer();
    this.#timer = this.#timers.set(() => this.#wanted && this.#open(), wait * (0.5 + Math.random()));
  }

  #clearTimer() {
    if (this.#timer !== undefined) this.#timers.clear(this.#timer);
    this.#timer = undefined;
  }

  #setLive(isLive) {
    if (isLive === this.#isLive) return;
    this.#isLive = isLive;
    this.#onChange();
  }
}
