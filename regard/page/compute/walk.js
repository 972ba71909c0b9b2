// Computes a walk from the arrays of a saved file, step by step like `regard/look/walk.py`.

import {
  addressOf,
  headOutput,
  masked,
  ofHead,
  recorded,
  scoreBias,
  scores,
  stackOf,
  sublayers,
  weights,
} from "./attention.js";
import { argmax, softmax } from "./tensor.js";

/**
 * @typedef {import("./attention.js").About} About
 * @typedef {import("./attention.js").Arrays} Arrays
 * @typedef {import("./attention.js").Place} Place
 * @typedef {import("../state/source.js").Prediction} Prediction
 * @typedef {import("../state/source.js").WalkStep} WalkStep
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {Pick<WalkStep, "name" | "formula" | "latex" | "english" | "chinese">} Words
 *
 * @typedef {object} Sentences From `sentences` of `regard/look/export/html.py`.
 * @property {Words[]} steps
 * @property {Record<string, number[][]>} walks
 * @property {Record<string, Record<string, Words>>} masked
 * @property {Words} intervention
 */

const OF_KEYS = ["tokens", "memory", "k", "similarity", "scaled", "bias", "biased", "masked", "weights", "v"];
const OF_CANDIDATES = ["logits", "probabilities"];
const OF_PREDICTIONS = [...OF_CANDIDATES, "label-head", "normaliser"];

/** The numbers of each step at one place. */
class Numbers {
  /**
   * @param {Arrays} arrays
   * @param {About} about
   * @param {Place} place
   * @param {Prediction[]} predictions The steps of the output layer.
   */
  constructor(arrays, about, place, predictions) {
    this.arrays = arrays;
    this.about = about;
    this.place = place;
    this.predictions = predictions;
    this.stack = stackOf(place.kind);
    this.blocks = sublayers(about, this.stack);
    this.scores = scores(arrays, about, place);
    this.masked = masked(about, place, this.scores.changed);
    this.weights = weights(arrays, about, place);
  }

  /** The row of the current token in an array. @param {string} name */
  row(name) {
    const { data, shape } = this.arrays(name);
    const width = shape[1];
    return Array.from(data.subarray(this.place.query * width, (this.place.query + 1) * width));
  }

  /** The vectors of all tokens that the block reads. */
  attended() {
    const { kind, layer } = this.place;
    if (this.about.settings.norm_position === "pre")
      return this.arrays(`${this.stack}.layers.${layer}.add_and_norm.${this.blocks.indexOf(kind)}.normed`);
    if (layer === 0) return this.arrays(`${this.side}.with_positions`);
    return this.arrays(`${this.stack}.layers.${layer - 1}.add_and_norm.${this.blocks.length - 1}.output`);
  }

  get side() {
    return `${this.stack === "encoder" ? "input" : "output"}_embedding`;
  }

  /** The current token's vector before a block's residual connection. @param {string} block */
  streamInto(block) {
    const sublayer = this.blocks.indexOf(block);
    const { layer } = this.place;
    if (sublayer === 0 && layer === 0) return this.row(`${this.side}.with_positions`);
    const [below, before] = sublayer ? [layer, sublayer - 1] : [layer - 1, this.blocks.length - 1];
    return this.row(`${this.stack}.layers.${below}.add_and_norm.${before}.output`);
  }

  /** @param {string} block @param {string} what */
  around(block, what) {
    return this.row(`${this.stack}.layers.${this.place.layer}.add_and_norm.${this.blocks.indexOf(block)}.${what}`);
  }

  /** @param {string} block */
  output(block) {
    return this.row(`${addressOf(block, this.place.layer)}.output`);
  }

  concat() {
    return Array.from({ length: this.about.sizes.n_heads }, (_, head) => {
      return this.headAfter({ ...this.place, head });
    }).flat();
  }

  /** The output of a head after all interventions. @param {Place} place */
  headAfter(place) {
    const stored = recorded(this.arrays, place, "heads");
    if (stored) return Array.from(ofHead(stored, place.head)[place.query]);
    const found = headOutput(this.arrays, this.about, place);
    return this.isOff(place.kind, place.layer, place.head) ? found.map(() => 0) : found;
  }

  /** @param {string} kind @param {number} layer @param {number} head */
  isOff(kind, layer, head) {
    return this.about.interventions.some(
      (each) => each.op === "head-off" && each.kind === kind && each.layer === layer && each.head === head,
    );
  }

  /** @param {string} block */
  isSkipped(block) {
    return this.about.interventions.some(
      (each) => each.op === "skip-block" && each.block === block && each.layer === this.place.layer,
    );
  }

  /**
   * @param {string} name
   * @param {string} block The block that the step belongs to.
   * @returns {any}
   */
  of(name, block) {
    const { kind, layer, head, query } = this.place;
    const at = addressOf(kind, layer);
    const rows = (which) => ofHead(this.arrays(`${at}.${which}`), head).map((row) => Array.from(row));
    switch (name) {
      case "embedding":
        return this.row(`${this.side}.embedded`);
      case "position":
        return this.row(`${this.side}.positions`);
      case "x":
        return this.streamInto(kind);
      case "normed":
        return this.around(block, "normed");
      case "q":
        return rows("q")[query];
      case "tokens":
        return matrix(this.attended());
      case "memory":
        return matrix(this.arrays("encoder.output"));
      case "bias":
        return scoreBias(this.arrays, this.place);
      case "k":
      case "v":
        return rows(name);
      case "similarity":
        return this.scores.similar;
      case "scaled":
        return this.scores.scaled;
      case "biased":
        return this.scores.usual;
      case "masked":
        return this.masked.map((value) => (value === -Infinity ? null : value));
      case "weights":
        return recorded(this.arrays, this.place, "weights") ? softmax(this.masked) : this.weights;
      case "head":
        return headOutput(this.arrays, this.about, this.place);
      case "concat":
        return this.concat();
      case "output":
      case "cross":
      case "feed-forward":
        return this.output(block);
      case "residual": {
        const added = this.output(block);
        return this.streamInto(block).map((value, i) => value + added[i]);
      }
      case "norm":
        return this.around(block, "output");
      case "final-norm":
        return this.row(`${this.stack}.output`);
      case "label-head":
        return matrix(this.arrays("label_head.output"))[0];
      case "logits":
        return this.predictions[query].candidates.map((each) => each.logit);
      case "normaliser":
        return this.predictions[query].normaliser;
      case "probabilities":
        return this.predictions[query].candidates.map((each) => each.probability);
      default:
        throw new Error(`a walk has no step ${name}`);
    }
  }
}

/**
 * All steps of a walk, with text and numbers.
 * @param {Arrays} arrays
 * @param {About} about
 * @param {Sentences} sentences
 * @param {Prediction[]} predictions
 * @param {Place} place
 * @returns {WalkStep[]}
 */
export function buildWalk(arrays, about, sentences, predictions, place) {
  const numbers = new Numbers(arrays, about, place, predictions);
  const { kind, layer, query } = place;
  const side = about.kinds.find((each) => each.kind === kind);
  const keys = about[side.keys].tokens.map((token) => token.text);
  const gaps = gapsOf(numbers, about[side.queries].tokens[query].text, keys);
  const end = about.settings.norm_position === "post" ? "norm" : "residual";
  const words = sentences.walks[kind][layer].map((i) => sentences.steps[i]);
  /** @type {WalkStep[]} */
  const steps = [];
  let block = kind;
  let previous = "";
  for (const step of words) {
    if (!isIncluded(step.name, place)) continue;
    // After the last step of a block, the next block of the layer begins.
    if (previous === end) block = numbers.blocks[numbers.blocks.indexOf(block) + 1];
    previous = step.name;
    for (const { words: shown, values } of withInterventions(numbers, sentences, step, block)) {
      const named = ["masked", "weights"].includes(step.name) ? step.name : shown.name;
      const whose = named === "memory" ? about.inputs.tokens.map((token) => token.text) : keys;
      const rows = rowsOf(named, whose, predictions[query]);
      steps.push({
        ...shown,
        english: filled(shown.english, gaps),
        chinese: filled(shown.chinese, gaps),
        rows,
        shape: shapeOf(values),
        values,
      });
    }
  }
  return steps;
}

/**
 * Whether a walk ends with the model's prediction; in an encoder-only model, only the first token's does.
 * @param {string} name
 * @param {Place} place
 */
function isIncluded(name, { kind, query }) {
  return kind !== "encoder" || query === 0 || !OF_PREDICTIONS.includes(name);
}

/**
 * One step, with the step of an intervention before it or instead of it.
 * @param {Numbers} numbers
 * @param {Sentences} sentences
 * @param {Words} words
 * @param {string} block
 * @returns {{ words: Words, values: any }[]}
 */
function withInterventions(numbers, sentences, words, block) {
  const { kind, layer, head } = numbers.place;
  const { usual, changed } = numbers.scores;
  const step = { words, values: numbers.of(words.name, block) };
  const by = (values) => ({ words: sentences.intervention, values });
  switch (words.name) {
    case "masked": {
      const sees = numbers.masked.includes(-Infinity) ? "some" : "all";
      const masked = { ...step, words: sentences.masked[kind][sees] };
      return changed.some((value, key) => value !== usual[key]) ? [by(changed), masked] : [masked];
    }
    case "concat":
      return numbers.isOff(kind, layer, head) || recorded(numbers.arrays, numbers.place, "heads")
        ? [by(numbers.headAfter(numbers.place)), step]
        : [step];
    case "weights":
      return recorded(numbers.arrays, numbers.place, "weights") ? [step, by(numbers.weights)] : [step];
    case "memory":
      return block !== kind && numbers.isSkipped(block) ? [] : [step];
    case "output":
    case "cross":
    case "feed-forward":
      return numbers.isSkipped(block) ? [by(step.values)] : [step];
    default:
      return [step];
  }
}

/**
 * Values for the placeholders of the sentences.
 * @param {Numbers} numbers
 * @param {string} token
 * @param {string[]} keys
 * @returns {Record<string, string>}
 */
function gapsOf({ weights, predictions, place: { query } }, token, keys) {
  const most = argmax(weights);
  const best = predictions[query]?.candidates[0];
  return {
    token,
    place: String(query),
    most: keys[most],
    share: weights[most].toFixed(3),
    best: best?.text ?? "",
    chance: best?.probability.toFixed(3) ?? "",
  };
}

/**
 * The labels of a step's rows.
 * @param {string} name
 * @param {string[]} keys
 * @param {Prediction | undefined} prediction
 * @returns {string[]}
 */
function rowsOf(name, keys, prediction) {
  if (OF_CANDIDATES.includes(name)) return prediction?.candidates.map((each) => each.piece) ?? [];
  return OF_KEYS.includes(name) ? keys : [];
}

/** The rows of a matrix. @param {Tensor} tensor @returns {number[][]} */
function matrix({ data, shape: [rows, width] }) {
  return Array.from({ length: rows }, (_, row) => Array.from(data.subarray(row * width, (row + 1) * width)));
}

/** @param {any} values @returns {number[]} */
const shapeOf = (values) => (Array.isArray(values) ? [values.length, ...shapeOf(values[0])] : []);

/** @param {string} text @param {Record<string, string>} gaps */
const filled = (text, gaps) => text.replace(/\{(\w+)\}/g, (gap, name) => gaps[name] ?? gap);
