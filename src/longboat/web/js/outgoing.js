// The unsent prompts of a session at the end of its transcript: those that are waiting, and those that were refused.

import { h, withCode } from './dom.js';
import { oneLine, plain } from './format.js';

const FLASH_MS = 250; // do not show what is delivered at once

export class Outgoing {
  /** `on` has: takeBack(entry), discard(entry), again(entry), left() when the focused button is gone. */
  constructor(outbox, on) {
    this.outbox = outbox;
    this.on = on;
    this.element = h('ul', { class: 'outgoing', 'aria-label': 'Unsent prompts', hidden: true });
    this.session_id = null;
    this.stop = outbox.listen((kind) => kind === 'changed' && this.draw());
  }

  close() {
    this.stop();
    clearTimeout(this.later);
  }

  show(session_id) {
    this.session_id = session_id;
    this.draw();
  }

  draw() {
    clearTimeout(this.later);
    const all = this.outbox.of(this.session_id);
    const shown = all.filter((entry) => entry.problem || Date.now() - entry.number >= FLASH_MS);
    if (shown.length < all.length) this.later = setTimeout(() => this.draw(), FLASH_MS);
    const key = JSON.stringify(shown.map((entry) => [entry.run_id, entry.problem]));
    if (key === this.drawn) return;
    this.drawn = key;
    const focused = this.element.contains(document.activeElement);
    this.element.hidden = !shown.length;
    this.element.replaceChildren(...shown.map((entry) => this.item(entry)));
    if (focused) (this.element.querySelector('button') ?? { focus: this.on.left }).focus();
    this.onDrawn?.();
  }

  item(entry) {
    const button = (label, run) => h('button', { type: 'button', class: 'small', onclick: () => run(entry) }, label);
    const files = entry.attachments.map((file) => h('span', { class: 'chip' }, plain(file.name)));
    if (!entry.problem)
      return h(
        'li',
        { data: { run: entry.run_id } },
        h('span', { class: 'outgoing-text quiet', role: 'status' }, `Sending “${oneLine(entry.text, 200)}”${entry.choices?.plan ? ', plan first' : ''}…`),
        files,
        button('Undo send', this.on.takeBack),
      );
    return h(
      'li',
      { class: 'refused', data: { run: entry.run_id } },
      h('div', { class: 'said' }, entry.text),
      files,
      h('p', { class: 'why' }, h('strong', {}, 'Not sent.'), ' ', withCode(entry.problem)),
      h(
        'div',
        { class: 'buttons' },
        !entry.dropped && button('Resend', this.on.again),
        button('Edit', this.on.takeBack),
        button('Discard', this.on.discard),
      ),
    );
  }
}
