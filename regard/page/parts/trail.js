// Where a screen is in Figure 1: a small map and the way there, from the whole model inwards. Each part leads back.

import { layoutOf, stackOfBlock } from "../compute/figure_one.js";
import { boxOfStage } from "../compute/path.js";
import { boxName, miniature } from "../figures/figure_one.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../frame.js").Screen} Screen */
/** @typedef {{ text: string, changes: Partial<import("../state/store.js").State> | null }} Crumb The current one has no changes. */

const HOME = "model";
/** Screens that are places of some boxes, or of the attention that is selected; the others are about the whole model. */
const PLACES = { steps: ["softmax"], beam: ["softmax"], alignment: ["cross"] };
const OF_HEAD = ["head", "walk"];
const OF_ATTENTION = ["map", "compare"];

/**
 * The boxes of Figure 1 that a screen shows; empty: all.
 * @param {string} screen
 * @param {import("../state/store.js").State} state
 * @param {import("../compute/figure_one.js").Model} model
 * @returns {string[]}
 */
export function boxesOfScreen(screen, state, model) {
  const { boxes } = layoutOf(model);
  const ids = (test) => boxes.filter(test).map(({ id }) => id);
  if (screen === HOME) return state.box ? [state.box] : [];
  if (screen === "follow") return [boxOfStage(model, state.stage)];
  if (OF_HEAD.includes(screen)) return [state.kind];
  if (OF_ATTENTION.includes(screen)) return ids(({ type }) => type === "attention");
  if (screen === "positions") return ids(({ type }) => ["embedding", "position"].includes(type));
  return PLACES[screen] ?? [];
}

/**
 * The way to a screen.
 * @param {Context} context
 * @param {import("../compute/figure_one.js").Model} model
 * @param {string} title Of the screen.
 * @returns {Crumb[]}
 */
export function crumbs(context, model, title) {
  const { state, t } = context;
  const { screen, kind, layer, head } = state;
  const { boxes } = layoutOf(model);
  /** @type {Crumb} */
  const home = { text: t("model"), changes: { screen: HOME, box: "" } };
  const named = (id) => boxName(context, model, boxes.find((box) => box.id === id) ?? boxes[0]);
  const within = (id) => {
    const block = boxes.find((box) => box.id === id)?.block;
    if (!block) return [];
    const stack = stackOfBlock(block);
    const shown = stackOfBlock(kind) === stack ? layer : Math.min(layer, model.sizes[`${stack}_layers`] - 1);
    return [{ text: `${t(`figure.${stack}.stack`)} ${t("figure.layer", { layer: shown })}`, changes: { screen: HOME, box: "" } }];
  };
  const open = (id) => ({ text: named(id), changes: { screen: HOME, box: id } });
  const end = { text: title, changes: null };
  if (screen === HOME) return state.box ? [home, ...within(state.box), { ...open(state.box), changes: null }] : [{ ...home, changes: null }];
  if (OF_HEAD.includes(screen)) {
    const here = { text: `${t("head.number")} ${head}`, changes: screen === "head" ? null : { screen: "head" } };
    return [home, ...within(kind), open(kind), here, ...(screen === "walk" ? [end] : [])];
  }
  const places = boxesOfScreen(screen, state, model);
  return [home, ...(PLACES[screen] && boxes.some(({ id }) => id === places[0]) ? [open(places[0])] : []), end];
}

/** What Figure 1 depends on: the trace, or the model alone. @param {Context} context */
const modelOf = ({ about, server, state }) => about ?? server.description(state);

/** The change of the state that leads one step out; null at the whole model. @param {Context} context */
export const outwards = (context) => crumbs(context, modelOf(context), "").findLast(({ changes }) => changes)?.changes ?? null;

/**
 * The head of a screen: the map, the way there, the title and a note.
 * @param {Context} context
 * @param {string} title
 * @param {string} note
 */
export function heading(context, title, note) {
  const { state, store, t } = context;
  const model = modelOf(context);
  const out = outwards(context);
  const way = crumbs(context, model, title).filter(({ text, changes }) => changes || text !== title);
  const crumb = ({ text, changes }, i) =>
    changes
      ? h("button", { id: `crumb-${i}`, type: "button", onclick: () => store.set(changes) }, text)
      : h("span", { "aria-current": "location" }, text);
  const map = h(
    "button",
    {
      ...{ id: "zoom-out", type: "button", class: "mini", title: t("figure.out"), "aria-label": t("figure.out") },
      ...{ disabled: !out, onclick: () => out && store.set(out) },
    },
    miniature(context, model, boxesOfScreen(state.screen, state, model)),
  );
  const places = h("ol", {}, way.map((each, i) => h("li", {}, crumb(each, i))));
  return h(
    "div",
    { class: "head" },
    h("nav", { class: "trail", "aria-label": t("figure.trail") }, map, places),
    h("h1", {}, title),
    h("p", { class: "note soft" }, note),
  );
}
