// The label of a text as one types: how likely each is, and which tokens made it so.

import { Labeller } from "./labeller.js";
import { picker } from "./picker.js";

/** @type {Labeller | null} */
let labeller = null;

/** @type {import("./frame.js").Screen} */
export const classify = {
  id: "classify",
  sign: "☰",
  alone: true,
  task: "classify",
  keys: { "/": () => labeller?.paper.text.focus() },
  render: async (context) => {
    const first = !labeller;
    labeller ??= new Labeller();
    labeller.draw(context);
    if (first) requestAnimationFrame(() => labeller?.paper.text.focus({ preventScroll: true }));
    return { controls: picker(context), body: labeller.body };
  },
};
