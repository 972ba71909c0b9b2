// Attention as a matrix; rows are queries, columns are keys.

import { fixed, short } from "../compute/number.js";
import { furthest } from "../compute/tensor.js";
import { s } from "../parts/dom.js";
import style from "../style.json" with { type: "json" };
import { room } from "./chart.js";
import { on, rgb, shade } from "./colour.js";
import { cellSize, labelEvery, shortened, textWidth } from "./layout.js";
import { emphasis, figure, hatching, label, scale } from "./svg.js";

/**
 * @typedef {object} Shown What is drawn, and the handlers of pointer events.
 * @property {import("../compute/tensor.js").Tensor} matrix
 * @property {string[]} rows
 * @property {string[]} columns
 * @property {(row: number, column: number) => boolean} may
 * @property {number} row The selected row; -1: none.
 * @property {number} column The selected column; -1: none.
 * @property {(row: number, column: number) => void} pick
 * @property {(row: number, column: number) => string} say
 * @property {string} label
 * @property {number} [most] The value of the darkest shade; default: the largest one.
 * @property {number} [threshold]
 * @property {{ head: number, matrix: import("../compute/tensor.js").Tensor, look: Record<string, string> }[]} [superposed]
 *   Heads that are drawn over each other as lines.
 * @property {(head: number, row: number, column: number, weight: number) => string} [sayOf] What a line of these says.
 * @property {number} [least] Smallest height of a row, for a few named rows with many columns.
 * @property {number} [width] Of the place; default: that of all figures.
 * @property {[rows: number, columns: number]} [like] The size of a larger matrix whose cells these are like.
 * @property {boolean} [plain] Whether hidden cells are left empty instead of hatched.
 * @property {{ name: string, from: number, to: number }[]} [groups] Names of consecutive columns.
 * @property {{ row: number, column: number, sure: boolean }[]} [marks] Outlined cells; dashed if not sure.
 */
/** @typedef {import("../frame.js").Context} Context */
/** @typedef {{ wide: number, tall: number }} Cell */

const GROUP = 22; // height of the names of groups
const { most_rectangles: MOST_RECTANGLES, label_angle: ANGLE } = style.matrix;
export const { most_weight: MOST_WEIGHT, off: OFF } = style.attention;
export const LABEL = 120; // maximum width of a label
const LEGEND = 160; // width of the legend below the matrix
const RIGHT = 60; // for the leaning names of the last columns

/** @param {string[]} labels */
export const widest = (labels, size = 12) =>
  Math.min(LABEL, Math.max(24, ...labels.map((text) => textWidth(text, size)))) + 10;

/** Draw a matrix. @param {Context} context @param {Shown} shown */
export function matrixFigure({ theme, palette, tip }, shown) {
  const { matrix, rows, columns, row, column } = shown;
  const [left, top] = [widest(rows), widest(columns) * 0.8 + 8 + (shown.groups ? GROUP : 0)];
  const [down, along] = shown.like ?? [rows.length, columns.length];
  const wide = cellSize(down, along, (shown.width ?? room()) - left - RIGHT);
  const cell = { wide, tall: Math.max(wide, shown.least ?? 0) };
  const [width, height] = [cell.wide * columns.length, cell.tall * rows.length];
  const most =
    shown.most ?? furthest(matrix.data, (i) => shown.may(Math.floor(i / columns.length), i % columns.length));
  const signed = matrix.data.some((value) => value < 0);
  const hatch = hatching(palette.line);
  const frame = s("rect", { width, height, fill: "transparent", stroke: palette.grid });
  frame.addEventListener("mousemove", (event) => tip.show(shown.say(...cellAt(frame, shown, event)), event));
  frame.addEventListener("mouseleave", () => tip.hide());
  frame.addEventListener("click", (event) => shown.pick(...cellAt(frame, shown, event)));
  const outline = { fill: "none", stroke: palette.orange, rx: 2, "pointer-events": "none" };
  const inside = s(
    "g",
    { transform: `translate(${left} ${top})` },
    cells(shown, cell, most, theme),
    !shown.plain && s("path", { d: hiddenPath(shown, cell), fill: hatch.fill }),
    names(shown, cell, palette),
    grouped(shown.groups ?? [], wide, GROUP - top, palette),
    frame,
    (shown.marks ?? []).map((mark) => {
      const place = { x: mark.column * wide + 2, y: mark.row * cell.tall + 2, width: wide - 4, height: cell.tall - 4 };
      const dashes = mark.sure ? "" : "4 3";
      const look = { ...outline, stroke: palette.green, "stroke-width": 2.5, "stroke-dasharray": dashes };
      return s("rect", { class: "mark", ...place, ...look });
    }),
    row >= 0 && s("rect", { y: row * cell.tall, width, height: cell.tall, "stroke-width": 2, ...outline }),
    column >= 0 && s("rect", { x: column * wide, width: wide, height, "stroke-width": 1, ...outline }),
    s("g", { transform: `translate(0 ${height + 18})` }, legendOf(most, signed, theme, palette)),
  );
  return figure(left + Math.max(width, LEGEND) + RIGHT, top + height + 44, shown.label, [hatch.definition, inside]);
}

/**
 * Labels of rows and columns; only some if cells are small.
 * @param {Shown} shown
 * @param {Cell} cell
 * @param {Record<string, string>} palette
 */
function names({ rows, columns, row, column }, { wide, tall }, palette) {
  const written = (text, i, size, selected, look) =>
    (i % labelEvery(size) === 0 || i === selected) &&
    label(shortened(text, LABEL, 12), 0, 0, { ...look, ...emphasis(i === selected, palette) });
  const middle = (i, size) => (i + 0.5) * size;
  return [
    ...rows.map((text, i) =>
      written(text, i, tall, row, { transform: `translate(-6 ${middle(i, tall)})`, "text-anchor": "end" }),
    ),
    ...columns.map((text, i) =>
      written(text, i, wide, column, { transform: `translate(${middle(i, wide)} -6) rotate(-${ANGLE})` }),
    ),
  ];
}

/**
 * Names above groups of columns.
 * @param {{ name: string, from: number, to: number }[]} groups
 * @param {number} wide
 * @param {number} y
 * @param {Record<string, string>} palette
 */
const grouped = (groups, wide, y, palette) =>
  groups.flatMap(({ name, from, to }) => [
    s("line", { x1: from * wide + 2, x2: to * wide - 2, y1: y, y2: y, stroke: palette.line }),
    textWidth(name, 11) > (to - from) * wide && from > 0
      ? label(name, to * wide - 2, y - 9, { "font-size": 11, fill: palette.soft, "text-anchor": "end" })
      : label(name, from * wide + 2, y - 9, { "font-size": 11, fill: palette.soft }),
  ]);

/**
 * The row and column under the pointer.
 * @param {SVGElement} frame
 * @param {Shown} shown
 * @param {MouseEvent} event
 * @returns {[number, number]}
 */
function cellAt(frame, { rows, columns }, event) {
  const box = frame.getBoundingClientRect();
  const within = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
  return [
    within((event.clientY - box.top) / box.height, rows.length),
    within((event.clientX - box.left) / box.width, columns.length),
  ];
}

/**
 * A rectangle per cell if they are few, so that a saved figure can be edited; otherwise one image.
 * @param {Shown} shown
 * @param {Cell} cell
 * @param {number} most
 * @param {"light" | "dark"} theme
 */
function cells({ matrix, rows, columns, may }, { wide, tall }, most, theme) {
  if (rows.length * columns.length > MOST_RECTANGLES) {
    return s("image", {
      href: thumbnail(matrix, most, theme).toDataURL(),
      width: wide * columns.length,
      height: tall * rows.length,
      preserveAspectRatio: "none",
      "image-rendering": "pixelated",
    });
  }
  const written = wide >= 30;
  const drawn = [];
  for (let row = 0; row < rows.length; row++) {
    for (let column = 0; column < columns.length; column++) {
      if (!may(row, column)) continue;
      const value = matrix.data[row * columns.length + column];
      const colour = shade(value, most, theme);
      drawn.push(s("rect", { x: column * wide, y: row * tall, width: wide, height: tall, fill: colour }));
      if (written && Math.abs(value) >= 0.005) {
        drawn.push(
          label(short2(value), (column + 0.5) * wide, (row + 0.5) * tall, {
            "text-anchor": "middle",
            "font-size": 10.5,
            fill: on(colour),
            "pointer-events": "none",
          }),
        );
      }
    }
  }
  return s("g", {}, drawn);
}

/** @param {number} value */
const short2 = (value) =>
  Math.abs(value) < 1 ? fixed(value, 2).replace("0.", ".") : fixed(value, Math.abs(value) < 10 ? 1 : 0);

/** The hatched area of masked cells. @param {Shown} shown @param {Cell} cell */
function hiddenPath({ rows, columns, may }, { wide, tall }) {
  let path = "";
  for (let row = 0; row < rows.length; row++) {
    let start = -1;
    for (let column = 0; column <= columns.length; column++) {
      const is = column < columns.length && !may(row, column);
      if (is && start < 0) start = column;
      if (!is && start >= 0) {
        const width = (column - start) * wide;
        path += `M${start * wide} ${row * tall}h${width}v${tall}h${-width}z`;
        start = -1;
      }
    }
  }
  return path;
}

/**
 * The scale of the shades, with its ends.
 * @param {number} most
 * @param {boolean} signed
 * @param {"light" | "dark"} theme
 * @param {Record<string, string>} palette
 */
export function legendOf(most, signed, theme, palette) {
  const least = signed ? -most : 0;
  const bars = scale(LEGEND, 9, (share) => shade(least + (most - least) * share, most, theme));
  const small = { "font-size": 11, fill: palette.soft };
  return [
    ...bars,
    label(signed ? short(-most) : "0", 0, 18, small),
    label(short(most), LEGEND, 18, { ...small, "text-anchor": "end" }),
  ];
}

/**
 * A matrix as an image with one pixel per cell.
 * @param {import("../compute/tensor.js").Tensor} matrix
 * @param {number} most
 * @param {"light" | "dark"} theme
 */
export function thumbnail({ data, shape: [rows, columns] }, most, theme) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < data.length; i++) image.data.set([...rgb(shade(data[i], most, theme)), 255], 4 * i);
  context.putImageData(image, 0, 0);
  return canvas;
}
