// The words of a text that say a date.

const MONTHS = "January February March April May June July August September October November December";
const DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday";
const ORDINALS =
  "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth " +
  "sixteenth seventeenth eighteenth nineteenth twentieth twenty thirtieth thirty";
const ENGLISH = [MONTHS, DAYS, ORDINALS].join(" ").replaceAll(" ", "|");
const CHINESE = "[〇零一二三四五六七八九十\\d]+\\s*[年月日号]|星期[一二三四五六日天]";
const WORDS = new RegExp(`\\b(?:${ENGLISH})\\b|${CHINESE}|\\b\\d+(?:st|nd|rd|th)?\\b`, "giu");

/** @param {string} text @returns {string[]} */
export const dateWords = (text) => (text.match(WORDS) ?? []).map((word) => word.toLowerCase().replace(/\s/g, ""));

/**
 * Whether the date of a text has changed; of a text without a date, whether the text has.
 * @param {string} before
 * @param {string} after
 */
export function dateChanged(before, after) {
  const words = dateWords(before);
  return words.length ? words.join(" ") !== dateWords(after).join(" ") : before.trim() !== after.trim();
}
