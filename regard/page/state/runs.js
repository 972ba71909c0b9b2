// Training runs: their journals as they grow, and the attention stored during training.

import { decode, fromBase64 } from "../compute/tensor.js";
import { eventsOf, request } from "./requests.js";
import { readTensor } from "./source_http.js";

/** @typedef {Record<string, any>} Entry */
/**
 * @typedef {object} Probe
 * @property {import("./source.js").Side} inputs Null if the model has no encoder.
 * @property {import("./source.js").Side} outputs Null if it has no decoder.
 * @property {Record<string, [number, number]>} kinds Number of layers and heads.
 * @property {number[]} log_probs
 * @property {string[]} likeliest
 */

const TOGETHER = 250; // milliseconds in which new entries are collected
const AGAIN = 3000; // milliseconds before an interrupted stream is reopened

/** Follows the journal of one run. */
class RunJournal {
  /** @param {string} run @param {() => void} notify */
  constructor(run, notify) {
    this.address = `/api/v1/runs/${encodeURIComponent(run)}/events`;
    this.notify = notify;
    /** @type {Entry[]} */
    this.entries = [];
    this.timer = 0;
    this.going = new AbortController();
    this.begun = new Promise((done, failed) => void this.follow(() => done(null), failed));
  }

  /**
   * Read the stream until it is cancelled; after an interruption, from the beginning.
   * @param {() => void} begun Called when the first entries are there.
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
        await this.read(await request(this.address, undefined, signal), begins);
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
    const empty = setTimeout(begins, TOGETHER); // a new run has no entries yet
    this.entries = [];
    for await (const events of eventsOf(response)) {
      for (const { name, data } of events) {
        if (name === "reset") this.entries = [];
        else this.entries.push(data);
      }
      this.grown();
    }
    clearTimeout(empty);
  }

  /** Notify once for all entries that arrive together. */
  grown() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.notify();
    }, TOGETHER);
  }
}

/** @type {Map<string, Promise<any>>} */
const known = new Map();

/**
 * The run that is followed. Only one: each stream takes one of a browser's six connections to a server.
 * @type {{ run: string, journal: RunJournal } | null}
 */
let followed = null;

/** The folder of the page's files; joined modules are one file in it. */
const FILES = import.meta.url.replace(/(state\/)?[^/]*$/, "");
export const RECORDED = ""; // stands for the run that comes with the page

/** The run that comes with the page (`tools/record_run.py`). @returns {Promise<any>} */
export const recorded = () => once(`${FILES}recorded.json`, asJson);

/** One validation of the recorded run. @param {number} step */
const recordedAt = async (step) => (await recorded()).validations.find((each) => each.step === step);

/**
 * The current entries of a run's journal; `notify` is called when there are more.
 * @param {string} run
 * @param {() => void} notify
 */
export async function journal(run, notify) {
  if (run === RECORDED) return (await recorded()).entries;
  if (followed?.run !== run) {
    followed?.journal.going.abort();
    followed = { run, journal: new RunJournal(run, notify) };
  }
  const { journal: it } = followed;
  it.notify = notify;
  await it.begun.catch((problem) => {
    if (followed?.journal === it) followed = null;
    throw problem;
  });
  return it.entries;
}

/** The journal of a run when it was first requested. @param {string} run @returns {Promise<Entry[]>} */
export const curveOf = (run) =>
  once(`/api/v1/runs/${encodeURIComponent(run)}/curve`, asJson).then(({ entries }) => entries);

/**
 * @param {string} address
 * @param {(response: Response) => Promise<any>} read
 * @param {string} [state] Changes when the cached response becomes invalid.
 */
function once(address, read, state = "") {
  const key = `${state} ${address}`;
  const found = known.get(key) ?? request(address).then(read);
  known.set(key, found);
  found.catch(() => known.delete(key));
  return found;
}

/** @param {string} run */
const at = (run) => `/api/v1/runs/${encodeURIComponent(run)}/probes`;
const asJson = (answer) => answer.json();

/**
 * The probe sentences of a run and the steps at which they were stored.
 * @param {string} run
 * @param {number} validations Number of validations so far; a new one invalidates the cache.
 * @returns {Promise<{ steps: number[], probes: Probe[] }>}
 */
export async function probesOf(run, validations) {
  if (run !== RECORDED) return once(at(run), asJson, `${validations}`);
  const { validations: all } = await recorded();
  const steps = all.map(({ step }) => step);
  return { steps, probes: [await probeAt(run, { step: steps[0], probe: 0 })] };
}

/**
 * A probe sentence at one step.
 * @param {string} run
 * @param {{ step: number, probe: number }} place
 * @returns {Promise<Probe>}
 */
export async function probeAt(run, { step, probe }) {
  if (run !== RECORDED) return once(`${at(run)}/${step}/${probe}`, asJson);
  const { inputs, outputs } = await recorded();
  const { weights, ...of } = await recordedAt(step);
  const kinds = Object.fromEntries(Object.entries(weights).map(([kind, { shape }]) => [kind, shape.slice(0, 2)]));
  return { inputs, outputs, kinds, ...of };
}

/**
 * The attention of one head in a probe sentence at one step.
 * @param {string} run
 * @param {{ step: number, probe: number, kind: string, layer: number, head: number }} place
 * @returns {Promise<import("../compute/tensor.js").Tensor>}
 */
export async function attentionAt(run, { step, probe, kind, layer, head }) {
  if (run !== RECORDED)
    return once(`${at(run)}/${step}/${probe}/attention?kind=${kind}&layer=${layer}&head=${head}`, readTensor);
  const { shape, data } = (await recordedAt(step)).weights[kind];
  const [, heads, ...size] = shape;
  const count = size[0] * size[1];
  const from = (layer * heads + head) * count;
  return { data: decode(fromBase64(data), "u8", 1 / 255).slice(from, from + count), shape: size };
}
