// Runs the page's modules for the Python tests: reads a JSON line `[function, arguments]`, writes a JSON line with the result.

import { createInterface } from "node:readline";
import { truncated } from "../../regard/page/screens/generate.js";
import { formulaLines, panelLines } from "../../regard/page/compute/substitute.js";
import { checkAnswer, exerciseOf } from "../../regard/page/parts/exercise.js";
import { fileSource } from "../../regard/page/state/source_file.js";
import { failures } from "./cases.mjs";

const FUNCTIONS = {
  /** Imports a file of test cases and runs them. */
  async cases(file) {
    await import(file);
    return failures();
  },

  /** What a module exports as `found`. */
  async found_in(file) {
    return (await import(file)).found;
  },

  /** What the source of a saved file answers. */
  async answers(held, questions) {
    const source = fileSource(held);
    const answers = [];
    for (const [method, ...given] of questions) {
      const answer = await source[method](...given);
      answers.push(answer?.data ? { shape: answer.shape, data: Array.from(answer.data) } : answer);
    }
    return answers;
  },

  /** The formula and the lines of every panel, of the walks of a saved file or of those that a server sent. */
  async panels(held, places, walks) {
    const source = fileSource(held);
    const found = [];
    for (const [i, place] of places.entries()) {
      const steps = walks?.[i] ?? (await source.walk(...place));
      const at = { steps, focus: 0, about: held.about, query: place[3] };
      found.push(steps.map(({ name, formula }, index) => ({ name, formula, lines: panelLines({ ...at, index }) })));
    }
    return found;
  },

  /** The steps that have an exercise, and whether the number at the end of the step's own line would be right. */
  async exercises(held, places) {
    const source = fileSource(held);
    const found = [];
    for (const place of places) {
      const steps = await source.walk(...place);
      steps.forEach(({ name }, index) => {
        const at = { steps, index, focus: 0, about: held.about, query: place[3] };
        const task = exerciseOf(at);
        if (!task) return;
        const line = formulaLines(at).at(-1) ?? "";
        const [, last] = /= ([^=→]*)(?:→[^=]*)?$/.exec(line) ?? [];
        found.push([name, line, last === undefined ? null : checkAnswer(task, last)]);
      });
    }
    return found;
  },

  /** The probability with which each token is drawn, for each of some settings. */
  async probabilities(logProbs, all) {
    const order = logProbs.map((_, id) => id).sort((a, b) => logProbs[b] - logProbs[a]);
    const sorted = Float32Array.from(order, (id) => logProbs[id]);
    return all.map((settings) => {
      const { chances, kept, mass } = truncated(sorted, settings);
      const found = logProbs.map(() => 0);
      for (let i = 0; i < kept; i++) found[order[i]] = chances[i] / mass;
      return found;
    });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, given] = JSON.parse(line);
  const result = await FUNCTIONS[name](...given).then(
    (value) => ({ value }),
    (error) => ({ error: error.stack }),
  );
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
