// Translation as one types, or a summary, an answer, a reply: the best and the next best, where each word comes from, and the way inside.

import { Desk } from "./desk.js";
import { picker } from "./picker.js";

/** @typedef {import("./frame.js").Context} Context */

/** @type {Desk | null} */
let desk = null;

/** @type {import("./frame.js").Screen} */
export const translate = {
  id: "translate",
  sign: "文",
  alone: true,
  task: "translate",
  named: ({ live, state }) => /** @type {import("./live.js").Live} */ (live).model(state).does,
  keys: { "/": () => desk?.text.focus() },
  render: async (context) => {
    const first = !desk;
    desk ??= new Desk();
    desk.draw(context);
    if (first) requestAnimationFrame(() => desk?.text.focus({ preventScroll: true }));
    return { controls: picker(context), body: desk.body };
  },
};
