// What the model said, token after token: candidates, doubt, where it looked, what each layer would say.

import { css, on, shade } from "./colour.js";
import { h } from "./dom.js";
import { scalars } from "./vectors.js";
import { stacked } from "./figure.js";
import { force, forced } from "./forcing.js";
import { fixed, percent } from "./number.js";
import { at } from "./tensor.js";

/** @typedef {import("./frame.js").Context} Context */

let playing = 0;

/** Go on by itself, or stop. @param {Context} context */
function play({ store }) {
  if (playing) {
    clearInterval(playing);
    playing = 0;
    return store.tell();
  }
  playing = setInterval(() => {
    const { state, about } = store;
    const last = (about.outputs?.tokens.length ?? 1) - 1;
    if (state.screen !== "steps" || state.step >= last) {
      clearInterval(playing);
      playing = 0;
      return store.tell();
    }
    store.set({ step: state.step + 1 });
  }, 900);
  store.tell();
}

/** @param {Context} context @param {number} by */
const turn = ({ state, store }, by) => store.set({ step: Math.max(0, state.step + by) });

/**
 * All steps in a row, each as tall as it was sure.
 * @param {Context} context
 * @param {import("./source.js").Said[]} all
 */
function skyline({ state, store, t }, all) {
  return h(
    "div",
    { class: "skyline scroll", role: "group", "aria-label": t("steps") },
    all.map((step, i) =>
      h(
        "button",
        {
          id: `step-${i}`,
          type: "button",
          "aria-current": i === state.step && "step",
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

/** @param {Context} context @param {import("./source.js").Said} step */
function lens({ t, theme }, step) {
  const rows = step.lens.map((layer, i) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, `${i + 1}`),
      layer.candidates.map((each) => {
        const colour = shade(each.probability, 1, theme);
        return h(
          "td",
          { style: { "background-color": css(colour), color: on(colour) } },
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

/** Where the model looked as it said this. @param {Context} context @param {number} row */
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
            class: `read${ahead ? " ahead" : ""}`,
            title: percent(weights[i]),
            style: ahead ? {} : { "background-color": css(colour), color: on(colour) },
          },
          token.text,
        );
      });
      return [
        h(
          "h3",
          {},
          `${t(`kind.${kind.kind}.title`)} · ${t("layer")} ${layer + 1}`,
          ` · ${t("head.number")} ${state.head + 1}`,
        ),
        h("p", { class: "reading" }, words),
      ];
    }),
  );
  return strips.flat();
}

/** @type {import("./frame.js").Screen} */
export const steps = {
  id: "steps",
  sign: "⇥",
  keys: { ArrowLeft: (context) => turn(context, -1), ArrowRight: (context) => turn(context, 1), " ": play },
  render: async (context) => {
    const { about, live, source, t } = context;
    const all = await source.steps();
    const number = Math.min(context.state.step, all.length - 1);
    const before = (/** @type {number} */ row) => about.wanted.slice(0, row).map((each) => each.id);
    const step = all[number];
    const chosen = step.candidates.findIndex((each) => each.id === step.chosen?.id);
    const shown = step.candidates.map((each) => ({
      text: each.text,
      value: each.probability,
    }));
    const figure = stacked(
      [
        scalars(context, {
          rows: shown.map((each) => each.text),
          values: shown.map((each) => each.value),
          selected: chosen,
          most: 1,
          written: shown.map((each) => percent(each.value)),
          caption: t(live ? "steps.choose" : "steps.candidates"),
          pick: live ? (row) => force(context, [...before(number), step.candidates[row].id]) : undefined,
        }),
      ],
      t("steps.candidates"),
    );
    const after = step.after === null ? t("steps.label") : t("steps.after", { token: step.after });
    const controls = [
      h(
        "button",
        { id: "back", type: "button", disabled: number === 0, onclick: () => turn(context, -1) },
        "◀ ",
        t("back"),
      ),
      h(
        "button",
        { id: "play", type: "button", "aria-pressed": String(playing > 0), onclick: () => play(context) },
        playing ? "❚❚ " : "▶ ",
        t(playing ? "pause" : "play"),
      ),
      h(
        "button",
        { id: "next", type: "button", disabled: number >= all.length - 1, onclick: () => turn(context, 1) },
        t("next"),
        " ▶",
      ),
      h("span", { class: "soft" }, t("steps.of", { step: number + 1, steps: all.length })),
      live && forced(context),
    ];
    const sure = step.chosen
      ? t("steps.chose", { token: step.chosen.text, share: percent(step.chosen.probability) })
      : t("steps.open");
    return {
      controls: all.length > 1 ? controls : [],
      body: h(
        "div",
        { class: "steps" },
        all.length > 1 && skyline({ ...context, state: { ...context.state, step: number } }, all),
        h(
          "div",
          { class: "split even" },
          h(
            "section",
            {},
            h("h2", {}, after),
            h(
              "p",
              {},
              sure,
              " ",
              h(
                "span",
                { class: "soft" },
                t("steps.entropy", { bits: fixed(step.entropy, 2) }),
                " ",
                t("steps.rest", { rest: percent(step.rest) }),
              ),
            ),
            h("div", { class: "scroll" }, figure),
          ),
          h(
            "section",
            {},
            h("h2", {}, t("steps.lens")),
            h("p", { class: "soft" }, t("steps.lens.note")),
            h("div", { class: "scroll" }, lens(context, step)),
            step.after === null ? [] : await looking(context, number),
          ),
        ),
      ),
      figure,
      table: {
        caption: after,
        head: [t("candidate"), t("probability"), "logit"],
        rows: step.candidates.map((each) => [each.text, percent(each.probability), fixed(each.logit, 3)]),
      },
    };
  },
};
