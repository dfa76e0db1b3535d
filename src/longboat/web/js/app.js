// The page: who is here, which workspace and session the address names, and the frame around them.

import { Drawer } from './a11y.js';
import { server } from './api.js';
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

/** #/workspace/session */
function address() {
  const [workspace_id, session_id] = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  return { workspace_id: workspace_id || null, session_id: session_id || null };
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

function choose() {
  desk?.close();
  desk = null;
  connection.set('none');
  document.body.classList.add('choosing');
  document.title = 'Longboat';
  replace(byId('nav-content'));
  replace(byId('aside-content'));
  byId('workspace').hidden = true;
  const view = new Workspaces(name, (id) => go(id));
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
    () => {},
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
  name = await ownName();
  showName();
  if (!address().workspace_id) await onlyOne();
  addEventListener('hashchange', route);
  route();
}

/** With a single workspace there is nothing to choose. */
async function onlyOne() {
  const page = await server.workspaces().catch(() => ({ items: [] }));
  if (page.items.length === 1 && !address().workspace_id) history.replaceState(null, '', `#/${page.items[0].id}`);
}

start();
