// Every token that was read, shaded by how much likelier it made the label.

import { css, on, shade } from "./colour.js";
import { h } from "./dom.js";
import { fixed } from "./number.js";

/**
 * @param {import("./frame.js").Context} context
 * @param {string} label
 * @param {import("./source.js").Token[]} tokens
 * @param {number[]} values
 */
export function influence({ t, theme, tip }, label, tokens, values) {
  const most = Math.max(...values.map(Math.abs));
  const words = tokens.map((token, i) => {
    const colour = shade(values[i], most, theme);
    const told = `${token.text} · ${values[i] > 0 ? "+" : ""}${fixed(values[i], 3)}`;
    return h(
      "span",
      {
        class: "read",
        title: told,
        style: { "background-color": css(colour), color: on(colour) },
        onmousemove: (/** @type {MouseEvent} */ event) => tip.show(told, event),
        onmouseleave: () => tip.hide(),
      },
      token.text,
    );
  });
  return [
    h("h2", {}, t("classify.why", { label })),
    h("p", { class: "soft" }, t("classify.why.note")),
    h("p", { class: "reading" }, words),
  ];
}
