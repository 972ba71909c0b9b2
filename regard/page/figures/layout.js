// Layout: widths of texts, cell sizes, places of tree nodes.

import style from "../style.json" with { type: "json" };

const WIDE =
  /[\u1100-\u115f\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\u{20000}-\u{3ffff}\u{1f300}-\u{1faff}]/u;

/** An upper estimate of a text's width. @param {string} text @param {number} size Font size in pixels. */
export function textWidth(text, size) {
  let ems = 0;
  for (const letter of text)
    ems += WIDE.test(letter)
      ? 1.02
      : "ijlI'|.,:;!".includes(letter)
        ? 0.34
        : "mwMW%@—<>=+~#".includes(letter)
          ? 1
          : 0.64;
  return ems * size;
}

/** A text shortened to a width. @param {string} text @param {number} width @param {number} size */
export function shortened(text, width, size) {
  if (textWidth(text, size) <= width) return text;
  const letters = Array.from(text);
  while (letters.length > 1 && textWidth(`${letters.join("")}…`, size) > width) letters.pop();
  return `${letters.join("")}…`;
}

const { most: MOST, place: PLACE, least: LEAST } = style.matrix.cell;

/**
 * Size of a matrix's cells in pixels: as large as the place allows, within limits.
 * @param {number} rows
 * @param {number} columns
 * @param {number} [width] Of the place, if it is narrower than usual.
 */
export function cellSize(rows, columns, width = PLACE[0]) {
  const fits = (across) => Math.floor(Math.min(MOST, across / columns, PLACE[1] / rows));
  const usual = Math.max(2, fits(PLACE[0]));
  return Math.max(Math.min(usual, LEAST), Math.min(usual, fits(width)));
}

/** Number of cells per label. @param {number} cell */
export function labelEvery(cell) {
  return Math.max(1, Math.ceil(13 / cell));
}

/** @typedef {{ id: number, parent: number | null, step: number, rank: number }} TreeNode */

/**
 * Places of a tree's nodes: steps from left to right, ranks from top to bottom.
 * @param {TreeNode[]} nodes
 * @param {{ column: number, row: number, left?: number, top?: number }} size
 * @returns {Map<number, { x: number, y: number }>}
 */
export function treeLayout(nodes, { column, row, left = 0, top = 0 }) {
  return new Map(nodes.map(({ id, step, rank }) => [id, { x: left + step * column, y: top + rank * row }]));
}

/**
 * The ids of a node and its ancestors.
 * @param {TreeNode[]} nodes
 * @param {number | null} id
 * @returns {Set<number>}
 */
export function ancestry(nodes, id) {
  const parents = new Map(nodes.map((node) => [node.id, node.parent]));
  const found = new Set();
  for (let at = id; at !== null && at !== undefined && !found.has(at); at = parents.get(at) ?? null)
    found.add(at);
  return found;
}

/**
 * The node that an arrow key leads to; the same if there is none.
 * @param {TreeNode[]} nodes
 * @param {number} id
 * @param {string} arrow
 */
export function neighbour(nodes, id, arrow) {
  const here = nodes.find((node) => node.id === id);
  if (!here) return id;
  const byRank = (found) => found.sort((a, b) => a.rank - b.rank);
  if (arrow === "ArrowLeft") return here.parent ?? id;
  if (arrow === "ArrowRight") return byRank(nodes.filter((node) => node.parent === id))[0]?.id ?? id;
  const column = byRank(nodes.filter((node) => node.step === here.step));
  const next = column.indexOf(here) + (arrow === "ArrowDown" ? 1 : -1);
  return column[next]?.id ?? id;
}
