// A world for jari.js without a network: time that passes when it is told to, a server that answers from a function,
// sockets that say what a test lets them say.

/** Let everything that is ready happen: answers here are promises alone, and a message comes after all of those. */
function settle() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve(port1.close());
    port2.postMessage(null);
  });
}

export class World {
  /** Unix ms by the browser's clock. */
  time = 1_800_000_000_000;
  /** Every call: {at, method, path, query, headers, body}. */
  calls = [];
  sockets = [];
  #timers = new Map();
  #last = 0;

  /** @param {(call: any, world: World) => {status?: number, headers?: object, data?: any, error?: any, text?: string} | Error} answer */
  constructor(answer) {
    this.answer = answer;
    const world = this;
    this.timers = {
      now: () => this.time,
      set: (run, afterMs) => {
        this.#timers.set(++this.#last, { at: this.time + afterMs, run });
        return this.#last;
      },
      clear: (id) => this.#timers.delete(id),
    };
    this.WebSocket = class {
      sent = [];
      constructor(url) {
        this.url = url;
        this.at = world.time;
        world.sockets.push(this);
      }
      send(text) {
        this.sent.push(JSON.parse(text));
      }
      close() {
        this.closed = true;
        this.onclose?.({});
      }
      opened() {
        this.onopen?.({});
      }
      says(message) {
        this.onmessage?.({ data: JSON.stringify(message) });
      }
    };
  }

  get options() {
    const { timers, WebSocket } = this;
    return { timers, WebSocket, fetch: (url, request) => this.#fetch(url, request), shared: false };
  }

  async #fetch(url, { method, headers, body, signal }) {
    const address = new URL(url, location.href);
    const call = {
      at: this.time, method, path: address.pathname, query: Object.fromEntries(address.searchParams), headers,
      body: body ? JSON.parse(body) : undefined,
    };
    this.calls.push(call);
    let answer = this.answer(call, this);
    if (answer === "never") {
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new DOMException("", "AbortError"))));
    }
    if (answer instanceof Error) throw answer;
    const envelope = answer.error ? { success: false, error: answer.error } : { success: true, data: answer.data };
    const { status = 200, text = JSON.stringify(envelope) } = answer;
    // No real one: reading that takes real time.
    return { status, ok: status < 300, headers: new Headers(answer.headers), text: async () => text };
  }

  /** Let so much time pass, a timer at a time. */
  async pass(ms) {
    const until = this.time + ms;
    await settle();
    for (;;) {
      const due = [...this.#timers].filter(([, { at }]) => at <= until).sort(([a, x], [b, y]) => x.at - y.at || a - b)[0];
      if (!due) break;
      this.#timers.delete(due[0]);
      this.time = Math.max(this.time, due[1].at);
      due[1].run();
      await settle();
    }
    this.time = until;
  }

  /** Calls of a path. */
  of(path) {
    return this.calls.filter((call) => call.path === path);
  }
}

export const POLL = "/api/status/poll";
export const PROGRESS = "/api/status/progress";
export const TOKEN = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

/** A line that moves: somebody who joined at `rank`, `pace` people let in a second. */
export function line({ rank, pace, started, opensAt = 0, nextPollMs, offsetMs = 0 }) {
  const served = (world) => Math.max(0, Math.floor(((world.time - started) / 1_000) * pace));
  const interval = (place) => nextPollMs ?? (place > 100_000 ? 10_000 : place > 10_000 ? 5_000 : place > 1_000 ? 3_000 : place > 100 ? 2_000 : 1_000);
  const key = "k".repeat(80);
  return (call, world) => {
    const now = served(world);
    const place = rank - now;
    const at = world.time + offsetMs;
    switch (call.path) {
      case "/api/queue/join":
        return { data: { token: TOKEN, eventId: "e", joinedAt: at, ticketNumber: rank, rank: place, ahead: place - 1,
          nextPollMs: interval(place), key, rejoined: false } };
      case POLL: {
        const shared = { totalWaiting: rank * 2 - now, remainingSeats: 50, totalTicketCount: 0, net: now, key };
        if (place < 1) {
          return { data: { ...shared, status: "ACTIVE", rank: null, ahead: null, behind: null, nextPollMs: 2_000,
            activeExpiresAt: at + 180_000, expiresIn: 180, estimatedWaitSeconds: null } };
        }
        return { data: { ...shared, status: "WAITING", rank: place, ahead: place - 1, behind: rank, activeExpiresAt: null,
          nextPollMs: interval(place), estimatedWaitSeconds: Math.ceil((place - 1) / pace), score: rank } };
      }
      case PROGRESS:
        return { data: { status: "OPEN", headScore: now, net: now, totalWaiting: rank * 2 - now, remainingSeats: 50,
          admittedPerSecond: pace, opensAt, updatedAt: at } };
      default:
        return { status: 404, error: { code: "NOT_FOUND", message: call.path, requestId: "" } };
    }
  };
}
