// Runs: their curves as they grow, what they translated on the way, and attention played through training.

import { across, chart, legend } from "./chart.js";
import { segments } from "./controls.js";
import { h } from "./dom.js";
import { stacked } from "./figure.js";
import { curveOf, journal } from "./following.js";
import { short } from "./number.js";
import { attentionThroughTraining, player } from "./probing.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {import("./following.js").Entry} Entry */
/** @typedef {{ run: string, entries: Entry[] }} Run */

const SAMPLES = 5;

/** What can be drawn: the names of its numbers in training and in validation. */
const MEASURES = {
  loss: ["loss", "valid_loss"],
  accuracy: ["accuracy", "valid_accuracy"],
  bleu: ["", "valid_bleu"],
  f1: ["", "valid_macro_f1"],
  bits: ["", "valid_bits_per_byte"],
  rate: ["learning_rate", ""],
  speed: ["speed", ""],
};

/**
 * The points of one number; an average of checkpoints is no point of the run.
 * @param {Entry[]} entries
 * @param {string} name
 * @returns {[number, number][]}
 */
function points(entries, name) {
  const told = name === "speed" ? speeds(entries) : entries;
  return told
    .filter((each) => typeof each[name] === "number" && !each.averaged)
    .map((each) => [each.step, each[name]]);
}

/** Tokens a second, from one step to the next. @param {Entry[]} entries @returns {Entry[]} */
function speeds(entries) {
  const steps = entries.filter((each) => each.seconds !== undefined);
  return steps.slice(1).flatMap((each, i) => {
    const seconds = each.seconds - steps[i].seconds;
    return seconds > 0 ? [{ step: each.step, speed: each.tokens / seconds }] : [];
  });
}

/** @param {Context} context @param {Run[]} runs */
function lines({ state, t }, runs) {
  const [trained, valid] = MEASURES[/** @type {"loss"} */ (state.measure)] ?? MEASURES.loss;
  const several = runs.length > 1;
  return runs.flatMap(({ run, entries }) =>
    [
      { name: t("training.train"), points: trained ? points(entries, trained) : [], faint: Boolean(valid) },
      { name: t("training.valid"), points: valid ? points(entries, valid) : [] },
    ]
      .filter((line) => line.points.length)
      .map((line) => ({ ...line, name: several ? `${run} ${line.name}` : line.name })),
  );
}

/** What the runs made of a sentence on the way. @param {Context} context @param {Run} run */
function samples({ t }, { entries }) {
  const told = entries.filter((each) => each.sample).slice(-SAMPLES);
  if (!told.length) return null;
  return h(
    "section",
    { class: "samples" },
    h("h2", {}, t("training.samples")),
    h(
      "ol",
      {},
      told
        .reverse()
        .map(({ step, sample }) =>
          h(
            "li",
            {},
            h("span", { class: "number soft" }, t("training.step", { step })),
            h("span", { dir: "auto" }, sample.source, h("span", { class: "soft" }, " → "), sample.output),
          ),
        ),
    ),
  );
}

/** @type {import("./frame.js").Screen} */
export const training = {
  id: "training",
  sign: "◿",
  alone: true,
  keys: { " ": ({ store }) => player.toggle(store) },
  render: async (context) => {
    const { live, state, store, t } = context;
    const all = live.models.filter((each) => each.run);
    if (!all.length) return { body: h("p", { class: "empty" }, t("training.none")) };
    const chosen = all.find((each) => each.id === live.way(state).model) ?? all[0];
    // What one task loses is nothing beside what another does.
    const ids = all.filter((each) => each.does === chosen.does).map((each) => each.id);
    const tell = () => store.state.screen === "training" && store.tell();
    /** @type {Run[]} */
    const runs = await Promise.all(
      ids.map(async (run) => ({ run, entries: await (run === chosen.id ? journal(run, tell) : curveOf(run)) })),
    );
    const measures = Object.entries(MEASURES).filter(([, names]) =>
      runs.some(({ entries }) => names.some((name) => name && points(entries, name).length)),
    );
    const drawn = lines(context, runs);
    const first = runs[ids.indexOf(chosen.id)];
    const title = t(`training.${state.measure in MEASURES ? state.measure : "loss"}`);
    const width = across(860);
    const curves = stacked(
      [
        chart(context, { title, across: t("training.steps"), lines: drawn, width, height: 300 }),
        legend(context, drawn, width),
      ],
      title,
    );
    const validations = first.entries.filter((each) => each.valid_loss !== undefined).length;
    const played = await attentionThroughTraining(context, first.run, validations);
    const { step = 0 } = first.entries[first.entries.length - 1] ?? {};
    return {
      controls: [
        segments(
          t("training.measure"),
          measures.map(([value]) => ({ value, text: t(`training.${value}`) })),
          state.measure,
          (measure) => store.set({ measure }),
        ),
        h("span", { class: "soft" }, t("training.so-far", { run: first.run, step })),
      ],
      body: h(
        "div",
        { class: "training" },
        h("div", { class: "scroll" }, curves),
        samples(context, first),
        h("section", { class: "played" }, h("h2", {}, t("training.attention")), played),
      ),
      figure: curves,
      table: {
        caption: title,
        head: [t("training.steps"), ...drawn.map((line) => line.name)],
        rows: table(drawn),
      },
    };
  },
};

/**
 * A row for each step at which something was validated, or else for each.
 * @param {{ points: [number, number][] }[]} drawn
 */
function table(drawn) {
  const fewest = drawn.reduce(
    (best, line) => (line.points.length < best.length ? line.points : best),
    drawn[0]?.points ?? [],
  );
  const byStep = drawn.map((line) => new Map(line.points));
  return fewest.map(([step]) => [
    step,
    ...byStep.map((values) => (values.has(step) ? short(values.get(step) ?? 0) : "–")),
  ]);
}
