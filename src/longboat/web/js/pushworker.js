// The service worker: shows what the server pushes until it is withdrawn, and opens the inbox at a click. It stores
// nothing and answers no requests. What it shows is untrusted text, which a notification shows as text.

const ITEM = /^\d{1,18}$/;

addEventListener('install', () => skipWaiting());

addEventListener('push', (event) => {
  event.waitUntil(show(told(event.data)));
});

function told(data) {
  try {
    return data?.json() ?? {};
  } catch {
    return {};
  }
}

async function show({ id, title, body, gone }) {
  if (gone === true) return withdraw(id);
  const pages = await clients.matchAll({ type: 'window', includeUncontrolled: true });
  if (pages.some((page) => page.visibilityState === 'visible')) return; // the page shows it
  const item = ITEM.test(id) ? id : null;
  await registration.showNotification(String(title ?? 'Longboat').slice(0, 100), {
    body: String(body ?? '').slice(0, 300),
    tag: `longboat-${item}`,
    icon: '/assets/icon-192.png',
    data: { go: item ? `#/inbox/${item}` : '#/inbox' },
  });
}

/** Someone answered elsewhere. */
async function withdraw(id) {
  if (!ITEM.test(id)) return;
  for (const notification of await registration.getNotifications({ tag: `longboat-${id}` })) notification.close();
}

addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.go));
});

async function open(go) {
  const [page] = await clients.matchAll({ type: 'window', includeUncontrolled: true });
  if (!page) return clients.openWindow(`/${go}`);
  page.postMessage({ go });
  return page.focus();
}
