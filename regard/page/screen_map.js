// Every head of every layer at a glance, in the places that Figure 1 gives them: the last layer on top.

import { h, s } from "./dom.js";
import { figure, label } from "./figure.js";
import { thumbnail } from "./matrix_figure.js";
import { percent } from "./number.js";
import { roleOf } from "./roles.js";
import { at, furthest, pooled } from "./tensor.js";

/** @typedef {import("./frame.js").Context} Context */
/**
 * @typedef {object} Head
 * @property {import("./source.js").Kind} kind
 * @property {number} layer
 * @property {number} head
 * @property {import("./tensor.js").Tensor} matrix
 * @property {ReturnType<typeof roleOf>} role
 */

const PIXELS = 96; // a thumbnail is never finer than it can be shown

/** @type {WeakMap<import("./source.js").Source, Promise<Head[][][]>>} */
const known = new WeakMap();

/**
 * The heads of one layer, made small.
 * @param {import("./source.js").Source} source
 * @param {import("./source.js").Kind} kind
 * @param {number} layer
 * @returns {Promise<Head[]>}
 */
async function headsOf(source, kind, layer) {
  const all = await source.heads(kind.kind, layer);
  return Array.from({ length: kind.heads }, (_, head) => {
    const matrix = at(all, head);
    const role = roleOf(matrix, kind.queries === kind.keys);
    return { kind, layer, head, matrix: pooled(matrix, PIXELS), role };
  });
}

/** For each kind, for each layer, its heads. @param {Context} context @returns {Promise<Head[][][]>} */
function gathered({ source, about }) {
  const layersOf = (/** @type {import("./source.js").Kind} */ kind) =>
    Promise.all(Array.from({ length: kind.layers }, (_, layer) => headsOf(source, kind, layer)));
  const found = known.get(source) ?? Promise.all(about.kinds.map(layersOf));
  known.set(source, found);
  found.catch(() => known.delete(source));
  return found;
}

/** @param {Context} context @param {Head} shown */
function thumb({ state, store, theme, t, tip }, { kind, layer, head, matrix, role }) {
  const here = kind.kind === state.kind && layer === state.layer && head === state.head;
  const place = [t(`kind.${kind.kind}`), `${t("layer")} ${layer}`, `${t("head.number")} ${head}`];
  const told = [...place, ...(role ? [`${t(`role.${role.role}`)} ${percent(role.share)}`] : [])].join(" · ");
  const canvas = thumbnail(matrix, furthest(matrix.data), theme);
  canvas.setAttribute("aria-hidden", "true");
  return h(
    "button",
    {
      id: `thumb-${kind.kind}-${layer}-${head}`,
      type: "button",
      class: "thumb",
      "aria-label": told,
      "aria-current": here && "true",
      onclick: () =>
        store.set({
          screen: "head",
          kind: kind.kind,
          layer,
          head,
          ...(kind.kind === state.kind ? {} : { query: -1, key: -1 }),
        }),
      onmousemove: (/** @type {MouseEvent} */ event) => tip.show(told, event),
      onmouseleave: () => tip.hide(),
    },
    canvas,
    h("span", { class: "role" }, role ? t(`role.${role.role}.short`) : "\u00a0"),
  );
}

/** The same as one picture, to be saved. @param {Context} context @param {Head[][][]} all */
function drawn({ theme, palette, t, about }, all) {
  const size = 64;
  const across = about.sizes.n_heads * (size + 6);
  const tall = Math.max(...all.map((layers) => layers.length)) * (size + 10);
  const columns = all.map((layers, column) => {
    const x = 40 + column * (across + 60);
    const rows = layers.map((heads, layer) => {
      const y = 40 + tall - (layer + 1) * (size + 10);
      return [
        label(String(layer), x - 10, y + size / 2, { "text-anchor": "end", fill: palette.soft }),
        ...heads.map(({ matrix }, head) =>
          s("image", {
            href: thumbnail(matrix, furthest(matrix.data), theme).toDataURL(),
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
      label(t(`kind.${layers[0][0].kind.kind}.title`), x, 18, {
        fill: palette.ink,
        "font-weight": 600,
        "font-size": 13,
      }),
      ...rows.flat(),
    ];
  });
  return figure(all.length * (across + 60) + 20, tall + 50, t("map"), columns.flat());
}

/** @type {import("./frame.js").Screen} */
export const map = {
  id: "map",
  sign: "▦",
  render: async (context) => {
    const { t, about } = context;
    const all = await gathered(context);
    const columns = all.map((layers, i) => {
      const { kind } = layers[0][0];
      return h(
        "section",
        { class: "stack", "aria-label": t(`kind.${kind.kind}.title`) },
        h("h2", {}, t(`kind.${kind.kind}.title`)),
        h("p", { class: "soft" }, t(`kind.${kind.kind}.note`)),
        h(
          "div",
          { class: "layers" },
          layers.map((heads, layer) =>
            h(
              "div",
              { class: "layer" },
              h("span", { class: "layer-name soft" }, `${t("layer")} ${layer}`),
              h(
                "div",
                { class: "heads", style: { "--heads": about.sizes.n_heads } },
                heads.map((head) => thumb(context, head)),
              ),
            ),
          ),
        ),
      );
    });
    const rows = all
      .flat(2)
      .map(({ kind, layer, head, role }) => [
        t(`kind.${kind.kind}`),
        layer,
        head,
        role ? t(`role.${role.role}`) : "–",
        role ? percent(role.share) : "",
      ]);
    return {
      body: h("div", { class: "stacks" }, columns),
      figure: drawn(context, all),
      table: {
        caption: t("map"),
        head: [t("kind"), t("layer"), t("head.number"), t("role"), t("share")],
        rows,
      },
    };
  },
};
