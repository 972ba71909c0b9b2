// Saves figures with what a reader of the file has to know, their numbers, the trace, and the page as one file.

import { csv } from "../compute/number.js";
import { captioned, download, pngBlob, svgText } from "../figures/svg.js";

/** @typedef {import("../frame.js").Context} Context */

/**
 * Save a figure, or its numbers as CSV.
 * @param {Context} context
 * @param {import("../frame.js").View} view
 * @param {string} title
 * @param {"svg" | "png" | "csv"} kind
 */
export async function saveFigure(context, { figure, table }, title, kind) {
  const { palette, source, state } = context;
  const place = source ? [state.kind, state.layer, state.head] : [];
  const name = `${["regard", state.screen, ...place].join("-")}.${kind}`;
  if (kind === "csv") {
    if (table) download(new Blob([csv(table)], { type: "text/csv" }), name);
  } else if (figure && !state.table) {
    const drawn = captioned(figure, caption(context, figure, title), palette);
    const svg = () => new Blob([svgText(drawn, palette.paper)], { type: "image/svg+xml" });
    download(kind === "png" ? await pngBlob(drawn, palette.paper) : svg(), name);
  }
}

/**
 * What a saved figure says about itself: title, sentence, head, and the model.
 * @param {Context} context
 * @param {SVGElement} figure
 * @param {string} title
 */
function caption({ about, server, source, state, t }, figure, title) {
  const texts = source ? [about.inputs, about.outputs].filter(Boolean).map(({ text }) => text) : [];
  const shown = figure.getAttribute("aria-label") ?? "";
  const head = `${t(`kind.${state.kind}.title`)}, ${t("layer")} ${state.layer}, ${t("head.number")} ${state.head}`;
  const place = !source || state.screen === "map" ? shown : shown.includes(title) ? head : shown;
  const model = server?.way(state).model;
  const facts = [place === title ? "" : place, model && t("caption.model", { model }), t("caption.made")];
  return [title, texts.join(" → "), facts.filter(Boolean).join(" · ")].filter(Boolean);
}

const OF_SERVER = ["text", "other", "model", "from", "to", "target", "prefix", "whole", "off", "drop", "unplaced", "present"];

/** What the address says about a saved page, which has one trace. */
function hashForFile() {
  const fields = new URLSearchParams(location.hash.slice(1));
  for (const name of OF_SERVER) fields.delete(name);
  return fields.toString();
}

/**
 * Save the trace and this page as one file that needs no server.
 * @param {Context} context
 * @param {HTMLElement} button
 */
export async function savePage({ about, source, t }, button) {
  button.setAttribute("aria-busy", "true");
  const file = await source.page?.(hashForFile()).catch((problem) => problem);
  button.removeAttribute("aria-busy");
  if (file instanceof Blob) download(file, `regard-${about.hash}.html`);
  else button.textContent = t("save.page.failed");
}

/** Save all numbers for Python. @param {import("../state/source.js").Source} source */
export async function saveTrace(source) {
  const file = await source.file?.();
  if (file) download(file, "trace.safetensors");
}
