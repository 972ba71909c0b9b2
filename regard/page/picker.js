// Which model, and in which direction.

import { h } from "./dom.js";
import { ANEW } from "./store.js";

/** @typedef {import("./frame.js").Context} Context */

/**
 * From which language into which, by which model; nothing where there is no choice.
 * @param {Context} context
 */
export function picker({ live, state, store, t }) {
  const { ways } = live;
  const chosen = live.way(state);
  if (ways.length < 2) return [];
  const named = new Intl.DisplayNames([state.lang], { type: "language" });
  const several = live.models.length > 1;
  const translates = (/** @type {string} */ model) => ways.some((way) => way.model === model && way.from);
  const text = (/** @type {import("./live.js").Way} */ { model, from, to }) =>
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
        onchange: (/** @type {Event} */ event) =>
          store.set({
            ...ways[Number(/** @type {HTMLSelectElement} */ (event.target).value)],
            ...ANEW,
            screen: "", // the first of the model that was chosen
          }),
      },
      ways.map((way, i) => h("option", { value: i, selected: way === chosen }, text(way))),
    ),
    back &&
      h(
        "button",
        {
          id: "swap",
          type: "button",
          title: t("translate.swap"),
          onclick: () => store.set({ ...back, ...ANEW }),
        },
        "⇄",
      ),
  ];
}
