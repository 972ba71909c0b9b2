// Going through the steps of a screen, by hand or by itself.

import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */

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
    /** What goes on by itself now. @type {object | null} */
    this.play = null;
  }

  /** Where one is; at the first step if the one that is named is not there. @param {import("../state/store.js").State} state */
  place(state) {
    return Math.max(0, this.names.indexOf(state[this.field]));
  }

  get last() {
    return this.names.length - 1;
  }

  /** @param {import("../state/store.js").Store} store @param {number} by */
  turn(store, by) {
    return this.go(store, Math.min(Math.max(0, this.place(store.state) + by), this.last));
  }

  /** @param {import("../state/store.js").Store} store @param {number} place */
  go(store, place) {
    return store.set({ [this.field]: this.names[place] });
  }

  /**
   * Go on by itself, or stop. A step lasts from when it is there to see: a slow server delays it, and hides none.
   * @param {import("../state/store.js").Store} store
   */
  async toggle(store) {
    const play = (this.play = this.play ? null : {});
    if (play && this.place(store.state) === this.last) store.note({ [this.field]: this.names[0] });
    await store.tell();
    while (play && play === this.play) {
      await new Promise((next) => setTimeout(next, this.pace));
      if (play !== this.play) return;
      if (store.state.screen === this.screen && this.place(store.state) < this.last) await this.turn(store, 1);
      else await this.toggle(store);
    }
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
    const button = (id, text, onclick, more = {}) => h("button", { id, type: "button", onclick, ...more }, text);
    const place = this.place(state);
    const playing = this.play !== null;
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
