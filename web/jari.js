// The client of a sale: a place in its line, kept over reloads and tabs, and what can be done once it is let in.
//
//   import { Jari } from "https://…/jari.js";
//   const jari = new Jari({ eventId: "concert-2026" });
//   jari.addEventListener("change", () => show(jari.state));
//   await jari.enter();
//
// No dependencies. docs/page.md says what it does when.

import { ServerClock } from "./jari/clock.js";
import { checkDraw } from "./jari/draw.js";
import { Push } from "./jari/push.js";
import { Caller, JariError, idempotencyKey, waitAfter } from "./jari/request.js";
import { PlaceStore, Tabs } from "./jari/tabs.js";
import { Loop, browserTimers } from "./jari/timers.js";

export { JariError };

/**
 * Places that are held. `seats` is empty in a general section.
 * @typedef {{offeringId: string, sectionId: string, seats: string[], count: number}} Held
 */

/**
 * Where a person stands.
 * idle, entering: no place yet. notOpen: the sale keeps no line before `opensAt`; joins by itself then.
 * upcoming: in the line, before the opening. waiting. active: let in. booked.
 * expired: the session is over; `rejoin` stands at the end. over: the sale is. left. refused: see `refusal`.
 * @typedef {"idle" | "entering" | "notOpen" | "upcoming" | "waiting" | "active" | "booked" | "expired" | "over" |
 *   "left" | "refused"} Phase
 */

/**
 * All times are Unix ms of the server: compare them with `jari.now()`.
 * @typedef {object} State
 * @property {Phase} phase
 * @property {string | null} eventId as the server names it
 * @property {number | null} ticketNumber
 * @property {number | null} rank from 1; null before the opening and out of the line
 * @property {number | null} ahead
 * @property {number | null} behind
 * @property {number | null} totalWaiting
 * @property {number | null} estimatedWaitSeconds null while nobody is admitted
 * @property {number | null} remainingSeats free in the whole sale
 * @property {number | null} opensAt
 * @property {number | null} activeExpiresAt
 * @property {number | null} holdExpiresAt
 * @property {Held[]} held
 * @property {string | null} reservationId
 * @property {number} totalTicketCount bought so far
 * @property {string | null} message what the operator tells everybody
 * @property {"UPCOMING" | "OPEN" | "PAUSED" | "CLOSED" | null} saleStatus
 * @property {boolean} isDrawn whether the line before the opening is drawn
 * @property {boolean} returned a missed call was made good: the place is the old one
 * @property {"fine" | "offline" | "busy"} connection
 * @property {number | null} retryAt when it is tried again
 * @property {JariError | null} refusal why there is no place
 * @property {"poll" | "progress" | "push"} via how the place is followed
 */

/** @type {State} */
const NOTHING = {
  phase: "idle", eventId: null, ticketNumber: null, rank: null, ahead: null, behind: null, totalWaiting: null,
  estimatedWaitSeconds: null, remainingSeats: null, opensAt: null, activeExpiresAt: null, holdExpiresAt: null,
  held: [], reservationId: null, totalTicketCount: 0, message: null, saleStatus: null, isDrawn: false,
  returned: false, connection: "fine", retryAt: null, refusal: null, via: "poll",
};

/** Nearer than this a live connection is kept. */
const PUSH_WITHIN = 1_000;
/** Farther than this the shared progress tells the rank. */
const PROGRESS_BEYOND = 10_000;
/** So often the place itself is asked for, at least, while progress tells the rank. */
const REREAD_MS = 600_000;
/** The same while pushes come. */
const PUSHED_POLL_MS = { waiting: 30_000, active: 10_000 };
/** So often the sale's status is asked for while polls tell the rank. */
const PULSE_MS = 10_000;
/** Everybody asks at the opening: so many a second at most, within so long. */
const OPENING_ASKS_PER_SECOND = 5_000;
const OPENING_SPREAD_MS = 8_000;
/** An action is repeated for so long where the network or the server is at fault. */
const ACTION_PATIENCE_MS = 20_000;
/** A first refusal with so short a wait is no news. */
const BRIEF_MS = 3_000;
/** What another tab stored is here within so long. */
const ARRIVAL_MS = 1_000;
/** Answers of a shared cache may be so old. */
const CACHE_AGE_MS = 1_000;

const WAITS = ["upcoming", "waiting"];
/** Phases that are followed; the others are ends, left by a person's choice alone. */
const FOLLOWED = ["entering", "notOpen", ...WAITS, "active"];
/** What tells that the session is not what it was. */
const SESSION_CODES = ["NOT_ADMITTED", "ADMISSION_EXPIRED", "HOLD_EXPIRED", "ALREADY_BOOKED", "EVENT_CLOSED"];

/** The same intervals as the server's before the opening: by time alone. */
const beforeOpeningMs = (untilMs) => (untilMs > 600_000 ? 10_000 : untilMs > 60_000 ? 5_000 : 2_000);
const jittered = (ms) => ms * (0.8 + 0.4 * Math.random());

/**
 * One person's way through one sale. Sends "change" whenever `state` is a new one.
 */
export class Jari extends EventTarget {
  /** @type {State} */
  #state = NOTHING;
  #eventId;
  #account;
  #store;
  #tabs;
  #caller;
  #timers;
  #clock;
  #asking;
  #pulse;
  #push;
  #failures = 0;
  #pulseFailures = 0;
  // The last exact answer: what progress is reckoned from.
  #read = { at: 0, rank: 0, net: 0, score: Infinity };
  // By path and query: the last map and its tag.
  #maps = new Map();
  /** @type {any} */
  #progress = null;
  #shownAt = 0;
  #onVisible = () => document.visibilityState === "visible" && this.#wake(0);
  #onOnline = () => this.#wake(Math.random() * 1_000);
  #onOffline = () => this.#set({ connection: "offline" });

  /**
   * @param {object} [options]
   * @param {string} [options.eventId] without one it is the server's default sale
   * @param {string} [options.base] where the API is; without one it is this page's host
   * @param {string} [options.language] of messages: ko or en
   * @param {() => string | null | Promise<string | null>} [options.account] the signed-in person's own access token, as
   *   the deployment's authorizer takes it; sent with what gives a place
   * @param {boolean} [options.push] false: never open a WebSocket
   * @param {boolean} [options.shared] false: this tab has a place of its own and keeps nothing
   * @param {Storage | null} [options.storage]
   * @param {typeof fetch} [options.fetch]
   * @param {typeof WebSocket} [options.WebSocket]
   * @param {import("./jari/timers.js").Timers} [options.timers]
   */
  constructor(options = {}) {
    super();
    const { base = "", shared = true, push = true, language } = options;
    this.#eventId = options.eventId;
    this.#account = options.account ?? (() => null);
    this.#timers = options.timers ?? browserTimers();
    this.#clock = new ServerClock(() => this.#timers.now());
    const send = options.fetch ?? ((...request) => globalThis.fetch(...request));
    this.#caller = new Caller({ base, fetch: send, timers: this.#timers, language });
    const name = `jari:${base}:${this.#eventId ?? ""}`;
    this.#store = new PlaceStore(name, shared ? (options.storage ?? ownStorage()) : null);
    this.#asking = new Loop(this.#timers, () => this.#ask());
    this.#pulse = new Loop(this.#timers, () => this.#readProgress());
    this.#push = new Push({
      url: new URL(`${base}/socket`, globalThis.location?.href).href.replace(/^http/, "ws"),
      WebSocket: push ? (options.WebSocket ?? globalThis.WebSocket) : undefined,
      timers: this.#timers,
      hello: () => ({ type: "connect", token: this.#store.read()?.token, eventId: this.#state.eventId, language: this.#caller.language }),
      onMessage: (message) => this.#pushed(message),
      onChange: () => this.#set({ via: this.#push.isLive ? "push" : "poll" }),
    });
    const handlers = {
      onLead: () => this.#lead(),
      onFollow: () => this.#follow(),
      onMessage: (message) => this.#told(message),
    };
    this.#tabs = new Tabs(name, handlers, shared);
  }

  /** @returns {State} */
  get state() {
    return this.#state;
  }

  /** The token of the place, once there is one. A secret: whoever has it acts as its owner. */
  get token() {
    return this.#store.read()?.token ?? null;
  }

  /** Unix ms on the server. */
  now() {
    return this.#clock.now();
  }

  /** Accept-Language of what follows. */
  set language(language) {
    this.#caller.language = language;
  }

  /** Come to the line: back to the place of this browser, else to a new one. Then follow it until `end`. */
  enter() {
    if (this.#state.phase !== "idle") return;
    this.#set({ phase: "entering" });
    globalThis.document?.addEventListener("visibilitychange", this.#onVisible);
    globalThis.addEventListener?.("online", this.#onOnline);
    globalThis.addEventListener?.("offline", this.#onOffline);
    this.#tabs.start();
    this.#tabs.post({ ask: true });
  }

  /** Follow no more. The place stays. */
  end() {
    this.#follow();
    this.#tabs.end();
    globalThis.document?.removeEventListener("visibilitychange", this.#onVisible);
    globalThis.removeEventListener?.("online", this.#onOnline);
    globalThis.removeEventListener?.("offline", this.#onOffline);
  }

  /** After "expired": stand at the end. After "left", "over" and "refused": join anew. */
  async rejoin() {
    if (this.#state.phase === "expired") this.#store.write({ ended: false, startAhead: undefined, progress: 0 });
    else this.#forget();
    this.#set({ ...NOTHING, phase: "entering" });
    this.#asking.start(0);
  }

  /** Give the place up, and what is held with it. */
  async leave() {
    const place = this.#store.read();
    const call = () => this.#caller.call("DELETE", "/api/queue/leave", { query: { token: place?.token, ...this.#event() } });
    if (place) await this.#patiently(call);
    this.#forget();
    this.#stopFollowing();
    this.#set({ ...NOTHING, phase: "left", eventId: this.#state.eventId });
    this.#tell();
  }

  /**
   * Offerings with what is free in their sections.
   * @param {{from?: string, to?: string, date?: string}} [filters]
   */
  async search(filters = {}) {
    const answer = await this.#acting((proof) => this.#caller.call("GET", "/api/offerings", {
      query: { ...filters, ...this.#event(), ...proof.query }, headers: proof.headers,
    }));
    return answer.data.offerings;
  }

  /**
   * An offering's seats. The same object again while nothing has changed.
   * @param {{offeringId?: string, sectionId?: string}} which
   */
  async seats(which) {
    const known = this.#maps.get(JSON.stringify(which));
    const answer = await this.#acting((proof) => this.#caller.call("GET", "/api/seats", {
      query: { ...which, ...this.#event(), ...proof.query },
      headers: { ...proof.headers, ...(known && { "if-none-match": known.etag }) },
    }));
    const map = answer.status === 304 ? known.map : answer.data;
    this.#maps.set(JSON.stringify(which), { etag: answer.etag ?? known?.etag, map });
    this.#compare(which.offeringId, map, answer.sentAt);
    return map;
  }

  /**
   * Hold places: named seats, any so many, or so many side by side.
   * @param {{offeringId: string, sectionId: string, seats?: string[], count?: number, best?: number}} wanted
   * @returns {Promise<{seats: string[], seatCount: number, holdExpiresAt: number}>}
   */
  async select(wanted) {
    const { data } = await this.#changing("POST", "/api/seat/select", wanted);
    const { offeringId, sectionId } = wanted;
    this.#hold({ offeringId, sectionId, seats: data.seats, count: data.seatCount ?? data.seats.length }, data);
    return data;
  }

  /**
   * Give held places back: named seats of an offering, all of an offering, or everything.
   * @param {{offeringId?: string, seats?: string[]}} [which]
   */
  async release(which = {}) {
    const { data } = await this.#changing("POST", "/api/seat/cancel", which);
    const rest = this.#state.held.flatMap((held) => {
      if (which.offeringId && held.offeringId !== which.offeringId) return [held];
      const seats = which.seats ? held.seats.filter((seat) => !which.seats?.includes(seat)) : [];
      if (!which.seats) return [];
      return held.seats.length === 0 ? [held] : seats.length ? [{ ...held, seats, count: seats.length }] : [];
    });
    this.#store.write({ held: rest });
    this.#set({ held: rest });
    this.#tabs.post({ held: { held: rest } });
    return data;
  }

  /**
   * Buy what is held; with seatCount so many places of a section, nothing being held.
   * @param {{seatCount?: number, offeringId?: string, sectionId?: string}} [plain]
   */
  async book(plain = {}) {
    const { data } = await this.#changing("POST", "/api/booking", plain);
    this.#booked(data.reservationId);
    return data;
  }

  /** The reservation as it stands; also after the sale. */
  async reservation(id = this.#reservationId()) {
    const path = `/api/booking/${encodeURIComponent(id)}`;
    const answer = await this.#proving(({ query, headers }) => this.#caller.call("GET", path, { query, headers }));
    return answer.data;
  }

  /** Give the reservation back. */
  async cancel(id = this.#reservationId()) {
    const path = `/api/booking/${encodeURIComponent(id)}`;
    const key = { "idempotency-key": idempotencyKey() };
    const answer = await this.#patiently(() => this.#proving(({ query, headers }) =>
      this.#caller.call("DELETE", path, { query, headers: { ...headers, ...key } })));
    return answer.data;
  }

  /** Waits until the reservation is paid, cancelled or expired; each answer on the way goes to `onRead`. */
  async settled(onRead = (_reservation) => {}, signal = new AbortController().signal) {
    for (let failures = 0; ; ) {
      let waitMs = jittered(5_000);
      try {
        const reservation = await this.reservation();
        failures = 0;
        onRead(reservation);
        if (reservation.status !== "PENDING_PAYMENT") return reservation;
      } catch (error) {
        if (!(error instanceof JariError && error.isPassing)) throw error;
        waitMs = waitAfter(error, ++failures);
      }
      await this.#sleep(waitMs, signal);
      if (signal.aborted) return null;
    }
  }

  /** How far the way to the front is done, 0 to 1: moves on between answers, and never back. */
  progress() {
    const { phase, ahead, estimatedWaitSeconds } = this.#state;
    const place = this.#store.read();
    if (!WAITS.includes(phase)) return ["active", "booked"].includes(phase) ? 1 : 0;
    if (!place || ahead === null || place.startAhead === undefined) return place?.progress ?? 0;
    const pace = estimatedWaitSeconds ? ahead / estimatedWaitSeconds : 0;
    // What is not known yet is believed for a few intervals, and never to the very front.
    const gone = Math.min(pace * Math.min(15, (this.#timers.now() - this.#shownAt) / 1_000), ahead * 0.9);
    const done = 1 - (ahead - gone + 1) / (place.startAhead + 1);
    const shown = Math.max(place.progress ?? 0, done);
    if (shown > (place.progress ?? 0)) this.#store.write({ progress: shown });
    return shown;
  }

  /** The check of the draw, in this browser. Null where the line is not drawn. */
  async checkDraw() {
    const place = this.#store.read();
    if (!place) return null;
    const { data } = await this.#caller.call("GET", "/api/status/progress", { query: this.#event() });
    this.#learn(data, this.#timers.now());
    return checkDraw(this.#store.read() ?? place, data);
  }

  // --- following the place -------------------------------------------------------------------------------------

  #lead() {
    if (!FOLLOWED.includes(this.#state.phase)) return;
    // Another tab may have asked a moment ago.
    this.#exactNext = true;
    this.#asking.start(0);
    this.#pulse.start(Math.random() * 500);
  }

  #follow() {
    this.#stopFollowing();
  }

  #stopFollowing() {
    this.#asking.stop();
    this.#pulse.stop();
    this.#push.unwant();
  }

  /** Something happened that makes waiting pointless: the network is back, somebody looks. */
  #wake(afterMs) {
    if (!this.#tabs.leads || !FOLLOWED.includes(this.#state.phase)) return;
    const due = ["fine", "busy"].includes(this.#state.connection) ? this.#dueIn() : 0;
    this.#asking.startWithin(Math.max(afterMs, due));
    this.#pulse.startWithin(Math.max(afterMs, due));
  }

  /** A poll before its time is refused: how long until then. */
  #dueIn() {
    return Math.max(0, Math.max(this.#notBefore, this.#state.retryAt ?? 0) - this.#timers.now());
  }
  #notBefore = 0;

  /** @returns {Promise<number | null>} */
  async #ask() {
    try {
      const afterMs = this.#isKnown() ? await this.#poll() : await this.#enter();
      this.#failures = 0;
      this.#set({ connection: "fine", retryAt: null });
      return afterMs;
    } catch (error) {
      return this.#failed(error);
    }
  }

  #isKnown() {
    return this.#store.read() && !["entering", "notOpen", "refused"].includes(this.#state.phase);
  }

  #failed(error) {
    if (!(error instanceof JariError)) throw error;
    if (error.isPassing) {
      const waitMs = waitAfter(error, ++this.#failures);
      const isBrief = error.code === "RATE_LIMIT" && waitMs < BRIEF_MS && this.#failures === 1;
      const connection = isBrief ? "fine" : error.code === "OFFLINE" ? "offline" : "busy";
      this.#set({ connection, retryAt: this.#timers.now() + waitMs });
      return waitMs;
    }
    this.#set({ connection: "fine", retryAt: null });
    if (error.code === "NOT_OPEN") return this.#untilOpening(error);
    if (error.code === "ALREADY_BOOKED") return this.#booked(error.details.reservationId);
    this.#set({ phase: error.code === "EVENT_CLOSED" ? "over" : "refused", refusal: error });
    return null;
  }

  #untilOpening(error) {
    const { opensAt } = error.details;
    this.#set({ phase: "notOpen", opensAt });
    const untilMs = opensAt - this.now();
    // Asked again now and then: an opening may be moved.
    return untilMs > 60_000 ? jittered(30_000) : Math.max(500, untilMs) + Math.random() * 2_000;
  }

  /** Join or rejoin; one tab at a time, so that two new ones are still one place. */
  async #enter() {
    return this.#tabs.alone(async (waited) => {
      const place = waited ? await this.#store.arrival(ARRIVAL_MS) : this.#store.read();
      if (place?.ended) {
        this.#set({ phase: "expired", eventId: place.eventId ?? null, held: [] });
        return null;
      }
      if (place?.reservationId) return this.#booked(place.reservationId);
      const { token, key } = place ?? {};
      const headers = bearer(await this.#account());
      const answer = token
        ? await this.#caller.call("POST", "/api/queue/rejoin", { body: { token, key, ...this.#event() }, headers })
        : await this.#caller.call("POST", "/api/queue/join", { body: this.#event(), headers });
      return this.#joined(answer, token);
    });
  }

  #joined({ data, sentAt }, token) {
    if (data.joinedAt) this.#clock.learn(data.joinedAt, sentAt);
    const isNew = data.token !== token;
    if (isNew) this.#forget();
    const place = this.#store.read();
    const isMoved = !isNew && data.ticketNumber !== null && data.ticketNumber !== place?.ticketNumber;
    this.#store.write({
      token: data.token, eventId: data.eventId, key: data.key, ended: false,
      ticketNumber: data.ticketNumber ?? place?.ticketNumber ?? null,
      ...(data.accessToken && { accessToken: data.accessToken }),
      ...(isMoved && { startAhead: undefined, progress: 0, score: undefined }),
    });
    const { held = [], holdExpiresAt = null, ticketNumber = null } = this.#store.read() ?? {};
    const isActive = data.status === "ACTIVE";
    this.#stand(data, {
      phase: isActive ? "active" : data.rank === null ? "upcoming" : "waiting",
      eventId: data.eventId, ticketNumber, refusal: null,
      held: isActive ? held : [], holdExpiresAt: isActive ? holdExpiresAt : null,
    });
    this.#tellPush();
    this.#pulse.startWithin(100);
    // A place that was let in is claimed; when that ends, only a poll tells.
    this.#exactNext = isActive;
    return this.#later(isActive ? Math.min(300, data.nextPollMs) : data.nextPollMs, true);
  }

  async #poll() {
    const place = this.#store.read();
    if (!place) return this.#enter();
    const key = this.#exactNext ? undefined : place.key;
    this.#exactNext = false;
    const answer = await this.#caller.call("GET", "/api/status/poll", { query: { token: place.token, key, ...this.#event() } });
    // Given up meanwhile: what is told of that place brings nobody back.
    if (!this.#store.read()) return null;
    return this.#polled(answer);
  }

  #polled({ data, sentAt }) {
    if (data.activeExpiresAt && data.expiresIn !== undefined) {
      this.#clock.learn(data.activeExpiresAt - data.expiresIn * 1_000 - 1_000, sentAt, 1_000);
    }
    const score = data.score ?? undefined;
    this.#store.write({
      ...(data.key && { key: data.key }), ...(score !== undefined && { score }),
      ...(data.accessToken && { accessToken: data.accessToken }),
    });
    const via = this.#push.isLive ? "push" : "poll";
    this.#read = { at: this.#timers.now(), rank: data.rank ?? 0, net: data.net, score: data.score ?? Infinity };
    const { totalTicketCount = 0 } = data;
    switch (data.status) {
      case "WAITING":
        this.#stand(data, { phase: data.opensAt ? "upcoming" : "waiting", totalTicketCount, activeExpiresAt: null, via });
        break;
      case "ACTIVE":
        this.#stand(data, { phase: "active", totalTicketCount, activeExpiresAt: data.activeExpiresAt, via });
        break;
      case "BOOKED":
        this.#set({ totalTicketCount, remainingSeats: data.remainingSeats });
        return this.#booked(data.reservationId);
      case "EXPIRED":
        return data.reentry ? this.#comeBack() : this.#ended();
      default:
        // A server that lost it may know it by its key; else it is a new one.
        return this.#enter();
    }
    this.#tellPush();
    return this.#later(data.nextPollMs);
  }

  /** Called while this browser could not answer: the old place is there once more. */
  async #comeBack() {
    this.#set({ returned: true });
    return this.#enter();
  }

  async #ended() {
    const { data } = await this.#caller.call("GET", "/api/status/progress", { query: this.#event() });
    this.#store.write({ ended: data.status !== "CLOSED", held: [], holdExpiresAt: null, accessToken: undefined });
    this.#push.unwant();
    this.#pulse.stop();
    this.#set({ phase: data.status === "CLOSED" ? "over" : "expired", held: [], holdExpiresAt: null, rank: null });
    return null;
  }

  #booked(reservationId) {
    this.#store.write({ reservationId, held: [], holdExpiresAt: null });
    this.#stopFollowing();
    this.#set({ phase: "booked", reservationId, held: [], holdExpiresAt: null, activeExpiresAt: null, rank: null });
    this.#tell();
    return null;
  }

  /** The place moved: what join, poll and progress have in common. */
  #stand(data, change) {
    const { rank = null, ahead = null } = data;
    const place = this.#store.read();
    if (place && ahead !== null && place.startAhead === undefined) this.#store.write({ startAhead: ahead });
    this.#shownAt = this.#timers.now();
    this.#set({
      rank, ahead, message: data.message ?? null, opensAt: data.opensAt ?? this.#state.opensAt,
      behind: data.behind ?? null,
      ...("totalWaiting" in data && { totalWaiting: data.totalWaiting, remainingSeats: data.remainingSeats }),
      ...("estimatedWaitSeconds" in data && { estimatedWaitSeconds: data.estimatedWaitSeconds }),
      ...change,
    });
    // Nothing tells more exactly that a session is over than its last moment.
    const { activeExpiresAt, phase } = this.#state;
    if (phase === "active" && activeExpiresAt) this.#lastMoment = activeExpiresAt;
  }
  #lastMoment = Infinity;

  /** When the place itself is asked for again. @returns {number} */
  #later(nextPollMs, isFirst = false) {
    this.#notBefore = this.#timers.now() + nextPollMs;
    const { phase } = this.#state;
    if (isFirst) return nextPollMs;
    if (phase === "active") {
      const afterMs = this.#push.isLive ? Math.max(nextPollMs, PUSHED_POLL_MS.active) : nextPollMs;
      const untilEnd = this.#lastMoment - this.now() + 50 + Math.random() * 300;
      return untilEnd > 0 ? Math.min(afterMs, untilEnd) : afterMs;
    }
    if (this.#isFar()) return jittered(REREAD_MS);
    return this.#push.isLive ? Math.max(nextPollMs, jittered(PUSHED_POLL_MS.waiting)) : nextPollMs;
  }

  /** Whether the shared progress tells enough: far back, and before the opening. */
  #isFar() {
    const { phase, rank } = this.#state;
    if (this.#pulseFailures > 2) return false;
    return phase === "upcoming" || (phase === "waiting" && rank !== null && rank > PROGRESS_BEYOND);
  }

  /** The sale's pulse, the same for everybody. @returns {Promise<number | null>} */
  async #readProgress() {
    try {
      const { data, sentAt } = await this.#caller.call("GET", "/api/status/progress", { query: this.#event() });
      this.#pulseFailures = 0;
      this.#learn(data, sentAt);
      return this.#moved(data);
    } catch (error) {
      if (!(error instanceof JariError)) throw error;
      if (!error.isPassing) return null;
      this.#pulseFailures += 1;
      if (this.#pulseFailures === 3 && WAITS.includes(this.#state.phase)) this.#asking.startWithin(this.#dueIn());
      return waitAfter(error, this.#pulseFailures);
    }
  }

  #learn(data, sentAt) {
    this.#progress = data;
    this.#clock.learn(data.updatedAt, sentAt, CACHE_AGE_MS);
    const place = this.#store.read();
    const { shuffleCommitment } = data;
    // The first one that was seen counts: a later one could fit a draw that was bent.
    if (place && shuffleCommitment && !place.commitment) this.#store.write({ commitment: shuffleCommitment });
    this.#set({ saleStatus: data.status, isDrawn: Boolean(shuffleCommitment) });
  }

  #moved(data) {
    const { phase } = this.#state;
    if (phase === "notOpen" && data.status !== "UPCOMING") this.#asking.startWithin(Math.random() * 2_000);
    if (!WAITS.includes(phase)) return jittered(PULSE_MS);
    if (data.status === "CLOSED") this.#asking.startWithin(this.#dueIn());
    if (phase === "upcoming") return this.#nearsOpening(data);
    const { rank, at, net, score } = this.#read;
    if (rank <= PROGRESS_BEYOND) {
      // Pushes come when the rank changes; those who join behind do not change it.
      const { totalWaiting, remainingSeats, message = null } = data;
      const behind = this.#state.rank === null ? null : Math.max(0, totalWaiting - this.#state.rank);
      if (this.#push.isLive) this.#set({ totalWaiting, remainingSeats, message, behind });
      return jittered(PULSE_MS);
    }
    const now = Math.max(1, rank - Math.max(0, data.net - net));
    const pace = data.admittedPerSecond;
    this.#stand(
      { rank: now, ahead: now - 1, behind: Math.max(0, data.totalWaiting - now), message: data.message,
        totalWaiting: data.totalWaiting, remainingSeats: data.remainingSeats,
        estimatedWaitSeconds: pace > 0 ? Math.ceil((now - 1) / pace) : null },
      { via: "progress" },
    );
    // Half of the way is done, or the turn has come: only the place itself knows better.
    if (data.headScore >= score || now <= rank / 2 || this.#timers.now() - at > REREAD_MS * 1.5) {
      this.#asking.startWithin(Math.max(this.#dueIn(), Math.random() * 1_000));
    }
    return jittered(now > 100_000 ? 10_000 : 5_000);
  }

  #nearsOpening(data) {
    const untilMs = data.opensAt - this.now();
    const { totalWaiting, remainingSeats, message = null, opensAt } = data;
    this.#set({ totalWaiting, remainingSeats, message, opensAt, via: "progress" });
    if (untilMs <= 0 || data.status === "OPEN") {
      const spread = Math.min(OPENING_SPREAD_MS, (totalWaiting / OPENING_ASKS_PER_SECOND) * 1_000);
      this.#asking.startWithin(Math.max(this.#dueIn(), Math.random() * spread));
    }
    const intervalMs = jittered(beforeOpeningMs(untilMs));
    return untilMs > 0 ? Math.min(intervalMs, untilMs + 100 + Math.random() * 400) : intervalMs;
  }

  // --- pushes --------------------------------------------------------------------------------------------------

  /** A live connection is for those near the front and inside. */
  #tellPush() {
    const { phase, rank } = this.#state;
    const near = phase === "active" || (phase === "waiting" && rank !== null && rank <= PUSH_WITHIN);
    if (near && this.#tabs.leads) this.#push.want();
    else this.#push.unwant();
  }

  #pushed(message) {
    const { status, updatedAt = this.#pushedAt } = message;
    // What was refused is told to all tabs and devices of the place; this one may not have asked.
    if (status === "error") return this.dispatchEvent(new CustomEvent("notice", { detail: message }));
    if (updatedAt < this.#pushedAt) return;
    this.#pushedAt = updatedAt;
    const { phase } = this.#state;
    if (status === "waiting" && phase === "waiting" && Number.isInteger(message.currentRank)) return this.#nearer(message);
    const expected = { waiting: phase === "active" ? "" : phase, ready: "active", seated: "active", booked: "booked" }[status];
    // Only the place itself claims, and tells the rest. Asked without its key, which is not to be used yet.
    if (phase !== expected) return this.#askNow();
    const { holdExpiresAt, activeExpiresAt } = message;
    if (activeExpiresAt) {
      this.#lastMoment = activeExpiresAt;
      this.#set({ activeExpiresAt, ...(holdExpiresAt && { holdExpiresAt }) });
    }
  }
  // Pushes may overtake each other: the sale's clock orders them.
  #pushedAt = 0;

  #nearer({ currentRank: rank, estimatedWaitTime = null, message, totalWaiting, remainingSeats }) {
    const numbers = { totalWaiting: totalWaiting ?? this.#state.totalWaiting, remainingSeats: remainingSeats ?? this.#state.remainingSeats };
    const behind = numbers.totalWaiting === null ? null : Math.max(0, numbers.totalWaiting - rank);
    this.#stand({ rank, ahead: rank - 1, behind, message, estimatedWaitSeconds: estimatedWaitTime, ...numbers }, {});
  }

  #askNow() {
    this.#exactNext = true;
    this.#notBefore = 0;
    this.#asking.start(Math.random() * 100);
  }
  // Without its key a poll is exact, and never too early.
  #exactNext = false;

  // --- acting --------------------------------------------------------------------------------------------------

  #event() {
    return { eventId: this.#eventId };
  }

  #reservationId() {
    return this.#state.reservationId ?? this.#store.read()?.reservationId ?? "";
  }

  #forget() {
    this.#store.clear();
    this.#maps.clear();
    this.#read = { at: 0, rank: 0, net: 0, score: Infinity };
  }

  /** A call with the best proof there is; a refused access token is dropped, and the token proves instead. */
  async #proving(call) {
    const place = this.#store.read();
    const token = place?.token;
    if (place?.accessToken) {
      try {
        return await call({ headers: bearer(place.accessToken), query: {}, body: {} });
      } catch (error) {
        if (!(error instanceof JariError) || error.code !== "UNAUTHORIZED") throw error;
        this.#store.write({ accessToken: undefined });
      }
    }
    // An account that has booked elsewhere has no token here.
    const headers = token ? {} : bearer(await this.#account());
    return call({ headers, query: { token }, body: { token } });
  }

  /** The same, by somebody who is let in. */
  async #acting(call) {
    try {
      return await this.#proving(call);
    } catch (error) {
      if (error instanceof JariError && SESSION_CODES.includes(error.code)) this.#sessionEnded(error);
      throw error;
    }
  }

  /** A change, repeated under one name until its answer is known. */
  #changing(method, path, fields) {
    const key = { "idempotency-key": idempotencyKey() };
    return this.#patiently(() => this.#acting(({ headers, body }) =>
      this.#caller.call(method, path, { headers: { ...headers, ...key }, body: { ...fields, ...body, ...this.#event() } })));
  }

  async #patiently(call) {
    const until = this.#timers.now() + ACTION_PATIENCE_MS;
    for (let failures = 1; ; failures += 1) {
      try {
        return await call();
      } catch (error) {
        const waitMs = error instanceof JariError && error.isPassing ? waitAfter(error, failures) : Infinity;
        if (this.#timers.now() + waitMs > until) throw error;
        await this.#sleep(waitMs);
      }
    }
  }

  #sleep(waitMs, signal) {
    return new Promise((resolve) => {
      const id = this.#timers.set(() => resolve(undefined), waitMs);
      signal?.addEventListener("abort", () => {
        this.#timers.clear(id);
        resolve(undefined);
      });
    });
  }

  #hold(got, { holdExpiresAt, activeExpiresAt, accessToken }) {
    const rest = this.#state.held.filter((held) => held.offeringId !== got.offeringId || held.sectionId !== got.sectionId);
    const before = this.#state.held.find((held) => held.offeringId === got.offeringId && held.sectionId === got.sectionId);
    const seats = [...new Set([...(before?.seats ?? []), ...got.seats])];
    const count = seats.length || (before?.count ?? 0) + got.count;
    const held = [...rest, { ...got, seats, count }];
    this.#heldAt = this.#timers.now();
    this.#store.write({ held, holdExpiresAt, ...(accessToken && { accessToken }) });
    this.#lastMoment = activeExpiresAt ?? holdExpiresAt;
    const change = { held, holdExpiresAt, activeExpiresAt: activeExpiresAt ?? this.#state.activeExpiresAt };
    this.#set(change);
    this.#tabs.post({ held: change });
  }

  /** What a newer map shows as free is held no more: it was given back elsewhere. */
  #compare(offeringId, map, sentAt) {
    if (sentAt <= this.#heldAt) return;
    const sections = new Map(map.sections.map((section) => [section.sectionId, section.taken]));
    const held = this.#state.held.flatMap((one) => {
      const taken = one.offeringId === offeringId && one.seats.length ? sections.get(one.sectionId) : undefined;
      const seats = taken ? one.seats.filter((seat) => taken[seat]) : one.seats;
      return seats.length === one.seats.length ? [one] : seats.length ? [{ ...one, seats, count: seats.length }] : [];
    });
    if (held.every((one, index) => one === this.#state.held[index]) && held.length === this.#state.held.length) return;
    this.#store.write({ held });
    this.#set({ held });
  }
  #heldAt = 0;

  #sessionEnded(error) {
    if (error.code === "ALREADY_BOOKED" && error.details.reservationId) {
      this.#booked(error.details.reservationId);
    } else if (this.#tabs.leads) {
      this.#askNow();
    } else {
      this.#tabs.post({ ask: true });
    }
  }

  // --- tabs ----------------------------------------------------------------------------------------------------

  #told(message) {
    const { leads } = this.#tabs;
    if (message.ask && leads && this.#state.phase !== "entering") this.#tell();
    if (message.held && leads) this.#set(message.held);
    if (message.state && (!leads || ["booked", "left"].includes(message.state.phase))) {
      if (leads) this.#stopFollowing();
      this.#show(message.state);
    }
  }

  /** What the other tabs are told; an error does not travel. */
  #tell() {
    this.#tabs.post({ state: { ...this.#state, refusal: null } });
  }

  /** @param {Partial<State>} change */
  #set(change) {
    const names = /** @type {(keyof State)[]} */ (Object.keys(change));
    if (names.every((name) => Object.is(change[name], this.#state[name]))) return;
    this.#show({ ...this.#state, ...change });
    if (this.#tabs.leads && this.#state.phase !== "entering") this.#tell();
  }

  #show(state) {
    this.#state = Object.freeze(state);
    this.dispatchEvent(new Event("change"));
  }
}

const bearer = (token) => (token ? { authorization: `Bearer ${token}` } : {});

/** This page's storage, where it may be used. */
function ownStorage() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}
