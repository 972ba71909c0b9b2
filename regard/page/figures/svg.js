// Figures: one SVG each, complete in itself, so that what is on the screen can be saved as it is.

import { s } from "../parts/dom.js";

export const FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', sans-serif";

/** @typedef {{ node: SVGElement, width: number, height: number }} Part */
/** @typedef {import("../frame.js").Context} Context */

/**
 * @param {number} width
 * @param {number} height
 * @param {string} label What it shows, for those who hear it.
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
  // An image has nothing inside for those who hear it; what can be pressed must be.
  if (drawn.querySelector("[role=button]")) drawn.setAttribute("role", "group");
  return drawn;
}

/**
 * A text of a figure.
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {Record<string, unknown>} [attributes]
 */
export function label(text, x, y, attributes = {}) {
  return s("text", { x, y, "font-size": 12, "dominant-baseline": "central", ...attributes }, text);
}

/** Figures below each other stand in line. */
export const TABULAR = { "font-variant-numeric": "tabular-nums" };

/**
 * How a name is written when it is selected, and when it is not.
 * @param {boolean} selected
 * @param {Record<string, string>} palette
 */
export function emphasis(selected, palette) {
  return { fill: selected ? palette.orange : palette.ink, "font-weight": selected ? 700 : 400 };
}

/**
 * A part that says something when it is pointed at, and perhaps does something when it is clicked.
 * @template {SVGElement} T
 * @param {T} node
 * @param {import("../frame.js").Tip} tip
 * @param {string} text
 * @param {() => void} [pick]
 * @returns {T}
 */
export function telling(node, tip, text, pick) {
  node.addEventListener("mousemove", (event) => tip.show(text, event));
  node.addEventListener("mouseleave", () => tip.hide());
  if (pick) {
    node.setAttribute("cursor", "pointer");
    node.addEventListener("click", pick);
  }
  return node;
}

/**
 * A part that is pressed as a button is, by a click or a key.
 * @template {SVGElement} T
 * @param {T} node
 * @param {string} text
 * @param {() => void} pick
 * @returns {T}
 */
export function pressable(node, text, pick) {
  const told = { role: "button", tabindex: "0", cursor: "pointer", "aria-label": text };
  for (const [name, value] of Object.entries(told)) node.setAttribute(name, value);
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
 * Parts below each other, with a little room between them.
 * @param {(Part | null | undefined | false)[]} parts
 * @param {string} told
 */
export function stacked(parts, told) {
  const there = parts.filter(Boolean);
  let y = 4;
  const placed = there.map((part) => {
    const group = s("g", { transform: `translate(0 ${y})` }, part.node);
    y += part.height + 18;
    return group;
  });
  return figure(Math.max(...there.map((part) => part.width)), y - 8, told, placed);
}

let hatches = 0;

/** Hatching, for what is masked. @param {string} colour @returns {{ definition: SVGElement, fill: string }} */
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

/** A figure as a file of its own. @param {SVGElement} drawn @param {string} paper */
export function svgText(drawn, paper) {
  const copy = drawn.cloneNode(true);
  for (const name of ["class", "tabindex", "style"]) copy.removeAttribute(name);
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: paper }));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}`;
}

/**
 * A figure as a PNG, twice as fine as on the screen.
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

/** Hand a file to the reader. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
