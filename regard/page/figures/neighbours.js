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
const [TALL, EDGE] = [420, 46];

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
 * A plane with a line from each token to its neighbours; labels that would overlap are left out.
 * @param {Context} context
 * @param {Neighbours} found
 * @returns {import("./svg.js").Part}
 */
export function plane({ palette, t, tip }, { tokens, explained }) {
  const width = across(700);
  const near = tokens.flatMap((token) => token.nearest);
  const all = [...tokens, ...near];
  const scaled = (axis, room) => {
    const values = all.map((each) => each[axis]);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return (each) => EDGE + ((each[axis] - least) / (most - least || 1)) * (room - 2 * EDGE);
  };
  const [atX, atY] = [scaled("x", width), scaled("y", TALL)];
  /** @type {number[][]} */
  const taken = [];
  const named = (each, size, look) => {
    const [x, y, half] = [atX(each), atY(each) - 10, textWidth(each.piece, size) / 2];
    const box = [x - half, x + half, y - size / 2, y + size / 2];
    if (taken.some(([a, b, c, d]) => box[0] < b && box[1] > a && box[2] < d && box[3] > c)) return null;
    taken.push(box);
    return label(each.piece, x, y, { "text-anchor": "middle", "font-size": size, ...look });
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
