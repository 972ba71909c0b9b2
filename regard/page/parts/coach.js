// The panel below a screen that leads through the tour, or through an exercise, and checks it.

import { solve, solvedExercises } from "../state/score.js";
import { describeError } from "../state/requests.js";
import { h } from "./dom.js";
import { explainTerms } from "./explain.js";
import { begin, checkNumber, obstacle, PRACTICE } from "./practice.js";
import { stateAt, tourOf } from "./tour.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("./practice.js").Task} Task */

const CLOSED = { tour: -1, exercise: "" };

export class Coach {
  constructor() {
    this.node = h("section", { class: "coach", hidden: true });
    // What else sticks to the end of the window leaves room for it.
    const room = () => document.documentElement.style.setProperty("--coach", `${this.node.offsetHeight}px`);
    new ResizeObserver(room).observe(this.node);
    this.drawn = "";
    this.opened = false; // just now
    this.ready = false;
    /** @type {Context | null} The current one: what is checked is what is selected now. */
    this.context = null;
    this.verdict = h("p", { class: "verdict-of", id: "coach-verdict", role: "status" });
  }

  /**
   * Draw the panel, if something else is to be done now: a verdict stays while the user looks around. Returns what a
   * screen reader should say then.
   * @param {Context} context
   * @param {boolean} [ready] Whether its trace is the one that is to be looked at, or that one is still coming.
   */
  draw(context, ready = true) {
    this.ready = ready;
    const hidden = this.node.hidden && this.context !== null;
    this.context = context;
    const { state, screens, server } = context;
    const task = PRACTICE.find(({ id }) => id === state.exercise);
    const tour = tourOf(screens, Boolean(server));
    const place = Math.min(state.tour, tour.length - 1);
    const solved = solvedExercises();
    const shown = [state.lang, place, task?.id, task && solved.has(task.id), obstacleOf(task, context), screens].join();
    this.node.hidden = !task && place < 0;
    if (shown === this.drawn) return "";
    this.drawn = shown;
    this.verdict.textContent = "";
    this.node.setAttribute("aria-label", context.t(task ? "practice" : "learn.tour"));
    const active = document.activeElement;
    const held = active && this.node.contains(active) ? active.id : "";
    this.node.replaceChildren(...(task ? this.exercise(task, solved) : place < 0 ? [] : this.stop(tour, place)));
    explainTerms(this.node, state.lang);
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
    this.opened = hidden && !this.node.hidden;
    return [...this.node.querySelectorAll("h2, p")].map(({ textContent }) => textContent).join(" ");
  }

  /** What was pressed to open the panel is gone, and with it the focus: it goes on here. */
  takeFocus() {
    if (this.opened && document.activeElement === document.body)
      /** @type {HTMLElement | null} */ (this.node.querySelector("button.primary"))?.focus({ preventScroll: true });
    this.opened = false;
  }

  /** @param {string} id @param {string} text @param {() => unknown} onclick @param {object} [more] */
  button(id, text, onclick, more = {}) {
    return h("button", { id: `coach-${id}`, type: "button", onclick, ...more }, text);
  }

  /** The title, with what closes the panel. @param {string} place @param {string} title */
  heading(place, title) {
    const { store, t } = this.context;
    return h(
      "header",
      {},
      h("h2", {}, h("span", { class: "soft number" }, place), " ", title),
      this.button("close", "✕", () => store.set(CLOSED), { "aria-label": t("close"), title: t("close") }),
    );
  }

  /** @param {import("./tour.js").Stop[]} tour @param {number} place */
  stop(tour, place) {
    const { store, t } = this.context;
    const go = (to) => store.set(stateAt(tour, to));
    const last = place === tour.length - 1;
    return [
      this.heading(`${t("learn.tour")} ${place + 1} / ${tour.length}`, t(`tour.${tour[place].id}`)),
      h("p", {}, t(`tour.${tour[place].id}.text`)),
      h(
        "div",
        { class: "under" },
        this.button("back", `◀ ${t("back")}`, () => go(place - 1), { disabled: place === 0 }),
        last
          ? this.button("next", t("tour.end"), () => store.set({ ...CLOSED, screen: "learn" }), { class: "primary" })
          : this.button("next", `${t("next")} ▶`, () => go(place + 1), { class: "primary" }),
      ),
    ];
  }

  /** @param {Task} task @param {Set<string>} solved */
  exercise(task, solved) {
    const { store, t } = this.context;
    const place = PRACTICE.indexOf(task);
    const why = obstacle(task, this.context);
    const rest = [...PRACTICE.slice(place + 1), ...PRACTICE.slice(0, place)];
    const next = rest.find((each) => !solved.has(each.id) && !obstacle(each, this.context));
    const done = solved.has(task.id);
    return [
      this.heading(`${t("practice")} ${place + 1} / ${PRACTICE.length}`, t(`practice.${task.id}`)),
      h("p", {}, t(`practice.${task.id}.text`)),
      why ? h("p", { class: "problem" }, t(why)) : this.answer(task),
      done && h("p", { class: "right" }, `✓ ${t(`practice.${task.id}.why`)}`),
      this.verdict,
      h(
        "div",
        { class: "under" },
        this.button("again", t("practice.go"), () => store.set(begin(task, this.context))),
        this.button("all", t("practice.all"), () => store.set({ ...CLOSED, screen: "learn" })),
        next &&
          this.button("next", `${t("practice.next")} ▶`, () => store.set(begin(next, this.context)), { class: done && "primary" }),
      ),
    ].filter(Boolean);
  }

  /** What the user does to answer. @param {Task} task */
  answer(task) {
    const { t } = this.context;
    if (task.panel) return h("p", { class: "soft" }, t("practice.in-walk"));
    if (task.check) return this.button("check", t("practice.check"), () => this.judge(task), { class: "primary" });
    const field = h("input", { id: "coach-answer", type: "text", class: "brief", inputmode: "decimal", autocomplete: "off", "aria-label": t("walk.hand.answer") });
    const submitted = (event) => {
      event.preventDefault();
      if (!this.ready) return void (this.verdict.textContent = t("loading"));
      const side = checkNumber(task, this.context, field.value);
      if (side === 0) return void this.right(task);
      this.verdict.textContent = t(`walk.hand.${side === null ? "number" : side < 0 ? "small" : "large"}`);
    };
    return h("form", { class: "under", onsubmit: submitted }, field, h("button", { id: "coach-check", class: "primary" }, t("walk.hand.check")));
  }

  /** Check what is selected now. @param {Task} task */
  async judge(task) {
    const { t } = this.context;
    this.verdict.textContent = t(this.ready ? "practice.checking" : "loading");
    if (!this.ready) return;
    try {
      const found = await task.check(this.context);
      if (found === true) return void this.right(task);
      this.verdict.textContent = t(found || "practice.not-yet");
    } catch (problem) {
      this.verdict.textContent = describeError(problem, t).message;
    }
  }

  /** @param {Task} task */
  async right(task) {
    solve(task.id);
    await this.context.store.notify();
    this.verdict.textContent = this.context.t("practice.right");
  }
}

/** @param {Task | undefined} task @param {Context} context */
const obstacleOf = (task, context) => (task ? obstacle(task, context) : "");
