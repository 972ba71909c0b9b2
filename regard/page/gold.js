// Alignments that people made, in Pharaoh's format, and how far the shown one is from them.

/** @typedef {{ sure: Set<string>, possible: Set<string>, wrong: string }} Gold Links as `1-2`; the first that is none. */

/**
 * `0-0 1-2 2p1`: words from 0; with p or ?, a link that is possible but not sure.
 * @param {string} text
 * @param {number} inputs How many words there are.
 * @param {number} outputs
 * @returns {Gold}
 */
export function readGold(text, inputs, outputs) {
  const gold = { sure: new Set(), possible: new Set(), wrong: "" };
  for (const each of text.split(/\s+/).filter(Boolean)) {
    const [, input, sign, output] = /^(\d+)([-p?])(\d+)$/.exec(each) ?? [];
    if (!sign || Number(input) >= inputs || Number(output) >= outputs) return { ...gold, wrong: each };
    const link = `${Number(input)}-${Number(output)}`;
    if (sign === "-") gold.sure.add(link);
    gold.possible.add(link);
  }
  return gold;
}

/**
 * Precision, recall and the alignment error rate (Och and Ney, 2003); null where nothing is sure.
 * @param {[number, number][]} links
 * @param {Gold} gold
 */
export function scored(links, { sure, possible }) {
  const found = new Set(links.map((link) => link.join("-")));
  const both = (/** @type {Set<string>} */ known) => [...found].filter((link) => known.has(link)).length;
  if (!found.size || !sure.size) return null;
  return {
    precision: both(possible) / found.size,
    recall: both(sure) / sure.size,
    errors: 1 - (both(sure) + both(possible)) / (found.size + sure.size),
  };
}
