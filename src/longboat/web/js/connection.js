// How the page is connected, in words: live, trying again, refused.

import { say } from './a11y.js';
import { byId, h } from './dom.js';

const WORDS = {
  connecting: 'Connecting…',
  reconnecting: 'Reconnecting…',
  waiting: 'Offline, trying again…',
  turns: 'Taking turns with your other tabs',
  live: 'Live',
  none: '',
};

const AWAY = 'The server does not answer. On its machine, “longboat web” starts it; this page goes on by itself.';
const HINTS = { reconnecting: AWAY, waiting: AWAY };
const PATIENCE_MS = 3_000;

export class Connection {
  constructor() {
    this.element = byId('connection');
    this.state = 'none';
  }

  set(state, status) {
    if (state === 'refused') return this.refused(status);
    const was = this.state;
    if (state === 'connecting' && was === 'turns') return this.settle(); // until it is live
    clearTimeout(this.patience);
    this.state = state;
    this.element.dataset.state = state;
    this.element.replaceChildren(
      h('span', { class: 'lamp', 'aria-hidden': 'true' }),
      h('span', { class: 'words' }, WORDS[state]),
    );
    this.element.title = HINTS[state] ?? WORDS[state];
    // Once each way: not at every attempt.
    if (state === 'live' && this.lost) {
      this.lost = false;
      say('Connected again. Everything that happened meanwhile is shown.');
    } else if (state === 'waiting' && was === 'live') this.lose();
    else if (state === 'waiting' && !this.lost) this.lose();
  }

  /** In turns one is live at once; a server that does not answer is not hidden behind them. */
  settle() {
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      this.state = 'none';
      this.set('connecting');
    }, PATIENCE_MS);
  }

  lose() {
    this.lost = true;
    say('The connection is lost. Trying again.');
  }

  refused(status) {
    this.state = 'refused';
    this.element.dataset.state = 'refused';
    const text = status === 401 ? 'Logged out' : status === 404 ? 'No such workspace' : `Refused (${status})`;
    this.element.replaceChildren(h('span', { class: 'lamp', 'aria-hidden': 'true' }), h('a', { href: '/' }, text));
    say(text);
  }
}
