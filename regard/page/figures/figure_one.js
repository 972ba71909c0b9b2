// Draws Figure 1 of the paper for one model; boxes are buttons, and show small pictures of what they hold.

import { layersOf, layoutOf } from "../compute/figure_one.js";
import { s } from "../parts/dom.js";
import { asButton, figure, label, withTip } from "./svg.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../compute/figure_one.js").Model} Model */
/** @typedef {import("../compute/figure_one.js").Placed} Placed */
/** @typedef {import("../compute/figure_one.js").Layout} Layout */
/**
 * @typedef {object} Shown
 * @property {boolean} [narrow] Whether the decoder stands above the encoder.
 * @property {boolean} [slim] Whether boxes have no pictures.
 * @property {string} [selected] The selected box.
 * @property {Record<string, number>} [layers] The selected layer of each stack.
 * @property {(box: Placed) => void} [pick]
 * @property {(stack: string, layer: number) => void} [pickLayer]
 *
 * @typedef {object} Drawn
 * @property {SVGElement} node
 * @property {Layout} layout
 * @property {(id: string, picture: HTMLCanvasElement) => void} put Show a picture in a box.
 * @property {(id: string, from?: string) => void} go Show the dot at a box; it moves there from another one.
 */

/** Colours of the boxes: names in the palette. */
const HUES = {
  ...{ attention: "orange", norm: "yellow", "add-norm": "yellow", add: "yellow", "feed-forward": "blue" },
  ...{ embedding: "purple", position: "purple", "label-head": "blue", linear: "purple", softmax: "green", text: "soft" },
};
const PICTURE = { width: 50, height: 18, square: 34 };
const MOVE = 600; // milliseconds for the dot to reach another box
const MOST_LAYERS = 16; // that have a button each

/** The words of a box. @param {Context} context @param {Model} model @param {{ id: string, type: string, stack: string }} box */
export function boxName({ t }, { architecture }, { id, type, stack }) {
  if (id === "text:input") return t("inputs");
  if (id === "text:output") return architecture === "decoder" ? t("text") : t("figure.shifted");
  if (id === "text:said") return t(architecture === "encoder" ? "figure.labels" : "figure.said");
  if (type === "attention") return t(`figure.${id}`);
  if (type === "embedding" && architecture === "encoder-decoder") return t(`figure.embedding.${stack}`);
  return t(`figure.${type}`);
}

/** A name on at most two lines. @param {string} name @param {boolean} broken */
function lines(name, broken) {
  const words = name.split(" ");
  if (!broken || words.length < 2) return [name];
  return [words.slice(0, -1).join(" "), words[words.length - 1]];
}

/**
 * @param {Context} context
 * @param {Model} model
 * @param {Shown} shown
 * @returns {Drawn}
 */
export function figureOne(context, model, shown = {}) {
  const { palette, t } = context;
  const layout = layoutOf(model, shown.narrow, shown.slim);
  /** @type {Map<string, SVGElement>} */
  const groups = new Map();
  const boxes = layout.boxes.map((box) => {
    const group = drawnBox(context, model, box, shown);
    groups.set(box.id, group);
    return group;
  });
  const dot = s("circle", { class: "walker", r: 7, fill: palette.orange, stroke: palette.paper, "stroke-width": 2, opacity: 0 });
  const heads = arrowHead(palette.soft);
  const node = figure(layout.width, layout.height, t("model"), [
    heads.definition,
    ...layout.frames.map((frame) => drawnFrame(context, model, frame, shown)),
    ...layout.lines.map(({ d, memory }) =>
      s("path", { d, fill: "none", stroke: memory ? palette.blue : palette.soft, "stroke-width": memory ? 1.8 : 1.2, "marker-end": heads.use }),
    ),
    ...boxes,
    dot,
  ]);
  node.classList.add("figure-one");
  if (shown.pick) node.removeAttribute("tabindex");
  const put = (id, picture) => {
    const box = layout.boxes.find((each) => each.id === id);
    if (box) groups.get(id)?.append(pictured(box, picture, palette));
  };
  const placeOf = (id) => {
    const box = layout.boxes.find((each) => each.id === id);
    return box && `translate(${box.x}px, ${box.y + box.height / 2}px)`;
  };
  const go = (id, from = id) => {
    const [start, end] = [placeOf(from), placeOf(id)];
    if (!end) return;
    dot.style.transform = end;
    dot.setAttribute("opacity", "1");
    const moves = start && start !== end && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (moves) requestAnimationFrame(() => dot.animate([{ transform: start }, { transform: end }], { duration: MOVE, easing: "ease-in-out" }));
  };
  return { node, layout, put, go };
}

let markers = 0;

/** @param {string} colour */
function arrowHead(colour) {
  const id = `arrow${markers++}`;
  const shape = s("path", { d: "M0 0L6 3L0 6z", fill: colour });
  const marker = s("marker", { id, viewBox: "0 0 6 6", refX: 5.5, refY: 3, markerWidth: 5, markerHeight: 5, orient: "auto" }, shape);
  return { definition: s("defs", {}, marker), use: `url(#${id})` };
}

/** @param {Context} context @param {Model} model @param {Placed} box @param {Shown} shown */
function drawnBox(context, model, box, shown) {
  const { palette, tip } = context;
  const { x, y, width, height, type } = box;
  const [chosen, hue] = [box.id === shown.selected, palette[HUES[type]]];
  const name = boxName(context, model, box);
  const look =
    type === "text"
      ? { fill: chosen ? hue : "transparent", "fill-opacity": 0.14, stroke: "none" }
      : { fill: hue, "fill-opacity": chosen ? 0.3 : 0.13, stroke: hue, "stroke-width": chosen ? 2.4 : 1.2 };
  const middle = type === "text" ? width / 2 : 12;
  const written = lines(name, type === "attention").map((line, i, all) =>
    label(line, middle, height / 2 + (i - (all.length - 1) / 2) * 15, {
      ...{ "font-size": 12.5, fill: palette.ink, "pointer-events": "none" },
      "text-anchor": type === "text" ? "middle" : "start",
      "font-weight": chosen ? 700 : 500,
    }),
  );
  const group = s(
    "g",
    { transform: `translate(${x} ${y})`, "data-box": box.id },
    s("rect", { width, height, rx: type === "position" ? height / 2 : 6, ...look }),
    written,
  );
  withTip(group, tip, name);
  return shown.pick ? asButton(group, name, () => shown.pick(box)) : group;
}

/** @param {Context} context @param {Model} model @param {import("../compute/figure_one.js").Frame} frame @param {Shown} shown */
function drawnFrame(context, model, { stack, x, y, width, height }, shown) {
  const { palette, t } = context;
  const count = layersOf(model, stack);
  const here = shown.layers?.[stack] ?? -1;
  const outer = s("rect", { x, y, width, height, rx: 12, fill: palette.raised, stroke: palette.line, "stroke-dasharray": "5 4" });
  const right = shown.narrow ? false : stack === "decoder" && model.architecture === "encoder-decoder";
  const beside = right ? x + width + 6 : x - 32;
  const title = label(`${count} ×`, beside + 13, y + 8, { "text-anchor": "middle", "font-size": 14, "font-weight": 700, fill: palette.ink });
  if (count > MOST_LAYERS || !shown.pickLayer) return s("g", {}, outer, title);
  const tall = Math.min(26, (height - 26) / count);
  const buttons = Array.from({ length: count }, (_, layer) => {
    const chosen = layer === here;
    const place = { x: beside, y: y + height - (layer + 1) * tall, width: 26, height: tall - 2, rx: 4 };
    const group = s(
      "g",
      {},
      s("rect", { ...place, fill: chosen ? palette.blue : palette.paper, stroke: chosen ? palette.blue : palette.line }),
      label(String(layer), beside + 13, place.y + place.height / 2 + 0.5, {
        ...{ "text-anchor": "middle", "font-size": Math.min(12, tall - 4), fill: chosen ? palette.paper : palette.ink },
      }),
    );
    if (chosen) group.setAttribute("aria-current", "true");
    return asButton(group, `${t(`figure.${stack}.stack`)}, ${t("layer")} ${layer}`, () => shown.pickLayer(stack, layer));
  });
  return s("g", {}, outer, title, buttons);
}

/** A picture at the right of a box: square for attention, wide for vectors. @param {Placed} box @param {HTMLCanvasElement} picture @param {Record<string, string>} palette */
function pictured(box, picture, palette) {
  const square = box.type === "attention";
  const [width, height] = square ? [PICTURE.square, PICTURE.square] : [PICTURE.width, PICTURE.height];
  const place = { x: box.width - width - 6, y: (box.height - height) / 2, width, height };
  const look = { preserveAspectRatio: "none", "image-rendering": "pixelated", "pointer-events": "none" };
  return s(
    "g",
    {},
    s("image", { href: picture.toDataURL(), ...place, ...look }),
    s("rect", { ...place, fill: "none", stroke: palette.line, "pointer-events": "none" }),
  );
}

/**
 * The figure as a small map, on which the places of a screen are marked.
 * @param {Context} context
 * @param {Model} model
 * @param {string[]} marked Ids of boxes; empty: the whole model.
 */
export function miniature({ palette, t }, model, marked) {
  const layout = layoutOf(model);
  const found = new Set(marked);
  const node = figure(layout.width, layout.height, t("model"), [
    ...layout.frames.map(({ x, y, width, height }) =>
      s("rect", { x, y, width, height, rx: 16, fill: palette.raised, stroke: palette.soft, "stroke-width": 5 }),
    ),
    ...layout.boxes
      .filter(({ type }) => type !== "text")
      .map(({ id, x, y, width, height, type }) => {
        const here = found.has(id);
        const fill = here ? palette.orange : palette[HUES[type]];
        const grow = here ? 8 : 0;
        return s("rect", { x: x - grow, y: y - grow, width: width + 2 * grow, height: height + 2 * grow, rx: 8, fill, opacity: here ? 1 : found.size ? 0.3 : 0.6 });
      }),
  ]);
  for (const name of ["class", "tabindex", "width", "height", "role", "aria-label"]) node.removeAttribute(name);
  node.setAttribute("aria-hidden", "true");
  return node;
}
