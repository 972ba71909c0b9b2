// What views are shown from: an object that answers these questions, out of a file or over the network.

/**
 * @typedef {object} Token
 * @property {number} id
 * @property {string} piece As the vocabulary writes it.
 * @property {string} text As one shows it.
 * @property {number} start
 * @property {number} end
 * @property {boolean} special
 * @property {number} word
 *
 * @typedef {{ text: string, first: number, last: number }} Word
 * @typedef {{ text: string, tokens: Token[], words: Word[] }} Side
 * @typedef {"inputs" | "outputs"} SideName
 *
 * @typedef {object} Kind
 * @property {string} kind
 * @property {number} layers
 * @property {number} heads
 * @property {SideName} queries
 * @property {SideName} keys
 * @property {boolean} causal
 * @property {number[]} masked Keys that nobody may look at.
 *
 * @typedef {object} About
 * @property {string} architecture
 * @property {Record<string, number>} sizes
 * @property {Record<string, string>} settings
 * @property {Kind[]} kinds
 * @property {Side} inputs Null where there are none; no kind of attention names it then.
 * @property {Side} outputs
 * @property {{ id: number, text: string, log_prob: number }[]} wanted
 * @property {Record<string, any>[]} interventions
 * @property {string} engine What found the output; empty where it was given.
 * @property {string} weights_hash Of the model folder; empty where there is none.
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
 * @property {any} values Nested as the shape tells; null is −∞.
 *
 * @typedef {{ id: number, piece: string, text: string, probability: number }} Candidate
 *
 * @typedef {object} Said What the model said after a token.
 * @property {string | null} after Null: a label, which comes after nothing.
 * @property {{ id: number, text: string, probability: number } | null} chosen
 * @property {number | null} entropy Null where labels are decided on one by one, and so is the rest.
 * @property {number} normaliser
 * @property {(Candidate & { logit: number })[]} candidates
 * @property {number | null} rest
 * @property {{ candidates: Candidate[], chosen: number | null }[]} lens
 *
 * @typedef {object} BeamNode
 * @property {number} id
 * @property {number | null} parent
 * @property {number} step
 * @property {number} rank
 * @property {number} token Its id.
 * @property {string} text
 * @property {number} log_prob
 * @property {number} total
 * @property {number} score
 * @property {string} fate
 * @property {Record<string, string>} reason
 *
 * @typedef {{ beam_size: number, steps: number, winner: number | null, nodes: BeamNode[] }} Beam
 *
 * @typedef {object} Alignment
 * @property {number[][]} heads
 * @property {boolean} measured Whether its heads were chosen by measuring.
 * @property {number[][]} [of_each_head] How well each head of each layer aligned then.
 * @property {Word[]} inputs
 * @property {Word[]} outputs
 * @property {number[][]} shares
 * @property {[number, number][]} links
 * @property {number[]} coverage
 * @property {number[]} untouched
 *
 * @typedef {object} Measures
 * @property {Record<string, { values: number[], curve: number[] }>} methods Of the inputs, then of the outputs.
 * @property {number[]} masked How many tokens are masked at each point of a curve.
 * @property {number[][]} agreement
 *
 * @typedef {import("../compute/tensor.js").Tensor} Tensor
 *
 * @typedef {object} Source
 * @property {() => Promise<About>} describe
 * @property {(kind: string, layer: number) => Promise<Tensor>} heads All heads of a layer.
 * @property {(kind: string, layer: number, head: number, form: string) => Promise<Tensor>} matrix
 * @property {(kind: string, layer: number, head: number, query: number) => Promise<WalkStep[] | null>} walk
 * @property {() => Promise<Said[]>} steps
 * @property {() => Promise<Beam | null>} beam
 * @property {() => Promise<Alignment | null>} alignment
 * @property {(row: number) => Promise<number[] | null>} influence Of each token read on one written, or on the label;
 *   a file tells it of labels, and not always.
 * @property {(row: number) => Promise<Measures | null>} influences The same by every method; a file tells nothing.
 * @property {() => Promise<Blob>} [file] All of it, as Python reads it.
 * @property {() => { precision: string, kept?: number }} precision How exact what it tells is.
 */

/**
 * The same source, asked once for each thing, except for the heads of whole layers, which are too large to be
 * kept; what failed is asked for again.
 * @param {Source} source
 * @returns {Source}
 */
export function remembered(source) {
  /** @type {Map<string, Promise<any>>} */
  const known = new Map();
  const ask =
    (name) =>
    (...given) => {
      const key = JSON.stringify([name, ...given]);
      const found =
        known.get(key) ??
        source[name](...given);
      known.set(key, found);
      found.catch(() => known.delete(key));
      return found;
    };
  const names = ["describe", "matrix", "walk", "steps", "beam", "alignment", "influence", "influences"];
  const asked = names.map((name) => [name, ask(name)]);
  return { ...source, ...Object.fromEntries(asked) };
}

/** Whether a query may look at a key. @param {Kind} kind @param {number} query @param {number} key */
export function mayAttend(kind, query, key) {
  return !(kind.causal && key > query) && !kind.masked.includes(key);
}
