// The data source of a trace: the interface that a saved file and a server implement.

/**
 * @typedef {object} Token
 * @property {number} id
 * @property {string} piece As in the vocabulary.
 * @property {string} text As displayed.
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
 * @property {number[]} masked Keys that no query may attend to.
 *
 * @typedef {object} About
 * @property {string} architecture
 * @property {Record<string, number>} sizes
 * @property {Record<string, string>} settings
 * @property {Kind[]} kinds
 * @property {Side} inputs Null for a decoder-only model.
 * @property {Side} outputs
 * @property {{ id: number, text: string, log_prob: number }[]} wanted
 * @property {Record<string, any>[]} interventions
 * @property {string} engine The engine that searched for the output; empty if it was given.
 * @property {string} weights_hash Of the model folder; empty if there is none.
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
 * @property {any} values Nested according to the shape; null is −∞.
 *
 * @typedef {{ id: number, piece: string, text: string, probability: number }} Candidate
 *
 * @typedef {object} Prediction The prediction after a token.
 * @property {string | null} after Null for a label.
 * @property {{ id: number, text: string, probability: number } | null} chosen
 * @property {number | null} entropy Null for independent labels, like `rest`.
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
 * @property {boolean} measured Whether the heads were chosen by a measurement.
 * @property {number[][]} [of_each_head] The measurement for each head of each layer.
 * @property {Word[]} inputs
 * @property {Word[]} outputs
 * @property {number[][]} shares
 * @property {[number, number][]} links
 * @property {number[]} coverage
 * @property {number[]} untouched
 *
 * @typedef {object} Measures
 * @property {Record<string, { values: number[], curve: number[] }>} methods Values of the inputs, then of the outputs.
 * @property {number[]} masked Number of masked tokens at each point of a curve.
 * @property {number[][]} agreement
 * @property {Convergence} convergence
 *
 * @typedef {object} Convergence How far integrated gradients add up.
 * @property {number} steps
 * @property {number} change Of the log-probability, due to the embeddings.
 * @property {number} delta Sum of the values minus the change.
 * @property {number | null} relative |delta| / |change|; null if the change is 0.
 * @property {number} distributed Sum of the absolute errors of all intervals, which were distributed over the tokens.
 * @property {number} trapezoids The delta before that.
 * @property {number | null} rough What was distributed / |change|; null if the change is 0.
 *
 * @typedef {object} Influence
 * @property {number[]} values
 * @property {Convergence | null} convergence
 *
 * @typedef {import("../compute/tensor.js").Tensor} Tensor
 *
 * @typedef {object} HeadSummary Of one head in this text, from `head_summaries` in Python; means over the queries.
 * @property {string | null} role What its attention follows; null if nothing.
 * @property {number} share The share of attention to it.
 * @property {number} even The share that an even head would give it.
 * @property {number} entropy In bits.
 * @property {number} confidence The largest weight.
 * @property {number | null} distance In tokens; null for cross-attention.
 *
 * @typedef {object} Source
 * @property {() => Promise<About>} describe
 * @property {(kind: string, layer: number) => Promise<Tensor>} heads All heads of a layer.
 * @property {(kind: string, layer: number, head: number, form: string) => Promise<Tensor>} matrix
 * @property {(address: string) => Promise<Tensor | null>} activation The array at an address, tokens first; null if the
 *   file of a long text does not keep it.
 * @property {(kind: string, layer: number, head: number, query: number) => Promise<WalkStep[] | null>} walk
 * @property {() => Promise<Prediction[]>} steps
 * @property {() => Promise<Record<string, HeadSummary[][]>>} summaries By kind, layer and head.
 * @property {() => Promise<Beam | null>} beam
 * @property {() => Promise<Alignment | null>} alignment
 * @property {(row: number) => Promise<Influence | null>} influence Of each token on an output token or on the label;
 *   in a saved file only for labels, and optional.
 * @property {(row: number) => Promise<Measures | null>} influences By every method; null in a saved file.
 * @property {() => Promise<Blob>} [file] The whole trace as a file for Python.
 * @property {(hash: string) => Promise<Blob>} [page] A page with the trace, which opens as the address says.
 * @property {() => { precision: string, kept?: number }} precision Number format of the data.
 */

/**
 * The same source with cached responses, except for the heads of whole layers, which are too large. Failures are
 * not cached.
 * @param {Source} source
 * @returns {Source}
 */
export function cached(source) {
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
  const names = ["describe", "matrix", "activation", "walk", "steps", "summaries", "beam", "alignment", "influence", "influences"];
  const methods = names.map((name) => [name, ask(name)]);
  return { ...source, ...Object.fromEntries(methods) };
}

/**
 * Whether a head contributes nothing: it is off, or its block is skipped.
 * @param {About} about
 * @param {string} kind
 * @param {number} layer
 * @param {number} head
 */
export function isOff({ interventions }, kind, layer, head) {
  return interventions.some(
    (each) =>
      each.layer === layer &&
      ((each.op === "head-off" && each.kind === kind && each.head === head) ||
        (each.op === "skip-block" && each.block === kind)),
  );
}

/** Whether a query may attend to a key. @param {Kind} kind @param {number} query @param {number} key */
export function mayAttend(kind, query, key) {
  return !(kind.causal && key > query) && !kind.masked.includes(key);
}
