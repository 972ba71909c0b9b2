// Asking the server, with the reader's key where one is needed. It is kept for this window only.

const KEPT = "regard-key";

/** What the server has refused, and why. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @param {string} key */
export function keepKey(key) {
  sessionStorage.setItem(KEPT, key);
}

/**
 * @param {string} address
 * @param {unknown} [body] Sent as JSON, by POST.
 * @returns {Promise<Response>}
 */
export async function ask(address, body) {
  const key = globalThis.sessionStorage?.getItem(KEPT);
  const response = await fetch(address, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  const told = await response.json().catch(() => null);
  throw new Refused(response.status, told?.error?.message ?? `${response.status} ${response.statusText}`);
}
