// Creates elements. Text is never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const MATH = "http://www.w3.org/1998/Math/MathML";

/**
 * @typedef {Record<string, unknown>} Attributes `class`, `onclick` and other listeners, `dataset`, attributes.
 * @typedef {Node | string | null | undefined | false} Child A number is formatted first: `0 && …` would show 0.
 */

/**
 * @template {HTMLElement | SVGElement | MathMLElement} E
 * @param {E} element
 * @param {Attributes} attributes
 * @param {(Child | Child[])[]} children
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "style")
      Object.entries(value).forEach(([property, set]) => element.style.setProperty(property, String(set)));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    if (typeof child !== "string" && !(child instanceof Node))
      throw new TypeError(`a child of <${element.localName}> is neither text nor an element: ${child}`);
    element.append(child);
  }
  return element;
}

/**
 * An HTML element: `h("button", { onclick }, "Next")`.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/**
 * An SVG element. Colours are attributes rather than classes: a saved figure has no style sheet.
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElementTagNameMap[Name]}
 */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/**
 * A MathML element.
 * @param {string} name
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {MathMLElement}
 */
export function m(name, attributes = {}, ...children) {
  return fill(document.createElementNS(MATH, name), attributes, children);
}
