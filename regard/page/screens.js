// The screens, in the order of the rail. A new one is a module and a line here.

import { alignment } from "./screen_alignment.js";
import { beam } from "./screen_beam.js";
import { head } from "./screen_head.js";
import { map } from "./screen_map.js";
import { steps } from "./screen_steps.js";
import { walk } from "./screen_walk.js";

/** @type {import("./frame.js").Screen[]} */
export const SCREENS = [map, head, walk, steps, beam, alignment];
