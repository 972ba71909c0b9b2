// The output token by token: candidates, entropy, attention, and the logit lens.

import { fixed, percent } from "../compute/number.js";
import { at } from "../compute/tensor.js";
import { BESIDE, scalars } from "../figures/bars.js";
import { across } from "../figures/chart.js";
import { on, shade } from "../figures/colour.js";
import { stack } from "../figures/svg.js";
import { forceOutput, forcedNotice } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { influence } from "../parts/lists.js";
import { writtenStrip } from "../parts/strips.js";
import { Player } from "../parts/player.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/source.js").Prediction} Prediction */

const player = new Player("steps", "step", 900);

/**
 * All steps as bars whose height is the probability.
 * @param {Context} context
 * @param {Prediction[]} all
 * @param {number} current
 */
export function skyline({ store, t }, all, current) {
  return h(
    "div",
    { class: "skyline scroll", role: "group", "aria-label": t("steps") },
    all.map((step, i) =>
      h(
        "button",
        {
          id: `step-${i}`,
          type: "button",
          "aria-current": i === current && "step",
          "aria-label": step.chosen
            ? `${step.chosen.text} ${percent(step.chosen.probability)}`
            : t("steps.open"),
          onclick: () => store.set({ step: i }),
        },
        h(
          "span",
          { class: "tower" },
          h("span", { class: "fill", style: { height: `${100 * (step.chosen?.probability ?? 0)}%` } }),
        ),
        h("span", { class: "chosen" }, step.chosen?.text ?? "…"),
      ),
    ),
  );
}

/** @param {Context} context @param {Prediction} step */
function lens({ t, theme }, step) {
  const rows = step.lens.map((layer, i) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, `${i}`),
      layer.candidates.map((each) => {
        const colour = shade(each.probability, 1, theme);
        return h(
          "td",
          { style: { "background-color": colour, color: on(colour) } },
          each.text,
          h("span", { class: "number" }, ` ${percent(each.probability)}`),
        );
      }),
      h("td", { class: "number" }, layer.chosen === null ? "–" : percent(layer.chosen)),
    ),
  );
  return h(
    "table",
    { class: "lens" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", {}, t("layer")),
        h("th", { colspan: 3 }, t("steps.would")),
        h("th", {}, step.chosen ? `“${step.chosen.text}”` : ""),
      ),
    ),
    h("tbody", {}, rows.reverse()),
  );
}

/** The attention when this token was predicted. @param {Context} context @param {number} row */
async function looking({ about, source, state, theme, t }, row) {
  const kinds = about.kinds.filter((kind) => kind.queries === "outputs");
  const strips = await Promise.all(
    kinds.map(async (kind) => {
      const layer = kind.kind === state.kind ? state.layer : kind.layers - 1;
      const weights = at(await source.matrix(kind.kind, layer, state.head, "weights"), row).data;
      const words = about[kind.keys].tokens.map((token, i) => {
        const colour = shade(weights[i], 1, theme);
        const ahead = kind.causal && i > row;
        return h(
          "span",
          {
            class: `read${ahead ? " ahead" : ""}${kind.kind === state.kind && i === state.key ? " looked-at" : ""}`,
            title: percent(weights[i]),
            style: ahead ? {} : { "background-color": colour, color: on(colour) },
          },
          token.text,
        );
      });
      return [
        h(
          "h3",
          {},
          `${t(`kind.${kind.kind}.title`)} · ${t("layer")} ${layer}`,
          ` · ${t("head.number")} ${state.head}`,
        ),
        h("p", { class: "reading" }, words),
      ];
    }),
  );
  return strips.flat();
}

/**
 * The candidates as bars; at a server, a click continues from one.
 * @param {Context} context
 * @param {Prediction} step
 * @param {number} number
 */
function candidates(context, { candidates: found, chosen }, number) {
  const { about, server, t } = context;
  const free = server && about.inputs && about.outputs; // encoder-only and decoder-only models have no search
  const caption = t(free ? "steps.choose" : "steps.candidates");
  const before = about.wanted.slice(0, number).map((each) => each.id);
  const part = scalars(context, {
    rows: found.map((each) => each.text),
    values: found.map((each) => each.probability),
    written: found.map((each) => percent(each.probability)),
    selected: found.findIndex((each) => each.id === chosen?.id),
    most: 1,
    across: across(BESIDE + 340) - BESIDE, // the font size stays the same on a phone
    caption,
    pick: free ? (row) => forceOutput(context, [...before, found[row].id]) : undefined,
  });
  return stack([part], caption);
}

/** The tokens' influence on the label, if known. @param {Context} context @param {Prediction} step */
async function why(context, step) {
  const found = await context.source.influence(0);
  const { tokens } = context.about.inputs;
  return found ? h("section", { class: "why" }, influence(context, step.chosen?.text ?? "", tokens, found)) : null;
}

/** The chosen token and its probability. @param {Context} context @param {Prediction} step */
function came({ t }, { after, chosen }) {
  const words = after === null ? "steps.labelled" : "steps.chose";
  return chosen ? t(words, { token: chosen.text, share: percent(chosen.probability) }) : t("steps.open");
}

/** The same, with the entropy. @param {Context} context @param {Prediction} step */
function verdict(context, step) {
  const { t } = context;
  const { entropy, rest } = step;
  const doubt =
    entropy === null || rest === null
      ? []
      : [t("steps.entropy", { bits: fixed(entropy, 2) }), t("steps.rest", { rest: percent(rest) })];
  return h("p", {}, came(context, step), " ", h("span", { class: "soft" }, doubt.join(" ")));
}

/** @type {import("../frame.js").Screen} */
export const steps = {
  id: "steps",
  sign: "⇥",
  named: ({ about, server, state }) => {
    const labels = server ? server.model(state).task === "classify" : about.architecture === "encoder";
    return labels ? "label" : "steps";
  },
  keys: player.keys,
  moves: (context, by) => player.moves(context, by),
  strip: (context) => writtenStrip(context),
  render: async (context) => {
    const { source, state, t } = context;
    const all = await source.steps();
    player.names = all.map((_, i) => i);
    const number = player.place(state);
    const step = all[number];
    const figure = candidates(context, step, number);
    const after = step.after === null ? t("steps.label") : t("steps.after", { token: step.after });
    const of = h("span", { class: "soft" }, t("steps.of", { step: number + 1, steps: all.length }));
    const summary = h(
      "section",
      {},
      h("h2", {}, after),
      verdict(context, step),
      h("div", { class: "scroll" }, figure),
    );
    const inside = h(
      "section",
      {},
      h("h2", {}, t("steps.lens")),
      h("p", { class: "soft" }, t("steps.lens.note")),
      h("div", { class: "scroll" }, lens(context, step)),
      step.after === null ? [] : await looking(context, number),
    );
    return {
      controls: all.length > 1 ? [...player.buttons(context), of, context.server && forcedNotice(context)] : [],
      body: h(
        "div",
        { class: "steps" },
        all.length > 1 && skyline(context, all, number),
        h("div", { class: "split even" }, summary, inside),
        step.after === null && (await why(context, step)),
      ),
      figure,
      heard: came(context, step),
      table: {
        caption: after,
        head: [t("candidate"), t("probability"), "logit"],
        rows: step.candidates.map((each) => [each.text, percent(each.probability), fixed(each.logit, 3)]),
      },
    };
  },
};
