// Experiments: claims about the Transformer, whether they hold, and the numbers.

import { short } from "../compute/number.js";
import { across, chart, legend } from "../figures/chart.js";
import { stack } from "../figures/svg.js";
import { segments, dataTable } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { request } from "../state/requests.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {{ en: string, zh: string }} Both */
/** @typedef {{ mean: number | null, low: number | null, high: number | null }} PerSeed */
/** @typedef {string | Both} Label A symbol such as d_k is the same in both languages. */
/** @typedef {Label | number | PerSeed | null} Cell */
/**
 * @typedef {object} Experiment
 * @property {string} name
 * @property {Both} claim
 * @property {number[]} seeds
 * @property {{ name: Label, columns: Label[], rows: Cell[][] }[]} tables
 * @property {Chart[]} charts
 * @property {{ holds: boolean, seen: Both }[]} verdict
 *
 * @typedef {object} Chart
 * @property {Label} name
 * @property {Label} x_name
 * @property {boolean} log_x
 * @property {boolean} log_y
 * @property {{ name: Label, x: number[], y: PerSeed[] }[]} lines
 */

/**
 * A formatted cell; for several seeds, their mean and range.
 * @param {Cell} cell
 * @param {string} lang
 * @returns {string}
 */
export function formatCell(cell, lang) {
  if (cell === null) return "–";
  if (typeof cell === "string") return cell;
  if (typeof cell === "object" && "en" in cell) return cell[lang];
  if (typeof cell === "number") return Number.isInteger(cell) ? String(cell) : brief(cell);
  if (cell.mean === null) return "–";
  if (cell.low === cell.high) return formatCell(cell.mean, lang);
  return `${brief(cell.mean)} (${brief(cell.low)} – ${brief(cell.high)})`;
}

/** @param {number | null} value */
const brief = (value) => (value && Math.abs(value) < 0.001 ? value.toExponential(1) : short(value));

/** The means of a line's points. @param {Chart["lines"][number]} line @returns {[number, number][]} */
const points = ({ x, y }) =>
  x.flatMap((place, i) => {
    const mean = y[i].mean;
    return mean === null ? [] : [[place, mean]];
  });

/**
 * The range of a line's seeds; undefined if there is only one.
 * @param {Chart["lines"][number]} line
 * @returns {[number, number, number][] | undefined}
 */
function band({ x, y }) {
  /** @type {[number, number, number][]} */
  const ends = x.flatMap((place, i) => {
    const { low, high } = y[i];
    return low === null || high === null ? [] : [[place, low, high]];
  });
  return ends.some(([, low, high]) => low !== high) ? ends : undefined;
}

/** @param {Context} context @param {Experiment} experiment */
function drawn(context, { name, charts }) {
  const [width, { lang }] = [across(640), context.state];
  return stack(
    charts.flatMap((each) => {
      const lines = each.lines.map((line) => ({
        name: formatCell(line.name, lang),
        points: points(line),
        band: band(line),
      }));
      const [title, along] = [formatCell(each.name, lang), formatCell(each.x_name, lang)];
      const { log_x: logX, log_y: logY } = each;
      return [
        chart(context, { title, across: along, lines, width, height: 260, logX, logY }),
        legend(context, lines, width),
      ];
    }),
    name,
  );
}

/** @param {Context} context @param {Experiment} experiment */
function verdict({ state, t }, { verdict: judgements }) {
  return h(
    "ul",
    { class: "verdict" },
    judgements.map(({ holds, seen }) =>
      h(
        "li",
        { class: holds ? "holds" : "fails" },
        h("strong", {}, t(holds ? "experiments.holds" : "experiments.fails")),
        h("span", {}, formatCell(seen, state.lang)),
      ),
    ),
  );
}

/** All numbers of the tables and charts, one per row. @param {Context} context @param {Experiment} experiment */
function listed({ state, t }, { name, tables, charts }) {
  const say = (cell) => formatCell(cell, state.lang);
  return {
    caption: t(`experiments.name.${name}`),
    head: [t("table"), t("experiments.row"), t("experiments.column"), t("experiments.value")],
    rows: [
      ...tables.flatMap((each) =>
        each.rows.flatMap(([first, ...rest]) =>
          rest.map((cell, i) => [each.name, first, each.columns[i + 1], cell].map(say)),
        ),
      ),
      ...charts.flatMap((each) =>
        each.lines.flatMap((line) => line.x.map((x, i) => [each.name, line.name, x, line.y[i]].map(say))),
      ),
    ],
  };
}

/** @type {import("../frame.js").Screen} */
export const experiments = {
  id: "experiments",
  sign: "⚗",
  alone: true,
  render: async (context) => {
    const { server, state, store, t } = context;
    /** @type {Experiment[]} */
    const all = await server.once("experiments", async () =>
      (await (await request("/api/v1/experiments")).json()).experiments,
    );
    const chosen = all.find((each) => each.name === state.experiment) ?? all[0];
    const say = (cell) => formatCell(cell, state.lang);
    const picture = chosen.charts.length ? drawn(context, chosen) : undefined;
    return {
      controls: [
        segments(
          t("experiments"),
          all.map(({ name }) => ({ value: name, text: t(`experiments.name.${name}`) })),
          chosen.name,
          (experiment) => store.set({ experiment }),
        ),
      ],
      body: h(
        "div",
        { class: "experiment" },
        h("p", { class: "claim" }, say(chosen.claim)),
        verdict(context, chosen),
        picture && h("div", { class: "scroll" }, picture),
        chosen.seeds.length > 1 && h("p", { class: "soft" }, t("experiments.seeds", { count: chosen.seeds.length })),
        chosen.tables.map(({ name, columns, rows }) =>
          dataTable({ caption: say(name), head: columns.map(say), rows: rows.map((row) => row.map(say)) }),
        ),
        h("p", { class: "soft" }, t("experiments.run"), " ", h("code", {}, `regard experiment ${chosen.name}`)),
      ),
      figure: picture,
      table: listed(context, chosen),
    };
  },
};
