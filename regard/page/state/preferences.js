// Language and colours that the user chose, for addresses that do not name them, and solved exercises. Some frames
// allow no storage.

const PREFIX = "regard-";

/** @param {"lang" | "theme" | "score"} name */
export function kept(name) {
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return "";
  }
}

/** @param {"lang" | "theme" | "score"} name @param {string} value */
export function keep(name, value) {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // The choice still holds for this view: it is in the address.
  }
}
