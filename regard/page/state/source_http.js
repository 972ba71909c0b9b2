// The data source of a trace at a server.

import { decode } from "../compute/tensor.js";
import { request, RequestError } from "./requests.js";

/**
 * Read a binary response as a tensor.
 * @param {Response} response
 * @returns {Promise<import("../compute/tensor.js").Tensor>}
 */
export async function readTensor(response) {
  const header = (name) => response.headers.get(name) ?? "";
  const precision = /** @type {"u8" | "f16" | "f32"} */ (header("X-Dtype"));
  const data = decode(await response.arrayBuffer(), precision, Number(header("X-Scale")));
  return { data, shape: header("X-Shape").split(",").map(Number) };
}

/**
 * @param {string} id The trace.
 * @param {string} [base]
 * @returns {import("./source.js").Source}
 */
export function httpSource(id, base = "/api/v1/traces") {
  const get = (what, given = {}) => {
    const query = new URLSearchParams(Object.entries(given).map(([name, value]) => [name, String(value)]));
    return request(`${base}/${encodeURIComponent(id)}${what}${query.size ? `?${query}` : ""}`);
  };
  const json = async (what, given = {}) => (await get(what, given)).json();
  const attention = async (given) => readTensor(await get("/attention", given));
  return {
    describe: () => json(""),
    steps: () => json("/steps"),
    summaries: () => json("/summaries"),
    alignment: () => json("/alignment").catch(nullIfMissing),
    beam: () => json("/beam").catch(nullIfMissing),
    walk: (kind, layer, head, query) => json("/walk", { kind, layer, head, query }),
    matrix: (kind, layer, head, form) => attention({ kind, layer, head, form, dtype: "f32" }),
    heads: (kind, layer) => attention({ kind, layer, head: "*", form: "weights", dtype: "u8" }),
    activation: async (address) => readTensor(await get("/activation", { address })),
    influence: (row) => json("/influence", { row }),
    influences: (row) => json("/influences", { row }),
    page: async (hash) => (await get("/page", { state: hash })).blob(),
    file: async () => (await get("/file")).blob(),
    precision: () => ({ precision: "f32" }),
  };
}

/**
 * Turn errors for missing data into null: not every model aligns, and not every trace has a search.
 * @param {unknown} problem
 */
function nullIfMissing(problem) {
  if (problem instanceof RequestError && [404, 409, 422].includes(problem.status)) return null;
  throw problem;
}
