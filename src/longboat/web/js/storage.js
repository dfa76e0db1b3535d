// What this browser stores: name, theme, drafts, choices, unsent prompts. Without storage the page works, but forgets.

export const PREFIX = 'longboat.';

/** The stored value, or `otherwise` if it has another type: anything could have written to storage. */
export function recall(key, otherwise = null) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    const value = text === null ? null : JSON.parse(text);
    return value !== null && (otherwise === null || kind(value) === kind(otherwise)) ? value : otherwise;
  } catch {
    return otherwise;
  }
}

const kind = (value) => (Array.isArray(value) ? 'list' : typeof value);

/** Stores a value; null removes it. True if that worked. */
export function keep(key, value) {
  try {
    if (value === null || value === undefined) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
    return true;
  } catch {
    return false; // full or forbidden
  }
}

/** All keys that start with `start`. */
export function keys(start) {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(PREFIX + start))
      .map((key) => key.slice(PREFIX.length));
  } catch {
    return [];
  }
}
