// The inbox on the screen: one entry for each item, what waits for an answer first, with the buttons to answer in place.

import { say, toastError } from './a11y.js';
import { keyHint } from './answering.js';
import { Workspace } from './api.js';
import { Asks } from './asks.js';
import { byId, h, icon, replace, withCode } from './dom.js';
import { base, exactly, oneLine, plain, plural, when } from './format.js';
import { InboxKeys } from './inboxkeys.js';
import { Mirror } from './mirror.js';
import { notifyButton } from './notify.js';

const KINDS = { permission: 'Approval needed', question: 'Question', failed: 'Run failed', finished: 'Run finished' };

export class InboxView {
  /** `leave()` goes back to where the user was. */
  constructor(inbox, leave) {
    this.inbox = inbox;
    this.entries = new Map(); // id → { element, close, drawn }
    this.list = h('ol', { class: 'inbox-list' });
    this.status = h('p', { class: 'quiet' });
    this.seeAll = h('button', { type: 'button', onclick: () => this.markAll() }, 'Mark all as seen');
    this.more = h('button', { type: 'button', class: 'inbox-more', onclick: () => this.loadMore() }, 'Show more');
    this.element = h(
      'section',
      { class: 'inbox', 'aria-labelledby': 'inbox-title' },
      h(
        'header',
        {},
        h('h1', { id: 'inbox-title', tabindex: '-1' }, 'Inbox'),
        this.status,
        h('div', { class: 'buttons' }, this.seeAll, notifyButton()),
      ),
      this.list,
      this.more,
    );
    this.list.addEventListener('focusin', (event) => (this.at = event.target.closest('.inbox-item')));
    this.keys = new InboxKeys(this.list, this.entries, leave);
    this.stop = inbox.on('changed', () => this.draw());
    this.draw();
  }

  close() {
    this.stop();
    this.keys.close();
    for (const entry of this.entries.values()) entry.close();
  }

  draw() {
    const items = this.inbox.list();
    const { waiting, unseen } = this.inbox;
    const none = this.inbox.newest === null ? '' : 'Nothing new.'; // not before it is known
    this.status.textContent = waiting || unseen ? `${waiting} waiting for an answer, ${unseen} new` : none;
    this.seeAll.hidden = !items.some((item) => !item.seen);
    this.more.hidden = this.inbox.next === null;
    const ids = new Set(items.map((item) => item.id));
    for (const [id, entry] of this.entries) if (!ids.has(id)) this.drop(id, entry);
    let after = null;
    for (const item of items) {
      const { element } = this.entry(item);
      // Moving an element that is in its place would take the focus from it.
      if ((after ? after.nextElementSibling : this.list.firstElementChild) !== element) {
        if (after) after.after(element);
        else this.list.prepend(element);
      }
      after = element;
    }
    if (this.wanted) this.focus(this.wanted);
  }

  entry(item) {
    const known = this.entries.get(item.id);
    const drawn = JSON.stringify([item.seen, item.session_title]);
    if (known?.drawn === drawn) return known;
    const made = known ?? { ...newEntry(item, this.inbox.client_id), element: h('li', { data: { id: item.id } }) };
    made.drawn = drawn;
    made.element.className = `inbox-item ${item.kind}${item.seen ? '' : ' unseen'}`;
    const head = heading(item, () => {
      this.inbox.see([item.id]).catch(() => {});
      history.replaceState(null, '', `#/inbox/${item.id}`); // Back returns to this item
    });
    if (known) {
      const before = made.element.firstElementChild;
      const hadFocus = before.contains(document.activeElement);
      before.replaceWith(head);
      if (hadFocus) head.querySelector('a').focus({ preventScroll: true });
    } else replace(made.element, head, made.body);
    this.entries.set(item.id, made);
    return made;
  }

  /** Someone answered it, or it is too old. The focus stays in the list. */
  drop(id, entry) {
    // A card whose answer is on its way is inert and has lost the focus.
    const isLost = document.activeElement === document.body && this.at === entry.element;
    const hadFocus = isLost || entry.element.contains(document.activeElement);
    const next = entry.element.nextElementSibling ?? entry.element.previousElementSibling;
    entry.close();
    entry.element.remove();
    this.entries.delete(id);
    if (!hadFocus) return;
    (next?.querySelector('a, button') ?? byId('inbox-title'))?.focus();
    this.keys.moved();
  }

  /** Shows one item, as soon as it is there; the one after it, if it is gone. */
  focus(id) {
    const at = this.entries.has(id) ? id : this.following(id);
    const entry = this.entries.get(at);
    this.wanted = entry ? null : id;
    if (!entry) return;
    entry.element.scrollIntoView({ block: 'center' });
    entry.element.querySelector('a').focus({ preventScroll: true });
    this.inbox.see([at]).catch(() => {});
  }

  /** The item after one that was answered, or null if it may still come. */
  following(id) {
    const isGone = Number(id) <= (this.inbox.newest ?? 0) && this.inbox.isLoaded({ id });
    return (isGone && this.inbox.list().find((item) => Number(item.id) < Number(id))?.id) || null;
  }

  async markAll() {
    try {
      await this.inbox.seeAll();
      say('All marked as seen.');
      byId('inbox-title')?.focus();
    } catch (error) {
      toastError(error);
    }
  }

  async loadMore() {
    this.more.disabled = true;
    try {
      await this.inbox.more();
    } catch (error) {
      toastError(error);
    } finally {
      this.more.disabled = false;
    }
  }
}

function heading(item, see) {
  const title = plain(item.session_title) || oneLine(plain(item.text)) || 'New session';
  return h(
    'p',
    { class: 'inbox-head' },
    h('span', { class: 'kind' }, KINDS[item.kind]),
    h(
      'a',
      { href: `#/${encodeURIComponent(item.workspace_id)}/${encodeURIComponent(item.session_id)}`, onclick: see },
      title,
    ),
    h('span', { class: 'quiet', title: plain(item.workspace_path) }, plain(base(item.workspace_path))),
    !item.seen && h('span', { class: 'new' }, 'New'),
    h('time', { class: 'quiet', datetime: item.at, title: exactly(item.at) }, when(item.at)),
  );
}

/** What is below the heading: the card to answer with, or what the run was about. */
function newEntry(item, client_id) {
  if (item.kind !== 'permission' && item.kind !== 'question') {
    const error = item.error && h('p', { class: 'wrong' }, withCode(oneLine(item.error, 300)));
    const text = item.text !== item.session_title && h('p', { class: 'quiet' }, oneLine(plain(item.text), 300));
    return { body: h('div', { class: 'inbox-body' }, error, text), close: () => {} };
  }
  // The state of a workspace that knows this one ask: its card works as it does in its session.
  const workspace = new Workspace(item.workspace_id, client_id);
  const mirror = new Mirror(workspace);
  if (item.permission) mirror.permissions.set(item.permission.id, item.permission);
  if (item.question) mirror.questions.set(item.question.id, item.question);
  const ask = item.permission ?? item.question;
  const asks = new Asks(workspace, mirror);
  asks.show(ask.session_id);
  asks.element.removeAttribute('aria-label'); // many landmarks of one name lead nowhere: the card has its own
  const told = [keyHint(ask), 'Enter opens the session.'].filter(Boolean).join(' ');
  const hint = h('p', { class: 'inbox-keys quiet', role: 'status' }, told);
  return { body: h('div', {}, asks.element, hint), asks, ask, hint, told, close: () => asks.close() };
}

/** The link in the top bar, with the number of things that wait. */
export function startBadge(inbox) {
  const link = byId('inbox');
  const badge = h('span', { class: 'badge', hidden: true });
  replace(link, icon('inbox'), badge);
  const draw = () => {
    const label = inbox.count ? `Inbox: ${inbox.waiting} waiting, ${plural(inbox.unseen, 'new run')}` : 'Inbox';
    link.setAttribute('aria-label', label);
    link.title = label;
    badge.hidden = !inbox.count;
    badge.textContent = inbox.count > 99 ? '99+' : String(inbox.count);
    badge.classList.toggle('waits', inbox.waiting > 0);
  };
  draw();
  return inbox.on('changed', draw);
}
