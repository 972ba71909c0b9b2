// Entry point of a saved HTML file, which holds one trace.

import { Page } from "./page.js";
import { h } from "./parts/dom.js";
import { alignment } from "./screens/alignment.js";
import { beam } from "./screens/beam.js";
import { head } from "./screens/head.js";
import { learn } from "./screens/learn.js";
import { map } from "./screens/map.js";
import { steps } from "./screens/steps.js";
import { walk } from "./screens/walk.js";
import { cached } from "./state/source.js";
import { fileSource } from "./state/source_file.js";
import { kept } from "./state/preferences.js";
import { preferredLanguage, wordsIn } from "./words/i18n.js";

const SCREENS = [map, head, walk, steps, beam, alignment, learn()]; // in the order of the side bar

/** Show the trace that `regard/look/export/html.py` has written into the file. */
async function start() {
  const source = cached(fileSource(JSON.parse(document.getElementById("held").textContent)));
  const loading = wordsIn(preferredLanguage([kept("lang"), ...navigator.languages]))("loading");
  document.body.replaceChildren(h("p", { class: "empty" }, loading));
  await new Page(SCREENS, null, { source, about: await source.describe() }).draw();
}

void start();
