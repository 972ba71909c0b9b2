// Everything around a screen: side bar, top bar, tooltip, list of keys, and empty states.

import { h } from "./parts/dom.js";
import { linkButton } from "./parts/presenter.js";
import { KEYS, LAST_SCREEN } from "./state/keys.js";
import { describeError } from "./state/requests.js";

/**
 * @typedef {object} Context What a screen needs for drawing.
 * @property {import("./state/source.js").Source} source Null on a screen that needs no trace, like `about`.
 * @property {import("./state/source.js").About} about
 * @property {import("./state/server.js").Server | null} server Null in a saved file.
 * @property {import("./state/store.js").Store} store
 * @property {import("./state/store.js").State} state
 * @property {import("./words/i18n.js").Say} t
 * @property {"light" | "dark"} theme
 * @property {Record<string, string>} palette
 * @property {import("./state/source.js").Kind} kind
 * @property {import("./state/source.js").Token[]} queries
 * @property {import("./state/source.js").Token[]} keys
 * @property {Tooltip} tip
 * @property {string[]} screens Ids of the screens that the page has for this model.
 *
 * @typedef {object} View What a screen returns.
 * @property {(Node | false | null)[]} [controls]
 * @property {Node} body
 * @property {string} [note] Key of the text beside the title; default: `ID.note`.
 * @property {SVGElement} [figure] The figure to save.
 * @property {string} [heard] Text for screen readers after a key; default: the attention weight.
 * @property {{ caption: string, head: string[], rows: (string | number)[][] }} [table]
 *
 * @typedef {object} Screen
 * @property {string} id Also the key of its title.
 * @property {string} sign
 * @property {boolean} [alone] Whether it works without a trace.
 * @property {boolean} [searches] Whether it always shows the search, even if an output was chosen.
 * @property {string} [task] The task of the models that have this screen; default: all.
 * @property {(context: Context) => string} [named] Key of the title, if it depends on the model.
 * @property {(context: Context) => Promise<View>} render
 * @property {(context: Context) => Promise<import("./parts/strips.js").Strip>} [strip] What the tokens above show;
 *   default: the query and its weights.
 * @property {Record<string, (context: Context) => void>} [keys] Keys that only this screen has.
 * @property {(context: Context, by: number) => boolean} [moves] Goes on by a step; returns whether there is one.
 */

/** The tooltip at the pointer. */
export class Tooltip {
  constructor() {
    this.node = h("div", { class: "tip", role: "status", hidden: true });
  }

  /** @param {string} text @param {MouseEvent} event */
  show(text, event) {
    this.node.textContent = text;
    this.node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.node;
    this.node.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    const above = event.clientY + 18 + height > innerHeight;
    this.node.style.top = `${Math.max(4, above ? event.clientY - height - 10 : event.clientY + 18)}px`;
  }

  hide() {
    this.node.hidden = true;
  }
}

/** Key of a screen's title. @param {Screen} screen @param {Context} context */
export const titleKey = (screen, context) => screen.named?.(context) ?? screen.id;

/** @param {Context} context @param {Screen[]} screens */
export function sideBar(context, screens) {
  const { state, store, t } = context;
  return screens.map((screen, i) => {
    const name = t(titleKey(screen, context));
    return h(
      "button",
      {
        id: `screen-${screen.id}`,
        type: "button",
        "aria-current": screen.id === state.screen && "page",
        title: `${name} (${i + 1})`,
        onclick: () => store.set({ screen: screen.id }),
      },
      h("span", { class: "sign", "aria-hidden": "true" }, screen.sign),
      h("span", { class: "name" }, name),
    );
  });
}

/**
 * @param {Context} context
 * @param {object} doings
 * @param {(kind: "svg" | "png" | "csv") => void} doings.save
 * @param {(button: HTMLElement) => void} doings.savePage
 * @param {() => void} doings.present
 * @param {() => void} doings.help
 * @param {boolean} doings.canSave
 * @param {boolean} doings.hasTable
 */
export function bar(context, { save, savePage, present, help, canSave, hasTable }) {
  const { about, server, source, state, store, t } = context;
  const button = (id, text, title, onclick, more = {}) =>
    h("button", { id, type: "button", title, onclick, ...more }, text);
  const next = { auto: "light", light: "dark", dark: "auto" }[state.theme];
  return [
    h("strong", { class: "brand" }, "regard"),
    server && h("span", { class: "served" }, server.way(state).model),
    model(about ?? server?.description(state), t),
    h("span", { class: "gap" }),
    linkButton(context),
    source?.page &&
      button("save-page", t("save.page"), t("save.page.title"), (event) => savePage(event.currentTarget)),
    button("present", t("present"), t("present.title"), present),
    button("table", t("table"), t("table.title"), () => store.set({ table: state.table ? 0 : 1 }), {
      "aria-pressed": String(Boolean(state.table)),
      disabled: !hasTable,
    }),
    button("save-svg", "SVG", t("save.svg"), () => save("svg"), { disabled: !canSave }),
    button("save-png", "PNG", t("save.png"), () => save("png"), { disabled: !canSave }),
    button("save-csv", "CSV", t("save.csv"), () => save("csv"), { disabled: !hasTable }),
    button(
      "theme",
      { auto: "◐", light: "☀", dark: "☾" }[state.theme] ?? "◐",
      t(`theme.${state.theme}`),
      () => store.set({ theme: next }),
      { "aria-label": t(`theme.${state.theme}`) },
    ),
    button(
      "language",
      state.lang === "zh" ? "EN" : "中文",
      t("language.title"),
      () => store.set({ lang: state.lang === "zh" ? "en" : "zh" }),
      { lang: state.lang === "zh" ? "en" : "zh" },
    ),
    button("help", "?", t("keys"), help, { "aria-label": t("keys") }),
  ].filter(Boolean);
}

/**
 * Architecture and sizes of the model, and how many interventions it has.
 * @param {any} about A trace, or a model without one.
 * @param {import("./words/i18n.js").Say} t
 */
function model({ architecture, sizes, interventions, engine, weights_hash, hash }, t) {
  const layers = [sizes.encoder_layers, sizes.decoder_layers].filter(Boolean).join(" + ");
  const { n_heads: heads, d_model, d_k, d_ff } = sizes;
  const facts = { hash, engine: engine || "–", weights: weights_hash.slice(0, 16) || "–" };
  return h(
    "span",
    { class: "model soft", title: t("model.title", facts) },
    `${t(`model.${architecture}`)} · ${t("model.sizes", { layers, heads, d_model, d_k, d_ff })}`,
    interventions.length > 0 &&
      h(
        "span",
        { class: "tag changed", title: JSON.stringify(interventions) },
        t("model.changed", { count: interventions.length }),
      ),
  );
}

/**
 * The dialog with all keys.
 * @param {import("./words/i18n.js").Say} t
 * @param {boolean} server Whether there is one.
 * @param {number} count Number of screens.
 */
export function keyList(t, server, count) {
  const close = () => dialog.close();
  const dialog = h(
    "dialog",
    { class: "sheet", "aria-labelledby": "sheet-title" },
    h("h2", { id: "sheet-title" }, t("keys")),
    h(
      "dl",
      {},
      KEYS.filter((each) => server || !each.server)
        .map(({ keys, words }) => [
          h("dt", {}, keys.map((key) => h("kbd", {}, key === LAST_SCREEN ? `${count}` : key))),
          h("dd", {}, t(words)),
        ])
        .flat(),
    ),
    h("button", { type: "button", onclick: close, autofocus: true }, t("close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  return dialog;
}

/** A button that leads to the text field. @param {Context} context @param {Screen} first */
function toTheText(context, first) {
  const go = () => context.store.set({ screen: first.id });
  return h("button", { type: "button", class: "primary", onclick: go }, context.t(titleKey(first, context)));
}

/**
 * What a screen shows after an error, with a button to fix the text or to try again.
 * @param {Context} context
 * @param {Screen} first The screen with the text field.
 * @param {Error} problem
 * @param {() => void} again
 */
export function failed(context, first, problem, again) {
  console.warn(problem);
  const { t } = context;
  const { message, fixable } = describeError(problem, t);
  const next = fixable ? toTheText(context, first) : h("button", { type: "button", onclick: again }, t("again"));
  const words = [h("strong", {}, t("failed")), h("p", {}, message)];
  return { body: h("div", { class: "empty", role: "alert" }, words, next) };
}
