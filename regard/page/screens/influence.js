// Influence on one output token by several measures: values, agreement and deletion curves.

import { fixed } from "../compute/number.js";
import { furthest } from "../compute/tensor.js";
import { across, chart, legend } from "../figures/chart.js";
import { matrixFigure } from "../figures/matrix.js";
import { label, stack } from "../figures/svg.js";
import { h } from "../parts/dom.js";
import { convergenceNote } from "../parts/lists.js";
import { skyline } from "./steps.js";

/** @typedef {import("../frame.js").Context} Context */

/**
 * A matrix below a title, as a part of a figure.
 * @param {Context} context
 * @param {string} title
 * @param {string[]} rows
 * @param {string[]} columns
 * @param {number[][]} values
 * @param {(row: number, column: number) => string} say
 */
function titled(context, title, rows, columns, values, say) {
  const drawn = matrixFigure(context, {
    matrix: { data: Float32Array.from(values.flat()), shape: [rows.length, columns.length] },
    rows,
    columns,
    may: (_, column) => columns[column] !== "", // the gap between inputs and outputs
    row: -1,
    column: -1,
    pick: () => {},
    say,
    label: title,
  });
  drawn.removeAttribute("tabindex");
  const [width, height] = ["width", "height"].map((side) => Number(drawn.getAttribute(side)));
  const look = { "font-size": 13, "font-weight": 600, fill: context.palette.ink };
  return [{ node: label(title, 0, 10, look), width: 0, height: 12 }, { node: drawn, width, height }];
}

/**
 * The tokens and the indices of their values, with an empty one between inputs and outputs.
 * @param {Context} context
 * @param {number} row
 */
function readBefore({ about }, row) {
  const inputs = about.inputs?.tokens ?? [];
  const written = about.outputs?.tokens.slice(0, row + 1) ?? [];
  const gap = inputs.length && written.length ? [{ text: "", place: -1 }] : [];
  const placed = (tokens, first) => tokens.map(({ text }, i) => ({ text, place: first + i }));
  return [...placed(inputs, 0), ...gap, ...placed(written, inputs.length)];
}

/** @type {import("../frame.js").Screen} */
export const influence = {
  id: "influence",
  sign: "⇝",
  render: async (context) => {
    const { source, state, t } = context;
    const all = (await source.steps()).filter((step) => step.chosen);
    const row = Math.min(state.step, all.length - 1);
    const found = row < 0 ? null : await source.influences(row);
    if (!found) return { body: h("p", { class: "empty" }, t("influence.none")) };
    const tokens = readBefore(context, row);
    const names = Object.keys(found.methods).map((name) => t(`influence.${name}`));
    const each = Object.values(found.methods);
    const at = (values) => tokens.map(({ place }) => (place < 0 ? 0 : values[place]));
    const lines = each.map(({ curve }, i) => ({
      name: names[i],
      points: curve.map((value, x) => ([found.masked[x], value])),
    }));
    const wide = across(700);
    const shares = each.map(({ values }) => at(values).map((value) => value / furthest(values)));
    const texts = tokens.map(({ text }) => text);
    const title = t("influence.of", { token: all[row].chosen?.text ?? "" });
    const drawn = stack(
      [
        ...titled(context, title, names, texts, shares, (i, column) =>
          tokens[column].place < 0 ? "" : `${names[i]} · ${texts[column]} · ${fixed(at(each[i].values)[column], 3)}`,
        ),
        chart(context, { title: t("influence.deletion"), across: t("influence.masked"), lines, width: wide }),
        legend(context, lines, wide),
        ...titled(context, t("influence.agreement"), names, names, found.agreement, (i, column) =>
          `${names[i]} · ${names[column]} · ${fixed(found.agreement[i][column], 2)}`,
        ),
      ],
      t("influence"),
    );
    return {
      controls: [
        h("span", { class: "soft" }, t("influence.legend"), " ", convergenceNote(t, found.convergence)),
      ],
      body: h(
        "div",
        { class: "steps" },
        all.length > 1 && skyline(context, all, row),
        h("div", { class: "scroll" }, drawn),
      ),
      figure: drawn,
      table: {
        caption: title,
        head: ["", ...names],
        rows: tokens
          .filter(({ place }) => place >= 0)
          .map(({ text, place }) => [text, ...each.map(({ values }) => fixed(values[place], 3))]),
      },
    };
  },
};
