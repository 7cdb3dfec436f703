// Calls: the envelope, failures as errors, when to try again.

/** Why a call got no success. `code` is the server's, or OFFLINE, TIMEOUT or BACK_OFF where it did not say one. */
export class JariError extends Error {
  /**
   * @param {string} code
   * @param {{message?: string, status?: number, details?: Record<string, any>, requestId?: string,
   *   retryAfterMs?: number}} [rest]
   */
  constructor(code, rest = {}) {
    super(rest.message ?? code);
    this.name = "JariError";
    this.code = code;
    this.status = rest.status ?? 0;
    this.details = rest.details ?? {};
    this.requestId = rest.requestId ?? "";
    /** What Retry-After said. */
    this.retryAfterMs = rest.retryAfterMs;
  }

  /** Whether the same call may succeed later. */
  get isPassing() {
    return ["OFFLINE", "TIMEOUT", "BACK_OFF", "RATE_LIMIT", "UNAVAILABLE", "INTERNAL_ERROR"].includes(this.code);
  }
}

const TIMEOUT_MS = 10_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

/** How long to wait after the n-th failure in a row (from 1): as told, else doubling; never all at once. */
export function waitAfter(error, failures) {
  const doubled = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures - 1, 10));
  const told = error.retryAfterMs;
  return told === undefined ? doubled * (0.5 + Math.random() / 2) : told + Math.random() * Math.max(500, told / 5);
}

/** @typedef {{status: number, data: any, etag: string | null, sentAt: number}} Answered */

export class Caller {
  #base;
  #fetch;
  #timers;
  /** What Accept-Language asks for. */
  language;

  /** @param {{base: string, fetch: typeof fetch, timers: import("./timers.js").Timers, language?: string}} options */
  constructor({ base, fetch, timers, language }) {
    this.#base = base.replace(/\/$/, "");
    this.#fetch = fetch;
    this.#timers = timers;
    this.language = language;
  }

  /**
   * One call. Parameters and fields that are undefined or null are left out.
   * @param {string} method
   * @param {string} path
   * @param {{query?: Record<string, any>, body?: Record<string, any>, headers?: Record<string, string>}} [parts]
   * @returns {Promise<Answered>} also for 304, then without data
   * @throws {JariError}
   */
  async call(method, path, { query = {}, body, headers = {} } = {}) {
    const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value != null && value !== ""));
    const text = parameters.toString();
    const request = { method, headers: { ...headers }, cache: /** @type {RequestCache} */ ("no-cache") };
    if (this.language) request.headers["accept-language"] = this.language;
    if (body) {
      request.headers["content-type"] = "application/json";
      request.body = JSON.stringify(body, (_, value) => value ?? undefined);
    }
    const sentAt = this.#timers.now();
    const response = await this.#send(this.#base + path + (text && `?${text}`), request);
    if (response.status === 304) return { status: 304, data: undefined, etag: response.headers.get("etag"), sentAt };
    return { ...(await this.#open(response)), sentAt };
  }

  async #send(url, request) {
    const abort = new AbortController();
    const timer = this.#timers.set(() => abort.abort(), TIMEOUT_MS);
    try {
      const response = await this.#fetch(url, { ...request, signal: abort.signal });
      // Read under the same timeout: a body may stop half way.
      const text = await response.text();
      return { status: response.status, ok: response.ok, headers: response.headers, text };
    } catch (error) {
      throw new JariError(abort.signal.aborted ? "TIMEOUT" : "OFFLINE", { message: String(error) });
    } finally {
      this.#timers.clear(timer);
    }
  }

  async #open({ status, ok, headers, text }) {
    const seconds = Number.parseFloat(headers.get("retry-after") ?? "");
    const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : undefined;
    let envelope;
    try {
      envelope = JSON.parse(text);
    } catch {
      // Somebody in between has answered.
    }
    if (ok && envelope?.success === true) return { status, data: envelope.data, etag: headers.get("etag") };
    const error = envelope?.success === false ? envelope.error : undefined;
    throw new JariError(error?.code ?? "BACK_OFF", { ...error, status, retryAfterMs });
  }
}

/** A name for one action of a person, the same however often it is sent. */
export function idempotencyKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const hex = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
