// Translates a text file line by line; the user drops or opens it, and saves the result.

import { download } from "../figures/svg.js";
import { LatestRequest } from "../state/requests.js";
import { h } from "./dom.js";

/** @typedef {import("../frame.js").Context} Context */

const TOGETHER = 16; // lines per request

/** The text of a file: UTF-8, else GB 18030. @param {ArrayBuffer} bytes */
function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("gb18030").decode(bytes);
  }
}

export class FileTranslation {
  constructor() {
    this.input = h("input", { id: "file", type: "file", accept: ".txt,text/plain", hidden: true });
    this.choose = h("button", { id: "choose-file", type: "button", onclick: () => this.input.click() });
    this.far = h("progress", { id: "file-far", max: 1 });
    this.status = h("span", { class: "soft", id: "file-status", role: "status" });
    this.stop = h("button", { id: "stop-file", type: "button", onclick: () => this.stopped() });
    this.save = h("button", { id: "save-file", type: "button", class: "primary", onclick: () => this.saved() });
    this.body = h(
      "div",
      { class: "under" },
      ...[this.input, this.choose, this.far, this.status, this.stop, this.save],
    );
    this.asking = new LatestRequest();
    this.name = "";
    /** @type {string[]} */
    this.lines = [];
    /** @type {string[]} */
    this.done = [];
    this.problem = "";
    /** @type {Context | null} */
    this.context = null;
    this.input.addEventListener("change", () => {
      if (this.input.files?.[0]) void this.take(this.input.files[0]);
      this.input.value = ""; // so that the same file can be chosen again
    });
  }

  /** Accept files that are dropped on an element. @param {HTMLElement} element */
  listen(element) {
    const carried = (event) => event.dataTransfer?.types.includes("Files");
    const over = (on) => element.classList.toggle("dropping", on);
    element.addEventListener("dragover", (event) => {
      if (!carried(event)) return;
      event.preventDefault();
      over(true);
    });
    element.addEventListener("dragleave", () => over(false));
    element.addEventListener("drop", (event) => {
      if (!carried(event)) return;
      event.preventDefault();
      over(false);
      const file = event.dataTransfer?.files[0];
      if (file) void this.take(file);
    });
  }

  /** @param {Context} context */
  draw(context) {
    this.context = context;
    const { t } = context;
    this.choose.textContent = t("file.choose");
    this.stop.textContent = t("generate.stop");
    this.show();
  }

  /** Translate a file with the current model and direction. @param {File} file */
  async take(file) {
    const { server, store, t } = this.context;
    const state = { ...store.state };
    const text = textOf(await file.arrayBuffer());
    this.asking.stop();
    [this.name, this.lines, this.done] = [file.name, text.replace(/\r?\n$/, "").split(/\r?\n/), []];
    await this.asking.run(
      async (signal) => {
        this.problem = ""; // after a retry, continue with the remaining lines
        this.show();
        // One direction for the whole file: a line of digits has no language.
        const way = await server.direction(state, text);
        while (this.done.length < this.lines.length) {
          const some = this.lines.slice(this.done.length, this.done.length + TOGETHER);
          const translated = await server.translateAll(state, some, way, signal);
          if (signal.aborted) return;
          this.done.push(...translated);
          this.show();
        }
      },
      (problem) => {
        this.problem = problem;
        this.show();
      },
      t,
    );
  }

  stopped() {
    this.asking.stop();
    this.lines = this.done = [];
    this.show();
  }

  saved() {
    const name = this.name.replace(/(\.\w+)?$/, (end) => `_translated${end || ".txt"}`);
    download(new Blob([`${this.done.join("\n")}\n`], { type: "text/plain" }), name);
  }

  show() {
    const { t } = this.context;
    const [done, of] = [this.done.length, this.lines.length];
    this.far.hidden = this.stop.hidden = !of || done === of;
    this.far.setAttribute("value", String(of && done / of));
    this.save.hidden = !of || done < of;
    this.save.textContent = t("file.save");
    this.status.className = this.problem ? "problem" : "soft";
    this.status.textContent =
      this.problem || (of ? t("file.far", { name: this.name, done, of }) : t("file.drop"));
  }
}
