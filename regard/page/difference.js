// Two texts, word by word: what stayed, what went, what came.

/** @typedef {{ text: string, change: "same" | "gone" | "new" }} Part */

const SEGMENTS = new Intl.Segmenter(undefined, { granularity: "word" });

/** @param {string} text */
const words = (text) => Array.from(SEGMENTS.segment(text), (each) => each.segment);

/**
 * The shortest way from one text to the other; what stayed is the longest that both have in this order.
 * @param {string} before
 * @param {string} after
 * @returns {Part[]}
 */
export function difference(before, after) {
  const [from, to] = [words(before), words(after)];
  const longest = Array.from({ length: from.length + 1 }, () => new Uint16Array(to.length + 1));
  for (let i = from.length - 1; i >= 0; i--)
    for (let j = to.length - 1; j >= 0; j--)
      longest[i][j] =
        from[i] === to[j] ? 1 + longest[i + 1][j + 1] : Math.max(longest[i + 1][j], longest[i][j + 1]);
  /** @type {Part[]} */
  const parts = [];
  const add = (/** @type {string} */ text, /** @type {Part["change"]} */ change) => {
    const last = parts[parts.length - 1];
    if (last?.change === change) last.text += text;
    else parts.push({ text, change });
  };
  let [i, j] = [0, 0];
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      add(from[i++], "same");
      j++;
    } else if (j >= to.length || (i < from.length && longest[i + 1][j] >= longest[i][j + 1]))
      add(from[i++], "gone");
    else add(to[j++], "new");
  }
  return parts;
}
