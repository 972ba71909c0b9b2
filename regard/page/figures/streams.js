// Attention through all layers: a column of tokens after every block, and lines from what it read.

import { percent } from "../compute/number.js";
import { s } from "../parts/dom.js";
import style from "../style.json" with { type: "json" };
import { room } from "./chart.js";
import { shortened } from "./layout.js";
import { LABEL, widest } from "./matrix.js";
import { emphasis, figure, label, withTip } from "./svg.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/tensor.js").Tensor} Tensor */
/**
 * @typedef {object} Column Tokens after a block.
 * @property {"inputs" | "outputs"} side
 * @property {string} name
 *
 * @typedef {object} Block What an attention block reads.
 * @property {string} kind
 * @property {number} layer
 * @property {number} from The column with its keys.
 * @property {number} base The column with its queries, which the residual connection carries on.
 * @property {number} to The column after it.
 * @property {{ head: number, matrix: Tensor }[]} heads Those that are drawn.
 *
 * @typedef {object} Streams
 * @property {Column[]} columns
 * @property {Block[]} blocks In the order in which they run.
 * @property {Record<"inputs" | "outputs", string[]>} texts
 * @property {{ side: "inputs" | "outputs", token: number }} selected
 * @property {number} threshold
 * @property {string} label
 * @property {(block: Block, head: number, query: number, key: number, weight: number) => string} say
 * @property {(side: "inputs" | "outputs", token: number) => void} pick
 * @property {(block: Block, head: number) => void} open
 */

const SIZE = 13;
const STEP = 26; // between two tokens
const TOP = 46;
const BETWEEN = { least: 46, most: 170 }; // two columns
const GONE = 1e-4; // the least part of a token that is followed
const SEEN = 0.12; // the least part of a block's strongest line that is drawn in colour
const { colours: COLOURS, dashes: DASHES } = style.series;
const { width: WIDTH, faintest: FAINTEST } = style.attention_line;

/**
 * The look of a head's lines where several are drawn over each other.
 * @param {Record<string, string>} palette
 * @param {number} head
 */
export const headLook = (palette, head) => ({
  stroke: palette[COLOURS[head % COLOURS.length]],
  "stroke-dasharray": DASHES[Math.floor(head / COLOURS.length) % DASHES.length],
});

/**
 * The rollout of the selected token (Abnar and Zuidema, 2020): how much of it comes from each token of each column, if a
 * block takes one half from the residual connection and the other half from the mean of the heads.
 * @param {Streams} streams
 * @returns {number[][]} By column and token.
 */
export function rollout({ columns, blocks, texts, selected }) {
  const found = columns.map(({ side }) => texts[side].map(() => 0));
  const end = columns.findLastIndex(({ side }) => side === selected.side);
  if (end < 0) return found;
  found[end][selected.token] = 1;
  for (const { from, base, to, heads } of [...blocks].reverse())
    found[to].forEach((share, query) => {
      if (share < GONE) return;
      found[base][query] += share / 2;
      for (const { matrix } of heads) {
        const width = matrix.shape[1];
        for (let key = 0; key < width; key++)
          found[from][key] += ((share / 2) * matrix.data[query * width + key]) / heads.length;
      }
    });
  return found;
}

/** @param {Context} context @param {Streams} streams @returns {SVGElement} */
export function streamsFigure(context, streams) {
  const { palette } = context;
  const { columns, blocks, texts, selected } = streams;
  const most = Math.max(...columns.map(({ side }) => texts[side].length));
  const left = widest(texts[columns[0].side], SIZE);
  const right = widest(texts[columns[columns.length - 1].side], SIZE);
  const turn = columns.findIndex(({ side }) => side !== columns[0].side); // where the outputs begin
  const gap = turn > 0 ? 1.2 : 0; // for the names of the first outputs, in columns
  const fits = (room() - left - right - 20) / (columns.length - 1 + gap);
  const between = Math.max(BETWEEN.least, Math.min(BETWEEN.most, fits));
  const x = (column) => left + (column + (turn > 0 && column >= turn ? gap : 0)) * between;
  const y = (side, token) => TOP + ((most - texts[side].length) / 2 + token + 0.5) * STEP;
  const at = (column, token) => [x(column), y(columns[column].side, token)];
  const shares = rollout(streams);
  const greatest = shares.map((column) => Math.max(...column, GONE));
  const names = columns.map(({ name }, i) =>
    label(name, x(i), i % 2 ? 30 : 14, { "text-anchor": "middle", "font-size": 11, fill: palette.soft }),
  );
  const dots = columns.flatMap(({ side }, column) =>
    texts[side].map((text, token) => {
      const share = shares[column][token] > GONE ? shares[column][token] / greatest[column] : 0;
      const [cx, cy] = at(column, token);
      const fill = share ? palette.orange : palette.line;
      const dot = s("circle", { cx, cy, r: share ? 2 + 4 * share : 2, fill, opacity: share ? 0.3 + 0.7 * share : 1 });
      const part = shares[column][token];
      return withTip(dot, context.tip, part > GONE ? `${text} · ${percent(part)}` : text, () => streams.pick(side, token));
    }),
  );
  const words = [0, ...(turn > 0 ? [turn] : []), columns.length - 1].flatMap((column, i, ends) => {
    const { side } = columns[column];
    const last = i === ends.length - 1;
    return texts[side].map((text, token) => {
      const chosen = side === selected.side && token === selected.token;
      const place = [x(column) + (last ? 9 : -9), y(side, token)];
      const look = { "font-size": SIZE, "text-anchor": last ? "start" : "end", ...emphasis(chosen, palette) };
      const halo = { stroke: palette.paper, "stroke-width": 4, "paint-order": "stroke", "stroke-linejoin": "round" };
      const drawn = label(shortened(text, LABEL, SIZE), place[0], place[1], { ...look, ...halo });
      return withTip(drawn, context.tip, text, () => streams.pick(side, token));
    });
  });
  const width = x(columns.length - 1) + right + 10;
  return figure(width, TOP + most * STEP + 10, streams.label, [
    ...blocks.flatMap((block) => residuals(block, at, shares, palette)),
    ...blocks.flatMap((block) => lines(context, streams, block, at, shares)),
    ...names,
    ...dots,
    ...words,
  ]);
}

/**
 * The residual connections of a block, as straight lines.
 * @param {Block} block
 * @param {(column: number, token: number) => number[]} at
 * @param {number[][]} shares
 * @param {Record<string, string>} palette
 */
const residuals = ({ base, to }, at, shares, palette) =>
  shares[to].map((share, token) => {
    const [[x1, y1], [x2, y2]] = [at(base, token), at(to, token)];
    const opacity = share > GONE ? 0.2 + 0.6 * share : 1;
    return s("line", { x1, y1, x2, y2, stroke: share > GONE ? palette.orange : palette.grid, opacity });
  });

/**
 * The lines of a block: those on the way to the selected token on top.
 * @param {Context} context
 * @param {Streams} streams
 * @param {Block} block
 * @param {(column: number, token: number) => number[]} at
 * @param {number[][]} shares
 */
function lines({ palette, tip }, streams, block, at, shares) {
  /** @type {SVGElement[][]} */
  const [faint, strong] = [[], []];
  const flows = block.heads.flatMap(({ matrix }) =>
    Array.from(matrix.data, (weight, i) => weight * shares[block.to][Math.floor(i / matrix.shape[1])]),
  );
  const peak = Math.max(GONE, ...flows);
  for (const { head, matrix } of block.heads) {
    const width = matrix.shape[1];
    matrix.data.forEach((weight, i) => {
      if (weight < Math.max(streams.threshold, FAINTEST)) return;
      const [query, key] = [Math.floor(i / width), i % width];
      const [[x1, y1], [x2, y2]] = [at(block.from, key), at(block.to, query)];
      const flow = (weight * shares[block.to][query]) / peak;
      const seen = flow >= SEEN;
      const middle = (x1 + x2) / 2;
      const drawn = s("path", {
        d: `M${x1.toFixed(1)} ${y1}C${middle.toFixed(1)} ${y1} ${middle.toFixed(1)} ${y2} ${x2.toFixed(1)} ${y2}`,
        fill: "none",
        ...(seen ? headLook(palette, head) : { stroke: palette.soft }),
        "stroke-width": (seen ? WIDTH[0] + WIDTH[1] * flow : 0.6).toFixed(2),
        opacity: (seen ? 0.3 + 0.6 * flow : 0.08 + 0.1 * weight).toFixed(2),
      });
      withTip(drawn, tip, streams.say(block, head, query, key, weight), () => streams.open(block, head));
      (seen ? strong : faint).push(drawn);
    });
  }
  return [...faint, ...strong];
}
