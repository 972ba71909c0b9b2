// The visible text of the page in English and Chinese, with the same keys.

import en from "./en.json" with { type: "json" };
import zh from "./zh.json" with { type: "json" };
import style from "../style.json" with { type: "json" };

/** The names that Python's figures use, too. @param {"en" | "zh"} lang */
const shared = (lang) =>
  Object.fromEntries([
    ...Object.entries(style.fates).map(([fate, names]) => [`fate.${fate}`, names[lang]]),
    ...Object.entries(style.kinds).map(([kind, names]) => [`kind.${kind}.title`, capital(names[lang])]),
  ]);

/** @param {string} text */
const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** @type {Record<string, Record<string, string>>} */
const WORDS = { en: { ...en, ...shared("en") }, zh: { ...zh, ...shared("zh") } };

/** @typedef {(key: string, gaps?: Record<string, string | number>) => string} Say */

/** @param {string} lang @returns {Say} */
export function wordsIn(lang) {
  const words = WORDS[lang] ?? en;
  return (key, gaps = {}) =>
    (words[key] ?? key).replace(/\{(\w+)\}/g, (gap, name) => (name in gaps ? String(gaps[name]) : gap));
}

/** @param {readonly string[]} wanted Preferred languages, best first. */
export function preferredLanguage(wanted) {
  return wanted.map((each) => each.slice(0, 2).toLowerCase()).find((each) => each in WORDS) ?? "en";
}
