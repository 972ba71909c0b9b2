// Presenting: full screen, large type, and a next key. Buttons that share what the page shows.

import { h } from "./dom.js";

/** Full screen, where the browser allows it; large type is shown anyway. */
export function showFullScreen() {
  document.documentElement.requestFullscreen?.().catch(() => null);
}

export function leaveFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen().catch(() => null);
}

/**
 * The buttons at the edge while presenting.
 * @param {import("../frame.js").Context} context
 * @param {{ place: number, count: number, next: () => unknown, back: () => unknown, leave: () => unknown }} given
 */
export function presenterBar({ t }, { place, count, next, back, leave }) {
  const button = (id, text, title, onclick) =>
    h("button", { id, type: "button", title, "aria-label": title, onclick }, text);
  return [
    button("present-back", "‹", t("present.back"), back),
    h("span", { class: "number" }, `${place + 1} / ${count}`),
    button("present-next", "›", t("present.next"), next),
    button("present-leave", "✕", t("present.leave"), leave),
  ];
}

/** Put a text on the clipboard; the second way works without a secure context. @param {string} text */
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = h("textarea", { class: "unseen", readonly: true }, text);
  document.body.append(field);
  if (field instanceof HTMLTextAreaElement) field.select();
  document.execCommand("copy");
  field.remove();
}

/** A button that copies the address of what is shown. @param {import("../frame.js").Context} context */
export function linkButton({ t }) {
  const copied = async () => {
    await copyText(location.href);
    button.textContent = t("copied");
    setTimeout(() => (button.textContent = t("link")), 1500);
  };
  const button = h("button", { id: "link", type: "button", title: t("link.title"), onclick: () => void copied() }, t("link"));
  return button;
}
