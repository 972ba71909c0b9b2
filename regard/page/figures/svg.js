// Builds SVG figures without external styles, so that they can be saved as they are.

import { s } from "../parts/dom.js";

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
