// The text field of a screen. It is created once, so that the text survives every redraw of the page.

import { NEW_TEXT } from "../state/store.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */

export class TextField {
  /**
   * @param {(steady?: boolean) => void} taken Called when the text has changed, and now and then during steady typing.
   * @param {number} [pause] Milliseconds without a key before the text counts as changed.
   * @param {HTMLElement} [mirror] Drawn behind the text.
   */
  constructor(taken, pause = 300, mirror = undefined) {
    this.text = h("textarea", { id: "text", rows: 6, spellcheck: "false", dir: "auto" });
    this.clear = h("button", { id: "clear", type: "button" }, "✕");
    this.title = h("span", {});
    this.pane = h(
      "section",
      { class: "pane" },
      h("div", { class: "pane-head" }, this.title, this.clear),
      h("div", { class: "written" }, mirror, this.text),
    );
    /** @type {Context | null} */
    this.context = null;
    this.taken = taken;
    this.unsettled = false;
    onTyping(this.text, pause, (steady) => this.note(steady));
    this.clear.addEventListener("click", () => {
      this.write("");
      this.text.focus();
    });
  }

  /**
   * The pane with the text field beside a pane for the output.
   * @param {HTMLElement} title
   * @param {HTMLElement} output
   * @param {HTMLElement} status
   */
  beside(title, output, status) {
    const outputPane = h("section", { class: "pane said" }, h("div", { class: "pane-head" }, title), output, status);
    return h("div", { class: "panes" }, this.pane, outputPane);
  }

  /**
   * @param {Context} context
   * @param {string} title
   * @param {string} [does] What the model does: key of the label and the placeholder.
   */
  draw(context, title, does = "") {
    const { state, t } = context;
    this.context = context;
    this.title.textContent = title;
    this.text.setAttribute("aria-label", does ? t(`${does}.text`) : title);
    this.text.setAttribute("placeholder", t(`${does || "translate"}.write`));
    this.clear.title = t("translate.clear");
    this.clear.setAttribute("aria-label", t("translate.clear"));
    if (this.text.value.trim() !== state.text.trim()) this.text.value = state.text;
    this.clear.toggleAttribute("disabled", !this.text.value);
  }

  /** Replace the text. @param {string} text */
  write(text) {
    this.text.value = text;
    this.note();
  }

  /** @param {boolean} [steady] Whether the user goes on typing. */
  note(steady = false) {
    const { store } = this.context;
    this.clear.toggleAttribute("disabled", !this.text.value);
    const isNew = this.text.value !== store.state.text;
    if (isNew) store.setQuietly({ text: this.text.value, ...NEW_TEXT });
    if (!isNew && (steady || !this.unsettled)) return;
    this.unsettled = steady; // after a pause, the same text is taken once more
    this.taken(steady);
  }
}

const STEADY = 600; // milliseconds of typing without a pause

/**
 * Call `taken` after a pause in typing, and during steady typing now and then; but never while an input method
 * composes a character.
 * @param {HTMLTextAreaElement} field
 * @param {number} pause Milliseconds without a key.
 * @param {(steady: boolean) => void} taken
 */
function onTyping(field, pause, taken) {
  let timer = 0;
  let since = 0; // when typing began, or was last taken
  const later = () => {
    clearTimeout(timer);
    const now = performance.now();
    since ||= now;
    if (now - since >= STEADY) {
      since = now;
      taken(true);
    }
    const paused = () => {
      since = 0;
      taken(false);
    };
    timer = setTimeout(paused, field.value.trim() ? pause : 0);
  };
  field.addEventListener("input", (/** @type {InputEvent} */ event) => {
    clearTimeout(timer); // the field now holds the letters of an unfinished character
    if (!event.isComposing) later();
  });
  field.addEventListener("compositionend", later);
}
