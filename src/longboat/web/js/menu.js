// A button that opens a menu. Arrows move, Escape closes, and the focus returns to the button.

import { roving } from './a11y.js';
import { h, icon } from './dom.js';

/** `isTabStop` is false for a menu in a list: keys of the list open it. */
export function menu(label, actions, { glyph = 'dots', isTabStop = true } = {}) {
  const list = h('div', { class: 'menu', role: 'menu', hidden: true });
  const button = h(
    'button',
    {
      type: 'button',
      class: 'icon-button',
      'aria-haspopup': 'menu',
      'aria-expanded': 'false',
      'aria-label': label,
      title: label,
      tabindex: isTabStop ? null : '-1',
    },
    icon(glyph),
  );
  const whole = h('div', { class: 'menu-holder' }, button, list);
  const close = (focus) => {
    list.hidden = true;
    button.setAttribute('aria-expanded', 'false');
    if (focus) button.focus();
  };
  const open = () => {
    const items = actions().map((action) =>
      h(
        'button',
        {
          type: 'button',
          role: 'menuitem',
          tabindex: '-1',
          class: action.danger ? 'danger' : null,
          onclick: () => {
            close(true);
            action.run();
          },
        },
        action.label,
      ),
    );
    list.replaceChildren(...items);
    list.hidden = false;
    button.setAttribute('aria-expanded', 'true');
    items[0]?.focus();
  };
  button.addEventListener('click', () => (list.hidden ? open() : close(true)));
  whole.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !list.hidden) {
      event.stopPropagation();
      close(true);
    }
  });
  whole.addEventListener('focusout', (event) => {
    if (!whole.contains(event.relatedTarget)) close(false);
  });
  roving(list, '[role=menuitem]');
  return whole;
}
