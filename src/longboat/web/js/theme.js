// Light, dark, or the system setting.

import { byId, icon } from './dom.js';
import { openable } from './menu.js';
import { keep, recall } from './storage.js';

const dark = matchMedia('(prefers-color-scheme: dark)');
const THEMES = { '': 'System', light: 'Light', dark: 'Dark' };

const chosen = () => (recall('theme', '') in THEMES ? recall('theme', '') : '');

function apply() {
  const theme = chosen();
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const button = byId('theme');
  const label = `Theme: ${THEMES[theme].toLowerCase()}`;
  button.replaceChildren(icon((theme || (dark.matches ? 'dark' : 'light')) === 'dark' ? 'moon' : 'sun'));
  button.setAttribute('aria-label', label);
  button.title = label;
}

export function startTheme() {
  const button = byId('theme');
  const place = button.nextSibling;
  const { parentNode } = button;
  const choose = (theme) => {
    keep('theme', theme || null);
    apply();
  };
  const holder = openable(button, () =>
    Object.entries(THEMES).map(([theme, label]) => ({
      label,
      checked: theme === chosen(),
      run: () => choose(theme),
    })),
  );
  parentNode.insertBefore(holder, place);
  apply();
  dark.addEventListener('change', apply);
}
