// The attention of one head in one held-out sentence, played from the first step of a run to its last.

import { matrixFigure } from "./matrix_figure.js";
import { segments, stepper } from "./controls.js";
import { h } from "./dom.js";
import { attentionAt, probeAt, probesOf } from "./following.js";
import { fixed, percent } from "./number.js";
import { Player } from "./player.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {{ run: string, step: number, probe: number, kind: string, layer: number, head: number }} Place */

export const player = new Player("training", "moment", 700);

/**
 * One moment: what the head looked at, how likely the reference was, and what would have been written.
 * @param {Context} context
 * @param {Place} place
 */
async function moment(context, { run, ...place }) {
  const { t } = context;
  const [probe, matrix] = await Promise.all([probeAt(run, place), attentionAt(run, place)]);
  const texts = (/** @type {"inputs" | "outputs"} */ side) => probe[side].tokens.map((token) => token.text);
  const rows = texts(place.kind === "encoder" ? "inputs" : "outputs");
  const columns = texts(place.kind === "decoder" ? "outputs" : "inputs");
  const drawn = matrixFigure(context, {
    matrix,
    rows,
    columns,
    may: (query, key) => place.kind !== "decoder" || key <= query,
    row: -1,
    column: -1,
    pick: () => {},
    say: (query, key) =>
      `${rows[query]} → ${columns[key]}: ${percent(matrix.data[query * columns.length + key])}`,
    told: t("training.attention"),
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
 * The sentence, the head and the moment, each to be chosen, and what there was to see.
 * @param {Context} context
 * @param {string} run
 * @param {number} validations How many there are by now.
 */
export async function attentionThroughTraining(context, run, validations) {
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
  const placeOf = (/** @type {number} */ i) => ({ run, step: steps[i], probe, kind, layer, head });
  if (now < player.last) void attentionAt(run, placeOf(now + 1)).catch(() => null); // the next, at hand
  const shown = h("div", { class: "played" }, await moment(context, placeOf(now)));
  const told = (/** @type {number} */ i) => t("training.step", { step: steps[i] });
  const step = h("output", {}, told(now));
  const slider = h("input", {
    id: "moment",
    type: "range",
    min: 0,
    max: player.last,
    value: now,
    "aria-label": t("training.moment"),
    // Shown here, and not by a redraw, which would take the slider out of the reader's hand.
    oninput: async () => {
      const value = Number(/** @type {HTMLInputElement} */ (slider).value);
      store.note({ moment: value });
      step.textContent = told(value);
      const nodes = await moment(context, placeOf(value));
      if (store.state.moment === value) shown.replaceChildren(...nodes);
    },
  });
  const play = () => {
    if (state.moment < 0) store.note({ moment: player.last });
    player.toggle(store);
  };
  const button = h(
    "button",
    { id: "play", type: "button", "aria-pressed": String(player.play !== null), onclick: play },
    player.play ? `❚❚ ${t("pause")}` : `▶ ${t("play")}`,
  );
  const several = probes.length > 1;
  const choose = (/** @type {string} */ name) => (/** @type {string | number} */ value) =>
    store.set({ [name]: value });
  const choices = kinds.map((each) => ({
    value: each,
    text: t(`kind.${each}`),
    title: t(`kind.${each}.title`),
  }));
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
