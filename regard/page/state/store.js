// The state of the page. It is kept in the address, so every view is a link.

import { keep, kept } from "./preferences.js";

/**
 * @typedef {object} State
 * @property {string} screen
 * @property {string} kind `encoder`, `decoder` or `cross`.
 * @property {number} layer
 * @property {number} head
 * @property {number} query The query token.
 * @property {number} key The key token; -1: the one with the largest weight.
 * @property {string} by The measure that labels heads on the map: `role`, `entropy` …; empty: the effect of each, or
 *   without a server, their roles.
 * @property {string} view How a head is drawn: `matrix`, `lines`, `arcs` or `layers`.
 * @property {string} heads Heads that are drawn over each other as lines; empty: see `superposed.js`.
 * @property {string} form `weights` or `scores`.
 * @property {string} gold Reference links, such as `0-0 1-2`.
 * @property {number} threshold Smallest weight that is drawn as a line.
 * @property {string} panel Name of the current step of the walk; empty: the first.
 * @property {number} wide Whether the walk shows all dimensions.
 * @property {number} unscaled Whether the walk also shows the softmax without √d_k.
 * @property {number} hand Whether the walk has exercises.
 * @property {number} step The step that wrote the selected output token; -1: of the selected query.
 * @property {number} node The node of the beam tree; -1: that of the selected output token.
 * @property {number} tour The step of the tour; -1: none.
 * @property {string} exercise The exercise that is open; empty: none.
 * @property {string} box The box of Figure 1 that is open; empty: none.
 * @property {string} stage The stage of the path of a word, such as `encoder.3.weights`; empty: the first.
 * @property {number} present Whether the page is presented: full screen, large type.
 * @property {number} table Whether figures are shown as tables.
 * @property {string} lang
 * @property {string} theme `auto`, `light` or `dark`.
 *
 * Fields that only a server uses:
 * @property {string} text The input text.
 * @property {string} model
 * @property {string} from
 * @property {string} to The language to translate into.
 * @property {string} target An output chosen instead of the best one.
 * @property {string} prefix Ids of the tokens that the output must begin with.
 * @property {number} beam Beam size; 0: the model's default.
 * @property {number} penalty Length penalty; -1: the model's default.
 * @property {string} whole Ids of all tokens of the output.
 * @property {string} off Interventions, such as `cross.1.3` for a head that is off (see `server.js`).
 * @property {string} drop Indices of masked input tokens.
 * @property {string} unplaced Indices of tokens that have no position.
 * @property {string} op What is done to a head that is clicked, such as `off`; empty: it is opened.
 * @property {string} axes Logarithmic axes of training curves: `x`, `y` or both.
 * @property {string} other The text to compare with.
 * @property {string} beside What is compared: `off` (the changed model), `model` or `text`.
 * @property {string} rival The model that stands beside this one; empty: the first other one.
 * @property {string} dims Dimensions of the positions that are plotted.
 * @property {string} measure The curve that is plotted of a run.
 * @property {string} experiment
 * @property {number} probe
 * @property {number} heat Sampling temperature; 0: greedy.
 * @property {number} top_k Number of most likely tokens to sample from; 0: all.
 * @property {number} top_p Total probability of the tokens to sample from.
 * @property {number} min_p Smallest probability relative to the most likely token's.
 * @property {number} most Maximum number of generated tokens.
 * @property {string} stop Text that ends the generation.
 * @property {number} seed
 * @property {number} moment Index of the validation shown; -1: the last.
 */

/** @type {State} */
export const DEFAULTS = {
  screen: "",
  kind: "",
  layer: -1,
  head: 0,
  query: -1,
  key: -1,
  by: "",
  view: "matrix",
  heads: "",
  form: "weights",
  gold: "",
  threshold: 0.1,
  panel: "",
  wide: 0,
  unscaled: 0,
  hand: 0,
  step: -1,
  node: -1,
  tour: -1,
  exercise: "",
  box: "",
  stage: "",
  present: 0,
  table: 0,
  lang: "",
  theme: "auto",
  text: "",
  model: "",
  from: "",
  to: "",
  target: "",
  prefix: "",
  beam: 0,
  penalty: -1,
  whole: "",
  off: "",
  drop: "",
  unplaced: "",
  op: "",
  axes: "",
  other: "",
  beside: "off",
  rival: "",
  dims: "0,8,16,24",
  measure: "loss",
  experiment: "",
  probe: 0,
  moment: -1,
  heat: 0.8,
  top_k: 0,
  top_p: 1,
  min_p: 0,
  most: 60,
  stop: "",
  seed: 1,
};

/** Resets the fields that belong to one text. */
export const NEW_TEXT = {
  ...{ target: "", prefix: "", whole: "", drop: "", unplaced: "", gold: "" },
  ...{ query: -1, key: -1, step: -1, node: -1 },
};

/**
 * The change to another kind of attention, with the same tokens as far as it has them: a selected input stays a query
 * or becomes the key, and an output that was selected stays so.
 * @param {State} state
 * @param {string} kind
 * @returns {Partial<State>}
 */
export function toKind({ kind: from, query, key }, kind) {
  if (kind === from) return {};
  if (kind === "cross") return { kind, query: from === "decoder" ? query : -1, key: from === "encoder" ? query : -1 };
  return { kind, query: from === "cross" ? (kind === "encoder" ? key : query) : -1, key: -1 };
}

/** The state as the hash of an address, without defaults. @param {State} state */
export function toHash(state) {
  const parts = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = state[name];
    if (value !== usual) parts.set(name, String(value));
  }
  const text = parts.toString();
  return text ? `#${text}` : "";
}

/** The state from a hash; missing or invalid fields get their defaults. @param {string} hash @returns {State} */
export function fromHash(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {any} */
  const state = { ...DEFAULTS };
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = fields.get(name);
    if (value === null) continue;
    if (typeof usual === "string") state[name] = value;
    else if (value.trim() && Number.isFinite(Number(value))) state[name] = Number(value);
  }
  if (state.screen === "off") state.screen = "map"; // its name before heads could be switched off there
  return state;
}

/** The first token that is part of a word, or else the second. @param {import("./source.js").Side} side */
function firstWord({ tokens }) {
  const word = tokens.findIndex(({ special, text }) => !special && !["␣", "▁"].includes(text));
  return word < 0 ? Math.min(1, tokens.length - 1) : word;
}

/** The step that wrote an output token; none wrote the first. @param {number} token */
const stepOf = (token) => Math.max(0, token - 1);

/**
 * The changes with those that follow from them: an output token is selected together with the step that wrote it.
 * @param {Partial<State>} changes
 * @param {State} state
 * @param {import("./source.js").About | null} about
 * @returns {Partial<State>}
 */
export function linked(changes, state, about) {
  const kind = about?.kinds.find((each) => each.kind === (changes.kind ?? state.kind));
  const { query = -1, step = -1 } = changes;
  if (kind?.queries !== "outputs") return changes;
  if (step >= 0 && query < 0) return { ...changes, query: Math.min(step + 1, about.outputs.tokens.length - 1) };
  return query >= 0 && step < 0 ? { ...changes, step: stepOf(query), node: -1 } : changes;
}

/**
 * The state limited to what a trace has, so that a link made for another text still works.
 * @param {State} state
 * @param {import("./source.js").About | null} about Null if there is no trace yet.
 * @returns {State}
 */
export function fitted(state, about) {
  if (!about) return { ...state, theme: ["light", "dark"].includes(state.theme) ? state.theme : "auto" };
  const begins = state.screen === "walk"; // the walkthrough starts where the model does
  const { kinds } = about;
  const kind = kinds.find((each) => each.kind === state.kind) ?? kinds[begins ? 0 : kinds.length - 1];
  const within = (value, count, usual = 0) =>
    Number.isInteger(value) && value >= 0 ? Math.min(value, count - 1) : usual;
  const queries = about[kind.queries].tokens.length;
  const writes = kind.queries === "outputs";
  const usual = writes && state.step >= 0 ? Math.min(state.step + 1, queries - 1) : firstWord(about[kind.queries]);
  const query = within(state.query, queries, usual);
  const written = about.outputs?.tokens.length ?? 1;
  const keys = about[kind.keys].tokens.length;
  return {
    ...state,
    kind: kind.kind,
    layer: within(state.layer, kind.layers, begins ? 0 : kind.layers - 1),
    head: within(state.head, kind.heads),
    query,
    key: within(state.key, keys, -1),
    view:
      ["matrix", "lines", "arcs", "layers"].includes(state.view) &&
      (state.view !== "arcs" || kind.queries === kind.keys)
        ? state.view
        : "matrix",
    form: state.form === "scores" ? "scores" : "weights",
    threshold: Math.min(1, Math.max(0, state.threshold)),
    step: within(state.step, written, stepOf(writes ? query : about.outputs ? firstWord(about.outputs) : 0)),
    theme: ["light", "dark"].includes(state.theme) ? state.theme : "auto",
  };
}

/** Holds the state, writes it to the address, and notifies listeners of changes. */
export class Store {
  /**
   * @param {import("./source.js").About | null} about
   * @param {string} lang The language if the address has none, and the user has chosen none before.
   */
  constructor(about, lang) {
    this.about = about;
    this.lang = lang;
    /** @type {((state: State) => unknown)[]} */
    this.listeners = [];
    /** The text while the user has written none. @type {(state: State) => string} */
    this.example = () => "";
    this.cleared = false; // whether the user has emptied the text field
    this.read();
    addEventListener("hashchange", () => {
      this.read();
      this.notify();
    });
  }

  /** Read the address. */
  read() {
    const chosen = fromHash(location.hash);
    const lang = [chosen.lang, kept("lang"), this.lang].find((each) => ["en", "zh"].includes(each));
    const theme = new URLSearchParams(location.hash.slice(1)).has("theme") ? chosen.theme : kept("theme");
    /** What was chosen; the rest follows from the trace. @type {State} */
    this.chosen = { ...chosen, lang: lang ?? "en", theme: theme || "auto" };
    this.fit(this.about);
  }

  /** Fit the state to a trace. @param {import("./source.js").About | null} about */
  fit(about) {
    this.about = about;
    /** @type {State} */
    this.state = fitted(this.chosen, about);
    if (!this.state.text.trim()) this.state.text = this.example(this.state);
    const { kind, layer, screen } = this.state;
    if (about && screen === "walk") this.chosen = { ...this.chosen, kind, layer }; // other screens show this head, too
  }

  /** @param {Partial<State>} changes */
  async set(changes) {
    if (this.setQuietly(changes)) await this.notify();
  }

  /**
   * Change the state and the address without a redraw. Returns whether anything changed.
   * @param {Partial<State>} changes
   */
  setQuietly(changes) {
    const before = toHash(this.chosen);
    const screen = this.state.screen;
    if ("text" in changes) this.cleared = !changes.text;
    for (const name of /** @type {const} */ (["lang", "theme"])) if (changes[name]) keep(name, changes[name]);
    this.chosen = { ...this.chosen, ...linked(changes, this.state, this.about) };
    this.fit(this.about);
    const after = toHash(this.chosen);
    if (after === before) return false;
    try {
      const address = after || "#";
      if (screen === this.state.screen) history.replaceState(null, "", address);
      else history.pushState(null, "", address);
    } catch {
      // In a notebook's frame the page has no address of its own.
    }
    return true;
  }

  /** @param {(state: State) => unknown} listener May return a promise that resolves when it has drawn the state. */
  listen(listener) {
    this.listeners.push(listener);
  }

  /** Call the listeners; resolves when all have drawn the state. */
  async notify() {
    await Promise.all(this.listeners.map((listener) => listener(this.state)));
  }
}
