// Another way than the one that was found: the output is made to begin so, and the model goes on from there.

import { h } from "./dom.js";

/** @typedef {import("./frame.js").Context} Context */

const FREE = { prefix: "", whole: "", target: "" };

/**
 * Make the output begin with some tokens; with the one that ends it, be nothing else.
 * @param {Context} context
 * @param {number[]} ids
 */
export function force({ about, store }, ids) {
  const end = about.wanted[about.wanted.length - 1]?.id;
  const ends = ids[ids.length - 1] === end;
  const told = ids.filter((id) => id !== end).join(",");
  store.set({ ...FREE, node: -1, [ends ? "whole" : "prefix"]: told });
}

/**
 * That the output is not the model's own choice, and the way back; nothing where it is.
 * @param {Context} context
 */
export function forced({ about, state, store, t }) {
  if (!state.prefix && !state.whole && !state.target) return null;
  const count = state.prefix ? state.prefix.split(",").length : about.outputs.tokens.length;
  const tokens = about.outputs.tokens.slice(1, 1 + count).map((token) => token.text);
  return h(
    "div",
    { class: "forced" },
    h("span", {}, t(state.prefix ? "forced.prefix" : "forced.whole", { text: tokens.join(" ") })),
    h(
      "button",
      { id: "free", type: "button", onclick: () => store.set({ ...FREE, node: -1 }) },
      t("forced.free"),
    ),
  );
}
