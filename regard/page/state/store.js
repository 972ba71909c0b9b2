// What is on show, and only that: a few values that live in the address, so that every view is a link.

/**
 * @typedef {object} State
 * @property {string} screen
 * @property {string} kind `encoder`, `decoder` or `cross`.
 * @property {number} layer
 * @property {number} head
 * @property {number} query The token that looks.
 * @property {number} key The token looked at; -1: the one that draws the most.
 * @property {string} by What heads are told apart by on the map; empty: their roles.
 * @property {string} view How a head is drawn: `matrix`, `lines` or `arcs`.
 * @property {string} form `weights` or `scores`.
 * @property {string} gold Links that are known to be right, as `0-0 1-2`.
 * @property {number} threshold Lines thinner than this are left out.
 * @property {string} panel The step of the walk, by its name; empty: the first.
 * @property {number} wide Whether a walk shows vectors whole.
 * @property {number} unscaled Whether the walk shows a softmax without √d_k.
 * @property {number} hand Whether the reader works the numbers of the walk out.
 * @property {number} step The output token of the Steps screen.
 * @property {number} node The node of the beam tree; -1: the winner.
 * @property {number} table Whether figures are shown as tables.
 * @property {string} lang
 * @property {string} theme `auto`, `light` or `dark`.
 *
 * What only a server can answer for:
 * @property {string} text The text to translate and to look at.
 * @property {string} model
 * @property {string} from
 * @property {string} to The language to translate into.
 * @property {string} target An output that was chosen instead of the best.
 * @property {string} prefix Ids of tokens that the output must begin with.
 * @property {number} beam Hypotheses that a search keeps; 0: as many as the model says.
 * @property {number} penalty By how much it weighs lengths; -1: as the model says.
 * @property {string} whole Ids of all tokens of the output.
 * @property {string} off What is changed inside of the model: heads that are off, as `cross.1.3`, and more (`live.js`).
 * @property {string} drop Tokens of the inputs that nobody may look at, by their numbers.
 * @property {string} op What a click on a head does: `off`, `uniform` or `skip`.
 * @property {number} effects Whether the effect of every head is shown.
 * @property {string} other The text beside.
 * @property {string} beside What is compared: `text` or `off`.
 * @property {string} dims The dimensions of positions that are drawn as curves.
 * @property {string} measure What is drawn of a run.
 * @property {string} experiment
 * @property {number} probe
 * @property {number} heat The temperature at which tokens are drawn; 0: the likeliest.
 * @property {number} top_k Tokens that are drawn from; 0: all.
 * @property {number} top_p The probability that those together have.
 * @property {number} min_p The least share of the likeliest's probability that they have.
 * @property {number} most Tokens that are added to a text.
 * @property {string} stop What ends a text that is continued.
 * @property {number} seed
 * @property {number} moment The validation of a run that is shown; -1: the last.
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
  form: "weights",
  gold: "",
  threshold: 0.1,
  panel: "",
  wide: 0,
  unscaled: 0,
  hand: 0,
  step: 0,
  node: -1,
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
  op: "off",
  effects: 0,
  other: "",
  beside: "off",
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

/** What belongs to one text, and is forgotten with it. */
export const ANEW = { target: "", prefix: "", whole: "", drop: "", gold: "", query: -1, key: -1, step: 0, node: -1 };

/** The state as an address's hash; what is as usual is left out. @param {State} state */
export function toHash(state) {
  const parts = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = state[name];
    if (value !== usual) parts.set(name, String(value));
  }
  const text = parts.toString();
  return text ? `#${text}` : "";
}

/**
 * The state that a hash tells of; what it does not tell, or tells wrongly, is as usual.
 * @param {string} hash
 * @returns {State}
 */
export function fromHash(hash) {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {Record<string, string | number>} */
  const state = { ...DEFAULTS };
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = told.get(name);
    if (value === null) continue;
    if (typeof usual === "string") state[name] = value;
    else if (value.trim() && Number.isFinite(Number(value))) state[name] = Number(value);
  }
  return state;
}

/**
 * The nearest state that a trace has: a link made for another text still shows something.
 * @param {State} state
 * @param {import("./source.js").About | null} about Null: nothing is known of the text yet.
 * @returns {State}
 */
export function fitted(state, about) {
  if (!about) return { ...state, theme: ["light", "dark"].includes(state.theme) ? state.theme : "auto" };
  const kinds = about.kinds.map((each) => each.kind);
  const kind =
    about.kinds[Math.max(0, kinds.includes(state.kind) ? kinds.indexOf(state.kind) : kinds.length - 1)];
  const within = (value, count, usual = 0) =>
    Number.isInteger(value) && value >= 0 ? Math.min(value, count - 1) : usual;
  const { tokens } = about[kind.queries];
  const queries = tokens.length;
  const word = tokens.findIndex(({ special, text }) => !special && text !== "▁");
  const keys = about[kind.keys].tokens.length;
  return {
    ...state,
    kind: kind.kind,
    layer: within(state.layer, kind.layers, kind.layers - 1),
    head: within(state.head, kind.heads),
    query: within(state.query, queries, word < 0 ? Math.min(1, queries - 1) : word),
    key: within(state.key, keys, -1),
    view:
      ["matrix", "lines", "arcs"].includes(state.view) &&
      (state.view !== "arcs" || kind.queries === kind.keys)
        ? state.view
        : "matrix",
    form: state.form === "scores" ? "scores" : "weights",
    threshold: Math.min(1, Math.max(0, state.threshold)),
    step: within(state.step, Math.max(1, about.outputs?.tokens.length ?? 1)),
    theme: ["light", "dark"].includes(state.theme) ? state.theme : "auto",
  };
}

/** The one place where the state changes; whoever listens hears of it, and the address follows. */
export class Store {
  /**
   * @param {import("./source.js").About | null} about
   * @param {string} lang The language where the address names none.
   */
  constructor(about, lang) {
    this.about = about;
    this.lang = lang;
    /** @type {((state: State) => unknown)[]} */
    this.listeners = [];
    this.state = this.read();
    addEventListener("hashchange", () => {
      this.state = this.read();
      this.tell();
    });
  }

  /** @returns {State} */
  read() {
    const state = fitted(fromHash(location.hash), this.about);
    return { ...state, lang: ["en", "zh"].includes(state.lang) ? state.lang : this.lang };
  }

  /** From now on another text is shown. @param {import("./source.js").About | null} about */
  suit(about) {
    this.about = about;
    this.state = fitted(this.state, about);
  }

  /** @param {Partial<State>} changes */
  async set(changes) {
    if (this.note(changes)) await this.tell();
  }

  /**
   * Change the state and the address, and tell nobody: whoever does so has drawn it already.
   * @param {Partial<State>} changes
   */
  note(changes) {
    const before = toHash(this.state);
    const screen = this.state.screen;
    this.state = fitted({ ...this.state, ...changes }, this.about);
    const after = toHash(this.state);
    if (after === before) return false;
    try {
      const address = after || "#";
      if (screen === this.state.screen) history.replaceState(null, "", address);
      else history.pushState(null, "", address);
    } catch {
      // A page inside a notebook's frame has no address of its own.
    }
    return true;
  }

  /** @param {(state: State) => unknown} listener May give a promise: of having drawn it. */
  listen(listener) {
    this.listeners.push(listener);
  }

  /** Whoever waits for it goes on when all have heard, and what they draw is there to see. */
  async tell() {
    await Promise.all(this.listeners.map((listener) => listener(this.state)));
  }
}
