// The page of the nodes: the servers that share a database, their load, and where each workspace is.

import { server } from './api.js';
import { awayWords } from './away.js';
import { byId, h, replace } from './dom.js';
import { base, count, exactly, plain, plural, when } from './format.js';
import { startKeyboard } from './keyboard.js';
import { PageActions } from './pageactions.js';
import { recent } from './switcher.js';
import { startTheme } from './theme.js';

const EVERY_MS = 5_000;

const fact = (name, value) => [h('dt', {}, name), h('dd', {}, value)];
const time = (instant) => h('time', { title: exactly(instant) }, when(instant));
const state = (kind, words) =>
  h('span', { class: `state ${kind}` }, h('span', { class: 'lamp', 'aria-hidden': 'true' }), words);

const WORDS = { running: 'running', leaving: 'stopping', gone: 'down' };

function card(node) {
  return h(
    'section',
    { class: `card node ${node.state}`, 'aria-label': `Node ${plain(node.name)}` },
    h(
      'h2',
      {},
      h('span', { class: 'name', title: plain(node.name) }, plain(node.name)),
      state(node.state, WORDS[node.state] ?? node.state),
    ),
    node.answering && h('p', { class: 'quiet' }, 'You are connected to this node.'),
    h(
      'dl',
      {},
      fact('Owns', plural(node.owns, 'workspace')),
      fact('Home of', plural(node.home_of, 'workspace')),
      fact('Runs', `${count(node.runs_active)} active, ${count(node.runs_waiting)} queued`),
      node.state === 'running' ? fact('Started', time(node.started_at)) : fact('Last heard of', time(node.seen_at)),
      fact('Version', plain(node.version)),
      fact('Address', h('span', { title: plain(node.url ?? '') }, plain(node.url ?? 'unix socket only'))),
    ),
  );
}

function row(workspace) {
  const away = awayWords(workspace);
  return h(
    'tr',
    {},
    h('td', {}, h('a', { href: `/#/${workspace.id}`, title: plain(workspace.path) }, plain(base(workspace.path)))),
    h(
      'td',
      { class: 'wraps' },
      away ? state('away', `${away}; prompts are queued`) : workspace.busy ? state('running', 'working') : state('', 'idle'),
    ),
    h('td', {}, plain(workspace.owner ?? '–')),
    h('td', {}, workspace.home ? plain(workspace.home) : 'all nodes'),
  );
}

function places(workspaces) {
  const head = ['Workspace', 'State', 'Owner', 'Home'];
  return h(
    'figure',
    { class: 'card wide' },
    h('figcaption', {}, h('h2', {}, 'Workspaces'), h('p', { class: 'quiet' }, 'Recently used first')),
    h(
      'div',
      { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Workspaces' },
      h(
        'table',
        { class: 'listing places' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            head.map((text) => h('th', { scope: 'col' }, text)),
          ),
        ),
        h('tbody', {}, recent(workspaces).map(row)),
      ),
    ),
  );
}

function draw(nodes, workspaces) {
  replace(
    byId('nodes'),
    h('div', { class: 'nodes' }, nodes.map(card)),
    nodes.length > 1 && workspaces.length > 0 && places(workspaces),
  );
}

let drawn = '';

async function load() {
  const status = byId('status');
  try {
    const [nodes, workspaces] = await Promise.all([server.nodes(), server.workspaces()]);
    // Redrawn only if something is new, so that reading and selecting are not disturbed.
    const told = JSON.stringify([nodes, workspaces], (key, value) => (key === 'seen_at' ? undefined : value));
    if (told !== drawn) draw(nodes.items, workspaces.items);
    drawn = told;
    status.textContent = nodes.items.length > 1 ? '' : 'This is the only server on its database.';
  } catch (error) {
    status.textContent = error.message;
  }
}

function start() {
  dispatchEvent(new Event('longboat-started'));
  startTheme();
  const actions = new PageActions(() => null); // no workspace is open here
  startKeyboard((action, target) => actions.run(action, target));
  load();
  setInterval(() => document.hidden || load(), EVERY_MS);
  document.addEventListener('visibilitychange', () => document.hidden || load());
}

start();
