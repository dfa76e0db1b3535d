// Search in a transcript, also in messages that are not on the screen or not loaded yet.
// Marks what it finds with highlights of the browser, so that no text is changed.

import { h, iconButton, perFrame } from './dom.js';
import { plural } from './format.js';

const AGAIN_MS = 500;
const TYPING_MS = 120;
const MOST_MARKS = 2_000;

export class Finder {
  /** `on` has: left() when the bar was closed. */
  constructor(on) {
    this.on = on;
    this.input = h('input', {
      type: 'search',
      id: 'find',
      'aria-label': 'Search this session',
      placeholder: 'Search this session',
      autocomplete: 'off',
      oninput: () => this.typed(),
      onkeydown: (event) => this.key(event),
    });
    this.count = h('span', { class: 'quiet', role: 'status' });
    this.element = h(
      'div',
      { class: 'finder', role: 'search', 'aria-label': 'This session', hidden: true },
      this.input,
      this.count,
      iconButton('up', 'Older match (Enter)', () => this.step(-1)),
      iconButton('down', 'Newer match (Shift+Enter)', () => this.step(1)),
      iconButton('close', 'Close search', () => this.close()),
    );
    this.hits = [];
    this.turn = 0;
    this.markSoon = perFrame(() => this.mark());
    this.changes = new MutationObserver(() => this.markSoon());
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** The transcript to search; null if there is none. */
  show(transcript) {
    if (this.isOpen) this.hide();
    this.transcript = transcript;
  }

  /** Opens the bar. True unless there is nothing to search. */
  open(words = '') {
    if (!this.transcript) return false;
    this.element.hidden = false;
    if (words) this.input.value = words;
    this.input.focus();
    this.input.select();
    this.changes.observe(this.transcript.rows, { childList: true, subtree: true, characterData: true });
    this.search();
    return true;
  }

  /** Closes the bar. True if it was open. */
  close() {
    if (!this.isOpen) return false;
    this.hide();
    this.on.left();
    return true;
  }

  hide() {
    this.turn += 1;
    this.element.hidden = true;
    this.changes.disconnect();
    globalThis.CSS?.highlights?.delete('found');
    this.unmarkRow();
  }

  key(event) {
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    this.step(event.shiftKey ? 1 : -1);
  }

  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.search(), TYPING_MS);
  }

  /** Searches what is loaded at once, then page by page what is older. */
  async search() {
    const turn = ++this.turn;
    const { history } = this.transcript;
    this.words = this.input.value.trim().toLowerCase();
    this.at = null;
    this.look(history);
    this.go(this.hits.at(-1));
    while (this.words && turn === this.turn && history.older) {
      const isRead = await history.loadOlder().catch(() => false);
      if (!isRead) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      if (turn !== this.turn) return;
      this.look(history);
      if (!this.at) this.go(this.hits.at(-1));
    }
  }

  /** Finds the rows that contain the words. Results belong to the row of their call. */
  look(history) {
    const found = this.words ? history.messages.filter((message) => has(message, this.words)) : [];
    const rows = found.map((message) => (message.role === 'tool' ? this.ownerOf(message) : message.id));
    this.hits = [...new Set(rows.filter(Boolean))];
    this.tell(Boolean(this.words && history.older));
    this.markSoon();
  }

  ownerOf(message) {
    const part = message.parts.find((one) => one.type === 'tool_result' && holds(one.content, this.words));
    return part && this.transcript.findOwner(part.tool_call_id);
  }

  tell(more) {
    const place = this.hits.indexOf(this.at) + 1;
    const number = place ? `${place} of ${this.hits.length}` : plural(this.hits.length, 'message');
    this.count.textContent = this.words ? (this.hits.length || !more ? number : '') + (more ? ' Searching…' : '') : '';
  }

  /** Goes to an older (-1) or newer (1) match, and around at the ends. */
  step(by) {
    if (!this.hits.length) return;
    const place = this.hits.indexOf(this.at);
    this.go(this.hits[(place + by + this.hits.length) % this.hits.length]);
  }

  go(id) {
    this.unmarkRow();
    if (!id) return;
    this.at = id;
    const row = this.transcript.reveal(id);
    row?.classList.add('found');
    if (row) unfold(this.transcript, id, this.words);
    this.tell(Boolean(this.transcript.history.older));
    this.mark();
    this.scrollTo(row);
  }

  unmarkRow() {
    this.transcript?.rows.querySelector('.found')?.classList.remove('found');
  }

  /** Marks the words in all rows on the screen. */
  mark() {
    if (!this.isOpen || !globalThis.Highlight) return;
    const ranges = this.words ? rangesIn(this.transcript.rows, this.words) : [];
    CSS.highlights.set('found', new Highlight(...ranges));
  }

  scrollTo(row) {
    if (row) centerAt(this.transcript, row, this.words);
  }
}

/** Puts the first of the words in a row into view, or the row itself. */
export function centerAt(transcript, row, words) {
  const [first] = words ? rangesIn(row, words) : [];
  transcript.center((first ?? row).getBoundingClientRect());
}

/** Opens the parts of a message that contain the words. */
export function unfold(transcript, id, words) {
  const view = transcript.views.get(id);
  const { results } = transcript.history;
  view.message.parts.forEach((part, index) => {
    const content = part.type === 'tool_call' ? results.get(part.id)?.part.content : '';
    if (part.type === 'text' || !(holds(wordsOf(part), words) || holds(content, words))) return;
    view.views[index].card?.group?.set(true);
    const box = view.views[index].element;
    if (box.matches('details')) box.open = true;
  });
}

const holds = (text, words) => Boolean(text) && text.toLowerCase().includes(words);

const wordsOf = (part) => part.text ?? part.input ?? part.content ?? part.detail ?? '';

const has = (message, words) => message.parts.some((part) => holds(wordsOf(part), words));

function rangesIn(place, words) {
  const ranges = [];
  const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < MOST_MARKS) {
    const text = walker.currentNode.data.toLowerCase();
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
      const range = new Range();
      range.setStart(walker.currentNode, at);
      range.setEnd(walker.currentNode, Math.min(at + words.length, walker.currentNode.length));
      if (range.getClientRects().length) ranges.push(range);
    }
  }
  return ranges;
}
