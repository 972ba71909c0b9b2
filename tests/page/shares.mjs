// Reads log-probabilities of tokens and settings; writes how often the page says that each token is drawn.

import { readFileSync } from "node:fs";
import { cut } from "../../regard/page/compute/sampling.js";

const { logProbs, all } = JSON.parse(readFileSync(0, "utf8"));
const order = logProbs.map((_, id) => id).sort((a, b) => logProbs[b] - logProbs[a]);
const sorted = Float32Array.from(order, (id) => logProbs[id]);
const shares = all.map((settings) => {
  const { chances, kept, mass } = cut(sorted, settings);
  const found = logProbs.map(() => 0);
  for (let i = 0; i < kept; i++) found[order[i]] = chances[i] / mass;
  return found;
});
process.stdout.write(JSON.stringify(shares));
