// Text of the model: shown as it arrives, and as rendered Markdown once a block is complete.
// The cost of a word must not depend on the length of the text: complete blocks are not touched again, nor are the
// lines of a long unfinished block, except the last ones.

import { h } from './dom.js';
import { LiveText } from './livetext.js';
import { rendered } from './rendering.js';

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
// Lines that may continue the previous block after a blank line: list items, indented lines.
const GOES_ON = /^(?:\s|[-*+] |\d{1,9}[.)] |>|\|)/;

// The start of a line that may become one of those.
const MAY_GO_ON = /^(?:\d{1,9}[.)]?|[-*+])$/;

/** Finds where the blocks of a growing text end. Reads every line once. */
export class Blocks {
  constructor() {
    this.at = 0; // start of the first unread line
    this.end = 0; // end of the last complete block
    this.fence = null;
    this.blank = false;
  }

  /** Where the last complete block of this text ends. */
  take(text) {
    for (;;) {
      const stop = text.indexOf('\n', this.at);
      if (stop < 0) break;
      this.look(text.slice(this.at, stop));
      this.at = stop + 1;
    }
    const line = text.slice(this.at);
    return this.begins(line) && !MAY_GO_ON.test(line) ? this.at : this.end;
  }

  look(line) {
    const mark = FENCE.exec(line)?.[1];
    if (this.fence) {
      if (mark && mark[0] === this.fence[0] && mark.length >= this.fence.length && line.trim() === mark)
        this.fence = null;
    } else {
      if (this.begins(line)) this.end = this.at;
      if (mark) this.fence = mark;
    }
    this.blank = !this.fence && !line.trim();
  }

  /** Whether this line starts a new block. */
  begins(line) {
    return !this.fence && this.blank && line.trim() !== '' && !GOES_ON.test(line);
  }
}

export class Prose {
  constructor() {
    this.done = h('div', { class: 'blocks' });
    this.tail = new LiveText();
    this.element = h('div', { class: 'prose' }, this.done, this.tail.element);
    this.order = Promise.resolve();
    this.turn = 0;
    this.restart();
  }

  /** The text so far; `finished` if no more will come. */
  set(text, finished) {
    if (text.length < this.text.length || !text.startsWith(this.text.slice(0, 200))) this.restart();
    this.text = text;
    if (finished) return this.finish();
    const end = this.blocks.take(text);
    if (end > this.asked) this.add(this.asked, end);
    this.tail.show(text, this.shown);
  }

  restart() {
    this.turn += 1;
    this.text = '';
    this.final = undefined;
    this.blocks = new Blocks();
    this.shown = this.asked = 0; // characters in `done`, and characters sent to be rendered
    this.done.replaceChildren();
    this.tail.clear();
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
      this.tail.show(this.text, end);
    });
  }

  /** Renders the whole text once more, for what spans blocks. Blocks that did not change stay. */
  async finish() {
    if (this.final === this.text) return;
    this.final = this.text;
    const turn = ++this.turn;
    this.tail.show(`${this.text}\n`, this.shown); // shows a last line that was held back
    const whole = await rendered('markdown', this.text);
    if (turn !== this.turn) return;
    replaceChanged(this.done, whole);
    this.shown = this.asked = this.text.length;
    this.tail.clear();
  }
}

/** Replaces the children of `place` from the first one that differs. */
function replaceChanged(place, fresh) {
  let at = place.firstChild;
  while (at && fresh.firstChild && at.isEqualNode(fresh.firstChild)) {
    fresh.firstChild.remove();
    at = at.nextSibling;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
  place.append(fresh);
}
