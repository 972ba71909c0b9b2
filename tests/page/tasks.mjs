// Reads what a saved file holds, and places in it; writes which steps ask the reader for a number, and whether the
// number that the step's own line ends with would be right.

import { readFileSync } from "node:fs";
import { judged, taskOf } from "../../regard/page/parts/exercise.js";
import { fileSource } from "../../regard/page/state/source_file.js";
import { substituted } from "../../regard/page/compute/substitute.js";

const { held, places } = JSON.parse(readFileSync(0, "utf8"));
const source = fileSource(held);
const found = [];
for (const place of places) {
  const steps = await source.walk(...place);
  steps.forEach(({ name }, index) => {
    const at = { steps, index, focus: 0, about: held.about, query: place[3] };
    const task = taskOf(at);
    if (!task) return;
    const line = substituted(at).at(-1) ?? "";
    const [, told] = /= ([^=→]*)(?:→[^=]*)?$/.exec(line) ?? [];
    found.push([name, line, told === undefined ? null : judged(task, told)]);
  });
}
process.stdout.write(JSON.stringify(found));
