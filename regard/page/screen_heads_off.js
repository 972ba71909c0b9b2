// Heads switched off, one or many: what becomes of what the model says, and what each head is worth for it.

import { css, on, shade } from "./colour.js";
import { difference } from "./difference.js";
import { h, s } from "./dom.js";
import { figure, label, pressable, telling } from "./figure.js";
import { headsOff as off } from "./live.js";
import { fixed } from "./number.js";
import { ranked, shares } from "./shares.js";
import { furthest } from "./tensor.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {Record<string, number[][]>} Effects For each kind, layers by heads. */

const CELL = 34;
const GAP = 4;
const LEFT = 64;

/** @param {string} kind @param {number} layer @param {number} head */
const named = (kind, layer, head) => `${kind}.${layer}.${head}`;

/** @param {Context} context @param {string} name */
function toggle({ state, store }, name) {
  const names = state.off ? state.off.split(",") : [];
  const rest = names.filter((each) => each !== name);
  store.set({ off: (rest.length < names.length ? rest : [...names, name]).join(",") });
}

/**
 * One head: off or on, and its effect where that is known.
 * @param {Context} context
 * @param {{ kind: string, layer: number, head: number, x: number, y: number, effect?: number, most: number }} at
 */
function cell(context, { kind, layer, head, x, y, effect, most }) {
  const { palette, state, t, theme, tip } = context;
  const name = named(kind, layer, head);
  const isOff = state.off.split(",").includes(name);
  const colour = effect === undefined ? null : shade(effect, most, theme);
  const place = `${t(`kind.${kind}`)} · ${t("layer")} ${layer} · ${t("head.number")} ${head}`;
  const told = [
    place,
    t(isOff ? "off.is" : "off.on"),
    effect !== undefined && t("off.effect", { effect: fixed(effect, 3) }),
  ];
  const words = told.filter(Boolean).join(" · ");
  const drawn = s(
    "g",
    {
      id: `off-${name}`,
      "aria-pressed": String(isOff),
    },
    s("rect", {
      x,
      y,
      width: CELL,
      height: CELL,
      rx: 6,
      fill: colour ? css(colour) : isOff ? palette.paper : palette.raised,
      stroke: isOff ? palette.orange : palette.line,
      "stroke-width": isOff ? 2.5 : 1,
    }),
    isOff &&
      s("path", {
        d: `M${x + 9} ${y + 9}L${x + CELL - 9} ${y + CELL - 9}M${x + CELL - 9} ${y + 9}L${x + 9} ${y + CELL - 9}`,
        stroke: colour ? on(colour) : palette.orange,
        "stroke-width": 2.5,
        "stroke-linecap": "round",
      }),
    !isOff &&
      effect !== undefined &&
      label(fixed(effect, most < 1 ? 2 : 1), x + CELL / 2, y + CELL / 2, {
        "text-anchor": "middle",
        "font-size": 10.5,
        fill: colour ? on(colour) : palette.ink,
      }),
  );
  return pressable(telling(drawn, tip, words), words, () => toggle(context, name));
}

/**
 * All heads, a block a kind, the last layer on top as in Figure 1.
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
 * What a model said: a text, behind the beginning that a generator goes on from, or how likely each label is.
 * @param {Context} context
 * @param {any} outcome
 * @param {any} [before] What the intact model said.
 */
function said({ about, t }, { text, labels }, before = { text }) {
  if (labels) return shares(ranked(labels), t("classify.labels"));
  const prompt = about.architecture === "decoder" && h("span", { class: "soft" }, about.outputs?.text);
  const same = before.text === text;
  const marks = { same: "span", gone: "del", new: "ins" };
  const parts = same ? text : difference(before.text, text).map((part) => h(marks[part.change], {}, part.text));
  return h("p", { class: "rewritten", dir: "auto" }, prompt, parts);
}

/** @param {Context} context @param {any} answer */
function results(context, answer) {
  const { state, store, t } = context;
  const item = answer.items[0];
  const likely = (/** @type {number} */ value) =>
    h("p", { class: "soft number" }, t("off.log-prob", { value: fixed(value, 3) }));
  const same = !item?.labels && item?.text === answer.intact.text && h("span", { class: "tag" }, t("off.same"));
  return h(
    "aside",
    { class: "aside" },
    h("h2", {}, t("off.intact")),
    said(context, answer.intact),
    likely(answer.intact.log_prob),
    h("h2", {}, item ? [t("off.without", { count: off(state.off).length }), " ", same] : t("off.none")),
    item ? said(context, item, answer.intact) : h("p", { class: "soft" }, t("off.hint")),
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

/** @type {import("./frame.js").Screen} */
export const headsOff = {
  id: "off",
  sign: "⊘",
  render: async (context) => {
    const { about, live, state, store, t } = context;
    const lists = off(state.off).filter(({ kind, layer, head }) =>
      about.kinds.some((each) => each.kind === kind && layer < each.layers && head < each.heads),
    );
    const [answer, told] = await Promise.all([
      live.ablate(state, { interventions: lists.length ? [lists] : [] }),
      state.effects ? live.ablate(state, { effects: true }) : null,
    ]);
    /** @type {Effects | null} */
    const effects = told?.effects ?? null;
    const drawn = grid(context, effects);
    return {
      controls: [
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
          { id: "all-on", type: "button", disabled: !state.off, onclick: () => store.set({ off: "" }) },
          t("off.all-on"),
        ),
        h("span", { class: "soft" }, t(effects ? "off.effects.note" : "off.legend")),
      ],
      body: h(
        "div",
        { class: "split wide-aside" },
        h("div", { class: "scroll" }, drawn),
        results(context, answer),
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
