// The text field of a screen. It is created once, so that the text survives every redraw of the page.

import { ANEW } from "../state/store.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */

const PAUSE = 300; // milliseconds without a key after which a text is taken

export class Paper {
  /** @param {() => void} taken Called when the text has changed and was noted. */
  constructor(taken) {
    this.text = h("textarea", { id: "text", rows: 6, spellcheck: "false", dir: "auto" });
    this.clear = h("button", { id: "clear", type: "button" }, "✕");
    this.title = h("span", {});
    this.pane = h(
      "section",
      { class: "pane" },
      h("div", { class: "pane-head" }, this.title, this.clear),
      h("div", { class: "written" }, this.text),
    );
    /** @type {Context | null} */
    this.context = null;
    this.taken = taken;
    typing(this.text, PAUSE, () => this.note());
    this.clear.addEventListener("click", () => {
      this.write("");
      this.text.focus();
    });
  }

  /**
   * The pane, and beside it what is said of the text.
   * @param {HTMLElement} title
   * @param {HTMLElement} output
   * @param {HTMLElement} status
   */
  beside(title, output, status) {
    const said = h("section", { class: "pane said" }, h("div", { class: "pane-head" }, title), output, status);
    return h("div", { class: "panes" }, this.pane, said);
  }

  /** @param {Context} context @param {string} title */
  draw(context, title) {
    const { state, t } = context;
    this.context = context;
    this.title.textContent = title;
    this.text.setAttribute("aria-label", title);
    this.text.setAttribute("placeholder", t("translate.write"));
    this.clear.title = t("translate.clear");
    this.clear.setAttribute("aria-label", t("translate.clear"));
    if (this.text.value.trim() !== state.text.trim()) this.text.value = state.text;
    this.clear.toggleAttribute("disabled", !this.text.value);
  }

  /** Another text than was written. @param {string} text */
  write(text) {
    this.text.value = text;
    this.note();
  }

  note() {
    const { store } = this.context;
    this.clear.toggleAttribute("disabled", !this.text.value);
    if (this.text.value === store.state.text) return;
    store.note({ text: this.text.value, ...ANEW });
    this.taken();
  }
}

/**
 * @param {HTMLTextAreaElement} field
 * @param {number} pause Milliseconds without a key.
 * @param {() => void} taken
 */
export function typing(field, pause, taken) {
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(taken, field.value.trim() ? pause : 0);
  };
  field.addEventListener("input", (event) => {
    clearTimeout(timer); // what was typed before waits for the character, too: the field holds its letters
    if (!event.isComposing) later();
  });
  field.addEventListener("compositionend", later);
}
