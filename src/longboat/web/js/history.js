// One session's transcript as far as it was read: pages from its end backwards, and what happens since.
// Must not know how it is drawn.

import { Refused } from './api.js';

/** How many characters, as the server counts them: code points. */
function points(text) {
  let number = 0;
  for (const _ of text) number += 1;
  return number;
}

const MOST_PAGES = 20;
const LONGEST_WAIT_MS = 8_000;

export class History {
  /** `read(before)` gives a page; `changed(kind, what)` is told of reset, older, message, removed, delta. */
  constructor(read) {
    this.read = read;
    this.listeners = new Set();
    this.messages = [];
    this.byId = new Map();
    this.results = new Map();
    this.older = null; // cursor of the page before
    this.loaded = false;
    this.waiting = null; // events that came while a page was on its way
    this.lengths = new WeakMap(); // part → its characters
    this.reading = null; // seq of the message where somebody reads, if that is not the end
    this.readings = 0;
    this.starts = 0;
    this.loading = null;
    this.closed = false;
    this.silent = false;
  }

  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(kind, what) {
    if (this.silent) return;
    for (const listener of this.listeners) listener(kind, what);
  }

  /** Read the end again, until it was read. What is before it stays: only the end of a transcript ever changes. */
  load() {
    this.waiting ??= [];
    this.loading ??= this.reload().finally(() => (this.loading = null));
    return this.loading;
  }

  /** The events have a gap: a page that was asked for before it, and events from before it, are not taken any more. */
  restart() {
    this.starts += 1;
    this.waiting = [];
    return this.load();
  }

  /** Nobody wants it any more. */
  close() {
    this.closed = true;
  }

  async reload() {
    const page = await this.insist();
    if (!page) return;
    const { items, next } = page;
    const first = items[0]?.seq ?? 0;
    const kept = first <= this.settledSeq() ? this.messages.filter((message) => message.seq < first) : [];
    this.messages = [];
    this.byId.clear();
    this.results.clear();
    [...kept, ...items].forEach((message) => this.put(message));
    if (!kept.length) this.older = next;
    this.readings += 1;
    this.loaded = true;
    const late = this.waiting;
    this.waiting = null;
    // In their order over the page, whichever of them it knows already: the newest state wins. Told of as a whole.
    this.silent = true;
    late.forEach((event) => this.apply(...event));
    this.silent = false;
    this.tell('reset');
  }

  /** A page as new as the events that follow. The server may be away for a while; a refusal is its last word. */
  async insist() {
    for (let failures = 0; !this.closed; ) {
      const { starts } = this;
      try {
        const page = await this.readEnd();
        if (starts === this.starts) return page;
      } catch (error) {
        if (error instanceof Refused && error.status < 500 && error.status !== 429) {
          this.waiting = null;
          this.loaded = false;
          throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_WAIT_MS, 500 * 2 ** failures)));
        failures += 1;
      }
    }
    return null;
  }

  /** The newest page, and those before it as far as there are gaps to where somebody reads. */
  async readEnd() {
    let { items, next } = await this.read('');
    for (let pages = 1; pages < MOST_PAGES && next && this.reading !== null; pages += 1) {
      if (items[0].seq <= Math.max(this.reading, this.settledSeq())) break;
      const page = await this.read(next);
      items = [...page.items, ...items];
      next = page.next;
    }
    return { items, next };
  }

  /** Up to here all messages are as they will stay. */
  settledSeq() {
    const open = this.messages.findIndex((message) => message.role !== 'user' && !message.finished_at);
    const settled = open < 0 ? this.messages : this.messages.slice(0, open);
    return settled.at(-1)?.seq ?? 0;
  }

  /** Read the page before the oldest one. True if there was one. */
  async loadOlder() {
    if (!this.older || this.loadingOlder) return false;
    this.loadingOlder = true;
    const { readings } = this;
    try {
      const page = await this.read(this.older);
      if (readings !== this.readings) return false; // all was read again meanwhile
      const fresh = page.items.filter((message) => !this.byId.has(message.id));
      fresh.forEach((message) => this.index(message));
      this.messages = [...fresh, ...this.messages].sort((one, other) => one.seq - other.seq);
      this.older = page.next;
      this.tell('older', fresh.length);
      return true;
    } finally {
      this.loadingOlder = false;
    }
  }

  apply(type, change, payload) {
    if (this.waiting) return void this.waiting.push([type, change, payload]);
    if (!this.loaded) return;
    if (type === 'message_delta') this.extend(payload);
    else if (change === 'deleted') this.remove(payload.id);
    else {
      this.put(payload);
      this.tell('message', payload);
    }
  }

  put(message) {
    const known = this.byId.has(message.id);
    this.index(message);
    if (known) {
      this.messages[this.messages.findLastIndex((item) => item.id === message.id)] = message;
      return;
    }
    let place = this.messages.length;
    while (place > 0 && this.messages[place - 1].seq > message.seq) place -= 1;
    this.messages.splice(place, 0, message);
  }

  index(message) {
    this.byId.set(message.id, message);
    for (const part of message.parts) {
      if (part.type === 'tool_result') this.results.set(part.tool_call_id, { part, message });
    }
  }

  remove(id) {
    if (!this.byId.delete(id)) return;
    this.messages = this.messages.filter((message) => message.id !== id);
    this.tell('removed', id);
  }

  /** Something is missing: read it again, but not at every word. */
  mend() {
    this.mending ??= setTimeout(() => {
      this.mending = null;
      this.load().catch(() => {});
    }, 300);
  }

  extend(delta) {
    const message = this.byId.get(delta.message_id);
    const part = message?.parts[delta.part];
    if (!part) return this.mend();
    const key = part.type === 'tool_call' ? 'input' : part.type === 'tool_result' ? 'content' : 'text';
    const have = this.lengths.get(part) ?? points(part[key]);
    const added = [...delta.text];
    if (delta.offset > have) return this.mend();
    if (delta.offset + added.length <= have) return; // known already
    part[key] += added.slice(have - delta.offset).join('');
    this.lengths.set(part, delta.offset + added.length);
    this.tell('delta', { message, part, index: delta.part });
  }
}
