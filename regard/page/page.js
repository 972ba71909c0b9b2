// The page: draws the screen that the state names, again whenever the state changes, and hears keys.

import { csv } from "./compute/number.js";
import { at } from "./compute/tensor.js";
import { PALETTES } from "./figures/colour.js";
import { download, pngBlob, svgText } from "./figures/svg.js";
import { bar, failed, nothing, rail, sheet, strips, Tip, wordsOf } from "./frame.js";
import { tableOf } from "./parts/controls.js";
import { h } from "./parts/dom.js";
import { changesOf } from "./state/keys.js";
import { connection } from "./state/requests.js";
import { Store } from "./state/store.js";
import { languageOf, speaker } from "./words/i18n.js";

const SLOW = 200; // milliseconds before a reader is told to wait

export class Page {
  /**
   * @param {import("./frame.js").Screen[]} screens
   * @param {import("./state/live.js").Live | null} live The server, which has many traces.
   * @param {import("./state/live.js").Opened | null} held The trace of a file, which has one.
   */
  constructor(screens, live, held) {
    this.all = screens;
    this.live = live;
    this.held = held;
    this.source = held?.source ?? null;
    this.about = held?.about ?? null;
    this.store = new Store(this.about, languageOf(navigator.languages));
    this.drawn = "";
    this.tip = new Tip();
    this.turn = 0;
    this.selected = "";
    this.keyed = false; // whether a key has led here
    this.towards = ""; // what a key has asked for, to be given the keys when it is there
    /** @type {import("./frame.js").View | null} */
    this.view = null;
    this.night = matchMedia("(prefers-color-scheme: dark)");
    this.parts = {
      bar: h("header", { class: "bar" }),
      rail: h("nav", { class: "rail" }),
      strips: h("section", { class: "strips" }),
      main: h("main", { class: "main", id: "main", tabindex: -1 }),
      skip: h("button", { class: "skip", type: "button", onclick: () => this.parts.main.focus() }),
      heard: h("div", { class: "unseen", "aria-live": "polite" }),
      lost: h("div", { class: "lost", role: "status", hidden: true }),
    };
    const { bar: top, rail: left, strips: texts, main, heard, lost, skip } = this.parts;
    document.body.replaceChildren(
      skip,
      top,
      left,
      h("div", { class: "content" }, texts, main),
      heard,
      lost,
      this.tip.node,
    );
    connection.addEventListener("lost", () => this.unreached(true));
    connection.addEventListener("back", () => this.unreached(false));
    this.store.listen(() => this.draw());
    this.night.addEventListener("change", () => this.draw());
    addEventListener("keydown", (event) => this.pressed(event));
  }

  /** Those that there are for the model: a classifier searches for nothing. */
  get screens() {
    const { all, live, held, store } = this;
    const pairs = held?.about.architecture === "encoder-decoder" && "translate";
    const does = live ? live.model(store.state).task : pairs;
    return all.filter(({ task }) => !task || task === does);
  }

  get screen() {
    return this.screens.find((screen) => screen.id === this.store.state.screen) ?? this.screens[0];
  }

  /** @returns {import("./frame.js").Context} */
  context() {
    const { state } = this.store;
    const theme =
      state.theme === "auto"
        ? this.night.matches
          ? "dark"
          : "light"
        : state.theme;
    const kind = this.about?.kinds.find((each) => each.kind === state.kind);
    return {
      source: this.source,
      about: this.about,
      live: this.live,
      store: this.store,
      state: { ...state, screen: this.screen.id, ...(this.screen.searches && { target: "" }) },
      t: speaker(state.lang),
      theme,
      palette: PALETTES[theme],
      kind,
      queries: kind ? this.about?.[kind.queries].tokens : [],
      keys: kind ? this.about?.[kind.keys].tokens : [],
      tip: this.tip,
    };
  }

  async draw() {
    const turn = ++this.turn;
    const screen = this.screen;
    const { theme } = this.context();
    document.documentElement.lang = this.store.state.lang === "zh" ? "zh-CN" : "en";
    document.documentElement.dataset.theme = theme;
    this.parts.lost.textContent = this.context().t("lost");
    this.parts.skip.textContent = this.context().t("skip");
    const waiting = setTimeout(() => turn === this.turn && this.wait(screen), SLOW);
    const opened = await this.opened(screen).catch((problem) => problem);
    if (turn !== this.turn) return;
    const problem = opened instanceof Error ? opened : null;
    this.source = problem ? null : (opened?.source ?? null);
    this.about = problem ? null : (opened?.about ?? null);
    this.store.suit(this.about);
    const context = this.context();
    const row = this.source && (await this.attentionRow(context).catch(() => null));
    const [first] = this.screens;
    const refused = (why) => failed(context, first, why, () => this.draw());
    const view = problem
      ? refused(problem)
      : screen.alone || opened
        ? await screen.render(context).catch(refused)
        : nothing(context, first);
    clearTimeout(waiting);
    if (turn !== this.turn) return;
    this.show(context, view, row);
    this.prefetch(context);
    document.body.dataset.drawn = String(turn);
  }

  /**
   * What a screen is shown from: the trace of a file, or that of the text in the address.
   * @param {import("./frame.js").Screen} screen
   */
  async opened(screen) {
    if (!this.live) return this.held;
    if (screen.alone) return null;
    if (screen.searches) return this.live.trace({ ...this.store.state, target: "" });
    const target = await this.live.shownInstead(this.store.state);
    if (target) this.store.note({ target });
    return this.live.trace(this.store.state);
  }

  /**
   * Tell that something is on its way; where it is another screen, which.
   * @param {import("./frame.js").Screen} screen
   */
  wait(screen) {
    const { state, t } = this.context();
    this.parts.main.setAttribute("aria-busy", "true");
    this.parts.rail.replaceChildren(...rail({ ...this.context(), state: { ...state } }, this.screens));
    if (this.drawn === screen.id) return;
    this.parts.strips.hidden = this.parts.strips.hidden || Boolean(screen.alone);
    this.parts.main.replaceChildren(
      h(
        "div",
        { class: "head" },
        h("h1", {}, t(wordsOf(screen, this.context()))),
        h("p", { class: "note soft" }, t("loading")),
      ),
    );
  }

  /**
   * @param {import("./frame.js").Context} context
   * @param {import("./frame.js").View} view
   * @param {Float32Array | null} row
   */
  show(context, view, row) {
    const { state, t } = context;
    this.tip.hide();
    this.view = view;
    this.drawn = this.screen.id;
    const held = this.towards || document.activeElement?.id;
    this.towards = "";
    const doings = {
      save: (kind) => void this.save(kind),
      help: () => this.help(),
      canSave: Boolean(view.figure) && !state.table,
      hasTable: Boolean(view.table),
    };
    this.parts.bar.replaceChildren(...bar(context, doings));
    this.parts.rail.setAttribute("aria-label", t("screens"));
    this.parts.rail.replaceChildren(...rail(context, this.screens));
    this.parts.strips.hidden = !this.about;
    this.keepScroll(this.parts.strips, () => this.parts.strips.replaceChildren(...strips(context, row)));
    this.parts.main.removeAttribute("aria-busy");
    const shown = state.table && view.table ? tableOf(view.table) : view.body;
    const words = wordsOf(this.screen, context);
    this.keepScroll(this.parts.main, () =>
      this.parts.main.replaceChildren(
        h(
          "div",
          { class: "head" },
          h("h1", {}, t(words)),
          h("p", { class: "note soft" }, t(view.note ?? `${words}.note`)),
        ),
        h("div", { class: "controls" }, (view.controls ?? []).filter(Boolean)),
        h("div", { class: "body" }, shown),
        this.source ? this.footer(context) : "",
      ),
    );
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
    this.follow(state);
    if (this.keyed) this.announce(context, view, row);
    this.keyed = false;
  }

  /** @param {boolean} lost */
  unreached(lost) {
    this.parts.lost.hidden = !lost;
    if (!lost) void this.draw();
  }

  /** Have the heads at hand that a key or a click leads to next. @param {import("./frame.js").Context} context */
  prefetch({ kind, live, source, state }) {
    if (!live || !source) return;
    for (const [layer, head] of [
      [state.layer, state.head + 1],
      [state.layer, state.head - 1],
      [state.layer + 1, state.head],
      [state.layer - 1, state.head],
    ])
      if (layer >= 0 && layer < kind.layers && head >= 0 && head < kind.heads)
        source.matrix(kind.kind, layer, head, "weights").catch(() => null); // asked for again when needed
  }

  /**
   * Redraw a part, with what was scrolled inside of it where it was.
   * @param {HTMLElement} part
   * @param {() => void} redraw
   */
  keepScroll(part, redraw) {
    const places = [...part.querySelectorAll(".chips, .scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    redraw();
    [...part.querySelectorAll(".chips, .scroll")].forEach(
      (each, i) => places[i] && each.scrollTo(places[i][0], places[i][1]),
    );
  }

  /**
   * Bring what was newly selected into view; what the reader has scrolled away stays away.
   * @param {import("./state/store.js").State} state
   */
  follow(state) {
    const selected = [state.screen, state.kind, state.query, state.step, state.panel].join();
    if (selected === this.selected) return;
    this.selected = selected;
    for (const each of document.querySelectorAll(
      ".looks, .skyline [aria-current], .way [aria-current], .rail [aria-current]",
    )) {
      each.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  /** @param {import("./frame.js").Context} context */
  async attentionRow({ source, state }) {
    const matrix = await source.matrix(state.kind, state.layer, state.head, "weights");
    return at(matrix, state.query).data;
  }

  /** How exact the numbers are: a page that rounds must say so. @param {import("./frame.js").Context} context */
  footer({ t, source, about }) {
    const { precision, kept } = source.precision();
    return h(
      "footer",
      { class: "soft" },
      t(`precision.${precision}`, { kept: kept ?? 0, dtype: about.dtype }),
      " ",
      t("not-why"),
      " ",
      source.file &&
        h(
          "button",
          { id: "save-trace", type: "button", title: t("save.trace.title"), onclick: () => this.saveTrace() },
          t("save.trace"),
        ),
    );
  }

  /** @param {"svg" | "png" | "csv"} kind */
  async save(kind) {
    const { figure, table } = this.view ?? {};
    const { state, palette } = this.context();
    const blob =
      kind === "csv"
        ? table && new Blob([csv(table)], { type: "text/csv" })
        : figure && !state.table
          ? kind === "png"
            ? await pngBlob(figure, palette.paper)
            : new Blob([svgText(figure, palette.paper)], { type: "image/svg+xml" })
          : null;
    const place = this.source ? [state.kind, state.layer, state.head] : [];
    if (blob) download(blob, `${["regard", state.screen, ...place].join("-")}.${kind}`);
  }

  async saveTrace() {
    const file = await this.source?.file?.();
    if (file) download(file, "trace.safetensors");
  }

  help() {
    const dialog = sheet(speaker(this.store.state.lang), Boolean(this.live));
    document.body.append(dialog);
    dialog.showModal();
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const target = event.target;
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      target.matches("select, textarea, input:not([type=checkbox], [type=range])") ||
      (target.matches("[type=range]") && /^(Arrow|Page|Home|End)/.test(event.key)) ||
      document.querySelector("dialog[open]")
    )
      return;
    if (event.key === " " && target.matches("button, input")) return;
    const own = this.screen.keys?.[event.key];
    const changes = own
      ? null
      : changesOf(event.key, this.context().state, this.about, this.screens.map((screen) => screen.id));
    this.keyed = Boolean(own || changes);
    if (own) own(this.context());
    else if (event.key === "?") this.help();
    else if (event.key === "/" && this.live) {
      this.towards = "text";
      this.store.set({ screen: this.screens[0].id });
    } else if (event.key === "s") void this.save("svg");
    else if (changes) this.store.set(changes);
    else return;
    event.preventDefault();
  }

  /**
   * For those who hear the page: where the keys have led.
   * @param {import("./frame.js").Context} context
   * @param {import("./frame.js").View} view
   * @param {Float32Array | null} row
   */
  announce({ t, state, queries, keys }, view, row) {
    const key = row && state.key < 0 ? row.indexOf(Math.max(...row)) : state.key;
    const looking = row && { query: queries[state.query].text, key: keys[key].text, weight: row[key].toFixed(2) };
    this.parts.heard.textContent = view.heard ?? (looking ? t("said", looking) : "");
  }
}
