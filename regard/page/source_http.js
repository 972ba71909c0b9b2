// A source over the network: the traces of `regard serve`.

import { decode } from "./tensor.js";

/**
 * @param {string} id The trace.
 * @param {string} [base]
 * @returns {import("./source.js").Source}
 */
export function httpSource(id, base = "/api/v1/traces") {
  const address = (/** @type {string} */ what, /** @type {Record<string, any>} */ given = {}) => {
    const query = new URLSearchParams(given).toString();
    return `${base}/${encodeURIComponent(id)}${what && `/${what}`}${query && `?${query}`}`;
  };
  const answer = async (/** @type {string} */ what, /** @type {Record<string, any>} */ given = {}) => {
    const response = await fetch(address(what, given));
    if (response.ok) return response;
    const told = await response.json().catch(() => null);
    throw new Error(told?.error?.message ?? `${response.status} ${response.statusText}`);
  };
  const json = async (/** @type {string} */ what, /** @type {Record<string, any>} */ given = {}) =>
    (await answer(what, given)).json();
  const perhaps = async (/** @type {string} */ what) => {
    const response = await fetch(address(what));
    return response.ok ? response.json() : null; // a model without it, or a trace made without a search
  };
  const attention = async (/** @type {Record<string, any>} */ given) => {
    const response = await answer("attention", given);
    const header = (/** @type {string} */ name) => response.headers.get(name) ?? "";
    const precision = /** @type {"u8" | "f16" | "f32"} */ (header("X-Dtype"));
    const data = decode(await response.arrayBuffer(), precision, Number(header("X-Scale")));
    return { data, shape: header("X-Shape").split(",").map(Number) };
  };
  return {
    describe: () => json(""),
    steps: () => json("steps"),
    alignment: () => perhaps("alignment"),
    beam: () => perhaps("beam"),
    walk: (kind, layer, head, query) => json("walk", { kind, layer, head, query }),
    matrix: (kind, layer, head, form) => attention({ kind, layer, head, form, dtype: "f32" }),
    heads: (kind, layer) => attention({ kind, layer, head: "*", form: "weights", dtype: "u8" }),
    precision: () => ({ precision: "f32" }),
  };
}
