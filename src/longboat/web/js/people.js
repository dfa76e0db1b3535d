// People and their windows: `anna:web-3f2a` is one of anna's windows. Others see people, the server sees windows.

import { newId } from './api.js';

/** The person's name in a client id. */
export const person = (client_id) => client_id.split(':', 1)[0] || client_id;

/** The client id of this window, the same after a reload. Without storage it is a new one each time. */
export function windowOf(name) {
  let id = null;
  try {
    id = sessionStorage.getItem('longboat.window');
    if (!/^[0-9a-f]{8}$/.test(id ?? '')) sessionStorage.setItem('longboat.window', (id = fresh()));
  } catch {
    // forbidden
  }
  return `${name}:web-${id ?? fresh()}`;
}

const fresh = () => newId().replaceAll('-', '').slice(-8);

/** Each person once, with the windows that are open; in the order of arrival. */
export function people(clients) {
  const found = new Map();
  for (const client of [...clients].sort((one, other) => one.attached_at.localeCompare(other.attached_at))) {
    const name = person(client.client_id);
    const known = found.get(name);
    if (known) known.windows += 1;
    else found.set(name, { name, windows: 1, since: client.attached_at });
  }
  return [...found.values()];
}
