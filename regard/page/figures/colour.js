// Colours: shades of one hue for weights, two for what may be negative, and the page's by day and by night.

/** @typedef {[number, number, number]} RGB */

export const PALETTES = {
  light: {
    paper: "#ffffff",
    raised: "#f6f7f9",
    ink: "#1f2328",
    soft: "#5f6770",
    grid: "#e1e4e8",
    line: "#c9ced4",
    blue: "#0072b2",
    orange: "#c04f00",
    green: "#00805c",
    purple: "#9b4d8a",
  },
  dark: {
    paper: "#15191f",
    raised: "#1c222a",
    ink: "#e6e9ee",
    soft: "#9aa4af",
    grid: "#2a3038",
    line: "#3b444f",
    blue: "#56b4e9",
    orange: "#f0a04b",
    green: "#3cc79b",
    purple: "#d796c4",
  },
};

// Lightness, chroma and hue of nothing and of the most, in OKLCH, where equal distances look equal.
const SHADES = {
  light: { least: [0.985, 0.005, 250], most: [0.36, 0.13, 250], under: [0.55, 0.15, 45] },
  dark: { least: [0.245, 0.02, 250], most: [0.93, 0.08, 250], under: [0.78, 0.14, 60] },
};
const LEVELS = 256;

/**
 * @param {number} lightness
 * @param {number} chroma
 * @param {number} hue In degrees.
 * @returns {RGB}
 */
export function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const brief = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
      4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * brief,
      -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * brief,
      -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * brief,
    ].map((light) => {
      const clipped = Math.min(1, Math.max(0, light));
      return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
    });
}

/** @param {number[]} least @param {number[]} most @returns {RGB[]} */
function ramp(least, most) {
  return Array.from({ length: LEVELS }, (_, i) => {
    const share = i / (LEVELS - 1);
    const [lightness, chroma] = [0, 1].map((part) => least[part] + share * (most[part] - least[part]));
    return oklch(lightness, chroma, most[2]);
  });
}

/** @type {Record<string, { over: RGB[], under: RGB[] }>} */
const RAMPS = Object.fromEntries(
  Object.entries(SHADES).map(([theme, { least, most, under }]) => [
    theme,
    { over: ramp(least, most), under: ramp(least, under) },
  ]),
);

/**
 * The shade of a value: blue above 0, orange below, full at `most`.
 * @param {number} value
 * @param {number} most
 * @param {"light" | "dark"} theme
 * @returns {RGB}
 */
export function shade(value, most, theme) {
  const share = most > 0 ? Math.min(1, Math.abs(value) / most) : 0;
  return RAMPS[theme][value < 0 ? "under" : "over"][Math.round(share * (LEVELS - 1))];
}

/** @param {RGB} rgb */
export function css(rgb) {
  return `#${rgb.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever is read more easily on a shade. @param {RGB} rgb */
export function on(rgb) {
  const [red, green, blue] = rgb.map((part) => {
    const light = part / 255;
    return light <= 0.04045 ? light / 12.92 : ((light + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}
