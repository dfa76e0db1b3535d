// The command palette: actions, sessions and slash commands in one list that narrows as you type.

import { giveCaretBack, show } from './dialog.js';
import { h } from './dom.js';
import { plain } from './format.js';

const MOST_SHOWN = 40;
const TYPING_MS = 120;

/** Items are {label, hint, keys, kind, run}. */
export class Palette {
  /** `on` has: actions() → items, commands(word) and sessions(word) → promises of items. */
  constructor(on) {
    this.on = on;
    this.items = [];
    this.at = 0;
    this.turn = 0;
  }

  open() {
    this.input = h('input', {
      type: 'text',
      role: 'combobox',
      'aria-label': 'Find an action, a session or a command',
      'aria-expanded': 'true',
      'aria-controls': 'palette-list',
      'aria-autocomplete': 'list',
      placeholder: 'Find an action, a session or a command',
      autocomplete: 'off',
      oninput: () => this.search(),
      onkeydown: (event) => this.key(event),
    });
    this.list = h('ul', { role: 'listbox', id: 'palette-list', 'aria-label': 'Results' });
    this.none = h('p', { class: 'quiet', hidden: true, role: 'status' }, 'Nothing found.');
    this.dialog = h(
      'dialog',
      { class: 'dialog palette', 'aria-label': 'Command palette', onclick: (event) => this.clicked(event) },
      this.input,
      this.list,
      this.none,
    );
    this.before = document.activeElement;
    show(this.dialog);
    this.search();
  }

  /** A click beside the palette closes it. */
  clicked(event) {
    const box = this.dialog.getBoundingClientRect();
    const isInside = event.clientY >= box.top && event.clientY <= box.bottom && event.clientX >= box.left;
    if (event.target === this.dialog && !(isInside && event.clientX <= box.right)) this.dialog.close();
  }

  /** Shows matching actions at once, then commands and sessions as they come. */
  search() {
    const turn = ++this.turn;
    const word = this.input.value.trim();
    const actions = word.startsWith('/') ? [] : this.on.actions().filter((item) => fits(item.label, word));
    this.at = 0;
    this.isWhole = this.isTaken = false;
    this.show(actions);
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.searchMore(turn, word, actions), TYPING_MS);
  }

  async searchMore(turn, word, actions) {
    const [commands, sessions] = await Promise.all([
      this.on.commands(word.replace(/^\//, '')).catch(() => []),
      word.startsWith('/') ? [] : this.on.sessions(word).catch(() => []),
    ]);
    if (turn !== this.turn || !this.dialog.open) return;
    this.isWhole = true;
    this.show([...actions, ...sessions, ...commands]);
    if (this.isTaken) this.take(0);
  }

  show(items) {
    this.items = items.slice(0, MOST_SHOWN);
    this.none.hidden = items.length > 0 || !this.isWhole;
    this.draw();
  }

  draw() {
    this.list.replaceChildren(
      ...this.items.map((item, index) =>
        h(
          'li',
          {
            role: 'option',
            id: `palette-${index}`,
            'aria-selected': String(index === this.at),
            onclick: () => this.take(index),
          },
          h('span', { class: 'palette-label' }, plain(item.label)),
          item.hint && h('span', { class: 'quiet' }, plain(item.hint)),
          h('span', { class: 'palette-kind quiet' }, item.keys ? h('kbd', {}, item.keys) : item.kind),
        ),
      ),
    );
    if (this.items.length) this.input.setAttribute('aria-activedescendant', `palette-${this.at}`);
    else this.input.removeAttribute('aria-activedescendant');
    this.list.children[this.at]?.scrollIntoView({ block: 'nearest' });
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.items.length) this.at = (this.at + step + this.items.length) % this.items.length;
    else if (event.key === 'Enter' && !event.isComposing) this.enter();
    else return;
    event.preventDefault();
    if (step) this.draw();
  }

  /** Takes the selected item, or the first one that comes. */
  enter() {
    if (this.items.length) this.take(this.at);
    else this.isTaken = true;
  }

  take(index) {
    const item = this.items[index];
    if (!item) return;
    this.dialog.close();
    giveCaretBack(this.before);
    item.run();
  }
}

/** Whether all words occur, in any order. */
const fits = (label, word) =>
  word
    .toLowerCase()
    .split(/\s+/)
    .every((piece) => label.toLowerCase().includes(piece));
