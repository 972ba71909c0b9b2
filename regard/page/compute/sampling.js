// The tokens from which the next one is sampled, like `regard/decode/sampling.py`.

/**
 * @typedef {Pick<import("../state/store.js").State, "heat" | "top_k" | "top_p" | "min_p">} Settings
 * @typedef {object} Cut
 * @property {Float64Array} chances Probabilities of all tokens at this temperature.
 * @property {number} kept Number of tokens that can be sampled, the most likely first.
 * @property {number} mass Their total probability.
 */

/**
 * Each rule removes the least likely of the remaining tokens, so a prefix of the sorted list is left.
 * @param {Float32Array} logProbs Sorted, the most likely first.
 * @param {Settings} settings At temperature 0 (greedy), probabilities are unchanged.
 * @returns {Cut}
 */
export function cut(logProbs, { heat, top_k, top_p, min_p }) {
  const chances = Float64Array.from(logProbs, (each) => Math.exp((each - logProbs[0]) / (heat || 1)));
  const sum = chances.reduce((a, b) => a + b, 0);
  chances.forEach((each, i) => (chances[i] = each / sum));
  const most = heat ? top_k || chances.length : 1;
  const within = chances.subarray(0, most).reduce((a, b) => a + b, 0);
  let [kept, mass] = [0, 0];
  while (kept < Math.min(most, chances.length)) {
    if (mass >= top_p * within || chances[kept] < min_p * chances[0]) break;
    mass += chances[kept++];
  }
  return { chances, kept, mass };
}
