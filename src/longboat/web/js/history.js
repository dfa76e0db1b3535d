// The loaded part of a session's transcript: pages from the end backwards, kept current by events.
// Must not know how it is drawn.

import { Refused } from './api.js';

/** The length in code points, as the server counts. */
function points(text) {
  let number = 0;
  for (const _ of text) number += 1;
  return number;
}

const MOST_PAGES = 20;
const LONGEST_WAIT_MS = 8_000;

export class History {
  /** `read(before)` resolves to a page. Listeners get (kind, what): reset, older, message, removed, delta. */
  constructor(read) {
    this.read = read;
    this.listeners = new Set();
    this.messages = [];
    this.byId = new Map();
    this.results = new Map();
    this.older = null; // cursor of the next older page
    this.loaded = false;
    this.waiting = null; // events that arrived while a page was loading
    this.lengths = new WeakMap(); // part → its length in code points
    this.reading = null; // seq of the message being read, unless the reader is at the end
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

  /** Reloads the end, retrying until it succeeds. Older messages are kept: only the end of a transcript changes. */
  load() {
    this.waiting ??= [];
    this.loading ??= this.reload().finally(() => (this.loading = null));
    return this.loading;
  }

  /** After a gap in the events: discards pages and events that were requested or received before the gap. */
  restart() {
    this.starts += 1;
    this.waiting = [];
    return this.load();
  }

  /** Stops loading and retrying. */
  close() {
    this.closed = true;
  }

  async reload() {
    const page = await this.loadWithRetry();
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
    // Applied in order, even if the page has them already: the newest state wins. Listeners get a single reset.
    this.silent = true;
    late.forEach((event) => this.apply(...event));
    this.silent = false;
    this.tell('reset');
  }

  /** Loads a page that no gap separates from later events. Retries while the server is down; a refusal is final. */
  async loadWithRetry() {
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

  /** The newest page, and older ones until there is no gap to what is being read. */
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

  /** The seq up to which no message will change any more. */
  settledSeq() {
    const open = this.messages.findIndex((message) => message.role !== 'user' && !message.finished_at);
    const settled = open < 0 ? this.messages : this.messages.slice(0, open);
    return settled.at(-1)?.seq ?? 0;
  }

  /** Loads the page before the oldest one. True if there was one. */
  async loadOlder() {
    if (!this.older || this.loadingOlder) return false;
    this.loadingOlder = true;
    const { readings } = this;
    try {
      const page = await this.read(this.older);
      if (readings !== this.readings) return false; // everything was reloaded in the meantime
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

  /** Something is missing: reload, but not for every delta. */
  reloadSoon() {
    this.reloadTimer ??= setTimeout(() => {
      this.reloadTimer = null;
      this.load().catch(() => {});
    }, 300);
  }

  extend(delta) {
    const message = this.byId.get(delta.message_id);
    const part = message?.parts[delta.part];
    if (!part) return this.reloadSoon();
    const key = part.type === 'tool_call' ? 'input' : part.type === 'tool_result' ? 'content' : 'text';
    const have = this.lengths.get(part) ?? points(part[key]);
    const added = [...delta.text];
    if (delta.offset > have) return this.reloadSoon();
    if (delta.offset + added.length <= have) return; // already applied
    part[key] += added.slice(have - delta.offset).join('');
    this.lengths.set(part, delta.offset + added.length);
    this.tell('delta', { message, part, index: delta.part });
  }
}
