// How far two matrices of attention are apart.

/** @typedef {import("./tensor.js").Tensor} Tensor */

/**
 * The Jensen-Shannon distance of two shares, from 0 (the same) to 1 (nothing in common).
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
export function distance(a, b) {
  const total = (/** @type {ArrayLike<number>} */ shares) =>
    Array.from(shares).reduce((sum, each) => sum + each, 0) || 1;
  const [ofA, ofB] = [total(a), total(b)];
  let bits = 0;
  for (let i = 0; i < a.length; i++) {
    const [p, q] = [a[i] / ofA, b[i] / ofB];
    const mean = (p + q) / 2;
    if (p > 0) bits += (p * Math.log2(p / mean)) / 2;
    if (q > 0) bits += (q * Math.log2(q / mean)) / 2;
  }
  return Math.sqrt(Math.max(0, bits));
}

/**
 * The mean over all rows of two matrices of one shape.
 * @param {Tensor} a
 * @param {Tensor} b
 */
export function meanDistance(a, b) {
  const [rows, columns] = a.shape;
  let sum = 0;
  for (let row = 0; row < rows; row++) {
    const [from, to] = [row * columns, (row + 1) * columns];
    sum += distance(a.data.subarray(from, to), b.data.subarray(from, to));
  }
  return sum / rows;
}
