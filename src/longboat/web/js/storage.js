// What this browser keeps: name, theme, drafts, choices. A browser that refuses storage forgets, and works.

const PREFIX = 'longboat.';

export function recall(key, otherwise = null) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function keep(key, value) {
  try {
    if (value === null || value === undefined) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Full or forbidden.
  }
}
