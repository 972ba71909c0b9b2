// Runs, followed: the journal of each as it grows, and what its heads looked at through the training.

import { ask } from "./asking.js";
import { arriving } from "./events.js";
import { received } from "./source_http.js";

/** @typedef {Record<string, any>} Entry */
/**
 * @typedef {object} Probe
 * @property {import("./source.js").Side} inputs Null where the model has no encoder.
 * @property {import("./source.js").Side} outputs Null where it has no decoder.
 * @property {Record<string, [number, number]>} kinds Layers and heads of each.
 * @property {number[]} log_probs
 * @property {string[]} likeliest
 */

const TOGETHER = 250; // milliseconds in which entries are told together
const AGAIN = 3000; // and after which a stream that broke off is taken up again

/** The journal of one run. */
class Followed {
  /** @param {string} run @param {() => void} tell */
  constructor(run, tell) {
    this.address = `/api/v1/runs/${encodeURIComponent(run)}/events`;
    this.tell = tell;
    /** @type {Entry[]} */
    this.entries = [];
    this.timer = 0;
    this.begun = new Promise((done, failed) => void this.follow(() => done(null), failed));
  }

  /**
   * Read on without end; where the server goes away, from the beginning once it is back.
   * @param {() => void} begun Called when something has come, and again for all that follows.
   * @param {(problem: unknown) => void} failed
   */
  async follow(begun, failed) {
    let ever = false;
    const begins = () => {
      ever = true;
      begun();
    };
    for (;;) {
      try {
        await this.read(await ask(this.address), begins);
      } catch (problem) {
        failed(problem);
        if (!ever) return;
      }
      await new Promise((done) => setTimeout(done, AGAIN));
    }
  }

  /** @param {Response} response @param {() => void} begins */
  async read(response, begins) {
    const empty = setTimeout(begins, TOGETHER); // a run that has only just begun has nothing to tell
    this.entries = [];
    for await (const events of arriving(response)) {
      for (const { name, data } of events) {
        if (name === "reset") this.entries = [];
        else this.entries.push(data);
      }
      this.grown();
    }
    clearTimeout(empty);
  }

  /** Tell, once for all that comes together. */
  grown() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.tell();
    }, TOGETHER);
  }
}

/** @type {Map<string, Followed>} */
const followed = new Map();
/** @type {Map<string, Promise<any>>} */
const known = new Map();

/**
 * What the journal of a run holds by now; `tell` is called when there is more.
 * @param {string} run
 * @param {() => void} tell
 */
export async function journal(run, tell) {
  const it = followed.get(run) ?? new Followed(run, tell);
  followed.set(run, it);
  it.tell = tell;
  await it.begun.catch((problem) => {
    followed.delete(run);
    throw problem;
  });
  return it.entries;
}

/**
 * @param {string} address
 * @param {(response: Response) => Promise<any>} read
 * @param {string} [state] What changes with the answer.
 */
function once(address, read, state = "") {
  const key = `${state} ${address}`;
  const found = known.get(key) ?? ask(address).then(read);
  known.set(key, found);
  found.catch(() => known.delete(key));
  return found;
}

/** @param {string} run */
const at = (run) => `/api/v1/runs/${encodeURIComponent(run)}/probes`;
const asJson = (/** @type {Response} */ answer) => answer.json();

/**
 * The sentences that a run probed, and when; asked for again when it has validated again.
 * @param {string} run
 * @param {number} validations How many it has by now.
 * @returns {Promise<{ steps: number[], probes: Probe[] }>}
 */
export const probesOf = (run, validations) => once(at(run), asJson, `${validations}`);

/**
 * A sentence as it was read after a step.
 * @param {string} run
 * @param {{ step: number, probe: number }} place
 * @returns {Promise<Probe>}
 */
export const probeAt = (run, { step, probe }) => once(`${at(run)}/${step}/${probe}`, asJson);

/**
 * Where a head looked in it.
 * @param {string} run
 * @param {{ step: number, probe: number, kind: string, layer: number, head: number }} place
 * @returns {Promise<import("./tensor.js").Tensor>}
 */
export const attentionAt = (run, { step, probe, kind, layer, head }) =>
  once(`${at(run)}/${step}/${probe}/attention?kind=${kind}&layer=${layer}&head=${head}`, received);
