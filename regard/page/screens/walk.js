// The walkthrough: the formula step by step, with the numbers of one token in one head.

import { parse } from "../compute/latex.js";
import { fixed } from "../compute/number.js";
import { formulaLines, isScaledOnly, panelLines } from "../compute/substitute.js";
import { argmax } from "../compute/tensor.js";
import { doubt, panel, SIGNS } from "../figures/walk_panels.js";
import { placeControls, checkbox } from "../parts/controls.js";
import { h, m } from "../parts/dom.js";
import { exercise, hideAnswer, hideResult } from "../parts/exercise.js";
import { Player } from "../parts/player.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/source.js").WalkStep} WalkStep */

const player = new Player("walk", "panel", 2600);
const OF_KEYS = ["similarity", "scaled", "bias", "biased", "masked", "weights"]; // one number per key
const NARROW = ["scaled", "bias", "biased", "masked", "weights", "probabilities"]; // no dimensions are hidden

/**
 * @param {import("../compute/latex.js").Formula | string} part
 * @param {import("../words/i18n.js").Say} t
 * @returns {Node | string}
 */
function mathml(part, t) {
  if (typeof part === "string") return part;
  const { name, attributes = {}, children } = part;
  return m(name, attributes, children.map((child) => (name === "mtext" ? t(String(child)) : mathml(child, t))));
}

/** The list of steps. @param {Context} context @param {WalkStep[]} steps @param {number} index */
function way({ store, t }, steps, index) {
  return h(
    "ol",
    { class: "way scroll", "aria-label": t("walk") },
    steps.map((step, i) =>
      h(
        "li",
        { class: i < index ? "done" : "" },
        h(
          "button",
          {
            id: `way-${i}`,
            type: "button",
            "aria-current": i === index && "step",
            title: t(`walk.${step.name}`),
            onclick: () => player.go(store, i),
          },
          SIGNS[step.name],
        ),
      ),
    ),
  );
}

/**
 * The entropy with and without the scale.
 * @param {Context} context
 * @param {import("../compute/substitute.js").At} at
 */
function comparison({ about, state, store, t }, at) {
  if (at.steps[at.index].name !== "weights" || !isScaledOnly(at)) return null;
  const bits = doubt(at);
  const d_k = about.sizes.d_k;
  return h(
    "div",
    { class: "comparison" },
    checkbox("unscaled", t("walk.unscaled", { d_k }), Boolean(state.unscaled), (on) =>
      store.set({ unscaled: on ? 1 : 0 }),
    ),
    state.unscaled
      ? h(
          "p",
          {},
          t("walk.doubt", {
            with: fixed(bits.with, 2),
            without: fixed(bits.without, 2),
            most: fixed(bits.most, 2),
          }),
        )
      : h("p", { class: "soft" }, t("walk.entropy", { bits: fixed(bits.with, 2) })),
  );
}

/**
 * All numbers of a panel: those that the step is computed from, then its own.
 * @param {import("../compute/substitute.js").At} at
 * @param {import("../words/i18n.js").Say} t
 */
export function table(at, t) {
  const lines = panelLines(at);
  const width = Math.max(...lines.map(({ numbers }) => numbers.length));
  const wide = (numbers) => Array.from({ length: width }, (_, i) => numbers[i] ?? "");
  return {
    caption: t(`walk.${at.steps[at.index].name}`),
    head: ["", "", ...wide([]).map((_, i) => String(i))],
    rows: lines.map(({ name, row, numbers }) => [t(`walk.${name}`), row, ...wide(numbers)]),
  };
}

/**
 * The step's formula, and the same with numbers.
 * @param {Context} context
 * @param {import("../compute/substitute.js").At} at
 */
export function formula(context, at) {
  const { t, queries } = context;
  const { name, latex, rows } = at.steps[at.index];
  const whose = { query: queries[at.query].text, key: rows[at.focus] };
  const lines = hideResult(context, at, formulaLines(at));
  return h(
    "div",
    { class: "formula" },
    mathml(parse(latex), t),
    h("div", { class: "substituted" }, lines.map((line) => h("div", {}, line))),
    OF_KEYS.includes(name) && h("p", { class: "soft" }, t("walk.focus", whose)),
  );
}

/**
 * One step: sentence, formula, exercise and figure.
 * @param {Context} context
 * @param {import("../compute/substitute.js").At} at
 * @param {SVGElement} figure
 */
function card(context, at, figure) {
  const { state, t } = context;
  const step = at.steps[at.index];
  const count = h("span", { class: "soft number" }, `${at.index + 1} / ${at.steps.length}`);
  const sentence = hideAnswer(context, at, state.lang === "zh" ? step.chinese : step.english);
  return h(
    "div",
    { class: "card" },
    h("header", {}, h("h2", {}, count, " ", t(`walk.${step.name}`)), h("p", { class: "sentence" }, sentence)),
    formula(context, at),
    exercise(context, at),
    comparison(context, at),
    h("div", { class: "scroll panel" }, figure),
  );
}

/**
 * Unique names of the steps; the second `norm` is `norm-2`. So the same step stays current in another layer or head.
 * @param {WalkStep[]} steps
 * @returns {string[]}
 */
function named(steps) {
  return steps.map(({ name }, i) => {
    const before = steps.slice(0, i).filter((each) => each.name === name).length;
    return before ? `${name}-${before + 1}` : name;
  });
}

/** @type {import("../frame.js").Screen} */
export const walk = {
  id: "walk",
  sign: "ƒ",
  keys: player.keys,
  moves: (context, by) => player.moves(context, by),
  render: async (context) => {
    const { source, state, store, about, t } = context;
    const steps = await source.walk(state.kind, state.layer, state.head, state.query);
    if (!steps) return { controls: placeControls(context), body: h("p", { class: "empty" }, t("walk.none")) };
    player.names = named(steps);
    const index = player.place(state);
    const weights = steps.find((each) => each.name === "weights")?.values;
    const focus = state.key < 0 ? argmax(weights) : state.key;
    const at = { steps, index, focus, about, query: state.query };
    const figure = panel(context, at);
    const widen = (on) => store.set({ wide: on ? 1 : 0 });
    const wide =
      !NARROW.includes(steps[index].name) && checkbox("wide", t("walk.wide"), Boolean(state.wide), widen);
    return {
      controls: placeControls(context),
      body: h(
        "article",
        { class: "walk" },
        way(context, steps, index),
        h("div", { class: "pace" }, player.buttons(context), wide),
        card(context, at, figure),
      ),
      figure,
      heard: `${t(`walk.${steps[index].name}`)}. ${state.lang === "zh" ? steps[index].chinese : steps[index].english}`,
      table: table(at, t),
    };
  },
};
