// Requests to the server: the key, lost connections, refusals, retries, and server-sent events.

const KEPT = "regard-key";

/** An error response of the server. */
export class RequestError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {number} [after] Seconds to wait before a retry.
   * @param {string} [code] The server's error code.
   */
  constructor(status, message, after, code = "") {
    super(message);
    this.status = status;
    this.after = after;
    this.code = code;
  }
}

/** Dispatches `lost` when the server cannot be reached, and `back` when it answers again. */
export const connection = new EventTarget();
const RETRY_MS = 1500; // milliseconds between attempts to reach the server
let lost = false;

/** Retry until the server answers. */
async function reach() {
  const there = await fetch("/livez").then(() => true, () => false);
  if (!there) {
    setTimeout(reach, RETRY_MS);
    return;
  }
  lost = false;
  connection.dispatchEvent(new Event("back"));
}

/** @param {unknown} problem @returns {never} */
function unreached(problem) {
  if (problem instanceof TypeError && !lost) {
    lost = true;
    connection.dispatchEvent(new Event("lost"));
    setTimeout(reach, RETRY_MS);
  }
  throw problem;
}

/** @param {string} key */
export function storeKey(key) {
  sessionStorage.setItem(KEPT, key);
}

/** Whether the user has entered a key. */
export function hasKey() {
  return Boolean(globalThis.sessionStorage?.getItem(KEPT));
}

/**
 * Send a request, with the user's key if there is one.
 * @param {string} address
 * @param {unknown} [body] Sent as JSON by POST; default: GET.
 * @param {AbortSignal} [signal] Cancels the request.
 * @param {"GET" | "POST" | "DELETE"} [method]
 * @returns {Promise<Response>}
 */
export async function request(address, body, signal, method = body === undefined ? "GET" : "POST") {
  const key = globalThis.sessionStorage?.getItem(KEPT);
  const response = await fetch(address, {
    signal,
    method,
    headers: {
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch(unreached);
  if (response.ok) return response;
  const details = await response.json().catch(() => null);
  const message = details?.error?.message ?? `${response.status} ${response.statusText}`;
  const after = Number(response.headers.get("Retry-After")) || undefined;
  throw new RequestError(response.status, message, after, details?.error?.code);
}

/** @typedef {import("../words/i18n.js").Say} Say */

export class LatestRequest {
  constructor() {
    this.going = new AbortController();
  }

  /** Cancel the current request; returns the signal for the next. */
  stop() {
    this.going.abort();
    this.going = new AbortController();
    return this.going.signal;
  }

  /**
   * Run some requests. Errors are reported unless another run has started; a busy server is asked again.
   * @param {(signal: AbortSignal) => Promise<void>} work
   * @param {(message: string) => void} report
   * @param {Say} t
   */
  async run(work, report, t) {
    const signal = this.stop();
    try {
      await work(signal);
    } catch (problem) {
      if (signal.aborted) return;
      const { retryAfter, message } = describeError(problem, t);
      report(message);
      if (retryAfter) setTimeout(() => signal.aborted || void this.run(work, report, t), 1000 * retryAfter);
    }
  }
}

// Errors that the user can fix by changing the text; the page explains them in the user's language.
const FIXABLE = ["unclear_language", "too_large"];

/**
 * The message for an error, the seconds until a retry (0: none), and whether another text would help.
 * @param {unknown} problem
 * @param {Say} t
 */
export function describeError(problem, t) {
  const busy = problem instanceof RequestError && [429, 503].includes(problem.status);
  const seconds = busy ? Math.max(1, Math.ceil(problem.after ?? 1)) : 0;
  const lost = problem instanceof TypeError;
  const fixable = problem instanceof RequestError && FIXABLE.includes(problem.code);
  const message = busy
    ? t("busy", { seconds })
    : lost
      ? t("lost")
      : fixable
        ? t(`refused.${problem.code}`, { message: problem.message })
        : String(problem instanceof Error ? problem.message : problem);
  return { retryAfter: seconds, message, fixable };
}

/**
 * Parse complete events; returns the incomplete rest, too.
 * @param {string} text
 * @returns {{ events: { name: string, data: any }[], rest: string }}
 */
export function parsed(text) {
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  const events = blocks
    .map((block) => {
      const field = (name) =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const data = field("data");
      return data === undefined ? null : { name: field("event") ?? "message", data: JSON.parse(data) };
    })
    .filter((each) => each !== null);
  return { events, rest };
}

/**
 * The events of a response, in batches as they arrive.
 * @param {Response} response
 * @returns {AsyncGenerator<{ name: string, data: any }[]>}
 */
export async function* eventsOf(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (let came = await reader.read(); !came.done; came = await reader.read()) {
    const found = parsed(rest + decoder.decode(came.value, { stream: true }));
    rest = found.rest;
    if (found.events.length) yield found.events;
  }
}

const SOON = 150; // milliseconds

/**
 * The result if it is there soon; otherwise null, and one of the functions is called later.
 * @template T
 * @param {Promise<T>} result
 * @param {() => unknown} later Called when the result is there.
 * @param {(problem: unknown) => unknown} failed
 * @returns {Promise<T | null>}
 */
export async function soon(result, later, failed) {
  const nothing = Symbol("nothing yet");
  const found = await Promise.race([result, new Promise((done) => setTimeout(() => done(nothing), SOON))]);
  if (found !== nothing) return found;
  result.then(later, failed);
  return null;
}
