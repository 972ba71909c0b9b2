// Exercises of the walkthrough: the user computes one number of a step, and the answer is checked.

import { short } from "../compute/number.js";
import {
  before,
  exponentials,
  isDotProduct,
  moments,
  panelSteps,
  rowsBefore,
  unnormed,
  vectorBefore,
  weightsBefore,
} from "../compute/substitute.js";
import { dot } from "../compute/tensor.js";
import { solve } from "../state/score.js";
import { checkbox } from "./controls.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/substitute.js").At} At */
/** @typedef {(value: number) => number} Read Reads a number exactly, or rounded as it is shown. */
/**
 * @typedef {object} Exercise
 * @property {(read: Read) => number} work
 * @property {Record<string, number[]>} [given] Numbers that the formula abbreviates.
 */

const SLIP = 0.005; // relative error allowed for rounding in between
let solved = { which: "", right: false }; // the last number that was found or shown on request

/** @type {Read} */
const exact = (value) => value;
/** @type {Read} */
const written = (value) => Number(short(value).replace("−", "-"));

/** @param {At} at @returns {Exercise | null} */
function normed(at) {
  const from = unnormed(at)?.values ?? [];
  const { mean, variance } = moments(from);
  if (at.about.settings.norm !== "layer") return null;
  return { work: (read) => (read(from[0]) - read(mean)) / Math.sqrt(read(variance)) };
}

/** @param {number[]} a @param {number[]} b @param {Record<string, number[]>} given */
const summed = (a, b, given) => ({ work: (read) => dot(a.map(read), b.map(read)), given });

/** @type {Record<string, (at: At) => Exercise | null>} */
const EXERCISES = {
  embedding: ({ about: { sizes }, steps, index }) => {
    const root = Math.sqrt(sizes.d_model);
    const first = steps[index].values[0] / root;
    return steps[index].formula.includes("√") ? { work: (read) => read(first) * root } : null;
  },
  x: ({ steps, index }) => {
    const parts = ["embedding", "position"].map((name) => vectorBefore(steps, index, name)[0]);
    return parts.includes(undefined)
      ? null
      : { work: (read) => read(parts[0]) + read(parts[1]) };
  },
  similarity: ({ steps, index, focus }) => {
    if (!isDotProduct(steps[index])) return null;
    const [q, k] = [vectorBefore(steps, index, "q"), rowsBefore(steps, index, "k")[focus]];
    return summed(q, k, { q, k });
  },
  scaled: ({ about, steps, index, focus }) => {
    const product = vectorBefore(steps, index, "similarity")[focus];
    const scales = about.settings.similarity === "scaled-dot";
    return scales ? { work: (read) => read(product) / Math.sqrt(about.sizes.d_k) } : null;
  },
  weights: ({ steps, index, focus }) => {
    const { powers, sum } = exponentials(vectorBefore(steps, index, "masked"));
    return { work: (read) => read(powers[focus]) / read(sum) };
  },
  head: (at) => {
    const firsts = rowsBefore(at.steps, at.index, "v").map((row) => row[0]);
    const shares = weightsBefore(at)?.values ?? [];
    return summed(shares, firsts, { weight: shares, "v[0]": firsts });
  },
  residual: (at) => {
    const [from, added] = panelSteps(at).map((step) => step.values[0]);
    return { work: (read) => read(from) + read(added) };
  },
  normed,
  norm: normed,
  "final-norm": normed,
  probabilities: ({ steps, index }) => {
    const z = before(steps, index, "normaliser")?.values;
    const logit = vectorBefore(steps, index, "logits")[0];
    return z === undefined ? null : { work: (read) => Math.exp(read(logit) - read(z)) };
  },
};

/** The exercise of a step; null if its inputs are not all visible. @param {At} at */
export const exerciseOf = (at) => EXERCISES[at.steps[at.index].name]?.(at) ?? null;

/**
 * Compare an answer: 0 is right (computed from exact or from rounded numbers), -1 too small, 1 too large, null
 * not a number.
 * @param {Exercise} task
 * @param {string} answer
 * @returns {-1 | 0 | 1 | null}
 */
export function checkAnswer({ work }, answer) {
  const given = Number(answer.trim().replace("−", "-").replace(",", "."));
  if (!answer.trim() || !Number.isFinite(given)) return null;
  const ends = [work(exact), work(written)];
  const most = Math.max(...ends.map(Math.abs));
  const unit = most >= 1000 ? 1 : most >= 100 ? 0.1 : most >= 10 ? 0.01 : 0.001; // the last digit of `short`
  const slack = unit + SLIP * most;
  if (given < Math.min(...ends) - slack) return -1;
  return given > Math.max(...ends) + slack ? 1 : 0;
}

/** Identifies an exercise. @param {Context} context @param {At} at */
const named = ({ about, state }, { index, focus, query }) =>
  [about.hash, state.kind, state.layer, state.head, query, focus, index].join();

/** Whether the answer is still hidden. @param {Context} context @param {At} at */
const isSought = (context, at) =>
  Boolean(context.state.hand) && exerciseOf(at) !== null && solved.which !== named(context, at);

/** Formula lines with the hidden answer as “?”. @param {Context} context @param {At} at @param {string[]} lines */
export const hideResult = (context, at, lines) =>
  lines.map((line, i) => isSought(context, at) && i === lines.length - 1 ? line.replace(/= [^=]*$/, "= ?") : line);

/** A text with the hidden answer as “?”. @param {Context} context @param {At} at @param {string} text */
export function hideAnswer(context, at, text) {
  if (!isSought(context, at)) return text;
  const sought = short(exerciseOf(at).work(exact)).replace(".", "\\.");
  return text.replace(new RegExp(`(?<![\\d.])${sought}(?!\\d)`, "g"), "?");
}

/**
 * The form for the answer, or the answer once it is known.
 * @param {Context} context
 * @param {At} at
 * @param {Exercise} task
 */
function box(context, at, task) {
  const { store, t } = context;
  const value = short(task.work(exact));
  if (!isSought(context, at))
    return h("strong", { id: "verdict", role: "status" }, t(`walk.hand.${solved.right ? "right" : "is"}`, { value }));
  const tell = (right) => {
    if (right) solve(`walk-${at.steps[at.index].name}`);
    solved = { which: named(context, at), right };
    void store.notify();
  };
  const verdict = h("span", { id: "verdict", role: "status" });
  const look = { id: "answer", type: "text", class: "brief", autocomplete: "off" };
  const input = h("input", { ...look, "aria-label": t("walk.hand.answer") });
  const check = (event) => {
    event.preventDefault();
    const side = checkAnswer(task, input.value);
    if (side === 0) tell(true);
    else verdict.textContent = t(`walk.hand.${side === null ? "number" : side < 0 ? "small" : "large"}`);
  };
  return h(
    "form",
    { class: "comparison", onsubmit: check },
    at.steps[at.index].rows.length ? "=" : "[0] =",
    input,
    h("button", { id: "check" }, t("walk.hand.check")),
    h("button", { id: "show", type: "button", onclick: () => tell(false) }, t("walk.hand.show")),
    verdict,
  );
}

/** The checkbox that starts exercises, and the form for the answer. @param {Context} context @param {At} at */
export function exercise(context, at) {
  const { state, store, t } = context;
  const task = exerciseOf(at);
  if (!task) return null;
  const ask = checkbox("hand", t("walk.hand"), Boolean(state.hand), (on) => {
    solved.which = "";
    store.set({ hand: on ? 1 : 0 });
  });
  const given = Object.entries(task.given ?? {}).map(([name, values]) =>
    h("div", {}, `${name} = [${values.map(short).join(", ").replaceAll("−", "-")}]`),
  );
  if (!state.hand) return h("div", { class: "comparison" }, ask);
  const numbers = given.length > 0 && h("details", {}, h("summary", {}, t("walk.hand.given")), given);
  return h("div", { class: "comparison" }, ask, box(context, at, task), numbers);
}
