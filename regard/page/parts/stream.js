// The vector of a followed token after every sub-layer: one row of shades each, from the embedding upwards.

import { tensorsOf, boxesOf } from "../compute/figure_one.js";
import { at, furthest } from "../compute/tensor.js";
import { thumbnail } from "../figures/matrix.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/path.js").Stage} Stage */

/** @type {WeakMap<object, Map<string, Promise<any>>>} */
const known = new WeakMap();

/** The stages whose output is the token's vector: after the embedding, and after every addition. @param {Stage[]} stages @param {string} side @param {boolean} pre */
const rowsOf = (stages, side, pre) =>
  stages.filter((stage) => stage.side === side && stage.query !== undefined && [pre ? "residual" : "norm", "x"].includes(stage.name));

/**
 * @param {Context} context
 * @param {import("../screens/follow.js").Path} path
 * @param {number} place The current stage.
 * @param {(place: number) => void} go
 */
export async function stream(context, { stages }, place, go) {
  const { about, source, theme, t } = context;
  const { side, query } = stages[place].query === undefined ? stages.find((stage) => stage.query !== undefined && stage.side === stages[place].side) : stages[place];
  const boxes = boxesOf(about, side === "inputs" ? "encoder" : "decoder");
  const read = known.get(source) ?? new Map();
  known.set(source, read);
  const rows = await Promise.all(
    rowsOf(stages, side, about.settings.norm_position === "pre").map(async (stage) => {
      const held = tensorsOf(about, boxes.find(({ id }) => id === stage.box), stage.layer).at(-1);
      const address = held.address.replace(/\.embedded$/, ".with_positions");
      if (!read.has(address)) read.set(address, source.activation(address));
      const tensor = await read.get(address);
      return tensor && { stage, row: at(tensor, query) };
    }),
  );
  const there = rows.filter(Boolean);
  if (!there.length) return null;
  const before = there.findLast(({ stage }) => stages.indexOf(stage) <= place)?.stage;
  const drawn = there.map(({ stage, row }) => {
    const index = stages.indexOf(stage);
    const canvas = thumbnail({ data: row.data, shape: [1, row.data.length] }, furthest(row.data), theme);
    const name = stage.name === "x" ? t("walk.x") : `${stage.layer} · ${t(stage.box.endsWith("feed-forward") ? "figure.feed-forward.short" : stage.box.endsWith("cross") ? "kind.cross" : "figure.attention.short")}`;
    return h(
      "button",
      {
        ...{ id: `row-${index}`, type: "button", class: index > place ? "ahead" : "" },
        ...{ "aria-current": stage === before && "true", "aria-label": `${t("layer")} ${name}`, onclick: () => go(index) },
      },
      h("span", {}, name),
      canvas,
    );
  });
  return h(
    "section",
    { class: "stream" },
    h("h3", {}, t("follow.stream")),
    h("div", { class: "rows" }, drawn.reverse()),
    h("p", { class: "soft legend" }, t("follow.stream.note")),
  );
}
