// The page of a server: asks what it serves, and for a key where it wants one.

import { Refused, ask, keepKey } from "./asking.js";
import { h } from "./dom.js";
import { languageOf, speaker } from "./i18n.js";
import { Live } from "./live.js";
import { serve } from "./main.js";
import { LIVE } from "./screens_live.js";

const t = speaker(languageOf(navigator.languages));

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

/** @param {Error} problem */
function failed(problem) {
  return h(
    "div",
    { class: "ask", role: "alert" },
    h("h1", {}, t("failed")),
    h("p", {}, problem.message),
    h("button", { type: "button", class: "primary", onclick: () => location.reload() }, t("again")),
  );
}

const night = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme = night ? "dark" : "light";
ask("/api/v1/models")
  .then((answer) => answer.json())
  .then(({ models }) => serve(LIVE, new Live(models)))
  .catch((problem) => {
    const wantsKey = problem instanceof Refused && [401, 403].includes(problem.status);
    document.body.replaceChildren(wantsKey ? keyForm() : failed(problem));
  });
