// Keyboard shortcuts that all screens share.

/** The list of keyboard shortcuts. */
export const KEYS = [
  { keys: ["1", "…", "9"], words: "key.screens" },
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
  { keys: ["/"], words: "key.text", server: true },
  { keys: ["?"], words: "key.help" },
];

/**
 * The change of the state that a key causes; null if the key has no meaning.
 * @param {string} key
 * @param {import("./store.js").State} state
 * @param {import("./source.js").About | null} about
 * @param {string[]} screens
 * @returns {Partial<import("./store.js").State> | null}
 */
export function stateChanges(key, state, about, screens) {
  if (/^[1-9]$/.test(key)) return screens[Number(key) - 1] ? { screen: screens[Number(key) - 1] } : null;
  if (key === "t") return { table: state.table ? 0 : 1 };
  if (key === "l") return { lang: state.lang === "zh" ? "en" : "zh" };
  if (!about) return null;
  const kind = about.kinds.find((each) => each.kind === state.kind) ?? about.kinds[0];
  const [queries, keys] = [about[kind.queries].tokens.length, about[kind.keys].tokens.length];
  const to = { e: "encoder", d: "decoder", x: "cross" }[key];
  if (to) return about.kinds.some((each) => each.kind === to) ? { kind: to, query: -1, key: -1 } : null;
  const views = { matrix: "lines", lines: kind.queries === kind.keys ? "arcs" : "matrix" };
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
