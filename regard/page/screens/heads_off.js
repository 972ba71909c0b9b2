// Interventions: heads switched off or changed, tokens masked; their effect on the output.

import { hasScale } from "../compute/attention.js";
import { fixed } from "../compute/number.js";
import { furthest } from "../compute/tensor.js";
import { changesOf } from "../compute/text.js";
import { room } from "../figures/chart.js";
import { on, shade } from "../figures/colour.js";
import { legendOf } from "../figures/matrix.js";
import { figure, label, asButton, withTip } from "../figures/svg.js";
import { segments, checkbox } from "../parts/controls.js";
import { h, s } from "../parts/dom.js";
import { ranked, shares } from "../parts/lists.js";
import { describeError, soon } from "../state/requests.js";
import { changes } from "../state/server.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {Record<string, number[][]>} Effects By kind: layers by heads. */

const CELL = { least: 34, most: 44 };
const GAP = 4;
const ASIDE = 340; // width of the outputs beside the heads
const BETWEEN = 34; // between two columns of heads
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
 * @param {{ kind: string, layer: number, head: number, x: number, y: number, size: number, effect?: number, most: number }} at
 */
function cell(context, { kind, layer, head, x, y, size, effect, most }) {
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
      width: size,
      height: size,
      rx: 6,
      fill: colour ? colour : op ? palette.paper : palette.raised,
      stroke: op ? palette.orange : palette.line,
      "stroke-width": op ? 2.5 : 1,
    }),
    op &&
      s("path", {
        d: SIGNS[op],
        transform: `translate(${x} ${y}) scale(${size / 34})`,
        fill: "none",
        stroke: colour ? on(colour) : palette.orange,
        "stroke-width": 2.5,
        "stroke-linecap": "round",
      }),
    !op &&
      effect !== undefined &&
      label(effectText(effect), x + size / 2, y + size / 2, {
        "text-anchor": "middle",
        "font-size": 10.5,
        fill: colour ? on(colour) : palette.ink,
      }),
  );
  return asButton(withTip(drawn, tip, words), words, () =>
    store.set({ off: toggled(state.off, names[state.op] ?? names.off, OPS.map((each) => names[each])) }),
  );
}

/** An effect with at least one digit that is not 0, if three decimals have one. @param {number} effect */
export const effectText = (effect) => fixed(effect, Math.abs(effect) < 0.095 ? 3 : Math.abs(effect) < 9.95 ? 2 : 1);

/** One kind of attention: a row for each layer. @param {Context} context @param {any} at */
function block(context, { kind, layers, heads }, { x, y, size, effects, most }) {
  const { palette, t } = context;
  const text = { "font-size": 12, fill: palette.soft };
  const rows = Array.from({ length: layers }, (_, layer) => {
    const line = y + 24 + (layers - 1 - layer) * (size + GAP);
    return [
      label(`${t("layer")} ${layer}`, x + LEFT - 8, line + size / 2, { ...text, "text-anchor": "end" }),
      ...Array.from({ length: heads }, (_, head) => {
        const effect = effects?.[kind]?.[layer]?.[head];
        return cell(context, { kind, layer, head, x: x + LEFT + head * (size + GAP), y: line, size, effect, most });
      }),
    ];
  });
  const look = { "font-size": 13, "font-weight": 600, fill: palette.ink };
  return [label(t(`kind.${kind}.title`), x + LEFT, y + 12, look), ...rows.flat()];
}

/**
 * All heads, a block per kind, with the last layer on top as in Figure 1 of the paper: the encoder at the left if
 * there is room for two columns.
 * @param {Context} context
 * @param {Effects | null} effects
 */
function grid(context, effects) {
  const { about, palette, t, theme } = context;
  const most = effects ? furthest(Object.values(effects).flat(2)) : 1;
  const { kinds } = about;
  const widest = Math.max(...kinds.map((each) => each.heads));
  const width = (size) => LEFT + widest * (size + GAP);
  const place = innerWidth > 1000 ? room() - ASIDE : room(); // below, the outputs stand under the heads
  const two = kinds.length > 2 && 2 * width(CELL.least) + BETWEEN <= place;
  const fits = Math.floor(((two ? (place - BETWEEN) / 2 : place) - LEFT) / widest) - GAP;
  const size = Math.max(CELL.least, Math.min(CELL.most, fits));
  const columns = two ? [kinds.slice(0, 1), kinds.slice(1)] : [kinds];
  const heights = columns.map(() => 0);
  const blocks = columns.flatMap((column, i) =>
    column.flatMap((kind) => {
      const at = { x: i * (width(size) + BETWEEN), y: heights[i], size, effects, most };
      heights[i] += 24 + kind.layers * (size + GAP) + 14;
      return block(context, kind, at);
    }),
  );
  const height = Math.max(...heights);
  const scale = effects && s("g", { transform: `translate(${LEFT} ${height})` }, legendOf(most, true, theme, palette));
  const across = columns.length * width(size) + (columns.length - 1) * BETWEEN;
  return figure(Math.max(across, LEFT + 220), height + (effects ? 30 : 0), t("off"), [...blocks, scale]);
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
  /** @type {Record<string, "span" | "del" | "ins">} */
  const marks = { same: "span", gone: "del", new: "ins" };
  const parts = changesOf(before.text, text).map((part) => h(marks[part.change], {}, part.text));
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
    const legend = h("span", { id: "off-legend", class: "soft", role: "status" });
    const again = () => store.state.screen === "off" && store.notify();
    const failed = (problem) => (legend.textContent = describeError(problem, t).message);
    const [answer, measured] = await Promise.all([
      server.ablate(state, { interventions: list.length ? [list] : [] }),
      state.effects ? soon(server.ablate(state, { effects: true }), again, failed) : null,
    ]);
    /** @type {Effects | null} */
    const effects = measured?.effects ?? null;
    legend.textContent ||= t(effects ? "off.effects.note" : state.effects ? "off.effects.wait" : "off.legend");
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
        legend,
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
