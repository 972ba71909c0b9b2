// The screens of a server, in the order of the rail: those of a trace, and those that take a model.

import { alignment } from "./screen_alignment.js";
import { api } from "./screen_api.js";
import { beam } from "./screen_beam.js";
import { classify } from "./screen_classify.js";
import { compare } from "./screen_compare.js";
import { experiments } from "./screen_experiments.js";
import { generate } from "./screen_generate.js";
import { head } from "./screen_head.js";
import { headsOff } from "./screen_heads_off.js";
import { influence } from "./screen_influence.js";
import { map } from "./screen_map.js";
import { positions } from "./screen_positions.js";
import { steps } from "./screen_steps.js";
import { training } from "./screen_training.js";
import { translate } from "./screen_translate.js";
import { walk } from "./screen_walk.js";

/** @type {import("./frame.js").Screen[]} */
export const LIVE = [
  translate,
  generate,
  classify,
  map,
  head,
  walk,
  steps,
  beam,
  alignment,
  influence,
  headsOff,
  compare,
  positions,
  training,
  experiments,
  api,
];
