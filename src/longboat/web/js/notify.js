// System notifications, if turned on: for approvals, questions and finished runs while the page is hidden.

import { byId, icon } from './dom.js';
import { oneLine, plain } from './format.js';
import { keep, recall } from './storage.js';

const isOn = () => 'Notification' in globalThis && recall('notify', false) && Notification.permission === 'granted';

export function startNotifications() {
  const button = byId('notify');
  if (!('Notification' in globalThis)) return button.remove();
  const draw = () => {
    const label = isOn() ? 'Notifications are on (click to turn off)' : 'Notify me when this page is in the background';
    button.setAttribute('aria-pressed', String(isOn()));
    button.setAttribute('aria-label', label);
    button.title = label;
    button.replaceChildren(icon('bell'));
  };
  button.addEventListener('click', async () => {
    if (isOn()) keep('notify', false);
    else keep('notify', (await Notification.requestPermission()) === 'granted');
    draw();
  });
  draw();
}

function show(title, body) {
  if (isOn() && document.hidden) new Notification(title, { body: oneLine(plain(body), 160), tag: 'longboat' });
}

export function listenFor(mirror) {
  const stops = [
    mirror.on('asks', ({ asked }) => asked && show('Longboat needs an answer', asked.title ?? asked.text)),
    mirror.on(
      'run_complete',
      (run) => run.parent || run.folded_into || show(run.error ? 'Run failed' : 'Run finished', run.error || run.text),
    ),
  ];
  return () => stops.forEach((stop) => stop());
}
