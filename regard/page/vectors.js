// Vectors, drawn: bars for one, rows of shaded cells for many, a bar a row for single numbers.

import { css, on, shade } from "./colour.js";
import { s } from "./dom.js";
import { hatching, label } from "./figure.js";
import { shortened } from "./layout.js";
import { short } from "./number.js";
import { furthest } from "./tensor.js";

/** @typedef {import("./frame.js").Context} Context */
/** @typedef {import("./figure.js").Part} Part */

export const FEW = 8; // dimensions shown at first
const LEFT = 124;
const ACROSS = 560;
const TEXT = 118;

/** @param {string | undefined} caption @param {Record<string, string>} palette */
const headed = (caption, palette) =>
  caption ? [label(caption, 0, 8, { fill: palette.soft, "font-size": 12 })] : [];

/**
 * What is left out, told at the right: "+ 248".
 * @param {number} all
 * @param {number} shown
 * @param {number} y
 * @param {Record<string, string>} palette
 */
const more = (all, shown, y, palette) =>
  all > shown
    ? [label(`+ ${all - shown} …`, LEFT + ACROSS + 10, y, { fill: palette.soft, "font-size": 12 })]
    : [];

/**
 * One vector as bars, up where it is positive and down where it is not.
 * @param {Context} context
 * @param {{ values: number[], name: string, wide?: boolean }} given
 * @returns {Part}
 */
export function bars({ palette, tip }, { values, name, wide = false }) {
  const shown = wide ? values : values.slice(0, FEW);
  const most = furthest(shown);
  const slot = ACROSS / shown.length;
  const [top, tall] = [2, 60];
  const zero = top + tall / 2;
  const drawn = shown.map((value, i) => {
    const height = Math.max(0.5, (Math.abs(value) / most) * (tall / 2));
    const bar = s("rect", {
      x: LEFT + i * slot + slot * 0.18,
      y: value < 0 ? zero : zero - height,
      width: Math.max(0.6, slot * 0.64),
      height,
      fill: value < 0 ? palette.orange : palette.blue,
      rx: wide ? 0 : 2,
    });
    const field = s("rect", { x: LEFT + i * slot, y: top, width: slot, height: tall, fill: "transparent" });
    field.addEventListener("mousemove", (event) => tip.show(`${name}[${i + 1}] = ${short(value)}`, event));
    field.addEventListener("mouseleave", () => tip.hide());
    return [
      bar,
      field,
      !wide &&
        label(short(value), LEFT + (i + 0.5) * slot, top + tall + 12, {
          "text-anchor": "middle",
          fill: palette.ink,
          "font-size": 12,
          "font-variant-numeric": "tabular-nums",
        }),
    ];
  });
  const axis = s("line", { x1: LEFT, x2: LEFT + ACROSS, y1: zero, y2: zero, stroke: palette.line });
  return {
    node: s(
      "g",
      {},
      label(shortened(name, TEXT, 14.5), LEFT - 12, zero, {
        "text-anchor": "end",
        fill: palette.ink,
        "font-weight": 600,
        "font-size": 13,
      }),
      axis,
      drawn.flat(),
      more(values.length, shown.length, zero, palette),
    ),
    width: LEFT + ACROSS + 70,
    height: top + tall + (wide ? 4 : 24),
  };
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
 * @param {boolean} [given.alike] Whether all rows have one scale.
 * @param {number[]} [given.lead] A share a row, drawn before it.
 * @param {(row: number) => void} [given.pick]
 * @returns {Part}
 */
export function heat(
  { palette, theme, tip },
  { rows, values, caption, wide = false, selected = -1, alike = true, lead, pick },
) {
  const width = values[0].length;
  const count = wide ? width : Math.min(FEW, width);
  const [cell, tall, top] = [ACROSS / count, rows.length > 40 ? 14 : 22, caption ? 24 : 2];
  const common = furthest(values.flat());
  const drawn = rows.map((text, row) => {
    const y = top + row * tall;
    const most = alike ? common : furthest(values[row]);
    const cells = values[row].slice(0, count).map((value, i) => {
      const colour = shade(value, most, theme);
      const box = s("rect", {
        x: LEFT + i * cell,
        y: y + 1,
        width: cell + (wide ? 0.3 : -2),
        height: tall - 2,
        fill: css(colour),
        rx: wide ? 0 : 3,
      });
      box.addEventListener("mousemove", (event) => tip.show(`${text}[${i + 1}] = ${short(value)}`, event));
      box.addEventListener("mouseleave", () => tip.hide());
      return [
        box,
        cell >= 44 &&
          tall >= 20 &&
          label(short(value), LEFT + (i + 0.5) * cell - 1, y + tall / 2 + 0.5, {
            "text-anchor": "middle",
            fill: on(colour),
            "font-size": 11.5,
            "pointer-events": "none",
            "font-variant-numeric": "tabular-nums",
          }),
      ];
    });
    const chosen = row === selected;
    const group = s(
      "g",
      pick ? { cursor: "pointer" } : {},
      lead &&
        s("rect", {
          x: 0,
          y: y + 4,
          width: Math.max(1, lead[row] * (LEFT - 8)),
          height: tall - 8,
          fill: palette.blue,
          opacity: 0.25,
          rx: 2,
        }),
      label(shortened(text, TEXT, 12.5), LEFT - 10, y + tall / 2 + 0.5, {
        "text-anchor": "end",
        "font-size": 12.5,
        fill: chosen ? palette.orange : palette.ink,
        "font-weight": chosen ? 700 : 400,
      }),
      cells.flat(),
      chosen &&
        s("rect", {
          x: LEFT - 2,
          y,
          width: ACROSS + 2,
          height: tall,
          fill: "none",
          stroke: palette.orange,
          "stroke-width": 1.5,
          rx: 4,
          "pointer-events": "none",
        }),
    );
    if (pick) group.addEventListener("click", () => pick(row));
    return group;
  });
  return {
    node: s("g", {}, headed(caption, palette), drawn, more(width, count, top + tall / 2, palette)),
    width: LEFT + ACROSS + 70,
    height: top + rows.length * tall,
  };
}

/**
 * One number a row, as a bar; a ghost is what it was, or would be.
 * @param {Context} context
 * @param {object} given
 * @param {string[]} given.rows
 * @param {(number | null)[]} given.values
 * @param {string} [given.caption]
 * @param {number} [given.selected]
 * @param {number} [given.most] The value of a whole bar, if no value is larger.
 * @param {string[]} [given.written] The numbers as they are written.
 * @param {string[]} [given.tips] What pointing at a row says.
 * @param {{ name: string, values: string[] }[]} [given.columns] What is written to the right of the bars.
 * @param {(number | null)[]} [given.ghost] What the values were, or would be.
 * @param {boolean} [given.loud] Whether the ghost is another answer, and no faint memory.
 * @param {(row: number) => void} [given.pick]
 * @returns {Part}
 */
export function scalars(
  { palette, tip },
  { rows, values, caption, selected = -1, most, written, tips, columns = [], ghost, loud = false, pick },
) {
  const tall = loud ? 32 : 24;
  const top = caption || columns.length ? 26 : 2;
  const span = Math.max(most ?? 0, furthest(values), ghost ? furthest(ghost) : 0);
  const signed = [...values, ...(ghost ?? [])].some((value) => (value ?? 0) < 0 && (value ?? 0) > -1e29);
  const across = 340;
  const zero = LEFT + (signed ? across / 2 : 0);
  const scale = (signed ? across / 2 : across) / span;
  const hatch = hatching(palette.soft);
  const bar = (
    /** @type {number | null} */ value,
    /** @type {number} */ y,
    /** @type {number} */ height,
    /** @type {Record<string, unknown>} */ look,
  ) => {
    if (value === null || value < -1e29)
      return s("rect", { x: LEFT, y, width: across, height, fill: hatch.fill, opacity: 0.7 });
    return s("rect", {
      x: value < 0 ? zero + value * scale : zero,
      y,
      width: Math.max(1, Math.abs(value) * scale),
      height,
      rx: 2,
      ...look,
    });
  };
  const drawn = rows.map((text, row) => {
    const y = top + row * tall;
    const value = values[row];
    const chosen = row === selected;
    const told = written?.[row] ?? short(value);
    const group = s(
      "g",
      pick ? { cursor: "pointer" } : {},
      s("rect", { x: 0, y, width: LEFT + across + 80, height: tall, fill: "transparent" }),
      label(shortened(text, TEXT, 13), LEFT - 10, y + tall / 2, {
        "text-anchor": "end",
        "font-size": 13,
        fill: chosen ? palette.orange : palette.ink,
        "font-weight": chosen ? 700 : 400,
      }),
      ghost && !loud && bar(ghost[row], y + 9, tall - 18, { fill: palette.soft, opacity: 0.35 }),
      bar(value, y + 4, loud ? 11 : tall - 8, {
        fill: (value ?? 0) < 0 ? palette.orange : palette.blue,
        opacity: chosen || selected < 0 ? 1 : 0.72,
      }),
      ghost && loud && bar(ghost[row], y + 17, 11, { fill: palette.purple }),
      label(told, LEFT + across + 12, y + (loud ? 10 : tall / 2), {
        fill: palette.ink,
        "font-size": 12.5,
        "font-variant-numeric": "tabular-nums",
      }),
      ghost &&
        loud &&
        label(short(ghost[row]), LEFT + across + 12, y + 23, {
          fill: palette.purple,
          "font-size": 12,
          "font-variant-numeric": "tabular-nums",
        }),
      columns.map((column, i) =>
        label(column.values[row], LEFT + across + 130 + i * 84, y + (loud ? 10 : tall / 2), {
          fill: palette.soft,
          "text-anchor": "end",
          "font-size": 12.5,
          "font-variant-numeric": "tabular-nums",
        }),
      ),
    );
    group.addEventListener("mousemove", (event) => tip.show(tips?.[row] ?? `${text}: ${told}`, event));
    group.addEventListener("mouseleave", () => tip.hide());
    if (pick) group.addEventListener("click", () => pick(row));
    return group;
  });
  return {
    node: s(
      "g",
      {},
      hatch.definition,
      headed(caption, palette),
      columns.map((column, i) =>
        label(column.name, LEFT + across + 130 + i * 84, 8, {
          fill: palette.soft,
          "text-anchor": "end",
          "font-size": 12,
        }),
      ),
      signed &&
        s("line", { x1: zero, x2: zero, y1: top, y2: top + rows.length * tall, stroke: palette.line }),
      drawn,
    ),
    width: LEFT + across + 80 + columns.length * 84,
    height: top + rows.length * tall,
  };
}
