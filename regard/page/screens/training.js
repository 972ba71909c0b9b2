// Training: the curves of runs as they grow, sample outputs, and attention played through training.

import { fixed, percent, short } from "../compute/number.js";
import { across, chart, legend } from "../figures/chart.js";
import { matrixFigure, MOST_WEIGHT } from "../figures/matrix.js";
import { stack } from "../figures/svg.js";
import { checkbox, segments, stepper } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { Player } from "../parts/player.js";
import { attentionAt, curveOf, journal, probeAt, probesOf, RECORDED, recorded } from "../state/runs.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/runs.js").Entry} Entry */
/** @typedef {{ run: string, entries: Entry[] }} Run */
/** @typedef {{ run: string, step: number, probe: number, kind: string, layer: number, head: number }} Place */

const SAMPLES = 6;

/** The curves: names of the values in training and in validation. */
const MEASURES = {
  loss: ["loss", "valid_loss"],
  accuracy: ["accuracy", "valid_accuracy"],
  bleu: ["", "valid_bleu"],
  f1: ["", "valid_macro_f1"],
  bits: ["", "valid_bits_per_byte"],
  rate: ["learning_rate", ""],
  speed: ["speed", ""],
};

const AXES = ["x", "y"];

const player = new Player("training", "moment", 700);

/**
 * One validation: the attention, the probability of the reference, and the most likely output.
 * @param {Context} context
 * @param {Place} place
 */
async function moment(context, { run, ...place }) {
  const { t } = context;
  const [probe, matrix] = await Promise.all([probeAt(run, place), attentionAt(run, place)]);
  const texts = (side) => probe[side].tokens.map((token) => token.text);
  const rows = texts(place.kind === "encoder" ? "inputs" : "outputs");
  const columns = texts(place.kind === "decoder" ? "outputs" : "inputs");
  const drawn = matrixFigure(context, {
    matrix,
    most: MOST_WEIGHT,
    rows,
    columns,
    may: (query, key) => place.kind !== "decoder" || key <= query,
    row: -1,
    column: -1,
    pick: () => {},
    say: (query, key) => `${rows[query]} → ${columns[key]}: ${percent(matrix.data[query * columns.length + key])}`,
    label: t("training.attention"),
  });
  const mean = probe.log_probs.reduce((sum, each) => sum + each, 0) / probe.log_probs.length;
  const would = h("span", { class: "would", dir: "auto" }, probe.likeliest.join(" "));
  return [
    h("p", { class: "soft" }, t("training.likely", { value: fixed(mean, 2) })),
    h("p", { class: "soft would-write" }, t("training.would"), " ", would),
    h("div", { class: "scroll" }, drawn),
  ];
}

/**
 * Controls for sentence, head and validation, and the figure of the selected one.
 * @param {Context} context
 * @param {string} run
 * @param {number} validations How many there are by now.
 * @param {Player} player
 */
export async function attentionThroughTraining(context, run, validations, player) {
  const { state, store, t } = context;
  const { steps, probes } = await probesOf(run, validations);
  if (!probes.length) return [h("p", { class: "soft" }, t("training.no-probes"))];
  const probe = Math.min(state.probe, probes.length - 1);
  const { kinds: sizes } = probes[probe];
  const kinds = Object.keys(sizes);
  const kind = kinds.includes(state.kind) ? state.kind : kinds[kinds.length - 1];
  const [layers, heads] = sizes[kind];
  const layer = state.layer < 0 ? layers - 1 : Math.min(state.layer, layers - 1);
  const head = Math.min(state.head, heads - 1);
  player.names = steps.map((_, i) => i);
  const now = state.moment < 0 ? player.last : Math.min(state.moment, player.last);
  const placeOf = (i) => ({ run, step: steps[i], probe, kind, layer, head });
  if (now < player.last) void attentionAt(run, placeOf(now + 1)).catch(() => null); // prefetch the next
  const shown = h("div", { class: "played" }, await moment(context, placeOf(now)));
  const name = (i) => t("training.step", { step: steps[i] });
  const step = h("output", {}, name(now));
  const slider = h("input", {
    id: "moment",
    type: "range",
    min: 0,
    max: player.last,
    value: now,
    "aria-label": t("training.moment"),
    // Updated without a redraw, which would release the slider.
    oninput: async () => {
      const value = Number(slider.value);
      store.setQuietly({ moment: value });
      step.textContent = name(value);
      const nodes = await moment(context, placeOf(value));
      if (store.state.moment === value) shown.replaceChildren(...nodes);
    },
  });
  const play = () => {
    if (state.moment < 0) store.setQuietly({ moment: player.last });
    player.toggle(store);
  };
  const button = h(
    "button",
    { id: "play", type: "button", "aria-pressed": String(player.play !== null), onclick: play },
    player.play ? `❚❚ ${t("pause")}` : `▶ ${t("play")}`,
  );
  const several = probes.length > 1;
  const choose = (name) => (value) => store.set({ [name]: value });
  const choices = kinds.map((each) => ({ value: each, text: t(`kind.${each}`), title: t(`kind.${each}.title`) }));
  return [
    h(
      "div",
      { class: "controls" },
      several && stepper(t("training.sentence"), "probe", probe, probes.length, choose("probe")),
      segments(t("kind"), choices, kind, choose("kind")),
      stepper(t("layer"), "layer", layer, layers, choose("layer")),
      stepper(t("head.number"), "head", head, heads, choose("head")),
    ),
    h("div", { class: "controls" }, button, h("label", { class: "slider" }, slider, step)),
    shown,
  ];
}

/**
 * The points of one curve, without those of averaged checkpoints.
 * @param {Entry[]} entries
 * @param {string} name
 * @returns {[number, number][]}
 */
function points(entries, name) {
  const source = name === "speed" ? speeds(entries) : entries;
  return source
    .filter((each) => typeof each[name] === "number" && !each.averaged)
    .map((each) => [each.step, each[name]]);
}

/** Tokens per second from one entry to the next. @param {Entry[]} entries @returns {Entry[]} */
function speeds(entries) {
  const steps = entries.filter((each) => each.seconds !== undefined);
  return steps.slice(1).flatMap((each, i) => {
    const seconds = each.seconds - steps[i].seconds;
    return seconds > 0 ? [{ step: each.step, speed: each.tokens / seconds }] : [];
  });
}

/** @param {Context} context @param {Run[]} runs */
export function lines({ state, t }, runs) {
  const [trained, valid] = MEASURES[state.measure] ?? MEASURES.loss;
  const several = runs.length > 1;
  return runs.flatMap(({ run, entries }, hue) =>
    [
      { name: t("training.train"), points: trained ? points(entries, trained) : [], faint: Boolean(valid) },
      { name: t("training.valid"), points: valid ? points(entries, valid) : [] },
    ]
      .filter((line) => line.points.length)
      .map((line) => (several ? { ...line, name: `${run} ${line.name}`, hue } : line)),
  );
}

/**
 * At most so many, from the first to the last.
 * @template T
 * @param {T[]} all
 * @param {number} most
 * @returns {T[]}
 */
export function spreadOut(all, most) {
  if (all.length <= most) return all;
  return Array.from({ length: most }, (_, i) => all[Math.round((i * (all.length - 1)) / (most - 1))]);
}

/** Sample outputs from the first validation to the last. @param {Context} context @param {Run} run */
export function samples({ t }, { entries }) {
  const shown = spreadOut(entries.filter((each) => each.sample), SAMPLES);
  if (!shown.length) return null;
  return h(
    "section",
    { class: "samples" },
    h("h2", {}, t("training.samples")),
    h(
      "ol",
      {},
      shown.map(({ step, sample }) =>
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

/** @type {import("../frame.js").Screen} */
export const training = {
  id: "training",
  sign: "◿",
  alone: true,
  keys: { " ": ({ store }) => player.toggle(store) },
  render: async (context) => {
    const { server, state, store, t } = context;
    const all = server.models.filter((each) => each.run);
    const example = all.length ? null : await recorded(); // no model of this server has a run
    const chosen = all.find((each) => each.id === server.way(state).model) ?? all[0] ?? { id: RECORDED, does: "" };
    // Losses of different tasks are not comparable.
    const ids = example ? [RECORDED] : all.filter((each) => each.does === chosen.does).map((each) => each.id);
    const tell = () => store.state.screen === "training" && store.notify();
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
    const width = across(1040);
    const logarithmic = (axis) => state.axes.includes(axis);
    const axis = (name) =>
      checkbox(`log-${name}`, t(`training.log-${name}`), logarithmic(name), (on) =>
        store.set({ axes: AXES.filter((each) => (each === name ? on : logarithmic(each))).join("") }),
      );
    const curves = stack(
      [
        chart(context, { title, across: t("training.steps"), lines: drawn, width, height: 300, logX: logarithmic("x"), logY: logarithmic("y") }),
        legend(context, drawn, width),
      ],
      title,
    );
    const validations = first.entries.filter((each) => each.valid_loss !== undefined).length;
    const played = await attentionThroughTraining(context, first.run, validations, player);
    const { step = 0 } = first.entries[first.entries.length - 1] ?? {};
    return {
      controls: [
        segments(
          t("training.measure"),
          measures.map(([value]) => ({ value, text: t(`training.${value}`) })),
          state.measure,
          (measure) => store.set({ measure }),
        ),
        ...AXES.map(axis),
        h("span", { class: "soft" }, t("training.so-far", { run: example?.id ?? first.run, step })),
      ],
      body: h(
        "div",
        { class: "training" },
        example && h("p", { class: "recorded" }, t("training.recorded"), " ", h("code", {}, example.command)),
        h("div", { class: "scroll" }, curves),
        samples(context, first),
        h("section", { class: "played" }, h("h2", {}, t("training.attention")), played),
      ),
      figure: curves,
      table: { caption: title, head: [t("training.steps"), ...drawn.map((line) => line.name)], rows: table(drawn) },
    };
  },
};

/** A row for each step of the curve with the fewest points. @param {{ points: [number, number][] }[]} drawn */
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
