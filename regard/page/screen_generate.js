// A text that goes on: drawn token by token, with what might come next.

import { slider } from "./controls.js";
import { h } from "./dom.js";
import { picker } from "./picker.js";
import { Writer } from "./writer.js";

/** @typedef {import("./frame.js").Context} Context */

/** @type {Writer | null} */
let writer = null;

/** @param {Event} event */
const value = (event) => /** @type {HTMLInputElement} */ (event.target).value;

/** How the next tokens are chosen; what that cuts away is shown while one slides. @param {Context} context */
function choices({ state, store, t }) {
  const all = (/** @type {number} */ value) => (value ? String(value) : t("generate.all"));
  const whole = (/** @type {number} */ value) => (value < 1 ? String(value) : t("generate.all"));
  const sliding = /** @type {[keyof import("./sampling.js").Settings, number[], (value: number) => string][]} */ ([
    ["heat", [0, 2, 0.1], String],
    ["top_k", [0, 100, 1], all],
    ["top_p", [0.05, 1, 0.05], whole],
    ["min_p", [0, 0.5, 0.01], all],
  ]);
  return [
    ...sliding.map(([id, range, told]) =>
      slider({
        ...{ id, range, told, value: state[id], text: t(`generate.${id}`), title: t(`generate.${id}.title`) },
        slide: (value) => {
          store.note({ [id]: value });
          writer?.show();
        },
      }),
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
