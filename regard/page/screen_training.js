// Runs: their curves as they grow, what they translated on the way, and attention played through training.

import { matrixFigure } from "./attention_figures.js";
import { chart, legend } from "./chart.js";
import { segments, stepper } from "./controls.js";
import { h } from "./dom.js";
import { stacked } from "./figure.js";
import { journal, played, probesOf } from "./following.js";
import { fixed, percent, short } from "./number.js";
import { at } from "./tensor.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {import("./following.js").Entry} Entry */
/** @typedef {{ run: string, entries: Entry[] }} Run */

const PACE = 700; // milliseconds a validation is shown for
const SAMPLES = 5;
let playing = 0;

/** What can be drawn: the names of its numbers in training and in validation. */
const MEASURES = {
  loss: ["loss", "valid_loss"],
  accuracy: ["accuracy", "valid_accuracy"],
  bleu: ["", "valid_bleu"],
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

/** @param {Context} context @param {number} count */
function play({ state, store }, count) {
  clearInterval(playing);
  if (playing) {
    playing = 0;
    return store.tell();
  }
  let moment = state.moment < 0 || state.moment >= count - 1 ? 0 : state.moment;
  playing = setInterval(() => {
    if (store.state.screen !== "training" || ++moment >= count) {
      clearInterval(playing);
      playing = 0;
      return store.tell();
    }
    store.set({ moment });
  }, PACE);
  store.set({ moment });
  store.tell();
}

/**
 * One head's attention in a sentence, at one validation.
 * @param {Context} context
 * @param {Run} run
 */
async function attention(context, { run, entries }) {
  const { state, store, t } = context;
  const validations = entries.filter((each) => each.valid_loss !== undefined).length;
  const { steps, probes } = await probesOf(run, validations);
  if (!probes.length) return [h("p", { class: "soft" }, t("training.no-probes"))];
  const probe = Math.min(state.probe, probes.length - 1);
  const { inputs, outputs, sizes, log_probs: likely, likeliest } = probes[probe];
  const kinds = Object.keys(sizes);
  const kind = kinds.includes(state.kind) ? state.kind : kinds[kinds.length - 1];
  const [layers, heads] = sizes[kind];
  const layer = state.layer < 0 ? layers - 1 : Math.min(state.layer, layers - 1);
  const head = Math.min(state.head, heads - 1);
  const moment = state.moment < 0 ? steps.length - 1 : Math.min(state.moment, steps.length - 1);
  const through = await played(run, { probe, kind, layer, head }, validations);
  const [rows, columns] = [kind === "encoder" ? inputs : outputs, kind === "decoder" ? outputs : inputs];
  const shown = h("div", { class: "played" });
  const step = h("output", {});
  const show = (/** @type {number} */ now) => {
    const matrix = at(through, now);
    const drawn = matrixFigure(context, {
      matrix,
      rows,
      columns,
      may: (query, key) => kind !== "decoder" || key <= query,
      row: -1,
      column: -1,
      pick: () => {},
      say: (query, key) =>
        `${rows[query]} → ${columns[key]}: ${percent(matrix.data[query * columns.length + key])}`,
      told: t("training.attention"),
    });
    const mean = likely[now].reduce((sum, each) => sum + each, 0) / likely[now].length;
    step.textContent = t("training.step", { step: steps[now] });
    shown.replaceChildren(
      h("p", { class: "soft" }, t("training.likely", { value: fixed(mean, 2) })),
      h(
        "p",
        { class: "soft" },
        t("training.would"),
        " ",
        h("span", { class: "would", dir: "auto" }, likeliest[now].join(" ")),
      ),
      h("div", { class: "scroll" }, drawn),
    );
  };
  show(moment);
  return [
    h(
      "div",
      { class: "controls" },
      probes.length > 1 &&
        stepper(t("training.sentence"), "probe", probe, probes.length, (value) =>
          store.set({ probe: value }),
        ),
      segments(
        t("kind"),
        kinds.map((each) => ({ value: each, text: t(`kind.${each}`), title: t(`kind.${each}.title`) })),
        kind,
        (value) => store.set({ kind: value }),
      ),
      stepper(t("layer"), "layer", layer, layers, (value) => store.set({ layer: value })),
      stepper(t("head.number"), "head", head, heads, (value) => store.set({ head: value })),
    ),
    h(
      "div",
      { class: "controls" },
      h(
        "button",
        {
          id: "play",
          type: "button",
          "aria-pressed": String(playing > 0),
          onclick: () => play(context, steps.length),
        },
        playing ? "❚❚ " : "▶ ",
        t(playing ? "pause" : "play"),
      ),
      h(
        "label",
        { class: "slider" },
        h("input", {
          id: "moment",
          type: "range",
          min: 0,
          max: steps.length - 1,
          value: moment,
          "aria-label": t("training.moment"),
          // Shown here, and not by a redraw, which would take the slider out of the reader's hand.
          oninput: (/** @type {Event} */ event) => {
            const value = Number(/** @type {HTMLInputElement} */ (event.target).value);
            store.note({ moment: value });
            show(value);
          },
        }),
        step,
      ),
    ),
    shown,
  ];
}

/** @type {import("./frame.js").Screen} */
export const training = {
  id: "training",
  sign: "◿",
  alone: true,
  render: async (context) => {
    const { live, state, store, t } = context;
    const ids = live.models.filter((each) => each.run).map((each) => each.id);
    if (!ids.length) return { body: h("p", { class: "empty" }, t("training.none")) };
    const tell = () => store.state.screen === "training" && store.tell();
    /** @type {Run[]} */
    const runs = await Promise.all(ids.map(async (run) => ({ run, entries: await journal(run, tell) })));
    const measures = Object.entries(MEASURES).filter(([, names]) =>
      runs.some(({ entries }) => names.some((name) => name && points(entries, name).length)),
    );
    const drawn = lines(context, runs);
    const first = runs.find(({ run }) => run === live.way(state).model) ?? runs[0];
    const title = t(`training.${state.measure in MEASURES ? state.measure : "loss"}`);
    const curves = stacked(
      [
        chart(context, { title, across: t("training.steps"), lines: drawn, width: 860, height: 300 }),
        legend(context, drawn),
      ],
      title,
    );
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
        h(
          "section",
          { class: "played" },
          h("h2", {}, t("training.attention")),
          await attention(context, first),
        ),
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
