// The tree of a beam search: all candidates and their results.

import { fixed, percent } from "../compute/number.js";
import { spelt } from "../compute/text.js";
import { room } from "../figures/chart.js";
import { ancestry, neighbour, shortened, treeLayout } from "../figures/layout.js";
import { figure, label, withTip } from "../figures/svg.js";
import { forceOutput, forcedNotice, slider } from "../parts/controls.js";
import { h, s } from "../parts/dom.js";
import { readStrip, selectedOutput, writtenStrip } from "../parts/strips.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/source.js").Beam} Beam */

const BYTE = /^<0x(..)>$/;
const ROW = 44;
const TALL = 34; // height of a box
const COLUMN = { least: 54, most: 118 };
const [LEFT, TOP] = [4, 30];
const ASIDE = 320; // width of the details, if they fit beside the tree
const ENDED = 3; // ended hypotheses that are listed
/** @type {Beam | null} */
let tree = null; // the last tree drawn, for the arrow keys

/** @param {Context} context @param {string} arrow */
function step(context, arrow) {
  if (!tree) return;
  const here = nodeOf(context, tree);
  select(context, tree, tree.nodes.find(({ id }) => id === neighbour(tree.nodes, here.id, arrow)) ?? here);
}

/** The nodes that lead to the winner, by step. @param {Beam} beam */
function pathOf({ nodes, winner }) {
  const way = ancestry(nodes, winner);
  return nodes.filter((each) => way.has(each.id)).sort((a, b) => a.step - b.step);
}

/**
 * The step that the search began with: after the tokens of a forced beginning; -1 if it found another output than that
 * of the trace.
 * @param {Context} context
 * @param {Beam} beam
 */
function firstStep({ about }, beam) {
  const path = pathOf(beam);
  const first = about.wanted.length - path.length;
  return path.length && path.every(({ token }, i) => token === about.wanted[first + i]?.id) ? first : -1;
}

/**
 * The step that wrote a node's token; -1 if the output does not have it.
 * @param {Context} context
 * @param {Beam} beam
 * @param {import("../state/source.js").BeamNode} node
 */
function stepOf(context, beam, node) {
  const first = firstStep(context, beam);
  return first >= 0 && ancestry(beam.nodes, beam.winner).has(node.id) ? first + node.step : -1;
}

/** The selected node: that of the address, or of the selected output token. @param {Context} context @param {Beam} beam */
function nodeOf(context, beam) {
  const { state } = context;
  const path = pathOf(beam);
  const first = firstStep(context, beam);
  const step = first < 0 ? path.length - 1 : Math.max(state.step, selectedOutput(context) - 1) - first;
  const chosen = beam.nodes.find(({ id }) => id === state.node);
  return chosen ?? path[Math.max(0, step)] ?? path[path.length - 1] ?? beam.nodes[0];
}

/**
 * Select a node, and its output token if it has one.
 * @param {Context} context
 * @param {Beam} beam
 * @param {import("../state/source.js").BeamNode} node
 */
function select(context, beam, node) {
  const step = stepOf(context, beam, node);
  context.store.set({ node: node.id, ...(step >= 0 && { step }) });
}

/** @param {Context} context */
async function strip(context) {
  const beam = await context.source.beam();
  if (!beam?.nodes.length) return readStrip(context);
  const step = stepOf(context, beam, nodeOf(context, beam));
  if (step >= 0) return writtenStrip(context, step);
  return { ...(await writtenStrip(context, 0)), query: -1, row: null }; // this token is not in the output
}

/**
 * The width of a column, so that the whole tree is seen, and whether the details fit beside it.
 * @param {number} steps
 */
function spread(steps) {
  const of = (width) => Math.floor((width - LEFT) / steps);
  const roomy = of(room() - ASIDE);
  const beside = roomy >= COLUMN.least + 12;
  return { beside, column: Math.max(COLUMN.least, Math.min(COLUMN.most, beside ? roomy : of(room()))) };
}

/**
 * @param {Context} context
 * @param {Beam} beam
 * @param {number} selected
 * @param {number} column Width of a column.
 */
function drawn(context, beam, selected, column) {
  const { palette, t } = context;
  const width = column - Math.max(8, Math.min(26, column * 0.22));
  const places = treeLayout(beam.nodes, { column, row: ROW, left: LEFT, top: TOP });
  const best = ancestry(beam.nodes, beam.winner);
  const ranks = 1 + Math.max(...beam.nodes.map((node) => node.rank));
  const look = { "text-anchor": "middle", "font-size": 11, fill: palette.soft };
  const at = (id) => places.get(id);
  return figure(LEFT + beam.steps * column, TOP + ranks * ROW + 6, t("beam"), [
    ...Array.from({ length: beam.steps }, (_, i) => label(String(i + 1), LEFT + i * column + width / 2, 12, look)),
    ...beam.nodes.map((node) =>
      node.parent === null ? null : edge(at(node.parent), at(node.id), width, node, best.has(node.id), palette),
    ),
    ...beam.nodes.map((node) => box(context, beam, { ...at(node.id), width }, node, best.has(node.id), node.id === selected)),
  ]);
}

/**
 * @param {{ x: number, y: number }} from
 * @param {{ x: number, y: number }} to
 * @param {number} width Of a box.
 * @param {import("../state/source.js").BeamNode} node
 * @param {boolean} won Whether it is on the winner's way.
 * @param {Record<string, string>} palette
 */
function edge(from, to, width, node, won, palette) {
  const [x1, y1, x2, y2] = [from.x + width, from.y + TALL / 2, to.x, to.y + TALL / 2];
  const bend = (x2 - x1) * 0.55;
  return s("path", {
    d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
    fill: "none",
    stroke: won ? palette.blue : palette.line,
    "stroke-width": won ? 3 : 1,
    opacity: node.fate === "pruned" ? 0.6 : 1,
  });
}

/**
 * Token, sum of log-probabilities, and a bar for the token's probability.
 * @param {Context} context
 * @param {Beam} beam
 * @param {{ x: number, y: number, width: number }} place
 * @param {import("../state/source.js").BeamNode} node
 * @param {boolean} won
 * @param {boolean} selected
 */
function box(context, beam, { x, y, width }, node, won, selected) {
  const { palette, tip, t } = context;
  const given = node.fate === "pruned";
  const border = node.fate === "finished" ? palette.green : won ? palette.blue : palette.line;
  const fill = given ? palette.raised : won ? palette.blue : palette.paper;
  const [ink, soft] = won
    ? [palette.paper, palette.paper]
    : [given ? palette.soft : palette.ink, palette.soft];
  const middle = { "text-anchor": "middle" };
  const share = Math.exp(node.log_prob);
  const tooltip = `${node.text} · ${percent(share)} · ${t(`fate.${node.fate}`)} · ${t("beam.total")} ${fixed(node.total, 3)}`;
  const full = width - 10;
  const bar = { x: x + 5, y: y + TALL - 6, height: 3, rx: 1.5 };
  const drawn = s(
    "g",
    { "data-node": node.id },
    s("rect", {
      ...{ x, y, width, height: TALL, rx: 6, fill },
      stroke: selected ? palette.orange : border,
      "stroke-width": selected ? 3 : node.fate === "finished" ? 2 : 1,
      "stroke-dasharray": given && !selected && "3 2",
    }),
    label(shortened(node.text.replace(BYTE, "0x$1"), width - 4, 12.5), x + width / 2, y + 10, {
      ...{ ...middle, "font-size": 12.5, fill: ink },
      "font-weight": won ? 700 : 400,
    }),
    label(fixed(node.total, 2), x + width / 2, y + 22.5, { ...middle, "font-size": 10.5, fill: soft }),
    s("rect", { ...bar, width: full, fill: soft, opacity: 0.25 }),
    s("rect", { ...bar, width: Math.max(1, share * full), fill: won ? palette.paper : palette.blue, "data-share": share.toFixed(3) }),
  );
  return withTip(drawn, tip, tooltip, () => select(context, beam, node));
}

/**
 * @param {Context} context
 * @param {Beam} beam
 * @param {import("../state/source.js").BeamNode} node
 */
function details(context, beam, node) {
  const { server, state, t } = context;
  const way = ancestry(beam.nodes, node.id);
  const path = beam.nodes.filter((each) => way.has(each.id)).sort((a, b) => a.step - b.step);
  const facts = [
    ["beam.step", String(node.step + 1)],
    ["beam.rank", String(node.rank + 1)],
    ["probability", percent(Math.exp(node.log_prob))],
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

/** The best hypotheses that ended, the winner first. @param {Context} context @param {Beam} beam @param {number} selected */
function endings(context, beam, selected) {
  const { t } = context;
  const ended = beam.nodes.filter(({ fate }) => ["winner", "finished"].includes(fate));
  const rank = ({ fate, score }) => (fate === "winner" ? Infinity : score);
  const rows = ended
    .sort((a, b) => rank(b) - rank(a))
    .slice(0, ENDED)
    .map((node) => {
      const way = ancestry(beam.nodes, node.id);
      const path = beam.nodes.filter(({ id }) => way.has(id)).sort((a, b) => a.step - b.step);
      const words = spelt(path.slice(0, -1).map((each) => each.text));
      return h(
        "li",
        {},
        h(
          "button",
          { type: "button", "aria-pressed": String(node.id === selected), onclick: () => select(context, beam, node) },
          h("span", { class: `tag fate-${node.fate}` }, t(`fate.${node.fate}`)),
          h("span", { class: "number" }, fixed(node.score, 3)),
          h("span", { class: "ended", dir: "auto" }, words.filter(Boolean).join(" ")),
        ),
      );
    });
  return h("ol", { class: "endings", "aria-label": t("beam.ended") }, rows);
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
  strip,
  keys: Object.fromEntries(
    ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((arrow) => [arrow, (context) => step(context, arrow)]),
  ),
  render: async (context) => {
    const { source, t } = context;
    tree = await source.beam();
    const choice = context.server && forcedNotice(context);
    if (!tree || !tree.nodes.length)
      return { controls: [choice], body: h("p", { class: "empty" }, t("beam.none")) };
    const node = nodeOf(context, tree);
    const { beside, column } = spread(tree.steps);
    const shown = drawn(context, tree, node.id, column);
    const chosen = shown.querySelector(`[data-node="${node.id}"]`);
    requestAnimationFrame(() => chosen?.scrollIntoView({ block: "nearest", inline: "nearest" }));
    return {
      controls: [
        ...searching(context, tree.beam_size),
        h("span", { class: "soft" }, t("beam.legend", { size: tree.beam_size, nodes: tree.nodes.length })),
        choice,
      ],
      body: h(
        "div",
        { class: "steps" },
        endings(context, tree, node.id),
        h(
          "div",
          { class: beside ? "split" : "split below" },
          h("div", { class: "scroll" }, shown),
          details(context, tree, node),
        ),
      ),
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
