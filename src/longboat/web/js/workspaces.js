// Choose a workspace: a directory that was opened before, or another by its path.

import { roving } from './a11y.js';
import { server } from './api.js';
import { awayWords, nodeOf } from './away.js';
import { h, icon, replace } from './dom.js';
import { base, plain, plural, when } from './format.js';
import { people } from './people.js';
import { recent, usedAt, waitMark } from './switcher.js';

export class Workspaces {
  constructor(client_id, go, wrong = '') {
    this.client_id = client_id;
    this.go = go;
    this.list = h('ul', { class: 'workspace-list' });
    this.wrong = h('p', { class: 'wrong', role: 'alert' });
    this.path = h('input', {
      id: 'workspace-path',
      placeholder: '/home/me/project',
      autocomplete: 'off',
      spellcheck: 'false',
      required: true,
    });
    this.element = h(
      'div',
      { class: 'welcome' },
      h('h1', {}, 'Choose a workspace'),
      wrong && h('p', { class: 'problem', role: 'alert' }, wrong),
      h(
        'p',
        { class: 'quiet' },
        'A workspace is a directory on the server. Everyone who opens it shares its sessions.',
      ),
      this.list,
      h(
        'form',
        { class: 'open-path', onsubmit: (event) => this.open(event) },
        h('label', { for: 'workspace-path' }, 'Open a directory'),
        h('div', { class: 'row' }, this.path, h('button', { type: 'submit', class: 'primary' }, 'Open')),
        this.wrong,
      ),
    );
    roving(this.list, 'a');
    this.load();
  }

  async load() {
    try {
      const { items } = await server.workspaces();
      replace(
        this.list,
        recent(items).map((workspace, index) =>
          h(
            'li',
            {},
            h(
              'a',
              { href: `#/${workspace.id}`, tabindex: index ? '-1' : '0' },
              icon('folder'),
              h('span', { class: 'workspace-name' }, plain(base(workspace.path))),
              h('span', { class: 'quiet path' }, plain(workspace.path)),
              h(
                'span',
                { class: 'quiet' },
                waitMark(workspace),
                [
                  !workspace.away && nodeOf(workspace) && `on ${plain(nodeOf(workspace))}`,
                  workspace.busy && 'working',
                  workspace.waiting && `${plural(workspace.waiting, 'answer')} needed`,
                  workspace.clients.length && `${people(workspace.clients).length} connected`,
                  `used ${when(usedAt(workspace))}`,
                ]
                  .filter(Boolean)
                  .join(' · '),
              ),
              workspace.away && h('span', { class: 'away-words' }, `${awayWords(workspace)}. Prompts are queued.`),
            ),
          ),
        ),
      );
    } catch (error) {
      this.wrong.textContent = error.message;
    }
  }

  async open(event) {
    event.preventDefault();
    this.wrong.textContent = '';
    try {
      const workspace = await server.join(this.path.value.trim(), this.client_id);
      this.go(workspace.id);
    } catch (error) {
      this.wrong.textContent = error.message;
      this.path.focus();
    }
  }
}
