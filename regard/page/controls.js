// Small controls that several screens share.

import { h } from "./dom.js";

/** @typedef {import("./frame.js").Context} Context */

/**
 * A choice of a few, all of them visible.
 * @param {string} name For those who hear it, and to find it again after a redraw.
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
 * A number that goes up and down.
 * @param {string} name
 * @param {string} id
 * @param {number} value
 * @param {number} count
 * @param {(value: number) => void} set
 */
export function stepper(name, id, value, count, set) {
  const button = (/** @type {string} */ sign, /** @type {number} */ by) =>
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

/**
 * Which head of which layer of which kind.
 * @param {Context} context
 */
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
      (value) => store.set({ kind: value, key: -1, query: -1 }),
    ),
    stepper(t("layer"), "layer", state.layer, kind.layers, (layer) => store.set({ layer })),
    stepper(t("head.number"), "head", state.head, kind.heads, (head) => store.set({ head })),
  ];
}

/**
 * A number to be slid.
 * @param {object} given
 * @param {string} given.id
 * @param {string} given.text
 * @param {string} [given.title]
 * @param {number[]} given.range The least, the most, and the step between.
 * @param {number} given.value
 * @param {(value: number) => string} given.told
 * @param {(value: number) => void} [given.slide] Hears every move.
 * @param {(value: number) => void} [given.set] Hears where it comes to rest.
 */
export function slider({ id, text, title, range: [min, max, step], value, told, slide, set }) {
  const output = h("output", {}, told(value));
  const of = (/** @type {Event} */ event) => Number(/** @type {HTMLInputElement} */ (event.target).value);
  return h(
    "label",
    { class: "slider", title },
    text,
    h("input", {
      ...{ id, type: "range", min, max, step, value },
      oninput: (/** @type {Event} */ event) => {
        output.textContent = told(of(event));
        slide?.(of(event));
      },
      onchange: (/** @type {Event} */ event) => set?.(of(event)),
    }),
    output,
  );
}

/**
 * A box to be ticked.
 * @param {string} id
 * @param {string} text
 * @param {boolean} on
 * @param {(on: boolean) => void} set
 */
export function tick(id, text, on, set) {
  return h(
    "label",
    { class: "tick" },
    h("input", {
      id,
      type: "checkbox",
      checked: on,
      onchange: (/** @type {Event} */ event) => set(/** @type {HTMLInputElement} */ (event.target).checked),
    }),
    text,
  );
}

/**
 * A table of the numbers of a figure.
 * @param {{ caption: string, head: string[], rows: (string | number)[][] }} table
 */
export function tableOf({ caption, head, rows }) {
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((text) => h("th", { scope: "col" }, text)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([first, ...rest]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, first),
            rest.map((value) => h("td", {}, value)),
          ),
        ),
      ),
    ),
  );
}
