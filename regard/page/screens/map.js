// All heads of all layers as thumbnails, with the last layer on top as in Figure 1 of the paper. At a server, a drag
// across them switches them off.

import { fixed, percent, short } from "../compute/number.js";
import { at, furthest, pooled } from "../compute/tensor.js";
import { on, shade } from "../figures/colour.js";
import { room } from "../figures/chart.js";
import { MOST_WEIGHT, OFF, thumbnail } from "../figures/matrix.js";
import { figure, label, scale } from "../figures/svg.js";
import { dock, opOf, paintable, tokens, tools } from "../parts/breaking.js";
import { segments } from "../parts/controls.js";
import { h, s } from "../parts/dom.js";
import { describeError, soon } from "../state/requests.js";
import { isOff } from "../state/source.js";
import { toKind } from "../state/store.js";

/** @typedef {import("../frame.js").Context} Context */
/**
 * @typedef {object} Head
 * @property {import("../state/source.js").Kind} kind
 * @property {number} layer
 * @property {number} head
 * @property {import("../compute/tensor.js").Tensor} matrix
 * @property {import("../state/source.js").HeadSummary} summary
 */
/**
 * @typedef {object} Measure A measure that labels heads.
 * @property {(head: Head) => number | undefined} of
 * @property {number} most
 * @property {(value: number) => string} write
 */

const SCALE = 120; // width of the scale of shades
const PIXELS = 96; // maximum resolution of a thumbnail
const [SMALL, LARGE] = [76, 190]; // widths of thumbnails, if there is a choice
const [GAP, MARGIN] = [6, 54]; // between thumbnails; for the names of layers

/** @type {WeakMap<import("../state/source.js").Source, Promise<Head[][][]>>} */
const known = new WeakMap();

/**
 * The heads of one layer, reduced in size.
 * @param {import("../state/source.js").Source} source
 * @param {import("../state/source.js").Kind} kind
 * @param {number} layer
 * @returns {Promise<Head[]>}
 */
async function headsOf(source, kind, layer) {
  const [all, summaries] = await Promise.all([source.heads(kind.kind, layer), source.summaries()]);
  return Array.from({ length: kind.heads }, (_, head) => {
    const summary = summaries[kind.kind][layer][head];
    return { kind, layer, head, matrix: pooled(at(all, head), PIXELS), summary };
  });
}

/** The heads by kind and layer. @param {Context} context @returns {Promise<Head[][][]>} */
function gathered({ source, about }) {
  const layersOf = (kind) =>
    Promise.all(Array.from({ length: kind.layers }, (_, layer) => headsOf(source, kind, layer)));
  const found = known.get(source) ?? Promise.all(about.kinds.map(layersOf));
  known.set(source, found);
  found.catch(() => known.delete(source));
  return found;
}

const MANNERS = ["entropy", "confidence", "distance"];

/** The measures by which heads can be labelled. @param {Context} context */
async function measures({ about, server, source }) {
  const aligned = server && about.architecture === "encoder-decoder" && (await source.alignment());
  return [server && "importance", "role", ...MANNERS, aligned && aligned.of_each_head?.length && "alignment"].filter(
    (each) => typeof each === "string",
  );
}

/** What labels heads: their effect at a server, or else their roles. @param {Context} context */
function measureOf({ server, state }) {
  if (server) return state.by || "importance";
  return ["", "importance", "alignment"].includes(state.by) ? "role" : state.by; // which a file does not know
}

/**
 * The effect of each head; null while it is computed, which the legend says.
 * @param {Context} context
 * @param {HTMLElement} told
 * @returns {Promise<Record<string, number[][]> | null>}
 */
async function effectsOf({ server, state, store, t }, told) {
  const again = () => store.state.screen === "map" && store.notify();
  const failed = (problem) => (told.textContent = describeError(problem, t).message);
  const found = await soon(server.ablate(state, { effects: true }), again, failed);
  told.textContent = t(found ? "off.effects.note" : "off.effects.wait");
  return found?.effects ?? null;
}

/**
 * @param {Context} context
 * @param {Head[][][]} all
 * @param {HTMLElement} told
 * @returns {Promise<Measure | null>}
 */
async function measured(context, all, told) {
  const { server, source } = context;
  const by = measureOf(context);
  /** @type {Record<string, number[][]> | null} */
  const found =
    by === "alignment"
      ? { cross: (await source.alignment())?.of_each_head ?? [] }
      : by === "importance" && server
        ? await effectsOf(context, told)
        : {};
  const of = ({ kind, layer, head, summary }) =>
    found?.[kind.kind]?.[layer]?.[head] ?? summary[by] ?? undefined;
  const values = all.flat(2).map(of);
  return values.some((each) => each !== undefined) 
    ? { of, most: furthest(values.map((each) => each ?? 0)), write: by === "importance" ? effectText : short }
    : null;
}

/** An effect with at least one digit that is not 0, if three decimals have one. @param {number} effect */
export const effectText = (effect) => fixed(effect, Math.abs(effect) < 0.095 ? 3 : Math.abs(effect) < 9.95 ? 2 : 1);

/** The formatted value; empty if the head has none. @param {Head} head @param {Measure} by */
function valueOf(head, { of, write }) {
  const value = of(head);
  return value === undefined ? "\u00a0" : write(value);
}

/**
 * A head's role, its share of attention, and that of an even head.
 * @param {import("../words/i18n.js").Say} t
 * @param {import("../state/source.js").HeadSummary} summary
 */
const roleWords = (t, { role, share, even }) => ({
  role: t(`role.${role}`),
  share: percent(share),
  even: percent(even),
});

/** @param {Context} context @param {Head} shown @param {Measure | null} by */
function thumb(context, shown, by) {
  const { about, server, state, store, theme, t, tip } = context;
  const { kind, layer, head, matrix, summary } = shown;
  const value = by?.of(shown);
  const colour = by && value !== undefined ? shade(value, by.most, theme) : null;
  const written = by ? valueOf(shown, by) : "";
  const here = kind.kind === state.kind && layer === state.layer && head === state.head;
  const place = [t(`kind.${kind.kind}`), `${t("layer")} ${layer}`, `${t("head.number")} ${head}`];
  const tooltip = [
    ...place,
    ...(isOff(about, kind.kind, layer, head) ? [t("off.is.off")] : []),
    ...(summary.role ? [t("role.share", roleWords(t, summary))] : []),
    ...(colour ? [`${t(`map.${measureOf(context)}`)} ${written}`] : []),
  ].join(" · ");
  const op = server ? opOf(state.off, kind.kind, layer, head) : "";
  const off = isOff(about, kind.kind, layer, head);
  const canvas = thumbnail(matrix, MOST_WEIGHT, theme);
  canvas.setAttribute("aria-hidden", "true");
  return h(
    "button",
    {
      id: `thumb-${kind.kind}-${layer}-${head}`,
      type: "button",
      class: "thumb",
      "aria-label": tooltip,
      "aria-current": here && "true",
      ...(server && {
        "data-paint": `head.${kind.kind}.${layer}.${head}`,
        "data-label": tooltip,
        "data-op": op,
        "aria-pressed": String(Boolean(op)),
        style: colour ? { "--tint": colour } : {},
      }),
      onclick: () =>
        store.set({
          screen: "head",
          kind: kind.kind,
          layer,
          head,
          ...toKind(state, kind.kind),
        }),
      onmousemove: (event) => tip.show(tooltip, event),
      onmouseleave: () => tip.hide(),
    },
    canvas,
    off && h("span", { class: "off" }, OFF),
    server && h("span", { class: "op", "aria-hidden": "true" }),
    by
      ? h("span", { class: "role by", style: colour ? { background: colour, color: on(colour) } : {} }, written)
      : h("span", { class: "role" }, summary.role ? t(`role.${summary.role}.short`) : "\u00a0"),
  );
}

/**
 * What shades, frames and names of roles mean.
 * @param {Context} context
 * @param {Head[][][]} all
 * @param {Measure | null} by
 */
function legend(context, all, by) {
  const { t, theme } = context;
  const title = t(`map.${measureOf(context)}`);
  const roles = [...new Set(all.flat(2).map(({ summary }) => summary.role))].filter((role) => role !== null);
  const bar = figure(SCALE, 12, t("map.scale"), scale(SCALE, 10, (share) => shade(share * MOST_WEIGHT, MOST_WEIGHT, theme)));
  bar.removeAttribute("tabindex");
  const ends = (most) => {
    const signed = all.flat(2).some((head) => (by?.of(head) ?? 0) < 0);
    const from = signed ? -most : 0;
    const shades = figure(SCALE, 12, t("map.by"), scale(SCALE, 10, (share) => shade(from + share * (most - from), most, theme)));
    shades.removeAttribute("tabindex");
    return h("span", { class: "scale" }, by?.write(from) ?? "", shades, by?.write(most) ?? "", ` ${title}`);
  };
  const named = roles.map((role) =>
    h("div", {}, h("dt", {}, t(`role.${role}.short`)), h("dd", {}, t(`role.${role}.note`))),
  );
  return h(
    "div",
    { class: "map-legend soft" },
    h("span", { class: "scale" }, "0", bar, "1", ` ${t("map.scale")}`),
    h("span", { class: "framed" }, t("map.selected")),
    by && ends(by.most),
    !by && roles.length > 0 && h("span", {}, t("map.roles")),
    !by && roles.length > 0 && h("dl", { class: "roles" }, named),
  );
}

/** The map as one figure, for saving. @param {Context} context @param {Head[][][]} all @param {Measure | null} by */
function drawn(context, all, by) {
  const { theme, palette, t, about } = context;
  const named = by ? ` · ${t(`map.${measureOf(context)}`)}` : "";
  const size = 64;
  const line = size + (by ? 24 : 10);
  const across = about.sizes.n_heads * (size + 6);
  const tall = Math.max(...all.map((layers) => layers.length)) * line;
  const columns = all.map((layers, column) => {
    const x = 40 + column * (across + 60);
    const rows = layers.map((heads, layer) => {
      const y = 40 + tall - (layer + 1) * line;
      return [
        label(String(layer), x - 10, y + size / 2, { "text-anchor": "end", fill: palette.soft }),
        ...heads.map((each, head) =>
          label(by ? valueOf(each, by) : "", x + head * (size + 6) + size / 2, y + size + 10, {
            ...{ "text-anchor": "middle", "font-size": 11, fill: palette.soft },
          }),
        ),
        ...heads.map(({ matrix }, head) =>
          s("image", {
            href: thumbnail(matrix, MOST_WEIGHT, theme).toDataURL(),
            x: x + head * (size + 6),
            y,
            width: size,
            height: size,
            preserveAspectRatio: "none",
            "image-rendering": "pixelated",
          }),
        ),
      ];
    });
    return [
      label(`${t(`kind.${layers[0][0].kind.kind}.title`)}${named}`, x, 18 + tall - layers.length * line, {
        fill: palette.ink,
        "font-weight": 600,
        "font-size": 13,
      }),
      ...rows.flat(),
    ];
  });
  return figure(all.length * (across + 60) + 20, tall + 50, t("map"), columns.flat());
}

/**
 * The kinds of attention in columns that fill the place: the encoder, in two halves if there is room, beside both
 * attentions of the decoder; side by side, if they are about as high.
 * @param {Context} context
 * @param {Head[][][]} all
 * @param {Measure | null} by
 */
function stacked(context, all, by) {
  const { about, t } = context;
  const heads = about.sizes.n_heads;
  const stack = (layers, first = 0) => {
    const { kind } = layers[0][0];
    const rows = layers.map((each, i) =>
      h(
        "div",
        { class: "layer" },
        h("span", { class: "layer-name soft" }, `${t("layer")} ${first + i}`),
        h("div", { class: "heads", style: { "--heads": heads } }, each.map((head) => thumb(context, head, by))),
      ),
    );
    const title = t(`kind.${kind.kind}.title`);
    const range = layers.length < kind.layers ? ` · ${t("layer")} ${first}–${first + layers.length - 1}` : "";
    return h(
      "section",
      { class: "stack", "aria-label": title + range },
      h("h2", {}, title, h("span", { class: "soft" }, range)),
      h("p", { class: "soft" }, t(about.inputs ? `kind.${kind.kind}.note` : "kind.decoder.note.alone")),
      h("div", { class: "layers" }, rows),
    );
  };
  const fits = (count) => (room() - 44 * (count - 1)) / count >= MARGIN + heads * (SMALL + GAP);
  const [first, ...others] = all;
  const below = others.reduce((sum, layers) => sum + layers.length + 1, -1);
  const beside = () => h("div", {}, others.map((layers) => stack(layers)));
  const half = Math.ceil(first.length / 2);
  const stacks = !others.length || first.length <= 1.5 * Math.max(...others.map((layers) => layers.length))
    ? all.map((layers) => stack(layers))
    : fits(3) && half >= below - 1
      ? [stack(first.slice(half), half), stack(first.slice(0, half)), beside()]
      : [stack(first), beside()];
  const look = { "--stacks": stacks.length, "--widest": `${MARGIN + heads * (LARGE + GAP)}px` };
  return h("div", { class: "stacks", style: look }, stacks);
}

/** @type {import("../frame.js").Screen} */
export const map = {
  id: "map",
  sign: "▦",
  render: async (context) => {
    const { server, t, store } = context;
    const all = await gathered(context);
    const chosen = measureOf(context);
    const told = h("span", { id: "map-told", class: "soft", role: "status" });
    if (chosen !== "role") told.textContent = t(`map.${chosen}.title`);
    const by = chosen === "role" ? null : await measured(context, all, told);
    const choices = (await measures(context)).map((value) => ({
      value,
      text: t(value === "role" ? "role" : `map.${value}`),
      ...(value !== "role" && { title: t(`map.${value}.title`) }),
    }));
    const heads = all.flat(2);
    const sign = chosen === "importance" ? -1 : 1; // a head is important if the log-probability drops without it
    const rank = (head) => sign * (by?.of(head) ?? -sign * 1e9);
    if (by) heads.sort((one, other) => rank(other) - rank(one));
    const body = h("div", { class: "map" }, server && tokens(context), legend(context, all, by), stacked(context, all, by));
    return {
      note: server ? "map.note.break" : "map.note",
      controls: [
        ...(server ? tools(context) : []),
        h(
          "span",
          { class: "labelled" },
          h("span", { class: "soft" }, t("map.by")),
          segments(t("map.by"), choices, chosen, (value) => store.set({ by: value })),
        ),
        told,
      ],
      body: h("div", { class: "steps" }, server ? paintable(context, body) : body, server && dock(context)),
      figure: drawn(context, all, by),
      table: {
        caption: t("map"),
        head: [t("kind"), t("layer"), t("head.number"), t("role"), t("share"), t("role.even"), ...(by ? [t(`map.${chosen}`)] : [])],
        rows: heads.map((each) => [
          ...[t(`kind.${each.kind.kind}`), each.layer, each.head],
          ...(each.summary.role ? Object.values(roleWords(t, each.summary)) : ["–", "", ""]),
          ...(by ? [valueOf(each, by)] : []),
        ]),
      },
    };
  },
};
