// Writes the formulas of a walk with its actual numbers.

import { bracketed, isNever, short } from "./number.js";

/** @typedef {import("../state/source.js").WalkStep} WalkStep */

const TERMS = 3;

/**
 * The last step with one of some names before another step.
 * @param {WalkStep[]} steps
 * @param {number} index
 * @param {...string} names
 * @returns {WalkStep | undefined}
 */
export function before(steps, index, ...names) {
  return steps
    .slice(0, index)
    .reverse()
    .find((step) => names.includes(step.name));
}

/**
 * The values of that step: a vector, or one number per key.
 * @param {WalkStep[]} steps
 * @param {number} index
 * @param {...string} names
 * @returns {number[]}
 */
export const vectorBefore = (steps, index, ...names) => before(steps, index, ...names)?.values ?? [];

/**
 * The values of a step that has one vector per key.
 * @param {WalkStep[]} steps
 * @param {number} index
 * @param {string} name
 * @returns {number[][]}
 */
export const rowsBefore = (steps, index, name) => before(steps, index, name)?.values ?? [];

/** a₁·b₁ + a₂·b₂ + … = sum @param {number[]} a @param {number[]} b @param {number} sum */
export function products(a, b, sum) {
  const terms = a
    .slice(0, TERMS)
    .map((value, i) => `${i ? bracketed(value) : short(value)} · ${bracketed(b[i])}`);
  return `${terms.join(" + ")}${a.length > TERMS ? " + …" : ""} = ${short(sum)}`;
}

/** A square root, without decimals if it is an integer. @param {number} value */
const root = (value) => String(Number(Math.sqrt(value).toFixed(3)));

/** @param {number[]} values @returns {{ mean: number, variance: number }} */
export function moments(values) {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { mean, variance: values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length };
}

/**
 * Exponentials of scores and their sum; shifted by the largest score if they would be too long to read.
 * @param {(number | null)[]} scores
 */
export function exponentials(scores) {
  const finite = scores.filter((score) => !isNever(score));
  const most = Math.max(...finite);
  const shift = Math.abs(most) > 8 ? most : 0;
  const powers = scores.map((score) => (score === null ? 0 : Math.exp(score - shift)));
  return { shift, powers, sum: powers.reduce((a, b) => a + b, 0) };
}

/**
 * @typedef {object} At A place in a walk.
 * @property {WalkStep[]} steps
 * @property {number} index
 * @property {number} focus The key whose numbers are shown.
 * @property {import("../state/source.js").About} about
 * @property {number} query
 */

/**
 * The token's vector in the residual stream before a step: what a residual connection adds to, and what a norm reads
 * in a pre-norm model.
 * @param {At} at
 * @returns {WalkStep | undefined}
 */
export const streamBefore = ({ steps, index, about }) =>
  before(steps, index, about.settings.norm_position === "post" ? "norm" : "residual", "x");

/** What a block or the output layer reads: the stream, normalised in a pre-norm model. @param {At} at */
export const readBefore = (at) =>
  at.about.settings.norm_position === "post" ? streamBefore(at) : before(at.steps, at.index, "final-norm", "normed");

/** What a norm normalises. @param {At} at */
export const unnormed = (at) =>
  at.steps[at.index].name === "norm" ? before(at.steps, at.index, "residual") : streamBefore(at);

/** Whether a similarity is a dot product of queries and keys. @param {WalkStep} step */
export const isDotProduct = (step) => step.formula === "q · k";

/** Whether the walk has a scale, and nothing else between similarity and mask. @param {At} at */
export const isScaledOnly = ({ steps }) => {
  const names = steps.map((step) => step.name);
  return names[names.indexOf("masked") - 1] === "scaled";
};

const BLOCKS = ["output", "cross", "feed-forward", "intervention"];
const SCORES = ["biased", "scaled", "similarity"];

/** The steps that a step is computed from. @type {Record<string, (at: At) => (WalkStep | undefined)[]>} */
const FROM = {
  x: (at) => named(at, "embedding", "position"),
  normed: (at) => [unnormed(at)],
  q: (at) => [readBefore(at)],
  k: (at) => [before(at.steps, at.index, "tokens", "memory")],
  v: (at) => [before(at.steps, at.index, "tokens", "memory")],
  similarity: (at) => named(at, "q", "k", "bias"),
  scaled: (at) => named(at, "similarity"),
  biased: (at) => [before(at.steps, at.index, "scaled", "similarity"), ...named(at, "bias")],
  masked: ({ steps, index }) => [before(steps, index, "intervention", ...SCORES)],
  weights: (at) => named(at, "masked"),
  head: (at) => [weightsBefore(at), ...named(at, "v")],
  concat: ({ steps, index }) => [before(steps, index, "intervention", "head")],
  output: (at) => named(at, "concat"),
  residual: (at) => [streamBefore(at), before(at.steps, at.index, ...BLOCKS)],
  norm: (at) => [unnormed(at)],
  cross: (at) => [readBefore(at), ...named(at, "memory")],
  "feed-forward": (at) => [readBefore(at)],
  "final-norm": (at) => [unnormed(at)],
  "label-head": (at) => [readBefore(at)],
  logits: (at) => [before(at.steps, at.index, "label-head") ?? readBefore(at)],
  normaliser: (at) => [before(at.steps, at.index, "label-head") ?? readBefore(at), ...named(at, "logits")],
  probabilities: (at) => named(at, "logits", "normaliser"),
};

/** The weights that were used; an intervention may have replaced those of the softmax. @param {At} at */
export const weightsBefore = ({ steps, index }) => before(steps, index, "intervention", "weights");

/** @param {At} at @param {...string} names */
const named = ({ steps, index }, ...names) => names.map((name) => before(steps, index, name));

/**
 * The steps that a panel shows: those that the step is computed from, then the step itself.
 * @param {At} at
 * @returns {WalkStep[]}
 */
export function panelSteps(at) {
  const step = at.steps[at.index];
  return [...(FROM[step.name]?.(at) ?? []), step].filter((each) => each !== undefined);
}

/**
 * The numbers of a panel as lines of text: the name of the step, of the row, and the numbers as they are written.
 * @param {At} at
 * @returns {{ name: string, row: string, numbers: string[] }[]}
 */
export function panelLines(at) {
  return panelSteps(at).flatMap(({ name, rows, values }) => {
    const listed = rows.length ? values : [values];
    return listed.map((value, i) => ({
      name,
      row: rows[i] ?? "",
      numbers: (Array.isArray(value) ? value : [value]).map(short),
    }));
  });
}

/** @param {At} at @param {...string} names */
const last = ({ steps, index }, ...names) => vectorBefore(steps, index, ...names);

/** @param {At} at @param {any} values */
function normed(at, values) {
  const from = unnormed(at)?.values ?? [];
  const { mean, variance } = moments(from);
  if (!["layer", "rms"].includes(at.about.settings.norm)) return [];
  if (at.about.settings.norm === "rms") return [`√mean(x²) = ${short(Math.sqrt(variance + mean ** 2))}`];
  const plain = (from[0] - mean) / Math.sqrt(variance);
  return [
    `μ = ${short(mean)},  σ² = ${short(variance)}`,
    `(${short(from[0])} − ${bracketed(mean)}) / √${short(variance)} = ${short(plain)}  →  ${short(values[0])}`,
  ];
}

/** @type {Record<string, (at: At, values: any) => string[]>} */
const LINES = {
  embedding: ({ about, steps, index }, values) => {
    const { d_model } = about.sizes;
    if (!steps[index].formula.includes("√")) return [`d_model = ${d_model}`];
    const before = short(values[0] / Math.sqrt(d_model));
    return [`√${d_model} = ${root(d_model)}`, `${before} · ${root(d_model)} = ${short(values[0])}`];
  },
  position: ({ about, query }, values) =>
    about.settings.positions === "sinusoidal"
      ? [`sin(${query} / 10000⁰) = ${short(values[0])}`, `cos(${query} / 10000⁰) = ${short(values[1])}`]
      : [],
  x: (at, values) => {
    const [embedding, position] = [last(at, "embedding"), last(at, "position")];
    if (!embedding.length || !position.length) return [];
    const sum = `${short(embedding[0])} + ${bracketed(position[0])} = ${short(embedding[0] + position[0])}`;
    return [at.steps[at.index].formula.includes("Norm") ? `${sum}  →  ${short(values[0])}` : sum];
  },
  q: ({ about: { sizes } }) => [`${sizes.d_model} → d_k = ${sizes.d_k}`],
  k: ({ about: { sizes } }) => [`${sizes.d_model} → d_k = ${sizes.d_k}`],
  similarity: (at, values) => {
    if (!isDotProduct(at.steps[at.index])) return [`= ${short(values[at.focus])}`];
    return [products(last(at, "q"), rowsBefore(at.steps, at.index, "k")[at.focus], values[at.focus])];
  },
  scaled: (at, values) => {
    const { d_k } = at.about.sizes;
    const product = short(last(at, "similarity")[at.focus]);
    return [`${product} / √${d_k} = ${product} / ${root(d_k)} = ${short(values[at.focus])}`];
  },
  biased: (at, values) => {
    const [score, bias] = [last(at, "scaled", "similarity"), last(at, "bias")].map((each) => each[at.focus]);
    return [`${short(score)} + ${bracketed(bias)} = ${short(values[at.focus])}`];
  },
  masked: ({ focus }, values) => [short(values[focus])],
  weights: (at, values) => {
    const scores = last(at, "masked");
    const { shift, powers, sum } = exponentials(scores);
    const less = shift ? ` − ${bracketed(shift)}` : "";
    return [
      `exp(${short(scores[at.focus])}${less}) / Σ exp(score${less})`,
      `= ${short(powers[at.focus])} / ${short(sum)} = ${short(values[at.focus])}`,
    ];
  },
  v: ({ about: { sizes } }) => [`${sizes.d_model} → d_v = ${sizes.d_v}`],
  head: (at, values) => {
    const [weights, rows] = [weightsBefore(at)?.values ?? [], rowsBefore(at.steps, at.index, "v")];
    const order = weights.map((_, key) => key).sort((a, b) => weights[b] - weights[a]);
    const [shares, firsts] = [order.map((key) => weights[key]), order.map((key) => rows[key][0])];
    return [products(shares, firsts, values[0])];
  },
  concat: ({ about: { sizes } }) => [`${sizes.n_heads} · ${sizes.d_v} = ${sizes.n_heads * sizes.d_v}`],
  output: ({ about: { sizes } }) => [`${sizes.n_heads * sizes.d_v} → ${sizes.d_model}`],
  residual: (at, values) => {
    const [from, added] = panelSteps(at).map((step) => step.values[0]);
    return [`${short(from)} + ${bracketed(added)} = ${short(values[0])}`];
  },
  norm: normed,
  normed,
  "final-norm": normed,
  "feed-forward": ({ about: { sizes } }) => [`${sizes.d_model} → ${sizes.d_ff} → ${sizes.d_model}`],
  normaliser: (_, values) => [`z = ${short(values)}`],
  probabilities: (at, values) => {
    const z = before(at.steps, at.index, "normaliser")?.values;
    if (z === undefined) return [`1 / (1 + exp(−${bracketed(last(at, "logits")[0])})) = ${short(values[0])}`];
    return [`exp(${short(last(at, "logits")[0])} − ${bracketed(z)}) = ${short(values[0])}`];
  },
};

/** The lines of one step; none if the formula has no numbers to show. @param {At} at @returns {string[]} */
export function formulaLines(at) {
  const { name, values } = at.steps[at.index];
  return LINES[name]?.(at, values) ?? [];
}
