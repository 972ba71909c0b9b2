// Keyboard shortcuts that all screens share.

import { toKind } from "./store.js";

export const LAST_SCREEN = "last"; // stands for the number of the last screen
const SECOND_DIGIT_MS = 500; // time for the second digit of a number

/** The list of keyboard shortcuts. */
export const KEYS = [
  { keys: ["1", "…", LAST_SCREEN], words: "key.screens" },
  { keys: ["Esc"], words: "key.out" },
  { keys: ["e", "d", "x"], words: "key.kinds" },
  { keys: ["[", "]"], words: "key.layer" },
  { keys: [",", "."], words: "key.head" },
  { keys: ["←", "→"], words: "key.query" },
  { keys: ["↑", "↓"], words: "key.key" },
  { keys: ["␣"], words: "key.play" },
  { keys: ["v"], words: "key.view" },
  { keys: ["t"], words: "key.table" },
  { keys: ["s"], words: "key.save" },
  { keys: ["l"], words: "key.language" },
  { keys: ["p"], words: "key.present" },
  { keys: ["n", "b"], words: "key.presenting" },
  { keys: ["/"], words: "key.text", server: true },
  { keys: ["?"], words: "key.help" },
];

/**
 * The change of the state that a key causes; null if the key has no meaning.
 * @param {string} key
 * @param {import("./store.js").State} state
 * @param {import("./source.js").About | null} about
 * @returns {Partial<import("./store.js").State> | null}
 */
export function stateChanges(key, state, about) {
  if (key === "t") return { table: state.table ? 0 : 1 };
  if (key === "l") return { lang: state.lang === "zh" ? "en" : "zh" };
  if (!about) return null;
  const kind = about.kinds.find((each) => each.kind === state.kind) ?? about.kinds[0];
  const [queries, keys] = [about[kind.queries].tokens.length, about[kind.keys].tokens.length];
  const to = { e: "encoder", d: "decoder", x: "cross" }[key];
  if (to) return about.kinds.some((each) => each.kind === to) ? toKind(state, to) : null;
  const views = { matrix: "lines", lines: kind.queries === kind.keys ? "arcs" : "layers", arcs: "layers" };
  if (key === "v") return { view: views[state.view] ?? "matrix" };
  const moves = {
    "[": ["layer", -1, kind.layers],
    "]": ["layer", 1, kind.layers],
    ",": ["head", -1, kind.heads],
    ".": ["head", 1, kind.heads],
    ArrowLeft: ["query", -1, queries],
    ArrowRight: ["query", 1, queries],
    ArrowUp: ["key", -1, keys],
    ArrowDown: ["key", 1, keys],
  };
  if (!(key in moves)) return null;
  const [field, by, count] = moves[key];
  const from = key === "ArrowUp" && state.key < 0 ? 1 : state[field];
  return { [field]: Math.min(count - 1, Math.max(0, from + by)) };
}

/** Digits that are typed one after the other as one number: 1 and 2 lead to the twelfth screen. */
export class NumberKeys {
  /** @param {(place: number) => unknown} go Called with the index of the screen. */
  constructor(go) {
    this.go = go;
    this.typed = "";
    this.timer = 0;
  }

  /**
   * Returns whether the key is a digit. The screen is opened at once if no second digit can follow.
   * @param {string} key
   * @param {number} count Number of screens.
   */
  pressed(key, count) {
    if (!/^[0-9]$/.test(key)) return false;
    clearTimeout(this.timer);
    const number = [Number(this.typed + key), Number(key)].find((each) => each <= count) ?? 0;
    this.typed = "";
    if (!number) return true;
    if (10 * number <= count) {
      this.typed = String(number);
      this.timer = setTimeout(() => this.open(number), SECOND_DIGIT_MS);
    } else this.open(number);
    return true;
  }

  /** @param {number} number */
  open(number) {
    this.typed = "";
    this.go(number - 1);
  }
}
