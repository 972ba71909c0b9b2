// One number of a step, worked out by the reader: what is asked, from which numbers, and whether an answer is right.

import { short } from "../compute/number.js";
import { before, exponentials, moments, rowsBefore, vectorBefore } from "../compute/substitute.js";
import { dot } from "../compute/tensor.js";
import { tick } from "./controls.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/substitute.js").At} At */
/** @typedef {(value: number) => number} Read How a number is read: as it is, or as it is written. */
/**
 * @typedef {object} Task
 * @property {(read: Read) => number} work
 * @property {Record<string, number[]>} [given] Numbers of which the line shows only the first.
 */

const SLIP = 0.005; // the share that rounding on the way may cost
let told = { which: "", right: false }; // the number that was found, or told on request

/** @type {Read} */
const exact = (value) => value;
/** @type {Read} */
const written = (value) => Number(short(value).replace("−", "-"));

/** @param {At} at @returns {Task | null} */
function normed({ about, steps, index }) {
  const from = vectorBefore(steps, index, "residual", "x");
  const { mean, variance } = moments(from);
  if (about.settings.norm === "rms") return null;
  return { work: (read) => (read(from[0]) - read(mean)) / Math.sqrt(read(variance)) };
}

/** @param {number[]} a @param {number[]} b @param {Record<string, number[]>} given */
const summed = (a, b, given) => ({ work: (read) => dot(a.map(read), b.map(read)), given });

/** @type {Record<string, (at: At) => Task | null>} */
const TASKS = {
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
  similarity: ({ about, steps, index, focus }) => {
    if (about.settings.similarity === "additive") return null;
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
  head: ({ steps, index }) => {
    const firsts = rowsBefore(steps, index, "v").map((row) => row[0]);
    const shares = vectorBefore(steps, index, "weights");
    return summed(shares, firsts, { weight: shares, "v[0]": firsts });
  },
  residual: ({ steps, index }) => {
    const added = vectorBefore(steps, index, "output", "cross", "feed-forward", "intervention")[0];
    return { work: (read) => read(steps[index].values[0] - added) + read(added) };
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

/** What there is to work out at a step; null where its numbers are not all on show. @param {At} at */
export const taskOf = (at) => TASKS[at.steps[at.index].name]?.(at) ?? null;

/**
 * How an answer compares: 0 where it is right, whether it was worked out from all digits or from those that are
 * written; else whether it is too small (-1) or too large (1). Null: it is no number.
 * @param {Task} task
 * @param {string} answer
 * @returns {-1 | 0 | 1 | null}
 */
export function judged({ work }, answer) {
  const given = Number(answer.trim().replace("−", "-").replace(",", "."));
  if (!answer.trim() || !Number.isFinite(given)) return null;
  const ends = [work(exact), work(written)];
  const most = Math.max(...ends.map(Math.abs));
  const unit = most >= 1000 ? 1 : most >= 100 ? 0.1 : most >= 10 ? 0.01 : 0.001; // the last sign of `short`
  const slack = unit + SLIP * most;
  if (given < Math.min(...ends) - slack) return -1;
  return given > Math.max(...ends) + slack ? 1 : 0;
}

/** Which number it is. @param {Context} context @param {At} at */
const named = ({ about, state }, { index, focus, query }) =>
  [about.hash, state.kind, state.layer, state.head, query, focus, index].join();

/** Whether the reader is to find the number. @param {Context} context @param {At} at */
const isSought = (context, at) =>
  Boolean(context.state.hand) && taskOf(at) !== null && told.which !== named(context, at);

/** Lines without the number that is to be found. @param {Context} context @param {At} at @param {string[]} lines */
export const openLines = (context, at, lines) =>
  lines.map((line, i) => isSought(context, at) && i === lines.length - 1 ? line.replace(/= [^=]*$/, "= ?") : line);

/** A text without the number that is to be found. @param {Context} context @param {At} at @param {string} text */
export function concealed(context, at, text) {
  if (!isSought(context, at)) return text;
  const sought = short(taskOf(at).work(exact)).replace(".", "\\.");
  return text.replace(new RegExp(`(?<![\\d.])${sought}(?!\\d)`, "g"), "?");
}

/**
 * Where the answer is written; when it is known, what it is.
 * @param {Context} context
 * @param {At} at
 * @param {Task} task
 */
function box(context, at, task) {
  const { store, t } = context;
  const value = short(task.work(exact));
  if (!isSought(context, at))
    return h("strong", { id: "verdict", role: "status" }, t(`walk.hand.${told.right ? "right" : "is"}`, { value }));
  const tell = (right) => {
    told = { which: named(context, at), right };
    void store.tell();
  };
  const verdict = h("span", { id: "verdict", role: "status" });
  const look = { id: "answer", type: "text", class: "brief", autocomplete: "off" };
  const input = h("input", { ...look, "aria-label": t("walk.hand.answer") });
  const check = (event) => {
    event.preventDefault();
    const side = judged(task, input.value);
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

/** The tick that asks for it, and the box for an answer. @param {Context} context @param {At} at */
export function byHand(context, at) {
  const { state, store, t } = context;
  const task = taskOf(at);
  if (!task) return null;
  const ask = tick("hand", t("walk.hand"), Boolean(state.hand), (on) => {
    told.which = "";
    store.set({ hand: on ? 1 : 0 });
  });
  const given = Object.entries(task.given ?? {}).map(([name, values]) =>
    h("div", {}, `${name} = [${values.map(short).join(", ").replaceAll("−", "-")}]`),
  );
  return h(
    "div",
    { class: "comparison" },
    ask,
    state.hand && box(context, at, task),
    state.hand && given.length > 0 && h("details", {}, h("summary", {}, t("walk.hand.given")), given),
  );
}
