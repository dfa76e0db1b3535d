// The name that others see. Asked for once and stored in this browser.

import { asked } from './dialog.js';
import { keep, recall } from './storage.js';

const ALLOWED = /^[A-Za-z0-9._:-]{1,64}$/;

const check = (name) => (ALLOWED.test(name) ? '' : 'Use 1 to 64 letters, digits or . _ : - (no spaces).');

/** The stored name, or asks for one and offers `suggested`. */
export async function ownName(suggested) {
  const known = recall('name', '');
  return ALLOWED.test(known) ? known : askName(true, suggested);
}

function offered(suggested) {
  const name = (suggested ?? '').replace(/[^A-Za-z0-9._:-]+/g, '-').slice(0, 64);
  return ALLOWED.test(name) ? name : `web-${Math.random().toString(36).slice(2, 6)}`;
}

export async function askName(must = false, suggested = null) {
  const name = await asked('Choose a name', {
    text: 'Other people in a session see this name next to what you do. It is stored in this browser.',
    label: 'Your name',
    value: recall('name', '') || offered(suggested),
    action: 'Continue',
    check,
    must,
  });
  if (name) keep('name', name);
  return name;
}
