// Formats numbers for display, as Python's figures do (`style.json`).

import style from "../style.json" with { type: "json" };

const { digits: DIGITS, minus: MINUS, minus_infinity_below: NEVER } = style.number;

/** Whether a score is −∞: masked, or excluded by a pin. @param {number | null} value */
export const isNever = (value) => value === null || value < NEVER;

/**
 * A number with a fixed number of decimals and a true minus sign.
 * @param {number | null} value
 * @param {number} [digits]
 */
export function fixed(value, digits = 3) {
  if (isNever(value)) return `${MINUS}∞`;
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", MINUS);
}

/** A number with about four digits. @param {number | null} value */
export function short(value) {
  if (value === null || !Number.isFinite(value)) return fixed(value);
  return fixed(value, DIGITS.find(([least]) => Math.abs(value) >= least)[1]);
}

/** A number with brackets if it is negative, for use after an operator. @param {number} value */
export function bracketed(value) {
  return value < 0 ? `(${short(value)})` : short(value);
}

/**
 * A table as CSV with ASCII signs, quoted cells and a byte order mark for UTF-8.
 * @param {{ head: string[], rows: (string | number)[][] }} table
 */
export function csv({ head, rows }) {
  const plain = (cell) =>
    String(cell)
      .replace(/^−∞$/, "-inf")
      .replace(/^−(?=[\d.])/, "-")
      .replaceAll("\u00a0", " ")
      .trim();
  const line = (cells) => cells.map((cell) => `"${plain(cell).replaceAll('"', '""')}"`).join(",");
  return `\ufeff${[head, ...rows].map(line).join("\r\n")}\r\n`;
}

/** @param {number} share */
export function percent(share) {
  if (share > 0 && share < 0.0005) return "<0.1%";
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
}
