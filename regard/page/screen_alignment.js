// Which word comes from which, by words rather than by tokens, and which words nothing comes from.

import { linesFigure, matrixFigure } from "./attention_figures.js";
import { segments } from "./controls.js";
import { h } from "./dom.js";
import { fixed, percent } from "./number.js";

/** @type {import("./frame.js").Screen} */
export const alignment = {
  id: "alignment",
  sign: "⇄",
  render: async (context) => {
    const { source, state, store, t } = context;
    const aligned = await source.alignment();
    if (!aligned) return { body: h("p", { class: "empty" }, t("alignment.none")) };
    const { inputs, outputs, shares, links, coverage, untouched, heads } = aligned;
    const wordOf = (/** @type {number} */ token) =>
      outputs.findIndex((word) => word.first <= token && token <= word.last);
    const lines = state.view === "lines";
    /** @type {import("./attention_figures.js").Shown} */
    const shown = {
      matrix: { data: Float32Array.from(shares.flat()), shape: [outputs.length, inputs.length] },
      rows: outputs.map((word) => word.text),
      columns: inputs.map((word) => word.text),
      may: () => true,
      threshold: state.threshold,
      row: context.kind.queries === "outputs" ? wordOf(state.query) : -1,
      column: -1,
      pick: (row) => store.set({ kind: "cross", query: outputs[Math.max(0, row)].first, key: -1 }),
      say: (row, column) => `${outputs[row].text} ← ${inputs[column].text}: ${percent(shares[row][column])}`,
      told: t("alignment"),
    };
    const figure = (lines ? linesFigure : matrixFigure)(context, shown);
    const named = heads.map(([layer, head]) => `${layer + 1}.${head + 1}`).join(", ");
    return {
      controls: [
        segments(
          t("view"),
          ["matrix", "lines"].map((value) => ({ value, text: t(`view.${value}`) })),
          lines ? "lines" : "matrix",
          (view) => store.set({ view }),
        ),
      ],
      body: h(
        "div",
        { class: "split" },
        h("div", { class: "scroll" }, figure),
        h(
          "aside",
          { class: "aside" },
          h("h2", {}, t("alignment.coverage")),
          h("p", { class: "soft" }, t("alignment.coverage.note")),
          h(
            "ol",
            { class: "favourites" },
            inputs.map((word, i) =>
              h(
                "li",
                { class: untouched.includes(i) ? "untouched" : "" },
                h(
                  "span",
                  {},
                  word.text,
                  untouched.includes(i) && h("span", { class: "tag" }, t("alignment.untouched")),
                ),
                h("meter", {
                  min: 0,
                  max: Math.max(1, ...coverage),
                  value: coverage[i],
                  "aria-label": word.text,
                }),
                h("span", { class: "number" }, fixed(coverage[i], 2)),
              ),
            ),
          ),
          h(
            "p",
            { class: "soft" },
            t(aligned.measured ? "alignment.measured" : "alignment.usual", { heads: named }),
          ),
        ),
      ),
      figure,
      table: {
        caption: t("alignment"),
        head: [t("outputs"), t("inputs"), t("share")],
        rows: links.map(([input, output]) => [
          outputs[output].text,
          inputs[input].text,
          percent(shares[output][input]),
        ]),
      },
    };
  },
};
