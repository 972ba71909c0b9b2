// Moves through the steps of a screen, by buttons and keys or automatically.

import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */

export class Player {
  /**
   * @param {string} screen
   * @param {"panel" | "step" | "moment" | "stage"} field The state's field with the current step.
   * @param {number} pace Milliseconds per step.
   */
  constructor(screen, field, pace) {
    this.screen = screen;
    this.field = field;
    this.pace = pace;
    /** Names of the current steps, as used in the state. @type {(string | number)[]} */
    this.names = [0];
    /** Identifies the current playback; null if paused. @type {object | null} */
    this.play = null;
  }

  /** Index of the current step; 0 if the state names none. @param {import("../state/store.js").State} state */
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

  /** Go on by a step; returns whether there is one. @param {Context} context @param {number} by */
  moves({ store }, by) {
    const next = this.place(store.state) + by;
    if (next < 0 || next > this.last) return false;
    void this.go(store, next);
    return true;
  }

  /** @param {import("../state/store.js").Store} store @param {number} place */
  go(store, place) {
    return store.set({ [this.field]: this.names[place] });
  }

  /**
   * Play or pause. The pace counts from when a step is drawn, so a slow server skips none.
   * @param {import("../state/store.js").Store} store
   */
  async toggle(store) {
    const play = (this.play = this.play ? null : {});
    if (play && this.place(store.state) === this.last) store.setQuietly({ [this.field]: this.names[0] });
    await store.notify();
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
