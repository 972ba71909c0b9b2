// Examples to choose from, each with a line on what to look for.

import { exampleOf, examplesFor, isChecked } from "../state/examples.js";
import { NEW_TEXT } from "../state/store.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/examples.js").Example} Example */

/**
 * What to look for in an example; of the chosen one, also what this model makes of it.
 * @param {Context} context
 * @param {Example} example
 * @param {boolean} chosen
 */
function advice({ server, state, t }, { id }, chosen) {
  if (!id) return [h("p", { class: "soft" }, t("example.held"))];
  const found = chosen && isChecked(server, state);
  return [h("p", { class: "soft" }, t(`example.${id}.note`)), found && h("p", {}, t(`example.${id}.found`))];
}

/** @param {Context} context */
export function examples(context) {
  const { server, state, store, t } = context;
  const all = examplesFor(server, state);
  const current = exampleOf(all, state.text);
  const choose = (text) => store.set({ ...NEW_TEXT, text });
  const card = (example, i) => {
    const chosen = example === current;
    const { id, text, language, variant } = example;
    const other = chosen && variant ? (state.text.trim() === variant ? text : variant) : "";
    return h(
      "li",
      { class: chosen ? "example here" : "example" },
      h(
        "button",
        { id: `example-${id || i}`, type: "button", "aria-pressed": String(chosen), onclick: () => choose(text) },
        h("strong", {}, t(id ? `example.${id}` : "example")),
        h("span", { lang: language, dir: "auto" }, chosen ? state.text : text),
      ),
      advice(context, example, chosen),
      other && h("button", { id: "example-variant", type: "button", onclick: () => choose(other) }, t("example.variant", { text: other })),
    );
  };
  return [h("h2", {}, t("examples")), h("ol", { class: "examples" }, all.map(card))];
}
