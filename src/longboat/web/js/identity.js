// The name that others see. Asked once, kept in this browser.

import { asked } from './dialog.js';
import { keep, recall } from './storage.js';

const ALLOWED = /^[A-Za-z0-9._:-]{1,64}$/;

const check = (name) => (ALLOWED.test(name) ? '' : 'Use 1 to 64 letters, digits and . _ : - without spaces.');

export async function ownName() {
  const known = recall('name');
  return known && ALLOWED.test(known) ? known : askName(true);
}

export async function askName(must = false) {
  const name = await asked('Who are you?', {
    text: 'Others on the same session see this name beside what you do. It is kept in this browser.',
    label: 'Your name',
    value: recall('name') ?? `web-${Math.random().toString(36).slice(2, 6)}`,
    action: 'Continue',
    check,
    must,
  });
  if (name) keep('name', name);
  return name;
}
