// The current request as code: native API, LibreTranslate and OpenAI clients.

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
    const { server, state, t } = context;
    const text = state.text.trim() ? state.text : t("api.text");
    const target = await server.target(state, text);
    const { task } = server.model(state);
    const generateRequest = server.generateRequest({ ...state, text });
    const current = { ...server.way(state), task, text, target, generateRequest };
    return {
      note: task === "classify" ? "api.note" : `api.note.${task}`,
      controls: [h("a", { href: "/docs" }, t("api.docs")), h("a", { href: "/openapi.json" }, "OpenAPI")],
      body: h(
        "div",
        { class: "requests" },
        examples(location.origin, current, hasKey()).map((example) => shown(context, example)),
      ),
    };
  },
};
