// What is asked while one writes: only the last question counts, and a busy server is asked again.

import { Refused } from "./asking.js";

/** @typedef {import("./i18n.js").Say} Say */

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
        : /** @type {Error} */ (problem).message;
  return { busy: seconds, told, mended };
}
