// What stands in the place of a transcript that is not there: what can be done here, who answers, what is missing.

import { h, replace } from './dom.js';
import { plain, tokens } from './format.js';

const BEGINNINGS = [
  'Explain how this project is built up.',
  'Run the tests, and fix what fails.',
  'Review the changes that are not committed yet.',
];
const KEYS = [
  ['@', 'names a file'],
  ['/', 'lists commands and skills'],
  ['!', 'runs a command here yourself'],
  ['↑', 'brings back what you sent'],
];

/** A new session. `put(text)` begins a prompt, `look()` asks again which models there are. */
export class Welcome {
  constructor({ put, look }) {
    this.look = look;
    this.model = h('div', {});
    this.element = h(
      'div',
      { class: 'welcome' },
      h('h2', {}, 'What shall be done?'),
      h(
        'p',
        { class: 'quiet' },
        'Write a prompt below. Everybody attached to this workspace sees the session live and can join in; it goes on when you close the page.',
      ),
      this.model,
      h(
        'ul',
        { class: 'beginnings', 'aria-label': 'Ways to begin' },
        BEGINNINGS.map((text) => h('li', {}, h('button', { type: 'button', onclick: () => put(text) }, text))),
      ),
      h(
        'dl',
        { class: 'keys' },
        KEYS.map(([key, what]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', { class: 'quiet' }, what))),
      ),
    );
  }

  /** Which model answers, or why none does. */
  setModels(page) {
    if (!page) return;
    replace(this.model, page.problem ? this.problem(page) : page.advice ? this.advice(page) : answers(page));
  }

  /** One answers that nobody chose: what it is good for, and how to get a better one. */
  advice(page) {
    return h(
      'div',
      { class: 'problem', role: 'status' },
      h('strong', {}, `${plain(page.large ?? '')} answers`),
      h('p', {}, plain(page.advice)),
      h('button', { type: 'button', class: 'small', onclick: this.look }, 'Look again'),
    );
  }

  problem(page) {
    return h(
      'div',
      { class: 'problem', role: 'status' },
      h('strong', {}, 'No model can answer yet'),
      h('p', {}, plain(page.problem)),
      h(
        'p',
        {},
        'The configuration is on the server’s machine: ',
        h('code', {}, 'longboat models'),
        ' there tells more. ',
        h('code', {}, '!'),
        ' commands work already.',
      ),
      h('button', { type: 'button', class: 'small', onclick: this.look }, 'Look again'),
    );
  }
}

function answers(page) {
  const info = page.items.find((item) => item.name === page.large);
  const more = page.items.filter((item) => item.ready).length - 1;
  return h(
    'p',
    {},
    h('strong', {}, plain(page.large ?? '')),
    ' answers',
    info?.context_window ? ` and remembers ${tokens(info.context_window)} tokens` : '',
    more > 0 ? `. Below the prompt you can choose ${more === 1 ? 'another one' : `one of ${more} others`}.` : '.',
  );
}

/** A session that cannot be shown. */
export function lost(why, workspace_id) {
  return h(
    'div',
    { class: 'welcome' },
    h('h2', {}, 'This session is not there'),
    why && h('p', {}, plain(why)),
    h('p', {}, 'It may have been deleted, or the link was cut. The other sessions are in the list.'),
    h('p', {}, h('a', { href: `#/${encodeURIComponent(workspace_id)}` }, 'Start a new one')),
  );
}
