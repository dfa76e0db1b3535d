// The event stream: reconnects for as long as the page is open, and resumes where it left off.
// Knows frames and cursors; must not know what an event means.

import { Place as TurnTaking } from './places.js';

const SILENCE_MS = 40_000; // the server sends something every 15 s
const LONGEST_WAIT_MS = 8_000;

export class Stream {
  /**
   * Calls `take(type, data)` for every event, and `tell(state, detail)`: connecting, live, turns, waiting, refused.
   * `Place` decides when it may connect.
   */
  constructor(path, { take, tell, Place = TurnTaking }) {
    this.path = path;
    this.take = take;
    this.tell = tell;
    this.cursor = null;
    this.failures = 0;
    this.stopped = false;
    this.place = new Place({ wait: () => this.tell('turns'), leave: () => this.giveWay() });
    this.retry = () => this.wake?.();
    addEventListener('online', this.retry);
    document.addEventListener('visibilitychange', this.retry);
    this.run();
  }

  stop() {
    this.stopped = true;
    this.place.close();
    removeEventListener('online', this.retry);
    document.removeEventListener('visibilitychange', this.retry);
    this.abort?.abort();
    this.wake?.();
  }

  async run() {
    while (!this.stopped) {
      this.gaveWay = false;
      try {
        await this.place.during(() => this.connect());
      } catch (error) {
        if (error.status) return this.stopped || this.tell('refused', error.status);
      }
      if (this.gaveWay) continue;
      this.failures += 1;
      if (!this.stopped) await this.pause();
    }
  }

  /** Another tab needs the connection. The cursor brings what this one misses. */
  giveWay() {
    this.gaveWay = true;
    this.abort.abort();
  }

  async connect() {
    if (this.stopped) return;
    this.tell(this.failures ? 'reconnecting' : 'connecting');
    this.abort = new AbortController();
    const headers = { accept: 'text/event-stream', ...(this.cursor && { 'last-event-id': this.cursor }) };
    const watch = new Watch(() => this.abort.abort());
    try {
      const response = await fetch(this.path, { headers, signal: this.abort.signal, cache: 'no-store' });
      if ([400, 401, 403, 404, 421].includes(response.status))
        throw Object.assign(new Error(), { status: response.status });
      if (!response.ok) throw new Error(`answered ${response.status}`);
      await this.read(response.body.getReader(), watch);
    } finally {
      watch.stop();
      this.abort.abort();
    }
  }

  async read(reader, watch) {
    const frames = new Frames((frame) => this.receive(frame));
    const decoder = new TextDecoder();
    let first = true;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      watch.heard();
      if (first) {
        first = false;
        this.failures = 0;
        this.place.settle();
        this.tell('live');
      }
      frames.push(decoder.decode(value, { stream: true }));
    }
  }

  receive(frame) {
    if (!frame.data) return;
    const data = JSON.parse(frame.data);
    this.take(data.type, data);
    // Set only after success: an error above makes the server send the event again.
    this.cursor = frame.id ?? (data.type === 'snapshot' ? data.payload.cursor : this.cursor);
  }

  pause() {
    const wait = Math.min(LONGEST_WAIT_MS, 250 * 2 ** Math.min(this.failures, 6)) * (0.6 + 0.4 * Math.random());
    this.tell('waiting', Math.round(wait));
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Gives up a connection that has been silent for too long: it can die without an error. */
class Watch {
  constructor(giveUp) {
    this.heardAt = performance.now();
    this.timer = setInterval(() => {
      if (performance.now() - this.heardAt > SILENCE_MS) giveUp();
    }, 5_000);
  }

  heard() {
    this.heardAt = performance.now();
  }

  stop() {
    clearInterval(this.timer);
  }
}

/** Splits text that arrives in arbitrary pieces into frames. */
export class Frames {
  constructor(give) {
    this.give = give;
    this.rest = '';
  }

  push(text) {
    const whole = this.rest + text;
    let from = 0;
    for (;;) {
      const end = whole.indexOf('\n\n', from);
      if (end < 0) break;
      this.give(parse(whole.slice(from, end)));
      from = end + 2;
    }
    this.rest = whole.slice(from);
  }
}

function parse(text) {
  const frame = { id: null, data: '' };
  for (const line of text.split('\n')) {
    if (line.startsWith('data: ')) frame.data += (frame.data && '\n') + line.slice(6);
    else if (line.startsWith('id: ')) frame.id = line.slice(4);
  }
  return frame;
}
