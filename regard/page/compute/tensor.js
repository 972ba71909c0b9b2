// Decodes arrays from a server or a file, and basic arithmetic.

/** @typedef {{ data: Float32Array, shape: number[] }} Tensor In row-major order. */

/** @param {string} text @returns {ArrayBuffer} */
export function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}

/** A half-precision number from its 16 bits. @param {number} bits */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * Numbers from little-endian bytes, times a scale.
 * @param {ArrayBuffer} buffer
 * @param {"u8" | "u16" | "f16" | "f32"} precision
 * @param {number} [scale]
 * @returns {Float32Array}
 */
export function decode(buffer, precision, scale = 1) {
  const view = new DataView(buffer);
  const width = { u8: 1, u16: 2, f16: 2, f32: 4 }[precision];
  const numbers = new Float32Array(buffer.byteLength / width);
  for (let i = 0; i < numbers.length; i++) {
    const at = i * width;
    if (precision === "f32") numbers[i] = view.getFloat32(at, true) * scale;
    else if (precision === "f16") numbers[i] = half(view.getUint16(at, true)) * scale;
    else numbers[i] = (precision === "u8" ? view.getUint8(at) : view.getUint16(at, true)) * scale;
  }
  return numbers;
}

/**
 * One row of a matrix, or one matrix of a stack of them.
 * @param {Tensor} tensor
 * @param {number} index
 * @returns {Tensor}
 */
export function at(tensor, index) {
  const shape = tensor.shape.slice(1);
  const size = shape.reduce((a, b) => a * b, 1);
  return { data: tensor.data.subarray(index * size, (index + 1) * size), shape };
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Softmax; exactly 0 for -Infinity. @param {ArrayLike<number>} scores @returns {number[]} */
export function softmax(scores) {
  const values = Array.from(scores);
  const most = Math.max(...values);
  const powers = values.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** Entropy in bits. @param {ArrayLike<number>} shares */
export function entropy(shares) {
  let bits = 0;
  for (let i = 0; i < shares.length; i++) if (shares[i] > 0) bits -= shares[i] * Math.log2(shares[i]);
  return bits;
}

/** @param {ArrayLike<number>} values */
export function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

/**
 * A matrix reduced to at most `most` rows and columns by the maximum.
 * @param {Tensor} matrix
 * @param {number} most
 * @returns {Tensor}
 */
export function pooled(matrix, most) {
  const [rows, columns] = matrix.shape;
  const step = Math.ceil(Math.max(rows, columns) / most);
  if (step <= 1) return matrix;
  const shape = [Math.ceil(rows / step), Math.ceil(columns / step)];
  const data = new Float32Array(shape[0] * shape[1]);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const cell = Math.floor(row / step) * shape[1] + Math.floor(column / step);
      data[cell] = Math.max(data[cell], matrix.data[row * columns + column]);
    }
  }
  return { data, shape };
}

/**
 * The largest absolute value of the finite values.
 * @param {ArrayLike<number | null>} values
 * @param {(i: number) => boolean} [counts] Whether an index counts.
 */
export function furthest(values, counts = () => true) {
  let most = 1e-9;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i] ?? 0);
    if (size > most && size < 1e29 && counts(i)) most = size;
  }
  return most;
}
