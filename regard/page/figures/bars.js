// Numbers as horizontal bars, one per row.

import { isNever, short } from "../compute/number.js";
import { furthest } from "../compute/tensor.js";
import { s } from "../parts/dom.js";
import { shortened } from "./layout.js";
import { emphasis, hatching, label, asButton, TABULAR, withTip } from "./svg.js";
import { LEFT, TEXT } from "./vectors.js";

/**
 * @typedef {object} Given
 * @property {string[]} rows
 * @property {(number | null)[]} values
 * @property {string} [caption]
 * @property {number} [selected]
 * @property {number} [most] Value of a full bar, if no value is larger.
 * @property {string[]} [written] Formatted numbers.
 * @property {string[]} [tips] Tooltips of the rows.
 * @property {{ name: string, values: string[] }[]} [columns] Text to the right of the bars.
 * @property {(number | null)[]} [ghost] Values to compare with.
 * @property {boolean} [loud] Whether the ghost is drawn as a second bar, not faintly behind the first.
 * @property {number} [across] Length of a full bar.
 * @property {(row: number) => void} [pick]
 */

const ACROSS = 340;
export const BESIDE = LEFT + 80; // width of the text beside the bars
const COLUMN = 108;

/**
 * Draws bars from a common zero; −∞ is hatched.
 * @param {(number | null)[]} values All that are to be drawn.
 * @param {number} most
 * @param {string} hatched
 * @param {number} across
 */
function scale(values, most, hatched, across) {
  const signed = values.some((value) => !isNever(value) && Number(value) < 0);
  const zero = LEFT + (signed ? across / 2 : 0);
  const unit = (signed ? across / 2 : across) / Math.max(most, furthest(values));
  const bar = (value, y, height, look) => {
    if (isNever(value)) return s("rect", { x: LEFT, y, width: across, height, fill: hatched, opacity: 0.7 });
    const width = Math.max(1, Math.abs(Number(value)) * unit);
    return s("rect", { x: Number(value) < 0 ? zero - width : zero, y, width, height, rx: 2, ...look });
  };
  return { signed, zero, bar };
}

/**
 * One number per row.
 * @param {import("../frame.js").Context} context
 * @param {Given} given
 * @returns {import("./svg.js").Part}
 */
export function scalars({ palette, tip }, given) {
  const { rows, values, caption, ghost = [], columns = [], loud = false, across = ACROSS, pick } = given;
  const [tall, top] = [loud ? 32 : 24, caption || columns.length ? 26 : 2];
  const hatch = hatching(palette.soft);
  const { signed, zero, bar } = scale([...values, ...ghost], given.most ?? 0, hatch.fill, across);
  const middle = loud && !given.ghost ? 10 : tall / 2; // of the label: beside one bar, or between two
  const drawn = rows.map((text, row) => {
    const number = given.written?.[row] ?? short(values[row]);
    const group = s(
      "g",
      { transform: `translate(0 ${top + row * tall})` },
      s("rect", { width: BESIDE + across, height: tall, fill: "transparent" }),
      label(shortened(text, TEXT, 13), LEFT - 10, middle, {
        "text-anchor": "end",
        "font-size": 13,
        ...emphasis(row === given.selected, palette),
      }),
      rowBars(bar, given, row, tall, palette),
      rowNumbers(given, row, number, loud ? 10 : tall / 2, palette),
    );
    const tooltip = given.tips?.[row] ?? `${text}: ${number}`;
    withTip(group, tip, tooltip);
    return pick ? asButton(group, tooltip, () => pick(row)) : group;
  });
  const height = top + rows.length * tall;
  const node = s(
    "g",
    {},
    hatch.definition,
    caption && label(caption, 0, 8, { fill: palette.soft }),
    columns.map(({ name }, i) => label(name, columnAt(i, across), 8, { fill: palette.soft, "text-anchor": "end" })),
    signed && s("line", { x1: zero, x2: zero, y1: top, y2: height, stroke: palette.line }),
    drawn,
  );
  return { node, width: BESIDE + across + columns.length * COLUMN, height };
}

/** @param {number} i @param {number} across */
const columnAt = (i, across) => LEFT + across + 150 + i * COLUMN;

/**
 * A row's value, and its ghost behind or below it.
 * @param {ReturnType<typeof scale>["bar"]} bar
 * @param {Given} given
 * @param {number} row
 * @param {number} tall
 * @param {Record<string, string>} palette
 */
function rowBars(bar, { values, ghost, loud, selected = -1 }, row, tall, palette) {
  const value = values[row];
  const fill = Number(value) < 0 ? palette.orange : palette.blue;
  const opacity = selected < 0 || row === selected ? 1 : 0.72;
  return [
    ghost && !loud && bar(ghost[row], 9, tall - 18, { fill: palette.soft, opacity: 0.35 }),
    bar(value, 4, loud ? 11 : tall - 8, { fill, opacity }),
    ghost && loud && bar(ghost[row], 17, 11, { fill: palette.purple }),
  ];
}

/**
 * The numbers behind a row's bars.
 * @param {Given} given
 * @param {number} row
 * @param {string} number
 * @param {number} y
 * @param {Record<string, string>} palette
 */
function rowNumbers({ ghost, loud, columns = [], across = ACROSS }, row, number, y, palette) {
  const look = { "font-size": 12.5, ...TABULAR };
  return [
    label(number, LEFT + across + 12, y, { fill: palette.ink, ...look }),
    ghost && loud && label(short(ghost[row]), LEFT + across + 12, y + 13, { fill: palette.purple, ...look }),
    ...columns.map(({ values }, i) =>
      label(values[row], columnAt(i, across), y, { fill: palette.soft, "text-anchor": "end", ...look }),
    ),
  ];
}
