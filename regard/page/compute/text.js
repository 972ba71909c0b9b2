// Texts: what a token adds, an output cut into words with their sources and probabilities, a diff of two texts.

/**
 * The text that a vocabulary piece adds; null for special tokens and for bytes that are not ASCII.
 * @param {string} piece
 */
export function textOfPiece(piece) {
  const byte = /^<0x([0-7][0-9A-F])>$/.exec(piece);
  if (byte) return String.fromCharCode(Number.parseInt(byte[1], 16));
  return /^<.*>$/.test(piece) ? null : piece.replaceAll("▁", " ");
}

/**
 * @typedef {object} Link Offsets count code points, like Python.
 * @property {string} source
 * @property {string} target
 * @property {number} source_start
 * @property {number} source_end
 * @property {number} target_start
 * @property {number} target_end
 * @property {number} strength
 *
 * @typedef {object} NumberChange A value of the source that the translation does not have. Offsets count code points.
 * @property {string} source
 * @property {number} source_start
 * @property {number} source_end
 * @property {string} source_value
 * @property {string} target What stands in its place; empty if the value is lost.
 * @property {number | null} target_start
 * @property {number | null} target_end
 * @property {string} target_value
 *
 * @typedef {{ text: string, link: Link | null, probability: number | null, changed: boolean }} Piece
 * @typedef {{ start: number, end: number, probability: number }} Sure
 */

/** UTF-16 offset of each code point, and of the end. @param {string} text */
function places(text) {
  const found = [0];
  for (const letter of text) found.push(found[found.length - 1] + letter.length);
  return found;
}

/**
 * The text of each output token; a character that is spelled in bytes is attached to the last of them.
 * @param {string[]} tokens
 */
export function spelt(tokens) {
  const written = tokens.map((token) => token.replaceAll("▁", " "));
  for (let first = 0; first < tokens.length; first++) {
    let end = first;
    while (/^<0x[0-9A-F]{2}>$/.test(tokens[end] ?? "")) end++;
    if (end === first) continue;
    const bytes = tokens.slice(first, end).map((token) => parseInt(token.slice(3, 5), 16));
    written.fill("", first, end);
    written[end - 1] = new TextDecoder().decode(Uint8Array.from(bytes));
    first = end;
  }
  return written;
}

/**
 * The probability of each part of an output. One sentence has a score per token and one for its end; for several
 * sentences the boundaries are unknown, so the result is empty.
 * @param {string} text
 * @param {string[]} tokens
 * @param {number[]} scores Log-probabilities.
 * @returns {Sure[]}
 */
export function wordProbabilities(text, tokens, scores) {
  if (scores.length !== tokens.length + 1) return [];
  /** @type {Sure[]} */
  const found = [];
  let at = 0;
  let least = 0;
  spelt(tokens).forEach((token, i) => {
    least = Math.min(least, scores[i]);
    const word = token.trim();
    if (!word) return;
    const start = text.indexOf(word, at);
    if (start >= 0) {
      at = start + word.length;
      found.push({ start, end: at, probability: Math.exp(least) });
    }
    least = 0;
  });
  return found;
}

/**
 * A text in parts that lie inside or outside of some ranges of code points; parts between `from` and `to` (UTF-16).
 * @param {string} text
 * @param {[number, number][]} ranges
 * @param {number} [from]
 * @param {number} [to]
 * @returns {{ text: string, inside: boolean }[]}
 */
export function marked(text, ranges, from = 0, to = text.length) {
  const at = places(text);
  const inside = (i) => ranges.some(([start, end]) => at[start] <= i && i < at[end]);
  const bounds = ranges.flat().map((i) => at[i]).filter((i) => i > from && i < to);
  const cuts = [...new Set([from, ...bounds, to])].sort((a, b) => a - b);
  return cuts.slice(1).map((end, i) => ({ text: text.slice(cuts[i], end), inside: inside(cuts[i]) }));
}

/**
 * The whole output in pieces: aligned words, and the text between them.
 * @param {string} text
 * @param {Link[]} links
 * @param {Sure[]} sure
 * @param {NumberChange[]} [numbers]
 * @returns {Piece[]}
 */
export function pieces(text, links, sure, numbers = []) {
  const at = places(text);
  /** @type {[number, number][]} */
  const ranges = numbers.flatMap(({ target_start: start, target_end: end }) =>
    start === null || end === null ? [] : [[start, end]],
  );
  /** @type {Piece[]} */
  const found = [];
  let end = 0;
  const between = (until) => {
    if (until <= end) return;
    for (const part of marked(text, ranges, end, until))
      found.push({ text: part.text, link: null, probability: null, changed: part.inside });
  };
  for (const link of [...links].sort((a, b) => a.target_start - b.target_start)) {
    const [first, last] = [at[link.target_start], at[link.target_end]];
    if (first === undefined || last === undefined || first < end || last <= first) continue;
    between(first);
    const within = sure.filter((each) => each.start < last && each.end > first);
    const probability = within.length ? Math.min(...within.map((each) => each.probability)) : null;
    const changed = marked(text, ranges, first, last).some((part) => part.inside);
    found.push({ text: text.slice(first, last), link, probability, changed });
    end = last;
  }
  between(text.length);
  return found;
}

/**
 * A text split into three: before, inside and after a range of code points.
 * @param {string} text
 * @param {number} start
 * @param {number} end
 */
export function cut(text, start, end) {
  const at = places(text);
  return [text.slice(0, at[start]), text.slice(at[start], at[end]), text.slice(at[end])];
}

/** @typedef {{ text: string, change: "same" | "gone" | "new" }} Part */

const SEGMENTS = new Intl.Segmenter(undefined, { granularity: "word" });

/** @param {string} text */
const words = (text) => Array.from(SEGMENTS.segment(text), (each) => each.segment);

const ALIKE = 0.4; // share of the longer text that must stay

/**
 * The diff of two texts that have enough in common; else the new text as it is.
 * @param {string} before
 * @param {string} after
 * @returns {Part[]}
 */
export function changesOf(before, after) {
  if (before === after) return [{ text: after, change: "same" }];
  const parts = diff(before, after);
  const letters = (text) => text.replace(/[\s\p{P}]/gu, "").length;
  const kept = parts.filter(({ change }) => change === "same").reduce((sum, { text }) => sum + letters(text), 0);
  const alike = kept / Math.max(1, letters(before), letters(after)) >= ALIKE;
  return alike ? parts : [{ text: after, change: "same" }];
}

/** A word diff by the longest common subsequence. @param {string} before @param {string} after @returns {Part[]} */
export function diff(before, after) {
  const [from, to] = [words(before), words(after)];
  const longest = Array.from({ length: from.length + 1 }, () => new Uint16Array(to.length + 1));
  for (let i = from.length - 1; i >= 0; i--)
    for (let j = to.length - 1; j >= 0; j--)
      longest[i][j] =
        from[i] === to[j] ? 1 + longest[i + 1][j + 1] : Math.max(longest[i + 1][j], longest[i][j + 1]);
  /** @type {Part[]} */
  const parts = [];
  const add = (text, change) => {
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
