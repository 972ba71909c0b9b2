// Compare two traces side by side, and how far apart their heads are.

import { fixed } from "../compute/number.js";
import { at } from "../compute/tensor.js";
import { changesOf } from "../compute/text.js";
import { on, shade } from "../figures/colour.js";
import { matrixFigure, MOST_WEIGHT, OFF } from "../figures/matrix.js";
import { figure, label } from "../figures/svg.js";
import { placeControls, segments } from "../parts/controls.js";
import { h } from "../parts/dom.js";
import { changes } from "../state/server.js";
import { isOff, mayAttend } from "../state/source.js";

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
 * The other trace: the same output of the changed model, or another text; null if there is none.
 * @param {Context} context
 * @returns {Promise<Opened | null>}
 */
async function beside({ about, server, state }) {
  if (state.beside === "text")
    return server.trace({ ...state, target: "", prefix: "", whole: "", text: state.other });
  const interventions = changes(state, about);
  if (!interventions.length) return null;
  return server.trace({ ...state, prefix: "", target: "" }, { ...again(about), interventions });
}

/** The figure of one trace at the current layer and head. @param {Context} context @param {Opened} opened */
async function column(context, { source, about }) {
  const { state, store, t } = context;
  const kind = about.kinds.find((each) => each.kind === state.kind) ?? about.kinds[0];
  const matrix = await source.matrix(kind.kind, state.layer, state.head, "weights");
  const [queries, keys] = [about[kind.queries].tokens, about[kind.keys].tokens];
  const rows = queries.flatMap(({ text }, query) =>
    keys.flatMap((key, i) =>
      mayAttend(kind, query, i) ? [[text, key.text, fixed(matrix.data[query * keys.length + i], 3)]] : [],
    ),
  );
  const off = isOff(about, kind.kind, state.layer, state.head);
  const place = `${t(`kind.${kind.kind}.title`)}, ${t("layer")} ${state.layer}, ${t("head.number")} ${state.head}`;
  const drawn = matrixFigure(context, {
    matrix,
    most: MOST_WEIGHT,
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
  return { drawn, note, rows };
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
function choices({ state, store, t }) {
  const choice = (value) => ({ value, text: t(`compare.${value}`) });
  const field = h("input", {
    id: "other",
    type: "text",
    value: state.other,
    placeholder: t("compare.write"),
    "aria-label": t("compare.text"),
    onchange: (event) => store.set({ other: event.target.value }),
  });
  return [
    segments(t("compare"), ["off", "text"].map(choice), state.beside, (value) => store.set({ beside: value })),
    state.beside === "text" && field,
    state.beside === "off" &&
      h(
        "button",
        { id: "to-off", type: "button", onclick: () => store.set({ screen: "off" }) },
        t("compare.choose"),
      ),
  ];
}

/**
 * An output and its log-probability, with a diff against another output.
 * @param {Context} context
 * @param {string} title
 * @param {Opened} opened
 * @param {string} [before]
 */
function heading({ t }, title, { about }, before) {
  const text = about.outputs?.text ?? about.wanted[0].text;
  /** @type {Record<string, "span" | "del" | "ins">} */
  const marks = { same: "span", gone: "del", new: "ins" };
  return [
    h("h2", {}, title),
    about.inputs && h("p", { class: "soft", dir: "auto" }, about.inputs.text),
    h(
      "p",
      { class: "rewritten", dir: "auto" },
      changesOf(before ?? text, text).map((part) => h(marks[part.change], {}, part.text)),
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
    const same = state.beside === "off";
    const [left, right] = await Promise.all([one, other].map((each) => column(context, each)));
    const names = same
      ? [t("off.intact"), t("off.without", { count: changes(state, about).length })]
      : [t("compare.one"), t("compare.other")];
    return {
      controls,
      body: h(
        "div",
        { class: "compare" },
        h(
          "div",
          { class: "split even" },
          h("section", {}, heading(context, names[0], one), left.note, h("div", { class: "scroll" }, left.drawn)),
          h(
            "section",
            {},
            heading(context, names[1], other, same ? undefined : about.outputs?.text),
            right.note,
            h("div", { class: "scroll" }, right.drawn),
          ),
        ),
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
