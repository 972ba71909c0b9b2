// Classify a text as the user types: the probability of each label, and which tokens caused it.

import { picker } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { influence, ranked, shares } from "../parts/lists.js";
import { Paper } from "../parts/text_field.js";
import { Question } from "../state/requests.js";

/** @typedef {import("../frame.js").Context} Context */

export class Labeller {
  constructor() {
    this.paper = new Paper(() => void this.label());
    this.title = h("span", {});
    this.output = h("div", { class: "output labels", id: "output", tabindex: 0 });
    this.status = h("p", { class: "status soft", role: "status" });
    this.why = h("section", { class: "why", hidden: true });
    this.inside = h("button", { id: "look", type: "button", class: "primary" });
    this.inside.addEventListener("click", () => this.context?.store.set({ screen: "map" }));
    this.body = h(
      "div",
      { class: "translate" },
      this.paper.beside(this.title, this.output, this.status),
      h("div", { class: "under" }, this.inside),
      this.why,
    );
    this.question = new Question();
    this.weighing = new Question();
    this.asked = "";
    /** @type {any} */
    this.answer = null;
    /** @type {{ label: string, tokens: import("../state/source.js").Token[], values: number[] } | null} */
    this.influence = null;
    /** @type {Context | null} */
    this.context = null;
  }

  /** @param {Context} context */
  draw(context) {
    this.context = context;
    const { t } = context;
    this.paper.draw(context, t("translate.text"));
    this.title.textContent = t("classify.labels");
    this.output.setAttribute("aria-label", t("classify.labels"));
    this.inside.textContent = t("translate.look");
    this.show();
    void this.label();
  }

  /** Ask for the label of what is written. */
  async label() {
    const { live, store, t } = this.context;
    const { state } = store;
    const wanted = JSON.stringify([live.way(state).model, state.text]);
    if (wanted === this.asked) return;
    this.asked = wanted;
    this.output.setAttribute("aria-busy", "true");
    await this.question.ask(
      async (signal) => {
        const answer = state.text.trim() ? await live.classify(state, signal) : null;
        if (signal.aborted) return;
        [this.answer, this.influence] = [answer, null];
        this.output.removeAttribute("aria-busy");
        this.show();
        void this.weigh();
      },
      (problem) => {
        this.asked = "";
        [this.answer, this.influence] = [null, null]; // they are another text's
        this.output.removeAttribute("aria-busy");
        this.show();
        this.status.className = "status problem";
        this.status.textContent = problem;
      },
      t,
    );
  }

  /** Ask for the part that each token has in the label, or in another that the reader chose. */
  async weigh() {
    const { live, store, t } = this.context;
    await this.weighing.ask(
      async (signal) => {
        const opened = this.answer && (await live.trace(store.state));
        const values = await opened?.source.influence(0);
        if (signal.aborted || !values) return;
        const { inputs, wanted } = opened.about;
        this.influence = { label: wanted[0].text, tokens: inputs.tokens, values };
        this.explain();
      },
      () => {}, // too long to look at, perhaps: it is labelled all the same
      t,
    );
  }

  /** @param {string} name */
  choose(name) {
    this.context.store.note({ target: name === this.answer.label ? "" : name });
    void this.weigh();
  }

  show() {
    const { t } = this.context;
    const { answer } = this;
    this.output.replaceChildren(
      answer
        ? shares(
            ranked(answer.probabilities).map((each) => ({ ...each, pick: () => this.choose(each.name) })),
            t("classify.labels"),
          )
        : h("span", { class: "soft" }, t("classify.here")),
    );
    this.inside.toggleAttribute("disabled", !answer);
    this.status.className = "status soft";
    this.status.textContent = answer?.cut ? t("classify.cut", { count: answer.cut }) : "";
    this.explain();
  }

  /** Every token that was read, shaded by how much likelier it made the label. */
  explain() {
    const { answer, influence: found } = this;
    this.why.hidden = !answer || !found;
    if (!answer || !found) return;
    const context = this.context;
    this.why.replaceChildren(...influence(context, found.label, found.tokens, found.values));
  }
}

/** @type {Labeller | null} */
let labeller = null;

/** @type {import("../frame.js").Screen} */
export const classify = {
  id: "classify",
  sign: "☰",
  alone: true,
  task: "classify",
  keys: { "/": () => labeller?.paper.text.focus() },
  render: async (context) => {
    const first = !labeller;
    labeller ??= new Labeller();
    labeller.draw(context);
    if (first) requestAnimationFrame(() => labeller?.paper.text.focus({ preventScroll: true }));
    return { controls: picker(context), body: labeller.body };
  },
};
