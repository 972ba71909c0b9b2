// The formulas of a walk with its own numbers in them, as one would write them on paper.

import { bracketed, short } from "./number.js";

/** @typedef {import("./source.js").WalkStep} WalkStep */

const TERMS = 3;

/**
 * The last step of a name before another.
 * @param {WalkStep[]} steps
 * @param {number} index
 * @param {...string} names
 * @returns {WalkStep | undefined}
 */
export function before(steps, index, ...names) {
  return steps.slice(0, index).reverse().find((step) => names.includes(step.name));
}

/**
 * a₁·b₁ + a₂·b₂ + … = sum
 * @param {number[]} a
 * @param {number[]} b
 * @param {number} sum
 */
export function products(a, b, sum) {
  const terms = a.slice(0, TERMS).map((value, i) => `${i ? bracketed(value) : short(value)} · ${bracketed(b[i])}`);
  return `${terms.join(" + ")}${a.length > TERMS ? " + …" : ""} = ${short(sum)}`;
}

/** A square root, whole where it is. @param {number} value */
const root = (value) => String(Number(Math.sqrt(value).toFixed(3)));

/**
 * @param {number[]} values
 * @returns {{ mean: number, variance: number }}
 */
export function moments(values) {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { mean, variance: values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length };
}

/**
 * The exponentials of scores and their sum; below the largest where they would be too large to read.
 * @param {(number | null)[]} scores
 */
export function exponentials(scores) {
  const finite = /** @type {number[]} */ (scores.filter((score) => score !== null && score > -1e29));
  const most = Math.max(...finite);
  const shift = Math.abs(most) > 8 ? most : 0;
  const powers = scores.map((score) => (score === null ? 0 : Math.exp(score - shift)));
  return { shift, powers, sum: powers.reduce((a, b) => a + b, 0) };
}

/**
 * The lines of one step.
 * @param {WalkStep[]} steps
 * @param {number} index
 * @param {{ focus: number, about: import("./source.js").About, query: number }} where
 * @returns {string[]}
 */
export function substituted(steps, index, { focus, about, query }) {
  const { name, values, formula } = steps[index];
  const { d_model, d_k, d_v, d_ff, n_heads, vocab_size } = about.sizes;
  const last = (/** @type {string[]} */ ...names) => before(steps, index, ...names)?.values;
  switch (name) {
    case "embedding": {
      if (!formula.includes("√")) return [`${d_model} numbers`];
      return [`√${d_model} = ${root(d_model)}`, `${short(values[0] / Math.sqrt(d_model))} · ${root(d_model)} = ${short(values[0])}`];
    }
    case "position":
      return about.settings.positions === "sinusoidal" ? [`sin(${query} / 10000⁰) = ${short(values[0])}`, `cos(${query} / 10000⁰) = ${short(values[1])}`] : [];
    case "x": {
      const [embedding, position] = [last("embedding"), last("position")];
      return embedding && position ? [`${short(embedding[0])} + ${bracketed(position[0])} = ${short(values[0])}`] : [];
    }
    case "q": case "k": return [`${d_model} → d_k = ${d_k}`];
    case "v": return [`${d_model} → d_v = ${d_v}`];
    case "similarity":
      return about.settings.similarity === "additive" ? [`= ${short(values[focus])}`] : [products(last("q"), last("k")[focus], values[focus])];
    case "scaled": {
      const product = short(last("similarity")[focus]);
      return [`${product} / √${d_k} = ${product} / ${root(d_k)} = ${short(values[focus])}`];
    }
    case "masked": return [`${short(values[focus])}`];
    case "weights": {
      const scores = last("masked");
      const { shift, powers, sum } = exponentials(scores);
      const less = shift ? ` − ${bracketed(shift)}` : "";
      return [`exp(${short(scores[focus])}${less}) / Σ exp(score${less})`, `= ${short(powers[focus])} / ${short(sum)} = ${short(values[focus])}`];
    }
    case "head": {
      const [weights, rows] = [last("weights"), last("v")];
      const order = weights.map((/** @type {number} */ _, /** @type {number} */ key) => key).sort((/** @type {number} */ a, /** @type {number} */ b) => weights[b] - weights[a]);
      return [products(order.map((/** @type {number} */ key) => weights[key]), order.map((/** @type {number} */ key) => rows[key][0]), values[0])];
    }
    case "concat": return [`${n_heads} · ${d_v} = ${n_heads * d_v}`];
    case "output": return [`${n_heads * d_v} → ${d_model}`];
    case "residual": {
      const added = last("output", "cross", "feed-forward", "intervention");
      return [`${short(values[0] - added[0])} + ${bracketed(added[0])} = ${short(values[0])}`];
    }
    case "norm": case "normed": case "final-norm": {
      const from = last("residual", "x");
      if (!from) return [];
      const { mean, variance } = moments(from);
      if (about.settings.norm === "rms") return [`√mean(x²) = ${short(Math.sqrt(variance + mean ** 2))}`];
      const plain = (from[0] - mean) / Math.sqrt(variance);
      return [`mean = ${short(mean)},  variance = ${short(variance)}`, `(${short(from[0])} − ${bracketed(mean)}) / √${short(variance)} = ${short(plain)}  →  ${short(values[0])}`];
    }
    case "feed-forward": return [`${d_model} → ${d_ff} → ${d_model}`];
    case "logits": return [`${d_model} → ${vocab_size}`];
    case "normaliser": return [`z = ${short(values)}`];
    case "probabilities": return [`exp(${short(last("logits")[0])} − ${bracketed(last("normaliser"))}) = ${short(values[0])}`];
    default: return [];
  }
}
