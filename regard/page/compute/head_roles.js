// The role of a head in this text, computed from its weights.

const MOST = 0.5; // share of attention to one relation from which a head has that role

/**
 * The share of attention to each relation, averaged over the queries that have it.
 * @param {import("./tensor.js").Tensor} matrix
 * @param {boolean} self Whether this is self-attention.
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
 * Means over the queries: entropy in bits, largest weight, and distance in tokens (self-attention only).
 * @param {import("./tensor.js").Tensor} matrix
 * @param {boolean} self
 * @returns {Record<string, number>}
 */
export function attentionStatistics({ data, shape: [rows, columns] }, self) {
  let [bits, most, far] = [0, 0, 0];
  for (let query = 0; query < rows; query++) {
    let largest = 0;
    for (let key = 0; key < columns; key++) {
      const share = data[query * columns + key];
      if (share === 0) continue; // in a long text most are
      bits -= share * Math.log2(share);
      far += share * Math.abs(key - query);
      largest = Math.max(largest, share);
    }
    most += largest;
  }
  return { entropy: bits / rows, confidence: most / rows, ...(self && { distance: far / rows }) };
}

/**
 * The role of a head; null if it has none.
 * @param {import("./tensor.js").Tensor} matrix
 * @param {boolean} self
 * @returns {{ role: string, share: number } | null}
 */
export function roleOf(matrix, self) {
  const [role, share] = Object.entries(relations(matrix, self)).sort((a, b) => b[1] - a[1])[0];
  return share >= MOST ? { role, share } : null;
}
