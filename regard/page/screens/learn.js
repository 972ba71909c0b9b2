// Learn: a tour of the screens, exercises with a score, and a model that is trained while the user watches.

import { download } from "../figures/svg.js";
import { h } from "../parts/dom.js";
import { begin, obstacle, PRACTICE, PRACTICE_IDS } from "../parts/practice.js";
import { stateAt, tourOf } from "../parts/tour.js";
import { forgetSolutions, loadScore, scoreFile, solvedExercises } from "../state/score.js";

/** @typedef {import("../frame.js").Context} Context */

const FILE = "regard-score.json";
let said = ""; // what loading a score came to

/** @param {Context} context */
function tour({ screens, server, store, t }) {
  const stops = tourOf(screens, Boolean(server));
  const start = (place) => store.set(stateAt(stops, place));
  const stop = ({ id }, i) =>
    h(
      "li",
      {},
      h("button", { id: `tour-${id}`, type: "button", onclick: () => start(i) }, h("span", { class: "number soft" }, `${i + 1}`), t(`tour.${id}`)),
    );
  return h(
    "section",
    {},
    h("h2", {}, t("learn.tour")),
    h("p", { class: "soft" }, t("learn.tour.note", { count: stops.length })),
    h("div", { class: "under" }, h("button", { id: "tour-start", type: "button", class: "primary", onclick: () => start(0) }, t("learn.tour.start"))),
    h("ol", { class: "lessons" }, stops.map(stop)),
  );
}

/** Save, load and forget the score. @param {Context} context */
function scoreButtons({ store, t }) {
  const save = () => download(new Blob([scoreFile(new Date())], { type: "application/json" }), FILE);
  const file = h("input", { id: "score-file", type: "file", accept: ".json", hidden: true });
  file.addEventListener("change", async () => {
    const count = file.files.length ? loadScore(await file.files[0].text(), PRACTICE_IDS) : null;
    said = count === null ? t("score.wrong", { file: FILE }) : t("score.loaded", { count });
    await store.notify();
    said = "";
  });
  const forget = () => {
    forgetSolutions();
    void store.notify();
  };
  const button = (id, onclick) => h("button", { id: `score-${id}`, type: "button", onclick }, t(`score.${id}`));
  return h(
    "div",
    { class: "under" },
    ...[button("save", save), button("load", () => file.click()), button("forget", forget), file],
    h("span", { class: "soft", role: "status" }, said),
  );
}

/** @param {Context} context */
function practice(context) {
  const { store, t } = context;
  const solved = solvedExercises();
  const count = PRACTICE_IDS.filter((id) => solved.has(id)).length;
  const lesson = (task, i) => {
    const done = solved.has(task.id);
    const why = obstacle(task, context);
    return h(
      "li",
      {},
      h(
        "button",
        {
          ...{ id: `practice-${task.id}`, type: "button", class: done && "done", disabled: Boolean(why), title: why && t(why) },
          onclick: () => store.set(begin(task, context)),
        },
        h("span", { class: "number soft" }, done ? "✓" : `${i + 1}`),
        t(`practice.${task.id}`),
        done && h("span", { class: "unseen" }, t("score.solved")),
      ),
    );
  };
  return h(
    "section",
    {},
    h("h2", {}, t("learn.practice")),
    h("p", { class: "soft" }, t("learn.practice.note")),
    h(
      "p",
      { class: "score" },
      h("progress", { max: PRACTICE.length, value: count, "aria-label": t("score") }),
      h("strong", { id: "score" }, t("score.count", { count, all: PRACTICE.length })),
    ),
    h("ol", { class: "lessons" }, PRACTICE.map(lesson)),
    scoreButtons(context),
  );
}

/**
 * @typedef {object} Live What only a server has.
 * @property {(context: Context) => Promise<Node[]>} training
 * @property {Record<string, (context: Context) => void>} keys
 */

/** @param {Live} [live] @returns {import("../frame.js").Screen} */
export const learn = (live) => ({
  id: "learn",
  sign: "✎",
  alone: true,
  keys: live?.keys,
  render: async (context) => ({
    note: live ? "learn.note" : "learn.note.saved",
    body: h(
      "div",
      { class: "learn" },
      h("div", { class: "split even" }, tour(context), practice(context)),
      live && h("section", { class: "training" }, await live.training(context)),
    ),
  }),
});
