// Asking the server, with the reader's key where one is needed. It is kept for this window only.
// Whether the server can be reached at all is told to whoever wants to know.

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
  const there = await fetch("/livez").then(
    () => true,
    () => false,
  );
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
