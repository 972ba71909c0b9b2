// Changes of a model in the address, and the interventions that they stand for.

import { addressOf, hasScale } from "../compute/attention.js";

/** @typedef {import("./store.js").State} State */

/** The numbers of a list in the address. @param {string} ids */
export const numbers = (ids) => (ids ? ids.split(",").map(Number) : []);

/**
 * The text whose activations stand for those of the unchanged model: what it reads, and what it wrote.
 * @param {import("./source.js").About} about
 */
const reference = ({ inputs, outputs }) => (inputs && outputs ? [inputs.text, outputs.text] : (inputs ?? outputs).text);

/**
 * Parse one intervention of the address: `cross.1.3` (this head is off), `mean.cross.1.3` (it gives its mean over this
 * text), `freeze.cross.1.3` (it gives what it gave in the unchanged model), `uniform.cross.1.3`, `skip.cross.1`,
 * `no-scale`, `no-positions`. Returns null if it does not apply to this model.
 * @param {string} name
 * @param {import("./source.js").About} about
 */
function changeOf(name, about) {
  const { kinds, settings } = about;
  if (name === "no-scale") return hasScale(settings) ? { op: name } : null;
  if (name === "no-positions") return settings.positions === "none" ? null : { op: name };
  const found = /^(?:(mean|freeze|uniform|skip)\.)?(encoder|decoder|cross)\.(\d+)(?:\.(\d+))?$/.exec(name);
  const [, op, kind, layer, head] = found ?? [];
  const there = kinds.find((each) => each.kind === kind && Number(layer) < each.layers);
  if (!there || (op === "skip") !== (head === undefined) || Number(head ?? 0) >= there.heads) return null;
  if (op === "skip") return { op: "skip-block", block: kind, layer: Number(layer) };
  const at = { at: `${addressOf(kind, Number(layer))}.heads`, head: Number(head) };
  if (op === "mean") return { op: "ablate", by: "mean", texts: [reference(about)], ...at };
  if (op === "freeze") return { op: "patch", text: reference(about), ...at };
  return { op: op ?? "head-off", kind, layer: Number(layer), head: Number(head) };
}

/**
 * The intervention that takes the positions of some tokens away; null if the model adds none to its embeddings.
 * @param {import("./source.js").About} about
 * @param {number[]} places
 */
export function placesChange({ inputs, settings }, places) {
  if (!["sinusoidal", "learned"].includes(settings.positions) || !places.length) return null;
  return { op: "ablate", at: `${inputs ? "input" : "output"}_positions.added`, by: "zero", positions: places };
}

/**
 * The interventions of the address that apply to this model and text.
 * @param {Pick<State, "off" | "drop" | "unplaced">} state
 * @param {import("./source.js").About} about
 */
export function changes({ off, drop, unplaced }, about) {
  const dropped = numbers(drop).filter((token) => about.inputs?.tokens[token]);
  const without = off.split(",").includes("no-positions"); // then none has a position
  const places = numbers(unplaced).filter((token) => (about.inputs ?? about.outputs)?.tokens[token]);
  const moved = without ? null : placesChange(about, places);
  return [
    ...off.split(",").flatMap((name) => changeOf(name, about) ?? []),
    ...dropped.map((token) => ({ op: "mask-source", token })),
    ...(moved ? [moved] : []),
  ];
}
