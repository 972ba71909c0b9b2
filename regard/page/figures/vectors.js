// Vectors: one as bars, several as rows of shaded cells.

import { short } from "../compute/number.js";
import { furthest } from "../compute/tensor.js";
import { s } from "../parts/dom.js";
import { on, shade } from "./colour.js";
import { shortened, textWidth } from "./layout.js";
import { emphasis, label, TABULAR, withTip } from "./svg.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("./svg.js").Part} Part */

export const LEFT = 124;
export const TEXT = 118;
const FEW = 8; // dimensions shown unless all are requested
const ACROSS = 560;
const WIDTH = LEFT + ACROSS + 70;

/**
 * The number of hidden dimensions: "+ 248".
 * @param {number} left
 * @param {number} y
 * @param {Record<string, string>} palette
 */
const more = (left, y, palette) => left > 0 && label(`+ ${left} …`, LEFT + ACROSS + 10, y, { fill: palette.soft });

/**
 * One vector as vertical bars, positive values upwards.
 * @param {Context} context
 * @param {{ values: number[], name: string, wide?: boolean }} given
 * @returns {Part}
 */
export function bars({ palette, tip }, { values, name, wide = false }) {
  const shown = wide ? values : values.slice(0, FEW);
  const most = furthest(shown);
  const slot = ACROSS / shown.length;
  const above = textWidth(name, 13) > TEXT; // a long name has its own line
  const [top, tall] = [above ? 24 : 2, 60];
  const zero = top + tall / 2;
  const drawn = shown.map((value, i) => {
    const height = Math.max(0.5, (Math.abs(value) / most) * (tall / 2));
    const [x, y] = [LEFT + i * slot, value < 0 ? zero : zero - height];
    const fill = value < 0 ? palette.orange : palette.blue;
    const box = { x: x + slot * 0.18, y, width: Math.max(0.6, slot * 0.64), height };
    const field = s("rect", { x, y: top, width: slot, height: tall, fill: "transparent" });
    const look = { "text-anchor": "middle", fill: palette.ink, ...TABULAR };
    return [
      s("rect", { ...box, fill, rx: wide ? 0 : 2 }),
      withTip(field, tip, `${name}[${i}] = ${short(value)}`),
      !wide && label(short(value), x + slot / 2, top + tall + 12, look),
    ];
  });
  const look = { "text-anchor": "end", fill: palette.ink, "font-weight": 600, "font-size": 13 };
  const node = s(
    "g",
    {},
    above
      ? label(name, 0, 10, { ...look, "text-anchor": "start" })
      : label(name, LEFT - 12, zero, look),
    s("line", { x1: LEFT, x2: LEFT + ACROSS, y1: zero, y2: zero, stroke: palette.line }),
    drawn.flat(),
    more(values.length - shown.length, zero, palette),
  );
  return { node, width: WIDTH, height: top + tall + (wide ? 4 : 24) };
}

/**
 * Rows of numbers as shaded cells.
 * @param {Context} context
 * @param {object} given
 * @param {string[]} given.rows
 * @param {number[][]} given.values
 * @param {string} [given.caption]
 * @param {boolean} [given.wide]
 * @param {number} [given.selected]
 * @param {boolean} [given.alike] Whether all rows have the same scale.
 * @param {number[]} [given.lead] A weight per row, drawn before it.
 * @param {(row: number) => void} [given.pick]
 * @returns {Part}
 */
export function heat(context, { rows, values, caption, wide, selected, alike = true, lead, pick }) {
  const { palette } = context;
  const width = values[0].length;
  const count = wide ? width : Math.min(FEW, width);
  const [tall, top] = [rows.length > 40 ? 14 : 22, caption ? 24 : 2];
  const common = furthest(values.flat());
  const drawn = rows.map((text, row) => {
    const most = alike ? common : furthest(values[row]);
    const chosen = row === selected;
    const group = s(
      "g",
      { transform: `translate(0 ${top + row * tall})` },
      lead && leading(lead[row], tall, palette),
      label(shortened(text, TEXT, 12.5), LEFT - 10, tall / 2 + 0.5, {
        "text-anchor": "end",
        "font-size": 12.5,
        ...emphasis(chosen, palette),
      }),
      cells(context, { text, values: values[row].slice(0, count), most, tall }),
      chosen && outline(tall, palette),
    );
    if (pick) group.addEventListener("click", () => pick(row));
    return group;
  });
  const node = s(
    "g",
    pick ? { cursor: "pointer" } : {},
    caption && label(caption, 0, 8, { fill: palette.soft }),
    drawn,
    more(width - count, top + tall / 2, palette),
  );
  return { node, width: WIDTH, height: top + rows.length * tall };
}

/**
 * The cells of one row, with numbers if they fit.
 * @param {Context} context
 * @param {{ text: string, values: number[], most: number, tall: number }} given
 */
function cells({ theme, tip }, { text, values, most, tall }) {
  const cell = ACROSS / values.length;
  const roomy = cell >= 44 && tall >= 20;
  return values.flatMap((value, i) => {
    const colour = shade(value, most, theme);
    const box = { x: LEFT + i * cell, y: 1, width: cell + (roomy ? -2 : 0.3), height: tall - 2 };
    const look = { "text-anchor": "middle", "font-size": 11.5, "pointer-events": "none", ...TABULAR };
    return [
      withTip(s("rect", { ...box, fill: colour, rx: roomy ? 3 : 0 }), tip, `${text}[${i}] = ${short(value)}`),
      roomy && label(short(value), box.x + cell / 2 - 1, tall / 2 + 0.5, { ...look, fill: on(colour) }),
    ];
  });
}

/** @param {number} share @param {number} tall @param {Record<string, string>} palette */
function leading(share, tall, palette) {
  const box = { x: 0, y: 4, width: Math.max(1, share * (LEFT - 8)), height: tall - 8 };
  return s("rect", { ...box, fill: palette.blue, opacity: 0.25, rx: 2 });
}

/** @param {number} tall @param {Record<string, string>} palette */
function outline(tall, palette) {
  const box = { x: LEFT - 2, y: 0, width: ACROSS + 2, height: tall, rx: 4 };
  const look = { fill: "none", stroke: palette.orange, "stroke-width": 1.5, "pointer-events": "none" };
  return s("rect", { ...box, ...look });
}
