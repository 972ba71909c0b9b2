// Runs, followed: the journal of each as it grows, and what its heads looked at through the training.

import { arriving, ask } from "./requests.js";
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
    this.going = new AbortController();
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
    const { signal } = this.going;
    for (;;) {
      try {
        await this.read(await ask(this.address, undefined, signal), begins);
      } catch (problem) {
        if (signal.aborted) return;
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

/** @type {Map<string, Promise<any>>} */
const known = new Map();

/**
 * The one run that is followed: a browser keeps six connections to a server, and one that is followed takes one for good.
 * @type {{ run: string, journal: Followed } | null}
 */
let followed = null;

/**
 * What the journal of a run holds by now; `tell` is called when there is more.
 * @param {string} run
 * @param {() => void} tell
 */
export async function journal(run, tell) {
  if (followed?.run !== run) {
    followed?.journal.going.abort();
    followed = { run, journal: new Followed(run, tell) };
  }
  const { journal: it } = followed;
  it.tell = tell;
  await it.begun.catch((problem) => {
    if (followed?.journal === it) followed = null;
    throw problem;
  });
  return it.entries;
}

/** What the journal of a run held when it was first asked for. @param {string} run @returns {Promise<Entry[]>} */
export const curveOf = (run) =>
  once(`/api/v1/runs/${encodeURIComponent(run)}/curve`, asJson).then(({ entries }) => entries);

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
const asJson = (answer) => answer.json();

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
 * @returns {Promise<import("../compute/tensor.js").Tensor>}
 */
export const attentionAt = (run, { step, probe, kind, layer, head }) =>
  once(`${at(run)}/${step}/${probe}/attention?kind=${kind}&layer=${layer}&head=${head}`, received);
