// What a head does with this text, measured from its weights.

const MOST = 0.5; // a head that gives this share of its attention to one relation has a role

/**
 * The share of attention that goes to each relation, as a mean over the queries that have it.
 * @param {import("./tensor.js").Tensor} matrix
 * @param {boolean} self Whether queries and keys are the same tokens.
 * @returns {Record<string, number>}
 */
export function relations({ data, shape: [rows, columns] }, self) {
  const mean = (column) => {
    let sum = 0;
    let counted = 0;
    for (let row = 0; row < rows; row++) {
      const at = column(row);
      if (at < 0 || at >= columns) continue;
      sum += data[row * columns + at];
      counted += 1;
    }
    return counted ? sum / counted : 0;
  };
  const found = { first: mean(() => 0), last: mean(() => columns - 1) };
  return self
    ? { ...found, itself: mean((row) => row), previous: mean((row) => row - 1), next: mean((row) => row + 1) }
    : found;
}

/**
 * How a head looks, as means over its queries: bits of entropy, the share of the key that draws the most, and how many
 * tokens away it looks.
 * @param {import("./tensor.js").Tensor} matrix
 * @param {boolean} self
 * @returns {Record<string, number>}
 */
export function manners({ data, shape: [rows, columns] }, self) {
  let [bits, most, far] = [0, 0, 0];
  for (let query = 0; query < rows; query++) {
    let largest = 0;
    for (let key = 0; key < columns; key++) {
      const share = data[query * columns + key];
      if (share === 0) continue; // most are, of a long text
      bits -= share * Math.log2(share);
      far += share * Math.abs(key - query);
      largest = Math.max(largest, share);
    }
    most += largest;
  }
  return { entropy: bits / rows, confidence: most / rows, ...(self && { distance: far / rows }) };
}

/**
 * The role, if there is one.
 * @param {import("./tensor.js").Tensor} matrix
 * @param {boolean} self
 * @returns {{ role: string, share: number } | null}
 */
export function roleOf(matrix, self) {
  const [role, share] = Object.entries(relations(matrix, self)).sort((a, b) => b[1] - a[1])[0];
  return share >= MOST ? { role, share } : null;
}
