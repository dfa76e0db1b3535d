// Completion in the prompt: `@` for files, `/` at the start for commands. Arrows select, Enter or Tab accepts.

import { h } from './dom.js';
import { plain } from './format.js';

export class Completion {
  /** `find(kind, word)` resolves to [{value, label, hint}]. */
  constructor(field, find) {
    this.field = field;
    this.find = find;
    this.items = [];
    this.at = 0;
    this.turn = 0;
    this.element = h('ul', {
      class: 'completion',
      role: 'listbox',
      id: 'completion',
      'aria-label': 'Suggestions',
      hidden: true,
    });
    field.setAttribute('aria-controls', 'completion');
    field.setAttribute('aria-autocomplete', 'list');
    field.addEventListener('input', () => this.look());
    field.addEventListener('blur', () => setTimeout(() => document.activeElement !== field && this.hide(), 150));
  }

  get isOpen() {
    return !this.element.hidden;
  }

  word() {
    const before = this.field.value.slice(0, this.field.selectionStart);
    const command = /^\/([\w:.-]*)$/.exec(before);
    if (command) return { kind: 'command', text: command[1], start: 0 };
    const file = /(?:^|\s)@([^\s@]*)$/.exec(before);
    return file ? { kind: 'file', text: file[1], start: before.length - file[1].length - 1 } : null;
  }

  async look() {
    const word = this.word();
    if (!word) return this.hide();
    const turn = ++this.turn;
    const items = await this.find(word.kind, word.text).catch(() => []);
    if (turn !== this.turn) return;
    this.items = items.slice(0, 12);
    this.at = 0;
    if (this.items.length) this.draw();
    else this.hide();
  }

  draw() {
    this.element.hidden = false;
    this.element.replaceChildren(
      ...this.items.map((item, index) =>
        h(
          'li',
          {
            role: 'option',
            id: `completion-${index}`,
            'aria-selected': String(index === this.at),
            onmousedown: (event) => {
              event.preventDefault();
              this.at = index;
              this.take();
            },
          },
          h('span', {}, plain(item.label)),
          item.hint && h('span', { class: 'quiet' }, plain(item.hint)),
        ),
      ),
    );
    this.field.setAttribute('aria-activedescendant', `completion-${this.at}`);
    this.element.children[this.at].scrollIntoView({ block: 'nearest' });
  }

  hide() {
    this.turn += 1;
    this.element.hidden = true;
    this.field.removeAttribute('aria-activedescendant');
  }

  /** True if the key was for the list. */
  key(event) {
    if (!this.isOpen) return false;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      this.at = (this.at + steps[event.key] + this.items.length) % this.items.length;
      this.draw();
    } else if (event.key === 'Enter' && this.isWhole()) {
      this.hide();
      return false;
    } else if (event.key === 'Enter' || event.key === 'Tab') this.take();
    else if (event.key === 'Escape') this.hide();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  /** A command that is typed completely is sent, not completed. */
  isWhole() {
    return this.word()?.kind === 'command' && this.items.some((item) => item.value === this.field.value);
  }

  take() {
    const word = this.word();
    const item = this.items[this.at];
    if (!word || !item) return this.hide();
    const end = this.field.selectionStart;
    this.field.setRangeText(`${item.value} `, word.start, end, 'end');
    this.hide();
    this.field.dispatchEvent(new Event('input', { bubbles: true }));
    this.hide();
  }
}
