// Terms of the field in the text of a screen: each shows its glossary entry on hover and focus.

import { termsIn } from "../compute/terms.js";
import { h } from "./dom.js";

/** @typedef {import("../compute/terms.js").Entry} Entry */

const EXPLAINED = "p, h2, h3, dt, dd, th, label, summary, figcaption, .soft, .stepper-name, .explained";
// What users wrote, what can be pressed, what is read aloud when it changes, and what is no sentence.
const LEFT_ALONE =
  "[dir], button, svg, math, textarea, select, pre, code, .number, .word, .read, .chip, .term, [role=status], [role=alert]";

/** The entry beside the term that the pointer or the focus is on. */
const tip = h("div", { class: "tip entry", id: "entry", hidden: true });
let leaving = 0;

function hide() {
  tip.hidden = true;
}

/** @param {HTMLElement} term @param {string} meaning */
function show(term, meaning) {
  clearTimeout(leaving);
  tip.textContent = meaning;
  tip.hidden = false;
  if (!tip.isConnected) document.body.append(tip);
  const { left, top, bottom } = term.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
  const below = bottom + 6 + tip.offsetHeight < innerHeight;
  tip.style.top = `${below ? bottom + 6 : Math.max(4, top - tip.offsetHeight - 6)}px`;
}

/** Hide the entry, unless the pointer goes to it. */
function leave() {
  leaving = setTimeout(hide, 200);
}

tip.addEventListener("mouseenter", () => clearTimeout(leaving));
tip.addEventListener("mouseleave", hide);
addEventListener("scroll", hide, true);
addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Escape" || tip.hidden) return;
    hide();
    event.stopImmediatePropagation(); // the key has no other meaning while there is an entry
  },
  true,
);

/** @param {string} text @param {Entry} entry @param {"en" | "zh"} lang @param {string} id */
function term(text, entry, lang, id) {
  const meaning = entry.meaning[lang];
  const [between, after] = lang === "zh" ? ["、", "："] : [", ", ": "];
  const open = () => show(node, `${entry[lang].join(between)}${after}${meaning}`);
  const node = h(
    "span",
    {
      ...{ class: "term", id, tabindex: 0, "aria-description": meaning },
      ...{ onmouseenter: open, onmouseleave: leave, onfocus: open, onblur: hide },
    },
    text,
  );
  return node;
}

/**
 * Explain the terms in a part of the page: each where it first occurs.
 * @param {HTMLElement} root
 * @param {string} language
 */
export function explainTerms(root, language) {
  hide();
  const lang = language === "zh" ? "zh" : "en";
  const prefix = root.id || root.className;
  /** @type {Set<Entry>} */
  const done = new Set();
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const texts = [];
  while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
  for (const node of texts) {
    const { parentElement: parent } = node;
    if (!parent.closest(EXPLAINED) || parent.closest(LEFT_ALONE)) continue;
    let place = 0;
    const pieces = termsIn(node.data, lang).flatMap(({ start, end, entry }) => {
      if (done.has(entry)) return [];
      const before = node.data.slice(place, start);
      const found = term(node.data.slice(start, end), entry, lang, `term-${prefix}-${done.size}`);
      done.add(entry);
      place = end;
      return [before, found];
    });
    if (pieces.length) node.replaceWith(...pieces, node.data.slice(place));
  }
}
