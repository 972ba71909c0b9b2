// Colours: palettes, and shades for values. Python's figures use the same (`style.json`).

import style from "../style.json" with { type: "json" };

/** @type {Record<"light" | "dark", Record<string, string>>} */
export const PALETTES = style.palette;

/** @type {Map<string, number[]>} */
const parsed = new Map();

/** Red, green and blue of `#rrggbb`, from 0 to 255. @param {string} colour @returns {number[]} */
export function rgb(colour) {
  const found = parsed.get(colour) ?? [1, 3, 5].map((i) => Number.parseInt(colour.slice(i, i + 2), 16));
  parsed.set(colour, found);
  return found;
}

/**
 * The shade of a value: blue above 0, orange below, full at `most`.
 * @param {number} value
 * @param {number} most
 * @param {"light" | "dark"} theme
 * @returns {string}
 */
export function shade(value, most, theme) {
  const shades = style.shades[theme][value < 0 ? "below" : "above"];
  const share = most > 0 ? Math.min(1, Math.abs(value) / most) : 0;
  return shades[Math.round(share * (shades.length - 1))];
}

/** Black or white, whichever has more contrast on a shade. @param {string} colour */
export function on(colour) {
  const [red, green, blue] = rgb(colour).map((part) => {
    const light = part / 255;
    return light <= 0.04045 ? light / 12.92 : ((light + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return luminance > style.text_on_shade.luminance ? "#000000" : "#ffffff";
}
