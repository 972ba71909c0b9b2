// The page: draws the current screen whenever the state changes, and handles keys.

import { fixed } from "./compute/number.js";
import { argmax } from "./compute/tensor.js";
import { PALETTES } from "./figures/colour.js";
import { growth, resize } from "./figures/svg.js";
import { bar, failed, sideBar, keyList, Tooltip, titleKey } from "./frame.js";
import { Coach } from "./parts/coach.js";
import { dataTable } from "./parts/controls.js";
import { h } from "./parts/dom.js";
import { explainTerms } from "./parts/explain.js";
import { leaveFullScreen, presenterBar, showFullScreen } from "./parts/presenter.js";
import { saveFigure, savePage, saveTrace } from "./parts/saving.js";
import { readStrip, tokenStrips } from "./parts/strips.js";
import { heading, outwards } from "./parts/trail.js";
import { NumberKeys, stateChanges } from "./state/keys.js";
import { firstExample } from "./state/examples.js";
import { connection } from "./state/requests.js";
import { Store } from "./state/store.js";
import { preferredLanguage, wordsIn } from "./words/i18n.js";

/** Factors by which figures grow or shrink to fill their place. @type {Record<string, [number, number]>} */
const FACTORS = { read: [1, 1.9], presented: [0.6, 2.6] };
const SLOW = 200; // milliseconds before the page shows that it is loading

export class Page {
  /**
   * @param {import("./frame.js").Screen[]} screens
   * @param {import("./state/server.js").Server | null} server The server; null in a saved file.
   * @param {import("./state/server.js").Opened | null} held The trace of a saved file.
   */
  constructor(screens, server, held) {
    this.all = screens;
    this.server = server;
    this.held = held;
    this.source = held?.source ?? null;
    this.about = held?.about ?? null;
    this.store = new Store(this.about, preferredLanguage(navigator.languages));
    if (server) this.store.example = (state) => this.example(state);
    this.store.fit(this.about);
    this.drawn = "";
    this.tip = new Tooltip();
    this.coach = new Coach();
    this.turn = 0;
    this.numbers = new NumberKeys((place) => this.store.set({ screen: this.screens[place].id }));
    this.selected = "";
    this.keyed = false; // whether a key caused this redraw
    this.towards = ""; // id of the element to focus after the next redraw
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
      presenter: h("div", { class: "presenter", role: "group" }),
    };
    const { bar: top, rail: left, strips: texts, main, heard, lost, skip, presenter } = this.parts;
    const content = h("div", { class: "content" }, texts, main, this.coach.node);
    document.body.replaceChildren(skip, top, left, content, heard, lost, presenter, this.tip.node);
    connection.addEventListener("lost", () => this.unreached(true));
    connection.addEventListener("back", () => this.unreached(false));
    this.store.listen(() => this.draw());
    this.night.addEventListener("change", () => this.draw());
    addEventListener("keydown", (event) => this.pressed(event));
    addEventListener("resize", () => this.hintAtMore());
    addEventListener("resize", () => this.fill());
    document.addEventListener("fullscreenchange", () => {
      if (!document.fullscreenElement && this.store.state.present) this.store.set({ present: 0 });
    });
    left.addEventListener("scroll", () => this.hintAtMore());
  }

  /** The text while the user has written none; where the user writes, an emptied field stays empty. @param {import("./state/store.js").State} state */
  example(state) {
    const screen = this.all.find(({ id }) => id === state.screen) ?? this.all[0];
    const writes = screen.alone && screen.task;
    return this.store.cleared && writes ? "" : firstExample(this.server, state);
  }

  /** The screens that fit the model's task. */
  get screens() {
    const { all, server, held, store } = this;
    const pairs = held?.about.architecture === "encoder-decoder" && "translate";
    const does = server ? server.model(store.state).task : pairs;
    return all.filter(({ task }) => !task || task === does);
  }

  get screen() {
    return this.screens.find((screen) => screen.id === this.store.state.screen) ?? this.screens[0];
  }

  /** @returns {import("./frame.js").Context} */
  context() {
    const { state } = this.store;
    const wanted = state.theme === "auto" ? this.night.matches && "dark" : state.theme;
    const theme = wanted === "dark" ? "dark" : "light";
    const kind = this.about?.kinds.find((each) => each.kind === state.kind);
    return {
      source: this.source,
      about: this.about,
      server: this.server,
      store: this.store,
      state: { ...state, screen: this.screen.id, ...(this.screen.searches && { target: "" }) },
      t: wordsIn(state.lang),
      theme,
      palette: PALETTES[theme],
      kind,
      queries: kind ? this.about?.[kind.queries].tokens : [],
      keys: kind ? this.about?.[kind.keys].tokens : [],
      tip: this.tip,
      screens: this.screens.map(({ id }) => id),
    };
  }

  async draw() {
    const turn = ++this.turn;
    const screen = this.screen;
    const { theme } = this.context();
    document.documentElement.lang = this.store.state.lang === "zh" ? "zh-CN" : "en";
    document.documentElement.dataset.theme = theme;
    document.documentElement.toggleAttribute("data-present", Boolean(this.store.state.present));
    this.parts.lost.textContent = this.context().t("lost");
    this.parts.skip.textContent = this.context().t("skip");
    const waiting = setTimeout(() => turn === this.turn && this.wait(screen), SLOW);
    const opened = await this.opened(screen).catch((problem) => problem);
    if (turn !== this.turn) return;
    const problem = opened instanceof Error ? opened : null;
    this.source = problem ? null : (opened?.source ?? null);
    this.about = problem ? null : (opened?.about ?? null);
    this.store.fit(this.about);
    const context = this.context();
    const strip = this.source && (await (screen.strip ?? readStrip)(context).catch(() => null));
    const [first] = this.screens;
    const refused = (why) => failed(context, first, why, () => this.draw());
    const view = problem ? refused(problem) : await screen.render(context).catch(refused);
    clearTimeout(waiting);
    if (turn !== this.turn) return;
    this.show(context, view, strip ?? { kind: context.kind, query: context.state.query, row: null });
    this.prefetch(context);
    document.body.dataset.drawn = String(turn);
  }

  /**
   * The trace that a screen shows: that of the file, or that of the text in the address.
   * @param {import("./frame.js").Screen} screen
   */
  async opened(screen) {
    if (!this.server) return this.held;
    if (screen.alone) return null;
    if (screen.searches) return this.server.trace({ ...this.store.state, target: "" });
    const target = await this.server.shownInstead(this.store.state);
    if (target) this.store.setQuietly({ target });
    return this.server.trace(this.store.state);
  }

  /** Show that the page is loading, and the title of the new screen. @param {import("./frame.js").Screen} screen */
  wait(screen) {
    const { state, t } = this.context();
    this.parts.main.setAttribute("aria-busy", "true");
    this.parts.rail.replaceChildren(...sideBar({ ...this.context(), state: { ...state } }, this.screens));
    if (this.drawn === screen.id) return;
    this.coach.draw(this.context(), false);
    this.parts.strips.hidden = this.parts.strips.hidden || Boolean(screen.alone);
    this.parts.main.replaceChildren(heading(this.context(), t(titleKey(screen, this.context())), t("loading")));
  }

  /**
   * @param {import("./frame.js").Context} context
   * @param {import("./frame.js").View} view
   * @param {import("./parts/strips.js").Strip} strip
   */
  show(context, view, strip) {
    const { state, t } = context;
    this.tip.hide();
    this.view = view;
    this.drawn = this.screen.id;
    const held = this.towards || document.activeElement?.id;
    this.towards = "";
    const doings = {
      save: (kind) => void this.save(kind),
      savePage: (button) => void savePage(this.context(), button),
      present: () => this.present(true),
      help: () => this.help(),
      canSave: Boolean(view.figure) && !state.table,
      hasTable: Boolean(view.table),
    };
    this.parts.bar.replaceChildren(...bar(context, doings));
    this.parts.rail.setAttribute("aria-label", t("screens"));
    this.parts.rail.replaceChildren(...sideBar(context, this.screens));
    this.parts.strips.hidden = !this.about;
    this.keepScroll(this.parts.strips, () => this.parts.strips.replaceChildren(...(this.about ? tokenStrips(context, strip) : [])));
    this.parts.main.removeAttribute("aria-busy");
    const shown = state.table && view.table ? dataTable(view.table) : view.body;
    const words = titleKey(this.screen, context);
    this.keepScroll(this.parts.main, () =>
      this.parts.main.replaceChildren(
        heading(context, t(words), t(view.note ?? `${words}.note`)),
        h("div", { class: "controls" }, (view.controls ?? []).filter(Boolean)),
        h("div", { class: "body" }, shown),
        this.source ? this.footer(context) : "",
      ),
    );
    this.parts.presenter.replaceChildren(...(state.present ? this.presenter(context) : []));
    const advice = this.coach.draw(context);
    if (advice) this.parts.heard.textContent = advice;
    explainTerms(this.parts.main, state.lang);
    this.fill();
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
    this.coach.takeFocus();
    this.follow(state);
    this.hintAtMore();
    if (this.keyed) this.announce(context, view, strip);
    this.keyed = false;
  }

  /** @param {boolean} lost */
  unreached(lost) {
    this.parts.lost.hidden = !lost;
    if (!lost) void this.draw();
  }

  /** Fetch the neighbouring heads in advance. @param {import("./frame.js").Context} context */
  prefetch({ kind, server, source, state }) {
    if (!server || !source) return;
    for (const [layer, head] of [
      [state.layer, state.head + 1],
      [state.layer, state.head - 1],
      [state.layer + 1, state.head],
      [state.layer - 1, state.head],
    ])
      if (layer >= 0 && layer < kind.layers && head >= 0 && head < kind.heads)
        source.matrix(kind.kind, layer, head, "weights").catch(() => null); // fetched again when needed
  }

  /** Let the figures grow until they fill their place; while presenting, so that they are seen as a whole. */
  fill() {
    const { main } = this.parts;
    const present = Boolean(this.store.state.present);
    const zoom = main.getBoundingClientRect().width / (main.offsetWidth || 1);
    /** @type {NodeListOf<SVGElement>} */
    const figures = main.querySelectorAll(".scroll > svg.figure");
    const factors = [...figures].map((drawn) => {
      const width = drawn.parentElement?.clientWidth || 1;
      const above = present ? drawn.getBoundingClientRect().top + scrollY + 20 : 0.18 * innerHeight;
      const height = Math.max(0.4 * innerHeight, innerHeight - above) / zoom;
      return growth(drawn, { width, height }, present ? FACTORS.presented : FACTORS.read);
    });
    const together = main.querySelector(".compare") ? Math.min(...factors) : 0; // what is compared has one size
    figures.forEach((drawn, i) => resize(drawn, together || factors[i]));
  }

  /** Show the page in full screen and large type, or as usual. @param {boolean} on */
  present(on) {
    if (on) showFullScreen();
    else leaveFullScreen();
    return this.store.set({ present: on ? 1 : 0 });
  }

  /** @param {import("./frame.js").Context} context */
  presenter(context) {
    const place = this.screens.indexOf(this.screen);
    const moves = { next: () => this.move(1), back: () => this.move(-1), leave: () => this.present(false) };
    return presenterBar(context, { place, count: this.screens.length, ...moves });
  }

  /** The next step of this screen, or else the next screen. @param {1 | -1} by */
  move(by) {
    if (this.screen.moves?.(this.context(), by)) return;
    const next = this.screens[this.screens.indexOf(this.screen) + by];
    if (next) void this.store.set({ screen: next.id });
  }

  /** Redraw a part and keep its scroll positions. @param {HTMLElement} part @param {() => void} redraw */
  keepScroll(part, redraw) {
    const places = [...part.querySelectorAll(".chips, .scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    redraw();
    [...part.querySelectorAll(".chips, .scroll")].forEach(
      (each, i) => places[i] && each.scrollTo(places[i][0], places[i][1]),
    );
  }

  /** On a phone: show on which sides the side bar, which is a row there, goes on. */
  hintAtMore() {
    const { rail } = this.parts;
    const rest = rail.scrollWidth - rail.clientWidth - rail.scrollLeft;
    rail.classList.toggle("more-left", rail.scrollLeft > 4);
    rail.classList.toggle("more-right", rest > 4);
  }

  /**
   * Scroll a new selection into view; an old one stays where the user scrolled it.
   * @param {import("./state/store.js").State} state
   */
  follow(state) {
    const selected = [state.screen, state.kind, state.query, state.step, state.panel, state.stage].join();
    if (selected === this.selected) return;
    this.selected = selected;
    for (const each of document.querySelectorAll(
      ".looks, .skyline [aria-current], .way [aria-current], .chapters [aria-current], .rail [aria-current]",
    )) {
      each.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  /** The precision of the numbers, and a button that saves the trace. @param {import("./frame.js").Context} context */
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
          { id: "save-trace", type: "button", title: t("save.trace.title"), onclick: () => void saveTrace(source) },
          t("save.trace"),
        ),
    );
  }

  /** @param {"svg" | "png" | "csv"} kind */
  async save(kind) {
    const context = this.context();
    if (this.view) await saveFigure(context, this.view, context.t(titleKey(this.screen, context)), kind);
  }

  help() {
    const dialog = keyList(wordsIn(this.store.state.lang), Boolean(this.server), this.screens.length);
    document.body.append(dialog);
    dialog.showModal();
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const target = /** @type {Element} */ (event.target);
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
    if (this.numbers.pressed(event.key, this.screens.length)) return event.preventDefault();
    if (this.store.state.present && this.presented(event.key)) return event.preventDefault();
    const own = this.screen.keys?.[event.key];
    const changes = own ? null : stateChanges(event.key, this.context().state, this.about);
    this.keyed = Boolean(own || changes);
    if (own) own(this.context());
    else if (event.key === "?") this.help();
    else if (event.key === "/" && this.server) {
      this.towards = "text";
      this.store.set({ screen: this.screens[0].id });
    } else if (event.key === "s") void this.save("svg");
    else if (event.key === "Escape") this.store.set(outwards(this.context()) ?? {});
    else if (event.key === "p") void this.present(!this.store.state.present);
    else if (changes) this.store.set(changes);
    else return;
    event.preventDefault();
  }

  /** The keys of a presenter: those of remote controls, too. Returns whether this is one. @param {string} key */
  presented(key) {
    if (["n", "PageDown"].includes(key)) this.move(1);
    else if (["b", "PageUp"].includes(key)) this.move(-1);
    else if (key === "Escape") void this.present(false);
    else return false;
    return true;
  }

  /**
   * Tell screen readers what a key has selected.
   * @param {import("./frame.js").Context} context
   * @param {import("./frame.js").View} view
   * @param {import("./parts/strips.js").Strip} strip
   */
  announce({ t, about, state }, view, { kind, query, row }) {
    const token = row && about[kind.queries].tokens[query];
    const key = row && (state.key < 0 || kind.kind !== state.kind) ? argmax(row) : state.key;
    const looking = token && { query: token.text, key: about[kind.keys].tokens[key].text, weight: fixed(row[key], 2) };
    this.parts.heard.textContent = view.heard ?? (looking ? t("said", looking) : "");
  }
}
