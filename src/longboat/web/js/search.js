// What was said in all sessions: hits with the matching words marked, each a link to its message.

import { server } from './api.js';
import { h, replace } from './dom.js';
import { base, exactly, plain, when } from './format.js';

const LIMIT = 20;
const FEWEST_LETTERS = 2;
const WHO = { user: 'Prompt', assistant: 'Answer' };

export class SearchResults {
  constructor(workspace) {
    this.workspace = workspace;
    this.list = h('ul', { class: 'hits' });
    this.more = h(
      'button',
      { type: 'button', class: 'small', hidden: true, onclick: () => this.load(false) },
      'Show more',
    );
    this.note = h('p', { class: 'quiet', role: 'status' });
    this.element = h(
      'section',
      { class: 'results', 'aria-labelledby': 'results-heading', hidden: true },
      h('h3', { id: 'results-heading' }, 'In messages'),
      this.list,
      this.note,
      this.more,
    );
    this.hits = [];
  }

  /** Searches for these words; without them nothing is shown. */
  find(words) {
    this.words = words;
    this.more.hidden = true; // there may be more of the last search, but not of this one
    this.element.hidden = words.length < FEWEST_LETTERS;
    if (!this.element.hidden) return this.load(true);
    replace(this.list);
    return null;
  }

  async load(fresh) {
    const { words } = this;
    try {
      let [before, found, page] = [fresh ? null : this.next, [], null];
      do {
        page = await server.search(words, { limit: LIMIT, before });
        if (words !== this.words) return; // a newer search is on its way
        // Titles of this workspace are in the list above.
        found = page.items.filter((hit) => hit.message_id || hit.workspace_id !== this.workspace.id);
        before = page.next;
      } while (!found.length && before); // a page may have nothing but such titles
      this.hits = fresh ? found : [...this.hits, ...found];
      this.next = before;
      this.draw(page.complete);
    } catch (error) {
      if (words === this.words) this.note.textContent = error.message;
    }
  }

  draw(isComplete) {
    replace(
      this.list,
      this.hits.map((hit) => this.item(hit)),
    );
    this.more.hidden = !this.next;
    this.note.textContent = isComplete
      ? this.hits.length
        ? ''
        : 'No matching messages.'
      : 'The search index is still being built. Older messages may be missing; try again in a moment.';
  }

  item(hit) {
    const isElsewhere = hit.workspace_id !== this.workspace.id;
    const address = [hit.workspace_id, hit.session_id, hit.message_id].filter(Boolean).map(encodeURIComponent).join('/');
    return h(
      'li',
      {},
      h(
        'a',
        { href: `#/${address}${firstMatch(hit)}` },
        h(
          'span',
          { class: 'hit-head' },
          h('span', { class: 'session-title' }, plain(hit.session_title) || 'New session'),
          h('time', { datetime: hit.at, title: exactly(hit.at) }, when(hit.at)),
        ),
        (isElsewhere || hit.archived) &&
          h(
            'span',
            { class: 'quiet' },
            [isElsewhere && plain(base(hit.workspace_path)), hit.archived && 'archived'].filter(Boolean).join(' · '),
          ),
        h('span', { class: 'snippet' }, `${WHO[hit.role] ?? 'Title'}: `, marked(hit.snippet)),
      ),
    );
  }
}

/** The first matching words, for the address: the message is opened at them. */
function firstMatch({ message_id, snippet }) {
  const [first] = snippet.matches;
  if (!message_id || !first) return '';
  return `?${new URLSearchParams({ find: Array.from(snippet.text).slice(...first).join('') })}`;
}

/** The snippet as text nodes, its matches as marks. The server counts code points. */
export function marked({ text, matches }) {
  const points = Array.from(text);
  const piece = (from, to) => plain(points.slice(from, to).join(''));
  const pieces = [];
  let at = 0;
  for (const [start, end] of matches) {
    pieces.push(piece(at, start), h('mark', {}, piece(start, end)));
    at = end;
  }
  pieces.push(piece(at));
  return pieces;
}
