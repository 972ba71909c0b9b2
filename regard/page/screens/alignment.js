// Alignment of words: which word comes from which, untranslated words, and the error rate against a reference.

import { fixed, percent } from "../compute/number.js";
import { linesFigure } from "../figures/lines.js";
import { matrixFigure, MOST_WEIGHT } from "../figures/matrix.js";
import { segments } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { readStrip, selectedOutput, writingKind } from "../parts/strips.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/source.js").Alignment} Alignment */
/** @typedef {{ sure: Set<string>, possible: Set<string>, wrong: string }} Gold Links `1-2`; the first invalid one. */

/** The index of a token's word; -1: none. @param {import("../state/source.js").Word[]} words @param {number} token */
const wordOf = (words, token) => words.findIndex(({ first, last }) => first <= token && token <= last);

/** The selected word and its row of the matrix, on the tokens. @param {Context} context */
async function strip(context) {
  const { about, source } = context;
  const aligned = await source.alignment();
  if (!aligned) return readStrip(context);
  const query = selectedOutput(context);
  const shares = aligned.shares[wordOf(aligned.outputs, query)];
  const row = shares ? about.inputs.tokens.map((_, i) => shares[wordOf(aligned.inputs, i)] ?? 0) : null;
  const kind = about.kinds.find((each) => each.kind === "cross") ?? writingKind(context);
  return { kind, query, row, written: true };
}

/**
 * @param {Context} context
 * @param {Alignment} aligned
 * @param {Gold} gold
 * @returns {import("../figures/matrix.js").Shown}
 */
function shownOf(context, { inputs, outputs, shares }, gold) {
  const { state, store, t } = context;
  const name = ({ text }, i) => state.gold ? `${i} ${text}` : text;
  const here = wordOf(outputs, selectedOutput(context));
  return {
    matrix: { data: Float32Array.from(shares.flat()), shape: [outputs.length, inputs.length] },
    most: MOST_WEIGHT,
    rows: outputs.map(name),
    columns: inputs.map(name),
    marks: [...gold.possible].map((link) => {
      const [column, row] = link.split("-").map(Number);
      return { row, column, sure: gold.sure.has(link) };
    }),
    may: () => true,
    threshold: state.threshold,
    row: here,
    column: -1,
    pick: (row) => store.set({ kind: "cross", query: outputs[Math.max(0, row)].first, key: -1 }),
    say: (row, column) =>
      `${outputs[row].text} ← ${inputs[column].text}: ${percent(shares[row][column])} · ${column}-${row}`,
    label: t("alignment"),
  };
}

/** The coverage of each input word. @param {Context} context @param {Alignment} aligned @param {Gold} gold */
function coverageOf(context, aligned, gold) {
  const { t } = context;
  const { inputs, coverage, untouched, heads, measured } = aligned;
  const most = Math.max(1, ...coverage);
  const named = heads.map(([layer, head]) => `${layer}.${head}`).join(", ");
  const tag = () => h("span", { class: "tag" }, t("alignment.untouched"));
  const words = inputs.map(({ text }, i) =>
    h(
      "li",
      { class: untouched.includes(i) ? "untouched" : "" },
      h("span", {}, text, untouched.includes(i) && tag()),
      h("meter", { min: 0, max: most, value: coverage[i], "aria-label": text }),
      h("span", { class: "number" }, fixed(coverage[i], 2)),
    ),
  );
  return h(
    "aside",
    { class: "aside" },
    h("h2", {}, t("alignment.coverage")),
    h("p", { class: "soft" }, t("alignment.coverage.note")),
    h("ol", { class: "favourites" }, words),
    h("p", { class: "soft" }, t(measured ? "alignment.measured" : "alignment.usual", { heads: named })),
    goldOf(context, aligned, gold),
  );
}

/**
 * The field for reference links, and the error rate against them.
 * @param {Context} context
 * @param {Alignment} aligned
 * @param {Gold} gold
 */
function goldOf({ state, store, t }, { links }, gold) {
  const score = alignmentScore(links, gold);
  const shares = score && Object.fromEntries(Object.entries(score).map(([name, value]) => [name, fixed(value, 3)]));
  const message = gold.wrong
    ? t("alignment.gold.wrong", { link: gold.wrong })
    : shares
      ? t("alignment.gold.score", shares)
      : t("alignment.gold.note");
  const set = ({ target }) => store.set({ gold: target.value.trim() });
  const look = { id: "gold", type: "text", value: state.gold, placeholder: "0-0 1-2 2p1" };
  return h(
    "div",
    { class: "gold" },
    h("h2", {}, t("alignment.gold")),
    h("input", { ...look, "aria-label": t("alignment.gold"), onchange: set }),
    h("p", { class: "soft", role: "status" }, message),
  );
}

/** @type {import("../frame.js").Screen} */
export const alignment = {
  id: "alignment",
  sign: "⇄",
  task: "translate",
  strip,
  render: async (context) => {
    const { source, state, store, t } = context;
    const aligned = await source.alignment();
    if (!aligned) return { body: h("p", { class: "empty" }, t("alignment.none")) };
    const { inputs, outputs, shares, links } = aligned;
    const gold = parseLinks(state.gold, inputs.length, outputs.length);
    const view = state.view === "lines" ? "lines" : "matrix";
    const views = ["matrix", "lines"].map((value) => ({ value, text: t(`view.${value}`) }));
    const figure = (view === "lines" ? linesFigure : matrixFigure)(context, shownOf(context, aligned, gold));
    const row = ([input, output]) => [outputs[output].text, inputs[input].text, percent(shares[output][input])];
    return {
      controls: [segments(t("view"), views, view, (value) => store.set({ view: value }))],
      body: h("div", { class: "split" }, h("div", { class: "scroll" }, figure), coverageOf(context, aligned, gold)),
      figure,
      table: { caption: t("alignment"), head: [t("outputs"), t("inputs"), t("share")], rows: links.map(row) },
    };
  },
};

/**
 * Parse links such as `0-0 1-2 2p1`; p or ? marks a possible link.
 * @param {string} text
 * @param {number} inputs How many words there are.
 * @param {number} outputs
 * @returns {Gold}
 */
export function parseLinks(text, inputs, outputs) {
  const gold = { sure: new Set(), possible: new Set(), wrong: "" };
  for (const each of text.split(/\s+/).filter(Boolean)) {
    const [, input, sign, output] = /^(\d+)([-p?])(\d+)$/.exec(each) ?? [];
    if (!sign || Number(input) >= inputs || Number(output) >= outputs) return { ...gold, wrong: each };
    const link = `${Number(input)}-${Number(output)}`;
    if (sign === "-") gold.sure.add(link);
    gold.possible.add(link);
  }
  return gold;
}

/**
 * Precision, recall and the alignment error rate (Och and Ney, 2003); null without sure links.
 * @param {[number, number][]} links
 * @param {Gold} gold
 */
export function alignmentScore(links, { sure, possible }) {
  const found = new Set(links.map((link) => link.join("-")));
  const both = (known) => [...found].filter((link) => known.has(link)).length;
  if (!found.size || !sure.size) return null;
  return {
    precision: both(possible) / found.size,
    recall: both(sure) / sure.size,
    errors: 1 - (both(sure) + both(possible)) / (found.size + sure.size),
  };
}
