// The page: the user's name, the workspace and session in the address, and the frame around them.

import { Drawer, toast } from './a11y.js';
import { Refused, server } from './api.js';
import { Connection } from './connection.js';
import { startCopying } from './copying.js';
import { WorkspaceView } from './workspaceview.js';
import { byId, replace } from './dom.js';
import { askName, guestName, storedName, takeName } from './identity.js';
import { Inbox } from './inbox.js';
import { InboxView, startBadge } from './inboxview.js';
import { startKeyboard } from './keyboard.js';
import { startBell, startNotifications } from './notify.js';
import { startPanes } from './panes.js';
import { windowOf } from './people.js';
import { Switcher } from './switcher.js';
import { PageActions } from './pageactions.js';
import { startTheme } from './theme.js';
import { setTitle, setTitleCount } from './title.js';
import { Workspaces } from './workspaces.js';

const connection = new Connection();
const drawers = {};
let workspaceView = null;
let inbox = null;
let inboxView = null;
let place = '#/'; // the address before the inbox
let switcher = null;
let name = '';

const NOT_HERE =
  'The workspace in this link is not on this server. The link may belong to another server, or may be incomplete. Choose a workspace below, or open a directory.';

/** #/workspace/session/message?find=words, #/workspace/session/changes or #/inbox/item; with ?name=… at the start */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const [workspace_id, session_id, rest] = path.split('/').map(decoded);
  const isReview = rest === 'changes';
  return {
    workspace_id: workspace_id || null,
    session_id: session_id || null,
    message_id: (!isReview && rest) || null,
    words: new URLSearchParams(query).get('find') ?? '',
    isReview,
  };
}

function decoded(text) {
  try {
    const id = decodeURIComponent(text);
    // The browser would treat these as path steps; no id looks like this.
    return ['.', '..'].includes(id) ? `${id}?` : id;
  } catch {
    return text; // an incomplete link: the server will not know it
  }
}

/** The name that `longboat web` put into the address. Removed from it, so that the link can be shared. */
function suggestedName() {
  const [path, rest] = location.hash.split('?');
  const suggested = new URLSearchParams(rest).get('name');
  if (suggested !== null) history.replaceState(null, '', path);
  return suggested;
}

function go(workspace_id, session_id = null) {
  const wanted = `#/${[workspace_id, session_id].filter(Boolean).map(encodeURIComponent).join('/')}`;
  if (location.hash === wanted) route();
  else location.hash = wanted;
}

function route() {
  const { workspace_id, session_id, message_id, words, isReview } = address();
  Object.values(drawers).forEach((drawer) => drawer.set(false));
  if (workspace_id === 'inbox') return showInbox(session_id);
  place = location.hash;
  if (!workspace_id) return choose();
  if (workspaceView?.workspace.id !== workspace_id) open(workspace_id);
  workspaceView.show(session_id, message_id, words);
  workspaceView.showReview(isReview);
  lookAt();
}

function leave() {
  workspaceView?.close();
  inboxView?.close();
  workspaceView = inboxView = null;
}

/** The inbox over all workspaces, at one of its items if it is named. */
function showInbox(item_id) {
  if (!inboxView) {
    leave();
    connection.set('none');
    document.body.classList.add('choosing');
    setTitle('Inbox · Longboat');
    replace(byId('nav-content'));
    replace(byId('aside-content'));
    switcher.hide();
    inboxView = new InboxView(inbox, () => (location.hash = place));
    replace(byId('main'), inboxView.element);
    byId('inbox-title').focus();
  }
  if (item_id) inboxView.focus(item_id);
}

/** What the session on the screen has to tell is no news. */
function lookAt() {
  if (workspaceView?.session_id && !document.hidden) inbox.seeSession(workspaceView.session_id);
}

/** Follows the inbox under the current name. */
function openInbox() {
  inbox?.close();
  inbox = new Inbox(windowOf(name));
  startBadge(inbox);
  startNotifications(inbox);
  inbox.on('changed', () => {
    setTitleCount(inbox.count);
    lookAt();
  });
}

function choose(wrong = '') {
  leave();
  if (wrong) connection.set('refused', 404);
  else connection.set('none');
  document.body.classList.add('choosing');
  setTitle('Longboat');
  replace(byId('nav-content'));
  replace(byId('aside-content'));
  switcher.hide();
  const view = new Workspaces(windowOf(name), (id) => go(id), wrong);
  replace(byId('main'), view.element);
}

function open(workspace_id) {
  leave();
  document.body.classList.remove('choosing');
  workspaceView = new WorkspaceView(workspace_id, windowOf(name), {
    connection,
    go: (session_id) => go(workspace_id, session_id),
  });
  switcher.hide();
  workspaceView.workspace.about().then(
    (about) => {
      if (workspaceView?.workspace.id === workspace_id) switcher.show(about);
    },
    (error) => {
      const isUnknown = error instanceof Refused && error.status !== 401;
      if (isUnknown && workspaceView?.workspace.id === workspace_id) choose(NOT_HERE);
    },
  );
}

async function rename(must = false) {
  const chosen = await askName(must, name);
  if (!chosen || chosen === name) return;
  name = chosen;
  showName();
  const before = workspaceView;
  leave();
  openInbox();
  route();
  before?.workspace.release().catch(() => {});
}

function showName() {
  byId('me').textContent = name;
  byId('me').title = 'Change your name';
}

async function start() {
  dispatchEvent(new Event('longboat-started'));
  startTheme();
  startBell();
  startPanes();
  switcher = new Switcher((id) => go(id));
  startCopying();
  const actions = new PageActions(() => workspaceView);
  startKeyboard((action, target) => actions.run(action, target));
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
  byId('me').addEventListener('click', () => rename());
  const suggested = suggestedName();
  const known = storedName();
  const taken = known ? '' : takeName(suggested);
  name = known || taken || guestName();
  openInbox();
  offerNodes();
  document.addEventListener('visibilitychange', lookAt);
  if (!address().workspace_id) await onlyOne();
  addEventListener('hashchange', route);
  route();
  showName();
  if (taken) toast(`Others see you as ${name}.`, 'info', { label: 'Change name', run: () => rename() });
  else if (!known) await rename(true); // over the workspace, which is there as a guest until then
}

/** The way to the nodes, if there are several. */
async function offerNodes() {
  const { items } = await server.nodes().catch(() => ({ items: [] }));
  byId('nodes').hidden = items.length < 2;
}

/** If there is only one workspace, open it. */
async function onlyOne() {
  const page = await server.workspaces().catch(() => ({ items: [] }));
  if (page.items.length === 1 && !address().workspace_id) history.replaceState(null, '', `#/${page.items[0].id}`);
}

start();
