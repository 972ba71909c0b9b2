// Lists of probabilities with bars, and tokens shaded by their influence.

import { fixed, percent } from "../compute/number.js";
import { on, shade } from "../figures/colour.js";
import { h } from "./dom.js";

/**
 * @typedef {object} Share
 * @property {string} name
 * @property {number} share
 * @property {number} [then] Probability after other candidates are cut; 0: this one is cut.
 * @property {() => void} [pick] Called on a click.
 */

/**
 * Labels sorted by probability. (An object sorts keys that look like numbers by itself.)
 * @param {Record<string, number>} labels
 * @returns {Share[]}
 */
export function ranked(labels) {
  const all = Object.entries(labels).map(([name, share]) => ({ name, share }));
  return all.sort((one, other) => other.share - one.share);
}

/** @param {Share[]} all @param {string} label For screen readers. */
export function shares(all, label) {
  return h(
    "ol",
    { class: "shares", "aria-label": label },
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

/**
 * @param {import("../frame.js").Context} context
 * @param {string} label
 * @param {import("../state/source.js").Token[]} tokens
 * @param {import("../state/source.js").Influence} found
 */
export function influence({ t, theme, tip }, label, tokens, { values, convergence }) {
  const most = Math.max(...values.map(Math.abs));
  const words = tokens.map((token, i) => {
    const colour = shade(values[i], most, theme);
    const tooltip = `${token.text} · ${values[i] > 0 ? "+" : ""}${fixed(values[i], 3)}`;
    return h(
      "span",
      {
        class: "read",
        title: tooltip,
        style: { "background-color": colour, color: on(colour) },
        onmousemove: (event) => tip.show(tooltip, event),
        onmouseleave: () => tip.hide(),
      },
      token.text,
    );
  });
  return [
    h("h2", {}, t("classify.why", { label })),
    h("p", { class: "soft" }, t("classify.why.note")),
    ...(convergence ? [h("p", { class: "soft" }, convergenceNote(t, convergence))] : []),
    h("p", { class: "reading" }, words),
  ];
}

/**
 * How far integrated gradients add up to the change that they explain.
 * @param {import("../frame.js").Context["t"]} t
 * @param {import("../state/source.js").Convergence} convergence
 */
export function convergenceNote(t, { steps, change, distributed, rough }) {
  const share = rough === null ? "" : percent(rough);
  return t("influence.convergence", { steps, change: fixed(change, 3), distributed: fixed(distributed, 3), share });
}
