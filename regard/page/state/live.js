// The server behind the page: its models and their directions, translations, and traces made when needed.

import { hasScale } from "../compute/attention.js";
import { arriving, ask, Refused } from "./requests.js";
import { remembered } from "./source.js";
import { httpSource, received } from "./source_http.js";

/** @typedef {import("./store.js").State} State */
/** @typedef {{ source: import("./source.js").Source, about: import("./source.js").About }} Opened */
/** @typedef {{ model: string, from: string, to: string }} Way Without languages, the text tells which it is in. */
/**
 * @typedef {object} Model
 * @property {string} id
 * @property {"translate" | "generate" | "classify"} task
 * @property {"translate" | "summarise" | "converse" | "answer" | "generate" | "classify"} does What it was trained for.
 * @property {{ source: string, target: string }[]} directions
 * @property {Record<string, any>} config
 * @property {{ beam_size: number, length_penalty: number }} decoding
 * @property {{ beam: number }} limits
 * @property {string} weights_hash
 * @property {boolean} run
 */

const KEPT = 12; // answers that a reader may want to go back to
const READ = 500; // characters of a text that tell its language

/** @param {string} ids */
const numbers = (ids) => (ids ? ids.split(",").map(Number) : []);

/**
 * One change of the model, as the address writes it: `cross.1.3` (that head is off), `uniform.cross.1.3`,
 * `skip.cross.1`, `no-scale`, `no-positions`; null where it is none that this model has.
 * @param {string} name
 * @param {import("./source.js").About} about
 */
function changeOf(name, { kinds, settings }) {
  if (name === "no-scale") return hasScale(settings) ? { op: name } : null;
  if (name === "no-positions") return settings.positions === "none" ? null : { op: name };
  const found = /^(?:(uniform|skip)\.)?(encoder|decoder|cross)\.(\d+)(?:\.(\d+))?$/.exec(name);
  const [, op, kind, layer, head] = found ?? [];
  const there = kinds.find((each) => each.kind === kind && Number(layer) < each.layers);
  if (!there || (op === "skip") !== (head === undefined) || Number(head ?? 0) >= there.heads) return null;
  if (op === "skip") return { op: "skip-block", block: kind, layer: Number(layer) };
  return { op: op ?? "head-off", kind, layer: Number(layer), head: Number(head) };
}

/**
 * The interventions that the address names, as far as a model and a text have what they change.
 * @param {Pick<State, "off" | "drop">} state
 * @param {import("./source.js").About} about
 */
export function changes({ off, drop }, about) {
  const dropped = numbers(drop).filter((token) => about.inputs?.tokens[token]);
  return [
    ...off.split(",").flatMap((name) => changeOf(name, about) ?? []),
    ...dropped.map((token) => ({ op: "mask-source", token })),
  ];
}

export class Live {
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
    /** @type {{ of: string, text: string } | null} The translation that a reader has before them, of what was asked. */
    this.shown = null;
  }

  /** The way that the state names, or the nearest. @param {Pick<State, "model" | "from" | "to">} state */
  way({ model, from, to }) {
    const of = this.ways.filter((way) => way.model === model);
    const exact = of.find((way) => way.from === from && way.to === to);
    return exact ?? of[0] ?? this.ways[0];
  }

  /** @param {State} state */
  model(state) {
    return this.models.find((each) => each.id === this.way(state).model);
  }

  /** The sizes of a model, as a trace of it tells them. @param {State} state */
  described(state) {
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

  /** What is asked for the translation of a text. @param {State} state @param {object} [more] */
  asked(state, more = {}) {
    const { model, from, to } = this.way(state);
    return { text: state.text, model, ...(from && { source: from }), ...(to && { target: to }), ...more };
  }

  /**
   * The language that a text is translated into, for those who must name it; nothing where a model knows of none.
   * @param {State} state
   * @param {string} text
   * @returns {Promise<string>}
   */
  async target(state, text) {
    return (await this.direction(state, text)).target ?? "";
  }

  /**
   * The way that a text is translated; nothing where a model knows of no languages.
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
      (await ask("/api/v1/detect", { text: beginning })).json(),
    );
    return directions.find(({ source }) => source === items[0]?.language) ?? directions[0];
  }

  /** @param {State} state @param {object} more @param {AbortSignal} [signal] */
  async translate(state, more, signal) {
    return (await (await ask("/api/v1/translate", this.asked(state, more), signal)).json()).items[0];
  }

  /**
   * Lines, each by itself; what is empty stays so.
   * @param {State} state
   * @param {string[]} lines
   * @param {{ source?: string, target?: string }} way
   * @param {AbortSignal} signal
   * @returns {Promise<string[]>}
   */
  async translateAll(state, lines, way, signal) {
    const text = lines.filter((line) => line.trim());
    const body = { ...this.asked(state), ...way, text };
    const { items } = text.length
      ? await (await ask("/api/v1/translate", body, signal)).json()
      : { items: [] };
    return lines.map((line) => (line.trim() ? items.shift().text : line));
  }

  /** The label of a text: how likely each is. @param {State} state @param {AbortSignal} [signal] */
  async classify(state, signal) {
    const body = { text: state.text, model: this.way(state).model, too_long: "cut" };
    return (await (await ask("/api/v1/classify", body, signal)).json()).items[0];
  }

  /** What is asked for the continuation of a text. @param {State} state */
  continuing({ text, heat, top_k, top_p, min_p, most, stop, seed, ...state }) {
    const drawn = { temperature: heat, top_k, top_p, min_p, seed };
    const how = { max_tokens: most, ...drawn, ...(stop && { stop: [stop] }), past_length: "slide" };
    return { prompt: text, model: this.way(state).model, ...how };
  }

  /**
   * A text continued, piece by piece.
   * @param {State} state
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<string>}
   */
  async *generate(state, signal) {
    const body = { ...this.continuing(state), stream: true };
    for await (const events of arriving(await ask("/api/v1/generate", body, signal)))
      for (const { name, data } of events) {
        if (name === "error") throw new Error(data.message);
        if (name === "token") yield data.text;
      }
  }

  /** How likely each token is to come next, by ids. @param {State} state @param {AbortSignal} signal */
  async next(state, signal) {
    const body = { prompt: state.text, model: this.way(state).model };
    return (await received(await ask("/api/v1/next", body, signal))).data;
  }

  /** What is asked for the trace of a text. @param {State} state */
  looked({ text, target, prefix, whole, beam, penalty, ...state }) {
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
   * The trace of the text that the state names; null where it names none.
   * @param {State} state
   * @param {object} [more] What else is asked for.
   * @returns {Promise<Opened | null>}
   */
  async trace(state, more = {}) {
    if (!state.text.trim()) return null;
    const body = { ...this.looked(state), ...more };
    return this.once(JSON.stringify(body), () => opened(body));
  }

  /**
   * What to look at instead of what the search that is looked at finds: the translation that the reader comes from,
   * where the two differ. It is said once, so that the reader can go back to the search.
   * @param {State} state
   */
  async shownInstead(state) {
    const { shown } = this;
    const forced = state.target || state.prefix || state.whole;
    const found = shown?.of === JSON.stringify(this.asked(state)) && !forced && (await this.trace(state));
    this.shown = null;
    return shown && found && found.about.outputs?.text.trim() !== shown.text.trim() ? shown.text : "";
  }

  /** What was asked for lately is not asked for again. @param {string} key @param {() => Promise<any>} make */
  once(key, make) {
    const found = this.known.get(key) ?? make();
    this.known.delete(key);
    this.known.set(key, found); // the last that was asked for goes last
    if (this.known.size > KEPT) this.known.delete([...this.known.keys()][0]);
    found.catch(() => this.known.delete(key));
    return found;
  }

  /**
   * What becomes of a text without some heads, and what each head is worth for it.
   * @param {State} state
   * @param {object} asked
   */
  async ablate(state, asked) {
    const { model, to } = this.way(state);
    const body = { source: state.text, model, ...(to && { to }), ...asked };
    return this.once(JSON.stringify(["ablate", body]), async () => (await ask("/api/v1/ablate", body)).json());
  }
}

/**
 * Make a trace, and make it again when the server has let go of it.
 * @param {object} body
 * @returns {Promise<Opened>}
 */
async function opened(body) {
  const make = async () => (await ask("/api/v1/traces", body)).json();
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
  const gone = (problem) => problem instanceof Refused && problem.status === 404;
  const asked =
    (name) =>
    async (...given) => {
      const from = current; // another question may renew it meanwhile
      try {
        const found = await from[name](
          ...given,
        );
        if (found === null) await from.describe(); // nothing to show, or nothing there any more?
        return found;
      } catch (problem) {
        if (!gone(problem)) throw problem;
        if (from === current) await (renewing ??= renew());
        return current[name](...given);
      }
    };
  const names = ["heads", "matrix", "walk", "steps", "beam", "alignment", "influence", "influences", "file"];
  const source = Object.fromEntries(names.map((name) => [name, asked(name)]));
  const whole = { ...source, describe: async () => about, precision: () => current.precision() };
  return { source: remembered(whole), about: about };
}
