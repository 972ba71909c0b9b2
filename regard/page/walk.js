// A walk worked out here, from the arrays of a saved file, step for step as `regard/look/walk.py` does it.

import { dot, softmax } from "./tensor.js";

/**
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {import("./source.js").About} About
 * @typedef {(name: string) => Tensor | null} Arrays By address; null where there is none.
 * @typedef {{ kind: string, layer: number, head: number, query: number }} Place
 */

const NEVER = -1e30; // the score of a key that a pinned query does not look at

const MODULES = /** @type {Record<string, string>} */ ({
  encoder: "multi_head_attention", decoder: "masked_multi_head_attention", cross: "multi_head_attention",
  "encoder-feed-forward": "feed_forward", "decoder-feed-forward": "feed_forward",
});

/** @param {string} block */
const stackOf = (block) => (block.startsWith("encoder") ? "encoder" : "decoder");

/**
 * @param {string} block
 * @param {number} layer
 */
export function addressOf(block, layer) {
  return `${stackOf(block)}.layers.${layer}.${MODULES[block]}`;
}

/**
 * The blocks of one layer, in the order in which they run.
 * @param {About} about
 * @param {string} stack
 */
function sublayers(about, stack) {
  if (stack === "encoder") return ["encoder", "encoder-feed-forward"];
  return about.architecture === "decoder" ? ["decoder", "decoder-feed-forward"]
    : ["decoder", "cross", "decoder-feed-forward"];
}

/**
 * One head's part of what was projected: for each token its row.
 * @param {Tensor} tensor (tokens, heads, width)
 * @param {number} head
 * @returns {Float32Array[]}
 */
function ofHead({ data, shape: [tokens, heads, width] }, head) {
  return Array.from({ length: tokens }, (_, i) =>
    data.subarray((i * heads + head) * width, (i * heads + head + 1) * width));
}

/**
 * How alike one query and each key are, before any scale.
 * @param {Arrays} arrays
 * @param {About} about
 * @param {Place} place
 * @returns {number[]}
 */
export function similarities(arrays, about, { kind, layer, head, query }) {
  const at = addressOf(kind, layer);
  const q = ofHead(/** @type {Tensor} */ (arrays(`${at}.q`)), head)[query];
  const keys = ofHead(/** @type {Tensor} */ (arrays(`${at}.k`)), head);
  if (about.settings.similarity !== "additive") return keys.map((k) => dot(q, k));
  const { data } = /** @type {Tensor} */ (arrays(`${at}.similarity.weight`));
  const weight = data.subarray(head * q.length, (head + 1) * q.length);
  return keys.map((k) => dot(weight, Float32Array.from(k, (value, i) => Math.tanh(q[i] + value))));
}

/**
 * What the softmax is taken of, before the mask, and what it would be without interventions.
 * @param {Arrays} arrays
 * @param {About} about
 * @param {Place} place
 */
export function scores(arrays, about, place) {
  const similar = similarities(arrays, about, place);
  const root = Math.sqrt(about.sizes.d_k);
  const usual = about.settings.similarity === "scaled-dot" ? similar.map((value) => value / root) : similar;
  const here = (/** @type {Record<string, any>} */ each) =>
    each.kind === place.kind && each.layer === place.layer && each.head === place.head;
  let changed = usual;
  if (about.interventions.some((each) => each.op === "no-scale")) changed = changed.map((value) => value * root);
  if (about.interventions.some((each) => each.op === "uniform" && here(each))) changed = changed.map(() => 0);
  for (const pin of about.interventions) {
    if (pin.op === "pin" && here(pin) && pin.query === place.query) {
      changed = changed.map((_, key) => (key === pin.key ? 0 : NEVER));
    }
  }
  return { similar, usual, changed };
}

/**
 * @param {About} about
 * @param {Place} place
 * @param {number[]} values
 */
function masked(about, { kind, query }, values) {
  const found = /** @type {import("./source.js").Kind} */ (about.kinds.find((each) => each.kind === kind));
  return values.map((value, key) =>
    ((found.causal && key > query) || found.masked.includes(key) ? -Infinity : value));
}

/**
 * One row of attention weights.
 * @param {Arrays} arrays
 * @param {About} about
 * @param {Place} place
 */
export function weights(arrays, about, place) {
  return softmax(masked(about, place, scores(arrays, about, place).changed));
}

/**
 * What one head has found for one query.
 * @param {Arrays} arrays
 * @param {About} about
 * @param {Place} place
 */
function headOutput(arrays, about, place) {
  const shares = weights(arrays, about, place);
  const values = ofHead(/** @type {Tensor} */ (arrays(`${addressOf(place.kind, place.layer)}.v`)), place.head);
  return Array.from(values[0], (_, i) => shares.reduce((sum, share, key) => sum + share * values[key][i], 0));
}

/** The numbers of every step, by its name, for one place. */
class Numbers {
  /**
   * @param {Arrays} arrays
   * @param {About} about
   * @param {Place} place
   * @param {Record<string, any>[]} said The steps of the output layer.
   */
  constructor(arrays, about, place, said) {
    this.arrays = arrays;
    this.about = about;
    this.place = place;
    this.said = said;
    this.stack = stackOf(place.kind);
    this.blocks = sublayers(about, this.stack);
    this.scores = scores(arrays, about, place);
    this.masked = masked(about, place, this.scores.changed);
    this.weights = softmax(this.masked);
  }

  /** This token's row of an array. @param {string} name */
  row(name) {
    const { data, shape } = /** @type {Tensor} */ (this.arrays(name));
    const width = shape[1];
    return Array.from(data.subarray(this.place.query * width, (this.place.query + 1) * width));
  }

  get side() {
    return `${this.stack === "encoder" ? "input" : "output"}_embedding`;
  }

  /** This token's vector before a block's residual connection. @param {string} block */
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
    const { kind, layer } = this.place;
    return Array.from({ length: this.about.sizes.n_heads }, (_, head) => {
      const found = headOutput(this.arrays, this.about, { ...this.place, head });
      return this.isOff(kind, layer, head) ? found.map(() => 0) : found;
    }).flat();
  }

  /** @param {string} kind @param {number} layer @param {number} head */
  isOff(kind, layer, head) {
    return this.about.interventions.some((each) =>
      each.op === "head-off" && each.kind === kind && each.layer === layer && each.head === head);
  }

  /** @param {string} block */
  isSkipped(block) {
    return this.about.interventions.some((each) =>
      each.op === "skip-block" && each.block === block && each.layer === this.place.layer);
  }

  /**
   * @param {string} name
   * @param {string} block The block that the step belongs to.
   * @returns {any}
   */
  of(name, block) {
    const { kind, layer, head, query } = this.place;
    const at = addressOf(kind, layer);
    const rows = (/** @type {string} */ which) =>
      ofHead(/** @type {Tensor} */ (this.arrays(`${at}.${which}`)), head).map((row) => Array.from(row));
    switch (name) {
      case "embedding": return this.row(`${this.side}.embedded`);
      case "position": return this.row(`${this.side}.positions`);
      case "x": return this.streamInto(kind);
      case "normed": return this.around(block, "normed");
      case "q": return rows("q")[query];
      case "k": case "v": return rows(name);
      case "similarity": return this.scores.similar;
      case "scaled": return this.scores.usual;
      case "masked": return this.masked.map((value) => (value === -Infinity ? null : value));
      case "weights": return this.weights;
      case "head": return headOutput(this.arrays, this.about, this.place);
      case "concat": return this.concat();
      case "output": case "cross": case "feed-forward": return this.output(block);
      case "residual": {
        const added = this.output(block);
        return this.streamInto(block).map((value, i) => value + added[i]);
      }
      case "norm": return this.around(block, "output");
      case "final-norm": return this.row(`${this.stack}.output`);
      case "logits": return this.said[query].candidates.map((/** @type {any} */ each) => each.logit);
      case "normaliser": return this.said[query].normaliser;
      case "probabilities": return this.said[query].candidates.map((/** @type {any} */ each) => each.probability);
      default: throw new Error(`a walk has no step ${name}`);
    }
  }
}

/**
 * All the steps of a walk, with words and numbers.
 * @param {Arrays} arrays
 * @param {About} about
 * @param {Record<string, any>} sentences What `sentences` of `regard/look/embedded.py` tells.
 * @param {Record<string, any>[]} said
 * @param {Place} place
 * @returns {import("./source.js").WalkStep[]}
 */
export function buildWalk(arrays, about, sentences, said, place) {
  const numbers = new Numbers(arrays, about, place, said);
  const { kind, layer, head, query } = place;
  const side = /** @type {import("./source.js").Kind} */ (about.kinds.find((each) => each.kind === kind));
  const keys = about[side.keys].tokens.map((token) => token.text);
  const most = numbers.weights.indexOf(Math.max(...numbers.weights));
  const best = said[query]?.candidates[0];
  const gaps = {
    token: about[side.queries].tokens[query].text, place: String(query),
    most: keys[most], share: numbers.weights[most].toFixed(3),
    best: best?.text ?? "", chance: best?.probability.toFixed(3) ?? "",
  };
  /** @type {import("./source.js").WalkStep[]} */
  const steps = [];
  const add = (/** @type {any} */ words, /** @type {any} */ values, /** @type {string[]} */ rows = []) => {
    const shape = Array.isArray(values) ? [values.length, ...(Array.isArray(values[0]) ? [values[0].length] : [])] : [];
    steps.push({ ...words, english: filled(words.english, gaps), chinese: filled(words.chinese, gaps), rows, shape, values });
  };
  let block = kind;
  for (const words of sentences.walks[kind][layer].map((/** @type {number} */ i) => sentences.steps[i])) {
    const { name } = words;
    if (["logits", "normaliser", "probabilities"].includes(name) && kind === "encoder" && query > 0) continue;
    // Behind a block's residual connection and its norm, if that follows, the next block begins.
    if (steps.length && isEndOf(about, /** @type {any} */ (steps.at(-1)).name)) block = numbers.blocks[numbers.blocks.indexOf(block) + 1];
    if (name === "masked") {
      if (numbers.scores.changed.some((value, key) => value !== numbers.scores.usual[key])) {
        add(sentences.intervention, numbers.scores.changed, keys);
      }
      const sees = numbers.masked.includes(-Infinity) ? "some" : "all";
      add(sentences.masked[kind][sees], numbers.of(name, block), keys);
      continue;
    }
    if (name === "concat" && numbers.isOff(kind, layer, head)) {
      add(sentences.intervention, numbers.of("head", block).map(() => 0));
    }
    if (["output", "cross", "feed-forward"].includes(name) && numbers.isSkipped(block)) {
      add(sentences.intervention, numbers.output(block));
      continue;
    }
    const rows = ["k", "similarity", "scaled", "weights", "v"].includes(name) ? keys
      : ["logits", "probabilities"].includes(name) ? said[query].candidates.map((/** @type {any} */ each) => each.piece) : [];
    add(words, numbers.of(name, block), rows);
  }
  return steps;
}

/** @param {About} about @param {string} name */
const isEndOf = (about, name) => name === (about.settings.norm_position === "post" ? "norm" : "residual");

/** @param {string} text @param {Record<string, string>} gaps */
const filled = (text, gaps) => text.replace(/\{(\w+)\}/g, (gap, name) => gaps[name] ?? gap);
