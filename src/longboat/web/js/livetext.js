// Text that grows at its end, before the server has rendered it. Code is shown as code as soon as its fence opens.
// The cost of a word must not depend on the length of the text: complete lines are not touched again.

import { h } from './dom.js';

const LONG_PIECE = 1_500;

const FENCE = /^\s*(`{3,}|~{3,})/;
// The start of a line that may become a fence: it is held back until that is clear.
const MAY_FENCE = /^\s*(?:`{0,2}|~{0,2}|`{3,}[^`]*|~{3,}.*)$/;

/** Plain text in pieces: complete lines go into pieces that are not touched again. */
export class Tail {
  /** `kind` is the class of its pieces. */
  constructor(kind = null, element = h('div', { class: 'tail' })) {
    this.element = element;
    this.kind = kind;
    this.clear();
  }

  clear() {
    this.element.replaceChildren();
    this.begin('');
    this.from = 0;
    this.to = 0;
  }

  begin(text) {
    this.last = document.createTextNode(text);
    this.element.append(h('div', { class: this.kind }, this.last));
  }

  /** Shows the text from `from` to its end. */
  show(text, from) {
    if (from !== this.from || text.length < this.to) {
      this.clear();
      this.from = this.to = from;
    }
    if (text.length === this.to) return;
    this.add(text.slice(this.to));
    this.to = text.length;
  }

  add(text) {
    this.last.appendData(text);
    if (this.last.length > LONG_PIECE) this.cut();
  }

  cut() {
    const line = this.last.data.lastIndexOf('\n') + 1;
    if (!line) return;
    const rest = this.last.data.slice(line);
    this.last.deleteData(line, rest.length);
    this.begin(rest);
  }
}

/** Growing Markdown as plain text, but with its code in code blocks. */
export class LiveText {
  constructor() {
    this.element = h('div', { class: 'tail' });
    this.clear();
  }

  clear() {
    this.element.replaceChildren();
    this.begin('div');
    this.fence = null;
    this.from = this.to = this.line = 0; // `to` ends what is shown, `line` starts the last line
  }

  /** Shows the text from `from` to its end. Reads every line once. */
  show(text, from) {
    if (from !== this.from || text.length < this.to) {
      this.clear();
      this.from = this.to = this.line = from;
    }
    for (;;) {
      const stop = text.indexOf('\n', this.line);
      if (stop < 0) break;
      // A line that is shown in part cannot be a fence.
      if (this.to > this.line || !this.turns(text.slice(this.line, stop))) this.add(text.slice(this.to, stop + 1));
      this.line = this.to = stop + 1;
    }
    if (this.to === this.line && MAY_FENCE.test(text.slice(this.line))) return;
    this.add(text.slice(this.to));
    this.to = text.length;
  }

  /** Whether this line opens or closes a code block. */
  turns(line) {
    const mark = FENCE.exec(line)?.[1];
    if (!mark) return false;
    if (!this.fence) {
      if (mark[0] === '`' && line.trim().slice(mark.length).includes('`')) return false;
      this.fence = mark;
      this.begin('pre', { class: 'live-code', tabindex: '0' });
      return true;
    }
    if (mark[0] !== this.fence[0] || mark.length < this.fence.length || line.trim() !== mark) return false;
    this.fence = this.part = null;
    return true;
  }

  add(text) {
    if (!text) return;
    if (!this.part) this.begin('div');
    this.part.add(text);
  }

  begin(tag, props) {
    this.part = new Tail(null, h(tag, props));
    this.element.append(this.part.element);
  }
}
