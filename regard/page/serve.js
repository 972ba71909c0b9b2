// The page of a server: a text to look at, and then the trace of it, whose name is in the address.

import { Refused, ask, keepKey } from "./asking.js";
import { h } from "./dom.js";
import { languageOf, speaker } from "./i18n.js";
import { start } from "./main.js";
import { httpSource } from "./source_http.js";

const t = speaker(languageOf(navigator.languages));

/** @typedef {{ id: string, task: string, directions: { source: string, target: string }[] }} Model */

/**
 * What is asked for the trace of a text.
 * @param {FormData} given
 */
function request(given) {
  const told = Object.fromEntries([...given].filter(([, value]) => String(value).trim()));
  const [model, to] = String(told.model ?? "").split(" ");
  return {
    source: told.source ?? "",
    ...(told.target && { target: told.target }),
    ...(model && { model }),
    ...(to && { to }),
  };
}

/** @param {Model[]} models */
function choices(models) {
  return models.flatMap(({ id, directions }) =>
    directions.length
      ? directions.map(({ source, target }) => ({
          value: `${id} ${target}`,
          text: `${id}: ${source} → ${target}`,
        }))
      : [{ value: id, text: id }],
  );
}

/** @param {Model[]} models */
function form(models) {
  const problem = h("p", { class: "problem", role: "alert" });
  const button = h("button", { class: "primary", type: "submit" }, t("ask.look"));
  const field = (/** @type {string} */ name, /** @type {HTMLElement} */ input) =>
    h("label", {}, t(`ask.${name}`), input);
  const asked = h(
    "form",
    { class: "ask" },
    h("h1", {}, t("ask")),
    field("source", h("textarea", { name: "source", rows: 3, required: true, autofocus: true })),
    field("target", h("textarea", { name: "target", rows: 2 })),
    field(
      "model",
      h(
        "select",
        { name: "model" },
        choices(models).map(({ value, text }) => h("option", { value }, text)),
      ),
    ),
    button,
    problem,
  );
  asked.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.toggleAttribute("disabled", true);
    problem.textContent = "";
    try {
      const { trace_id: trace } = await (
        await ask("/api/v1/traces", request(new FormData(/** @type {HTMLFormElement} */ (asked))))
      ).json();
      location.assign(`?trace=${encodeURIComponent(trace)}`);
    } catch (refused) {
      problem.textContent = refused instanceof Error ? refused.message : String(refused);
      button.toggleAttribute("disabled", false);
    }
  });
  return asked;
}

/** A field for the key that the server asks for. */
function keyForm() {
  const asked = h(
    "form",
    { class: "ask" },
    h("h1", {}, t("ask.key")),
    h("input", {
      name: "key",
      type: "password",
      autocomplete: "off",
      required: true,
      "aria-label": t("ask.key"),
      autofocus: true,
    }),
    h("button", { class: "primary", type: "submit" }, t("ask.enter")),
  );
  asked.addEventListener("submit", (event) => {
    event.preventDefault();
    keepKey(String(new FormData(/** @type {HTMLFormElement} */ (asked)).get("key")));
    location.reload();
  });
  return asked;
}

async function begin() {
  const trace = new URLSearchParams(location.search).get("trace");
  if (trace) return start(httpSource(trace), "/");
  const { models } = await (await ask("/api/v1/models")).json();
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches
    ? "dark"
    : "light";
  document.body.replaceChildren(
    h("header", { class: "bar" }, h("strong", { class: "brand" }, "regard")),
    form(models),
  );
}

begin().catch((problem) => {
  const isKey = problem instanceof Refused && problem.status === 401;
  const gone = h(
    "div",
    { class: "empty", role: "alert" },
    h("strong", {}, t("failed")),
    h("p", {}, problem.message),
    h("a", { href: "/" }, t("ask")),
  );
  document.body.replaceChildren(isKey ? keyForm() : gone);
});
