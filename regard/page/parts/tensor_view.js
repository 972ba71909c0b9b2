// A tensor as a picture with one row per token, that fills its place; and the selected token's first numbers.

import { fixed, short } from "../compute/number.js";
import { furthest } from "../compute/tensor.js";
import { thumbnail } from "../figures/matrix.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/tensor.js").Tensor} Tensor */
/**
 * @typedef {object} Given
 * @property {string} title
 * @property {string} shape As letters: `S × d_model`.
 * @property {number[]} [whole] The whole tensor's shape, if only one head of it is drawn.
 * @property {Tensor} tensor Rows by columns.
 * @property {string[]} rows Names of the rows.
 * @property {string[]} [columns] Names of the columns; default: their numbers.
 * @property {number} selected The selected row.
 * @property {number} [most] Value of the darkest shade; default: the largest one.
 * @property {(row: number) => void} [pick]
 */

const FEW = 8; // numbers in words
const TALL = { least: 3, most: 19, together: 460 }; // height of a row, and of all

/** The selected row as numbers. @param {Given} given */
function numbers({ tensor: { data, shape }, selected, columns }) {
  const row = Array.from(data.subarray(selected * shape[1], (selected + 1) * shape[1]));
  if (columns) {
    const best = row.map((value, i) => ({ value, i })).sort((one, other) => other.value - one.value);
    return best.slice(0, 4).filter(({ value }) => value >= 0.005).map(({ value, i }) => `${columns[i]} ${fixed(value, 2)}`).join(" · ");
  }
  return `(${row.slice(0, FEW).map(short).join(", ")}${row.length > FEW ? ", …" : ""})`;
}

/** @param {Context} context @param {Given} given */
export function tensorView({ theme, tip, t }, given) {
  const { title, shape, tensor, rows, columns, selected, pick } = given;
  const [count, width] = tensor.shape;
  const tall = Math.max(TALL.least, Math.min(TALL.most, TALL.together / count));
  const most = given.most ?? furthest(tensor.data);
  const picture = thumbnail(tensor, most, theme);
  const cellOf = (event) => {
    const box = picture.getBoundingClientRect();
    const within = (share, of) => Math.min(of - 1, Math.max(0, Math.floor(share * of)));
    const row = within((event.clientY - box.top) / box.height, count);
    return [row, within((event.clientX - box.left) / box.width, width)];
  };
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${title}, ${(given.whole ?? tensor.shape).join(" × ")}`);
  picture.addEventListener("mousemove", (event) => {
    const [row, column] = cellOf(event);
    const value = short(tensor.data[row * width + column]);
    tip.show(columns ? `${rows[row]} → ${columns[column]}: ${value}` : `${rows[row]} [${column}] = ${value}`, event);
  });
  picture.addEventListener("mouseleave", () => tip.hide());
  if (pick) picture.addEventListener("click", (event) => pick(cellOf(event)[0]));
  const roomy = tall >= 11;
  return h(
    "figure",
    { class: "tensor", style: { "--rows": count, "--tall": `${tall}px` } },
    h(
      "figcaption",
      {},
      h("strong", {}, title),
      h("span", { class: "soft number" }, `${shape} = ${(given.whole ?? tensor.shape).join(" × ")}`),
      h("span", { class: "soft number" }, t("figure.range", { most: short(most) })),
    ),
    h(
      "div",
      { class: "tensor-rows" },
      h(
        "div",
        { class: "tensor-names", "aria-hidden": "true" },
        roomy && rows.map((name, row) => h("span", { class: row === selected ? "here" : "" }, name)),
      ),
      h(
        "div",
        { class: "tensor-picture" },
        picture,
        selected >= 0 && h("span", { class: "tensor-here", style: { top: `${selected * tall}px` } }),
      ),
    ),
    selected >= 0 &&
      h("p", { class: "number tensor-numbers" }, h("strong", {}, rows[selected]), ` ${numbers(given)}`),
  );
}

const ACROSS = 60; // columns of a small picture

/** A small picture of a tensor: some of its columns, evenly spread. @param {Tensor} tensor @param {number | undefined} most @param {"light" | "dark"} theme */
export function smallPicture({ data, shape: [rows, columns] }, most, theme) {
  const shown = Math.min(columns, ACROSS);
  const few = new Float32Array(rows * shown);
  for (let i = 0; i < few.length; i++)
    few[i] = data[Math.floor(i / shown) * columns + Math.floor(((i % shown) * columns) / shown)];
  return thumbnail({ data: few, shape: [rows, shown] }, most ?? furthest(few), theme);
}
