// Light, dark, or the system setting.

import { byId, icon } from './dom.js';
import { keep, recall } from './storage.js';

const dark = matchMedia('(prefers-color-scheme: dark)');

function apply() {
  const chosen = recall('theme', '');
  const isDark = chosen ? chosen === 'dark' : dark.matches;
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  const button = byId('theme');
  const label = isDark ? 'Switch to light mode' : 'Switch to dark mode';
  button.replaceChildren(icon(isDark ? 'sun' : 'moon'));
  button.setAttribute('aria-label', label);
  button.title = label;
  return isDark;
}

export function startTheme() {
  apply();
  dark.addEventListener('change', apply);
  byId('theme').addEventListener('click', () => {
    const wanted = apply() ? 'light' : 'dark';
    keep('theme', wanted === (dark.matches ? 'dark' : 'light') ? null : wanted);
    apply();
  });
}
