// The figures of the walk's steps.

import { short } from "../compute/number.js";
import {
  before,
  exponentials,
  isDotProduct,
  isScaledOnly,
  panelSteps,
  products,
  rowsBefore,
  vectorBefore,
  weightsBefore,
} from "../compute/substitute.js";
import { entropy, softmax } from "../compute/tensor.js";
import { hideAnswer } from "../parts/exercise.js";
import { scalars } from "./bars.js";
import { stack } from "./svg.js";
import { bars, heat } from "./vectors.js";

/**
 * @typedef {import("../frame.js").Context} Context
 * @typedef {import("../compute/substitute.js").At} At
 * @typedef {import("../state/source.js").WalkStep} WalkStep
 * @typedef {import("./svg.js").Part} Part
 */

/** Symbols of the steps in formulas. */
export const SIGNS = {
  embedding: "E·√d",
  position: "PE",
  x: "x",
  normed: "norm",
  q: "q",
  tokens: "xⱼ",
  memory: "mem",
  k: "k",
  similarity: "q·k",
  scaled: "÷√dₖ",
  bias: "b",
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
  "label-head": "head",
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

/** One step: a vector as bars, several vectors as rows. @param {Context} context @param {WalkStep} step */
function drawnStep(context, { name, rows, values }) {
  const wide = Boolean(context.state.wide);
  const title = context.t(`walk.${name}`);
  if (Array.isArray(values[0])) return heat(context, { rows, values, caption: title, wide });
  return bars(context, { values, name: title, wide });
}

/** A step's vectors below those that it was computed from. @param {Context} context @param {At} at */
const vectors = (context, at) => panelSteps(at).map((step) => drawnStep(context, step));

/** One number per key. @param {Context} context @param {At} at @param {object} [given] */
function perKey(context, { steps, index, focus }, given = {}) {
  const { rows, values } = steps[index];
  const pick = (key) => context.store.set({ key });
  return scalars(context, { rows, values, selected: focus, pick, ...given });
}

/** One vector per key, below the vectors that it was computed from. @param {Context} context @param {At} at */
function keyRows(context, at) {
  const pick = (key) => context.store.set({ key });
  return panelSteps(at).map(({ name, rows, values }) =>
    heat(context, {
      rows,
      values,
      caption: context.t(`walk.${name}`),
      selected: at.focus,
      wide: Boolean(context.state.wide),
      pick,
    }),
  );
}

/** Query, key and their element-wise products. @param {Context} context @param {At} at */
function elements(context, { steps, index, focus }) {
  const [q, k] = [vectorBefore(steps, index, "q"), rowsBefore(steps, index, "k")[focus]];
  const token = steps[index].rows[focus];
  const multiplied = isDotProduct(steps[index]);
  const sum = short(steps[index].values[focus]);
  return heat(context, {
    rows: ["q", `k  ${token}`, ...(multiplied ? ["q ⊙ k"] : [])],
    values: [q, k, ...(multiplied ? [q.map((value, i) => value * k[i])] : [])],
    alike: false,
    wide: Boolean(context.state.wide),
    selected: multiplied ? 2 : -1,
    caption: multiplied ? context.t("walk.products", { key: token, sum }) : "",
  });
}

/** One dot product per key; the tooltip shows its terms. @param {Context} context @param {At} at */
function compared(context, at) {
  const { steps, index } = at;
  if (!isDotProduct(steps[index])) return [elements(context, at), perKey(context, at)];
  const [q, k] = [vectorBefore(steps, index, "q"), rowsBefore(steps, index, "k")];
  const tips = k.map((row, key) => products(q, row, steps[index].values[key]));
  return [elements(context, at), perKey(context, at, { tips })];
}

/** Scores, exponentials and weights. @param {Context} context @param {At} at */
function softmaxed(context, at) {
  const { t, state } = context;
  const scores = vectorBefore(at.steps, at.index, "masked");
  const { powers, shift } = exponentials(scores);
  const compares = isScaledOnly(at) && state.unscaled;
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
function summed(context, at) {
  const { steps, index, focus } = at;
  const shares = weightsBefore(at)?.values ?? [];
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
function added(context, at) {
  const [from, output, sum] = panelSteps(at);
  return [
    heat(context, {
      rows: ["x", context.t(`walk.${output.name}`), "="],
      values: [from.values, output.values, sum.values],
      selected: 2,
      wide: Boolean(context.state.wide),
    }),
  ];
}

/** How steps are drawn that are more than a vector. @type {Record<string, (context: Context, at: At) => Part[]>} */
const PANELS = {
  tokens: keyRows,
  memory: vectors,
  k: keyRows,
  similarity: compared,
  scaled: (context, at) => [perKey(context, at, withColumns(at))],
  bias: (context, at) => [perKey(context, at)],
  biased: (context, at) => [perKey(context, at, withColumns(at))],
  masked: (context, at) => [perKey(context, at, withColumns(at))],
  weights: softmaxed,
  v: keyRows,
  head: summed,
  concat: joined,
  residual: added,
  logits: (context, at) => [...read(context, at), scalars(context, at.steps[at.index])],
  normaliser: (context, at) => [
    ...read(context, at),
    scalars(context, { rows: ["z"], values: [at.steps[at.index].values] }),
  ],
  probabilities: (context, at) => [
    scalars(context, { ...at.steps[at.index], most: 1, selected: 0, ...withColumns(at) }),
  ],
};

/** The vector that the output layer reads. @param {Context} context @param {At} at */
const read = (context, at) =>
  panelSteps(at)
    .filter(({ rows, values }) => !rows.length && Array.isArray(values))
    .map((step) => drawnStep(context, step));

/** The numbers that one number per row was computed from, as columns. @param {At} at */
function withColumns(at) {
  const { rows } = at.steps[at.index];
  const from = panelSteps(at).slice(0, -1);
  const number = (values, row) => short(Array.isArray(values) ? values[row] : values);
  return { columns: from.map(({ name, values }) => ({ name: SIGNS[name], values: rows.map((_, i) => number(values, i)) })) };
}

/** The figure of a step. @param {Context} context @param {At} at */
export function panel(context, at) {
  const { name, rows } = at.steps[at.index];
  const draw = PANELS[name] ?? (rows.length ? PANELS.bias : vectors);
  const figure = stack(draw(context, at), context.t(`walk.${name}`));
  for (const text of figure.querySelectorAll("text"))
    text.textContent = hideAnswer(context, at, String(text.textContent));
  return figure;
}
