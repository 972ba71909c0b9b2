// Computes attention from the arrays of a saved file, like `regard/look/trace/data.py`.

import { dot, softmax } from "./tensor.js";

/**
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {import("../state/source.js").About} About
 * @typedef {(name: string) => Tensor | null} Arrays By name; null if there is none.
 * @typedef {{ kind: string, layer: number, head: number, query: number }} Place
 */

const NEVER = -1e30; // score of the other keys of a pinned query

const MODULES = {
  encoder: "multi_head_attention",
  decoder: "masked_multi_head_attention",
  cross: "multi_head_attention",
  "encoder-feed-forward": "feed_forward",
  "decoder-feed-forward": "feed_forward",
};

/** @param {string} block */
export const stackOf = (block) => (block.startsWith("encoder") ? "encoder" : "decoder");

/** @param {string} block @param {number} layer */
export function addressOf(block, layer) {
  return `${stackOf(block)}.layers.${layer}.${MODULES[block]}`;
}

/** The blocks of one layer, in the order in which they run. @param {About} about @param {string} stack */
export function sublayers(about, stack) {
  if (stack === "encoder") return ["encoder", "encoder-feed-forward"];
  return about.architecture === "decoder"
    ? ["decoder", "decoder-feed-forward"]
    : ["decoder", "cross", "decoder-feed-forward"];
}

/**
 * One head's part of a projection, a row per token.
 * @param {Tensor} tensor (tokens, heads, width)
 * @param {number} head
 * @returns {Float32Array[]}
 */
export function ofHead({ data, shape: [tokens, heads, width] }, head) {
  return Array.from({ length: tokens }, (_, i) =>
    data.subarray((i * heads + head) * width, (i * heads + head + 1) * width),
  );
}

/**
 * One query's row of (…, heads, queries, keys).
 * @param {Tensor} tensor
 * @param {number} head
 * @param {number} query
 */
function rowOf({ data, shape }, head, query) {
  const [queries, keys] = shape.slice(-2);
  const start = (head * queries + query) * keys;
  return Array.from(data.subarray(start, start + keys));
}

/** What a block recorded, if it does not follow from the other arrays: scores, weights or heads.
 * @param {Arrays} arrays @param {Place} place @param {string} name */
export function recorded(arrays, { kind, layer }, name) {
  return arrays(`${addressOf(kind, layer)}.${name}`);
}

/** Whether scores are scaled dot products and nothing else. @param {Record<string, any>} settings */
export function hasScale({ similarity, positions }) {
  return similarity === "scaled-dot" && ["sinusoidal", "learned", "rotary", "none"].includes(positions);
}

/** The bias that positions add to one query's scores; null if none. @param {Arrays} arrays @param {Place} place */
export function scoreBias(arrays, { kind, head, query }) {
  if (kind === "cross") return null;
  const found = arrays(`${kind === "encoder" ? "input" : "output"}_positions.score_bias`);
  return found && rowOf(found, head, query);
}

/**
 * Similarity of one query and each key, before the scale.
 * @param {Arrays} arrays
 * @param {About} about
 * @param {Place} place
 * @returns {number[]}
 */
function similarities(arrays, about, place) {
  const { kind, layer, head, query } = place;
  const at = addressOf(kind, layer);
  const stored = recorded(arrays, place, "scores");
  if (stored) return rowOf(stored, head, query);
  const q = ofHead(arrays(`${at}.q`), head)[query];
  const keys = ofHead(arrays(`${at}.k`), head);
  if (about.settings.similarity !== "additive") return keys.map((k) => dot(q, k));
  const { data } = arrays(`${at}.similarity.weight`);
  const weight = data.subarray(head * q.length, (head + 1) * q.length);
  return keys.map((k) => dot(weight, Float32Array.from(k, (value, i) => Math.tanh(q[i] + value))));
}

/**
 * The scores before the mask: unscaled, without interventions, and with them.
 * @param {Arrays} arrays
 * @param {About} about
 * @param {Place} place
 */
export function scores(arrays, about, place) {
  const similar = similarities(arrays, about, place);
  if (recorded(arrays, place, "scores")) return { similar, scaled: similar, usual: similar, changed: similar };
  const root = Math.sqrt(about.sizes.d_k);
  const scaled = about.settings.similarity === "scaled-dot" ? similar.map((value) => value / root) : similar;
  const bias = scoreBias(arrays, place);
  const usual = bias ? scaled.map((value, key) => value + bias[key]) : scaled;
  const here = (each) => each.kind === place.kind && each.layer === place.layer && each.head === place.head;
  let changed = usual;
  if (about.interventions.some((each) => each.op === "no-scale"))
    changed = changed.map((value) => value * root);
  if (about.interventions.some((each) => each.op === "uniform" && here(each))) changed = changed.map(() => 0);
  for (const pin of about.interventions) {
    if (pin.op === "pin" && here(pin) && pin.query === place.query) {
      changed = changed.map((_, key) => (key === pin.key ? 0 : NEVER));
    }
  }
  return { similar, scaled, usual, changed };
}

/** @param {About} about @param {Place} place @param {number[]} values */
export function masked(about, { kind, query }, values) {
  const found = about.kinds.find((each) => each.kind === kind);
  return values.map((value, key) => (found.causal && key > query) || found.masked.includes(key) ? -Infinity : value);
}

/** One row of attention weights. @param {Arrays} arrays @param {About} about @param {Place} place */
export function weights(arrays, about, place) {
  const stored = recorded(arrays, place, "weights");
  if (stored) return rowOf(stored, place.head, place.query);
  return softmax(masked(about, place, scores(arrays, about, place).changed));
}

/** The output of one head for one query. @param {Arrays} arrays @param {About} about @param {Place} place */
export function headOutput(arrays, about, place) {
  const shares = weights(arrays, about, place);
  const values = ofHead(arrays(`${addressOf(place.kind, place.layer)}.v`), place.head);
  return Array.from(values[0], (_, i) => shares.reduce((sum, share, key) => sum + share * values[key][i], 0));
}
