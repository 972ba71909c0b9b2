// Attention as lines between two columns of tokens, or as arcs over a text.

import { s } from "../parts/dom.js";
import style from "../style.json" with { type: "json" };
import { room } from "./chart.js";
import { shortened, textWidth } from "./layout.js";
import { LABEL, widest } from "./matrix.js";
import { emphasis, figure, label, withTip } from "./svg.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("./matrix.js").Shown} Shown */

const SIZE = 13;
const SPAN = { least: 190, most: 620, share: 0.45 }; // between two columns of tokens: a share of the place
const MANY = 160; // from this many tokens on, only the lines of the selected token are drawn
const FEW = 24;
const { width: WIDTH, opacity: OPACITY, faintest: FAINTEST } = style.attention_line;

/**
 * Two columns of tokens with a line for each weight.
 * @param {Context} context
 * @param {Shown} shown
 * @returns {SVGElement}
 */
export function linesFigure(context, shown) {
  const { rows, columns } = shown;
  const most = Math.max(rows.length, columns.length);
  if (most > MANY && shown.row >= 0) return linesFigure(context, fewest(shown));
  const step = Math.max(18, Math.min(30, 620 / most));
  const left = widest(rows, SIZE);
  const span = Math.max(SPAN.least, Math.min(SPAN.most, room() * SPAN.share));
  const right = left + span;
  const y = (i, count) => 10 + ((most - count) / 2 + i + 0.5) * step;
  const curve = (row, column) => {
    const [y1, y2] = [y(row, rows.length), y(column, columns.length)];
    return `M${left} ${y1}C${left + span / 2} ${y1} ${left + span / 2} ${y2} ${right} ${y2}`;
  };
  const pickRow = (i) => shown.pick(i, -1);
  const pickColumn = (i) => shown.pick(shown.row, i);
  return figure(right + widest(columns, SIZE), most * step + 20, shown.label, [
    ...curves(context, shown, curve),
    ...rows.map((text, i) =>
      token(context, text, { x: left - 8, y: y(i, rows.length) }, "end", i === shown.row, () => pickRow(i)),
    ),
    ...columns.map((text, i) =>
      token(context, text, { x: right + 8, y: y(i, columns.length) }, "start", i === shown.column, () =>
        pickColumn(i),
      ),
    ),
  ]);
}

/**
 * For a long text: the selected token and the keys with its largest weights, in text order.
 * @param {Shown} shown
 * @returns {Shown}
 */
function fewest(shown) {
  const width = shown.columns.length;
  const row = Array.from(shown.matrix.data.subarray(shown.row * width, (shown.row + 1) * width));
  const best = row
    .map((_, key) => key)
    .sort((a, b) => row[b] - row[a])
    .slice(0, FEW)
    .sort((a, b) => a - b);
  return {
    ...shown,
    matrix: { data: Float32Array.from(best, (key) => row[key]), shape: [1, best.length] },
    rows: [shown.rows[shown.row]],
    columns: best.map((key) => shown.columns[key]),
    row: 0,
    column: best.indexOf(shown.column),
    may: (_, key) => shown.may(shown.row, best[key]),
    say: (_, key) => shown.say(shown.row, best[key]),
    pick: (_, key) => shown.pick(shown.row, key < 0 ? -1 : best[key]),
    superposed: undefined,
  };
}

/** Tokens in a row, with arcs from queries to keys. @param {Context} context @param {Shown} shown */
export function arcsFigure(context, shown) {
  const widths = shown.rows.map((text) => Math.min(LABEL, textWidth(text, SIZE)) + 14);
  const starts = widths.map((_, i) => widths.slice(0, i).reduce((a, b) => a + b, 10));
  const width = starts[starts.length - 1] + widths[widths.length - 1] + 10;
  const x = (i) => starts[i] + widths[i] / 2;
  const base = Math.min(260, 40 + width / 3);
  const arc = (row, column) => {
    const [x1, x2] = [x(row), x(column)];
    if (row === column) return `M${x1} ${base}C${x1 - 14} ${base - 34} ${x1 + 14} ${base - 34} ${x1} ${base}`;
    const top = base - 1.3 * Math.min(base, 14 + Math.abs(x2 - x1) * 0.5);
    return `M${x1} ${base}C${x1} ${top} ${x2} ${top} ${x2} ${base}`;
  };
  return figure(Math.max(240, width), base + 36, shown.label, [
    ...curves(context, shown, arc),
    ...shown.rows.map((text, i) =>
      token(context, text, { x: x(i), y: base + 16 }, "middle", i === shown.row, () => shown.pick(i, -1)),
    ),
  ]);
}

/**
 * Lines for weights from the threshold on; those of the selected row on top, or alone in a long text.
 * @param {Context} context
 * @param {Shown} shown
 * @param {(row: number, column: number) => string} path
 */
function curves({ palette, tip }, shown, path) {
  const { rows, columns, row: selected, threshold = 0.1, may, say, superposed } = shown;
  /** @type {SVGElement[][]} */
  const [faint, strong] = [[], []];
  for (const { head, matrix, look } of superposed ?? [{ head: -1, matrix: shown.matrix, look: null }]) {
    for (let row = 0; row < rows.length; row++) {
      const isStrong = selected < 0 || row === selected;
      if (rows.length > MANY && !isStrong) continue;
      for (let column = 0; column < columns.length; column++) {
        const weight = matrix.data[row * columns.length + column];
        if (!may(row, column) || weight < Math.max(threshold, FAINTEST)) continue;
        const drawn = s("path", {
          d: path(row, column),
          fill: "none",
          ...(isStrong ? (look ?? { stroke: palette.blue }) : { stroke: palette.soft }),
          "stroke-width": (WIDTH[0] + WIDTH[1] * weight).toFixed(2),
          opacity: (isStrong ? OPACITY[0] + OPACITY[1] * weight : 0.08 + 0.22 * weight).toFixed(3),
          "stroke-linecap": "round",
        });
        const words = head < 0 ? say(row, column) : (shown.sayOf?.(head, row, column, weight) ?? "");
        (isStrong ? strong : faint).push(withTip(drawn, tip, words));
      }
    }
  }
  return [...faint, ...strong];
}

/**
 * @param {Context} context
 * @param {string} text
 * @param {{ x: number, y: number }} place
 * @param {string} anchor
 * @param {boolean} selected
 * @param {() => void} pick
 */
function token({ palette, tip }, text, { x, y }, anchor, selected, pick) {
  const look = { "font-size": SIZE, "text-anchor": anchor, ...emphasis(selected, palette) };
  return withTip(label(shortened(text, LABEL, SIZE), x, y, look), tip, text, pick);
}
