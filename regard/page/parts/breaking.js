// Changes of a model by dragging across heads, tokens and positions; the output is rewritten meanwhile.

import { hasScale } from "../compute/attention.js";
import { fixed } from "../compute/number.js";
import { changesOf } from "../compute/text.js";
import { describeError } from "../state/requests.js";
import { changes, placesChange } from "../state/changes.js";
import { checkbox, segments } from "./controls.js";
import { h } from "./dom.js";
import { ranked, shares } from "./lists.js";

/** @typedef {import("../frame.js").Context} Context */
/** @typedef {import("../state/store.js").State} State */

/** What can be done to a head, in the order of the buttons. */
export const OPS = ["off", "mean", "freeze", "uniform", "skip"];
const MOST_LABELS = 5;
const SLOW = 300; // milliseconds without an output before it is marked as busy
const FAR = 4; // pixels that a pointer moves before it drags

/**
 * The names of a head's changes in the address.
 * @param {string} kind
 * @param {number} layer
 * @param {number} head
 * @returns {Record<string, string>}
 */
export const named = (kind, layer, head) => ({
  off: `${kind}.${layer}.${head}`,
  mean: `mean.${kind}.${layer}.${head}`,
  freeze: `freeze.${kind}.${layer}.${head}`,
  uniform: `uniform.${kind}.${layer}.${head}`,
  skip: `skip.${kind}.${layer}`,
});

/** The entries of a list in the address. @param {string} list */
const entries = (list) => (list ? list.split(",") : []);

/**
 * What is done to a head; empty if nothing.
 * @param {string} off The list in the address.
 * @param {string} kind
 * @param {number} layer
 * @param {number} head
 */
export function opOf(off, kind, layer, head) {
  const [names, listed] = [named(kind, layer, head), entries(off)];
  return OPS.find((each) => listed.includes(names[each])) ?? "";
}

/**
 * A list with an entry or without it.
 * @param {string} list
 * @param {string} name
 * @param {boolean} on
 * @param {string[]} [instead] Entries that it replaces.
 */
export function withEntry(list, name, on, instead = []) {
  const rest = entries(list).filter((each) => each !== name && !instead.includes(each));
  return (on ? [...rest, name] : rest).join(",");
}

/**
 * An item of the page that a drag can change, as its `data-paint` says: `head.cross.1.3`, `drop.2` or `unplaced.2`.
 * @param {string} item
 */
function parsed(item) {
  const [what, ...place] = item.split(".");
  return { what, kind: place[0], layer: Number(place[1]), head: Number(place[2]), token: Number(place[0]) };
}

/** Whether an item is changed, by the chosen operation. @param {State} state @param {string} item */
export function isPainted(state, item) {
  const { what, kind, layer, head, token } = parsed(item);
  if (what !== "head") return entries(state[what]).includes(`${token}`);
  return opOf(state.off, kind, layer, head) === (state.op || "off");
}

/**
 * The change of the state that paints an item; null if it cannot be painted.
 * @param {State} state
 * @param {string} item
 * @param {boolean} on
 * @param {number} tokens Number of tokens, of which one stays.
 * @returns {Partial<State> | null}
 */
export function painting(state, item, on, tokens) {
  const { what, kind, layer, head, token } = parsed(item);
  if (what === "head") {
    const names = named(kind, layer, head);
    return { off: withEntry(state.off, names[state.op || "off"], on, Object.values(names)) };
  }
  if (what === "drop" && on && entries(state.drop).length + 1 >= tokens) return null;
  return { [what]: withEntry(state[what], `${token}`, on) };
}

/** What a changed head is called. @param {Context} context @param {string} op */
const opWords = ({ t }, op) => (op ? t(`off.is.${op}`) : "");

class Breaking {
  constructor() {
    this.output = h("div", { class: "dock-output", role: "status" });
    this.facts = h("p", { class: "soft number dock-facts" });
    this.undo = h("button", { id: "all-on", type: "button" });
    this.beside = h("button", { id: "beside", type: "button" });
    const buttons = h("div", { class: "dock-buttons" }, this.undo, this.beside);
    this.dock = h("section", { class: "dock" }, this.output, this.facts, buttons);
    /** @type {Context | null} */
    this.context = null;
    this.running = false;
    this.again = false;
    this.count = 0;
    this.undo.addEventListener("click", () => this.change({ off: "", drop: "", unplaced: "" }));
    this.beside.addEventListener("click", () => this.context?.store.set({ screen: "compare", beside: "off" }));
  }

  /** @param {Context} context */
  draw(context) {
    const { t } = context;
    this.context = context;
    this.undo.textContent = t("off.all-on");
    this.beside.textContent = t("off.compare");
    this.dock.setAttribute("aria-label", t("off.output"));
    void this.request();
  }

  /** Change the model, and show that where it is changed. @param {Partial<State>} by */
  change(by) {
    const { store } = this.context;
    if (!store.setQuietly(by)) return;
    this.mark();
    void this.request();
  }

  /** Show on every head and token what is done to it. */
  mark() {
    const { about, store } = this.context;
    const { state } = store;
    const changed = changes(state, about).length > 0;
    for (const button of [this.undo, this.beside]) button.toggleAttribute("disabled", !changed);
    /** @type {NodeListOf<HTMLElement>} */
    const items = document.querySelectorAll("main [data-paint]");
    for (const item of items) {
      const { what, kind, layer, head } = parsed(item.dataset.paint);
      const op = what === "head" ? opOf(state.off, kind, layer, head) : isPainted(state, item.dataset.paint) ? "off" : "";
      item.dataset.op = op;
      item.setAttribute("aria-pressed", String(Boolean(op)));
      if (what === "head") item.setAttribute("aria-label", [item.dataset.label, opWords(this.context, op)].filter(Boolean).join(" · "));
    }
    for (const name of ["no-scale", "no-positions"]) {
      const box = document.getElementById(name);
      if (box instanceof HTMLInputElement) box.checked = entries(state.off).includes(name);
    }
  }

  /** Ask for the output of the current changes; while one request runs, only the latest changes wait. */
  async request() {
    if (this.running) {
      this.again = true;
      return;
    }
    this.running = true;
    const slow = setTimeout(() => this.dock.setAttribute("aria-busy", "true"), SLOW);
    do {
      this.again = false;
      const { about, server, store, t } = this.context;
      const list = changes(store.state, about);
      try {
        const answer = await server.ablate(store.state, { interventions: list.length ? [list] : [] });
        this.show(answer, list.length);
      } catch (problem) {
        const { message, retryAfter } = describeError(problem, t);
        this.output.replaceChildren(h("p", { class: "problem" }, message));
        this.facts.textContent = "";
        if (retryAfter) setTimeout(() => this.request(), 1000 * retryAfter);
      }
    } while (this.again);
    clearTimeout(slow);
    this.dock.removeAttribute("aria-busy");
    this.running = false;
  }

  /** @param {any} answer @param {number} count Number of changes. */
  show({ intact, items: [item] }, count) {
    const { t } = this.context;
    const same = item && !item.labels && item.text === intact.text;
    const change = item && fixed(item.log_prob_of_intact - intact.log_prob, 2);
    this.output.replaceChildren(
      ...(item
        ? [h("p", { class: "soft was" }, `${t("off.intact")}: `, this.plain(intact)), this.written(item, intact)]
        : [this.written(intact, intact)]),
    );
    this.facts.textContent = item
      ? [t("off.without", { count }), same && t("off.same"), t("off.of-intact", { change })].filter(Boolean).join(" · ")
      : `${t("off.hint")} ${t("off.log-prob", { value: fixed(intact.log_prob, 2) })}`;
    this.count += 1;
    this.dock.dataset.answers = String(this.count);
  }

  /** An output as text: the best labels, or what was written. @param {any} outcome */
  plain({ text, labels }) {
    const [best] = labels ? ranked(labels) : [];
    return h("span", { dir: "auto" }, best ? best.name : text);
  }

  /** An output with its changes marked. @param {any} outcome @param {any} before */
  written({ text, labels }, before) {
    const { about, t } = this.context;
    if (labels) return shares(ranked(labels).slice(0, MOST_LABELS), t("classify.labels"));
    const prompt = about.architecture === "decoder" && h("span", { class: "soft" }, about.outputs?.text);
    /** @type {Record<string, "span" | "del" | "ins">} */
    const marks = { same: "span", gone: "del", new: "ins" };
    const parts = changesOf(before.text, text).map((part) => h(marks[part.change], {}, part.text));
    return h("p", { class: "rewritten", dir: "auto" }, prompt, parts);
  }
}

/** @type {Breaking | null} */
let breaking = null;

/** The output of the changed model, at the lower edge of the window. @param {Context} context */
export function dock(context) {
  breaking ??= new Breaking();
  breaking.draw(context);
  return breaking.dock;
}

/**
 * Make a part of the page paintable: a drag across its items changes them as the first one is changed.
 * @param {Context} context
 * @param {HTMLElement} part
 */
export function paintable(context, part) {
  const { about, store } = context;
  const tokens = (about.inputs ?? about.outputs)?.tokens.length ?? 0;
  /** @type {{ item: string, x: number, y: number, on: boolean, done: Set<string> } | null} */
  let drag = null;
  let dragged = false; // whether the click that follows ends a drag
  /** @param {EventTarget | null} node */
  const itemOf = (node) => {
    const found = node instanceof Element ? node.closest("[data-paint]") : null;
    return found && part.contains(found) ? (found.getAttribute("data-paint") ?? "") : "";
  };
  const itemAt = (x, y) => itemOf(document.elementFromPoint(x, y));
  const paint = (item) => {
    if (!drag || !item || drag.done.has(item) || parsed(item).what !== parsed(drag.item).what) return;
    drag.done.add(item);
    const by = painting(store.state, item, drag.on, tokens);
    if (by) breaking?.change(by);
  };
  const move = (event) => {
    if (!drag || (!drag.done.size && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < FAR)) return;
    const item = itemAt(event.clientX, event.clientY);
    if (!drag.done.size && item === drag.item) return; // still a click
    paint(drag.item);
    for (const each of event.getCoalescedEvents?.() ?? []) paint(itemAt(each.clientX, each.clientY));
    paint(item);
  };
  const end = () => {
    dragged = Boolean(drag?.done.size);
    drag = null;
    removeEventListener("pointermove", move);
    setTimeout(() => (dragged = false)); // after the click, if there is one
  };
  part.addEventListener("pointerdown", (event) => {
    const item = itemOf(event.target);
    if (!item || event.button > 0) return;
    drag = { item, x: event.clientX, y: event.clientY, on: !isPainted(store.state, item), done: new Set() };
    addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, end, { once: true });
  });
  part.addEventListener("dragstart", (event) => event.preventDefault());
  part.addEventListener(
    "click",
    (event) => {
      const item = itemOf(event.target);
      const opens = item.startsWith("head.") && !store.state.op; // the head is opened
      if (!item || (opens && !dragged)) return;
      event.preventDefault();
      event.stopPropagation();
      if (dragged) return;
      const by = painting(store.state, item, !isPainted(store.state, item), tokens);
      if (by) breaking?.change(by);
    },
    true,
  );
  requestAnimationFrame(() => breaking?.mark());
  return part;
}

/** What a click on a head does, and changes of the whole model. @param {Context} context */
export function tools({ about, state, store, t }) {
  const without = (name) =>
    checkbox(name, t(`off.${name}`), entries(state.off).includes(name), (on) =>
      breaking?.change({ off: withEntry(store.state.off, name, on) }),
    );
  return [
    segments(
      t("off.op"),
      ["open", ...OPS].map((value) => ({ value, text: t(`off.op.${value}`), title: t(`off.op.${value}.title`) })),
      state.op || "open",
      (op) => store.set({ op: op === "open" ? "" : op }),
    ),
    hasScale(about.settings) && without("no-scale"),
    about.settings.positions !== "none" && without("no-positions"),
  ];
}

/** The tokens that are read, each above its position: both can be dropped. @param {Context} context */
export function tokens({ about, t }) {
  const side = about.inputs ?? about.outputs;
  if (!side) return null;
  const placed = placesChange(about, [0]) !== null;
  const columns = side.tokens.map(({ text }, i) =>
    h(
      "div",
      { class: "droppable" },
      about.inputs && h("button", { id: `drop-${i}`, type: "button", class: "chip", "data-paint": `drop.${i}` }, text),
      placed &&
        h(
          "button",
          { id: `unplaced-${i}`, type: "button", class: "chip place", "data-paint": `unplaced.${i}`, "aria-label": t("off.unplaced", { place: i, token: text }) },
          String(i),
        ),
    ),
  );
  return h(
    "div",
    { class: "dropping-tokens" },
    h("p", { class: "soft" }, t(about.inputs ? (placed ? "off.drop" : "off.drop.tokens") : "off.drop.places")),
    h("div", { class: "chips wrap", role: "group", "aria-label": t("off.drop.tokens") }, columns),
  );
}
