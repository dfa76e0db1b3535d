// The keyboard of the inbox: moves between items, answers the one that has the focus, and goes back.

import { GRACE_MS, keyAnswer } from './answering.js';

const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
const TEXT = 'input:not([type=radio], [type=checkbox]), textarea, select';
const ALLOW = 'yes'; // typed, with Enter, it allows a dangerous call

export class InboxKeys {
  /** `entries`: id → { element, asks, ask, hint }. `leave()` goes back to where the user was. */
  constructor(list, entries, leave) {
    Object.assign(this, { list, entries, leave, typed: '', movedAt: null });
    this.onKey = (event) => this.key(event);
    document.addEventListener('keydown', this.onKey);
    list.addEventListener('focusin', (event) => this.turnTo(event.target.closest('.inbox-item')));
  }

  close() {
    document.removeEventListener('keydown', this.onKey);
  }

  get current() {
    const item = document.activeElement?.closest('.inbox-item');
    return item ? this.entries.get(item.dataset.id) : null;
  }

  turnTo(item) {
    if (item === this.item) return;
    this.item = item;
    this.movedAt = null;
    this.type('');
  }

  /** The page moved the focus to another item: a key that comes now was meant for the one before. */
  moved() {
    this.movedAt = performance.now();
  }

  key(event) {
    if (event.defaultPrevented || event.isComposing || event.altKey || event.ctrlKey || event.metaKey) return;
    if (document.querySelector('dialog[open]') || !(event.target instanceof Element)) return;
    if (event.key === 'Escape') return this.escape(event);
    if (event.target.matches(TEXT)) return;
    if (event.key in STEPS) this.step(event);
    else if (this.current && (event.key === 'Enter' ? this.enter(event) : this.answer(event.key))) event.preventDefault();
  }

  /** From a field back to its item, from an item back to where the user was. */
  escape(event) {
    event.preventDefault();
    const { current } = this;
    if (current && event.target.matches(TEXT)) current.element.querySelector('a').focus();
    else this.leave();
  }

  step(event) {
    if (event.key.startsWith('Arrow') && event.target.matches('input')) return; // moves between choices
    const items = [...this.list.children];
    const at = items.findIndex((item) => item.contains(event.target));
    const next = at < 0 ? items[0] : items[at + STEPS[event.key]];
    event.preventDefault();
    next?.querySelector('a').focus();
    next?.scrollIntoView({ block: 'nearest' });
  }

  /** Enter sends what is marked or typed; otherwise the link with the focus opens its session. */
  enter(event) {
    const { ask, asks, element } = this.current;
    if (!ask || !event.target.matches('a')) return false;
    if (this.typed === ALLOW) {
      this.type('');
      asks.reply(ask, { answer: 'once' });
      return true;
    }
    if (!element.querySelector('form input:checked')) return false;
    element.querySelector('form').requestSubmit();
    return true;
  }

  answer(key) {
    const { ask, asks } = this.current;
    if (!ask || key.length > 1 || this.isHasty()) return false;
    if (ask.danger) this.type(ALLOW.startsWith(this.typed + key) ? this.typed + key : '');
    const act = keyAnswer(asks, ask, key);
    act?.();
    return Boolean(act);
  }

  isHasty() {
    if (this.movedAt === null || performance.now() - this.movedAt >= GRACE_MS) return false;
    this.movedAt = performance.now();
    return true;
  }

  type(text) {
    this.typed = text;
    const entry = this.entries.get(this.item?.dataset.id);
    if (entry?.ask?.danger) entry.hint.textContent = text === ALLOW ? 'Press Enter to allow this call once.' : entry.told;
  }
}
