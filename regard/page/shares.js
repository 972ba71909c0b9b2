// Shares of one, as a list: a name, a bar, a number.

import { h } from "./dom.js";
import { percent } from "./number.js";

/**
 * @typedef {object} Share
 * @property {string} name
 * @property {number} share
 * @property {number} [then] What is left of it when others are cut away; 0: it is.
 * @property {() => void} [pick] What a click on it does.
 */

/**
 * Labels with the likeliest first: those that are numbers come out of an object in their own order.
 * @param {Record<string, number>} labels
 * @returns {Share[]}
 */
export function ranked(labels) {
  const all = Object.entries(labels).map(([name, share]) => ({ name, share }));
  return all.sort((one, other) => other.share - one.share);
}

/**
 * @param {Share[]} all
 * @param {string} told For those who hear it.
 */
export function shares(all, told) {
  return h(
    "ol",
    { class: "shares", "aria-label": told },
    all.map(({ name, share, then, pick }) =>
      h(
        "li",
        { class: then === 0 && "cut" },
        pick
          ? h("button", { type: "button", class: "share-name", onclick: pick }, name)
          : h("span", { class: "share-name", title: name }, name),
        h("span", { class: "share-bar" }, h("span", { style: { width: `${100 * share}%` } })),
        h("span", { class: "number" }, percent(share)),
        then !== undefined && h("span", { class: "number then" }, then ? `→ ${percent(then)}` : "✕"),
      ),
    ),
  );
}
