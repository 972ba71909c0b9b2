// From which tokens the next is drawn, as `regard/decode/sampling.py` decides it.

/**
 * @typedef {Pick<import("../state/store.js").State, "heat" | "top_k" | "top_p" | "min_p">} Settings
 * @typedef {object} Cut
 * @property {Float64Array} chances At this temperature, of all tokens.
 * @property {number} kept So many of the likeliest may be drawn.
 * @property {number} mass Their chances together.
 */

/**
 * Each rule cuts the less likely among those that the rules before it left. So what remains is a beginning.
 * @param {Float32Array} logProbs The likeliest first.
 * @param {Settings} settings At temperature 0, which takes the likeliest, chances are as the model sees them.
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
