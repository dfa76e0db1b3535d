// One session's transcript as far as it was read: pages from its end backwards, and what happens since.
// Must not know how it is drawn.

/** How many characters, as the server counts them: code points. */
function points(text) {
  let number = 0;
  for (const _ of text) number += 1;
  return number;
}

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
  }

  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(kind, what) {
    for (const listener of this.listeners) listener(kind, what);
  }

  /** Read the newest page, in place of all that is here. */
  async load() {
    if (this.waiting) return this.loading;
    this.waiting = [];
    this.loading = this.reload();
    return this.loading;
  }

  async reload() {
    let late;
    try {
      const page = await this.read('');
      this.messages = [];
      this.byId.clear();
      this.results.clear();
      page.items.forEach((message) => this.put(message));
      this.older = page.next;
      this.loaded = true;
    } finally {
      late = this.waiting;
      this.waiting = null;
    }
    // In their order over the page, whichever of them it knows already: the newest state wins.
    late.forEach((event) => this.apply(...event));
    this.tell('reset');
  }

  /** Read the page before the oldest one. True if there was one. */
  async loadOlder() {
    if (!this.older || this.loadingOlder) return false;
    this.loadingOlder = true;
    try {
      const page = await this.read(this.older);
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
