// The tour: eight steps through the screens that the model has, each with what to look at.

/** @typedef {import("../state/store.js").State} State */
/**
 * @typedef {object} Stop
 * @property {string} id Key of its text: `tour.ID`.
 * @property {string} screen Empty: the first.
 * @property {Partial<State>} [changes] What the step shows there.
 * @property {boolean} [live] Whether it needs a server.
 * @property {boolean} [spare] Only shown if the model lacks another screen.
 */

export const LENGTH = 8;
const WRITES = ["translate", "generate", "classify"]; // screens with a text field

/** @type {Stop[]} */
const STOPS = [
  { id: "task", screen: "" },
  { id: "model", screen: "model" },
  { id: "map", screen: "map", changes: { op: "" } },
  { id: "head", screen: "head", changes: { view: "matrix", form: "weights" } },
  { id: "dot", screen: "walk", changes: { panel: "similarity" }, spare: true },
  { id: "walk", screen: "walk", changes: { panel: "weights" } },
  { id: "sum", screen: "walk", changes: { panel: "head" }, spare: true },
  { id: "steps", screen: "steps" },
  { id: "beam", screen: "beam" },
  { id: "alignment", screen: "alignment", spare: true },
  { id: "off", screen: "map", changes: { op: "off" }, live: true },
  { id: "positions", screen: "positions", spare: true },
];

/**
 * The steps of the tour of a page with these screens.
 * @param {string[]} screens
 * @param {boolean} server Whether there is one.
 * @returns {Stop[]}
 */
export function tourOf(screens, server) {
  const [first] = screens;
  const there = STOPS.map((stop) => ({ ...stop, screen: stop.screen || (WRITES.includes(first) ? first : "none") })).filter(
    ({ screen, live }) => screens.includes(screen) && (server || !live),
  );
  const needed = there.filter(({ spare }) => !spare).length;
  const spare = there.filter((stop) => stop.spare).slice(0, Math.max(0, LENGTH - needed));
  return there.filter((stop) => !stop.spare || spare.includes(stop)).slice(0, LENGTH);
}

/**
 * The change of the state that leads to a step of the tour.
 * @param {Stop[]} tour
 * @param {number} place
 * @returns {Partial<State>}
 */
export const stateAt = (tour, place) => ({ tour: place, exercise: "", screen: tour[place].screen, ...tour[place].changes });
