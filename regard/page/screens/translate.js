// Translate (or summarise, answer, converse) as the user types: alternatives, word sources, doubtful words.

import { fixed, percent } from "../compute/number.js";
import { cut, marked, pieces, wordProbabilities } from "../compute/text.js";
import { modelPicker } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { figureOne } from "../figures/figure_one.js";
import { examples } from "../parts/examples.js";
import { FileTranslation } from "../parts/file_translation.js";
import { LivingText } from "../parts/living.js";
import { TextField } from "../parts/text_field.js";
import { connection, LatestRequest } from "../state/requests.js";
import { exampleOf, examplesFor } from "../state/examples.js";
import { NEW_TEXT } from "../state/store.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/text.js").Piece} Piece */

const PAUSE = 220; // milliseconds without a key before the text is translated
const SLOW = 120; // milliseconds without a response before the output is marked as busy
const DOUBT = 0.5; // words with a lower probability are dotted
const BEST = 4;

class Translator {
  constructor() {
    this.mirror = h("div", { class: "mirror", "aria-hidden": "true", dir: "auto" });
    this.field = new TextField((steady) => void this.translate(steady), PAUSE, this.mirror);
    this.text = this.field.text;
    this.title = h("span", {});
    this.output = h("div", { class: "output", id: "output", tabindex: 0, dir: "auto" });
    this.status = h("p", { class: "status soft", role: "status" });
    this.notices = h("div", { class: "notices", role: "status" });
    this.others = h("ol", { class: "others" });
    this.legend = h("p", { class: "soft legend" });
    this.how = h("button", { id: "how", type: "button", class: "primary" });
    this.inside = h("button", { id: "look", type: "button" });
    this.again = h("button", { id: "again", type: "button", hidden: true });
    this.examples = h("section", {});
    this.figure = h("aside", { class: "lead-figure" });
    /** @type {import("../figures/figure_one.js").Drawn | null} */
    this.drawn = null;
    this.living = new LivingText((i) => {
      this.light(i);
      if (i >= 0) this.drawn?.go("softmax", "cross"); // a word is written
    });
    this.lived = ""; // the example that was written word by word
    this.copy = h("button", { id: "copy", type: "button" });
    this.othersHead = h("h2", {});
    this.files = new FileTranslation();
    this.body = this.layout();
    /** @type {Context | null} */
    this.context = null;
    this.requested = ""; // the last request
    this.answer = null;
    /** @type {Piece[]} */
    this.words = [];
    this.lit = -1;
    this.requests = new LatestRequest();
    /** The request that is under way. @type {object | null} */
    this.waiting = null;
    this.listen();
  }

  layout() {
    return h(
      "div",
      { class: "translate" },
      h(
        "div",
        { class: "panes" },
        this.field.pane,
        h(
          "section",
          { class: "pane said" },
          h("div", { class: "pane-head" }, this.title, h("div", {}, this.again, this.copy)),
          this.output,
          this.notices,
          this.status,
        ),
      ),
      h("div", { class: "under" }, this.how, this.inside, this.legend),
      this.examples,
      this.files.body,
      h("section", { class: "alternatives" }, this.othersHead, this.others),
      this.figure,
    );
  }

  listen() {
    this.text.addEventListener("input", () => this.light(-1));
    this.text.addEventListener("scroll", () => (this.mirror.scrollTop = this.text.scrollTop));
    this.copy.addEventListener("click", () => this.copied());
    this.inside.addEventListener("click", () => this.context?.store.set({ screen: "model" }));
    this.how.addEventListener("click", () => this.context?.store.set({ screen: "follow", stage: "" }));
    this.again.addEventListener("click", () => this.live());
    this.output.addEventListener("keydown", (event) => this.walked(event));
    this.output.addEventListener("blur", () => this.light(-1));
    this.output.addEventListener("mouseleave", () => this.light(-1));
    this.files.listen(this.body);
    connection.addEventListener("back", () => (this.requested = ""));
  }

  /** @param {Context} context */
  draw(context) {
    this.context = context;
    const { server, state, t } = context;
    const { does } = server.model(state);
    this.field.draw(context, t(`${does}.text`), does);
    this.output.setAttribute("aria-label", t(`${does}.output`));
    this.copy.textContent = t("copy");
    this.inside.textContent = t("translate.look");
    this.how.textContent = t("how");
    this.how.title = t("how.title");
    this.again.textContent = `↻ ${t("living.again")}`;
    this.examples.replaceChildren(...examples(context));
    const open = (box) => context.store.set({ screen: "model", box: box.id });
    this.drawn = figureOne(context, server.description(state), { slim: true, pick: open });
    this.figure.replaceChildren(this.drawn.node);
    this.legend.textContent = t("translate.legend");
    this.othersHead.textContent = t("translate.others");
    this.files.draw(context);
    this.show();
    void this.translate();
  }

  /**
   * Request a translation of the current text, and cancel the previous request. During steady typing the previous one
   * is waited for, so that something is always shown.
   * @param {boolean} [steady]
   */
  async translate(steady = false) {
    const { server, store, t } = this.context;
    const { state } = store;
    const wanted = JSON.stringify(server.translateRequest(state));
    if (wanted === this.requested || (steady && this.waiting)) return;
    let item = null;
    const turn = (this.waiting = {});
    await this.requests.run(
      async (signal) => {
        this.requested = wanted;
        if (!state.text.trim()) return this.answered(null);
        const waiting = setTimeout(() => this.output.setAttribute("aria-busy", "true"), SLOW);
        try {
          // An example is not being typed, so its words and their sources are shown together.
          if (!this.isExample(state)) item = await server.translate(state, { n_best: BEST }, signal);
        } finally {
          clearTimeout(waiting);
        }
        if (item) this.answered(item);
        if (store.state.text !== state.text) return; // still being typed
        this.answered(await server.translate(state, { n_best: BEST, scores: true, alignment: true }, signal));
      },
      (message) => {
        if (!item) this.answered(null); // the old translation belongs to another text
        this.output.removeAttribute("aria-busy");
        this.requested = "";
        this.status.className = "status problem";
        this.status.textContent = message;
      },
      t,
    );
    if (this.waiting === turn) this.waiting = null;
  }

  /** @param {import("../state/store.js").State} state */
  isExample(state) {
    return Boolean(exampleOf(examplesFor(this.context.server, state), state.text));
  }

  /** Write the output once more, word by word. */
  live() {
    /** @type {HTMLElement[]} */
    const nodes = Array.from(this.output.querySelectorAll(".word, .bare"));
    const number = (node) => (node.dataset.word === undefined ? -1 : Number(node.dataset.word));
    this.living.write(nodes, nodes.map(number));
  }

  /** @param {any} item */
  answered(item) {
    this.answer = item;
    this.words = item ? pieces(item.text, item.alignment ?? [], this.sure(item), item.numbers ?? []) : [];
    this.output.removeAttribute("aria-busy");
    this.show();
    const { state } = this.context.store;
    if (item?.alignment && !item.numbers?.length && this.lived !== state.text && this.isExample(state)) this.live();
    this.lived = state.text;
  }

  /** @param {any} item */
  sure(item) {
    return item.token_scores ? wordProbabilities(item.text, item.tokens, item.token_scores) : [];
  }

  show() {
    const { t, tip, store, server } = this.context;
    const { answer } = this;
    server.shown = answer && { of: this.requested, text: answer.text };
    this.lit = -1;
    this.living.stop();
    this.nameLanguages();
    this.markSource();
    this.notices.replaceChildren(...notices(this.context, answer));
    this.output.replaceChildren(
      ...(answer
        ? this.words.map((piece, i) => this.word(piece, i))
        : [h("span", { class: "soft" }, t(`${server.model(store.state).does}.here`))]),
    );
    for (const button of [this.inside, this.how]) button.toggleAttribute("disabled", !answer);
    this.again.hidden = !answer?.alignment?.length;
    this.copy.toggleAttribute("disabled", !answer);
    this.status.className = "status soft";
    this.status.textContent = answer ? this.summary(answer) : "";
    this.status.title = answer ? t("translate.score.title") : "";
    const others = (answer?.hypotheses ?? []).slice(1);
    this.others.replaceChildren(
      ...others.map((each) =>
        h(
          "li",
          {},
          h("span", { class: "number soft", title: t("translate.score.title") }, fixed(each.score, 2)),
          h("span", { dir: "auto", lang: this.output.lang }, each.text),
          h(
            "button",
            { type: "button", onclick: () => store.set({ ...NEW_TEXT, target: each.text, screen: "model" }) },
            t("translate.look"),
          ),
        ),
      ),
    );
    this.body.classList.toggle("has-others", others.length > 0);
    tip.hide();
  }

  /** Name the languages of both texts: those that were chosen, or those that the server detected. */
  nameLanguages() {
    const { server, store, t } = this.context;
    const { state } = store;
    const { from, to } = server.way(state);
    const { does } = server.model(state);
    const named = new Intl.DisplayNames([state.lang], { type: "language" });
    const found = this.answer ?? {};
    const detected = !from && !found.unexpected_language && found.source_lang;
    const source = from || detected || "";
    const target = to || (detected && found.target_lang) || "";
    this.field.title.textContent = detected
      ? t("translate.detected", { name: named.of(detected) })
      : source
        ? named.of(source)
        : t(`${does}.text`);
    this.title.textContent = target ? named.of(target) : t(`${does}.output`);
    this.text.lang = source;
    this.output.lang = target;
  }

  /** @param {any} answer */
  summary({ score, engine, split, unfinished, repetitive }) {
    const { t } = this.context;
    return [
      t("translate.score", { score: fixed(score, 2) }),
      engine && t("translate.by", { engine }),
      split > 1 && t("translate.split", { split }),
      unfinished && t("translate.unfinished"),
      repetitive && t("translate.repetitive"),
    ]
      .filter(Boolean)
      .join(" · ");
  }

  /** @param {Piece} piece @param {number} i */
  word(piece, i) {
    if (!piece.link) return piece.changed ? h("mark", { class: "changed" }, piece.text) : h("span", { class: "bare" }, piece.text);
    const doubtful = piece.probability !== null && piece.probability < DOUBT;
    return h(
      piece.changed ? "mark" : "span",
      {
        class: `word${doubtful ? " doubtful" : ""}${piece.changed ? " changed" : ""}`,
        dataset: { word: i },
        onmouseenter: (event) => this.pointed(i, event),
        onclick: () => this.pointed(i),
      },
      piece.text,
    );
  }

  /** Mark the numbers of the source that were not kept; not while the text is being changed. */
  markSource() {
    const text = this.text.value.normalize("NFC");
    const { state } = this.context.store;
    const numbers = text === state.text.normalize("NFC") ? (this.answer?.numbers ?? []) : [];
    const ranges = numbers.map((each) => [each.source_start, each.source_end]);
    this.mirror.replaceChildren(
      ...marked(text, ranges).map((part) => (part.inside ? h("mark", { class: "changed" }, part.text) : part.text)),
    );
    this.mirror.scrollTop = this.text.scrollTop;
  }

  /** The user points at a word. @param {number} i @param {MouseEvent} [event] */
  pointed(i, event) {
    this.living.stop();
    this.light(i, event);
  }

  /** Highlight a word and its source. @param {number} i @param {MouseEvent} [event] */
  light(i, event) {
    const { tip } = this.context;
    this.lit = i;
    for (const each of /** @type {NodeListOf<HTMLElement>} */ (this.output.querySelectorAll(".word")))
      each.classList.toggle("lit", Number(each.dataset.word) === i);
    const link = this.words[i]?.link;
    if (!link) {
      this.markSource();
      return tip.hide();
    }
    const [before, of, after] = cut(this.text.value.normalize("NFC"), link.source_start, link.source_end);
    this.mirror.replaceChildren(before, h("mark", {}, of), after);
    this.mirror.scrollTop = this.text.scrollTop;
    if (event) tip.show(this.describeWord(i), event);
    else this.status.textContent = this.describeWord(i);
  }

  /** @param {number} i */
  describeWord(i) {
    const { t } = this.context;
    const { link, probability } = this.words[i];
    const from = `${link?.target} ← ${link?.source} (${percent(link?.strength ?? 0)})`;
    return probability === null ? from : `${from} · ${t("translate.sure", { share: percent(probability) })}`;
  }

  /** @param {KeyboardEvent} event */
  walked(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    this.living.stop();
    event.preventDefault();
    event.stopPropagation();
    const words = this.words.flatMap((piece, i) => (piece.link ? [i] : []));
    const next = words[Math.min(words.length - 1, Math.max(0, words.indexOf(this.lit) + by))];
    if (next !== undefined) this.light(next);
  }

  async copied() {
    const { t } = this.context;
    await navigator.clipboard.writeText(this.answer?.text ?? "");
    this.copy.textContent = t("copied");
    setTimeout(() => (this.copy.textContent = t("copy")), 1500);
  }
}

/**
 * What the user should know about a translation: numbers that changed, and a text in another language.
 * @param {Context} context
 * @param {any} answer
 * @returns {HTMLElement[]}
 */
export function notices({ server, state, store, t }, answer) {
  const numbers = (answer?.numbers ?? []).map((each) =>
    h("li", {}, t(each.target ? "translate.number.changed" : "translate.number.lost", each)),
  );
  const found = numbers.length
    ? [h("div", { class: "notice" }, h("strong", {}, t("translate.numbers")), h("ul", {}, numbers))]
    : [];
  if (!answer?.unexpected_language) return found;
  const named = new Intl.DisplayNames([state.lang || "en"], { type: "language" });
  const anyway = server.model(state).directions.map(({ source, target }) =>
    h(
      "button",
      {
        id: `anyway-${source}-${target}`,
        type: "button",
        onclick: () => store.set({ model: server.way(state).model, from: source, to: target }),
      },
      t("translate.anyway", { name: named.of(source) }),
    ),
  );
  const name = named.of(answer.unexpected_language);
  const words = h("p", {}, t("translate.unexpected", { name }));
  return [...found, h("div", { class: "notice" }, words, h("div", { class: "choices" }, anyway))];
}

/** @type {Translator | null} */
let translator = null;

/** @type {import("../frame.js").Screen} */
export const translate = {
  id: "translate",
  sign: "文",
  alone: true,
  task: "translate",
  named: ({ server, state }) => server.model(state).does,
  keys: { "/": () => translator?.text.focus() },
  render: async (context) => {
    const first = !translator;
    translator ??= new Translator();
    translator.draw(context);
    if (first) requestAnimationFrame(() => translator?.text.focus({ preventScroll: true }));
    return { controls: modelPicker(context), body: translator.body };
  },
};
