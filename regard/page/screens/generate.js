// Generate text token by token, with the candidates for the next token.

import { percent } from "../compute/number.js";
import { textOfPiece } from "../compute/text.js";
import { modelPicker, slider } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { shares } from "../parts/lists.js";
import { TextField } from "../parts/text_field.js";
import { LatestRequest } from "../state/requests.js";

/** @typedef {import("../frame.js").Context} Context */

class Generator {
  constructor() {
    this.field = new TextField(() => this.changed());
    this.title = h("span", {});
    this.output = h("div", { class: "output", id: "output", tabindex: 0, dir: "auto" });
    this.status = h("p", { class: "status soft", role: "status" });
    this.go = h("button", { id: "go", type: "button", class: "primary" });
    this.keep = h("button", { id: "keep", type: "button" });
    this.how = h("button", { id: "how", type: "button" });
    this.inside = h("button", { id: "look", type: "button" });
    this.nextHead = h("h2", {});
    this.nextNote = h("p", { class: "soft" });
    this.next = h("div", {});
    this.left = h("p", { id: "left", class: "soft" });
    this.coming = h(
      "section",
      { class: "coming", hidden: true },
      ...[this.nextHead, this.nextNote, this.next, this.left],
    );
    this.body = h(
      "div",
      { class: "translate" },
      this.field.beside(this.title, this.output, this.status),
      h("div", { class: "under" }, this.go, this.keep, this.inside, this.how),
      this.coming,
    );
    this.writing = new LatestRequest();
    this.guessing = new LatestRequest();
    this.running = false;
    this.added = "";
    this.guessed = ""; // the text whose next token was requested
    this.problem = "";
    this.last = 0; // index of the step after the whole text
    /** @type {import("../state/source.js").Candidate[]} */
    this.candidates = [];
    /** Of all tokens, the most likely first. @type {Float32Array} */
    this.logProbs = new Float32Array();
    /** @type {Context | null} */
    this.context = null;
    this.go.addEventListener("click", () => (this.running ? this.stop() : void this.write()));
    this.keep.addEventListener("click", () => this.field.write(this.field.text.value + this.added));
    this.how.addEventListener("click", () => this.context?.store.set({ screen: "follow", stage: "" }));
    this.inside.addEventListener("click", () => this.context?.store.set({ screen: "steps", step: this.last }));
  }

  /** @param {Context} context */
  draw(context) {
    this.context = context;
    const { t } = context;
    this.field.draw(context, t("generate.prompt"));
    this.title.textContent = t("generate.output");
    this.output.setAttribute("aria-label", t("generate.output"));
    this.keep.textContent = t("generate.keep");
    this.inside.textContent = t("translate.look");
    this.how.textContent = t("how");
    this.how.title = t("how.title");
    this.nextHead.textContent = t("generate.next");
    this.nextNote.textContent = t("generate.next.note");
    this.show();
    void this.guess();
  }

  /** Remove the continuation: the prompt has changed. */
  changed() {
    this.stop();
    this.added = this.problem = "";
    this.show();
    void this.guess();
  }

  stop() {
    this.writing.stop();
    this.running = false;
    this.show();
  }

  /** Generate a continuation; each time with another seed. */
  async write() {
    const { server, store, t } = this.context;
    this.field.note();
    const { state } = store;
    this.added = this.problem = "";
    this.running = true;
    this.show();
    await this.writing.run(
      async (signal) => {
        for await (const piece of server.generate(state, signal)) {
          if (signal.aborted) return;
          this.added += piece;
          this.show();
        }
        if (signal.aborted) return;
        this.running = false;
        store.setQuietly({ seed: state.seed + 1 });
        this.show();
      },
      (problem) => {
        this.running = false;
        this.problem = problem;
        this.show();
      },
      t,
    );
  }

  /** Request the candidates for the next token. */
  async guess() {
    const { server, store, t } = this.context;
    const { state } = store;
    const wanted = JSON.stringify([server.way(state).model, state.text]);
    if (wanted === this.guessed) return;
    this.guessed = wanted;
    await this.guessing.run(
      async (signal) => {
        const steps = await (await server.trace(state))?.source.steps();
        const logProbs = steps && (await server.next(state, signal)).sort().reverse();
        if (signal.aborted) return;
        this.candidates = steps?.at(-1)?.candidates ?? [];
        this.logProbs = logProbs ?? this.logProbs;
        this.last = Math.max(0, (steps?.length ?? 0) - 1);
        this.show();
      },
      () => {
        this.guessed = ""; // for example, too long for a trace; it can still be continued
        this.candidates = [];
        this.show();
      },
      t,
    );
  }

  show() {
    const { t, store } = this.context;
    const prompt = this.field.text.value;
    this.output.replaceChildren(
      ...(this.added || this.running
        ? [h("span", { class: "soft" }, prompt), h("span", { class: "added" }, this.added)]
        : [h("span", { class: "soft" }, t("generate.here"))]),
    );
    this.output.setAttribute("aria-busy", String(this.running && !this.added));
    this.output.scrollTop = this.output.scrollHeight;
    this.go.textContent = t(this.running ? "generate.stop" : this.added ? "generate.again" : "generate.go");
    this.keep.toggleAttribute("disabled", this.running || !this.added);
    for (const button of [this.inside, this.how]) button.toggleAttribute("disabled", !prompt.trim());
    this.status.className = this.problem ? "status problem" : "status soft";
    this.status.textContent = this.problem;
    this.coming.hidden = !this.candidates.length;
    if (!this.candidates.length) return;
    const { chances, kept, mass } = truncated(this.logProbs, store.state);
    const gaps = { kept, of: chances.length, share: percent(mass) };
    this.left.textContent = t(kept < chances.length ? "generate.left" : "generate.left.all", gaps);
    this.next.replaceChildren(
      shares(
        this.candidates.map(({ piece, text }, i) => {
          const added = textOfPiece(piece);
          const pick = added === null ? undefined : () => this.field.write(this.field.text.value + added);
          const name = added?.startsWith(" ") ? `␣${added.trimStart()}` : text;
          const then = i < kept ? chances[i] / mass : 0;
          return { name, share: chances[i], ...(kept < chances.length && { then }), pick };
        }),
        t("generate.next"),
      ),
    );
  }
}

/**
 * @typedef {Pick<import("../state/store.js").State, "heat" | "top_k" | "top_p" | "min_p">} Settings
 * @typedef {object} Cut
 * @property {Float64Array} chances Probabilities of all tokens at this temperature.
 * @property {number} kept Number of tokens that can be sampled, the most likely first.
 * @property {number} mass Their total probability.
 */

/**
 * Apply temperature, top-k, top-p and min-p like `regard/decode/sampling.py`. Each rule removes the least likely of
 * the remaining tokens, so a prefix of the sorted list is left.
 * @param {Float32Array} logProbs Sorted, the most likely first.
 * @param {Settings} settings At temperature 0 (greedy), probabilities are unchanged.
 * @returns {Cut}
 */
export function truncated(logProbs, { heat, top_k, top_p, min_p }) {
  const chances = Float64Array.from(logProbs, (each) => Math.exp((each - logProbs[0]) / (heat || 1)));
  const sum = chances.reduce((a, b) => a + b, 0);
  chances.forEach((each, i) => (chances[i] = each / sum));
  const most = heat ? top_k || chances.length : 1;
  const within = chances.subarray(0, most).reduce((a, b) => a + b, 0);
  let [kept, mass] = [0, 0];
  while (kept < Math.min(most, chances.length)) {
    if (mass >= top_p * within || chances[kept] < min_p * chances[0]) break;
    mass += chances[kept++];
  }
  return { chances, kept, mass };
}

/** @type {Generator | null} */
let generator = null;

/** @param {Event} event */
const value = (event) => /** @type {HTMLInputElement} */ (event.target).value;

/** Controls for sampling; the candidates are updated while a slider moves. @param {Context} context */
function choices({ state, store, t }) {
  const all = (value) => (value ? String(value) : t("generate.all"));
  const whole = (value) => (value < 1 ? String(value) : t("generate.all"));
  /** @type {["heat" | "top_k" | "top_p" | "min_p", number[], (value: number) => string][]} */
  const sliding = [
    ["heat", [0, 2, 0.1], String],
    ["top_k", [0, 100, 1], all],
    ["top_p", [0.05, 1, 0.05], whole],
    ["min_p", [0, 0.5, 0.01], all],
  ];
  return [
    ...sliding.map(([id, range, format]) =>
      slider({
        ...{ id, range, format, value: state[id], text: t(`generate.${id}`), title: t(`generate.${id}.title`) },
        slide: (value) => {
          store.setQuietly({ [id]: value });
          generator?.show();
        },
      }),
    ),
    h(
      "label",
      { class: "slider" },
      t("generate.most"),
      h("input", {
        ...{ id: "most", type: "number", min: 1, max: 1000, value: state.most },
        onchange: (event) =>
          store.set({ most: Math.min(1000, Math.max(1, Math.round(Number(value(event))) || 1)) }),
      }),
    ),
    h(
      "label",
      { class: "slider", title: t("generate.until.title") },
      t("generate.until"),
      h("input", {
        ...{ id: "until", type: "text", class: "brief", value: state.stop },
        onchange: (event) => store.set({ stop: value(event) }),
      }),
    ),
  ];
}

/** @type {import("../frame.js").Screen} */
export const generate = {
  id: "generate",
  sign: "✎",
  alone: true,
  task: "generate",
  keys: { "/": () => generator?.field.text.focus() },
  render: async (context) => {
    const first = !generator;
    generator ??= new Generator();
    generator.draw(context);
    if (first) requestAnimationFrame(() => generator?.field.text.focus({ preventScroll: true }));
    return { controls: [...modelPicker(context), ...choices(context)], body: generator.body };
  },
};
