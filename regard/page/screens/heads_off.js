// Interventions: heads switched off or changed, tokens masked; their effect on the output.

import { hasScale } from "../compute/attention.js";
import { fixed } from "../compute/number.js";
import { furthest } from "../compute/tensor.js";
import { diff } from "../compute/text.js";
import { on, shade } from "../figures/colour.js";
import { figure, label, asButton, withTip } from "../figures/svg.js";
import { segments, checkbox } from "../parts/controls.js";
import { h, s } from "../parts/dom.js";
import { ranked, shares } from "../parts/lists.js";
import { changes } from "../state/server.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {Record<string, number[][]>} Effects By kind: layers by heads. */

const CELL = 34;
const GAP = 4;
const LEFT = 64;

const OPS = ["off", "uniform", "skip"];

/**
 * The names of a head's interventions in the address.
 * @param {string} kind
 * @param {number} layer
 * @param {number} head
 * @returns {Record<string, string>}
 */
const named = (kind, layer, head) => ({
  off: `${kind}.${layer}.${head}`,
  uniform: `uniform.${kind}.${layer}.${head}`,
  skip: `skip.${kind}.${layer}`,
});

/** Symbols of the interventions: crossed out, level, bypassed. @type {Record<string, string>} */
const SIGNS = { off: "M9 9L25 25M25 9L9 25", uniform: "M9 13H25M9 21H25", skip: "M7 25C7 7 27 7 27 25" };

/**
 * Add an entry to a list in the address, or remove it.
 * @param {string} list
 * @param {string} name
 * @param {string[]} [instead] Those that it cannot be together with.
 */
function toggled(list, name, instead = []) {
  const names = list ? list.split(",") : [];
  const rest = names.filter((each) => each !== name && !instead.includes(each));
  return (names.includes(name) ? rest : [...rest, name]).join(",");
}

/**
 * One head with its intervention, and its effect if known.
 * @param {Context} context
 * @param {{ kind: string, layer: number, head: number, x: number, y: number, effect?: number, most: number }} at
 */
function cell(context, { kind, layer, head, x, y, effect, most }) {
  const { palette, state, store, t, theme, tip } = context;
  const names = named(kind, layer, head);
  const listed = state.off.split(",");
  const op = OPS.find((each) => listed.includes(names[each]));
  const colour = effect === undefined ? null : shade(effect, most, theme);
  const place = `${t(`kind.${kind}`)} · ${t("layer")} ${layer} · ${t("head.number")} ${head}`;
  const facts = [
    place,
    t(op ? `off.is.${op}` : "off.on"),
    effect !== undefined && t("off.effect", { effect: fixed(effect, 3) }),
  ];
  const words = facts.filter(Boolean).join(" · ");
  const drawn = s(
    "g",
    { id: `off-${names.off}`, "aria-pressed": String(Boolean(op)) },
    s("rect", {
      x,
      y,
      width: CELL,
      height: CELL,
      rx: 6,
      fill: colour ? colour : op ? palette.paper : palette.raised,
      stroke: op ? palette.orange : palette.line,
      "stroke-width": op ? 2.5 : 1,
    }),
    op &&
      s("path", {
        d: SIGNS[op],
        transform: `translate(${x} ${y})`,
        fill: "none",
        stroke: colour ? on(colour) : palette.orange,
        "stroke-width": 2.5,
        "stroke-linecap": "round",
      }),
    !op &&
      effect !== undefined &&
      label(fixed(effect, most < 1 ? 2 : 1), x + CELL / 2, y + CELL / 2, {
        "text-anchor": "middle",
        "font-size": 10.5,
        fill: colour ? on(colour) : palette.ink,
      }),
  );
  return asButton(withTip(drawn, tip, words), words, () =>
    store.set({ off: toggled(state.off, names[state.op] ?? names.off, OPS.map((each) => names[each])) }),
  );
}

/**
 * All heads, a block per kind, with the last layer on top as in Figure 1 of the paper.
 * @param {Context} context
 * @param {Effects | null} effects
 */
function grid(context, effects) {
  const { about, palette, t } = context;
  const most = effects ? furthest(Object.values(effects).flat(2)) : 1;
  let y = 0;
  const blocks = about.kinds.map(({ kind, layers, heads }) => {
    const top = y + 24;
    y = top + layers * (CELL + GAP) + 14;
    const rows = Array.from({ length: layers }, (_, layer) => {
      const line = top + (layers - 1 - layer) * (CELL + GAP);
      return [
        label(`${t("layer")} ${layer}`, LEFT - 8, line + CELL / 2, {
          "text-anchor": "end",
          "font-size": 12,
          fill: palette.soft,
        }),
        ...Array.from({ length: heads }, (_, head) =>
          cell(context, {
            kind,
            layer,
            head,
            x: LEFT + head * (CELL + GAP),
            y: line,
            effect: effects?.[kind]?.[layer]?.[head],
            most,
          }),
        ),
      ];
    });
    const title = label(t(`kind.${kind}.title`), LEFT, top - 12, {
      "font-size": 13,
      "font-weight": 600,
      fill: palette.ink,
    });
    return [title, ...rows.flat()];
  });
  const widest = Math.max(...about.kinds.map((each) => each.heads));
  const width = Math.max(LEFT + widest * (CELL + GAP) + 4, LEFT + 220);
  return figure(width, y, t("off"), blocks.flat());
}

/**
 * The output of a model: a text (after the prompt, for a generator), or the probability of each label.
 * @param {Context} context
 * @param {any} outcome
 * @param {any} [before] The output of the original model.
 */
function output({ about, t }, { text, labels }, before = { text }) {
  if (labels) return shares(ranked(labels), t("classify.labels"));
  const prompt = about.architecture === "decoder" && h("span", { class: "soft" }, about.outputs?.text);
  const same = before.text === text;
  const marks = { same: "span", gone: "del", new: "ins" };
  const parts = same ? text : diff(before.text, text).map((part) => h(marks[part.change], {}, part.text));
  return h("p", { class: "rewritten", dir: "auto" }, prompt, parts);
}

/** The input tokens as buttons that mask them; one always stays. @param {Context} context */
function tokens({ about, state, store, t }) {
  if (!about.inputs) return null;
  const dropped = state.drop.split(",");
  const left = about.inputs.tokens.filter((_, i) => !dropped.includes(`${i}`)).length;
  const chips = about.inputs.tokens.map(({ text }, i) => {
    const is = dropped.includes(`${i}`);
    const drop = () => store.set({ drop: toggled(state.drop, `${i}`) });
    const look = { class: "chip", disabled: !is && left < 2, "aria-pressed": String(is), onclick: drop };
    return h("button", { id: `drop-${i}`, type: "button", ...look }, is ? h("del", {}, text) : text);
  });
  const look = { class: "chips", role: "group", "aria-label": t("off.drop") };
  return h("div", {}, h("p", { class: "soft" }, t("off.drop")), h("div", look, chips));
}

/** @param {Context} context @param {any} answer @param {number} count */
function results(context, answer, count) {
  const { store, t } = context;
  const item = answer.items[0];
  const likely = (value) => h("p", { class: "soft number" }, t("off.log-prob", { value: fixed(value, 3) }));
  const same = !item?.labels && item?.text === answer.intact.text && h("span", { class: "tag" }, t("off.same"));
  return h(
    "aside",
    { class: "aside" },
    h("h2", {}, t("off.intact")),
    output(context, answer.intact),
    likely(answer.intact.log_prob),
    h("h2", {}, item ? [t("off.without", { count }), " ", same] : t("off.none")),
    item ? output(context, item, answer.intact) : h("p", { class: "soft" }, t("off.hint")),
    item && likely(item.log_prob),
    item &&
      h(
        "p",
        { class: "soft" },
        t("off.of-intact", { change: fixed(item.log_prob_of_intact - answer.intact.log_prob, 3) }),
      ),
    item &&
      h(
        "button",
        { id: "beside", type: "button", onclick: () => store.set({ screen: "compare", beside: "off" }) },
        t("off.compare"),
      ),
  );
}

/** @type {import("../frame.js").Screen} */
export const headsOff = {
  id: "off",
  sign: "⊘",
  render: async (context) => {
    const { about, server, state, store, t } = context;
    const list = changes(state, about);
    const without = (name) =>
      checkbox(name, t(`off.${name}`), state.off.split(",").includes(name), () =>
        store.set({ off: toggled(state.off, name) }),
      );
    const [answer, measured] = await Promise.all([
      server.ablate(state, { interventions: list.length ? [list] : [] }),
      state.effects ? server.ablate(state, { effects: true }) : null,
    ]);
    /** @type {Effects | null} */
    const effects = measured?.effects ?? null;
    const drawn = grid(context, effects);
    return {
      controls: [
        segments(
          t("off.op"),
          OPS.map((value) => ({ value, text: t(`off.op.${value}`) })),
          state.op,
          (op) => store.set({ op }),
        ),
        hasScale(about.settings) && without("no-scale"),
        about.settings.positions !== "none" && without("no-positions"),
        h(
          "button",
          {
            id: "effects",
            type: "button",
            "aria-pressed": String(Boolean(state.effects)),
            onclick: () => store.set({ effects: state.effects ? 0 : 1 }),
          },
          t("off.effects"),
        ),
        h(
          "button",
          { id: "all-on", type: "button", disabled: !list.length, onclick: () => store.set({ off: "", drop: "" }) },
          t("off.all-on"),
        ),
        h("span", { class: "soft" }, t(effects ? "off.effects.note" : "off.legend")),
      ],
      body: h(
        "div",
        { class: "steps" },
        tokens(context),
        h(
          "div",
          { class: "split wide-aside" },
          h("div", { class: "scroll" }, drawn),
          results(context, answer, list.length),
        ),
      ),
      figure: drawn,
      table: effects
        ? {
            caption: t("off.effects"),
            head: [t("kind"), t("layer"), t("head.number"), t("off.change")],
            rows: Object.entries(effects).flatMap(([kind, layers]) =>
              layers.flatMap((heads, layer) =>
                heads.map((effect, head) => [t(`kind.${kind}.title`), layer, head, fixed(effect, 3)]),
              ),
            ),
          }
        : undefined,
    };
  },
};
