// Requests to the server: the key, lost connections, refusals, retries, and server-sent events.

const KEPT = "regard-key";

/** What the server has refused, and why. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {number} [after] Seconds after which asking again may help.
   * @param {string} [code] What programs know it by.
   */
  constructor(status, message, after, code = "") {
    super(message);
    this.status = status;
    this.after = after;
    this.code = code;
  }
}

/** Says `lost` when the server cannot be reached, and `back` when it can again. */
export const connection = new EventTarget();
const PATIENCE = 1500; // milliseconds between two tries to reach it again
let lost = false;

/** Try until somebody answers. */
async function reach() {
  const there = await fetch("/livez").then(() => true, () => false);
  if (!there) return setTimeout(reach, PATIENCE);
  lost = false;
  connection.dispatchEvent(new Event("back"));
}

/** @param {unknown} problem */
function unreached(problem) {
  if (problem instanceof TypeError && !lost) {
    lost = true;
    connection.dispatchEvent(new Event("lost"));
    setTimeout(reach, PATIENCE);
  }
  throw problem;
}

/** @param {string} key */
export function keepKey(key) {
  sessionStorage.setItem(KEPT, key);
}

/** Whether the server has asked for a key. */
export function hasKey() {
  return Boolean(globalThis.sessionStorage?.getItem(KEPT));
}

/**
 * @param {string} address
 * @param {unknown} [body] Sent as JSON, by POST.
 * @param {AbortSignal} [signal] Tells that nobody waits any more.
 * @returns {Promise<Response>}
 */
export async function ask(address, body, signal) {
  const key = globalThis.sessionStorage?.getItem(KEPT);
  const response = await fetch(address, {
    signal,
    method: body === undefined ? "GET" : "POST",
    headers: {
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch(unreached);
  if (response.ok) return response;
  const told = await response.json().catch(() => null);
  const message = told?.error?.message ?? `${response.status} ${response.statusText}`;
  const after = Number(response.headers.get("Retry-After")) || undefined;
  throw new Refused(response.status, message, after, told?.error?.code);
}

/** @typedef {import("../words/i18n.js").Say} Say */

export class Question {
  constructor() {
    this.going = new AbortController();
  }

  /** Nobody waits for what was asked before. */
  stop() {
    this.going.abort();
    this.going = new AbortController();
    return this.going.signal;
  }

  /**
   * Do some asking; what goes wrong is told, unless something else was asked meanwhile.
   * @param {(signal: AbortSignal) => Promise<void>} work
   * @param {(problem: string) => void} tell
   * @param {Say} t
   */
  async ask(work, tell, t) {
    const signal = this.stop();
    try {
      await work(signal);
    } catch (problem) {
      if (signal.aborted) return;
      const { busy, told } = saidOf(problem, t);
      tell(told);
      if (busy) setTimeout(() => signal.aborted || void this.ask(work, tell, t), 1000 * busy);
    }
  }
}

// What a reader can mend is told in their language; of other refusals, the server's own sentence is what there is.
const MENDED = ["unclear_language", "too_large"];

/**
 * What a problem is called, after how many seconds to ask again (0: not at all), and whether it is the text's.
 * @param {unknown} problem
 * @param {Say} t
 */
export function saidOf(problem, t) {
  const busy = problem instanceof Refused && [429, 503].includes(problem.status);
  const seconds = busy ? Math.max(1, Math.ceil(problem.after ?? 1)) : 0;
  const lost = problem instanceof TypeError;
  const mended = problem instanceof Refused && MENDED.includes(problem.code);
  const told = busy
    ? t("busy", { seconds })
    : lost
      ? t("lost")
      : mended
        ? t(`refused.${problem.code}`, { told: problem.message })
        : problem.message;
  return { busy: seconds, told, mended };
}

/**
 * Events out of what has come; what is not whole yet is given back.
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
 * The events of an answer, those that came together as one list.
 * @param {Response} response
 * @returns {AsyncGenerator<{ name: string, data: any }[]>}
 */
export async function* arriving(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (let came = await reader.read(); !came.done; came = await reader.read()) {
    const found = parsed(rest + decoder.decode(came.value, { stream: true }));
    rest = found.rest;
    if (found.events.length) yield found.events;
  }
}
