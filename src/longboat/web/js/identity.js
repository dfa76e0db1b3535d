// The name that others see: from the link of `longboat web`, or asked for once. Stored in this browser.

import { asked } from './dialog.js';
import { person } from './people.js';
import { keep, recall } from './storage.js';

const ALLOWED = /^[A-Za-z0-9._-]{1,64}$/; // the colon separates a person's windows

const check = (name) => (ALLOWED.test(name) ? '' : 'Use 1 to 64 letters, digits or . _ - (no spaces).');

/** The stored name, or an empty string. */
export function storedName() {
  const name = stored();
  return ALLOWED.test(name) ? name : '';
}

const stored = () => person(recall('name', ''));

/** Takes a name that the link gave, and stores it. Empty if it is none. */
export function takeName(suggested) {
  const name = person(suggested ?? '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, 64);
  if (!ALLOWED.test(name)) return '';
  keep('name', name);
  return name;
}

export const guestName = () => `guest-${Math.random().toString(36).slice(2, 6)}`;

/** Asks for a name and offers the stored one, or `otherwise`. `must`: it cannot be canceled. */
export async function askName(must = false, otherwise = guestName()) {
  const name = await asked('Choose a name', {
    text: 'Other people see this name next to what you do. It is stored in this browser.',
    label: 'Your name',
    value: storedName() || otherwise,
    action: 'Continue',
    check,
    must,
  });
  if (name) keep('name', name);
  return name;
}
