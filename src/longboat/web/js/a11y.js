// Keyboard and screen reader support: announcements, lists with arrow keys, drawers that Escape closes.

import { Unreachable } from './api.js';
import { byId, h } from './dom.js';

/** Announced at the next pause. Never used for each word of an answer. */
export const say = (text) => put('polite', text);
/** Announced at once: someone must answer. */
export const alertTo = (text) => put('assertive', text);

function put(id, text) {
  const region = byId(id);
  // Screen readers repeat the same text only if it is a new node.
  region.replaceChildren(h('p', {}, text.slice(0, 400)));
}

/** One tab stop for a whole list; arrows, Home and End move within it. `selector` finds its items; → opens their menu. */
export function roving(list, selector) {
  list.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowRight' && event.target.matches(selector)) openMenu(event);
    const items = [...list.querySelectorAll(selector)].filter((item) => item.offsetParent !== null);
    const at = items.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (at < 0 || next === undefined || !items[next]) return;
    event.preventDefault();
    items.forEach((item) => (item.tabIndex = -1));
    items[next].tabIndex = 0;
    items[next].focus();
  });
}

function openMenu(event) {
  const button = event.target.parentElement.querySelector('[aria-haspopup=menu]');
  if (!button) return;
  event.preventDefault();
  button.focus();
  button.click();
}

/** A side panel that a button opens on narrow screens. */
export class Drawer {
  constructor(element, button) {
    this.element = element;
    this.button = button;
    element.tabIndex = -1;
    this.inside = () => getComputedStyle(button).display !== 'none';
    button.addEventListener('click', () => this.set(!this.isOpen));
    document.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || !this.isOpen || !this.inside() || event.defaultPrevented) return;
      event.preventDefault();
      this.set(false);
    });
    this.set(false);
  }

  get isOpen() {
    return this.element.classList.contains('open');
  }

  set(open) {
    const was = this.isOpen;
    this.element.classList.toggle('open', open);
    this.button.setAttribute('aria-expanded', String(open));
    document.body.classList.toggle('drawer-open', Boolean(document.querySelector('.drawer.open')));
    if (!this.inside()) return;
    // Not a field in it: on a phone that would open the keyboard.
    if (open) this.element.focus({ preventScroll: true });
    else if (was && (this.element.contains(document.activeElement) || document.activeElement === document.body))
      this.button.focus();
  }
}

/** A short message at the top of the page, with one button if `action` has its `label` and what to `run`. */
export function toast(text, kind = 'info', action = null) {
  const run = () => {
    box.remove();
    action.run();
  };
  const button = action && h('button', { type: 'button', class: 'small', onclick: run }, action.label);
  const box = h('div', { class: `toast ${kind}` }, h('p', {}, text), button);
  byId('toasts').append(box);
  setTimeout(() => box.remove(), action ? SHOWN_MS.action : SHOWN_MS[kind]);
}

/** Why something failed. While the banner says that the server is away, no toast repeats it. */
export function toastError(error) {
  if (error instanceof Unreachable && byId('banner')?.hidden === false) return say(error.message);
  return toast(error.message, 'error');
}

const SHOWN_MS = { info: 5000, error: 9000, action: 15_000 };
