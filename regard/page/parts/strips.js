// The tokens of both texts above every screen: one is selected, and those that it attends to are shaded.

import { percent } from "../compute/number.js";
import { at } from "../compute/tensor.js";
import { on, shade } from "../figures/colour.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/source.js").Token} Token */
/**
 * @typedef {object} Strip What the tokens above a screen show.
 * @property {import("../state/source.js").Kind} kind The attention whose queries and keys are marked.
 * @property {number} query The selected token; outside of the text: none.
 * @property {ArrayLike<number> | null} row The shade of each key.
 * @property {(side: string, i: number) => Partial<import("../state/store.js").State> | null} [pick] What a click on a
 *   token changes, if not the query or the key.
 * @property {boolean} [written] Whether the screen shows how the selected token was written, not what it attends to.
 */

/** The selected query and its weights. @param {Context} context @returns {Promise<Strip>} */
export async function readStrip({ source, state, kind }) {
  const matrix = await source.matrix(state.kind, state.layer, state.head, "weights");
  return { kind, query: state.query, row: at(matrix, state.query).data };
}

/**
 * The output token that a step wrote, and the weights from which it was predicted: those of the token before it.
 * @param {Context} context
 * @param {number} [step]
 * @returns {Promise<Strip>}
 */
export async function writtenStrip(context, step = context.state.step) {
  const { about, source, state } = context;
  const kind = writingKind(context);
  if (!kind) return readStrip(context);
  const layer = kind === context.kind ? state.layer : kind.layers - 1;
  const matrix = await source.matrix(kind.kind, layer, state.head, "weights");
  const row = step < about[kind.queries].tokens.length ? at(matrix, step).data : null;
  return { kind, query: step + 1, row, written: true };
}

/** The selected attention if outputs are its queries, or else the last such; none of an encoder. @param {Context} context */
export const writingKind = ({ about, kind }) =>
  kind.queries === "outputs" ? kind : about.kinds.findLast((each) => each.queries === "outputs");

/** The selected output token. @param {Context} context */
export const selectedOutput = ({ kind, state }) => (kind.queries === "outputs" ? state.query : state.step + 1);

/** Name of a text: without an encoder, prompt and output are one. @param {Context} context @param {string} side */
export const sideName = ({ about, t }, side) => t(side === "outputs" && !about.inputs ? "text" : side);

/** @param {Context} context @param {Strip} strip */
export function tokenStrips(context, strip) {
  const { about, t } = context;
  const { kind } = strip;
  return ["inputs", "outputs"]
    .filter((side) => about[side])
    .map((side) => {
      const chips = about[side].tokens.map((token, i) => chip(context, strip, side, token, i));
      const roles = [side === kind.queries && "query", side === kind.keys && "key"].filter(Boolean);
      const role = `strip.${roles.length === 2 ? "both" : (roles[0] ?? "none")}`;
      return h(
        "div",
        { class: "strip" },
        h("span", { class: "strip-name soft", title: t(role) }, sideName(context, side)),
        h("div", { class: "chips" }, chips),
      );
    });
}

const MARKS = { "<s>": "start", "</s>": "end", "[CLS]": "label" };

/** The meaning of a special token. @param {Context} context @param {Token} token */
function markOf({ about, state, t }, { special, text }) {
  const language = /^<2([a-z]{2,3})>$/.exec(text)?.[1];
  const named = language && new Intl.DisplayNames([state.lang], { type: "language" }).of(language);
  if (named) return t("strip.to", { language: named });
  const mark = special && MARKS[text];
  return mark && t(mark === "start" && !about.inputs ? "strip.beginning" : `strip.${mark}`);
}

/**
 * The change of the state that a click on a token causes; null if it cannot be selected here.
 * @param {Context} context
 * @param {Strip} strip
 * @param {string} side
 * @param {number} i
 */
function picked({ about, state }, { kind, written }, side, i) {
  if (written && side === "outputs") return i > 0 ? { step: i - 1, node: -1 } : null; // no step wrote the first
  if (side === kind.queries) return { query: i };
  if (side === kind.keys) return kind.kind === state.kind ? { key: i } : { kind: kind.kind, query: -1, key: i };
  const other = written
    ? about.kinds.find((each) => each.keys === side && each.queries === kind.queries)
    : about.kinds.find((each) => each.queries === side);
  if (!other) return null;
  return { kind: other.kind, ...(written ? { key: i } : { query: i, key: -1 }) };
}

/**
 * @param {Context} context
 * @param {Strip} strip
 * @param {string} side
 * @param {Token} token
 * @param {number} i
 */
function chip(context, strip, side, token, i) {
  const { state, store, theme, tip, t } = context;
  const { kind, query } = strip;
  const row = side === kind.keys ? strip.row : null;
  const looks = side === kind.queries && i === query;
  const looked = kind.kind === state.kind && side === kind.keys && i === state.key;
  const colour = row ? shade(row[i], 1, theme) : null;
  const spelt = /^<0x/.test(token.piece) ? ` ${token.piece}` : "";
  const space = token.text === "␣" ? ` (${t("strip.space")})` : "";
  const facts = [i, `${token.text}${spelt}${space}`, `#${token.id}`, row && percent(row[i]), markOf(context, token)];
  const tooltip = facts.filter((fact) => fact || fact === 0).join(" · ");
  const changes = strip.pick ? strip.pick(side, i) : picked(context, strip, side, i);
  return h(
    "button",
    {
      id: `${side}-${i}`,
      type: "button",
      class: ["chip", token.special && "special", looks && "looks", looked && "looked-at"]
        .filter(Boolean)
        .join(" "),
      "aria-pressed": String(looks),
      "aria-label": looks ? t(strip.written ? "strip.written" : "strip.looks", { token: token.text }) : tooltip,
      "aria-disabled": !changes && "true",
      style: colour ? { "background-color": colour, color: on(colour) } : {},
      onclick: () => changes && store.set(changes),
      onmousemove: (event) => tip.show(tooltip, event),
      onmouseleave: () => tip.hide(),
    },
    token.text,
  );
}
