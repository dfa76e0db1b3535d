// Shown instead of a transcript: model, directory and branch, what to try, recent sessions and keys; or what is missing.

import { h, replace, withCode } from './dom.js';
import { plain, price, tokens, when } from './format.js';
import { FAILED } from './sessions.js';
import { openSetup } from './setup.js';

const KEYS = [
  ['@', 'mention a file'],
  ['/', 'list commands and skills'],
  ['!', 'run a shell command'],
  ['↑', 'recall earlier prompts'],
  ['Ctrl+K', 'find anything'],
  ['?', 'list all keys'],
];
const RECENT = 3;

/** A new session. `put(text)` starts a prompt, `look()` reloads the models. */
export class Welcome {
  constructor({ workspace, put, look }) {
    Object.assign(this, { workspace, put, look });
    this.model = h('div', {});
    this.place = h('dl', { class: 'place quiet' });
    this.suggestions = h('ul', { class: 'beginnings', 'aria-label': 'Example prompts' });
    this.recent = h('div', {});
    this.element = h(
      'div',
      { class: 'welcome' },
      h('h2', {}, 'What should Longboat do?'),
      this.place,
      this.model,
      this.suggestions,
      this.recent,
      h(
        'dl',
        { class: 'keys' },
        KEYS.map(([key, what]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', { class: 'quiet' }, what))),
      ),
    );
  }

  /** Reads where this is and what to try. What cannot be read is left out. */
  async refresh() {
    const { workspace } = this;
    const [about, welcome, sessions] = await Promise.all(
      [workspace.about(), workspace.welcome(), workspace.sessions({ limit: RECENT })].map((each) =>
        each.catch(() => null),
      ),
    );
    replace(
      this.place,
      about && fact('Directory', plain(about.path)),
      welcome?.branch && fact('Branch', plain(welcome.branch)),
    );
    replace(
      this.suggestions,
      (welcome?.suggestions ?? []).map(({ title, prompt }) =>
        h('li', {}, h('button', { type: 'button', title: prompt, onclick: () => this.put(prompt) }, title)),
      ),
    );
    replace(this.recent, sessions?.items.length ? recent(workspace, sessions.items) : null);
  }

  /** Shows which model is used, or why there is none. */
  setModels(page) {
    if (!page) return;
    this.suggestions.hidden = Boolean(page.problem);
    replace(this.model, page.problem ? this.problem(page) : page.advice ? this.advice(page) : answers(page));
  }

  /** A model was chosen by default: what it can do, and how to get a better one. */
  advice(page) {
    return h(
      'div',
      { class: 'problem', role: 'status' },
      h('strong', {}, `Using ${plain(page.large ?? '')}`),
      h('p', {}, withCode(page.advice)),
      this.buttons(),
    );
  }

  problem(page) {
    return h(
      'div',
      { class: 'problem', role: 'status' },
      h('strong', {}, 'No model available'),
      h('p', {}, withCode(page.problem)),
      this.buttons(),
    );
  }

  buttons() {
    return h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'button', class: 'primary', onclick: () => this.connect() }, 'Connect a provider'),
      h('button', { type: 'button', onclick: this.look }, 'Check again'),
    );
  }

  async connect() {
    if (await openSetup()) this.look();
  }
}

function fact(name, value) {
  return h('div', {}, h('dt', {}, `${name}: `), h('dd', {}, value));
}

function recent(workspace, sessions) {
  return [
    h('h3', {}, 'Recent sessions'),
    h(
      'ul',
      { class: 'recent' },
      sessions.map((session) =>
        h(
          'li',
          {},
          FAILED[session.last_outcome] &&
            h('span', { class: 'dot failed', role: 'img', 'aria-label': FAILED[session.last_outcome] }),
          h(
            'a',
            { href: `#/${encodeURIComponent(workspace.id)}/${encodeURIComponent(session.id)}` },
            plain(session.title) || 'New session',
          ),
          h('span', { class: 'quiet' }, ` ${when(session.updated_at)}`),
        ),
      ),
    ),
  ];
}

function answers(page) {
  const info = page.items.find((item) => item.name === page.large);
  const more = page.items.filter((item) => item.ready).length - 1;
  return h(
    'p',
    {},
    'Model: ',
    h('strong', {}, plain(page.large ?? '')),
    info?.context_window ? ` (${tokens(info.context_window)} context)` : '',
    info?.price ? `, ${price(info.price)}.` : '.',
    more > 0 && ' Change it below.',
  );
}

/** A session that cannot be shown. */
export function lost(why, workspace_id) {
  return h(
    'div',
    { class: 'welcome' },
    h('h2', {}, 'Session not found'),
    why && h('p', {}, plain(why)),
    h('p', {}, 'It may have been deleted, or the link may be incomplete. Other sessions are in the list.'),
    h('p', {}, h('a', { href: `#/${encodeURIComponent(workspace_id)}` }, 'Start a new session')),
  );
}
