// One head as a matrix, lines or arcs; several over each other; and lines through all layers.

import { fixed, percent } from "../compute/number.js";
import { entropy } from "../compute/tensor.js";
import { arcsFigure, linesFigure } from "../figures/lines.js";
import { matrixFigure, MOST_WEIGHT } from "../figures/matrix.js";
import { placeControls, segments, slider } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { headChoice, layersFigure, superposed } from "../parts/superposed.js";
import { mayAttend } from "../state/source.js";

/** @typedef {import("../frame.js").Context} Context */

/** @param {Context} context */
const threshold = ({ state, store, t }) =>
  slider({
    ...{ id: "threshold", text: t("threshold"), range: [0, 0.5, 0.01], value: state.threshold },
    ...{ format: percent, set: (threshold) => store.set({ threshold }) },
  });

/**
 * The keys with the largest weights of the selected query.
 * @param {Context} context
 * @param {import("../compute/tensor.js").Tensor} weights
 */
function favourites({ about, state, store, source, kind, queries, keys, t }, { data, shape }) {
  const row = Array.from(data.subarray(state.query * shape[1], (state.query + 1) * shape[1]));
  const { layer, head, query } = state;
  const place = { kind: kind.kind, layer, head, query }; // also if it was not chosen: the walkthrough starts elsewhere
  const seen = row.filter((_, key) => mayAttend(kind, state.query, key)).length;
  const best = row
    .map((weight, key) => ({ weight, key }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 6);
  // The attention of an output token serves to predict the next one, which is easily overlooked.
  const next = kind.queries === "outputs" && about.wanted[state.query]?.text;
  return h(
    "aside",
    { class: "aside" },
    h("h2", {}, t("head.query", { token: queries[state.query].text })),
    next && h("p", { class: "soft" }, t("head.next", { next })),
    h(
      "ol",
      { class: "favourites" },
      best.map(({ weight, key }) =>
        h(
          "li",
          {},
          h(
            "button",
            { id: `favourite-${key}`, type: "button", onclick: () => store.set({ key }) },
            keys[key].text,
          ),
          h("meter", { min: 0, max: 1, value: weight, "aria-label": keys[key].text }),
          h("span", { class: "number" }, percent(weight)),
        ),
      ),
    ),
    source.precision().precision !== "top" &&
      h(
        "p",
        { class: "soft" },
        t("head.entropy", { bits: fixed(entropy(row), 2), most: fixed(Math.log2(seen), 2) }),
      ),
    h(
      "button",
      { id: "to-walk", type: "button", class: "primary", onclick: () => store.set({ ...place, screen: "walk", panel: "" }) },
      t("head.walk"),
    ),
  );
}

/** @type {import("../frame.js").Screen} */
export const head = {
  id: "head",
  sign: "◫",
  render: async (context) => {
    const { source, state, store, kind, queries, keys, t } = context;
    const { kind: name, layer, head: number } = state;
    const exact = source.precision().precision !== "top";
    const form = state.view === "matrix" && exact ? state.form : "weights";
    const weights = await source.matrix(name, layer, number, "weights");
    const matrix = form === "weights" ? weights : await source.matrix(name, layer, number, form);
    const say = (query, key) =>
      mayAttend(kind, query, key)
        ? `${queries[query].text} → ${keys[key].text}: ${fixed(matrix.data[query * keys.length + key], 3)}`
        : `${queries[query].text} → ${keys[key].text}: ${t("masked")}`;
    /** @type {import("../figures/matrix.js").Shown} */
    const shown = {
      matrix,
      most: form === "weights" ? MOST_WEIGHT : undefined,
      rows: queries.map((token) => token.text),
      columns: keys.map((token) => token.text),
      may: (query, key) => mayAttend(kind, query, key),
      row: state.query,
      column: state.key,
      threshold: state.threshold,
      say,
      pick: (query, key) => store.set({ query: Math.max(0, query), key }),
      label: `${t(`kind.${name}.title`)}, ${t("layer")} ${layer}, ${t("head.number")} ${number}`,
    };
    const lined = ["lines", "arcs"].includes(state.view);
    const several = lined ? await superposed(context) : null;
    if (several)
      Object.assign(shown, {
        superposed: several,
        sayOf: (head, query, key, weight) =>
          `${queries[query].text} → ${keys[key].text}: ${percent(weight)} · ${t("head.number")} ${head}`,
      });
    const drawers = { matrix: matrixFigure, lines: linesFigure, arcs: arcsFigure, layers: layersFigure };
    const figure = await drawers[state.view](context, shown);
    const views = ["matrix", "lines", ...(kind.queries === kind.keys ? ["arcs"] : []), "layers"];
    const choice = (value) => ({ value, text: t(`view.${value}`) });
    return {
      controls: [
        ...placeControls(context),
        segments(t("view"), views.map(choice), state.view, (view) => store.set({ view })),
        state.view === "matrix" &&
          exact &&
          segments(t("form"), ["weights", "scores"].map(choice), form, (value) => store.set({ form: value })),
        state.view !== "matrix" && headChoice(context),
        state.view !== "matrix" && threshold(context),
        state.view === "layers" && h("span", { class: "soft" }, t("layers.note")),
      ],
      body: h(
        "div",
        { class: state.view === "layers" ? "split below" : "split" },
        h("div", { class: "scroll" }, figure),
        favourites(context, weights),
      ),
      figure,
      table: {
        caption: shown.label,
        head: ["", ...shown.columns],
        rows: shown.rows.map((text, query) => [
          text,
          ...keys.map((_, key) =>
            mayAttend(kind, query, key) ? fixed(matrix.data[query * keys.length + key], 3) : "–",
          ),
        ]),
      },
    };
  },
};
