// Slots for event streams. Without HTTP/2, a browser opens at most six connections to a server for all tabs together;
// streams in six tabs would leave none for requests. The inbox has one, so there are three slots for workspaces, and
// tabs take turns.
// Must not know what a stream carries.

const NAMES = [0, 1, 2].map((number) => `longboat.place.${number}`);
const TURN_MS = 4_000; // the least that a visible tab gets
const LONGEST_TURN_MS = 20_000; // also for a tab that receives nothing
const ASK_MS = 1_000;
const ASK_HIDDEN_MS = 30_000;

const isSeen = () => document.visibilityState !== 'hidden';

/** Whether connections are limited. Without the Locks API, tabs cannot take turns. */
function areShort() {
  const [page] = performance.getEntriesByType('navigation');
  return Boolean(navigator.locks) && !['h2', 'h3'].includes(page?.nextHopProtocol);
}

export class Place {
  /** Calls `wait()` when all slots are taken, and `leave()` when another tab needs the slot: the work must end. */
  constructor({ wait, leave }) {
    this.wait = wait;
    this.leave = leave;
    this.since = null;
    this.heardAt = null;
    this.others = new BroadcastChannel('longboat.places');
    this.others.onmessage = () => this.asked();
    this.ask = () => this.waiting && this.others.postMessage('');
    this.look = () => isSeen() && this.ask();
    document.addEventListener('visibilitychange', this.look);
  }

  close() {
    this.others.close();
    document.removeEventListener('visibilitychange', this.look);
    this.waiting?.abort();
  }

  /** Runs `work` as soon as a slot is free, and keeps the slot until it is done. */
  async during(work) {
    if (!areShort()) return work();
    const waiting = (this.waiting = new AbortController());
    let done = null;
    const begin = () => {
      if (done) return null; // two slots were free
      waiting.abort();
      this.waiting = null;
      this.since = performance.now();
      this.heardAt = null;
      done = work();
      return done;
    };
    const tries = NAMES.map((name) => navigator.locks.request(name, { signal: waiting.signal }, begin));
    const asking = this.askUntil(waiting.signal);
    await Promise.allSettled(tries);
    clearInterval(asking);
    this.since = null;
    return done;
  }

  /** The stream is connected: its turn is counted from now on. */
  settle() {
    this.heardAt ??= performance.now();
  }

  /** Asks the other tabs for a slot, rarely if this tab is hidden: it only needs to know about notifications. */
  askUntil(signal) {
    let askedAt = performance.now();
    return setInterval(() => {
      if (signal.aborted) return;
      this.wait();
      if (!isSeen() && performance.now() - askedAt < ASK_HIDDEN_MS) return;
      askedAt = performance.now();
      this.ask();
    }, ASK_MS);
  }

  asked() {
    if (this.since === null) return;
    const now = performance.now();
    const isDone = this.heardAt !== null && (!isSeen() || now - this.heardAt > TURN_MS);
    if (isDone || now - this.since > LONGEST_TURN_MS) this.leave();
  }
}
