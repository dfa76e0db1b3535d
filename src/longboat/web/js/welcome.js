// Shown instead of a transcript: how to start, which model is used, or what is missing.

import { h, replace } from './dom.js';
import { plain, tokens } from './format.js';

const BEGINNINGS = [
  'Explain how this project is structured.',
  'Run the tests and fix any failures.',
  'Review the uncommitted changes.',
];
const KEYS = [
  ['@', 'mention a file'],
  ['/', 'list commands and skills'],
  ['!', 'run a shell command'],
  ['↑', 'recall earlier prompts'],
];

/** A new session. `put(text)` starts a prompt, `look()` reloads the models. */
export class Welcome {
  constructor({ put, look }) {
    this.look = look;
    this.model = h('div', {});
    this.element = h(
      'div',
      { class: 'welcome' },
      h('h2', {}, 'What should Longboat do?'),
      h(
        'p',
        { class: 'quiet' },
        'Write a prompt below. Everyone connected to this workspace sees the session live and can join in. It keeps running when you close the page.',
      ),
      this.model,
      h(
        'ul',
        { class: 'beginnings', 'aria-label': 'Example prompts' },
        BEGINNINGS.map((text) => h('li', {}, h('button', { type: 'button', onclick: () => put(text) }, text))),
      ),
      h(
        'dl',
        { class: 'keys' },
        KEYS.map(([key, what]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', { class: 'quiet' }, what))),
      ),
    );
  }

  /** Shows which model is used, or why there is none. */
  setModels(page) {
    if (!page) return;
    replace(this.model, page.problem ? this.problem(page) : page.advice ? this.advice(page) : answers(page));
  }

  /** A model was chosen by default: what it can do, and how to get a better one. */
  advice(page) {
    return h(
      'div',
      { class: 'problem', role: 'status' },
      h('strong', {}, `Using ${plain(page.large ?? '')}`),
      h('p', {}, plain(page.advice)),
      h('button', { type: 'button', class: 'small', onclick: this.look }, 'Check again'),
    );
  }

  problem(page) {
    return h(
      'div',
      { class: 'problem', role: 'status' },
      h('strong', {}, 'No model available'),
      h('p', {}, plain(page.problem)),
      h(
        'p',
        {},
        'Run ',
        h('code', {}, 'longboat models'),
        ' on the server for details. ',
        h('code', {}, '!'),
        ' commands already work.',
      ),
      h('button', { type: 'button', class: 'small', onclick: this.look }, 'Check again'),
    );
  }
}

function answers(page) {
  const info = page.items.find((item) => item.name === page.large);
  const more = page.items.filter((item) => item.ready).length - 1;
  return h(
    'p',
    {},
    'Model: ',
    h('strong', {}, plain(page.large ?? '')),
    info?.context_window ? ` (${tokens(info.context_window)} context).` : '.',
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
