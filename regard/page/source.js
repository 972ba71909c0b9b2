// What views are shown from: an object that answers these questions, out of a file or over the network.

/**
 * @typedef {{ id: number, piece: string, text: string, start: number, end: number, special: boolean, word: number }} Token
 * @typedef {{ text: string, first: number, last: number }} Word
 * @typedef {{ text: string, tokens: Token[], words: Word[] }} Side
 * @typedef {{ kind: string, layers: number, heads: number, queries: "inputs" | "outputs", keys: "inputs" | "outputs",
 *   causal: boolean, masked: number[] }} Kind
 * @typedef {object} About
 * @property {string} architecture
 * @property {Record<string, number>} sizes
 * @property {Record<string, string>} settings
 * @property {Kind[]} kinds
 * @property {Side} inputs
 * @property {Side} outputs
 * @property {{ id: number, text: string, log_prob: number }[]} wanted
 * @property {Record<string, any>[]} interventions
 * @property {string} dtype
 * @property {string} hash
 *
 * @typedef {object} WalkStep
 * @property {string} name
 * @property {string} formula
 * @property {string} latex
 * @property {string} english
 * @property {string} chinese
 * @property {string[]} rows
 * @property {number[]} shape
 * @property {any} values Nested; null is −∞.
 *
 * @typedef {object} Source
 * @property {() => Promise<About>} describe
 * @property {(kind: string, layer: number) => Promise<import("./tensor.js").Tensor>} heads All heads of a layer.
 * @property {(kind: string, layer: number, head: number, form: string) => Promise<import("./tensor.js").Tensor>} matrix
 * @property {(kind: string, layer: number, head: number, query: number) => Promise<WalkStep[] | null>} walk
 * @property {() => Promise<Record<string, any>[]>} steps
 * @property {() => Promise<Record<string, any> | null>} beam
 * @property {() => Promise<Record<string, any> | null>} alignment
 * @property {() => { precision: string, kept?: number }} precision How exact what it tells is.
 */

/**
 * The same source, asked once for each thing; what failed is asked for again.
 * @param {Source} source
 * @returns {Source}
 */
export function remembered(source) {
  /** @type {Map<string, Promise<any>>} */
  const known = new Map();
  const ask = (/** @type {string} */ name) => (/** @type {any[]} */ ...given) => {
    const key = JSON.stringify([name, ...given]);
    const found = known.get(key) ?? source[/** @type {"matrix"} */ (name)](.../** @type {[any, any, any, any]} */ (given));
    known.set(key, found);
    found.catch(() => known.delete(key));
    return found;
  };
  const asked = ["describe", "heads", "matrix", "walk", "steps", "beam", "alignment"].map((name) => [name, ask(name)]);
  return { ...Object.fromEntries(asked), precision: () => source.precision() };
}

/**
 * Whether a query may look at a key.
 * @param {Kind} kind
 * @param {number} query
 * @param {number} key
 */
export function mayAttend(kind, query, key) {
  return !(kind.causal && key > query) && !kind.masked.includes(key);
}
