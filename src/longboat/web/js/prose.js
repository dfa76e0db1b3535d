// A text of the model: at once as it comes, and as rendered Markdown from the first block that is complete.

import { h } from './dom.js';
import { rendered } from './rendering.js';

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
// What may belong to the block before although a blank line stands between: more of a list, or what is indented.
const GOES_ON = /^(?:\s|[-*+] |\d{1,9}[.)] |>|\|)/;

// The beginning of a line that may become such a one.
const MAY_GO_ON = /^(?:\d{1,9}[.)]?|[-*+])$/;

/** Where the last block that is complete ends, at or after `from`; a block begins at `from`. */
export function settled(text, from) {
  let end = from;
  let fence = null;
  let blank = false;
  let at = from;
  while (at < text.length) {
    const stop = text.indexOf('\n', at);
    const line = text.slice(at, stop < 0 ? text.length : stop);
    const mark = FENCE.exec(line)?.[1];
    if (fence) {
      if (mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = null;
    } else {
      if (blank && line.trim() && !GOES_ON.test(line) && (stop >= 0 || !MAY_GO_ON.test(line))) end = at;
      if (mark) fence = mark;
    }
    blank = !fence && !line.trim();
    if (stop < 0) break;
    at = stop + 1;
  }
  return end;
}

export class Prose {
  constructor() {
    this.done = h('div', { class: 'blocks' });
    this.rest = document.createTextNode('');
    this.tail = h('div', { class: 'tail' }, this.rest);
    this.element = h('div', { class: 'prose' }, this.done, this.tail);
    this.text = '';
    this.shown = 0; // characters that stand in `done`
    this.asked = 0; // characters that were sent to be rendered
    this.order = Promise.resolve();
    this.turn = 0;
  }

  /** The text so far; `finished` if no more will come. */
  set(text, finished) {
    if (!text.startsWith(this.text.slice(0, 200)) || text.length < this.text.length) this.restart();
    this.text = text;
    if (finished) return this.finish();
    const end = settled(text, this.asked);
    if (end > this.asked) this.add(this.asked, end);
    this.rest.data = text.slice(this.shown);
  }

  restart() {
    this.turn += 1;
    this.final = undefined;
    this.shown = this.asked = 0;
    this.done.replaceChildren();
  }

  add(from, end) {
    const turn = this.turn;
    this.asked = end;
    const wanted = rendered('markdown', this.text.slice(from, end));
    this.order = this.order.then(async () => {
      const block = await wanted;
      if (turn !== this.turn) return;
      this.done.append(block);
      this.shown = end;
      this.rest.data = this.text.slice(end);
    });
  }

  async finish() {
    if (this.final === this.text) return;
    this.final = this.text;
    const turn = ++this.turn;
    this.rest.data = this.text.slice(this.shown);
    const whole = await rendered('markdown', this.text);
    if (turn !== this.turn) return;
    this.done.replaceChildren(whole);
    this.shown = this.asked = this.text.length;
    this.rest.data = '';
  }
}
