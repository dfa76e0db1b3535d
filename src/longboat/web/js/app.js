// The page: who is here, which workspace and session the address names, and the frame around them.

import { Drawer } from './a11y.js';
import { Refused, server } from './api.js';
import { Connection } from './connection.js';
import { Desk } from './desk.js';
import { byId, replace } from './dom.js';
import { base, plain } from './format.js';
import { askName, ownName } from './identity.js';
import { startNotifications } from './notify.js';
import { startTheme } from './theme.js';
import { Workspaces } from './workspaces.js';

const connection = new Connection();
const drawers = {};
let desk = null;
let name = '';

const NOT_HERE =
  'This server does not know the workspace in the address. It may belong to another server, or the link was cut. Choose one of these, or open its directory.';

/** #/workspace/session?name=… */
function address() {
  const [path] = location.hash.replace(/^#\/?/, '').split('?');
  const [workspace_id, session_id] = path.split('/').map(decoded);
  return { workspace_id: workspace_id || null, session_id: session_id || null };
}

function decoded(text) {
  try {
    const id = decodeURIComponent(text);
    // The browser would take these for steps in a path: no id is one.
    return ['.', '..'].includes(id) ? `${id}?` : id;
  } catch {
    return text; // a link that was cut: the server will not know it
  }
}

/** Who opened this page from a terminal is known there. The address keeps only what can be passed on. */
function suggestedName() {
  const [path, rest] = location.hash.split('?');
  if (rest === undefined) return null;
  history.replaceState(null, '', path);
  return new URLSearchParams(rest).get('name');
}

function go(workspace_id, session_id = null) {
  const wanted = `#/${[workspace_id, session_id].filter(Boolean).map(encodeURIComponent).join('/')}`;
  if (location.hash === wanted) route();
  else location.hash = wanted;
}

function route() {
  const { workspace_id, session_id } = address();
  Object.values(drawers).forEach((drawer) => drawer.set(false));
  if (!workspace_id) return choose();
  if (desk?.workspace.id !== workspace_id) open(workspace_id);
  desk.show(session_id);
}

function choose(wrong = '') {
  desk?.close();
  desk = null;
  if (wrong) connection.set('refused', 404);
  else connection.set('none');
  document.body.classList.add('choosing');
  document.title = 'Longboat';
  replace(byId('nav-content'));
  replace(byId('aside-content'));
  byId('workspace').hidden = true;
  const view = new Workspaces(name, (id) => go(id), wrong);
  replace(byId('main'), view.element);
}

function open(workspace_id) {
  desk?.close();
  document.body.classList.remove('choosing');
  desk = new Desk(workspace_id, name, { connection, go: (session_id) => go(workspace_id, session_id) });
  byId('workspace').hidden = true;
  desk.workspace.about().then(
    (about) => {
      byId('workspace').hidden = false;
      byId('workspace').textContent = plain(base(about.path));
      byId('workspace').title = `${plain(about.path)}: choose another workspace`;
    },
    (error) => {
      const isUnknown = error instanceof Refused && error.status !== 401;
      if (isUnknown && desk?.workspace.id === workspace_id) choose(NOT_HERE);
    },
  );
}

async function rename() {
  const chosen = await askName();
  if (!chosen || chosen === name) return;
  name = chosen;
  showName();
  const before = desk;
  desk?.close();
  desk = null;
  route();
  before?.workspace.release().catch(() => {});
}

function showName() {
  byId('me').textContent = name;
  byId('me').title = 'Your name, as others see it: change it';
}

async function start() {
  dispatchEvent(new Event('longboat-started'));
  startTheme();
  startNotifications();
  drawers.nav = new Drawer(byId('nav'), byId('toggle-nav'));
  drawers.aside = new Drawer(byId('aside'), byId('toggle-aside'));
  for (const [one, other] of [
    ['nav', 'aside'],
    ['aside', 'nav'],
  ]) {
    drawers[one].button.addEventListener('click', () => drawers[other].isOpen && drawers[other].set(false));
  }
  byId('backdrop').addEventListener('click', () => Object.values(drawers).forEach((drawer) => drawer.set(false)));
  byId('skip').addEventListener('click', (event) => {
    event.preventDefault();
    (byId('prompt') ?? byId('main')).focus();
  });
  byId('me').addEventListener('click', rename);
  byId('workspace').addEventListener('click', () => go(null));
  name = await ownName(suggestedName());
  if (!address().workspace_id) await onlyOne();
  addEventListener('hashchange', route);
  route();
  showName();
}

/** With a single workspace there is nothing to choose. */
async function onlyOne() {
  const page = await server.workspaces().catch(() => ({ items: [] }));
  if (page.items.length === 1 && !address().workspace_id) history.replaceState(null, '', `#/${page.items[0].id}`);
}

start();
