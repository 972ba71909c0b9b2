// Shares of one, as a list: a name, a bar, a number.

import { h } from "./dom.js";
import { percent } from "./number.js";

/**
 * @typedef {object} Share
 * @property {string} name
 * @property {number} share
 * @property {() => void} [pick] What a click on it does.
 */

/**
 * @param {Share[]} all
 * @param {string} told For those who hear it.
 */
export function shares(all, told) {
  return h(
    "ol",
    { class: "shares", "aria-label": told },
    all.map(({ name, share, pick }) =>
      h(
        "li",
        {},
        pick
          ? h("button", { type: "button", class: "share-name", onclick: pick }, name)
          : h("span", { class: "share-name", title: name }, name),
        h("span", { class: "share-bar" }, h("span", { style: { width: `${100 * share}%` } })),
        h("span", { class: "number" }, percent(share)),
      ),
    ),
  );
}
