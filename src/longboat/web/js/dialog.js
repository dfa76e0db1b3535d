// Modal dialogs that resolve to the answer, or to null. The focus returns by itself.

import { h } from './dom.js';

/** Shows a dialog until it is closed. Resolves to what it returned. */
export function show(dialog) {
  const before = document.activeElement;
  document.body.append(dialog);
  dialog.addEventListener('close', () => dialog.remove());
  // The browser returns the focus to the element that had it, if it still exists.
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener('close', () => {
      giveCaretBack(before);
      resolve(dialog.returnValue);
    }),
  );
}

/** After a dialog with a text field, Chromium returns the focus without the caret, and ignores what is typed. */
export function giveCaretBack(field) {
  if (document.activeElement !== field || !field.matches('input, textarea')) return;
  field.blur();
  field.focus({ preventScroll: true });
}

export async function confirmed(title, text, action = 'OK', { danger = false } = {}) {
  const dialog = h(
    'dialog',
    { class: 'dialog', 'aria-labelledby': 'dialog-title' },
    h(
      'form',
      { method: 'dialog' },
      h('h2', { id: 'dialog-title' }, title),
      h('p', {}, text),
      h(
        'div',
        { class: 'buttons' },
        h('button', { value: '', type: 'submit', autofocus: danger }, 'Cancel'),
        h('button', { value: 'yes', class: danger ? 'danger' : 'primary', autofocus: !danger }, action),
      ),
    ),
  );
  return (await show(dialog)) === 'yes';
}

/** Asks for a line of text. `check` returns an error message or an empty string; `must` hides Cancel. */
export async function asked(
  title,
  { text = '', label, value = '', action = 'OK', check = () => '', must = false } = {},
) {
  const wrong = h('p', { class: 'wrong', role: 'alert', id: 'dialog-wrong' });
  const input = h('input', {
    id: 'dialog-input',
    value,
    autocomplete: 'off',
    autofocus: true,
    'aria-describedby': 'dialog-wrong',
  });
  const form = h(
    'form',
    {
      method: 'dialog',
      onsubmit: (event) => {
        if (event.submitter?.value === 'cancel') return;
        wrong.textContent = check(input.value.trim());
        if (wrong.textContent) event.preventDefault();
      },
    },
    h('h2', { id: 'dialog-title' }, title),
    text && h('p', {}, text),
    h('label', { for: 'dialog-input' }, label),
    input,
    wrong,
    h(
      'div',
      { class: 'buttons' },
      must ? null : h('button', { value: 'cancel', formnovalidate: true, type: 'submit' }, 'Cancel'),
      h('button', { value: 'ok', class: 'primary', type: 'submit' }, action),
    ),
  );
  const dialog = h('dialog', { class: 'dialog', 'aria-labelledby': 'dialog-title' }, form);
  // Enter would press the first button of the form, which is Cancel.
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    form.requestSubmit(form.querySelector('button[value=ok]'));
  });
  if (must) dialog.addEventListener('cancel', (event) => event.preventDefault());
  const chosen = show(dialog);
  input.select();
  return (await chosen) === 'ok' ? input.value.trim() : null;
}
