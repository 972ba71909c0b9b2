// The path of a word through a model: its stages, from the characters of the text to the search.

import { blocksOf, boxesOf, layersOf, stacksOf } from "./figure_one.js";
import { argmax } from "./tensor.js";

/** @typedef {import("../state/source.js").About} About */
/**
 * @typedef {object} Stage
 * @property {string} id Its name in the address.
 * @property {string} chapter `text`, `encoder.3`, `said`, …
 * @property {string} box The box of Figure 1.
 * @property {string} side `inputs` or `outputs`: the text of the token.
 * @property {string} [name] The step of a walk; without: a stage of the text or of the search.
 * @property {number} [nth] Which of the steps with this name.
 * @property {string} [kind] The attention of the walk.
 * @property {number} [layer]
 * @property {number} [query]
 *
 * @typedef {object} Followed
 * @property {number} input The input token; −1 without an encoder.
 * @property {number} step The output token that the decoder reads; −1 without a decoder.
 */

/**
 * The stages of one sub-layer.
 * @param {boolean} pre
 * @param {string} block
 * @param {number} nth Which sub-layer of the walk it is.
 * @param {string[]} within The steps inside the block.
 * @returns {{ name: string, nth: number, box: string }[]}
 */
function sublayer(pre, block, nth, within) {
  return [
    ...(pre ? [{ name: "normed", nth, box: `norm:${block}` }] : []),
    ...within.map((name) => ({ name, nth: 0, box: block })),
    { name: "residual", nth, box: `add:${block}` },
    ...(pre ? [] : [{ name: "norm", nth, box: `add:${block}` }]),
  ];
}

const ATTENTION = ["weights", "output"];

/**
 * The stages of a stack: embedding, and attention and feed-forward of every layer.
 * @param {About} about
 * @param {"encoder" | "decoder"} stack
 * @param {number} query
 * @returns {Stage[]}
 */
function stagesOfStack(about, stack, query) {
  const pre = about.settings.norm_position === "pre";
  const [letter, side] = stack === "encoder" ? ["input", "inputs"] : ["output", "outputs"];
  const placed = boxesOf(about, stack).some(({ type }) => type === "position");
  const at = (kind, layer, chapter, { name, nth, box }) => {
    return { id: `${kind}.${layer}.${name}${nth ? `-${nth + 1}` : ""}`, chapter, box, side, name, nth, kind, layer, query };
  };
  const beginning = [
    { name: "embedding", nth: 0, box: `embedding:${letter}` },
    ...(placed ? [{ name: "position", nth: 0, box: `position:${letter}` }] : []),
    { name: "x", nth: 0, box: placed ? `position:${letter}` : `embedding:${letter}` },
  ].map((each) => at(stack, 0, letter, each));
  const blocks = blocksOf(about, stack);
  const last = blocks[blocks.length - 2]; // the last attention, whose walk goes on to the feed-forward network
  const layers = Array.from({ length: layersOf(about, stack) }, (_, layer) => [
    ...blocks.slice(0, -1).flatMap((kind) => sublayer(pre, kind, 0, ATTENTION).map((each) => at(kind, layer, `${stack}.${layer}`, each))),
    ...sublayer(pre, blocks[blocks.length - 1], 1, ["feed-forward"]).map((each) => at(last, layer, `${stack}.${layer}`, each)),
  ]);
  const end = pre ? [at(last, layersOf(about, stack) - 1, `${stack}.end`, { name: "final-norm", nth: 0, box: `final:${stack}` })] : [];
  return [...beginning, ...layers.flat(), ...end];
}

/**
 * All stages, from the characters to the prediction, and to the search if there was one.
 * @param {About} about
 * @param {Followed} followed
 * @param {boolean} searched
 * @returns {Stage[]}
 */
export function stagesOf(about, { input, step }, searched) {
  const stacks = stacksOf(about);
  const read = about.inputs ? "inputs" : "outputs";
  const text = (id) => ({ id, chapter: "text", box: about.inputs ? "text:input" : "text:output", side: read });
  const stages = stacks.flatMap((stack) => stagesOfStack(about, stack, stack === "encoder" ? input : step));
  const side = stacks.at(-1) === "encoder" ? "inputs" : "outputs";
  const blocks = blocksOf(about, stacks.at(-1));
  const kind = blocks[blocks.length - 2];
  const layer = layersOf(about, stacks.at(-1)) - 1;
  const said = (name, box) => ({ id: name, chapter: "said", box, side, name, nth: 0, kind, layer, query: side === "inputs" ? 0 : step });
  return [
    ...["characters", "tokens"].map(text),
    ...stages,
    said("logits", "linear"),
    said("probabilities", "softmax"),
    ...(searched ? [{ id: "beam", chapter: "said", box: "text:said", side: "outputs" }] : []),
  ];
}

/**
 * The index of a stage's step in its walk. Where an intervention replaced the step, that of the intervention.
 * @param {{ name: string }[]} steps
 * @param {Stage} stage
 */
export function stepOf(steps, { name, nth = 0 }) {
  const found = steps.flatMap((step, i) => (step.name === name ? [i] : []));
  if (found.length) return found[Math.min(nth, found.length - 1)];
  return Math.max(0, steps.findIndex((step) => step.name === "intervention"));
}

/**
 * The box of Figure 1 of a stage that is known by its name only.
 * @param {import("./figure_one.js").Model} model
 * @param {string} id
 */
export function boxOfStage(model, id) {
  const stages = stagesOf(/** @type {any} */ ({ settings: model.sizes, inputs: model.architecture !== "decoder", ...model }), { input: 0, step: 0 }, true);
  return (stages.find((stage) => stage.id === id) ?? stages[0]).box;
}

/** The chapters in order, each with its first stage. @param {Stage[]} stages @returns {{ chapter: string, first: number }[]} */
export const chaptersOf = (stages) =>
  stages.flatMap(({ chapter }, first) => (chapter === stages[first - 1]?.chapter ? [] : [{ chapter, first }]));

/** @typedef {import("../state/source.js").Alignment} Alignment */

/**
 * The input token that an output token comes from: by the alignment of words, or else by the largest weight.
 * @param {About} about
 * @param {Alignment | null} alignment
 * @param {ArrayLike<number>} weights Those from which the token was predicted.
 * @param {number} step
 */
export function inputOf(about, alignment, weights, step) {
  const word = alignment?.outputs.findIndex(({ first, last }) => first <= step + 1 && step + 1 <= last) ?? -1;
  const row = word >= 0 ? alignment.shares[word] : [];
  if (row.length) return alignment.inputs[argmax(row)].first;
  return argmax(weights);
}

/**
 * The step that wrote what an input token became: the one of the word with the largest share of it.
 * @param {About} about
 * @param {Alignment | null} alignment
 * @param {number} input
 * @param {number} usual If the token is no part of a word.
 */
export function stepFrom(about, alignment, input, usual) {
  const word = alignment?.inputs.findIndex(({ first, last }) => first <= input && input <= last) ?? -1;
  if (word < 0) return usual;
  return alignment.outputs[argmax(alignment.shares.map((row) => row[word]))].first - 1;
}
