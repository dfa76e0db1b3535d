// The service worker: shows what the server pushes, and opens the inbox at a click. The page closes what was answered
// elsewhere. It stores nothing and answers no requests. What it shows is untrusted text, which a notification shows as text.

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

/** Every push is shown: a browser that sees one that is not takes the subscription away. Quietly if the page is looked
 * at, which shows it too. */
async function show({ id, title, body }) {
  const pages = await clients.matchAll({ type: 'window', includeUncontrolled: true });
  const item = ITEM.test(id) ? id : null;
  await registration.showNotification(String(title ?? 'Longboat').slice(0, 100), {
    body: String(body ?? '').slice(0, 300),
    tag: `longboat-${item}`,
    icon: '/assets/icon-192.png',
    silent: pages.some((page) => page.visibilityState === 'visible'),
    data: { go: item ? `#/inbox/${item}` : '#/inbox' },
  });
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
