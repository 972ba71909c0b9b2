// The current request, to be sent from elsewhere: native, as LibreTranslate's clients do, as OpenAI's do.

import { examples } from "../compute/api_examples.js";
import { h } from "../parts/dom.js";
import { hasKey } from "../state/requests.js";

/** @typedef {import("../frame.js").Context} Context */

/** @param {Context} context @param {import("../compute/api_examples.js").Example} example */
function shown({ t }, { id, language, code }) {
  const button = h("button", { id: `copy-${id}`, type: "button" }, t("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code);
    button.textContent = t("copied");
    setTimeout(() => (button.textContent = t("copy")), 1500);
  });
  return h(
    "section",
    { class: "request" },
    h("div", { class: "request-head" }, h("h2", {}, t(`api.${id}`)), h("span", { class: "tag" }, language), button),
    h("pre", { class: "scroll", tabindex: 0, "aria-label": t(`api.${id}`) }, code),
  );
}

/** @type {import("../frame.js").Screen} */
export const api = {
  id: "api",
  sign: "{}",
  alone: true,
  render: async (context) => {
    const { live, state, t } = context;
    const text = state.text.trim() ? state.text : t("api.text");
    const target = await live.target(state, text);
    const { task } = live.model(state);
    const continuing = live.continuing({ ...state, text });
    const asked = { ...live.way(state), task, text, target, continuing };
    return {
      note: task === "classify" ? "api.note" : `api.note.${task}`,
      controls: [h("a", { href: "/docs" }, t("api.docs")), h("a", { href: "/openapi.json" }, "OpenAPI")],
      body: h(
        "div",
        { class: "requests" },
        examples(location.origin, asked, hasKey()).map((example) => shown(context, example)),
      ),
    };
  },
};
