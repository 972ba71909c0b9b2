// The server's API: models and directions, translations, generation, labels, traces.

import { numbers } from "./changes.js";
import { eventsOf, request, RequestError } from "./requests.js";
import { cached } from "./source.js";
import { httpSource, readTensor } from "./source_http.js";

/** @typedef {import("./store.js").State} State */
/** @typedef {{ source: import("./source.js").Source, about: import("./source.js").About }} Opened */
/** @typedef {{ model: string, from: string, to: string }} Way Without languages, the server detects them. */
/**
 * @typedef {object} Model
 * @property {string} id
 * @property {"translate" | "generate" | "classify"} task
 * @property {"translate" | "summarise" | "converse" | "answer" | "generate" | "classify"} does Its purpose.
 * @property {{ source: string, target: string }[]} directions
 * @property {Record<string, any>} config
 * @property {{ beam_size: number, length_penalty: number }} decoding
 * @property {{ beam: number }} limits
 * @property {string} weights_hash
 * @property {boolean} run
 */

const KEPT = 12; // responses kept
const READ = 500; // characters used to detect the language

export class Server {
  /** @param {Model[]} models */
  constructor(models) {
    this.models = models;
    /** @type {Way[]} */
    this.ways = models.flatMap(({ id, directions }) => [
      ...(directions.length === 1 ? [] : [{ model: id, from: "", to: "" }]),
      ...directions.map(({ source, target }) => ({ model: id, from: source, to: target })),
    ]);
    /** @type {Map<string, Promise<any>>} */
    this.known = new Map();
    /** @type {{ of: string, text: string } | null} The translation on the screen. */
    this.shown = null;
  }

  /** The model and direction of the state, or the first. @param {Pick<State, "model" | "from" | "to">} state */
  way({ model, from, to }) {
    const of = this.ways.filter((way) => way.model === model);
    const exact = of.find((way) => way.from === from && way.to === to);
    return exact ?? of[0] ?? this.ways[0];
  }

  /** @param {State} state */
  model(state) {
    return this.models.find((each) => each.id === this.way(state).model);
  }

  /** Sizes of a model, in the format of a trace. @param {State} state */
  description(state) {
    const { config, weights_hash } = this.model(state);
    const d_k = config.d_k ?? config.d_model / config.n_heads;
    const none = { interventions: [], engine: "", hash: "–" };
    const { architecture } = config;
    const stacks = {
      ...(architecture === "decoder" && { encoder_layers: 0 }),
      ...(architecture === "encoder" && { decoder_layers: 0 }),
    };
    return { architecture, sizes: { ...config, d_k, ...stacks }, weights_hash, ...none };
  }

  /** The body of a request for a translation. @param {State} state @param {object} [more] */
  translateRequest(state, more = {}) {
    const { model, from, to } = this.way(state);
    // Only a language that the user chose is sent: the server translates a text of any language from it.
    const chosen = from && state.from === from;
    return { text: state.text, model, ...(chosen && { source: from }), ...(to && { target: to }), ...more };
  }

  /**
   * The target language of a text; empty if the model has no languages.
   * @param {State} state
   * @param {string} text
   * @returns {Promise<string>}
   */
  async target(state, text) {
    return (await this.direction(state, text)).target ?? "";
  }

  /**
   * The direction in which a text is translated; empty if the model has no languages.
   * @param {State} state
   * @param {string} text
   * @returns {Promise<{ source?: string, target?: string }>}
   */
  async direction(state, text) {
    const { directions } = this.model(state);
    const { from, to } = this.way(state);
    if (to) return { source: from, target: to };
    if (!directions.length) return {};
    const beginning = [...text].slice(0, READ).join("");
    const { items } = await this.once(JSON.stringify(["detect", beginning]), async () =>
      (await request("/api/v1/detect", { text: beginning })).json(),
    );
    return directions.find(({ source }) => source === items[0]?.language) ?? directions[0];
  }

  /** @param {State} state @param {object} more @param {AbortSignal} [signal] */
  async translate(state, more, signal) {
    return (await (await request("/api/v1/translate", this.translateRequest(state, more), signal)).json()).items[0];
  }

  /**
   * Translate lines one by one; empty lines stay empty.
   * @param {State} state
   * @param {string[]} lines
   * @param {{ source?: string, target?: string }} way
   * @param {AbortSignal} signal
   * @returns {Promise<string[]>}
   */
  async translateAll(state, lines, way, signal) {
    const text = lines.filter((line) => line.trim());
    const body = { ...this.translateRequest(state), ...way, text };
    const { items } = text.length
      ? await (await request("/api/v1/translate", body, signal)).json()
      : { items: [] };
    return lines.map((line) => (line.trim() ? items.shift().text : line));
  }

  /** Classify a text: the probability of each label. @param {State} state @param {AbortSignal} [signal] */
  async classify(state, signal) {
    const body = { text: state.text, model: this.way(state).model, too_long: "cut" };
    return (await (await request("/api/v1/classify", body, signal)).json()).items[0];
  }

  /** The body of a request for a continuation. @param {State} state */
  generateRequest({ text, heat, top_k, top_p, min_p, most, stop, seed, ...state }) {
    const drawn = { temperature: heat, top_k, top_p, min_p, seed };
    const how = { max_tokens: most, ...drawn, ...(stop && { stop: [stop] }), past_length: "slide" };
    return { prompt: text, model: this.way(state).model, ...how };
  }

  /**
   * Generate a continuation, piece by piece.
   * @param {State} state
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<string>}
   */
  async *generate(state, signal) {
    const body = { ...this.generateRequest(state), stream: true };
    for await (const events of eventsOf(await request("/api/v1/generate", body, signal)))
      for (const { name, data } of events) {
        if (name === "error") throw new Error(data.message);
        if (name === "token") yield data.text;
      }
  }

  /** Log-probabilities of the next token, by id. @param {State} state @param {AbortSignal} signal */
  async next(state, signal) {
    const body = { prompt: state.text, model: this.way(state).model };
    return (await readTensor(await request("/api/v1/next", body, signal))).data;
  }

  /** The body of a request for a trace. @param {State} state */
  traceRequest({ text, target, prefix, whole, beam, penalty, ...state }) {
    const { model, to } = this.way(state);
    const given = whole || target;
    const searches = !given && this.models.find(({ id }) => id === model)?.task === "translate";
    return {
      source: text,
      model,
      ...(to && { to }),
      ...(given && { target: whole ? numbers(whole) : target }),
      ...(prefix && !given && { prefix: numbers(prefix) }),
      ...(searches && beam > 0 && { beam }),
      ...(searches && penalty >= 0 && { length_penalty: penalty }),
    };
  }

  /**
   * The trace of the current text; null if there is none.
   * @param {State} state
   * @param {object} [more] Further fields of the request.
   * @returns {Promise<Opened | null>}
   */
  async trace(state, more = {}) {
    if (!state.text.trim()) return null;
    const body = { ...this.traceRequest(state), ...more };
    return this.once(JSON.stringify(body), () => opened(body));
  }

  /**
   * The translation that the user has just seen, if a trace's search finds another output; else empty. Returned
   * only once, so that the user can go back to the search.
   * @param {State} state
   */
  async shownInstead(state) {
    const { shown } = this;
    const forced = state.target || state.prefix || state.whole;
    const found = shown?.of === JSON.stringify(this.translateRequest(state)) && !forced && (await this.trace(state));
    this.shown = null;
    return shown && found && found.about.outputs?.text.trim() !== shown.text.trim() ? shown.text : "";
  }

  /** Cache the latest responses. @param {string} key @param {() => Promise<any>} make */
  once(key, make) {
    const found = this.known.get(key) ?? make();
    this.known.delete(key);
    this.known.set(key, found); // most recently used last
    if (this.known.size > KEPT) this.known.delete([...this.known.keys()][0]);
    found.catch(() => this.known.delete(key));
    return found;
  }

  /** The output with some interventions, or the effect of each head. @param {State} state @param {object} options */
  async ablate(state, options) {
    const { model, to } = this.way(state);
    const body = { source: state.text, model, ...(to && { to }), ...options };
    return this.once(JSON.stringify(["ablate", body]), async () => (await request("/api/v1/ablate", body)).json());
  }
}

/**
 * Create a trace, and create it again when the server has dropped it.
 * @param {object} body
 * @returns {Promise<Opened>}
 */
async function opened(body) {
  const make = async () => (await request("/api/v1/traces", body)).json();
  const { trace_id: first, ...about } = await make();
  let current = httpSource(first);
  /** @type {Promise<void> | null} */
  let renewing = null;
  const renew = async () => {
    try {
      current = httpSource((await make()).trace_id);
    } finally {
      renewing = null;
    }
  };
  const gone = (problem) => problem instanceof RequestError && problem.status === 404;
  const renewed =
    (name) =>
    async (...given) => {
      const from = current; // another call may renew it meanwhile
      try {
        const found = await from[name](
          ...given,
        );
        if (found === null) await from.describe(); // null may also mean that the trace is gone
        return found;
      } catch (problem) {
        if (!gone(problem)) throw problem;
        if (from === current) await (renewing ??= renew());
        return current[name](...given);
      }
    };
  const names = ["heads", "matrix", "activation", "walk", "steps", "summaries", "beam", "alignment", "influence", "influences", "file", "page"];
  /** @type {any} */
  const source = Object.fromEntries(names.map((name) => [name, renewed(name)]));
  const whole = { ...source, describe: async () => about, precision: () => current.precision() };
  return { source: cached(whole), about: about };
}
