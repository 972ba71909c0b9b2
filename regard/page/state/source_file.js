// The data source of a saved file, which `regard/look/export/html.py` writes.

import { addressOf, scores, weights } from "../compute/attention.js";
import { decode, fromBase64 } from "../compute/tensor.js";
import { buildWalk } from "../compute/walk.js";

/** @param {string} text In base64. @returns {Promise<ArrayBuffer>} */
async function inflated(text) {
  const packed = new Blob([fromBase64(text)]).stream();
  return new Response(packed.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/**
 * The data in a file, which `_packed` in Python has compressed.
 * @param {{ text: string, numbers: string }} packed
 * @returns {Promise<Record<string, any>>}
 */
export async function unpacked({ text, numbers }) {
  const [written, bytes] = await Promise.all([inflated(text), inflated(numbers)]);
  const held = JSON.parse(new TextDecoder().decode(written));
  const width = held.precision === "f32" ? 4 : 2;
  const [planes, count] = [new Uint8Array(bytes), bytes.byteLength / width];
  let first = 0;
  for (const array of Object.values(held.arrays)) {
    const size = array.shape.reduce((a, b) => a * b, 1);
    const own = new Uint8Array(size * width);
    for (let i = 0; i < size; i++) for (let byte = 0; byte < width; byte++) own[i * width + byte] = planes[byte * count + first + i];
    array.bytes = own.buffer;
    first += size;
  }
  return held;
}

/**
 * @param {Record<string, any>} held The data in the file.
 * @returns {import("./source.js").Source}
 */
export function fileSource(held) {
  const { about, steps, alignment, beam, precision } = held;
  /** @type {Map<string, import("../compute/tensor.js").Tensor>} */
  const decoded = new Map();
  const arrays = (name) => {
    const added = held.sums?.[name];
    if (added && !decoded.has(name)) {
      const [one, other] = added.map(arrays);
      decoded.set(name, { data: one.data.map((value, i) => value + other.data[i]), shape: one.shape });
    }
    const written = held.arrays[name];
    if (written && !decoded.has(name)) {
      const data = decode(written.bytes ?? fromBase64(written.data), precision === "top" ? "u16" : precision);
      decoded.set(name, { data, shape: written.shape });
    }
    return decoded.get(name) ?? null;
  };
  const shapeOf = (kind) => {
    const found = about.kinds.find((each) => each.kind === kind);
    return [about[found.queries].tokens.length, about[found.keys].tokens.length];
  };
  const headMatrix = (kind, layer, head, form = "weights") => {
    const shape = shapeOf(kind);
    if (precision === "top") return spread(arrays(`${kind}.${layer}.${head}`), shape);
    const row = (query) => {
      const place = { kind, layer, head, query };
      return form === "weights" ? weights(arrays, about, place) : scores(arrays, about, place).changed;
    };
    return { data: Float32Array.from(Array.from({ length: shape[0] }, (_, query) => row(query)).flat()), shape };
  };
  return {
    describe: async () => about,
    steps: async () => steps,
    summaries: async () => held.summaries,
    alignment: async () => alignment,
    beam: async () => beam,
    influence: async () => held.influence ?? null,
    influences: async () => null,
    precision: () => ({ precision, kept: held.kept }),
    matrix: async (kind, layer, head, form) => headMatrix(kind, layer, head, form),
    activation: async (address) => (precision === "top" ? null : arrays(address)),
    heads: async (kind, layer) => {
      const count = about.sizes.n_heads;
      const each = Array.from({ length: count }, (_, head) => headMatrix(kind, layer, head).data);
      const data = new Float32Array(count * each[0].length);
      each.forEach((part, head) => data.set(part, head * part.length));
      return { data, shape: [count, ...shapeOf(kind)] };
    },
    walk: async (kind, layer, head, query) => {
      if (precision === "top" || !arrays(`${addressOf(kind, layer)}.q`)) return null;
      return buildWalk(arrays, about, held.sentences, steps, { kind, layer, head, query });
    },
  };
}

/**
 * Expand the largest weights of each row to a full matrix; the rest is 0.
 * @param {import("../compute/tensor.js").Tensor} top (queries, kept, 2)
 * @param {number[]} shape
 */
export function spread({ data, shape: [rows, kept] }, shape) {
  const whole = new Float32Array(shape[0] * shape[1]);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < kept; i++) {
      const at = 2 * (row * kept + i);
      whole[row * shape[1] + data[at]] = data[at + 1] / 65535;
    }
  }
  return { data: whole, shape };
}
