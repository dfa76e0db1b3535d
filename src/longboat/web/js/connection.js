// The state of the connection: in the top bar, and as a banner while the server is away.

import { say } from './a11y.js';
import { byId, h } from './dom.js';

const WORDS = {
  connecting: 'Connecting…',
  reconnecting: 'Reconnecting…',
  waiting: 'Offline, retrying…',
  turns: 'Waiting: too many tabs open',
  live: 'Live',
  none: '',
};

const UNUSUAL_MS = 3_000;

export class Connection {
  constructor() {
    this.element = byId('connection');
    this.banner = byId('banner');
    this.banner.append(...bannerText());
    this.state = 'none';
  }

  set(state, status) {
    if (state === 'refused') return this.refused(status);
    const was = this.state;
    if (state === 'connecting' && was === 'turns') return this.settle(); // keep the text until it is live
    clearTimeout(this.settling);
    this.state = state;
    this.element.dataset.state = state;
    this.element.replaceChildren(
      h('span', { class: 'lamp', 'aria-hidden': 'true' }),
      h('span', { class: 'words' }, WORDS[state]),
    );
    this.element.title = WORDS[state];
    this.showAway(state);
    // Announced once each way, not at every attempt.
    if (state === 'live' && this.lost) {
      this.lost = false;
      say('Reconnected. The page is up to date.');
    } else if (state === 'waiting' && was === 'live') this.lose();
    else if (state === 'waiting' && !this.lost) this.lose();
  }

  /** When tabs take turns, connecting takes a moment. If it takes longer, the server is not responding: say so. */
  settle() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      this.state = 'none';
      this.set('connecting');
    }, UNUSUAL_MS);
  }

  /** The banner stays until the connection is back, not only between attempts. */
  showAway(state) {
    if (state === 'waiting') this.isAway = true;
    else if (!['connecting', 'reconnecting'].includes(state)) this.isAway = false;
    this.banner.hidden = !this.isAway;
    document.body.classList.toggle('away', Boolean(this.isAway));
  }

  lose() {
    this.lost = true;
    say('Connection lost. Reconnecting.');
  }

  refused(status) {
    this.state = 'refused';
    this.showAway('refused');
    this.element.dataset.state = 'refused';
    const known = { 401: 'Log in again', 404: 'Workspace not found' };
    const text = known[status] ?? `Connection refused (${status})`;
    this.element.replaceChildren(h('span', { class: 'lamp', 'aria-hidden': 'true' }), h('a', { href: '/' }, text));
    say(text);
  }
}

function bannerText() {
  return [
    h('strong', {}, 'Not connected to the server.'),
    ' Reconnecting… Prompts that you send now wait in this browser. If the server has stopped, run ',
    h('code', {}, 'longboat web'),
    ' on its machine to start it again.',
  ];
}
