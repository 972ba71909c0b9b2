// Which exercises were solved: kept by the browser, and saved as a file that can be loaded elsewhere.

import { keep, kept } from "./preferences.js";

const FORMAT = "regard-score";

/** @returns {Set<string>} */
export function solvedExercises() {
  return new Set(kept("score").split(",").filter(Boolean));
}

/** @param {Iterable<string>} ids */
function store(ids) {
  keep("score", [...new Set(ids)].sort().join(","));
}

/** Record a solution. Returns whether it is the first of this exercise. @param {string} id */
export function solve(id) {
  const before = solvedExercises();
  store([...before, id]);
  return !before.has(id);
}

/** Forget all solutions. */
export const forgetSolutions = () => store([]);

/** The solved exercises as the text of a file. @param {Date} now */
export const scoreFile = (now) =>
  `${JSON.stringify({ format: FORMAT, solved: [...solvedExercises()], saved: now.toISOString() }, null, 1)}\n`;

/**
 * Add the solutions of a file to those that are there. Returns how many exercises it has, or null if it is not a
 * score.
 * @param {string} text
 * @param {string[]} known Ids of all exercises; others are ignored.
 */
export function loadScore(text, known) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (found?.format !== FORMAT || !Array.isArray(found.solved)) return null;
  const solved = known.filter((id) => found.solved.includes(id));
  store([...solvedExercises(), ...solved]);
  return solved.length;
}
