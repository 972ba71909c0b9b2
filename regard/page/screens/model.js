// Figure 1 of the paper, drawn for the loaded model: the home of all screens. A box opens to this text's tensors.

import { layersOf, layoutOf, stackOfBlock, tensorsOf } from "../compute/figure_one.js";
import { short } from "../compute/number.js";
import { at } from "../compute/tensor.js";
import { boxName, figureOne } from "../figures/figure_one.js";
import { MOST_WEIGHT } from "../figures/matrix.js";
import { h } from "../parts/dom.js";
import { shares } from "../parts/lists.js";
import { smallPicture, tensorView } from "../parts/tensor_view.js";
import { toKind } from "../state/store.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/figure_one.js").Placed} Placed */

const NARROW = 720; // pixels of the window below which the decoder stands above the encoder

/** The layer that is shown of each stack. @param {Context} context @returns {Record<string, number>} */
export function layersShown({ about, state }) {
  const shown = (stack) => Math.min(state.layer, layersOf(about, stack) - 1);
  return { encoder: shown("encoder"), decoder: shown("decoder") };
}

/** The kind of attention that is selected with a box. @param {Context} context @param {{ id: string, type: string, stack: string, block: string }} box */
function kindOf({ state }, { id, type, stack, block }) {
  if (type === "attention") return id;
  return block && stackOfBlock(state.kind) !== stack ? stack : state.kind;
}

/** @param {Context} context @param {Placed} box */
function pick(context, box) {
  const { state, store } = context;
  const open = state.box === box.id ? "" : box.id;
  const kind = kindOf(context, box);
  void store.set({ box: open, ...(kind === state.kind ? {} : { ...toKind(state, kind), layer: layersShown(context)[box.stack] }) });
}

/** The selected token on one side: it is read, or it attends. @param {Context} context @param {"encoder" | "decoder"} stack */
function selectedOf({ state, kind, about }, stack) {
  const side = stack === "encoder" ? "inputs" : "outputs";
  if (kind.queries === side) return state.query;
  if (kind.keys === side) return state.key;
  return side === "outputs" && about.outputs ? state.step : -1;
}

/** @param {Context} context @param {"encoder" | "decoder"} stack */
const tokensOf = ({ about }, stack) => about[stack === "encoder" ? "inputs" : "outputs"].tokens.map((token) => token.text);

/**
 * The change of the state that selects a token of a stack.
 * @param {Context} context
 * @param {"encoder" | "decoder"} stack
 * @param {number} row
 */
function select({ state, store, kind }, stack, row) {
  const side = stack === "encoder" ? "inputs" : "outputs";
  void store.set(kind.queries === side ? { query: row } : kind.keys === side ? { key: row } : { ...toKind(state, stack), query: row });
}

/** The weights of the selected head in an attention, as a picture. @param {Context} context @param {string} block @param {number} layer */
async function weightsView(context, block, layer) {
  const { about, source, state, store, t } = context;
  const kind = about.kinds.find((each) => each.kind === block);
  const names = (side) => about[side].tokens.map((token) => token.text);
  const tensor = await source.matrix(block, layer, state.head, "weights");
  return tensorView(context, {
    title: `${t("walk.weights")}, ${t("head.number")} ${state.head}`,
    shape: [kind.queries, kind.keys].map((side) => (side === "inputs" ? "S" : "T")).join(" × "),
    ...{ tensor, most: MOST_WEIGHT, rows: names(kind.queries), columns: names(kind.keys), selected: state.query },
    pick: (query) => store.set({ query }),
  });
}

/** Every tensor of a box. @param {Context} context @param {Placed} box */
async function tensors(context, box) {
  const { about, source, state, t } = context;
  const layer = layersShown(context)[box.stack];
  const rowsOf = (shape) => (shape[0] === "S" ? "encoder" : "decoder");
  const held = tensorsOf(about, box, layer).map(async ({ address, name, shape, heads }) => {
    const whole = await source.activation(address);
    if (!whole) return null;
    const [rows, , width] = whole.shape;
    const ofHead = () => {
      const data = new Float32Array(rows * width);
      for (let row = 0; row < rows; row++) data.set(at(at(whole, row), state.head).data, row * width);
      return { data, shape: [rows, width] };
    };
    const stack = rowsOf(shape);
    return tensorView(context, {
      title: heads ? `${t(`walk.${name}`)}, ${t("head.number")} ${state.head}` : t(`walk.${name}`),
      shape: shape.join(" × "),
      whole: whole.shape,
      tensor: heads ? ofHead() : whole,
      rows: tokensOf(context, stack),
      selected: selectedOf(context, stack),
      pick: (row) => select(context, stack, row),
    });
  });
  const views = await Promise.all(held);
  if (box.type !== "attention") return views;
  const weights = await weightsView(context, box.id, layer);
  return [...views.slice(0, 2), weights, ...views.slice(2)]; // in the order in which they are computed
}

/** The candidates of the output layer at the selected step. @param {Context} context @param {Placed} box */
async function predictions(context, box) {
  const { about, source, state, t } = context;
  const steps = await source.steps();
  const { after, candidates } = steps[Math.min(state.step, steps.length - 1)];
  const most = Math.max(...candidates.map(({ logit }) => Math.abs(logit)));
  const title = h("p", {}, after === null ? t("steps.label") : t("steps.after", { token: after }));
  const size = about.sizes.vocab_size;
  const shape = h("p", { class: "soft number" }, t("figure.vocabulary", { size, shown: candidates.length }));
  if (box.id === "linear") {
    const bar = ({ logit }) => h("span", { class: "share-bar" }, h("span", { style: { width: `${(100 * Math.abs(logit)) / most}%` } }));
    const rows = candidates.map((each) =>
      h("li", {}, h("span", { class: "share-name" }, each.text), bar(each), h("span", { class: "number" }, short(each.logit))),
    );
    return [title, shape, h("ol", { class: "shares", "aria-label": t("walk.logits") }, rows)];
  }
  const named = candidates.map(({ text, probability }) => ({ name: text, share: probability }));
  return [title, shape, shares(named, t("walk.probabilities"))];
}

/** The tokens of a text with their numbers. @param {Context} context @param {Placed} box */
function texts({ about, t }, box) {
  if (box.id === "text:said") {
    const { wanted } = about;
    const rows = wanted.map(({ text, log_prob }) => ({ name: text, share: Math.exp(log_prob) }));
    return [h("p", { class: "soft" }, t("figure.said.note")), shares(rows, t("figure.said"))];
  }
  const { tokens, text } = about[box.stack === "encoder" ? "inputs" : "outputs"];
  const cells = tokens.map((token, i) =>
    h("li", {}, h("span", { class: "soft number" }, String(i)), h("span", {}, token.text), h("span", { class: "soft number" }, `#${token.id}`)),
  );
  return [h("p", { dir: "auto" }, text), h("p", { class: "soft" }, t("figure.tokens", { count: tokens.length })), h("ol", { class: "token-list" }, cells)];
}

/** The screens that are inside a box. @param {Placed} box @param {boolean} searches */
function inside({ id, type, block }, searches) {
  if (type === "attention") return ["map", "head", "walk", ...(id === "cross" ? ["alignment"] : [])];
  if (["embedding", "position"].includes(type)) return ["positions"];
  if (["linear", "softmax"].includes(type) || id === "text:said") return ["steps", ...(searches ? ["beam"] : [])];
  return block ? ["walk"] : [];
}

/** What is in a box, and the ways further in. @param {Context} context @param {Placed} box */
async function opened(context, box) {
  const { about, store, t, server } = context;
  const parts = box.type === "text" ? texts(context, box) : ["linear", "softmax"].includes(box.type) ? await predictions(context, box) : await tensors(context, box);
  const searches = about.architecture === "encoder-decoder";
  const ways = inside(box, searches).filter((screen) => server || screen !== "positions");
  const said = box.type === "attention" ? box.id : box.id === "text:said" ? "said" : box.type;
  return [
    h("h2", { id: "box-name" }, boxName(context, about, box)),
    h("p", { class: "sentence" }, t(`figure.about.${said}`)),
    ways.length > 0 &&
      h(
        "div",
        { class: "ways" },
        h("span", { class: "soft" }, t("figure.inside")),
        ways.map((screen) => h("button", { id: `to-${screen}`, type: "button", onclick: () => store.set({ screen, ...(screen === "walk" ? { panel: "" } : {}) }) }, t(screen))),
      ),
    parts.every((part) => part === null) ? h("p", { class: "soft" }, t("figure.none")) : parts,
  ].flat();
}

/** The model in numbers, while no box is open. @param {Context} context */
function overview({ about, store, t }) {
  const { sizes, settings } = about;
  const layers = [sizes.encoder_layers, sizes.decoder_layers].filter(Boolean).join(" + ");
  const facts = { N: layers, h: sizes.n_heads, d_model: sizes.d_model, d_k: sizes.d_k, d_ff: sizes.d_ff, "|V|": sizes.vocab_size };
  const rows = Object.entries(facts).map(([name, value]) => [h("dt", {}, h("code", {}, name), " ", t(`figure.fact.${name}`)), h("dd", { class: "number" }, String(value))]);
  return [
    h("h2", {}, t(`model.${about.architecture}`)),
    h("p", { class: "sentence" }, t(`figure.whole.${about.architecture}`)),
    h("dl", { class: "facts" }, rows.flat()),
    h("p", { class: "soft" }, t(`figure.${settings.norm_position === "pre" ? "pre" : "post"}`)),
    h("p", {}, t("figure.open")),
    h("button", { id: "follow-word", type: "button", class: "primary", onclick: () => store.set({ screen: "follow", stage: "" }) }, t("follow.start")),
  ];
}

/**
 * Fill the boxes with small pictures of what they hold; those that are not there stay empty.
 * @param {Context} context
 * @param {import("../figures/figure_one.js").Drawn} drawn
 */
export async function fill(context, { layout, put }) {
  const { about, source, state, theme } = context;
  const layers = layersShown(context);
  const show = async (box) => {
    if (box.type === "attention") return put(box.id, smallPicture(await source.matrix(box.id, layers[box.stack], state.head, "weights"), MOST_WEIGHT, theme));
    const [first, ...others] = tensorsOf(about, box, layers[box.stack]);
    const tensor = first && (await source.activation((others.at(-1) ?? first).address));
    if (tensor) put(box.id, smallPicture(tensor, undefined, theme));
  };
  await Promise.all(layout.boxes.map((box) => show(box).catch(() => null)));
}

/** @param {Context} context */
export function drawnModel(context, shown = {}) {
  const { about, state, store } = context;
  const pickLayer = (stack, layer) => {
    const here = stackOfBlock(state.kind) === stack;
    const box = here || !state.box.includes(stack === "encoder" ? "decoder" : "encoder") ? state.box : "";
    void store.set({ layer, box, ...(here ? {} : toKind(state, stack)) });
  };
  const drawn = figureOne(context, about, {
    ...{ narrow: innerWidth < NARROW, selected: state.box, layers: layersShown(context) },
    ...{ pick: (box) => pick(context, box), pickLayer },
    ...shown,
  });
  return drawn;
}

/** @type {import("../frame.js").Screen} */
export const model = {
  id: "model",
  sign: "⌂",
  render: async (context) => {
    const { about, state, t } = context;
    const drawn = drawnModel(context);
    const box = layoutOf(about).boxes.find(({ id }) => id === state.box);
    const [aside] = await Promise.all([box ? opened(context, box) : overview(context), fill(context, drawn)]);
    const rows = layoutOf(about).boxes.flatMap((each) =>
      tensorsOf(about, each, layersShown(context)[each.stack]).map(({ address, shape }) => [boxName(context, about, each), address, shape.join(" × ")]),
    );
    return {
      body: h("div", { class: "model-screen" }, h("div", { class: "model-figure" }, drawn.node), h("section", { class: "opened", "aria-live": "off" }, aside)),
      figure: drawn.node,
      heard: box ? boxName(context, about, box) : t("model"),
      table: { caption: t("model"), head: [t("figure.box"), t("figure.address"), t("figure.shape")], rows },
    };
  },
};
