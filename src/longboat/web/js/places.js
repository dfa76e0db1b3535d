// Places for event streams. A browser has six connections to a server, for all tabs together, unless it speaks HTTP/2:
// a stream in each of six tabs would leave none for anything else. So there are a few places, and tabs take turns.
// Must not know what a stream carries.

const NAMES = [0, 1, 2, 3].map((number) => `longboat.place.${number}`);
const TURN_MS = 4_000; // at least, for a tab that somebody sees
const ASK_MS = 1_000;

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
    this.others = new BroadcastChannel('longboat.places');
    this.others.onmessage = () => this.asked();
    this.ask = () => this.waiting && isSeen() && this.others.postMessage('');
    document.addEventListener('visibilitychange', this.ask);
  }

  close() {
    this.others.close();
    document.removeEventListener('visibilitychange', this.ask);
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

  askUntil(signal) {
    return setInterval(() => {
      if (signal.aborted) return;
      this.wait();
      this.ask();
    }, ASK_MS);
  }

  asked() {
    if (this.since === null) return;
    if (!isSeen() || performance.now() - this.since > TURN_MS) this.leave();
  }
}
