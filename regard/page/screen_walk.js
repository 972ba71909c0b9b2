// The formula, step by step, with the numbers of one token in one head.

import { placeControls, tick } from "./controls.js";
import { h, m } from "./dom.js";
import { parse } from "./latex.js";
import { fixed, short } from "./number.js";
import { substituted } from "./substitute.js";
import { argmax } from "./tensor.js";
import { SIGNS, doubt, panel } from "./walk_panels.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {import("./source.js").WalkStep} WalkStep */

const PACE = 2600;
let playing = 0;
let length = 1; // of the walk that was drawn last, for keys

/** @param {Context} context @param {number} by */
const turn = ({ state, store }, by) =>
  store.set({ panel: Math.min(length - 1, Math.max(0, Math.min(state.panel, length - 1) + by)) });

function stop() {
  clearInterval(playing);
  playing = 0;
}

/** Go on by itself, or stop. @param {Context} context */
function play(context) {
  const { store } = context;
  if (playing) stop();
  else {
    if (store.state.panel >= length - 1) store.set({ panel: 0 });
    playing = setInterval(() => {
      if (store.state.screen !== "walk" || store.state.panel >= length - 1) {
        stop();
        return store.tell();
      }
      turn({ ...context, state: store.state }, 1);
    }, PACE);
  }
  store.tell();
}

/**
 * @param {import("./latex.js").Formula | string} part
 * @param {import("./i18n.js").Say} t
 * @returns {Node | string}
 */
function mathml(part, t) {
  if (typeof part === "string") return part;
  const { name, attributes = {}, children } = part;
  return m(
    name,
    attributes,
    children.map((child) => (name === "mtext" ? t(String(child)) : mathml(child, t))),
  );
}

/**
 * All the steps, as the way so far.
 * @param {Context} context
 * @param {WalkStep[]} steps
 * @param {number} index
 */
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
            onclick: () => store.set({ panel: i }),
          },
          SIGNS[step.name],
        ),
      ),
    ),
  );
}

/**
 * What the scale is for, seen on these very numbers.
 * @param {Context} context
 * @param {import("./substitute.js").At} at
 */
function comparison({ about, state, store, t }, at) {
  if (at.steps[at.index].name !== "weights" || about.settings.similarity !== "scaled-dot") return null;
  const bits = doubt(at);
  const d_k = about.sizes.d_k;
  return h(
    "div",
    { class: "comparison" },
    tick("unscaled", t("walk.unscaled", { d_k }), Boolean(state.unscaled), (on) =>
      store.set({ unscaled: on ? 1 : 0 }),
    ),
    state.unscaled
      ? h(
          "p",
          {},
          t("walk.doubt", {
            with: fixed(bits.with, 2),
            without: fixed(bits.without, 2),
            most: fixed(Math.log2(at.steps[at.index].values.length), 2),
          }),
        )
      : h("p", { class: "soft" }, t("walk.entropy", { bits: fixed(bits.with, 2) })),
  );
}

/** @param {WalkStep} step @param {import("./i18n.js").Say} t */
function table(step, t) {
  const { rows, values } = step;
  const listed = Array.isArray(values) ? values : [values];
  const line = (/** @type {any} */ value) => (Array.isArray(value) ? value.map(short) : [short(value)]);
  return {
    caption: t(`walk.${step.name}`),
    head: ["", ...line(listed[0]).map((_, i) => String(i + 1))],
    rows: listed.map((value, i) => [rows[i] ?? i + 1, ...line(value)]),
  };
}

/** @type {import("./frame.js").Screen} */
export const walk = {
  id: "walk",
  sign: "ƒ",
  keys: { ArrowLeft: (context) => turn(context, -1), ArrowRight: (context) => turn(context, 1), " ": play },
  render: async (context) => {
    const { source, state, store, about, t, queries } = context;
    const steps = await source.walk(state.kind, state.layer, state.head, state.query);
    if (!steps) return { controls: placeControls(context), body: h("p", { class: "empty" }, t("walk.none")) };
    length = steps.length;
    const index = Math.min(Math.max(0, state.panel), length - 1);
    const step = steps[index];
    const weights = /** @type {WalkStep} */ (steps.find((each) => each.name === "weights")).values;
    const focus = state.key < 0 ? argmax(weights) : state.key;
    const at = { steps, index, focus, about, query: state.query };
    const figure = panel(context, at);
    const lines = substituted(at);
    const isWide =
      step.shape.length > 0 &&
      !["similarity", "scaled", "masked", "weights", "logits", "probabilities"].includes(step.name);
    const button = (
      /** @type {string} */ id,
      /** @type {string} */ text,
      /** @type {() => void} */ onclick,
      more = {},
    ) => h("button", { id, type: "button", onclick, ...more }, text);
    return {
      controls: placeControls(context),
      body: h(
        "article",
        { class: "walk" },
        way(context, steps, index),
        h(
          "div",
          { class: "card" },
          h(
            "header",
            {},
            h(
              "h2",
              {},
              h("span", { class: "soft number" }, `${index + 1} / ${length}`),
              " ",
              t(`walk.${step.name}`),
            ),
            h("p", { class: "sentence" }, state.lang === "zh" ? step.chinese : step.english),
          ),
          h(
            "div",
            { class: "formula" },
            mathml(parse(step.latex), t),
            h(
              "div",
              { class: "substituted" },
              lines.map((line) => h("div", {}, line)),
            ),
            ["similarity", "scaled", "masked", "weights"].includes(step.name) &&
              h(
                "p",
                { class: "soft" },
                t("walk.focus", { query: queries[state.query].text, key: step.rows[focus] }),
              ),
          ),
          comparison(context, at),
          h("div", { class: "scroll panel" }, figure),
        ),
        h(
          "div",
          { class: "pace" },
          button("back", `◀ ${t("back")}`, () => turn(context, -1), { disabled: index === 0 }),
          button("play", playing ? `❚❚ ${t("pause")}` : `▶ ${t("play")}`, () => play(context), {
            "aria-pressed": String(playing > 0),
          }),
          button("next", `${t("next")} ▶`, () => turn(context, 1), {
            disabled: index === length - 1,
            class: "primary",
          }),
          isWide &&
            tick("wide", t("walk.wide"), Boolean(state.wide), (on) => store.set({ wide: on ? 1 : 0 })),
        ),
      ),
      figure,
      table: table(step, t),
    };
  },
};
