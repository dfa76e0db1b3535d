// Unsent prompts: stored in this browser until the server has them, also across reloads, and delivered one by one in
// order. Knows storage and delivery; must not know how they are drawn.

import { newId, Refused, server } from './api.js';
import { exactly } from './format.js';
import { keep, keys, PREFIX, recall } from './storage.js';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8_000;
const SLOWEST_MS = 120_000; // a connection can die silently
const SLOWEST_RATE = 4; // bytes per millisecond: a large image takes longer
const STALE_MS = 12 * 3_600_000;
/** Statuses after which the same prompt may succeed later. */
const LATER = new Set([401, 408, 425, 429]);
/** How often a healthy server may fail at one prompt before the next prompts are sent. */
const MOST_ERRORS = 5;

export class Outbox {
  /** Entries have: run_id, number, session_id or the place of a session to create, text, attachments, problem, … */
  constructor(workspace) {
    this.workspace = workspace;
    this.prefix = `outbox.${workspace.id}.`;
    this.unkept = new Map(); // those that did not fit into storage
    this.listeners = new Set();
    this.failures = 0;
    this.reason = '';
    this.heard = (event) => this.fromElsewhere(event);
    this.wake = () => this.woken?.();
    addEventListener('storage', this.heard);
    addEventListener('online', this.wake);
    for (const entry of this.entries()) this.holdIfStale(entry);
    this.work();
  }

  close() {
    this.stopped = true;
    removeEventListener('storage', this.heard);
    removeEventListener('online', this.wake);
    this.sending?.abort();
    this.wake();
  }

  /** Calls `listener(kind, entry)` for: changed, made (its session was created), refused. */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(kind, entry) {
    for (const listener of this.listeners) listener(kind, entry);
  }

  /** Old prompts, and those that lost their files, are not sent automatically. */
  holdIfStale(entry) {
    if (entry.taken) return;
    if (entry.dropped) {
      const files = entry.dropped.join(', ');
      const problem = `These attachments were too large to keep in the browser: ${files}. Choose Edit to attach them again.`;
      this.save({ ...entry, problem });
    } else if (Date.now() - entry.number > STALE_MS && !entry.problem)
      this.save({ ...entry, problem: `You wrote this on ${exactly(entry.number)}. Send it now?` });
  }

  // Entries

  /** All entries, in the order in which they were written. */
  entries() {
    const kept = keys(this.prefix)
      .map((key) => whole(recall(key)))
      .filter((entry) => entry && !this.unkept.has(entry.run_id));
    return [...kept, ...this.unkept.values()].sort((one, other) => one.number - other.number);
  }

  /** The entries to show with a session; null for a session that is not created yet. */
  of(session_id) {
    return this.entries().filter((entry) => !entry.taken && (entry.session_id ?? null) === (session_id ?? null));
  }

  /** The place for prompts to a new session: the one that others already wait for, if any. */
  place() {
    return this.entries().find((entry) => !entry.session_id && !entry.problem && !entry.taken)?.place ?? newId();
  }

  find(run_id) {
    return this.entries().find((entry) => entry.run_id === run_id);
  }

  key(entry) {
    return `${this.prefix}${entry.run_id}`;
  }

  save(entry) {
    this.unkept.delete(entry.run_id);
    if (!keep(this.key(entry), entry)) {
      this.unkept.set(entry.run_id, entry);
      const dropped = entry.attachments.map((file) => file.name);
      keep(this.key(entry), { ...entry, attachments: [], dropped });
    }
    this.tell('changed', entry);
  }

  remove(entry) {
    this.unkept.delete(entry.run_id);
    keep(this.key(entry), null);
    this.tell('changed', entry);
  }

  // User actions

  add(prompt, run = { run_id: newId(), tried: false }) {
    const number = Math.max(Date.now(), (this.entries().at(-1)?.number ?? 0) + 1);
    this.save({ ...prompt, ...run, number, problem: null });
    this.work();
  }

  /** Sends a refused prompt again: as a new run, or as the same one if the server may have it. */
  again(entry, changes = {}) {
    const { problem, dropped, taken, errors, unsure, ...prompt } = entry;
    this.remove(entry);
    this.add({ ...prompt, ...changes }, unsure ? { run_id: entry.run_id, tried: true } : undefined);
  }

  /** Removes an entry. If it was sent already, the server may have it: then its run is canceled. */
  takeBack(entry) {
    const now = this.find(entry.run_id);
    if (!now) return false; // it has just been delivered
    if (now.tried && (!now.problem || now.unsure)) {
      this.save({ ...now, taken: true, problem: null, errors: 0 });
      this.work();
    } else this.remove(now);
    return true;
  }

  /** Removes failed entries that the server has after all, so that they are not sent again. */
  seen(isKnown) {
    const run_ids = new Set([...this.unkept.keys(), ...keys(this.prefix).map((key) => key.slice(this.prefix.length))]);
    for (const run_id of run_ids) {
      const entry = isKnown(run_id) && this.find(run_id); // only parsed then: its files may be large
      if (entry && entry.problem && entry.unsure) this.remove(entry);
    }
  }

  fromElsewhere(event) {
    if (!event.key?.startsWith(PREFIX + this.prefix)) return;
    // From the event, not from storage: it may be delivered and removed by now.
    const entry = read(event.newValue);
    if (entry?.session_id && entry.place) this.tell('made', entry);
    this.tell('changed', entry);
    this.work();
  }

  // Delivery

  /** Delivers until nothing is left. */
  async work() {
    if (this.working || this.stopped) return;
    this.working = true;
    while (!this.stopped && this.next()) {
      const done = await oneTabAtATime(`longboat.${this.prefix}`, () => this.step());
      if (!done && !this.stopped) await this.pause();
    }
    this.working = false;
  }

  next() {
    return this.entries().find((entry) => !entry.problem && !entry.dropped);
  }

  /** Sends the first entry. Another tab may have sent it while this one waited for the lock. */
  async step() {
    const entry = this.next();
    if (!entry || this.stopped) return true;
    this.sending = new AbortController();
    const size = entry.attachments.reduce((sum, { data, text }) => sum + (data ?? text ?? '').length, 0);
    const late = setTimeout(() => this.sending.abort(), SLOWEST_MS + size / SLOWEST_RATE);
    try {
      await (entry.taken ? this.cancel(entry) : this.deliver(entry));
      this.failures = 0;
      this.reason = '';
      const now = this.find(entry.run_id);
      // Taken back while it was being sent: it arrived and must be canceled.
      if (now && (entry.taken || !now.taken)) this.remove(now);
      return true;
    } catch (error) {
      return this.failed(entry, error);
    } finally {
      clearTimeout(late);
    }
  }

  async failed(entry, error) {
    const counts = error instanceof Refused && error.status >= 500 && (await isHealthy());
    const now = this.find(entry.run_id);
    if (!now) return true;
    if (counts) {
      const errors = (now.errors ?? 0) + 1;
      if (errors >= MOST_ERRORS) return this.giveUp(now, errors, error);
      this.save({ ...now, errors });
    }
    if (error instanceof Refused && error.status < 500 && !LATER.has(error.status)) {
      if (now.taken) this.remove(now); // there is nothing to cancel
      else this.save({ ...now, problem: error.message });
      if (!now.taken) this.tell('refused', { ...now, problem: error.message });
      return true;
    }
    this.failures += 1;
    const reason = error instanceof Refused ? error.message : '';
    if (reason && reason !== this.reason) this.tell('refused', { ...now, problem: reason });
    this.reason = reason;
    return false;
  }

  /** Keeps the entry visible as failed and continues with the next. */
  giveUp(entry, errors, error) {
    const problem = `Failed ${errors} times. ${error.message}`;
    this.failures = 0;
    if (entry.taken) this.remove(entry);
    else this.save({ ...entry, errors: 0, problem, unsure: entry.tried });
    this.tell('refused', { ...entry, problem: entry.taken ? `The prompt may still run. ${problem}` : problem });
    return true;
  }

  async deliver(entry) {
    const { signal } = this.sending;
    let at = entry;
    if (!at.session_id) at = await this.makeSession(entry, signal);
    if (this.find(entry.run_id)?.taken || !this.find(entry.run_id)) return;
    if (!at.tried) this.save({ ...at, tried: true });
    const { session_id, run_id, text, attachments, choices, command } = at;
    if (command) await this.workspace.shell(session_id, command, run_id, signal);
    else await this.workspace.submit({ session_id, prompt: text, run_id, attachments, ...choices }, signal);
  }

  /** Creates the session, for all prompts that wait for the same new one. */
  async makeSession(entry, signal) {
    const made = await this.workspace.createSession(entry.place, signal);
    for (const other of this.entries())
      if (!other.session_id && other.place === entry.place && !other.problem)
        this.save({ ...other, session_id: made.id });
    const at = { ...entry, session_id: made.id };
    this.tell('made', { ...at, made });
    return at;
  }

  cancel(entry) {
    return this.workspace.cancelRun(entry.run_id, this.sending.signal);
  }

  pause() {
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(this.failures - 1, 5));
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait * (0.7 + 0.3 * Math.random()));
      this.woken = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** The entry, or null if it is not one: anything could have written to storage. */
function whole(entry) {
  const texts = [entry?.run_id, entry?.text];
  const isOne = texts.every((value) => typeof value === 'string') && Number.isFinite(entry.number);
  return isOne && Array.isArray(entry.attachments) ? entry : null;
}

function read(text) {
  try {
    return whole(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Whether the server is healthy although it failed at something. */
async function isHealthy() {
  return server.health().then(
    (health) => health.status === 'ok',
    () => false,
  );
}

/** One tab at a time, if the browser has locks. If not, each tab sends, and the run_id prevents duplicates. */
function oneTabAtATime(name, work) {
  return navigator.locks ? navigator.locks.request(name, work) : work();
}
