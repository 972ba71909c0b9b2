// A source over the network: the traces of `regard serve`.

import { decode } from "../compute/tensor.js";
import { ask, Refused } from "./requests.js";

/**
 * Numbers that came as bytes.
 * @param {Response} response
 * @returns {Promise<import("../compute/tensor.js").Tensor>}
 */
export async function received(response) {
  const header = (name) => response.headers.get(name) ?? "";
  const precision = header("X-Dtype");
  const data = decode(await response.arrayBuffer(), precision, Number(header("X-Scale")));
  return { data, shape: header("X-Shape").split(",").map(Number) };
}

/**
 * @param {string} id The trace.
 * @param {string} [base]
 * @returns {import("./source.js").Source}
 */
export function httpSource(id, base = "/api/v1/traces") {
  const asked = (what, given = {}) => {
    const query = new URLSearchParams(Object.entries(given).map(([name, value]) => [name, String(value)]));
    return ask(`${base}/${encodeURIComponent(id)}${what}${query.size ? `?${query}` : ""}`);
  };
  const json = async (what, given = {}) => (await asked(what, given)).json();
  const attention = async (given) => received(await asked("/attention", given));
  return {
    describe: () => json(""),
    steps: () => json("/steps"),
    alignment: () => json("/alignment").catch(unlessMissing),
    beam: () => json("/beam").catch(unlessMissing),
    walk: (kind, layer, head, query) => json("/walk", { kind, layer, head, query }),
    matrix: (kind, layer, head, form) => attention({ kind, layer, head, form, dtype: "f32" }),
    heads: (kind, layer) => attention({ kind, layer, head: "*", form: "weights", dtype: "u8" }),
    influence: async (row) => (await json("/influence", { row })).values,
    influences: (row) => json("/influences", { row }),
    file: async () => (await asked("/file")).blob(),
    precision: () => ({ precision: "f32" }),
  };
}

/**
 * A model that does not align has nothing to show there, nor has a trace made without a search: no failure.
 * @param {unknown} problem
 */
function unlessMissing(problem) {
  if (problem instanceof Refused && [404, 409, 422].includes(problem.status)) return null;
  throw problem;
}
