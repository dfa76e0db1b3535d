// Notifications, if turned on: by the server's pushes where the browser has them, else by this page while it is hidden.
// A click leads to the item in the inbox.

import { toast, toastError } from './a11y.js';
import { server } from './api.js';
import { byId, h, icon } from './dom.js';
import { oneLine, plain } from './format.js';
import { waits } from './inbox.js';
import { keep, recall } from './storage.js';
import { workerAddress } from './trusted.js';

const TITLES = {
  permission: 'Approval needed',
  question: 'Longboat has a question',
  failed: 'Run failed',
  finished: 'Run finished',
};
const ITEM = /^#\/inbox\/\d+$/;

const canNotify = () => 'Notification' in globalThis;
const canPush = () => Boolean(navigator.serviceWorker) && 'PushManager' in globalThis;
const isOn = () => canNotify() && recall('notify', false) && Notification.permission === 'granted';
const redraws = new Set();
const own = new Map(); // the notifications of this page, by their item
let client_id = '';

/** Shows what arrives in the inbox, and follows clicks on notifications. */
export function startNotifications(inbox) {
  client_id = inbox.client_id;
  if (isOn()) subscribe().catch(() => {}); // the server may have forgotten this browser
  navigator.serviceWorker?.addEventListener('message', ({ data }) => go(data?.go));
  inbox.on('changed', () => withdraw(inbox).catch(() => {})); // the next change tries again
  return inbox.on('arrived', (item) => show(item));
}

/** Closes the notifications of what was answered or seen elsewhere. */
async function withdraw(inbox) {
  const registration = canPush() && (await navigator.serviceWorker.getRegistration('/assets/js/'));
  const pushed = registration ? await registration.getNotifications() : [];
  for (const notification of [...pushed, ...own.values()]) {
    const id = notification.tag.replace('longboat-', '');
    const isKnown = Number(id) <= (inbox.newest ?? 0) && inbox.isLoaded({ id });
    const item = inbox.items.get(id);
    if (!isKnown || (item && (waits(item) || !item.seen))) continue;
    notification.close();
    own.delete(id);
  }
}

function go(hash) {
  if (typeof hash === 'string' && ITEM.test(hash)) location.hash = hash;
}

function show(item) {
  if (!isOn() || !document.hidden || recall('push', false)) return;
  const about = item.permission?.title ?? item.question?.text ?? item.error ?? (item.session_title || item.text);
  const notification = new Notification(TITLES[item.kind], {
    body: oneLine(plain(about), 160),
    tag: `longboat-${item.id}`,
  });
  own.set(item.id, notification);
  notification.onclick = () => {
    globalThis.focus();
    go(`#/inbox/${item.id}`);
    notification.close();
  };
}

/** A button that turns notifications on and off. Null if the browser has none. */
export function notifyButton() {
  if (!canNotify()) return null;
  const button = h('button', { type: 'button', class: 'notify', onclick: toggle }, icon('bell'), h('span', {}));
  watch(button, (on) => (button.lastElementChild.textContent = on ? 'Turn off notifications' : 'Turn on notifications'));
  return button;
}

/** The bell in the top bar. */
export function startBell() {
  const button = byId('notify');
  if (!canNotify()) return button.remove();
  button.replaceChildren(icon('bell'));
  button.addEventListener('click', toggle);
  watch(button, (on) => {
    const label = on ? 'Turn off notifications' : 'Turn on notifications';
    button.setAttribute('aria-label', label);
    button.title = label;
  });
}

function watch(button, draw) {
  const redraw = () => {
    button.setAttribute('aria-pressed', String(isOn()));
    draw(isOn());
  };
  redraws.add(redraw);
  redraw();
}

async function toggle() {
  try {
    if (isOn()) await turnOff();
    else if ((await Notification.requestPermission()) === 'granted') await turnOn();
    else toast('Notifications are blocked for this page. Allow them in the browser’s settings.', 'error');
  } catch (error) {
    toastError(error);
  }
  for (const redraw of redraws) redraw();
}

async function turnOn() {
  keep('notify', true);
  try {
    await subscribe();
  } catch {
    keep('push', false); // no push service: this page notifies as long as it is open
  }
}

async function turnOff() {
  keep('notify', false);
  keep('push', false);
  const registration = canPush() && (await navigator.serviceWorker.getRegistration('/assets/js/'));
  const subscription = registration && (await registration.pushManager.getSubscription());
  if (!subscription) return;
  await subscription.unsubscribe();
  await server.unsubscribe(subscription.endpoint);
}

/** Asks the browser's push service for an address, and tells the server. */
async function subscribe() {
  if (!canPush()) return;
  const { public_key } = await server.push();
  const registration = await navigator.serviceWorker.register(workerAddress());
  await ready(registration);
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: public_key,
  });
  const { endpoint, keys } = subscription.toJSON();
  await server.subscribe({ client_id, endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } });
  keep('push', true);
}

/** Until the worker is active: a subscription needs that. */
function ready(registration) {
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  if (worker.state === 'activated') return null;
  return new Promise((resolve) => {
    worker.addEventListener('statechange', () => worker.state === 'activated' && resolve());
  });
}
