// The twelve exercises: where each takes place, and how the page checks it.

import { dateChanged } from "../compute/dates.js";
import { argmax } from "../compute/tensor.js";
import { changes } from "../state/changes.js";
import { NEW_TEXT } from "../state/store.js";
import { checkAnswer } from "./exercise.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/store.js").State} State */
/**
 * @typedef {object} Task
 * @property {string} id Key of its name and text: `practice.ID`, `practice.ID.text`.
 * @property {string} screen
 * @property {Partial<State>} [changes] What its screen shows first.
 * @property {Record<string, string>} [text] A text for it, by language of the input.
 * @property {"server"} [needs]
 * @property {"translate"} [task] The task of the models that have it; default: all.
 * @property {(context: Context) => number} [number] The number that is asked for.
 * @property {string} [panel] The step of the walkthrough whose exercise it is; that one checks the answer.
 * @property {(context: Context) => Promise<boolean | string>} [check] Whether what is selected is right, or the key of a hint.
 */

/** A worked number of the walkthrough, which checks it. @param {string} panel @returns {Task} */
const worked = (panel) => ({ id: `walk-${panel}`, panel, screen: "walk", changes: { panel, hand: 1 } });

const DATE = { zh: "今天是五月二十二日。", en: "Today is the third of July." };

/** @type {Task[]} */
export const PRACTICE = [
  worked("similarity"),
  worked("scaled"),
  worked("weights"),
  worked("head"),
  { id: "uniform", screen: "head", number: ({ keys }) => Math.log2(keys.length) },
  { id: "matrices", screen: "head", number: ({ about: { sizes } }) => matrices(sizes) },
  {
    id: "likelihood",
    screen: "steps",
    task: "translate",
    number: ({ about }) => about.wanted.reduce((sum, { log_prob }) => sum + log_prob, 0),
  },
  { id: "previous", screen: "map", check: looksAtPrevious },
  { id: "aligner", screen: "map", task: "translate", check: aligns },
  { id: "doubt", screen: "steps", task: "translate", check: isMostUncertain },
  { id: "off", screen: "map", changes: { off: "", drop: "", op: "off" }, text: DATE, needs: "server", check: changesDate },
  { id: "fork", screen: "steps", changes: { prefix: "", step: 0 }, needs: "server", task: "translate", check: forks },
];

export const PRACTICE_IDS = PRACTICE.map(({ id }) => id);

/**
 * The numbers in the four matrices of one attention: of all heads' queries, keys and values, and of the output.
 * @param {Record<string, number>} sizes
 */
const matrices = ({ d_model, d_k, d_v, n_heads }) => 2 * d_model * n_heads * (d_k + (d_v ?? d_k));

/**
 * Why an exercise cannot be done on this page, as a key of the words; empty if it can.
 * @param {Task} task
 * @param {Context} context
 */
export function obstacle({ screen, needs, task }, { server, state, screens }) {
  if (needs && !server) return "practice.needs-server";
  if (task && server && server.model(state).task !== task) return "practice.needs-translator";
  return screens.includes(screen) ? "" : "practice.needs-translator";
}

/** The change of the state that leads to an exercise. @param {Task} task @param {Context} context @returns {Partial<State>} */
export function begin({ id, screen, changes: first, text: own }, { server, state }) {
  const text = own ?? (state.text.trim() ? null : DATE);
  const read = text && server ? languagesOf(server, state).find((language) => language in text) : "";
  return { exercise: id, tour: -1, screen, ...first, ...(read && { ...NEW_TEXT, text: text[read] }) };
}

/**
 * The languages that the current model reads; first the one whose translation the user of the page reads.
 * @param {import("../state/server.js").Server} server
 * @param {State} state
 */
function languagesOf(server, state) {
  const { from } = server.way(state);
  const all = from ? [from] : server.model(state).directions.map(({ source }) => source);
  const best = state.lang === "zh" ? "en" : "zh";
  return all.includes(best) ? [best, ...all] : all;
}

/** Whether a number is the right one: -1 too small, 1 too large, null not a number. @param {Task} task @param {Context} context @param {string} answer */
export const checkNumber = ({ number }, context, answer) => checkAnswer({ work: () => number(context) }, answer);

/** @param {Context} context */
async function looksAtPrevious({ source, state }) {
  const roles = await source.summaries();
  const all = Object.values(roles).flat(2);
  if (!all.some(({ role }) => role === "previous")) return "practice.previous.none";
  return roles[state.kind][state.layer][state.head].role === "previous";
}

/** @param {Context} context */
async function aligns({ source, state }) {
  const alignment = await source.alignment();
  if (!alignment) return "practice.aligner.none";
  return state.kind === "cross" && alignment.heads.some(([layer, head]) => layer === state.layer && head === state.head);
}

/** @param {Context} context */
async function isMostUncertain({ source, state }) {
  const steps = await source.steps();
  const entropies = steps.map(({ entropy }) => entropy ?? 0);
  return entropies[state.step] === entropies[argmax(entropies)];
}

/** @param {Context} context */
async function changesDate({ about, server, state }) {
  const list = changes(state, about);
  if (!list.some(({ op }) => op === "head-off")) return "practice.off.none";
  if (list.some(({ op }) => op !== "head-off")) return "practice.off.others";
  const { intact, items } = await server.ablate(state, { interventions: [list] });
  const [{ text, labels }] = items;
  if (labels) return mostLikely(labels) !== mostLikely(intact.labels);
  return dateChanged(intact.text, text);
}

/** @param {Record<string, number>} labels */
const mostLikely = (labels) => Object.keys(labels).reduce((best, each) => (labels[each] > labels[best] ? each : best));

/** @param {Context} context */
async function forks({ about, server, state }) {
  if (!state.prefix) return "practice.fork.none";
  const free = await server.trace({ ...state, prefix: "", whole: "", target: "" });
  const [chosen, first] = [about, free.about].map(({ outputs }) => outputs.tokens[1]?.id);
  return chosen !== first;
}
