// Follow one word: from its characters through every layer to the prediction and the search, step by step.

import { inputOf, chaptersOf, stagesOf, stepFrom, stepOf } from "../compute/path.js";
import { fixed, percent } from "../compute/number.js";
import { argmax, at } from "../compute/tensor.js";
import { figureOne } from "../figures/figure_one.js";
import { panel } from "../figures/walk_panels.js";
import { stepper } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { Player } from "../parts/player.js";
import { stream } from "../parts/stream.js";
import { formula, table } from "./walk.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/path.js").Stage} Stage */
/** @typedef {import("../compute/path.js").Followed} Followed */
/** @typedef {{ followed: Followed, stages: Stage[], beam: import("../state/source.js").Beam | null, alignment: import("../state/source.js").Alignment | null }} Path */

const player = new Player("follow", "stage", 1700);
let lastBox = ""; // where the dot was
const WRITERS = ["cross", "decoder"];

/** The word that is followed: the selected token, and the token that it becomes or comes from. @param {Context} context @returns {Promise<Path>} */
async function pathOf(context) {
  const { about, source, state } = context;
  const both = about.inputs && about.outputs;
  const [alignment, beam] = await Promise.all([both ? source.alignment() : null, both && about.engine ? source.beam() : null]);
  /** @type {Followed} */
  let followed = { input: about.inputs ? state.query : -1, step: about.outputs ? state.query : -1 };
  if (both) {
    const isInput = state.kind === "encoder";
    const step = isInput ? stepFrom(about, alignment, state.query, state.step) : Math.min(state.step, about.outputs.tokens.length - 1);
    const chosen = isInput ? state.query : state.kind === "cross" ? state.key : -1;
    const cross = about.kinds.find(({ kind }) => kind === "cross");
    const weights = chosen < 0 ? at(await source.matrix("cross", cross.layers - 1, state.head, "weights"), step).data : [];
    followed = { input: chosen < 0 ? inputOf(about, alignment, weights, step) : chosen, step };
  }
  return { followed, alignment, beam, stages: stagesOf(about, followed, Boolean(beam?.nodes.length)) };
}

/** The change of the state that follows another token. @param {Context} context @param {Path} path @param {string} side @param {number} i */
function follows({ about, state }, { alignment, followed }, side, i) {
  if (!about.inputs || !about.outputs) return { query: i };
  if (side === "inputs") {
    const step = stepFrom(about, alignment, i, followed.step);
    return { kind: "cross", key: i, step, query: -1, node: -1 };
  }
  return i > 0 ? { kind: "cross", key: inputOf(about, alignment, [1], i - 1), step: i - 1, query: -1, node: -1 } : null;
}

/** The current stage. @param {Context} context @param {Stage[]} stages */
function current({ state }, stages) {
  player.names = stages.map(({ id }) => id);
  return stages[player.place(state)];
}

/** The place of a stage, as the panels of the walkthrough expect it. @param {Context} context @param {Stage} stage @param {Path} path */
function placed(context, stage, path) {
  const { about, state, store } = context;
  const kind = about.kinds.find((each) => each.kind === stage.kind);
  const names = (side) => about[side].tokens;
  const set = (changes) => {
    if ("key" in changes) return void store.set(follows(context, path, kind.keys, changes.key) ?? {});
    return void store.set(changes);
  };
  return {
    ...context,
    kind,
    queries: names(kind.queries),
    keys: names(kind.keys),
    store: /** @type {any} */ ({ set, state, setQuietly: () => false }),
    state: { ...state, kind: stage.kind, layer: stage.layer, query: stage.query, key: -1, hand: 0, unscaled: 0 },
  };
}

/** What a stage shows: title, sentence, and content. @param {Context} context @param {Stage} stage @param {Path} path */
async function content(context, stage, path) {
  const { source, state, t, about } = context;
  if (!stage.name) return told(context, stage, path);
  const steps = await source.walk(stage.kind, stage.layer, state.head, stage.query);
  if (!steps) return null;
  const there = placed(context, stage, path);
  const index = stepOf(steps, stage);
  const weights = steps.find((each) => each.name === "weights")?.values;
  const place = { steps, index, focus: argmax(weights), about, query: stage.query };
  const step = steps[index];
  const figure = panel(there, place);
  const deep = { screen: "walk", kind: stage.kind, layer: stage.layer, query: stage.query, key: -1, panel: step.name };
  return {
    title: t(`walk.${step.name}`),
    sentence: state.lang === "zh" ? step.chinese : step.english,
    body: [formula(there, place), h("div", { class: "scroll panel" }, figure)],
    figure,
    deep,
    table: table(place, t),
  };
}

/** The stages that are no step of a walk: characters, tokens, search. @param {Context} context @param {Stage} stage @param {Path} path */
function told({ about, t }, { id, side }, { followed, beam }) {
  const { tokens, text } = about[side];
  const place = side === "inputs" ? followed.input : followed.step;
  const token = tokens[place];
  const word = text.slice(token.start, token.end).trimStart(); // a token may begin with a space
  const [before, after] = [text.slice(0, token.end - word.length), text.slice(token.end)];
  if (id === "characters")
    return {
      title: t("follow.characters"),
      sentence: t("follow.characters.about"),
      body: [
        h("p", { class: "quoted", dir: "auto" }, before, h("mark", {}, word), after),
        h(
          "ol",
          { class: "letters" },
          [...(word || token.text)].map((letter) =>
            h("li", {}, h("span", {}, letter === " " ? "␣" : letter), h("span", { class: "soft number" }, `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`)),
          ),
        ),
      ],
    };
  if (id === "tokens")
    return {
      title: t("follow.tokens"),
      sentence: t("follow.tokens.about", { token: token.text, place, id: token.id, size: about.sizes.vocab_size }),
      body: [
        h(
          "ol",
          { class: "pieces" },
          tokens.map((each, i) =>
            h("li", { class: i === place ? "here" : "" }, h("span", {}, each.text), h("span", { class: "soft number" }, String(each.id))),
          ),
        ),
      ],
    };
  return { title: t("follow.beam"), sentence: t("follow.beam.about", { token: about.wanted[followed.step]?.text ?? "" }), body: [searched(t, beam, followed.step, about)] };
}

const SHOWN = 10; // hypotheses of a step

/** The hypotheses of one step, best first. @param {import("../words/i18n.js").Say} t @param {import("../state/source.js").Beam} beam @param {number} step @param {import("../state/source.js").About} about */
function searched(t, beam, step, about) {
  const nodes = beam.nodes.filter((node) => node.step === step).sort((one, other) => one.rank - other.rank);
  const best = new Set();
  const parents = new Map(beam.nodes.map((node) => [node.id, node.parent]));
  for (let id = beam.winner; id !== null && id !== undefined; id = parents.get(id) ?? null) best.add(id);
  const head = ["candidate", "probability", "beam.total", "beam.fate"];
  return h(
    "table",
    { class: "searched" },
    h("thead", {}, h("tr", {}, head.map((key) => h("th", { class: "soft", scope: "col" }, t(key))))),
    h(
      "tbody",
      {},
      nodes.slice(0, SHOWN).map((node) =>
        h(
          "tr",
          { class: best.has(node.id) && node.token === about.wanted[step]?.id ? "here" : "" },
          h("td", {}, node.text),
          h("td", { class: "number" }, percent(Math.exp(node.log_prob))),
          h("td", { class: "number" }, fixed(node.total, 2)),
          h("td", {}, t(`fate.${node.fate}`)),
        ),
      ),
    ),
  );
}

/** The name of a chapter. @param {import("../words/i18n.js").Say} t @param {string} chapter */
function chapterName(t, chapter) {
  const [part, layer] = chapter.split(".");
  return layer === "end" ? t("follow.chapter.end") : t(`follow.chapter.${part}`, { layer: layer ?? "" });
}

/** The chapters of the path. @param {Context} context @param {Stage[]} stages @param {number} place */
function chapters({ store, t }, stages, place) {
  return h(
    "div",
    { class: "chapters scroll", role: "group", "aria-label": t("follow.place") },
    chaptersOf(stages).map(({ chapter, first }, i, all) => {
      const here = place >= first && place < (all[i + 1]?.first ?? stages.length);
      return h(
        "button",
        { id: `chapter-${i}`, type: "button", class: place >= first && !here ? "done" : "", "aria-current": here && "step", onclick: () => player.go(store, first) },
        chapterName(t, chapter),
      );
    }),
  );
}

/** @param {Context} context @param {Path} path */
function whom({ about, t }, { followed }) {
  const name = (side, i) => about[side].tokens[i]?.text ?? "";
  if (!about.outputs) return t("follow.whom.label", { input: name("inputs", followed.input) });
  if (!about.inputs) return t("follow.whom.one", { input: name("outputs", followed.step) });
  return t("follow.whom", { input: name("inputs", followed.input), output: about.wanted[followed.step]?.text ?? "" });
}

/** One stage as a card. @param {Context} context @param {Stage} stage @param {Path} path @param {Awaited<ReturnType<typeof content>>} shown */
function card({ about, store, t }, stage, path, shown) {
  const place = path.stages.indexOf(stage);
  const count = h("span", { class: "soft number" }, t("follow.stage", { place: place + 1, of: path.stages.length }));
  if (!shown) return h("div", { class: "card" }, h("p", { class: "soft" }, t("follow.none")));
  const begins = about.inputs && stage.id === path.stages.find(({ chapter }) => chapter === "output")?.id;
  const wanted = about.wanted[path.followed.step]?.text ?? "";
  const before = about.outputs?.tokens[path.followed.step]?.text ?? "";
  return h(
    "div",
    { class: "card" },
    h(
      "header",
      {},
      h("h2", {}, count, " ", shown.title),
      begins && h("p", { class: "sentence" }, t("follow.output.about", { output: wanted, before })),
      h("p", { class: "sentence" }, shown.sentence),
    ),
    shown.body,
    shown.deep && h("div", { class: "ways" }, h("button", { id: "deeper", type: "button", onclick: () => store.set(shown.deep) }, t("follow.inside"))),
  );
}

/** @type {import("../frame.js").Screen} */
export const follow = {
  id: "follow",
  sign: "↠",
  keys: player.keys,
  strip: async (context) => {
    const path = await pathOf(context);
    const { about, source, state } = context;
    const stage = current(context, path.stages);
    const both = about.inputs && about.outputs;
    const last = about.kinds.at(-1);
    const kind = about.kinds.find((each) => each.kind === stage.kind) ?? (both && stage.side === "inputs" ? about.kinds[0] : last);
    const row = stage.side === "inputs" || !both ? (both || about.inputs ? path.followed.input : path.followed.step) : path.followed.step;
    const written = Boolean(both && WRITERS.includes(kind.kind));
    const matrix = await source.matrix(kind.kind, stage.layer ?? kind.layers - 1, state.head, "weights");
    return {
      ...{ kind, query: written ? row + 1 : row, row: at(matrix, Math.min(row, matrix.shape[0] - 1)).data, written },
      pick: (side, i) => follows(context, path, side, i),
    };
  },
  render: async (context) => {
    const { about, store, t } = context;
    const path = await pathOf(context);
    const stage = current(context, path.stages);
    const place = path.stages.indexOf(stage);
    const layers = { encoder: -1, decoder: -1, ...(stage.kind ? { [stage.box.includes("encoder") ? "encoder" : "decoder"]: stage.layer } : {}) };
    const [shown, vectors] = await Promise.all([content(context, stage, path), stream(context, path, place, (i) => player.go(store, i))]);
    const drawn = figureOne(context, about, { slim: true, selected: stage.box, layers, pick: (box) => goTo(context, path, box.id) });
    drawn.go(stage.box, lastBox || stage.box);
    lastBox = stage.box;
    const slider = h("input", {
      ...{ id: "stage", type: "range", min: 0, max: player.last, value: place, "aria-label": t("follow.place") },
      "aria-valuetext": shown ? `${chapterName(t, stage.chapter)}: ${shown.title}` : "",
      onchange: () => player.go(store, Number(slider.value)),
      oninput: () => (number.textContent = t("follow.stage", { place: Number(slider.value) + 1, of: path.stages.length })),
    });
    const number = h("output", { class: "number" }, t("follow.stage", { place: place + 1, of: path.stages.length }));
    return {
      controls: [
        h("p", { class: "whom" }, h("strong", {}, whom(context, path)), " ", h("span", { class: "soft" }, t("follow.choose"))),
        stepper(t("head.number"), "head", context.state.head, about.sizes.n_heads, (head) => store.set({ head })),
      ],
      body: h(
        "article",
        { class: "follow" },
        h("div", { class: "pace" }, player.buttons(context), h("label", { class: "slider" }, slider, number)),
        chapters(context, path.stages, place),
        h("div", { class: "two" }, h("div", { class: "model-figure" }, drawn.node, vectors), card(context, stage, path, shown)),
      ),
      figure: shown?.figure ?? drawn.node,
      table: shown?.table,
      heard: shown ? `${chapterName(t, stage.chapter)}. ${shown.title}. ${shown.sentence}` : t("follow.none"),
    };
  },
};

/** To the next stage of a box after the current one, or else its first. @param {Context} context @param {Path} path @param {string} box */
function goTo({ state, store }, { stages }, box) {
  const from = player.place(state);
  const of = stages.flatMap((each, i) => (each.box === box ? [i] : []));
  const next = of.find((i) => i > from) ?? of[0];
  if (next !== undefined) void player.go(store, next);
}
