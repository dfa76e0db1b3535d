// The keyboard: finds the action of a key, and shows the list of keys.

import { show } from './dialog.js';
import { h } from './dom.js';
import { actionOf, KEYS } from './keys.js';

/** Calls `run(action)` for a key that nothing else used; it returns true if there was something to do. */
export function startKeyboard(run) {
  // On the window: whatever is open has had its turn by then.
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || !(event.target instanceof Element)) return;
    if (document.querySelector('dialog[open]')) return;
    const action = actionOf(event);
    if (action && run(action, event.target)) event.preventDefault();
  });
}

export function showKeys() {
  const groups = [...new Set(KEYS.map(([, , where]) => where))];
  const dialog = h(
    'dialog',
    { class: 'dialog key-list', 'aria-labelledby': 'dialog-title' },
    h(
      'form',
      { method: 'dialog' },
      h('h2', { id: 'dialog-title' }, 'Keys'),
      groups.map((where) => [
        h('h3', {}, where),
        h(
          'dl',
          {},
          KEYS.filter((row) => row[2] === where).map(([, keys, , what]) =>
            h('div', {}, h('dt', {}, h('kbd', {}, keys)), h('dd', {}, what)),
          ),
        ),
      ]),
      h('p', { class: 'quiet' }, 'On a Mac, Cmd works like Ctrl.'),
      h('div', { class: 'buttons' }, h('button', { class: 'primary', autofocus: true }, 'Close')),
    ),
  );
  show(dialog);
  dialog.scrollTop = 0; // the focused button is at the end
}
