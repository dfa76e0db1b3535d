// The list of sessions: pinned ones, then by day of last use; searchable by title and by what was said; each with a menu.

import { roving, toast, toastError } from './a11y.js';
import { asked, confirmed } from './dialog.js';
import { byDay } from './days.js';
import { h, icon, perFrame, replace } from './dom.js';
import { exactly, hour, plain, plural, when } from './format.js';
import { menu } from './menu.js';
import { SearchResults } from './search.js';

const PAGE = 60;
/** What the mark of a session says whose last turn ended so. */
/** How a session's last turn failed, for the mark beside its title. */
export const FAILED = { error: 'failed', interrupted: 'interrupted' };

export class Sessions {
  /** `go(id)` opens a session; null a new one. */
  constructor(workspace, mirror, go) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.go = go;
    this.known = new Map();
    this.next = null;
    this.search = h('input', {
      type: 'search',
      id: 'session-search',
      placeholder: 'Search sessions',
      'aria-label': 'Search sessions',
      oninput: () => this.typed(),
    });
    this.archived = false; // which of them are listed
    this.list = h('div', { class: 'session-list' });
    this.results = new SearchResults(workspace);
    this.archive = h('button', { type: 'button', class: 'small quiet', onclick: () => this.showArchived(!this.archived) });
    this.more = h(
      'button',
      { type: 'button', class: 'small', hidden: true, onclick: () => this.load(false) },
      'Show more',
    );
    this.empty = h('p', { class: 'quiet', hidden: true });
    this.element = h(
      'div',
      { class: 'sessions' },
      h(
        'div',
        { class: 'row' },
        this.search,
        h(
          'button',
          { type: 'button', class: 'new', title: 'New session', 'aria-label': 'New session', onclick: () => go(null) },
          icon('plus'),
        ),
      ),
      this.list,
      this.empty,
      this.more,
      this.results.element,
      this.archive,
    );
    roving(this.list, 'a');
    this.draw = perFrame(() => this.drawNow());
    this.stops = [
      mirror.on('sessions', (event) => this.heard(event)),
      mirror.on('asks', () => this.draw()),
      mirror.on('snapshot', () => this.load(true)),
    ];
    this.load(true);
  }

  close() {
    this.stops.forEach((stop) => stop());
  }

  show(session_id) {
    this.current = session_id;
    this.draw();
  }

  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      this.load(true);
      this.results.find(this.search.value.trim());
    }, 150);
  }

  showArchived(archived) {
    this.archived = archived;
    this.load(true);
  }

  async load(fresh) {
    const q = this.search.value.trim();
    const archived = this.archived ? 'only' : null;
    try {
      const page = await this.workspace.sessions({ q: q || null, limit: PAGE, archived, after: fresh ? null : this.next });
      if (q !== this.search.value.trim() || this.archived !== (archived === 'only')) return;
      if (fresh) this.known.clear();
      page.items.forEach((session) => this.known.set(session.id, session));
      this.next = page.next;
      this.query = q;
      this.draw();
    } catch {
      // The connection state is shown elsewhere; the next snapshot reloads.
    }
  }

  heard({ change, session }) {
    if (!session || session.parent_id) return;
    if (change === 'deleted' || session.archived !== this.archived) this.known.delete(session.id);
    else if (this.known.has(session.id) || !this.query) this.known.set(session.id, session);
    this.draw();
  }

  drawNow() {
    const sessions = [...this.known.values()].sort((one, other) => other.updated_at.localeCompare(one.updated_at));
    const asking = new Set();
    for (const ask of this.mirror.pendingAsks()) {
      asking.add(ask.parent_session_id ?? ask.session_id);
    }
    const focused = this.list.contains(document.activeElement)
      ? document.activeElement.closest('li')?.dataset.id
      : null;
    if (this.list.querySelector('.menu:not([hidden])')) return; // do not remove an open menu
    const pinned = sessions.filter((session) => session.pinned);
    const groups = byDay(
      sessions.filter((session) => !session.pinned),
      (session) => session.updated_at,
    );
    if (pinned.length) groups.unshift(['Pinned', pinned]);
    replace(
      this.list,
      groups.map(([name, items]) => [
        h('h3', {}, name),
        h(
          'ul',
          { 'aria-label': name },
          items.map((session) => this.item(session, asking.has(session.id))),
        ),
      ]),
    );
    const stop = this.list.querySelector('a[tabindex="0"]') ?? this.list.querySelector('a');
    if (stop) stop.tabIndex = 0;
    if (focused) this.list.querySelector(`[data-id="${CSS.escape(focused)}"] a`)?.focus();
    this.more.hidden = !this.next;
    this.empty.hidden = sessions.length > 0;
    this.empty.textContent = this.query
      ? 'No matching sessions.'
      : this.archived
        ? 'No archived sessions.'
        : 'No sessions yet. Send a prompt to start one.';
    this.archive.textContent = this.archived ? 'Back to all sessions' : 'Archived sessions';
  }

  item(session, asks) {
    const isCurrent = session.id === this.current;
    return h(
      'li',
      { data: { id: session.id }, class: isCurrent ? 'current' : null },
      h(
        'a',
        {
          href: `#/${this.workspace.id}/${session.id}`,
          'aria-current': isCurrent ? 'page' : null,
          tabindex: isCurrent ? '0' : '-1',
        },
        asks
          ? h('span', { class: 'dot waits', role: 'img', 'aria-label': 'needs an answer' })
          : session.busy
            ? h('span', { class: 'dot busy', role: 'img', 'aria-label': 'working' })
            : FAILED[session.last_outcome]
              ? h('span', { class: 'dot failed', role: 'img', 'aria-label': FAILED[session.last_outcome] })
              : h('span', { class: 'dot' }),
        h('span', { class: 'session-title' }, plain(session.title) || 'New session'),
        h(
          'time',
          { datetime: session.updated_at, title: exactly(session.updated_at) },
          session.pinned ? when(session.updated_at) : hour(session.updated_at), // the heading has the day
        ),
      ),
      menu(`Actions for ${plain(session.title) || 'this session'}`, () => this.actions(session), { isTabStop: false }),
    );
  }

  actions(session) {
    return [
      { label: 'Rename…', run: () => this.rename(session) },
      session.pinned
        ? { label: 'Unpin', run: () => this.mark(session, { pinned: false }) }
        : { label: 'Pin', run: () => this.mark(session, { pinned: true }) },
      session.archived
        ? { label: 'Unarchive', run: () => this.mark(session, { archived: false }) }
        : { label: 'Archive', run: () => this.mark(session, { archived: true }) },
      { label: 'Copy link', run: () => this.copyLink(session) },
      { label: 'Fork', run: () => this.fork(session) },
      { label: 'Export as Markdown', run: () => this.save(session, 'markdown') },
      { label: 'Export as JSON', run: () => this.save(session, 'json') },
      { label: 'Delete…', danger: true, run: () => this.remove(session) },
    ];
  }

  async rename(session) {
    const title = await asked('Rename session', {
      label: 'Title',
      value: session.title,
      action: 'Rename',
      check: (text) => (text.length > 500 ? 'Use at most 500 characters.' : ''),
    });
    if (title !== null) this.attempt(this.workspace.rename(session.id, title));
  }

  async mark(session, marks) {
    const done = await this.attempt(this.workspace.mark(session.id, marks));
    if (done && marks.archived) toast('Archived. Search still finds it, and a new prompt restores it.');
  }

  async copyLink(session) {
    const link = `${location.origin}/#/${[this.workspace.id, session.id].map(encodeURIComponent).join('/')}`;
    try {
      await navigator.clipboard.writeText(link);
      toast('Link copied. It works for everyone who can log in here.');
    } catch {
      // Without https a browser copies nothing for a page.
      const text = 'The browser blocked copying. Copy the link yourself.';
      await asked('Copy link', { text, label: 'Link', value: link, action: 'Close' });
    }
  }

  async fork(session, message_id) {
    const made = await this.attempt(this.workspace.fork(session.id, message_id));
    if (made) this.go(made.id);
  }

  async save(session, format) {
    const link = h('a', {
      href: this.workspace.exportPath(session.id, format),
      download: `${
        plain(session.title)
          .replace(/[^\w-]+/g, '-')
          .slice(0, 60) || 'session'
      }.${format === 'json' ? 'json' : 'md'}`,
    });
    link.click();
  }

  async remove(session) {
    const runs = this.mirror.unfinished(session.id).length;
    const text = `Deletes “${plain(session.title) || 'New session'}” for everyone${runs ? ` and cancels ${plural(runs, 'run')}` : ''}. Files are not changed.`;
    if (!(await confirmed('Delete session?', text, 'Delete', { danger: true }))) return;
    await this.attempt(this.workspace.remove(session.id));
    if (session.id === this.current) this.go(null);
  }

  async attempt(work) {
    try {
      return await work;
    } catch (error) {
      toastError(error);
      return null;
    }
  }
}
