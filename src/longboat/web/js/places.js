// Places for event streams. A browser has six connections to a server, for all tabs together, unless it speaks HTTP/2:
// a stream in each of six tabs would leave none for anything else. So there are a few places, and tabs take turns.
// Must not know what a stream carries.

const NAMES = [0, 1, 2, 3].map((number) => `longboat.place.${number}`);
const TURN_MS = 4_000; // at least, for a tab that somebody sees
const LONGEST_TURN_MS = 20_000; // also of one that hears nothing
const ASK_MS = 1_000;
const ASK_HIDDEN_MS = 30_000;

const isSeen = () => document.visibilityState !== 'hidden';

/** Whether places are short. Where a browser cannot count them, it is left to its luck. */
function areShort() {
  const [page] = performance.getEntriesByType('navigation');
  return Boolean(navigator.locks) && !['h2', 'h3'].includes(page?.nextHopProtocol);
}

export class Place {
  /** `wait()` is told that others have them all, `leave()` that the work in it must end: somebody else needs it. */
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

  /** Do the work as soon as there is a place for it, and keep the place for as long as it takes. */
  async during(work) {
    if (!areShort()) return work();
    const waiting = (this.waiting = new AbortController());
    let done = null;
    const begin = () => {
      if (done) return null; // two were free
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

  /** The work has what it came for: from here on its turn counts. */
  settle() {
    this.heardAt ??= performance.now();
  }

  /** One that nobody sees asks seldom: it only wants to know whether there is something to tell of. */
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
