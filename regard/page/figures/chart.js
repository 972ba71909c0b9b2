// Line charts; lines differ in colour and dashes, and the tooltip shows their values.

import { short } from "../compute/number.js";
import style from "../style.json" with { type: "json" };
import { s } from "../parts/dom.js";
import { textWidth } from "./layout.js";
import { label } from "./svg.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("./svg.js").Part} Part */
/**
 * @typedef {object} Line
 * @property {string} name
 * @property {[number, number][]} points
 * @property {[x: number, low: number, high: number][]} [band] Range of the values whose means are the points.
 * @property {boolean} [faint]
 * @property {number} [hue] Index of its colour and dashes; default: its place. Two lines of one run share it.
 */

const [LEFT, RIGHT, TOP, BOTTOM] = [58, 16, 30, 40];
const { colours: COLOURS, dashes: DASHES } = style.series;
const DOTTED = 24; // at most this many points are drawn as dots
const DRAWN = 600; // maximum number of points of a line

/** About `count` round numbers between two. @param {number} least @param {number} most @param {number} count */
export function ticks(least, most, count) {
  const rough = (most - least) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10);
  const first = Math.ceil(least / step - 1e-9);
  const last = Math.floor(most / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/**
 * Fewer points by averaging neighbours; the last point is kept.
 * @param {[number, number][]} points
 * @param {number} most
 * @returns {[number, number][]}
 */
export function thinOut(points, most) {
  if (points.length <= most) return points;
  const size = points.length / (most - 1);
  /** @type {[number, number][]} */
  const means = Array.from({ length: most - 1 }, (_, i) => {
    const some = points.slice(Math.floor(i * size), Math.max(Math.floor((i + 1) * size), Math.floor(i * size) + 1));
    const mean = (axis) => some.reduce((sum, each) => sum + each[axis], 0) / some.length;
    return [mean(0), mean(1)];
  });
  return [...means, points[points.length - 1]];
}

/**
 * Round numbers between two on a logarithmic axis.
 * @param {number} least Above zero.
 * @param {number} most
 */
export function logTicks(least, most) {
  const decades = Math.log10(most / least);
  const within = decades > 3 ? [1] : decades > 1 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
  const first = Math.floor(Math.log10(least));
  return Array.from({ length: Math.ceil(decades) + 2 }, (_, i) => first + i)
    .flatMap((power) => within.map((each) => Number((each * 10 ** power).toPrecision(12))))
    .filter((tick) => tick >= least && tick <= most);
}

/** The values themselves if they are few, or round numbers. @param {number[]} xs @param {number} x0 @param {number} x1 */
function logXTicks(xs, x0, x1) {
  const all = [...new Set(xs)];
  return all.length <= 12 ? all : logTicks(x0, x1);
}

/** A number at an axis, without trailing zeros. @param {number} value */
export const tickLabel = (value) => short(value).replace(/(\.\d*[1-9])0+$|\.0+$/, "$1");

/**
 * The look of a line; lines also differ without colours.
 * @param {Record<string, string>} palette
 * @param {number} i
 * @param {boolean} [faint]
 */
const lineLook = (palette, i, faint = false) => ({
  stroke: palette[COLOURS[i % COLOURS.length]],
  "stroke-dasharray": faint ? "" : DASHES[(i + Math.floor(i / COLOURS.length)) % DASHES.length],
  "stroke-width": faint ? 1.2 : 2.2,
  opacity: faint ? 0.6 : 1,
});

/**
 * @param {Context} context
 * @param {object} given
 * @param {string} given.title
 * @param {string} given.across Title of the horizontal axis.
 * @param {Line[]} given.lines
 * @param {number} [given.width]
 * @param {number} [given.height]
 * @param {number} [given.mark] Value of a vertical line.
 * @param {boolean} [given.logX] Whether the horizontal axis is logarithmic; points at or below 0 are left out.
 * @param {boolean} [given.logY]
 * @returns {Part}
 */
export function chart({ palette, tip }, given) {
  const { title, across, lines, width = 640, height = 260, mark, logX = false, logY = false } = given;
  const fits = ([x, y]) => (!logX || x > 0) && (!logY || y > 0);
  const shown = lines.map((line) => ({ ...line, points: thinOut(line.points.filter(fits), DRAWN) }));
  const xs = shown.flatMap((line) => line.points.map(([x]) => x));
  const ys = shown.flatMap(({ points, band = [] }) => [...points, ...band].flatMap(([, ...values]) => values));
  const range = (values) => [Math.min(...values), Math.max(...values)];
  const [x0, x1] = xs.length ? range(xs) : [0, 1];
  const [low, high] = ys.length ? range(ys) : [0, 1];
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  const [y0, y1] = logY
    ? [low / 1.1, high * 1.1]
    : [low >= 0 && low < (high - low) * 0.5 ? 0 : low - room, high + room];
  const [wide, tall] = [width - LEFT - RIGHT, height - TOP - BOTTOM];
  const share = (value, from, to) => (value - from) / (to - from || 1);
  const logShare = (value, from, to) => share(Math.log(value), Math.log(from), Math.log(to));
  const atX = (x) => LEFT + (logX ? logShare : share)(x, x0, x1) * wide;
  const atY = (y) => TOP + tall - (logY ? logShare : share)(y, y0, y1) * tall;
  const text = { "font-size": 11, fill: palette.soft };
  const rules = [
    ...(logY ? logTicks(y0, y1) : ticks(y0, y1, 6)).map((y) => [
      s("line", { x1: LEFT, x2: LEFT + wide, y1: atY(y), y2: atY(y), stroke: palette.grid }),
      label(tickLabel(y), LEFT - 8, atY(y), { ...text, "text-anchor": "end" }),
    ]),
    ...(logX ? logXTicks(xs, x0, x1) : ticks(x0, x1, wide / 80)).map((x) => [
      label(String(x), atX(x), TOP + tall + 14, { ...text, "text-anchor": "middle" }),
    ]),
  ];
  const paths = shown.map((line, i) =>
    s("path", {
      d: line.points.map(([x, y], j) => `${j ? "L" : "M"}${atX(x).toFixed(1)} ${atY(y).toFixed(1)}`).join(""),
      fill: "none",
      "stroke-linejoin": "round",
      ...lineLook(palette, line.hue ?? i, line.faint),
    }),
  );
  const bands = shown.map(({ band, hue }, i) => band && banded(band, atX, atY, lineLook(palette, hue ?? i).stroke));
  const dots = shown.flatMap((line, i) =>
    line.points.length > DOTTED
      ? []
      : line.points.map(([x, y]) =>
          s("circle", { cx: atX(x), cy: atY(y), r: 3, fill: lineLook(palette, line.hue ?? i).stroke }),
        ),
  );
  const cursor = s("line", { y1: TOP, y2: TOP + tall, stroke: palette.soft, visibility: "hidden" });
  const field = s("rect", { x: LEFT, y: TOP, width: wide, height: tall, fill: "transparent" });
  field.addEventListener("mousemove", (event) => {
    const box = field.getBoundingClientRect();
    const along = (event.clientX - box.left) / box.width;
    const x = logX ? x0 * (x1 / x0) ** along : x0 + along * (x1 - x0);
    const near = shown.map((line) => nearest(line.points, x)).filter((point) => point !== null);
    if (!near.length) return;
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, String(atX(near[0][0])));
    cursor.setAttribute("visibility", "visible");
    const values = shown.flatMap((line) => {
      const point = nearest(line.points, x);
      return point ? [`${line.name} ${short(point[1])}`] : [];
    });
    tip.show(`${across} ${tickLabel(near[0][0])}: ${values.join(" · ")}`, event);
  });
  field.addEventListener("mouseleave", () => {
    cursor.setAttribute("visibility", "hidden");
    tip.hide();
  });
  const place =
    mark === undefined
      ? null
      : s("line", {
          x1: atX(mark),
          x2: atX(mark),
          y1: TOP,
          y2: TOP + tall,
          stroke: palette.orange,
          "stroke-width": 1.5,
        });
  const node = s(
    "g",
    {},
    label(title, 0, 10, { "font-size": 13, "font-weight": 600, fill: palette.ink }),
    rules.flat(),
    s("line", { x1: LEFT, x2: LEFT + wide, y1: TOP + tall, y2: TOP + tall, stroke: palette.line }),
    label(across, LEFT + wide, TOP + tall + 31, { ...text, "text-anchor": "end" }),
    bands,
    paths,
    dots,
    place,
    cursor,
    field,
  );
  return { node, width, height };
}

/**
 * The area between the smallest and the largest values.
 * @param {[x: number, low: number, high: number][]} band
 * @param {(x: number) => number} atX
 * @param {(y: number) => number} atY
 * @param {string} fill
 */
function banded(band, atX, atY, fill) {
  const there = band.map(([x, , high]) => [x, high]);
  const back = band.map(([x, low]) => [x, low]).reverse();
  const corners = [...there, ...back].map(([x, y]) => `${atX(x).toFixed(1)} ${atY(y).toFixed(1)}`);
  return s("path", { class: "band", d: `M${corners.join("L")}Z`, fill, "fill-opacity": 0.15 });
}

/**
 * @param {[number, number][]} points Sorted by x.
 * @param {number} x
 */
function nearest(points, x) {
  if (!points.length) return null;
  return points.reduce((best, each) => (Math.abs(each[0] - x) < Math.abs(best[0] - x) ? each : best));
}

/** The width of the place for figures. */
export function room() {
  const main = document.getElementById("main");
  if (!main?.clientWidth) return innerWidth - 28;
  const { paddingLeft, paddingRight } = getComputedStyle(main);
  return main.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
}

/** The width of a chart, limited by its place. @param {number} wanted */
export const across = (wanted) => Math.max(300, Math.min(wanted, room()));

/** The legend of a chart. @param {Context} context @param {Line[]} lines @param {number} width @returns {Part} */
export function legend({ palette }, lines, width) {
  const wide = Math.max(80, ...lines.map(({ name }) => 48 + textWidth(name, 12)));
  const columns = Math.max(1, Math.floor(width / wide));
  const entries = lines.map(({ name, faint, hue }, i) => {
    const x = (i % columns) * wide;
    const y = 8 + Math.floor(i / columns) * 20;
    return [
      s("line", { x1: x, x2: x + 28, y1: y, y2: y, ...lineLook(palette, hue ?? i, faint) }),
      label(name, x + 34, y, { "font-size": 12, fill: palette.ink }),
    ];
  });
  return {
    node: s("g", {}, entries.flat()),
    width: wide * Math.min(columns, lines.length),
    height: 20 * Math.ceil(lines.length / columns),
  };
}
