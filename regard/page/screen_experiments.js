// Claims about the Transformer that were run: what is claimed, whether it held, and the numbers.

import { ask } from "./asking.js";
import { across, chart, legend } from "./chart.js";
import { segments, tableOf } from "./controls.js";
import { h } from "./dom.js";
import { stacked } from "./figure.js";
import { short } from "./number.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {{ en: string, zh: string }} Both */
/** @typedef {{ mean: number | null, low: number | null, high: number | null }} PerSeed */
/** @typedef {string | number | PerSeed | null} Cell */
/**
 * @typedef {object} Experiment
 * @property {string} name
 * @property {Both} claim
 * @property {number[]} seeds
 * @property {{ name: string, columns: string[], rows: Cell[][] }[]} tables
 * @property {Chart[]} charts
 * @property {{ holds: boolean, seen: Both }[]} verdict
 *
 * @typedef {object} Chart
 * @property {string} name
 * @property {string} x_name
 * @property {boolean} log_x
 * @property {boolean} log_y
 * @property {{ name: string, x: number[], y: PerSeed[] }[]} lines
 */

/**
 * A cell as one reads it: of several seeds the mean, and how far they go.
 * @param {Cell} cell
 * @returns {string}
 */
export function told(cell) {
  if (cell === null) return "–";
  if (typeof cell === "string") return cell;
  if (typeof cell === "number") return Number.isInteger(cell) ? String(cell) : brief(cell);
  if (cell.mean === null) return "–";
  if (cell.low === cell.high) return told(cell.mean);
  return `${brief(cell.mean)} (${brief(cell.low)} – ${brief(cell.high)})`;
}

/** @param {number | null} value */
const brief = (value) => (value && Math.abs(value) < 0.001 ? value.toExponential(1) : short(value));

/** The means of a line, where there is one. @param {Chart["lines"][number]} line */
const points = ({ x, y }) =>
  x.flatMap((place, i) => {
    const mean = y[i].mean;
    return mean === null ? [] : [/** @type {[number, number]} */ ([place, mean])];
  });

/** @param {Context} context @param {Experiment} experiment */
function drawn(context, { name, charts }) {
  const width = across(640);
  return stacked(
    charts.flatMap((each) => {
      const lines = each.lines.map((line) => ({ name: line.name, points: points(line) }));
      const { name: title, x_name, log_x: logX, log_y: logY } = each;
      return [
        chart(context, { title, across: x_name, lines, width, height: 260, logX, logY }),
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
        h("span", {}, seen[/** @type {"en"} */ (state.lang)]),
      ),
    ),
  );
}

/** @type {import("./frame.js").Screen} */
export const experiments = {
  id: "experiments",
  sign: "⚗",
  alone: true,
  render: async (context) => {
    const { live, state, store, t } = context;
    /** @type {Experiment[]} */
    const all = await live.once("experiments", async () =>
      (await (await ask("/api/v1/experiments")).json()).experiments,
    );
    const chosen = all.find((each) => each.name === state.experiment) ?? all[0];
    const picture = chosen.charts.length ? drawn(context, chosen) : undefined;
    return {
      controls: [
        segments(
          t("experiments"),
          all.map(({ name }) => ({ value: name, text: name })),
          chosen.name,
          (experiment) => store.set({ experiment }),
        ),
      ],
      body: h(
        "div",
        { class: "experiment" },
        h("p", { class: "claim" }, chosen.claim[/** @type {"en"} */ (state.lang)]),
        verdict(context, chosen),
        picture && h("div", { class: "scroll" }, picture),
        chosen.tables.map(({ name, columns, rows }) =>
          tableOf({ caption: name, head: columns, rows: rows.map((row) => row.map(told)) }),
        ),
        h("p", { class: "soft" }, t("experiments.run"), " ", h("code", {}, `regard experiment ${chosen.name}`)),
      ),
      figure: picture,
    };
  },
};
