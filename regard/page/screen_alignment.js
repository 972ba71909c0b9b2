// Which word comes from which, by words rather than by tokens, and which words nothing comes from.

import { segments } from "./controls.js";
import { h } from "./dom.js";
import { readGold, scored } from "./gold.js";
import { linesFigure } from "./line_figures.js";
import { matrixFigure } from "./matrix_figure.js";
import { fixed, percent } from "./number.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {import("./source.js").Alignment} Alignment */

/**
 * @param {Context} context
 * @param {Alignment} aligned
 * @param {import("./gold.js").Gold} gold
 * @returns {import("./matrix_figure.js").Shown}
 */
function shownOf({ kind, state, store, t }, { inputs, outputs, shares }, gold) {
  const name = (/** @type {import("./source.js").Word} */ { text }, /** @type {number} */ i) =>
    state.gold ? `${i} ${text}` : text;
  const here = outputs.findIndex((word) => word.first <= state.query && state.query <= word.last);
  return {
    matrix: { data: Float32Array.from(shares.flat()), shape: [outputs.length, inputs.length] },
    rows: outputs.map(name),
    columns: inputs.map(name),
    marks: [...gold.possible].map((link) => {
      const [column, row] = link.split("-").map(Number);
      return { row, column, sure: gold.sure.has(link) };
    }),
    may: () => true,
    threshold: state.threshold,
    row: kind.queries === "outputs" ? here : -1,
    column: -1,
    pick: (row) => store.set({ kind: "cross", query: outputs[Math.max(0, row)].first, key: -1 }),
    say: (row, column) =>
      `${outputs[row].text} ← ${inputs[column].text}: ${percent(shares[row][column])} · ${column}-${row}`,
    told: t("alignment"),
  };
}

/**
 * How much was taken from each word.
 * @param {Context} context
 * @param {Alignment} aligned
 * @param {import("./gold.js").Gold} gold
 */
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
 * Where links that are known to be right are pasted, and the error rate by them.
 * @param {Context} context
 * @param {Alignment} aligned
 * @param {import("./gold.js").Gold} gold
 */
function goldOf({ state, store, t }, { links }, gold) {
  const score = scored(links, gold);
  const shares = score && Object.fromEntries(Object.entries(score).map(([name, value]) => [name, fixed(value, 3)]));
  const told = gold.wrong
    ? t("alignment.gold.wrong", { link: gold.wrong })
    : shares
      ? t("alignment.gold.score", shares)
      : t("alignment.gold.note");
  const set = (/** @type {Event} */ { target }) =>
    store.set({ gold: /** @type {HTMLInputElement} */ (target).value.trim() });
  const look = { id: "gold", type: "text", value: state.gold, placeholder: "0-0 1-2 2p1" };
  return h(
    "div",
    { class: "gold" },
    h("h2", {}, t("alignment.gold")),
    h("input", { ...look, "aria-label": t("alignment.gold"), onchange: set }),
    h("p", { class: "soft", role: "status" }, told),
  );
}

/** @type {import("./frame.js").Screen} */
export const alignment = {
  id: "alignment",
  sign: "⇄",
  task: "translate",
  render: async (context) => {
    const { source, state, store, t } = context;
    const aligned = await source.alignment();
    if (!aligned) return { body: h("p", { class: "empty" }, t("alignment.none")) };
    const { inputs, outputs, shares, links } = aligned;
    const gold = readGold(state.gold, inputs.length, outputs.length);
    const view = state.view === "lines" ? "lines" : "matrix";
    const views = ["matrix", "lines"].map((value) => ({ value, text: t(`view.${value}`) }));
    const figure = (view === "lines" ? linesFigure : matrixFigure)(context, shownOf(context, aligned, gold));
    const row = (/** @type {[number, number]} */ [input, output]) => [
      outputs[output].text,
      inputs[input].text,
      percent(shares[output][input]),
    ];
    return {
      controls: [segments(t("view"), views, view, (value) => store.set({ view: value }))],
      body: h("div", { class: "split" }, h("div", { class: "scroll" }, figure), coverageOf(context, aligned, gold)),
      figure,
      table: {
        caption: t("alignment"),
        head: [t("outputs"), t("inputs"), t("share")],
        rows: links.map(row),
      },
    };
  },
};
