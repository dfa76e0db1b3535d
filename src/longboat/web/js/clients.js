// The connected clients: names in the panel, initials in the top bar.

import { byId, h, perFrame, replace } from './dom.js';
import { exactly, plain, when } from './format.js';

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
    const all = [...this.mirror.clients.values()].sort((one, other) =>
      one.attached_at.localeCompare(other.attached_at),
    );
    const mine = (client) => client.client_id === this.workspace.client_id;
    replace(
      this.element,
      h(
        'ul',
        {},
        all.map((client) =>
          h(
            'li',
            {},
            h('span', { class: `avatar ${hue(client.client_id)}`, 'aria-hidden': 'true' }, initials(client.client_id)),
            h('span', {}, plain(client.client_id), mine(client) && h('span', { class: 'quiet' }, ' (you)')),
            h('time', { datetime: client.attached_at, title: exactly(client.attached_at) }, when(client.attached_at)),
          ),
        ),
      ),
    );
    replace(
      this.bar,
      all
        .slice(0, MOST_SHOWN)
        .map((client) =>
          h(
            'span',
            { class: `avatar ${hue(client.client_id)}`, title: client.client_id, 'aria-hidden': 'true' },
            initials(client.client_id),
          ),
        ),
      all.length > MOST_SHOWN && h('span', { class: 'quiet', 'aria-hidden': 'true' }, `+${all.length - MOST_SHOWN}`),
      h('span', { class: 'hidden' }, `Connected: ${all.map((client) => plain(client.client_id)).join(', ')}`),
    );
  }
}

const initials = (name) =>
  plain(name)
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(0, 2)
    .toUpperCase() || '?';
