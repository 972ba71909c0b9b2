// Positional encodings as a matrix, curves and dot products; token embeddings.

import { fixed } from "../compute/number.js";
import { at, dot } from "../compute/tensor.js";
import { across, chart, legend, ticks } from "../figures/chart.js";
import { thumbnail } from "../figures/matrix.js";
import { neighbourList, neighboursOf, plane } from "../figures/neighbours.js";
import { label, stack } from "../figures/svg.js";
import { h, s } from "../parts/dom.js";
import { request } from "../state/requests.js";
import { readTensor } from "../state/source_http.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/tensor.js").Tensor} Tensor */

const LENGTH = 64; // number of positions shown
const MOST = 6; // maximum number of curves
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
 * Positions by dimensions; a click on a column adds or removes its curve.
 * @param {Context} context
 * @param {Tensor} values
 * @param {number[]} dims
 */
function matrix({ palette, store, t, theme, tip }, values, dims) {
  const [places, width] = values.shape;
  const [left, top, wide, tall] = [44, 34, across(700) - 60, 256];
  const image = thumbnail(values, 1, theme);
  const text = { "font-size": 11, fill: palette.soft };
  const field = s("rect", {
    x: left,
    y: top,
    width: wide,
    height: tall,
    fill: "transparent",
    stroke: palette.grid,
    cursor: "pointer",
  });
  const under = (event) => {
    const box = field.getBoundingClientRect();
    const part = (offset, size, count) => Math.min(count - 1, Math.max(0, Math.floor((offset / size) * count)));
    return [part(event.clientY - box.top, box.height, places), part(event.clientX - box.left, box.width, width)];
  };
  field.addEventListener("mousemove", (event) => {
    const [place, dim] = under(event);
    tip.show(`PE(${place}, ${dim}) = ${fixed(values.data[place * width + dim], 3)}`, event);
  });
  field.addEventListener("mouseleave", () => tip.hide());
  field.addEventListener("click", (event) => {
    const dim = under(event)[1];
    const rest = dims.filter((each) => each !== dim);
    store.set({ dims: (rest.length < dims.length ? rest : [...dims.slice(-(MOST - 1)), dim]).join(",") });
  });
  const node = s(
    "g",
    {},
    label(t("positions.matrix"), 0, 10, { "font-size": 13, "font-weight": 600, fill: palette.ink }),
    s("image", {
      href: image.toDataURL(),
      x: left,
      y: top,
      width: wide,
      height: tall,
      preserveAspectRatio: "none",
      style: { "image-rendering": "pixelated" },
    }),
    ticks(0, places - 1, 4).map((place) =>
      label(String(place), left - 7, top + ((place + 0.5) / places) * tall, {
        ...text,
        "text-anchor": "end",
      }),
    ),
    ticks(0, width - 1, 8).map((dim) =>
      label(String(dim), left + ((dim + 0.5) / width) * wide, top + tall + 12, {
        ...text,
        "text-anchor": "middle",
      }),
    ),
    dims.map((dim) =>
      s("rect", {
        x: left + (dim / width) * wide - 1,
        y: top - 1,
        width: Math.max(3, wide / width) + 1,
        height: tall + 2,
        fill: "none",
        stroke: palette.orange,
        "stroke-width": 1.5,
      }),
    ),
    field,
  );
  return { node, width: left + wide + 16, height: top + tall + 24 };
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
    const curves = dims.map((dim, i) => ({
      name: names[i],
      points: Array.from({ length: places }, (_, place) => ([place, values.data[place * width + dim]])),
    }));
    const wide = across(700);
    const drawn = stack(
      [
        matrix(context, values, dims),
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
