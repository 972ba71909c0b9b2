// Reads what a saved file holds, and questions about it; writes what the page's own arithmetic answers.

import { readFileSync } from "node:fs";
import { fileSource } from "../../regard/page/state/source_file.js";

const { held, questions } = JSON.parse(readFileSync(0, "utf8"));
const source = fileSource(held);
const answers = [];
for (const [method, ...given] of questions) {
  const answer = await source[method](...given);
  answers.push(answer?.data ? { shape: answer.shape, data: Array.from(answer.data) } : answer);
}
process.stdout.write(JSON.stringify(answers));
