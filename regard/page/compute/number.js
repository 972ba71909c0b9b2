// Formats numbers for display.

/**
 * A number with a fixed number of decimals and a true minus sign.
 * @param {number | null} value
 * @param {number} [digits]
 */
export function fixed(value, digits = 3) {
  if (value === null || value < -1e29) return "−∞"; // masked, or excluded by a pin
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** A number with about four digits. @param {number | null} value */
export function short(value) {
  if (value === null || !Number.isFinite(value)) return fixed(value);
  const size = Math.abs(value);
  if (size >= 1000) return fixed(value, 0);
  if (size >= 100) return fixed(value, 1);
  if (size >= 10) return fixed(value, 2);
  return fixed(value, 3);
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
  const plain = (cell) => String(cell)
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
