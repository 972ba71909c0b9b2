// What a screen says where it has nothing to show, and the button that leads on.

import { h } from "./dom.js";
import { wordsOf } from "./frame.js";
import { saidOf } from "./question.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {import("./frame.js").Screen} Screen */

/** To where one writes. @param {Context} context @param {Screen} first */
function toTheText(context, first) {
  const go = () => context.store.set({ screen: first.id });
  return h("button", { type: "button", class: "primary", onclick: go }, context.t(wordsOf(first, context)));
}

/**
 * There is nothing to look at before there is a text.
 * @param {Context} context
 * @param {Screen} first Where one writes it.
 */
export function nothing(context, first) {
  const { t } = context;
  const told = [h("strong", {}, t("nothing")), h("p", {}, t("nothing.note"))];
  return { body: h("div", { class: "empty" }, told, toTheText(context, first)) };
}

/**
 * It is another text that helps, or another try.
 * @param {Context} context
 * @param {Screen} first Where one writes.
 * @param {Error} problem
 * @param {() => void} again
 */
export function failed(context, first, problem, again) {
  console.warn(problem);
  const { t } = context;
  const { told, mended } = saidOf(problem, t);
  const next = mended ? toTheText(context, first) : h("button", { type: "button", onclick: again }, t("again"));
  const words = [h("strong", {}, t("failed")), h("p", {}, told)];
  return { body: h("div", { class: "empty", role: "alert" }, words, next) };
}
