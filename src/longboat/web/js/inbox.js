// The inbox of all workspaces as this browser knows it: what waits for an answer, and which runs have ended.
// Must not know how it is drawn.

import { server } from './api.js';
import { Stream } from './stream.js';

const RELOAD_MS = 150;
const LARGE_PAGE = 500;

/** Whether an item waits for an answer. */
export const waits = (item) => Boolean(item.permission ?? item.question);

export class Inbox {
  constructor(client_id) {
    this.client_id = client_id;
    this.items = new Map();
    this.next = null; // where the page after the loaded ones begins; what waits is loaded also beyond it
    this.afterFirst = null; // where the page after the first one begins
    this.waiting = 0;
    this.unseen = 0;
    this.newest = null;
    this.changes = 0;
    this.topics = { changed: new Set(), arrived: new Set() };
    this.others = new BroadcastChannel('longboat.inbox');
    this.others.onmessage = () => this.reloadSoon();
    this.stream = new Stream(server.inboxEventsPath(client_id), {
      take: (type, data) => this.take(type, data.payload),
      tell: () => {},
      Place: OnePerBrowser,
    });
    this.reload(); // another tab may have the stream
  }

  /** Subscribes to a topic: changed, or arrived (with an item that is new). */
  on(topic, listener) {
    this.topics[topic].add(listener);
    return () => this.topics[topic].delete(listener);
  }

  tell(topic, what) {
    for (const listener of this.topics[topic]) listener(what);
  }

  close() {
    clearTimeout(this.reloading);
    this.closed = true;
    this.stream.stop();
    this.others.close();
  }

  /** What waits for an answer, then the runs that have ended; newest first within each. */
  list() {
    return [...this.items.values()].sort((one, other) => waits(other) - waits(one) || other.id - one.id);
  }

  /** How much is new to the user or needs an answer. */
  get count() {
    return this.waiting + this.unseen;
  }

  take(type, payload) {
    if (type === 'inbox') this.restart(payload);
    else if (type === 'inbox_change') this.change(payload);
    this.others.postMessage('');
  }

  restart(page) {
    const isOlder = (item) => page.next !== null && Number(item.id) < Number(page.next);
    const older = [...this.items.values()].filter(isOlder);
    const hasPages = older.some((item) => this.isLoaded(item));
    const arrived = this.newest === null ? [] : page.items.filter((item) => Number(item.id) > this.newest);
    this.items = new Map([...older, ...page.items].map((item) => [item.id, item]));
    this.afterFirst = page.next;
    if (!hasPages) this.next = page.next;
    this.settle(page, arrived);
  }

  /** Whether the item is on a loaded page. */
  isLoaded(item) {
    return this.next === null || Number(item.id) >= Number(this.next);
  }

  change({ changed, removed, ...counts }) {
    for (const id of removed) this.items.delete(id);
    for (const item of changed) if (waits(item) || this.isLoaded(item)) this.items.set(item.id, item);
    this.settle(
      counts,
      changed.filter((item) => Number(item.id) > (this.newest ?? 0)),
    );
  }

  settle({ waiting, unseen }, arrived) {
    this.waiting = waiting;
    this.unseen = unseen;
    this.changes += 1;
    this.newest = Math.max(this.newest ?? 0, ...[...this.items.keys()].map(Number));
    this.tell('changed', {});
    for (const item of arrived) this.tell('arrived', item);
    const loaded = [...this.items.values()].filter(waits).length;
    if (loaded !== waiting && this.afterFirst !== null) this.loadWaiting().catch(() => {}); // the next change tries again
  }

  /** Loads what waits on pages after the first one, however far back it is. */
  async loadWaiting() {
    this.loadingWaiting ??= this.readWaiting().finally(() => (this.loadingWaiting = null));
    return this.loadingWaiting;
  }

  async readWaiting() {
    const found = [];
    const { afterFirst: first, changes } = this;
    for (let next = first; next !== null; ) {
      const page = await server.inbox(this.client_id, next, LARGE_PAGE);
      found.push(...page.items.filter(waits));
      next = page.next;
    }
    if (this.closed) return;
    for (const item of this.items.values()) if (waits(item) && Number(item.id) < Number(first)) this.items.delete(item.id);
    for (const item of found) this.items.set(item.id, item);
    this.tell('changed', {});
    if (changes !== this.changes) this.reloadSoon(); // some may have been answered meanwhile
  }

  reloadSoon() {
    clearTimeout(this.reloading);
    this.reloading = setTimeout(() => this.reload(), RELOAD_MS);
  }

  async reload() {
    const page = await server.inbox(this.client_id).catch(() => null);
    if (page && !this.closed) this.restart(page);
  }

  /** Loads the page after the loaded ones. */
  async more() {
    const page = await server.inbox(this.client_id, this.next);
    for (const item of page.items) this.items.set(item.id, item);
    this.next = page.next;
    this.settle(page, []);
  }

  /** The user has seen these, with all their clients. */
  async see(ids) {
    const unseen = ids.filter((id) => this.items.get(id)?.seen === false);
    if (unseen.length) await server.seen({ client_id: this.client_id, ids: unseen.slice(0, 500) });
  }

  seeAll() {
    return server.seen({ client_id: this.client_id, up_to: String(this.newest ?? 0) });
  }

  /** The user looks at this session: what it has to tell is no news. */
  seeSession(session_id) {
    const ids = [...this.items.values()].filter((item) => item.session_id === session_id).map((item) => item.id);
    this.see(ids).catch(() => {}); // the next change tries again
  }
}

/** The place of a stream that all tabs of a browser share: connections are few. Without the Locks API, each has one. */
class OnePerBrowser {
  constructor() {
    this.closing = new AbortController();
  }

  during(work) {
    if (!navigator.locks) return work();
    return navigator.locks.request('longboat.inbox', { signal: this.closing.signal }, work);
  }

  settle() {}

  close() {
    this.closing.abort();
  }
}
