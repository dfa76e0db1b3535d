// The workspace in the top bar: recently used ones to switch to, marked if something needs an answer there.

import { server } from './api.js';
import { awayWords } from './away.js';
import { byId, h, icon } from './dom.js';
import { base, plain, plural, when } from './format.js';
import { openable } from './menu.js';

const MOST = 8;

/** The time of its last use; of one that was never used, when it was opened first. */
export const usedAt = (workspace) => workspace.used_at ?? workspace.created_at;

/** Most recently used first. */
export const recent = (workspaces) =>
  [...workspaces].sort((one, other) => usedAt(other).localeCompare(usedAt(one)));

/** `workspace.waiting`: permissions and questions that need an answer. */
export function waitMark({ waiting }) {
  if (!waiting) return null;
  return h('span', { class: 'dot waits', role: 'img', 'aria-label': `${plural(waiting, 'answer')} needed` });
}

export class Switcher {
  /** `go(id)` opens a workspace; null lists all. */
  constructor(go) {
    this.go = go;
    this.button = byId('workspace');
    const { parentNode, nextSibling } = this.button;
    parentNode.insertBefore(
      openable(this.button, () => this.actions()),
      nextSibling,
    );
  }

  hide() {
    this.button.hidden = true;
  }

  show({ id, path }) {
    this.id = id;
    this.button.hidden = false;
    this.button.replaceChildren(h('span', { class: 'path' }, plain(base(path))), icon('down'));
    this.button.title = `Switch workspace (now ${plain(path)})`;
  }

  async actions() {
    const { items } = await server.workspaces().catch(() => ({ items: [] }));
    const choices = recent(items)
      .slice(0, MOST)
      .map((workspace) => ({
        content: row(workspace),
        checked: workspace.id === this.id,
        run: () => this.go(workspace.id),
      }));
    return [...choices, { label: 'All workspaces…', run: () => this.go(null) }];
  }
}

const row = (workspace) =>
  h(
    'span',
    { class: 'switch-row' },
    waitMark(workspace) ?? h('span', { class: workspace.busy ? 'dot busy' : 'dot' }),
    h('span', { class: 'workspace-name' }, plain(base(workspace.path))),
    h('span', { class: 'quiet' }, when(usedAt(workspace))),
    h('span', { class: 'quiet path' }, [awayWords(workspace), plain(workspace.path)].filter(Boolean).join(' · ')),
  );
