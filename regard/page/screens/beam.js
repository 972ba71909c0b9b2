// The tree of a beam search: all candidates and their results.

import { fixed } from "../compute/number.js";
import { ancestry, neighbour, shortened, treeLayout } from "../figures/layout.js";
import { figure, label, withTip } from "../figures/svg.js";
import { forceOutput, forcedNotice, slider } from "../parts/controls.js";
import { h, s } from "../parts/dom.js";

/** @typedef {import("../frame.js").Context} Context */

const SIZE = { column: 118, row: 40 };
const BOX = { width: 92, height: 30 };
/** @type {import("../state/source.js").Beam | null} */
let tree = null; // the last tree drawn, for the arrow keys

/** @param {Context} context @param {string} arrow */
function step({ state, store }, arrow) {
  if (!tree) return;
  const here = state.node < 0 ? (tree.winner ?? 0) : state.node;
  store.set({ node: neighbour(tree.nodes, here, arrow) });
}

/** @param {Context} context @param {import("../state/source.js").Beam} beam @param {number} selected */
function drawn(context, beam, selected) {
  const { palette, t } = context;
  const places = treeLayout(beam.nodes, { ...SIZE, left: 20, top: 34 });
  const best = ancestry(beam.nodes, beam.winner);
  const ranks = 1 + Math.max(...beam.nodes.map((node) => node.rank));
  const look = { "text-anchor": "middle", "font-size": 11, fill: palette.soft };
  const at = (id) => places.get(id);
  return figure(20 + beam.steps * SIZE.column, 44 + ranks * SIZE.row, t("beam"), [
    ...Array.from({ length: beam.steps }, (_, i) =>
      label(String(i + 1), 20 + i * SIZE.column + BOX.width / 2, 14, look),
    ),
    ...beam.nodes.map((node) =>
      node.parent === null ? null : edge(at(node.parent), at(node.id), node, best.has(node.id), palette),
    ),
    ...beam.nodes.map((node) => box(context, at(node.id), node, best.has(node.id), node.id === selected)),
  ]);
}

/**
 * @param {{ x: number, y: number }} from
 * @param {{ x: number, y: number }} to
 * @param {import("../state/source.js").BeamNode} node
 * @param {boolean} won Whether it is on the winner's way.
 * @param {Record<string, string>} palette
 */
function edge(from, to, node, won, palette) {
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  return s("path", {
    d: `M${x1} ${y1}C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}`,
    fill: "none",
    stroke: won ? palette.blue : palette.line,
    "stroke-width": won ? 3 : 1,
    opacity: node.fate === "pruned" ? 0.6 : 1,
  });
}

/**
 * @param {Context} context
 * @param {{ x: number, y: number }} place
 * @param {import("../state/source.js").BeamNode} node
 * @param {boolean} won
 * @param {boolean} selected
 */
function box({ palette, store, tip, t }, { x, y }, node, won, selected) {
  const given = node.fate === "pruned";
  const border = node.fate === "finished" ? palette.green : won ? palette.blue : palette.line;
  const fill = given ? palette.raised : won ? palette.blue : palette.paper;
  const [ink, soft] = won
    ? [palette.paper, palette.paper]
    : [given ? palette.soft : palette.ink, palette.soft];
  const middle = { "text-anchor": "middle" };
  const tooltip = `${node.text} · ${t(`fate.${node.fate}`)} · ${fixed(node.log_prob, 3)}`;
  const drawn = s(
    "g",
    { "data-node": node.id },
    s("rect", {
      ...{ x, y, ...BOX, rx: 6, fill },
      stroke: selected ? palette.orange : border,
      "stroke-width": selected ? 3 : node.fate === "finished" ? 2 : 1,
      "stroke-dasharray": given && !selected && "3 2",
    }),
    label(shortened(node.text, BOX.width - 10, 12.5), x + BOX.width / 2, y + 11, {
      ...{ ...middle, "font-size": 12.5, fill: ink },
      "font-weight": won ? 700 : 400,
    }),
    label(fixed(node.total, 2), x + BOX.width / 2, y + 23, { ...middle, "font-size": 10.5, fill: soft }),
  );
  return withTip(drawn, tip, tooltip, () => store.set({ node: node.id }));
}

/**
 * @param {Context} context
 * @param {import("../state/source.js").Beam} beam
 * @param {import("../state/source.js").BeamNode} node
 */
function details(context, beam, node) {
  const { server, state, t } = context;
  const way = ancestry(beam.nodes, node.id);
  const path = beam.nodes.filter((each) => way.has(each.id)).sort((a, b) => a.step - b.step);
  const facts = [
    ["beam.step", node.step + 1],
    ["beam.rank", node.rank + 1],
    ["beam.log-prob", fixed(node.log_prob, 3)],
    ["beam.total", fixed(node.total, 3)],
    ["beam.score", fixed(node.score, 3)],
  ];
  return h(
    "aside",
    { class: "aside" },
    h("h2", {}, node.text),
    h("p", {}, h("span", { class: `tag fate-${node.fate}` }, t(`fate.${node.fate}`))),
    h("p", {}, node.reason[state.lang]),
    h("p", { class: "soft" }, path.map((each) => each.text).join(" ")),
    h(
      "dl",
      { class: "facts" },
      facts
        .map(([words, value]) => [h("dt", {}, t(String(words))), h("dd", { class: "number" }, value)])
        .flat(),
    ),
    server &&
      node.fate !== "winner" &&
      h(
        "button",
        { id: "force", type: "button", onclick: () => forceOutput(context, path.map((each) => each.token)) },
        t("beam.force"),
      ),
  );
}

/** Sliders for the search; a change searches again. @param {Context} context @param {number} size */
function searching({ server, state, store, t }, size) {
  if (!server || state.whole) return [];
  const { decoding, limits } = server.model(state);
  const penalty = state.penalty < 0 ? decoding.length_penalty : state.penalty;
  const of = (id, range, value) =>
    slider({
      ...{ id, range, value, text: t(`beam.${id}`), title: t(`beam.${id}.title`), format: String },
      set: (chosen) => store.set({ [id]: chosen, node: -1 }),
    });
  return [of("beam", [1, limits.beam, 1], size), of("penalty", [0, 2, 0.1], penalty)];
}

/** @type {import("../frame.js").Screen} */
export const beam = {
  id: "beam",
  sign: "⋔",
  task: "translate",
  searches: true,
  keys: Object.fromEntries(
    ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((arrow) => [arrow, (context) => step(context, arrow)]),
  ),
  render: async (context) => {
    const { source, state, t } = context;
    tree = await source.beam();
    const choice = context.server && forcedNotice(context);
    if (!tree || !tree.nodes.length)
      return { controls: [choice], body: h("p", { class: "empty" }, t("beam.none")) };
    const found = (id) => tree?.nodes.find((each) => each.id === id);
    const node = found(state.node) ?? found(tree.winner) ?? tree.nodes[0];
    const selected = node.id;
    const shown = drawn(context, tree, selected);
    const chosen = shown.querySelector(`[data-node="${state.node}"]`); // if any; else the tree starts at the left
    requestAnimationFrame(() => chosen?.scrollIntoView({ block: "nearest", inline: "nearest" }));
    return {
      controls: [
        ...searching(context, tree.beam_size),
        h("span", { class: "soft" }, t("beam.legend", { size: tree.beam_size, nodes: tree.nodes.length })),
        choice,
      ],
      body: h("div", { class: "split" }, h("div", { class: "scroll" }, shown), details(context, tree, node)),
      figure: shown,
      heard: `${node.text} · ${t(`fate.${node.fate}`)} · ${t("beam.score")} ${fixed(node.score, 3)}`,
      table: {
        caption: t("beam"),
        head: [
          t("beam.step"),
          t("beam.rank"),
          t("candidate"),
          t("beam.log-prob"),
          t("beam.total"),
          t("beam.score"),
          t("beam.fate"),
        ],
        rows: tree.nodes.map((each) => [
          each.step + 1,
          each.rank + 1,
          each.text,
          fixed(each.log_prob, 3),
          fixed(each.total, 3),
          fixed(each.score, 3),
          t(`fate.${each.fate}`),
        ]),
      },
    };
  },
};
