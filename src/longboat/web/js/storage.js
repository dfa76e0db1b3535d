// What this browser keeps: name, theme, drafts, choices, prompts on their way. A browser that refuses storage forgets,
// and works.

export const PREFIX = 'longboat.';

/** What was kept, if it is of the same kind as `otherwise`: anybody can write there. */
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

/** True if it is kept now; null takes it away. */
export function keep(key, value) {
  try {
    if (value === null || value === undefined) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
    return true;
  } catch {
    return false; // full or forbidden
  }
}

/** All keys that begin so. */
export function keys(start) {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(PREFIX + start))
      .map((key) => key.slice(PREFIX.length));
  } catch {
    return [];
  }
}
