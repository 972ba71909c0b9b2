// Classify a text as the user types: the probability of each label, and which tokens caused it.

import { modelPicker } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { influence, ranked, shares } from "../parts/lists.js";
import { TextField } from "../parts/text_field.js";
import { LatestRequest } from "../state/requests.js";

/** @typedef {import("../frame.js").Context} Context */

class Classifier {
  constructor() {
    this.field = new TextField(() => void this.label());
    this.title = h("span", {});
    this.output = h("div", { class: "output labels", id: "output", tabindex: 0 });
    this.status = h("p", { class: "status soft", role: "status" });
    this.why = h("section", { class: "why", hidden: true });
    this.how = h("button", { id: "how", type: "button", class: "primary" });
    this.how.addEventListener("click", () => this.context?.store.set({ screen: "follow", stage: "" }));
    this.inside = h("button", { id: "look", type: "button" });
    this.inside.addEventListener("click", () => this.context?.store.set({ screen: "model" }));
    this.body = h(
      "div",
      { class: "translate" },
      this.field.beside(this.title, this.output, this.status),
      h("div", { class: "under" }, this.how, this.inside),
      this.why,
    );
    this.labelling = new LatestRequest();
    this.weighing = new LatestRequest();
    this.requested = "";
    /** @type {any} */
    this.answer = null;
    /** @type {{ label: string, tokens: import("../state/source.js").Token[], found: import("../state/source.js").Influence } | null} */
    this.influence = null;
    /** @type {Context | null} */
    this.context = null;
  }

  /** @param {Context} context */
  draw(context) {
    this.context = context;
    const { t } = context;
    this.field.draw(context, t("translate.text"));
    this.title.textContent = t("classify.labels");
    this.output.setAttribute("aria-label", t("classify.labels"));
    this.inside.textContent = t("translate.look");
    this.how.textContent = t("how");
    this.how.title = t("how.title");
    this.show();
    void this.label();
  }

  /** Request the label of the text. */
  async label() {
    const { server, store, t } = this.context;
    const { state } = store;
    const wanted = JSON.stringify([server.way(state).model, state.text]);
    if (wanted === this.requested) return;
    this.requested = wanted;
    this.output.setAttribute("aria-busy", "true");
    await this.labelling.run(
      async (signal) => {
        const answer = state.text.trim() ? await server.classify(state, signal) : null;
        if (signal.aborted) return;
        [this.answer, this.influence] = [answer, null];
        this.output.removeAttribute("aria-busy");
        this.show();
        void this.weigh();
      },
      (problem) => {
        this.requested = "";
        [this.answer, this.influence] = [null, null]; // they belong to another text
        this.output.removeAttribute("aria-busy");
        this.show();
        this.status.className = "status problem";
        this.status.textContent = problem;
      },
      t,
    );
  }

  /** Request the influence of each token on the label, or on another one that the user chose. */
  async weigh() {
    const { server, store, t } = this.context;
    await this.weighing.run(
      async (signal) => {
        const opened = this.answer && (await server.trace(store.state));
        const found = await opened?.source.influence(0);
        if (signal.aborted || !found) return;
        const { inputs, wanted } = opened.about;
        this.influence = { label: wanted[0].text, tokens: inputs.tokens, found };
        this.explain();
      },
      () => {}, // for example, too long for a trace; the label is still shown
      t,
    );
  }

  /** @param {string} name */
  choose(name) {
    this.context.store.setQuietly({ target: name === this.answer.label ? "" : name });
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
    for (const button of [this.inside, this.how]) button.toggleAttribute("disabled", !answer);
    this.status.className = "status soft";
    this.status.textContent = answer?.cut ? t("classify.cut", { count: answer.cut }) : "";
    this.explain();
  }

  /** Show the tokens, shaded by their influence. */
  explain() {
    const { answer, influence: found } = this;
    this.why.hidden = !answer || !found;
    if (!answer || !found) return;
    const context = this.context;
    this.why.replaceChildren(...influence(context, found.label, found.tokens, found.found));
  }
}

/** @type {Classifier | null} */
let classifier = null;

/** @type {import("../frame.js").Screen} */
export const classify = {
  id: "classify",
  sign: "☰",
  alone: true,
  task: "classify",
  keys: { "/": () => classifier?.field.text.focus() },
  render: async (context) => {
    const first = !classifier;
    classifier ??= new Classifier();
    classifier.draw(context);
    if (first) requestAnimationFrame(() => classifier?.field.text.focus({ preventScroll: true }));
    return { controls: modelPicker(context), body: classifier.body };
  },
};
