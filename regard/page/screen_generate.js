// A text that goes on: drawn token by token, with what might come next.

import { h } from "./dom.js";
import { picker } from "./picker.js";
import { Writer } from "./writer.js";

/** @typedef {import("./frame.js").Context} Context */

/** @type {Writer | null} */
let writer = null;

/** @param {Event} event */
const value = (event) => /** @type {HTMLInputElement} */ (event.target).value;

/** How the next tokens are chosen. @param {Context} context */
function choices({ state, store, t }) {
  const heat = h("output", {}, String(state.heat));
  const shown = (/** @type {Event} */ event) => (heat.textContent = value(event));
  return [
    h(
      "label",
      { class: "slider", title: t("generate.heat.title") },
      t("generate.heat"),
      h("input", {
        ...{ id: "heat", type: "range", min: 0, max: 2, step: 0.1, value: state.heat, oninput: shown },
        onchange: (/** @type {Event} */ event) => store.set({ heat: Number(value(event)) }),
      }),
      heat,
    ),
    h(
      "label",
      { class: "slider" },
      t("generate.most"),
      h("input", {
        ...{ id: "most", type: "number", min: 1, max: 1000, value: state.most },
        onchange: (/** @type {Event} */ event) =>
          store.set({ most: Math.min(1000, Math.max(1, Math.round(Number(value(event))) || 1)) }),
      }),
    ),
    h(
      "label",
      { class: "slider", title: t("generate.until.title") },
      t("generate.until"),
      h("input", {
        ...{ id: "until", type: "text", class: "brief", value: state.stop },
        onchange: (/** @type {Event} */ event) => store.set({ stop: value(event) }),
      }),
    ),
  ];
}

/** @type {import("./frame.js").Screen} */
export const generate = {
  id: "generate",
  sign: "✎",
  alone: true,
  task: "generate",
  keys: { "/": () => writer?.paper.text.focus() },
  render: async (context) => {
    const first = !writer;
    writer ??= new Writer();
    writer.draw(context);
    if (first) requestAnimationFrame(() => writer?.paper.text.focus({ preventScroll: true }));
    return { controls: [...picker(context), ...choices(context)], body: writer.body };
  },
};
