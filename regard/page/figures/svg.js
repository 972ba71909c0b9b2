// Builds SVG figures without external styles, so that they can be saved as they are.

import { s } from "../parts/dom.js";
import { textWidth } from "./layout.js";

const FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', sans-serif";

/** @typedef {{ node: SVGElement, width: number, height: number }} Part */

/**
 * @param {number} width
 * @param {number} height
 * @param {string} label For screen readers.
 * @param {(SVGElement | null | undefined | false)[]} children
 */
export function figure(width, height, label, children) {
  const drawn = s(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": label,
      "font-family": FONT,
      class: "figure",
      tabindex: 0,
    },
    children,
  );
  // Screen readers ignore the content of an image, but must find its buttons.
  if (drawn.querySelector("[role=button]")) drawn.setAttribute("role", "group");
  return drawn;
}

/**
 * The factor by which a figure fills its place.
 * @param {SVGElement} drawn
 * @param {{ width: number, height: number }} place
 * @param {[number, number]} factors The least and the largest.
 */
export function growth(drawn, place, [least, most]) {
  const [width, height] = sizeOf(drawn);
  const whole = least < 1 || height < place.height; // one that is higher scrolls anyway, and fills the width
  return Math.max(least, Math.min(most, place.width / width, whole ? place.height / height : most));
}

/** Resize a figure with its text. @param {SVGElement} drawn @param {number} factor */
export function resize(drawn, factor) {
  const [width, height] = sizeOf(drawn);
  drawn.setAttribute("width", String(Math.floor(width * factor)));
  drawn.setAttribute("height", String(Math.floor(height * factor)));
}

/** Width and height of a figure as it was drawn. @param {SVGElement} drawn */
const sizeOf = (drawn) => (drawn.getAttribute("viewBox") ?? "0 0 1 1").split(" ").slice(2).map(Number);

/**
 * A text element.
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {Record<string, unknown>} [attributes]
 */
export function label(text, x, y, attributes = {}) {
  return s("text", { x, y, "font-size": 12, "dominant-baseline": "central", ...attributes }, text);
}

/** Digits of equal width. */
export const TABULAR = { "font-variant-numeric": "tabular-nums" };

/** The look of a label, selected or not. @param {boolean} selected @param {Record<string, string>} palette */
export function emphasis(selected, palette) {
  return { fill: selected ? palette.orange : palette.ink, "font-weight": selected ? 700 : 400 };
}

/**
 * Add a tooltip, and optionally a click handler.
 * @template {SVGElement} T
 * @param {T} node
 * @param {import("../frame.js").Tooltip} tip
 * @param {string} text
 * @param {() => void} [pick]
 * @returns {T}
 */
export function withTip(node, tip, text, pick) {
  node.addEventListener("mousemove", (event) => tip.show(text, event));
  node.addEventListener("mouseleave", () => tip.hide());
  if (pick) {
    node.setAttribute("cursor", "pointer");
    node.addEventListener("click", pick);
  }
  return node;
}

/**
 * Make an element a button for pointer, keyboard and screen readers.
 * @template {SVGElement} T
 * @param {T} node
 * @param {string} text
 * @param {() => void} pick
 * @returns {T}
 */
export function asButton(node, text, pick) {
  const attributes = { role: "button", tabindex: "0", cursor: "pointer", "aria-label": text };
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.classList.add("pressable");
  node.addEventListener("click", pick);
  node.addEventListener("keydown", (event) => {
    if (!["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    pick();
  });
  return node;
}

/**
 * A strip of shades from 0 to 1.
 * @param {number} width
 * @param {number} height
 * @param {(share: number) => string} colour
 */
export function scale(width, height, colour) {
  const steps = Math.ceil(width / 4);
  return Array.from({ length: steps }, (_, i) =>
    s("rect", { x: (i * width) / steps, y: 0, width: width / steps + 0.2, height, fill: colour(i / (steps - 1)) }),
  );
}

/** A figure of parts below each other. @param {(Part | null | undefined | false)[]} parts @param {string} label */
export function stack(parts, label) {
  const there = /** @type {Part[]} */ (parts.filter(Boolean));
  let y = 4;
  const placed = there.map((part) => {
    const group = s("g", { transform: `translate(0 ${y})` }, part.node);
    y += part.height + 18;
    return group;
  });
  return figure(Math.max(...there.map((part) => part.width)), y - 8, label, placed);
}

let hatches = 0;

/** A hatching pattern for masked cells. @param {string} colour @returns {{ definition: SVGElement, fill: string }} */
export function hatching(colour) {
  const id = `hatch${hatches++}`;
  const definition = s(
    "defs",
    {},
    s(
      "pattern",
      { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      s("line", { x1: 0, y1: 0, x2: 0, y2: 6, stroke: colour, "stroke-width": 1.6 }),
    ),
  );
  return { definition, fill: `url(#${id})` };
}

const LINE = 19; // height of a line of a caption
const EDGE = 14; // around a figure with a caption

/**
 * A figure below what a reader of the file has to know.
 * @param {SVGElement} drawn
 * @param {string[]} lines The first one is the title.
 * @param {Record<string, string>} palette
 */
export function captioned(drawn, lines, palette) {
  const [width, height] = ["width", "height"].map((side) => Number(drawn.getAttribute(side)));
  const wide = Math.max(width, 360);
  const rows = lines.flatMap((text, i) => wrapped(text, wide, i ? 13 : 17).map((row) => ({ row, title: !i })));
  const top = rows.length * LINE + 10;
  const copy = /** @type {SVGElement} */ (drawn.cloneNode(true));
  copy.setAttribute("x", String(EDGE));
  copy.setAttribute("y", String(EDGE + top));
  const words = rows.map(({ row, title }, i) =>
    label(row, EDGE, EDGE + (i + 0.5) * LINE, {
      ...{ "font-size": title ? 17 : 13, "font-weight": title ? 650 : 400, fill: title ? palette.ink : palette.soft },
    }),
  );
  return figure(wide + 2 * EDGE, height + top + 2 * EDGE, lines[0], [...words, copy]);
}

/** A text in lines of a width, broken between words or Chinese characters. @param {string} text @param {number} width @param {number} size */
export function wrapped(text, width, size) {
  const lines = [""];
  for (const part of text.match(/[^\s\u2e80-\u9fff]+\s*|[\u2e80-\u9fff]\s*|\s+/gu) ?? []) {
    const line = lines[lines.length - 1] + part;
    if (textWidth(line.trimEnd(), size) <= width || !lines[lines.length - 1]) lines[lines.length - 1] = line;
    else lines.push(part);
  }
  return lines.map((line) => line.trimEnd());
}

/** A figure as the text of an SVG file. @param {SVGElement} drawn @param {string} paper */
export function svgText(drawn, paper) {
  const copy = /** @type {SVGElement} */ (drawn.cloneNode(true));
  for (const name of ["class", "tabindex", "style"]) copy.removeAttribute(name);
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: paper }));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}`;
}

/**
 * A figure as a PNG with twice the resolution of the screen.
 * @param {SVGElement} drawn
 * @param {string} paper
 * @returns {Promise<Blob>}
 */
export async function pngBlob(drawn, paper) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(drawn, paper))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = ["width", "height"].map((side) => 2 * Number(drawn.getAttribute(side)));
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no PNG could be drawn")))),
  );
}

/** Download a file. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
