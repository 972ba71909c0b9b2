// Entry point at a server: fetches the list of models, and asks for a key if the server requires one.

import { Page } from "./page.js";
import { h } from "./parts/dom.js";
import { liveTraining } from "./parts/live_training.js";
import { alignment } from "./screens/alignment.js";
import { api } from "./screens/api.js";
import { beam } from "./screens/beam.js";
import { classify } from "./screens/classify.js";
import { compare } from "./screens/compare.js";
import { experiments } from "./screens/experiments.js";
import { follow } from "./screens/follow.js";
import { generate } from "./screens/generate.js";
import { head } from "./screens/head.js";
import { learn } from "./screens/learn.js";
import { influence } from "./screens/influence.js";
import { map } from "./screens/map.js";
import { model } from "./screens/model.js";
import { positions } from "./screens/positions.js";
import { steps } from "./screens/steps.js";
import { training } from "./screens/training.js";
import { translate } from "./screens/translate.js";
import { walk } from "./screens/walk.js";
import { readRuns } from "./state/examples.js";
import { Server } from "./state/server.js";
import { request, storeKey, RequestError } from "./state/requests.js";
import { kept } from "./state/preferences.js";
import { preferredLanguage, wordsIn } from "./words/i18n.js";

// In the order of the side bar: first the screens of the tasks, then those of a trace, then the rest.
const SCREENS = [
  ...[translate, generate, classify],
  ...[model, follow],
  ...[map, head, walk, steps, beam, alignment, influence, compare],
  ...[positions, training, experiments, learn(liveTraining), api],
];
const t = wordsIn(preferredLanguage([kept("lang"), ...navigator.languages]));

/** A form for the key that the server requires. */
function keyForm() {
  const form = h(
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
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    storeKey(String(new FormData(form).get("key")));
    location.reload();
  });
  return form;
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
document.documentElement.dataset.theme = ["light", "dark"].includes(kept("theme")) ? kept("theme") : night ? "dark" : "light";
request("/api/v1/models")
  .then((answer) => answer.json())
  .then(async ({ models }) => {
    await readRuns(models);
    return models;
  })
  .then((models) => new Page(SCREENS, new Server(models), null).draw())
  .catch((problem) => {
    const wantsKey = problem instanceof RequestError && [401, 403].includes(problem.status);
    document.body.replaceChildren(wantsKey ? keyForm() : failed(problem));
  });
