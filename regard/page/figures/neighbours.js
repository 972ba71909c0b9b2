// Tokens with similar embeddings: on a plane, and as a list.

import { fixed, percent } from "../compute/number.js";
import { h, s } from "../parts/dom.js";
import { request } from "../state/requests.js";
import { across } from "./chart.js";
import { on, shade } from "./colour.js";
import { textWidth } from "./layout.js";
import { label, withTip } from "./svg.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {{ id: number, piece: string, x: number, y: number }} Placed */
/** @typedef {Placed & { nearest: (Placed & { cosine: number })[] }} Around */
/** @typedef {{ tokens: Around[], explained: number }} Neighbours */

const READ = 200; // characters of the text whose tokens are shown
const NEAREST = 6;
const [TALL, EDGE] = [480, 46];
const WIDE = 1040;

/**
 * The neighbours of the current text's tokens; null if there is no text.
 * @param {Context} context
 * @returns {Promise<Neighbours | null>}
 */
export async function neighboursOf({ server, state }) {
  if (!server || !state.text.trim()) return null;
  const text = [...state.text].slice(0, READ).join("");
  const query = new URLSearchParams({ text, model: server.way(state).model, n: String(NEAREST) });
  return server.once(`neighbours?${query}`, async () => (await request(`/api/v1/neighbours?${query}`)).json());
}

/**
 * A plane with a line from each token to its neighbours. A label stands beside its dot, where it covers no other dot
 * or label; without such a place it is left out, and the tooltip names the dot.
 * @param {Context} context
 * @param {Neighbours} found
 * @returns {import("./svg.js").Part}
 */
export function plane({ palette, t, tip }, { tokens, explained }) {
  const width = across(WIDE);
  const near = tokens.flatMap((token) => token.nearest);
  const all = [...tokens, ...near];
  const scaled = (axis, room) => {
    const values = all.map((each) => each[axis]);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return (each) => EDGE + ((each[axis] - least) / (most - least || 1)) * (room - 2 * EDGE);
  };
  const [atX, atY] = [scaled("x", width), scaled("y", TALL)];
  const around = (each, r) => [atX(each) - r, atX(each) + r, atY(each) - r, atY(each) + r];
  /** @type {number[][]} */
  const taken = [...tokens.map((each) => around(each, 6)), ...near.map((each) => around(each, 3)), [0, width, 0, 20]];
  const seen = new Set();
  const named = (each, size, look) => {
    if (seen.has(each.id)) return null; // a neighbour of several tokens
    const [x, y, half] = [atX(each), atY(each), textWidth(each.piece, size) / 2];
    const beside = half + 9;
    for (const [dx, dy] of [[0, -13], [0, 13], [beside, 0], [-beside, 0], [beside, -11], [-beside, -11], [beside, 11], [-beside, 11]]) {
      const box = [x + dx - half, x + dx + half, y + dy - size * 0.6, y + dy + size * 0.6];
      if (box[0] < 0 || box[1] > width || box[3] > TALL) continue;
      if (taken.some(([a, b, c, d]) => box[0] < b && box[1] > a && box[2] < d && box[3] > c)) continue;
      taken.push(box);
      seen.add(each.id);
      return label(each.piece, x + dx, y + dy, { "text-anchor": "middle", "font-size": size, ...look });
    }
    return null;
  };
  const dot = (each, r, fill) => withTip(s("circle", { cx: atX(each), cy: atY(each), r, fill }), tip, each.piece);
  const lines = tokens.flatMap((token) =>
    token.nearest.map((each) =>
      s("line", { x1: atX(token), y1: atY(token), x2: atX(each), y2: atY(each), stroke: palette.grid }),
    ),
  );
  const title = t("positions.plane", { share: percent(explained) });
  const node = s(
    "g",
    {},
    label(title, 0, 10, { "font-size": 13, "font-weight": 600, fill: palette.ink }),
    lines,
    near.map((each) => dot(each, 2.5, palette.soft)),
    tokens.map((each) => dot(each, 5, palette.blue)),
    tokens.map((each) => named(each, 13, { "font-weight": 600, fill: palette.ink })),
    near.map((each) => named(each, 11, { fill: palette.soft })),
  );
  return { node, width, height: TALL };
}

/**
 * A row per token with its neighbours, shaded by cosine similarity.
 * @param {Context} context
 * @param {Neighbours} found
 */
export function neighbourList({ t, theme }, { tokens }) {
  const rows = tokens.map(({ piece, nearest }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, piece),
      nearest.map((each) => {
        const colour = shade(each.cosine, 1, theme);
        const look = { "background-color": colour, color: on(colour) };
        return h("td", { style: look }, each.piece, h("span", { class: "number" }, ` ${fixed(each.cosine, 2)}`));
      }),
    ),
  );
  return h(
    "section",
    {},
    h("h2", {}, t("positions.neighbours")),
    h("p", { class: "soft" }, t("positions.neighbours.note")),
    h("div", { class: "scroll" }, h("table", { class: "lens" }, h("tbody", {}, rows))),
  );
}
