// Controls that several screens share.

import { NEW_TEXT, toKind } from "../state/store.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */

/**
 * Buttons of which one is pressed.
 * @param {string} name For screen readers.
 * @param {{ value: string, text: string, title?: string }[]} choices
 * @param {string} chosen
 * @param {(value: string) => void} choose
 */
export function segments(name, choices, chosen, choose) {
  return h(
    "div",
    { class: "segments", role: "group", "aria-label": name },
    choices.map(({ value, text, title }) =>
      h(
        "button",
        {
          id: `choose-${value}`,
          type: "button",
          title,
          "aria-pressed": String(value === chosen),
          onclick: () => choose(value),
        },
        text,
      ),
    ),
  );
}

/**
 * A number with buttons − and +.
 * @param {string} name
 * @param {string} id
 * @param {number} value
 * @param {number} count
 * @param {(value: number) => void} set
 */
export function stepper(name, id, value, count, set) {
  const button = (sign, by) =>
    h(
      "button",
      {
        id: `${id}${sign}`,
        type: "button",
        "aria-label": `${name} ${sign}`,
        disabled: value + by < 0 || value + by >= count,
        onclick: () => set(value + by),
      },
      sign,
    );
  return h(
    "div",
    { class: "stepper", role: "group", "aria-label": name },
    h("span", { class: "stepper-name" }, name),
    button("−", -1),
    h("output", {}, `${value}`, h("span", { class: "soft" }, ` (0–${count - 1})`)),
    button("+", 1),
  );
}

/** Controls for kind of attention, layer and head. @param {Context} context */
export function placeControls({ state, store, about, kind, t }) {
  return [
    segments(
      t("kind"),
      about.kinds.map((each) => ({
        value: each.kind,
        text: t(`kind.${each.kind}`),
        title: t(`kind.${each.kind}.title`),
      })),
      state.kind,
      (value) => store.set(toKind(state, value)),
    ),
    stepper(t("layer"), "layer", state.layer, kind.layers, (layer) => store.set({ layer })),
    stepper(t("head.number"), "head", state.head, kind.heads, (head) => store.set({ head })),
  ];
}

/**
 * A slider.
 * @param {object} given
 * @param {string} given.id
 * @param {string} given.text
 * @param {string} [given.title]
 * @param {number[]} given.range Minimum, maximum and step.
 * @param {number} given.value
 * @param {(value: number) => string} given.format
 * @param {(value: number) => void} [given.slide] Called on every move.
 * @param {(value: number) => void} [given.set] Called when the slider is released.
 */
export function slider({ id, text, title, range: [min, max, step], value, format, slide, set }) {
  const output = h("output", {}, format(value));
  const of = (event) => Number(event.target.value);
  return h(
    "label",
    { class: "slider", title },
    text,
    h("input", {
      ...{ id, type: "range", min, max, step, value },
      oninput: (event) => {
        output.textContent = format(of(event));
        slide?.(of(event));
      },
      onchange: (event) => set?.(of(event)),
    }),
    output,
  );
}

/**
 * A checkbox with its label.
 * @param {string} id
 * @param {string} text
 * @param {boolean} on
 * @param {(on: boolean) => void} set
 */
export function checkbox(id, text, on, set) {
  return h(
    "label",
    { class: "tick" },
    h("input", { id, type: "checkbox", checked: on, onchange: (event) => set(event.target.checked) }),
    text,
  );
}

/**
 * The numbers of a figure as a table.
 * @param {{ caption: string, head: string[], rows: (string | number)[][] }} table
 */
export function dataTable({ caption, head, rows }) {
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
      h(
        "tbody",
        {},
        rows.map(([first, ...rest]) =>
          h("tr", {}, h("th", { scope: "row" }, String(first)), rest.map((value) => h("td", {}, String(value)))),
        ),
      ),
    ),
  );
}

/** Choice of model and direction; nothing if there is only one. @param {Context} context */
export function modelPicker({ server, state, store, t }) {
  const { ways } = server;
  const chosen = server.way(state);
  if (ways.length < 2) return [];
  const named = new Intl.DisplayNames([state.lang], { type: "language" });
  const several = server.models.length > 1;
  const translates = (model) => ways.some((way) => way.model === model && way.from);
  const text = ({ model, from, to }) =>
    [
      from ? `${named.of(from)} → ${named.of(to)}` : translates(model) && t("translate.detect"),
      (several || !translates(model)) && model,
    ]
      .filter(Boolean)
      .join(" · ");
  const back = chosen.from && ways.find((way) => way.from === chosen.to && way.to === chosen.from);
  return [
    h(
      "select",
      {
        id: "way",
        "aria-label": t("translate.way"),
        onchange: (event) =>
          store.set({
            ...ways[Number(event.target.value)],
            ...NEW_TEXT,
            screen: "", // the first screen of the chosen model
          }),
      },
      ways.map((way, i) => h("option", { value: i, selected: way === chosen }, text(way))),
    ),
    back &&
      h(
        "button",
        { id: "swap", type: "button", title: t("translate.swap"), onclick: () => store.set({ ...back, ...NEW_TEXT }) },
        "⇄",
      ),
  ];
}

const FREE = { prefix: "", whole: "", target: "" };

/**
 * Force the output to begin with some tokens; if they include the end token, to be exactly these.
 * @param {Context} context
 * @param {number[]} ids
 */
export function forceOutput({ about, store }, ids) {
  const end = about.wanted[about.wanted.length - 1]?.id;
  const ends = ids[ids.length - 1] === end;
  const prefix = ids.filter((id) => id !== end).join(",");
  store.set({ ...FREE, node: -1, [ends ? "whole" : "prefix"]: prefix });
}

/** A notice that the output is forced, with a button to undo that; null if it is not. @param {Context} context */
export function forcedNotice({ about, state, store, t }) {
  if (!state.prefix && !state.whole && !state.target) return null;
  const count = state.prefix ? state.prefix.split(",").length : about.outputs.tokens.length;
  const tokens = about.outputs.tokens.slice(1, 1 + count).map((token) => token.text);
  return h(
    "div",
    { class: "forced" },
    h("span", {}, t(state.prefix ? "forced.prefix" : "forced.whole", { text: tokens.join(" ") })),
    h("button", { id: "free", type: "button", onclick: () => store.set({ ...FREE, node: -1 }) }, t("forced.free")),
  );
}
