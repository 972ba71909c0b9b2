// Influence on one output token by several measures: values, agreement and deletion curves.

import { fixed } from "../compute/number.js";
import { furthest } from "../compute/tensor.js";
import { across, chart, legend } from "../figures/chart.js";
import { matrixFigure } from "../figures/matrix.js";
import { label, stack } from "../figures/svg.js";
import { h } from "../parts/dom.js";
import { convergenceNote } from "../parts/lists.js";
import { writingKind, writtenStrip } from "../parts/strips.js";
import { describeError, soon } from "../state/requests.js";
import { skyline } from "./steps.js";

/** @typedef {import("../frame.js").Context} Context */

const ROW = 20; // least height of a row, so that every measure has its name

/**
 * A matrix below a title, as a part of a figure.
 * @param {Context} context
 * @param {string} title
 * @param {string[]} rows
 * @param {string[]} columns
 * @param {number[][]} values
 * @param {(row: number, column: number) => string} say
 * @param {Partial<import("../figures/matrix.js").Shown>} [more]
 */
function titled(context, title, rows, columns, values, say, more = {}) {
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
    least: ROW,
    ...more,
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

/** What is shown while the measures are computed. @param {Context} context */
function computing({ t }) {
  return h("div", { class: "computing", role: "status" }, h("progress", {}), h("p", { class: "soft" }, t("influence.wait")));
}

/**
 * The selected key, if it is one of the tokens that were read.
 * @param {Context} context
 * @param {{ place: number }[]} tokens
 */
function selectedColumn(context, tokens) {
  const { about, state } = context;
  if (!writingKind(context)) return tokens.findIndex(({ place }) => place === state.query); // of a label
  if (state.key < 0 || writingKind(context) !== context.kind) return -1;
  const first = context.kind.keys === "inputs" ? 0 : (about.inputs?.tokens.length ?? 0);
  return tokens.findIndex(({ place }) => place === first + state.key);
}

/** @type {import("../frame.js").Screen} */
export const influence = {
  id: "influence",
  sign: "⇝",
  strip: (context) => writtenStrip(context),
  render: async (context) => {
    const { about, source, state, store, t } = context;
    const all = (await source.steps()).filter((step) => step.chosen);
    const row = Math.min(state.step, all.length - 1);
    if (row < 0) return { body: h("p", { class: "empty" }, t("influence.none")) };
    const waiting = computing(context);
    const again = () => store.state.screen === "influence" && store.notify();
    const told = (problem) => waiting.replaceChildren(h("p", { class: "problem" }, describeError(problem, t).message));
    const found = await soon(source.influences(row).then((measures) => ({ measures })), again, told);
    const towers = all.length > 1 && skyline(context, all, row);
    if (!found) return { body: h("div", { class: "steps" }, towers, waiting) };
    if (!found.measures) return { body: h("p", { class: "empty" }, t("influence.none")) };
    const { measures } = found;
    const tokens = readBefore(context, row);
    const names = Object.keys(measures.methods).map((name) => t(`influence.${name}`));
    const each = Object.values(measures.methods);
    const at = (values) => tokens.map(({ place }) => (place < 0 ? 0 : values[place]));
    /** @type {import("../figures/chart.js").Line[]} */
    const lines = each.map(({ curve }, i) => ({
      name: names[i],
      points: curve.map((value, x) => ([measures.masked[x], value])),
    }));
    const wide = across(900);
    const shares = each.map(({ values }) => at(values).map((value) => value / furthest(values)));
    const texts = tokens.map(({ text }) => text);
    const title = t("influence.of", { token: all[row].chosen?.text ?? "" });
    const gap = tokens.findIndex(({ place }) => place < 0);
    const before = t(about.inputs ? "influence.before" : "influence.prompt");
    const groups =
      gap < 0
        ? [{ name: about.outputs ? before : t("inputs"), from: 0, to: tokens.length }]
        : [
            { name: t("inputs"), from: 0, to: gap },
            { name: before, from: gap + 1, to: tokens.length },
          ];
    const drawn = stack(
      [
        ...titled(
          context,
          title,
          names,
          texts,
          shares,
          (i, column) =>
            tokens[column].place < 0 ? "" : `${names[i]} · ${texts[column]} · ${fixed(at(each[i].values)[column], 3)}`,
          { plain: true, groups, column: selectedColumn(context, tokens) },
        ),
        chart(context, { title: t("influence.deletion"), across: t("influence.masked"), lines, width: wide }),
        legend(context, lines, wide),
        ...titled(context, t("influence.agreement"), names, names, measures.agreement, (i, column) =>
          `${names[i]} · ${names[column]} · ${fixed(measures.agreement[i][column], 2)}`,
        ),
      ],
      t("influence"),
    );
    return {
      controls: [
        h("span", { class: "soft" }, t("influence.legend"), " ", convergenceNote(t, measures.convergence)),
      ],
      body: h(
        "div",
        { class: "steps" },
        towers,
        h("div", { class: "scroll" }, drawn),
      ),
      figure: drawn,
      heard: title,
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
