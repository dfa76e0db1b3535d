// The connected people: names in the panel, initials in the top bar. Someone with five windows is one person.

import { byId, h, perFrame, replace } from './dom.js';
import { exactly, plain, when } from './format.js';
import { people, person } from './people.js';

const MOST_SHOWN = 4;

/** One of twelve colors, always the same for a name. */
export function hue(name) {
  let sum = 0;
  for (const char of name) sum = (sum * 31 + char.codePointAt(0)) % 9973;
  return `hue-${sum % 12}`;
}

export class Clients {
  constructor(workspace, mirror) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.element = h('div', { class: 'clients' });
    this.bar = byId('clients');
    this.draw = perFrame(() => this.drawNow());
    this.stops = [mirror.on('clients', () => this.draw())];
  }

  close() {
    this.stops.forEach((stop) => stop());
    replace(this.bar);
  }

  drawNow() {
    const all = people(this.mirror.clients.values());
    replace(
      this.element,
      h(
        'ul',
        {},
        all.map(({ name, windows, since }) =>
          h(
            'li',
            {},
            avatar(name, {}),
            h('span', {}, plain(name), h('span', { class: 'quiet' }, this.about(name, windows))),
            h('time', { datetime: since, title: exactly(since) }, when(since)),
          ),
        ),
      ),
    );
    replace(
      this.bar,
      all.slice(0, MOST_SHOWN).map(({ name, windows }) => avatar(name, { title: `${name}${this.about(name, windows)}` })),
      all.length > MOST_SHOWN && h('span', { class: 'quiet', 'aria-hidden': 'true' }, `+${all.length - MOST_SHOWN}`),
      h('span', { class: 'hidden' }, `Connected: ${all.map(({ name }) => plain(name)).join(', ')}`),
    );
  }

  about(name, windows) {
    const facts = [
      name === person(this.workspace.client_id) && 'you',
      windows > 1 && `${windows} windows`,
    ].filter(Boolean);
    return facts.length ? ` (${facts.join(', ')})` : '';
  }
}

const avatar = (name, props) =>
  h('span', { class: `avatar ${hue(name)}`, 'aria-hidden': 'true', ...props }, initials(name));

const initials = (name) =>
  plain(name)
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(0, 2)
    .toUpperCase() || '?';
