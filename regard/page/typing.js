// When what is being typed is taken: after a pause, and never halfway through a character that is being composed.

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
    if (!(/** @type {InputEvent} */ (event).isComposing)) later();
  });
  field.addEventListener("compositionend", later);
}
