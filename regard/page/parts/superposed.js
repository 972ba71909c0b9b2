// Several heads in one figure: which, and their weights; and the figure of all layers.

import { at } from "../compute/tensor.js";
import { percent } from "../compute/number.js";
import { headLook, streamsFigure } from "../figures/streams.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/tensor.js").Tensor} Tensor */

/** @type {WeakMap<import("../state/source.js").Source, Map<string, Promise<Tensor>>>} */
const known = new WeakMap();

/** The weights of all heads of a layer. @param {Context} context @param {string} kind @param {number} layer */
function layerOf({ source }, kind, layer) {
  const kept = known.get(source) ?? new Map();
  known.set(source, kept);
  const key = `${kind}.${layer}`;
  const found = kept.get(key) ?? source.heads(kind, layer);
  kept.set(key, found);
  found.catch(() => kept.delete(key));
  return found;
}

/**
 * The heads that are drawn over each other. If none was chosen: all in the figure of all layers, where a head has no
 * counterpart in the next layer; otherwise the selected one.
 * @param {Context} context
 * @returns {number[]}
 */
export function headsShown({ kind, state }) {
  const all = Array.from({ length: kind.heads }, (_, head) => head);
  const chosen = state.heads.split(",").filter(Boolean).map(Number);
  const there = all.filter((head) => chosen.includes(head));
  if (there.length) return there;
  return state.view === "layers" ? all : [state.head];
}

/** Buttons for the heads that are drawn, in the colours of their lines. @param {Context} context */
export function headChoice(context) {
  const { kind, palette, state, store, t } = context;
  const shown = headsShown(context);
  const all = Array.from({ length: kind.heads }, (_, head) => head);
  const set = (heads) => store.set({ heads: heads.join(",") });
  const several = shown.length > 1;
  return h(
    "div",
    { class: "superposed", role: "group", "aria-label": t("heads.superposed") },
    h("span", { class: "soft" }, t("heads.superposed")),
    all.map((head) => {
      const on = shown.includes(head);
      return h(
        "button",
        {
          id: `superpose-${head}`,
          type: "button",
          class: "chip",
          "aria-pressed": String(on),
          "aria-label": `${t("head.number")} ${head}`,
          style: on && (several || state.view === "layers") ? { "border-bottom": `4px solid ${headLook(palette, head).stroke}` } : {},
          onclick: () => set(on && several ? shown.filter((each) => each !== head) : on ? [] : [...shown, head].sort((a, b) => a - b)),
        },
        String(head),
      );
    }),
    h("button", { id: "superpose-all", type: "button", disabled: shown.length === all.length, onclick: () => set(all) }, t("heads.all")),
  );
}

/** The weights of the heads that are drawn over each other. @param {Context} context */
export async function superposed(context) {
  const { state } = context;
  const heads = headsShown(context);
  if (heads.length === 1 && heads[0] === state.head) return null;
  const layer = await layerOf(context, state.kind, state.layer);
  return heads.map((head) => ({ head, matrix: at(layer, head), look: headLook(context.palette, head) }));
}

/** The columns and blocks of a model, in the order in which they run. @param {Context} context */
async function streamsOf(context) {
  const { about, t } = context;
  const heads = headsShown(context);
  /** @type {import("../figures/streams.js").Column[]} */
  const columns = [];
  /** @type {import("../figures/streams.js").Block[]} */
  const blocks = [];
  const weightsOf = async (kind, layer) => {
    const all = await layerOf(context, kind.kind, layer);
    return heads.filter((head) => head < kind.heads).map((head) => ({ head, matrix: at(all, head) }));
  };
  const add = async (kind, layer, from) => {
    const base = columns.length - 1;
    columns.push({ side: kind.queries, name: t("layers.after", { kind: t(`kind.${kind.kind}`), layer }) });
    blocks.push({ kind: kind.kind, layer, from: from ?? base, base, to: base + 1, heads: await weightsOf(kind, layer) });
  };
  const of = (name) => about.kinds.find((each) => each.kind === name);
  const [encoder, decoder, cross] = ["encoder", "decoder", "cross"].map(of);
  if (encoder) {
    columns.push({ side: "inputs", name: t("inputs") });
    for (let layer = 0; layer < encoder.layers; layer++) await add(encoder, layer);
  }
  if (decoder) {
    const memory = columns.length - 1;
    columns.push({ side: "outputs", name: t(encoder ? "outputs" : "text") });
    for (let layer = 0; layer < decoder.layers; layer++) {
      await add(decoder, layer);
      if (cross) await add(cross, layer, memory);
    }
  }
  return { columns, blocks };
}

/** The figure of all layers. @param {Context} context */
export async function layersFigure(context) {
  const { about, kind, state, store, t } = context;
  const textsOf = (side) => about[side]?.tokens.map((token) => token.text) ?? [];
  const texts = { inputs: textsOf("inputs"), outputs: textsOf("outputs") };
  return streamsFigure(context, {
    ...(await streamsOf(context)),
    texts,
    selected: { side: kind.queries, token: state.query },
    threshold: state.threshold,
    label: t("view.layers"),
    say: (block, head, query, key, weight) => {
      const { queries, keys } = about.kinds.find((each) => each.kind === block.kind);
      const place = `${t(`kind.${block.kind}`)} · ${t("layer")} ${block.layer} · ${t("head.number")} ${head}`;
      return `${texts[queries][query]} → ${texts[keys][key]}: ${percent(weight)} · ${place}`;
    },
    pick: (side, token) => {
      const chosen = side === kind.queries ? kind : about.kinds.findLast((each) => each.queries === side);
      store.set({ kind: chosen.kind, query: token, key: -1 });
    },
    open: (block, head) => store.set({ kind: block.kind, layer: block.layer, head, view: "lines", heads: "" }),
  });
}
