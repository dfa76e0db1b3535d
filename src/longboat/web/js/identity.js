// The name that others see. Asked for once and stored in this browser.

import { asked } from './dialog.js';
import { person } from './people.js';
import { keep, recall } from './storage.js';

const ALLOWED = /^[A-Za-z0-9._-]{1,64}$/; // the colon separates a person's windows

const check = (name) => (ALLOWED.test(name) ? '' : 'Use 1 to 64 letters, digits or . _ - (no spaces).');

/** The stored name, or asks for one and offers `suggested`. */
export async function ownName(suggested) {
  const known = stored();
  return ALLOWED.test(known) ? known : askName(true, suggested);
}

const stored = () => person(recall('name', ''));

function offered(suggested) {
  const name = person(suggested ?? '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, 64);
  return ALLOWED.test(name) ? name : `guest-${Math.random().toString(36).slice(2, 6)}`;
}

export async function askName(must = false, suggested = null) {
  const name = await asked('Choose a name', {
    text: 'Other people see this name next to what you do. It is stored in this browser.',
    label: 'Your name',
    value: stored() || offered(suggested),
    action: 'Continue',
    check,
    must,
  });
  if (name) keep('name', name);
  return name;
}
