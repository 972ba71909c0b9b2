// Positional encodings as a matrix, curves and dot products; token embeddings.

import { fixed } from "../compute/number.js";
import { at, dot, furthest } from "../compute/tensor.js";
import { across, chart, legend, tickLabel, ticks } from "../figures/chart.js";
import { shade } from "../figures/colour.js";
import { thumbnail } from "../figures/matrix.js";
import { neighbourList, neighboursOf, plane } from "../figures/neighbours.js";
import { label, scale, stack } from "../figures/svg.js";
import { h, s } from "../parts/dom.js";
import { request } from "../state/requests.js";
import { readTensor } from "../state/source_http.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/tensor.js").Tensor} Tensor */

const LENGTH = 64; // number of positions shown
const MOST = 6; // maximum number of curves
const WIDE = 1040; // maximum width of the figures
const SCALE = 160; // width of the scale of shades
/** @type {Map<string, Promise<Tensor>>} */
const known = new Map();

/** @param {string} model */
function positionsOf(model) {
  const found =
    known.get(model) ??
    request(`/api/v1/positions?length=${LENGTH}&model=${encodeURIComponent(model)}`).then(readTensor);
  known.set(model, found);
  found.catch(() => known.delete(model));
  return found;
}

/**
 * PE(pos, 2i) = sin(pos / 10000^(2i / width)), PE(pos, 2i+1) = cos(the same); also the angles of a rotary model.
 * @param {number} places
 * @param {number} width
 * @returns {Tensor}
 */
export function sinusoids(places, width) {
  const data = Float32Array.from({ length: places * width }, (_, i) => {
    const [place, dim] = [Math.floor(i / width), i % width];
    const angle = place * 10000 ** (-(dim - (dim % 2)) / width);
    return dim % 2 ? Math.cos(angle) : Math.sin(angle);
  });
  return { data, shape: [places, width] };
}

/** @param {string} dims @param {number} width */
function chosen(dims, width) {
  const wanted = dims.split(",").map(Number);
  return [...new Set(wanted)]
    .filter((each) => Number.isInteger(each) && each >= 0 && each < width)
    .slice(0, MOST);
}

/**
 * Columns that are drawn together: sines and cosines alternate in the vector, and would blur each other.
 * @param {Context} context
 * @param {number} width
 * @param {boolean} waves
 * @returns {{ name: string, dims: number[] }[]}
 */
function halves({ t }, width, waves) {
  const dims = Array.from({ length: width }, (_, dim) => dim);
  if (!waves) return [{ name: t("positions.dims"), dims }];
  return [
    { name: t("positions.sines"), dims: dims.filter((dim) => dim % 2 === 0) },
    { name: t("positions.cosines"), dims: dims.filter((dim) => dim % 2) },
  ];
}

/**
 * Some columns of the matrix; a click on one adds or removes its curve.
 * @param {Context} context
 * @param {Tensor} values
 * @param {{ name: string, dims: number[] }} half
 * @param {{ x: number, y: number, width: number, height: number }} box
 * @param {{ chosen: number[], most: number }} given
 */
function columns({ palette, store, t, theme, tip }, values, { name, dims }, box, { chosen: marked, most }) {
  const [places, width] = values.shape;
  const data = Float32Array.from({ length: places * dims.length }, (_, i) => {
    return values.data[Math.floor(i / dims.length) * width + dims[i % dims.length]];
  });
  const column = box.width / dims.length;
  const text = { "font-size": 11, fill: palette.soft };
  const field = s("rect", { ...box, fill: "transparent", stroke: palette.grid, cursor: "pointer" });
  const under = (event) => {
    const seen = field.getBoundingClientRect();
    const part = (offset, size, count) => Math.min(count - 1, Math.max(0, Math.floor((offset / size) * count)));
    const at = part(event.clientX - seen.left, seen.width, dims.length);
    return [part(event.clientY - seen.top, seen.height, places), dims[at]];
  };
  field.addEventListener("mousemove", (event) => {
    const [place, dim] = under(event);
    tip.show(`PE(${place}, ${dim}) = ${fixed(values.data[place * width + dim], 3)}`, event);
  });
  field.addEventListener("mouseleave", () => tip.hide());
  field.addEventListener("click", (event) => {
    const dim = under(event)[1];
    const rest = marked.filter((each) => each !== dim);
    store.set({ dims: (rest.length < marked.length ? rest : [...marked.slice(-(MOST - 1)), dim]).join(",") });
  });
  const under_axis = { ...text, "text-anchor": "middle" };
  return [
    label(name, box.x, box.y - 10, { "font-size": 12, fill: palette.ink }),
    s("image", {
      ...box,
      href: thumbnail({ data, shape: [places, dims.length] }, most, theme).toDataURL(),
      preserveAspectRatio: "none",
      ...(column >= 6 && { style: { "image-rendering": "pixelated" } }),
    }),
    ticks(0, dims.length - 1, Math.max(2, box.width / 60)).map((i) =>
      label(String(dims[i]), box.x + (i + 0.5) * column, box.y + box.height + 12, under_axis),
    ),
    marked
      .map((dim) => dims.indexOf(dim))
      .filter((i) => i >= 0)
      .map((i) =>
        s("rect", {
          x: box.x + i * column - 1,
          y: box.y - 1,
          width: Math.max(3, column) + 1,
          height: box.height + 2,
          fill: "none",
          stroke: palette.orange,
          "stroke-width": 1.5,
        }),
      ),
    field,
  ].flat();
}

/**
 * Positions by dimensions.
 * @param {Context} context
 * @param {Tensor} values
 * @param {number[]} dims
 * @param {boolean} waves Whether the dimensions are sines and cosines in turn.
 */
function matrix(context, values, dims, waves) {
  const { palette, t, theme } = context;
  const [places, width] = values.shape;
  const [left, top, tall, gap] = [44, 48, 256, 26];
  const whole = across(WIDE);
  const parts = halves(context, width, waves);
  const each = (whole - left - gap * (parts.length - 1)) / parts.length;
  const most = waves ? 1 : furthest(values.data);
  const text = { "font-size": 11, fill: palette.soft };
  const legend = [
    ...scale(SCALE, 9, (share) => shade((2 * share - 1) * most, most, theme)),
    label(tickLabel(-most), 0, 18, text),
    label("0", SCALE / 2, 18, { ...text, "text-anchor": "middle" }),
    label(tickLabel(most), SCALE, 18, { ...text, "text-anchor": "end" }),
  ];
  const node = s(
    "g",
    {},
    label(t("positions.matrix"), 0, 10, { "font-size": 13, "font-weight": 600, fill: palette.ink }),
    ticks(0, places - 1, 4).map((place) =>
      label(String(place), left - 7, top + ((place + 0.5) / places) * tall, { ...text, "text-anchor": "end" }),
    ),
    parts.flatMap((part, i) => {
      const box = { x: left + i * (each + gap), y: top, width: each, height: tall };
      return columns(context, values, part, box, { chosen: dims, most });
    }),
    s("g", { transform: `translate(${left} ${top + tall + 28})` }, legend),
  );
  return { node, width: whole, height: top + tall + 54 };
}

/** The mean dot product of two positions by their distance. @param {Tensor} values @returns {[number, number][]} */
export function byDistance(values) {
  const [places] = values.shape;
  const rows = Array.from({ length: places }, (_, i) => at(values, i).data);
  return Array.from({ length: places }, (_, distance) => {
    let sum = 0;
    for (let i = 0; i + distance < places; i++) sum += dot(rows[i], rows[i + distance]);
    return [distance, sum / (places - distance)];
  });
}

/** @type {import("../frame.js").Screen} */
export const positions = {
  id: "positions",
  sign: "∿",
  alone: true,
  render: async (context) => {
    const { server, state, t } = context;
    const { id, config } = server.model(state);
    const around = await neighboursOf(context);
    const beside = around ? neighbourList(context, around) : h("p", { class: "soft" }, t("positions.neighbours.none"));
    if (!["sinusoidal", "learned", "rotary"].includes(config.positions)) {
      const drawn = around ? stack([plane(context, around)], t("positions")) : undefined;
      const key = config.positions === "none" ? "positions.none" : "positions.others";
      const note = h("p", { class: "empty" }, t(key, { name: config.positions }));
      const body = h("div", { class: "steps" }, note, drawn && h("div", { class: "scroll" }, drawn), beside);
      return { body, figure: drawn };
    }
    const turns = config.d_k ?? config.d_model / config.n_heads;
    const values = config.positions === "rotary" ? sinusoids(LENGTH, turns) : await positionsOf(id);
    const [places, width] = values.shape;
    const dims = chosen(state.dims, width);
    const names = dims.map((dim) => t("positions.dim", { dim }));
    const products = byDistance(values);
    /** @type {import("../figures/chart.js").Line[]} */
    const curves = dims.map((dim, i) => ({
      name: names[i],
      points: Array.from({ length: places }, (_, place) => ([place, values.data[place * width + dim]])),
    }));
    const wide = across(WIDE);
    const drawn = stack(
      [
        matrix(context, values, dims, config.positions !== "learned"),
        dims.length > 0 &&
          chart(context, {
            title: t("positions.curves"),
            across: t("positions.place"),
            lines: curves,
            width: wide,
            height: 220,
          }),
        dims.length > 0 && legend(context, curves, wide),
        chart(context, {
          title: t("positions.alike"),
          across: t("positions.distance"),
          lines: [{ name: t("positions.product"), points: products }],
          width: wide,
          height: 220,
        }),
        around && plane(context, around),
      ],
      t("positions"),
    );
    return {
      controls: [h("span", { class: "soft" }, t(`positions.${config.positions}`))],
      body: h("div", { class: "steps" }, h("div", { class: "scroll" }, drawn), beside),
      figure: drawn,
      table: {
        caption: t("positions.curves"),
        head: [t("positions.place"), ...names, t("positions.product")],
        rows: Array.from({ length: places }, (_, place) => [
          place,
          ...dims.map((dim) => fixed(values.data[place * width + dim], 3)),
          fixed(products[place][1], 2),
        ]),
      },
    };
  },
};
