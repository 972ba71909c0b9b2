// What each step of a walk looks like.

import { stacked } from "./figure.js";
import { short } from "./number.js";
import { before, exponentials, products } from "./substitute.js";
import { entropy, softmax } from "./tensor.js";
import { bars, heat, scalars } from "./vectors.js";

/**
 * @typedef {import("./frame.js").Context} Context
 * @typedef {import("./source.js").WalkStep} WalkStep
 * @typedef {{ steps: WalkStep[], index: number, focus: number }} At
 */

/** The name of a step's numbers in formulas. */
export const SIGNS = /** @type {Record<string, string>} */ ({
  embedding: "E·√d", position: "PE", x: "x", normed: "norm", q: "q", k: "k", similarity: "q·k", scaled: "÷√dₖ", intervention: "✎",
  masked: "mask", weights: "softmax", v: "v", head: "Σ α·v", concat: "concat", output: "W_O", residual: "+ x", norm: "norm",
  cross: "cross", "feed-forward": "FFN", "final-norm": "norm", logits: "logits", normaliser: "log Σ", probabilities: "p",
});

/** What softmax would give without the scale. @param {At} at */
export function unscaled({ steps, index }) {
  const [similar, masked] = [before(steps, index, "similarity")?.values, before(steps, index, "masked")?.values];
  return softmax(similar.map((/** @type {number} */ value, /** @type {number} */ key) => (masked[key] === null ? -Infinity : value)));
}

/** How undecided a step's shares are, with and without the scale. @param {At} at */
export function doubt(at) {
  return { with: entropy(at.steps[at.index].values), without: entropy(unscaled(at)) };
}

/** @param {Context} context @param {At} at @param {string[]} names The steps that are drawn above this one. */
function vectors(context, { steps, index }, names) {
  const wide = Boolean(context.state.wide);
  const shown = [...names.map((name) => before(steps, index, name)), steps[index]].filter(Boolean);
  return /** @type {WalkStep[]} */ (shown).map((step) =>
    bars(context, { values: step.values, name: context.t(`walk.${step.name}`), wide }));
}

/** Bars of one number a key. @param {Context} context @param {At} at @param {object} [given] */
function perKey({ store, ...rest }, { steps, index, focus }, given = {}) {
  const { rows, values } = steps[index];
  return scalars({ store, ...rest }, { rows, values, selected: focus, pick: (key) => store.set({ key }), ...given });
}

/** Rows of one vector a key. @param {Context} context @param {At} at @param {object} [given] */
function keyRows({ store, ...rest }, { steps, index, focus }, given = {}) {
  const { rows, values } = steps[index];
  return heat({ store, ...rest }, { rows, values, selected: focus, wide: Boolean(rest.state.wide), pick: (key) => store.set({ key }), ...given });
}

/** Query, key and their products, element by element. @param {Context} context @param {At} at */
function elements(context, { steps, index, focus }) {
  const q = before(steps, index, "q")?.values;
  const k = before(steps, index, "k")?.values[focus];
  const both = q.map((/** @type {number} */ value, /** @type {number} */ i) => value * k[i]);
  const token = steps[index].rows[focus];
  return heat(context, {
    rows: ["q", `k  ${token}`, "q ⊙ k"], values: [q, k, both], alike: false, wide: Boolean(context.state.wide), selected: 2,
    caption: context.t("walk.products", { key: token, sum: short(steps[index].values[focus]) }),
  });
}

/** One product a key; pointing at one shows how it adds up. @param {Context} context @param {At} at */
function compared(context, at) {
  const { steps, index } = at;
  if (context.about.settings.similarity === "additive") return [perKey(context, at)];
  const [q, k] = ["q", "k"].map((name) => before(steps, index, name)?.values);
  const tips = steps[index].values.map((/** @type {number} */ sum, /** @type {number} */ key) => products(q, k[key], sum));
  return [elements(context, at), perKey(context, at, { tips })];
}

/** Scores, their exponentials and their shares. @param {Context} context @param {At} at */
function softmaxed(context, at) {
  const { t, state, about } = context;
  const scores = before(at.steps, at.index, "masked")?.values;
  const { powers, shift } = exponentials(scores);
  const canCompare = about.settings.similarity === "scaled-dot" && state.unscaled;
  return perKey(context, at, {
    most: 1, caption: t("walk.shares"), ghost: canCompare ? unscaled(at) : undefined, loud: true,
    columns: [
      { name: t("walk.score"), values: scores.map(short) },
      { name: shift ? `exp(· − ${short(shift)})` : "exp", values: powers.map(short) },
    ],
  });
}

/** Values times their shares, and the sum below. @param {Context} context @param {At} at */
function summed(context, { steps, index, focus }) {
  const [weights, v] = [before(steps, index, "weights"), before(steps, index, "v")];
  const shares = /** @type {WalkStep} */ (weights).values;
  const rows = /** @type {WalkStep} */ (v).values.map((/** @type {number[]} */ row, /** @type {number} */ key) => row.map((value) => value * shares[key]));
  return [
    heat(context, { rows: /** @type {WalkStep} */ (v).rows, values: rows, lead: shares, selected: focus, wide: Boolean(context.state.wide), caption: context.t("walk.weighted"), pick: (key) => context.store.set({ key }) }),
    bars(context, { values: steps[index].values, name: context.t("walk.sum"), wide: Boolean(context.state.wide) }),
  ];
}

/** The heads below each other. @param {Context} context @param {At} at */
function joined({ about, state, ...rest }, { steps, index }) {
  const { d_v, n_heads } = about.sizes;
  const { values } = steps[index];
  return heat({ about, state, ...rest }, {
    rows: Array.from({ length: n_heads }, (_, head) => `${rest.t("head.number")} ${head + 1}`), selected: state.head, wide: Boolean(state.wide),
    values: Array.from({ length: n_heads }, (_, head) => values.slice(head * d_v, (head + 1) * d_v)), pick: (head) => rest.store.set({ head }),
  });
}

/** Two vectors and their sum. @param {Context} context @param {At} at */
function added(context, { steps, index }) {
  const output = /** @type {WalkStep} */ (before(steps, index, "output", "cross", "feed-forward", "intervention"));
  const { values } = steps[index];
  const from = values.map((/** @type {number} */ value, /** @type {number} */ i) => value - output.values[i]);
  return heat(context, { rows: ["x", context.t(`walk.${output.name}`), "="], values: [from, output.values, values], selected: 2, wide: Boolean(context.state.wide) });
}

/**
 * The figure of a step.
 * @param {Context} context
 * @param {At} at
 */
export function panel(context, at) {
  const { steps, index } = at;
  const { name, values, rows } = steps[index];
  const told = context.t(`walk.${name}`);
  const parts = () => {
    switch (name) {
      case "x": return vectors(context, at, ["embedding", "position"]);
      case "q": return vectors(context, at, ["x"]);
      case "norm": case "final-norm": return vectors(context, at, ["residual"]);
      case "k": case "v": return [keyRows(context, at)];
      case "similarity": return compared(context, at);
      case "scaled": return [perKey(context, at, { ghost: before(steps, index, "similarity")?.values })];
      case "masked": return [perKey(context, at)];
      case "weights": return [softmaxed(context, at)];
      case "head": return summed(context, at);
      case "concat": return [joined(context, at)];
      case "residual": return [added(context, at)];
      case "logits": return [scalars(context, { rows, values })];
      case "probabilities": return [scalars(context, { rows, values, most: 1, selected: 0 })];
      case "normaliser": return [scalars(context, { rows: ["z"], values: [values] })];
      case "intervention": return [rows.length ? perKey(context, at) : vectors(context, at, [])[0]];
      default: return vectors(context, at, []);
    }
  };
  return stacked(parts(), told);
}
