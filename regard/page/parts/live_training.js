// A small model of dates that the server trains while the user watches: its curve, its outputs, and its attention.

import { across, chart, legend } from "../figures/chart.js";
import { stack } from "../figures/svg.js";
import { attentionThroughTraining, lines, samples } from "../screens/training.js";
import { describeError, request } from "../state/requests.js";
import { journal } from "../state/runs.js";
import { h } from "./dom.js";
import { Player } from "./player.js";

/** @typedef {import("../frame.js").Context} Context */
/**
 * @typedef {object} Training What the server says about it.
 * @property {string | null} run
 * @property {"none" | "running" | "finished" | "stopped" | "failed"} phase
 * @property {number} seconds
 * @property {number} most_seconds
 * @property {number} steps
 * @property {boolean} allowed
 */

const ADDRESS = "/api/v1/demonstration";
const AGAIN = 1000; // milliseconds until the server is asked again
const player = new Player("learn", "moment", 700);
let problem = ""; // why the last request failed
let timer = 0;

/** @param {Context} context @param {"POST" | "DELETE"} method */
async function act({ store, t }, method) {
  problem = "";
  try {
    await request(ADDRESS, method === "POST" ? {} : undefined, undefined, method);
  } catch (why) {
    problem = describeError(why, t).message;
  }
  store.setQuietly({ moment: -1 });
  await store.notify();
}

/** The button, and what the training does now. @param {Context} context @param {Training} training @param {number} step */
function state(context, { phase, allowed, seconds, steps }, step) {
  const { t } = context;
  const going = phase === "running";
  const words = { seconds: Math.round(seconds), step, steps };
  const said = going && !step ? "preparing" : phase;
  return h(
    "div",
    { class: "under" },
    going
      ? h("button", { id: "train-stop", type: "button", onclick: () => act(context, "DELETE") }, t("train.stop"))
      : h(
          "button",
          { id: "train-start", type: "button", class: "primary", disabled: !allowed, onclick: () => act(context, "POST") },
          t(phase === "none" ? "train.start" : "train.again"),
        ),
    going && h("progress", { max: steps, value: step || null, "aria-label": t("train.progress") }),
    h("span", { class: "soft number" }, phase === "none" ? "" : t(`train.${said}`, words)),
    h("span", { class: "problem", role: "alert" }, problem),
  );
}

/** @param {Context} context @returns {Promise<Node[]>} */
async function training(context) {
  const { store, t } = context;
  /** @type {Training} */
  const now = await (await request(ADDRESS)).json();
  const { run, phase, allowed } = now;
  const again = () => store.state.screen === "learn" && void store.notify();
  const entries = run ? await journal(run, again) : [];
  const { step = 0 } = entries[entries.length - 1] ?? {};
  clearTimeout(timer);
  if (phase === "running") timer = setTimeout(again, AGAIN);
  const note = allowed || phase === "running" ? "train.note" : "train.not-allowed";
  return [
    h("h2", {}, t("train")),
    h("p", { class: "soft" }, t(note)),
    state(context, now, step),
    ...(entries.length ? await figures(context, run, entries) : []),
  ];
}

/** @param {Context} context @param {string} run @param {import("../state/runs.js").Entry[]} entries */
async function figures(context, run, entries) {
  const { t } = context;
  const drawn = lines({ ...context, state: { ...context.state, measure: "loss" } }, [{ run, entries }]);
  const width = across(1040);
  const title = t("training.loss");
  const curve = chart(context, { title, across: t("training.steps"), lines: drawn, width, height: 220 });
  const validations = entries.filter((each) => each.valid_loss !== undefined).length;
  return [
    h("div", { class: "scroll" }, stack([curve, legend(context, drawn, width)], title)),
    samples(context, { run, entries }),
    validations > 0 &&
      h(
        "section",
        { class: "played" },
        h("h2", {}, t("training.attention")),
        await attentionThroughTraining(context, run, validations, player),
      ),
  ].filter(Boolean);
}

/** @type {import("../screens/learn.js").Live} */
export const liveTraining = { training, keys: { " ": ({ store }) => player.toggle(store) } };
