// A button that opens a menu. Arrows move, Escape closes, and the focus returns to the button.

import { roving } from './a11y.js';
import { h, icon } from './dom.js';

/** `isTabStop` is false for a menu in a list: keys of the list open it. */
export function menu(label, actions, { glyph = 'dots', isTabStop = true } = {}) {
  const button = h(
    'button',
    { type: 'button', class: 'icon-button', 'aria-label': label, title: label, tabindex: isTabStop ? null : '-1' },
    icon(glyph),
  );
  return openable(button, actions);
}

/**
 * The button with its menu. `actions()` gives them, now or later: `label`, `run`, and if needed `danger`, `disabled`,
 * `checked` (one of several to choose from) and `content` (shown in place of the label).
 */
export function openable(button, actions) {
  const list = h('div', { class: 'menu', role: 'menu', hidden: true });
  button.setAttribute('aria-haspopup', 'menu');
  button.setAttribute('aria-expanded', 'false');
  const whole = h('div', { class: 'menu-holder' }, button, list);
  let opening = 0; // counts, so that a late answer opens nothing that was closed meanwhile
  let isAwaited = false;
  const close = (focus) => {
    opening += 1;
    isAwaited = false;
    list.hidden = true;
    button.setAttribute('aria-expanded', 'false');
    if (focus) button.focus();
  };
  const open = async () => {
    const turn = (opening += 1);
    const found = actions();
    isAwaited = true;
    const wanted = Array.isArray(found) ? found : await found; // what is known is shown at once
    if (turn !== opening) return;
    isAwaited = false;
    const items = wanted.map((action) => item(action, close));
    list.replaceChildren(...items);
    list.hidden = false;
    turnToRoom(list, whole);
    button.setAttribute('aria-expanded', 'true');
    const first = items.find((each) => !each.disabled);
    first?.setAttribute('tabindex', '0'); // the menu may scroll: something in it must be reachable
    first?.focus();
  };
  button.addEventListener('click', () => (list.hidden && !isAwaited ? open() : close(true)));
  whole.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && (isAwaited || !list.hidden)) {
      event.stopPropagation();
      close(true);
    }
  });
  whole.addEventListener('focusout', (event) => {
    if (!whole.contains(event.relatedTarget)) close(false);
  });
  roving(list, '[role^=menuitem]:not([disabled])');
  return whole;
}

/** Opens it upwards if there is more room: what scrolls around it would hide its end. */
function turnToRoom(list, whole) {
  list.classList.remove('up');
  let [top, bottom] = [0, innerHeight];
  for (let around = whole.parentElement; around; around = around.parentElement) {
    if (getComputedStyle(around).overflowY === 'visible') continue;
    const box = around.getBoundingClientRect();
    [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
  }
  const at = whole.getBoundingClientRect();
  const isCut = list.getBoundingClientRect().bottom > bottom;
  list.classList.toggle('up', isCut && at.top - top > bottom - at.bottom);
}

function item(action, close) {
  const isChoice = action.checked !== undefined;
  return h(
    'button',
    {
      type: 'button',
      role: isChoice ? 'menuitemradio' : 'menuitem',
      'aria-checked': isChoice ? String(action.checked) : null,
      tabindex: '-1',
      class: action.danger ? 'danger' : null,
      disabled: Boolean(action.disabled),
      onclick: () => {
        close(true);
        action.run();
      },
    },
    action.content ?? action.label,
  );
}
