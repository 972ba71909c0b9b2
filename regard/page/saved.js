// Entry point of a saved HTML file, which holds one trace.

import { Page } from "./page.js";
import { h } from "./parts/dom.js";
import { alignment } from "./screens/alignment.js";
import { beam } from "./screens/beam.js";
import { follow } from "./screens/follow.js";
import { head } from "./screens/head.js";
import { learn } from "./screens/learn.js";
import { map } from "./screens/map.js";
import { model } from "./screens/model.js";
import { steps } from "./screens/steps.js";
import { walk } from "./screens/walk.js";
import { cached } from "./state/source.js";
import { fileSource, unpacked } from "./state/source_file.js";
import { kept } from "./state/preferences.js";
import { preferredLanguage, wordsIn } from "./words/i18n.js";

const SCREENS = [model, follow, map, head, walk, steps, beam, alignment, learn()]; // in the order of the side bar

/** Show the trace that `regard/look/export/html.py` has written into the file. */
async function start() {
  const held = await unpacked(JSON.parse(document.getElementById("held").textContent));
  openAs(held.start);
  const source = cached(fileSource(held));
  const loading = wordsIn(preferredLanguage([kept("lang"), ...navigator.languages]))("loading");
  document.body.replaceChildren(h("p", { class: "empty" }, loading));
  await new Page(SCREENS, null, { source, about: await source.describe() }).draw();
}

/** Begin with what was shown when the file was saved, unless the address says otherwise. @param {string} hash */
function openAs(hash) {
  if (!hash || location.hash) return;
  try {
    history.replaceState(null, "", `#${hash}`);
  } catch {
    // In a notebook's frame the page has no address of its own.
  }
}

void start();
