// The figures of the walk's steps.

import { hasScale } from "../compute/attention.js";
import { short } from "../compute/number.js";
import { before, exponentials, products, rowsBefore, vectorBefore } from "../compute/substitute.js";
import { entropy, softmax } from "../compute/tensor.js";
import { hideAnswer } from "../parts/exercise.js";
import { scalars } from "./bars.js";
import { stack } from "./svg.js";
import { bars, heat } from "./vectors.js";

/**
 * @typedef {import("../frame.js").Context} Context
 * @typedef {import("../compute/substitute.js").At} At
 * @typedef {import("./svg.js").Part} Part
 */

/** Symbols of the steps in formulas. */
export const SIGNS = {
  embedding: "E·√d",
  position: "PE",
  x: "x",
  normed: "norm",
  q: "q",
  k: "k",
  similarity: "q·k",
  scaled: "÷√dₖ",
  biased: "+ b",
  intervention: "✎",
  masked: "mask",
  weights: "softmax",
  v: "v",
  head: "Σ α·v",
  concat: "concat",
  output: "W_O",
  residual: "+ x",
  norm: "norm",
  cross: "cross",
  "feed-forward": "FFN",
  "final-norm": "norm",
  logits: "logits",
  normaliser: "log Σ",
  probabilities: "p",
};

/** The softmax without the scale. @param {At} at */
function unscaled({ steps, index }) {
  const masked = before(steps, index, "masked")?.values;
  return softmax(
    vectorBefore(steps, index, "similarity").map((value, key) => (masked[key] === null ? -Infinity : value)),
  );
}

/** Entropy of the weights with and without the scale, and its maximum. @param {At} at */
export function doubt(at) {
  const seen = vectorBefore(at.steps, at.index, "masked").filter((score) => score !== null).length;
  return { with: entropy(at.steps[at.index].values), without: entropy(unscaled(at)), most: Math.log2(seen) };
}

/** A step's vector as bars, below the vectors it was computed from. @param {...string} names */
function vectors(...names) {
  return (context, { steps, index }) =>
    [...names.map((name) => before(steps, index, name)), steps[index]]
      .filter((step) => step !== undefined)
      .map(({ name, values }) =>
        bars(context, { values, name: context.t(`walk.${name}`), wide: Boolean(context.state.wide) }),
      );
}

/** One number per key. @param {Context} context @param {At} at @param {object} [given] */
function perKey(context, { steps, index, focus }, given = {}) {
  const { rows, values } = steps[index];
  const pick = (key) => context.store.set({ key });
  return scalars(context, { rows, values, selected: focus, pick, ...given });
}

/** One vector per key. @param {Context} context @param {At} at */
function keyRows(context, { steps, index, focus }) {
  const { rows, values } = steps[index];
  const pick = (key) => context.store.set({ key });
  return [heat(context, { rows, values, selected: focus, wide: Boolean(context.state.wide), pick })];
}

/** Query, key and their element-wise products. @param {Context} context @param {At} at */
function elements(context, { steps, index, focus }) {
  const [q, k] = [vectorBefore(steps, index, "q"), rowsBefore(steps, index, "k")[focus]];
  const token = steps[index].rows[focus];
  return heat(context, {
    rows: ["q", `k  ${token}`, "q ⊙ k"],
    values: [q, k, q.map((value, i) => value * k[i])],
    alike: false,
    wide: Boolean(context.state.wide),
    selected: 2,
    caption: context.t("walk.products", { key: token, sum: short(steps[index].values[focus]) }),
  });
}

/** One dot product per key; the tooltip shows its terms. @param {Context} context @param {At} at */
function compared(context, at) {
  const { steps, index } = at;
  if (context.about.settings.similarity === "additive") return [perKey(context, at)];
  const [q, k] = [vectorBefore(steps, index, "q"), rowsBefore(steps, index, "k")];
  const tips = k.map((row, key) => products(q, row, steps[index].values[key]));
  return [elements(context, at), perKey(context, at, { tips })];
}

/** Scores, exponentials and weights. @param {Context} context @param {At} at */
function softmaxed(context, at) {
  const { t, state, about } = context;
  const scores = vectorBefore(at.steps, at.index, "masked");
  const { powers, shift } = exponentials(scores);
  const compares = hasScale(about.settings) && state.unscaled;
  return [
    perKey(context, at, {
      most: 1,
      caption: t("walk.shares"),
      ghost: compares ? unscaled(at) : undefined,
      loud: true,
      columns: [
        { name: t("walk.score"), values: scores.map(short) },
        { name: shift ? `exp(· − ${short(shift)})` : "exp", values: powers.map(short) },
      ],
    }),
  ];
}

/** Values times their weights, and the sum below. @param {Context} context @param {At} at */
function summed(context, { steps, index, focus }) {
  const shares = vectorBefore(steps, index, "weights");
  const wide = Boolean(context.state.wide);
  return [
    heat(context, {
      rows: before(steps, index, "v")?.rows ?? [],
      values: rowsBefore(steps, index, "v").map((row, key) => row.map((value) => value * shares[key])),
      lead: shares,
      selected: focus,
      wide,
      caption: context.t("walk.weighted"),
      pick: (key) => context.store.set({ key }),
    }),
    bars(context, { values: steps[index].values, name: context.t("walk.sum"), wide }),
  ];
}

/** The heads, one per row. @param {Context} context @param {At} at */
function joined(context, { steps, index }) {
  const { about, state, store, t } = context;
  const { d_v, n_heads } = about.sizes;
  const heads = Array.from({ length: n_heads }, (_, head) => head);
  return [
    heat(context, {
      rows: heads.map((head) => `${t("head.number")} ${head}`),
      values: heads.map((head) => steps[index].values.slice(head * d_v, (head + 1) * d_v)),
      selected: state.head,
      wide: Boolean(state.wide),
      pick: (head) => store.set({ head }),
    }),
  ];
}

/** Two vectors and their sum. @param {Context} context @param {At} at */
function added(context, { steps, index }) {
  const output = before(steps, index, "output", "cross", "feed-forward", "intervention");
  /** @type {number[]} */
  const values = steps[index].values;
  const from = values.map((value, i) => value - output?.values[i]);
  return [
    heat(context, {
      rows: ["x", context.t(`walk.${output?.name}`), "="],
      values: [from, output?.values, values],
      selected: 2,
      wide: Boolean(context.state.wide),
    }),
  ];
}

/** How steps are drawn that are more than a vector. @type {Record<string, (context: Context, at: At) => Part[]>} */
const PANELS = {
  x: vectors("embedding", "position"),
  normed: (context, at) => vectors(before(at.steps, at.index, "residual", "x")?.name ?? "")(context, at),
  q: vectors("x"),
  k: keyRows,
  similarity: compared,
  scaled: (context, at) => [perKey(context, at, { ghost: vectorBefore(at.steps, at.index, "similarity") })],
  biased: (context, at) => [
    perKey(context, at, { ghost: vectorBefore(at.steps, at.index, "scaled", "similarity") }),
  ],
  masked: (context, at) => [perKey(context, at)],
  weights: softmaxed,
  v: keyRows,
  head: summed,
  concat: joined,
  residual: added,
  norm: vectors("residual"),
  "final-norm": vectors("residual"),
  logits: (context, { steps, index }) => [scalars(context, steps[index])],
  normaliser: (context, { steps, index }) => [scalars(context, { rows: ["z"], values: [steps[index].values] })],
  probabilities: (context, { steps, index }) => [scalars(context, { ...steps[index], most: 1, selected: 0 })],
};

/** The figure of a step. @param {Context} context @param {At} at */
export function panel(context, at) {
  const { name, rows } = at.steps[at.index];
  const draw = PANELS[name] ?? (rows.length ? PANELS.masked : vectors());
  const figure = stack(draw(context, at), context.t(`walk.${name}`));
  for (const text of figure.querySelectorAll("text"))
    text.textContent = hideAnswer(context, at, String(text.textContent));
  return figure;
}
