// Going through the steps of a screen, by hand or by itself.

import { h } from "./dom.js";

/** @typedef {import("./frame.js").Context} Context */

export class Player {
  /**
   * @param {string} screen
   * @param {"panel" | "step" | "moment"} field Of the state: where one is.
   * @param {number} pace Milliseconds for a step.
   */
  constructor(screen, field, pace) {
    this.screen = screen;
    this.field = field;
    this.pace = pace;
    /** Of the steps that were drawn last, as the state names them. @type {(string | number)[]} */
    this.names = [0];
    this.timer = 0;
  }

  /** Where one is; at the first step if the one that is named is not there. @param {import("./store.js").State} state */
  place(state) {
    return Math.max(0, this.names.indexOf(state[this.field]));
  }

  get last() {
    return this.names.length - 1;
  }

  /** @param {import("./store.js").Store} store @param {number} by */
  turn(store, by) {
    this.go(store, Math.min(Math.max(0, this.place(store.state) + by), this.last));
  }

  /** @param {import("./store.js").Store} store @param {number} place */
  go(store, place) {
    store.set({ [this.field]: this.names[place] });
  }

  /** Go on by itself, or stop. @param {import("./store.js").Store} store */
  toggle(store) {
    if (this.timer) this.stop();
    else {
      if (this.place(store.state) === this.last) this.go(store, 0);
      this.timer = setInterval(() => this.tick(store), this.pace);
    }
    store.tell();
  }

  /** @param {import("./store.js").Store} store */
  tick(store) {
    if (store.state.screen === this.screen && this.place(store.state) < this.last) {
      this.turn(store, 1);
      return;
    }
    this.stop();
    store.tell();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
  }

  /** @returns {Record<string, (context: Context) => void>} */
  get keys() {
    return {
      ArrowLeft: ({ store }) => this.turn(store, -1),
      ArrowRight: ({ store }) => this.turn(store, 1),
      " ": ({ store }) => this.toggle(store),
    };
  }

  /** Back, play, next. @param {Context} context */
  buttons({ state, store, t }) {
    const button = (
      /** @type {string} */ id,
      /** @type {string} */ text,
      /** @type {() => void} */ onclick,
      more = {},
    ) => h("button", { id, type: "button", onclick, ...more }, text);
    const place = this.place(state);
    const playing = this.timer > 0;
    return [
      button("back", `◀ ${t("back")}`, () => this.turn(store, -1), { disabled: place === 0 }),
      button("play", playing ? `❚❚ ${t("pause")}` : `▶ ${t("play")}`, () => this.toggle(store), {
        "aria-pressed": String(playing),
      }),
      button("next", `${t("next")} ▶`, () => this.turn(store, 1), {
        disabled: place === this.last,
        class: "primary",
      }),
    ];
  }
}
