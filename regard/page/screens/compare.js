// Compare two traces side by side: of two models, of a model and its changes, or of two texts; how far apart their heads
// are, and which tokens each of two models finds likelier.

import { fixed } from "../compute/number.js";
import { at } from "../compute/tensor.js";
import { changesOf } from "../compute/text.js";
import { BESIDE, scalars } from "../figures/bars.js";
import { across, room } from "../figures/chart.js";
import { on, shade } from "../figures/colour.js";
import { matrixFigure, MOST_WEIGHT, OFF } from "../figures/matrix.js";
import { figure, label, stack } from "../figures/svg.js";
import { placeControls, segments } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { changes } from "../state/changes.js";
import { exampleOf, examplesFor } from "../state/examples.js";
import { isOff, mayAttend } from "../state/source.js";

const SIDE_BY_SIDE = 1000; // width of the window, as in the style sheet
const GAP = 30;

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/server.js").Opened} Opened */

/**
 * The output that the other model must produce, as ids: the translation without its end, or the label.
 * @param {import("../state/source.js").About} about
 */
function again({ architecture, wanted }) {
  const ids = wanted.map((each) => each.id);
  return { "encoder-decoder": { target: ids.slice(0, -1) }, encoder: { target: ids } }[architecture] ?? {};
}

/** @param {import("../state/source.js").About} about */
const likely = (about) => about.wanted.reduce((sum, each) => sum + each.log_prob, 0);

/**
 * The models that can stand beside this one: those with the same task, such as a checkpoint of its run.
 * @param {Context} context
 */
function rivals({ server, state }) {
  const own = server.model(state);
  return server.models.filter(({ id, does }) => id !== own.id && does === own.does).map(({ id }) => id);
}

/** The model that stands beside this one; empty if there is none. @param {Context} context */
function rivalOf(context) {
  const all = rivals(context);
  return all.includes(context.state.rival) ? context.state.rival : (all[0] ?? "");
}

/** The text to compare with: the user's, or else an example. @param {Context} context */
function otherText({ server, state }) {
  const all = examplesFor(server, state);
  const here = exampleOf(all, state.text);
  const other = here?.variant ?? all.find((each) => each !== here)?.text ?? "";
  return state.other.trim() || (other === state.text.trim() ? (here?.text ?? "") : other);
}

/**
 * What is changed inside the model: what the user chose, or else the selected head is off, as an example.
 * @param {Context} context
 */
function changed({ about, state: { kind, layer, head, ...state } }) {
  const chosen = changes(state, about);
  return chosen.length ? chosen : [{ op: "head-off", kind, layer, head }];
}

/**
 * The other trace: the same output of the changed model or of another one, or another text; null if there is none.
 * @param {Context} context
 * @returns {Promise<Opened | null>}
 */
async function beside(context) {
  const { about, server, state } = context;
  const plain = { ...state, target: "", prefix: "", whole: "" };
  if (state.beside === "text") return server.trace({ ...plain, text: otherText(context) });
  if (state.beside === "model") {
    const model = rivalOf(context);
    // The output is a text for the other model, whose tokens may be others.
    return model ? server.trace({ ...plain, model, target: about.inputs && about.outputs ? about.outputs.text : "" }) : null;
  }
  const interventions = changed(context);
  return server.trace({ ...state, prefix: "", target: "" }, { ...again(about), interventions });
}

/** What a model writes by itself. @param {Context} context @param {string} [model] Default: the other one. */
async function ownOutput(context, model = rivalOf(context)) {
  const { server, state } = context;
  const found = await server.trace({ ...state, target: "", prefix: "", whole: "", model });
  return found?.about.outputs?.text ?? "";
}

/** The tokens of the longer side. @param {Opened[]} both @param {"inputs" | "outputs"} side */
const longest = (both, side) => Math.max(...both.map(({ about }) => about[side]?.tokens.length ?? 0));

/**
 * The figure of one trace at the current layer and head.
 * @param {Context} context
 * @param {Opened} opened
 * @param {Opened[]} both Their cells have one size.
 */
async function column(context, { source, about }, both) {
  const { state, store, t } = context;
  const kind = about.kinds.find((each) => each.kind === state.kind) ?? about.kinds[0];
  const [layer, head] = [Math.min(state.layer, kind.layers - 1), Math.min(state.head, kind.heads - 1)]; // of a smaller model
  const matrix = await source.matrix(kind.kind, layer, head, "weights");
  const [queries, keys] = [about[kind.queries].tokens, about[kind.keys].tokens];
  const rows = queries.flatMap(({ text }, query) =>
    keys.flatMap((key, i) =>
      mayAttend(kind, query, i) ? [[text, key.text, fixed(matrix.data[query * keys.length + i], 3)]] : [],
    ),
  );
  const off = isOff(about, kind.kind, layer, head);
  const place = `${t(`kind.${kind.kind}.title`)}, ${t("layer")} ${layer}, ${t("head.number")} ${head}`;
  const drawn = matrixFigure(context, {
    matrix,
    most: MOST_WEIGHT,
    width: innerWidth > SIDE_BY_SIDE ? (room() - GAP) / 2 : room(),
    like: [longest(both, kind.queries), longest(both, kind.keys)],
    rows: queries.map((token) => token.text),
    columns: keys.map((token) => token.text),
    may: (query, key) => mayAttend(kind, query, key),
    row: Math.min(state.query, queries.length - 1),
    column: -1,
    pick: (query) => store.set({ query }),
    say: (query, key) =>
      `${queries[query].text} → ${keys[key].text}: ${fixed(matrix.data[query * keys.length + key], 3)}`,
    label: off ? `${place}: ${t("compare.is-off")}` : place,
  });
  if (off) drawn.classList.add("off");
  const note = off && h("p", { class: "tag" }, `${OFF} ${t("compare.is-off")}`);
  return { drawn, note, rows, place };
}

/**
 * The distance of each head, if both traces have the same tokens.
 * @param {Context} context
 * @param {Opened} one
 * @param {Opened} other
 */
async function apart({ state, store, t, theme }, one, other) {
  const rows = await Promise.all(
    one.about.kinds.flatMap((kind) =>
      Array.from({ length: kind.layers }, async (_, i) => {
        const layer = kind.layers - 1 - i; // the last layer on top
        const [a, b] = await Promise.all([one, other].map(({ source }) => source.heads(kind.kind, layer)));
        const cells = Array.from({ length: kind.heads }, (_, head) => {
          const value = meanDistance(at(a, head), at(b, head));
          const off = isOff(other.about, kind.kind, layer, head);
          const colour = shade(value, 1, theme);
          return h(
            "td",
            {},
            h(
              "button",
              {
                type: "button",
                class: "apart",
                style: { "background-color": colour, color: on(colour) },
                "aria-current":
                  kind.kind === state.kind && layer === state.layer && head === state.head && "true",
                title: off && t("compare.is-off"),
                "aria-label": off && `${fixed(value, 2)}, ${t("compare.is-off")}`,
                onclick: () => store.set({ kind: kind.kind, layer, head, query: -1 }),
              },
              off ? `${OFF} ${fixed(value, 2)}` : fixed(value, 2),
            ),
          );
        });
        return h("tr", {}, h("th", { scope: "row" }, `${t(`kind.${kind.kind}`)} · ${t("layer")} ${layer}`), cells);
      }),
    ),
  );
  return h(
    "section",
    { class: "aparts" },
    h("h2", {}, t("compare.apart")),
    h("p", { class: "soft" }, t("compare.apart.note")),
    h("div", { class: "scroll" }, h("table", {}, h("tbody", {}, rows))),
  );
}

/**
 * Whether two traces have the same tokens, layers and heads, so that these can be compared one by one.
 * @param {import("../state/source.js").About} one
 * @param {import("../state/source.js").About} other
 */
export function alike(one, other) {
  const ids = (side) => JSON.stringify(side?.tokens.map((token) => token.id) ?? null);
  const shape = ({ kinds }) => JSON.stringify(kinds.map(({ kind, layers, heads }) => [kind, layers, heads]));
  return ids(one.inputs) === ids(other.inputs) && ids(one.outputs) === ids(other.outputs) && shape(one) === shape(other);
}

/**
 * The probability of each token in both models, as bars on one scale.
 * @param {Context} context
 * @param {import("../state/source.js").About} one
 * @param {import("../state/source.js").About} other
 * @param {string[]} names
 */
function tokenByToken(context, one, other, names) {
  const { t } = context;
  const [mine, theirs] = [one, other].map(({ wanted }) => wanted.map((each) => Math.exp(each.log_prob)));
  const part = scalars(context, {
    rows: one.wanted.map((each) => each.text),
    values: mine,
    most: 1,
    ghost: theirs,
    loud: true,
    caption: t("compare.tokens", { one: names[0], other: names[1] }),
    across: across(BESIDE + 420) - BESIDE,
  });
  return h("section", {}, h("h2", {}, t("compare.by-token")), h("div", { class: "scroll" }, stack([part], t("compare.by-token"))));
}

/** Both figures as one, for saving. @param {Context} context @param {string[]} names @param {SVGElement[]} drawn */
function both({ palette, t }, names, drawn) {
  const [wide, tall] = ["width", "height"].map((side) => drawn.map((each) => Number(each.getAttribute(side))));
  const places = [0, wide[0] + 30];
  const copies = drawn.map((each, i) => {
    const copy = /** @type {SVGElement} */ (each.cloneNode(true));
    copy.setAttribute("x", String(places[i]));
    copy.setAttribute("y", "26");
    return copy;
  });
  const titles = names.map((name, i) => label(name, places[i], 10, { fill: palette.ink, "font-weight": 600 }));
  return figure(places[1] + wide[1], 26 + Math.max(...tall), t("compare"), [...titles, ...copies]);
}

/** The controls of this screen. @param {Context} context */
function choices(context) {
  const { state, store, t } = context;
  const choice = (value) => ({ value, text: t(`compare.${value}`) });
  const field = h("input", {
    id: "other",
    type: "text",
    value: otherText(context),
    placeholder: t("compare.write"),
    "aria-label": t("compare.text"),
    onchange: (event) => store.set({ other: event.target.value }),
  });
  const others = rivals(context);
  return [
    segments(t("compare"), ["off", "model", "text"].map(choice), state.beside, (value) => store.set({ beside: value })),
    state.beside === "model" &&
      others.length > 0 &&
      h(
        "select",
        { id: "rival", "aria-label": t("compare.model"), onchange: (event) => store.set({ rival: event.target.value }) },
        others.map((id) => h("option", { value: id, selected: id === rivalOf(context) }, id)),
      ),
    state.beside === "text" && field,
    state.beside === "off" &&
      h(
        "button",
        { id: "to-off", type: "button", onclick: () => store.set({ screen: "map", op: state.op || "off" }) },
        t("compare.choose"),
      ),
  ];
}

/** @type {Record<string, "span" | "del" | "ins">} */
const MARKS = { same: "span", gone: "del", new: "ins" };

/** A text with its changes against another one. @param {string} before @param {string} text */
const diffed = (before, text) => changesOf(before, text).map((part) => h(MARKS[part.change], {}, part.text));

/**
 * An output and its log-probability, with a diff against another output.
 * @param {Context} context
 * @param {string} title
 * @param {Opened} opened
 * @param {string} [before]
 */
function heading({ t }, title, { about }, before) {
  const text = about.outputs?.text ?? about.wanted[0].text;
  return [
    h("h2", {}, title),
    about.inputs && h("p", { class: "soft", dir: "auto" }, about.inputs.text),
    h(
      "p",
      { class: "rewritten", dir: "auto" },
      diffed(before ?? text, text),
    ),
    h("p", { class: "soft number" }, t("off.log-prob", { value: fixed(likely(about), 3) })),
  ];
}

/** @type {import("../frame.js").Screen} */
export const compare = {
  id: "compare",
  sign: "◧",
  render: async (context) => {
    const { about, source, state, t } = context;
    const one = { source, about };
    const other = await beside(context);
    const controls = [...choices(context), ...placeControls(context)];
    if (!other) return { controls, body: h("p", { class: "empty" }, t(`compare.${state.beside}.none`)) };
    const [off, models] = [state.beside === "off", state.beside === "model"];
    const example = off && !changes(state, about).length;
    const [left, right] = await Promise.all([one, other].map((each, _, both) => column(context, each, both)));
    const names = off
      ? [t("off.intact"), t("off.without", { count: changed(context).length })]
      : models
        ? [context.server.way(state).model, rivalOf(context)]
        : [t("compare.one"), t("compare.other")];
    const same = off || (models && alike(about, other.about));
    const own = models && about.inputs && about.outputs ? await ownOutput(context) : "";
    const written = (text) =>
      own && [h("p", { class: "soft" }, t("compare.own")), h("p", { class: "rewritten", dir: "auto" }, diffed(about.outputs.text, text))];
    const mine = own && (about.interventions.length || state.target || state.whole ? await ownOutput(context, state.model) : about.outputs.text);
    return {
      controls,
      body: h(
        "div",
        { class: "compare" },
        example && h("p", { class: "soft" }, t("compare.example", { layer: state.layer, head: state.head })),
        h(
          "div",
          { class: "split even" },
          h("section", {}, heading(context, names[0], one), written(mine), left.note, h("div", { class: "scroll" }, left.drawn)),
          h(
            "section",
            {},
            heading(context, names[1], other, off || models ? undefined : about.outputs?.text),
            written(own),
            right.note,
            h("div", { class: "scroll" }, right.drawn),
          ),
        ),
        models && !same && h("p", { class: "soft" }, t("compare.unlike")),
        models && same && about.wanted.length > 0 && tokenByToken(context, about, other.about, names),
        same && (await apart(context, one, other)),
      ),
      figure: both(context, names, [left.drawn, right.drawn]),
      table: {
        caption: t("compare"),
        head: [t("compare"), t("walk.q"), t("walk.k"), t("view.weights")],
        rows: [left, right].flatMap(({ rows }, i) => rows.map((row) => [names[i], ...row])),
      },
    };
  },
};

/** @typedef {import("../compute/tensor.js").Tensor} Tensor */

/**
 * Jensen-Shannon distance of two distributions, from 0 (equal) to 1 (disjoint).
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
export function distance(a, b) {
  const total = (shares) => Array.from(shares).reduce((sum, each) => sum + each, 0) || 1;
  const [ofA, ofB] = [total(a), total(b)];
  let bits = 0;
  for (let i = 0; i < a.length; i++) {
    const [p, q] = [a[i] / ofA, b[i] / ofB];
    const mean = (p + q) / 2;
    if (p > 0) bits += (p * Math.log2(p / mean)) / 2;
    if (q > 0) bits += (q * Math.log2(q / mean)) / 2;
  }
  return Math.sqrt(Math.max(0, bits));
}

/** Mean distance of the rows of two matrices. @param {Tensor} a @param {Tensor} b */
export function meanDistance(a, b) {
  const [rows, columns] = a.shape;
  let sum = 0;
  for (let row = 0; row < rows; row++) {
    const [from, to] = [row * columns, (row + 1) * columns];
    sum += distance(a.data.subarray(from, to), b.data.subarray(from, to));
  }
  return sum / rows;
}
