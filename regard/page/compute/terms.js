// Finds the terms of the glossary in a text.

import glossary from "../words/glossary.json" with { type: "json" };

/** @typedef {{ en: string[], zh: string[], meaning: Record<string, string> }} Entry */
/** @typedef {{ start: number, end: number, entry: Entry }} Found */

/** Other forms of an English term. @param {string} word */
function forms(word) {
  if (/[A-Z_]/.test(word)) return [word];
  if (word.endsWith("is")) return [word, word.replace(/is$/, "es")];
  if (word.endsWith("ies")) return [word, word.replace(/ies$/, "y")];
  return word.endsWith("s") ? [word, word.replace(/s$/, "")] : [word, `${word}s`];
}

/** All words of a language with their entries, the longest first. @param {"en" | "zh"} lang */
function vocabulary(lang) {
  const pair = (form, entry) => /** @type {[string, Entry]} */ ([form, entry]);
  const words = /** @type {Entry[]} */ (glossary).flatMap((entry) =>
    entry[lang].flatMap((word) => (lang === "en" ? forms(word) : [word]).map((form) => pair(form, entry))),
  );
  return new Map(words.sort(([one], [other]) => other.length - one.length));
}

const COMPOUNDS = ["快捷键", "按键"]; // words with a term in them that is none
const VOCABULARY = { en: vocabulary("en"), zh: vocabulary("zh") };
const literal = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const ANY = {
  en: new RegExp(`(?<![\\w.-])(?:${[...VOCABULARY.en.keys()].map(literal).join("|")})(?![\\w-])`, "gi"),
  zh: new RegExp([...COMPOUNDS, ...[...VOCABULARY.zh.keys()].map(literal)].join("|"), "g"),
};

/** The places between two words of a Chinese text. @param {string} text @returns {Set<number> | null} */
function wordEnds(text) {
  if (!("Segmenter" in Intl)) return null;
  const segments = new Intl.Segmenter("zh", { granularity: "word" }).segment(text);
  return new Set([...segments].map(({ index }) => index).concat(text.length));
}

/**
 * The terms in a text, in order. A Chinese term begins and ends where a word does: 键 is none in 快捷键.
 * @param {string} text
 * @param {"en" | "zh"} lang
 * @returns {Found[]}
 */
export function termsIn(text, lang) {
  const ends = lang === "zh" ? wordEnds(text) : null;
  return [...text.matchAll(ANY[lang])].flatMap((match) => {
    const [word] = match;
    const [start, end] = [match.index, match.index + word.length];
    const entry = VOCABULARY[lang].get(word) ?? VOCABULARY[lang].get(word.toLowerCase());
    const whole = !ends || (ends.has(start) && ends.has(end));
    return entry && whole ? [{ start, end, entry }] : [];
  });
}
