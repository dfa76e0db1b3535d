// The transcript on the screen: a window of at most MOST_ROWS messages that moves over the history as you scroll.
// So a long session costs no more than its window.

import { h, icon, perFrame, withCode } from './dom.js';
import { MessageView } from './message.js';
import { ToolGroups } from './toolgroups.js';

const MOST_ROWS = 90;
const STEP = 30;
const NEAR_PX = 900;
const NEAR_END_PX = 40;
const AT_END_PX = 8;
const AGAIN_MS = 500;

export class Transcript {
  /** `story` is what messages need from the session: history, author(), isOver(), subAgent(), actions(), … */
  constructor(scroller, story) {
    this.scroller = scroller;
    this.story = story;
    this.history = story.history;
    this.views = new Map();
    this.from = 0;
    this.to = 0;
    this.pinned = true;
    this.lastTop = 0;
    this.rows = h('div', { class: 'rows' });
    this.older = h('p', { class: 'older quiet' });
    this.notices = h('div', { class: 'notices' });
    this.element = h('div', { class: 'transcript' }, this.older, this.rows, this.notices);
    this.newest = h(
      'button',
      { type: 'button', class: 'newest', hidden: true, onclick: () => this.toEnd() },
      icon('down'),
      'Jump to latest',
    );
    this.groups = new ToolGroups(story);
    this.dirty = new Set();
    this.flush = perFrame(() => this.draw());
    this.stopListening = this.history.listen((kind, what) => this.heard(kind, what));
    this.onScroll = () => this.scrolled();
    if (scroller) {
      scroller.addEventListener('scroll', this.onScroll, { passive: true });
      this.sizes = new ResizeObserver(() => this.resized());
      this.sizes.observe(this.element);
      this.sizes.observe(scroller);
    }
    if (this.history.loaded) this.reset();
  }

  close() {
    this.closed = true;
    this.stopListening();
    this.scroller?.removeEventListener('scroll', this.onScroll);
    this.sizes?.disconnect();
  }

  /** The messages that have a row: results are shown inside their calls. */
  get shown() {
    return this.history.messages.filter((message) => message.role !== 'tool');
  }

  heard(kind, what) {
    if (kind === 'reset') this.readAgain();
    else if (!this.list) return; // the first page is loading
    else if (kind === 'older') this.showOlder(what);
    else if (kind === 'removed') this.removed(what);
    else if (kind === 'message') this.changed(what);
    else if (kind === 'delta') this.grown(what);
  }

  reset() {
    this.list = this.shown;
    this.arrange(this.list.length - STEP, this.list.length);
    this.pinned = true;
    this.history.reading = null;
    this.tellNewest();
    this.stick();
  }

  /** After the history was reloaded: a reader further up stays there. */
  readAgain() {
    const seq = this.follows() ? null : this.history.reading;
    if (seq === null || !this.mark) return this.reset();
    const top = this.markTop;
    this.list = this.shown;
    const place = this.list.findLastIndex((message) => message.seq <= seq);
    if (place < 0) return this.reset();
    this.arrange(place - STEP, place + STEP);
    const row = this.views.get(this.list[place].id).element;
    this.scroller.scrollTop += row.getBoundingClientRect().top - top;
    this.remember();
    this.tellNewest();
  }

  /** Shows this part of the list. Existing rows stay, with what is expanded or selected in them. */
  arrange(from, to) {
    this.from = Math.max(0, from);
    this.to = Math.min(this.list.length, to);
    const before = this.views;
    this.views = new Map();
    let at = this.rows.firstChild;
    for (const message of this.list.slice(this.from, this.to)) {
      const view = before.get(message.id);
      if (view) {
        this.views.set(message.id, view);
        view.set(message);
      }
      const row = (view ?? this.view(message)).element;
      if (row === at) at = at.nextSibling;
      else this.rows.insertBefore(row, at);
    }
    for (const id of before.keys()) if (!this.views.has(id)) before.get(id).element.remove();
    this.group();
    this.tellOlder();
  }

  group() {
    const views = this.list.slice(this.from, this.to).map((message) => this.views.get(message.id));
    this.groups.arrange(views.filter(Boolean));
  }

  view(message) {
    const view = new MessageView(message, this.story);
    this.views.set(message.id, view);
    return view;
  }

  changed(message) {
    if (message.role === 'tool') {
      for (const part of message.parts) if (part.tool_call_id) this.refreshCall(part.tool_call_id);
      return;
    }
    const view = this.views.get(message.id);
    if (view) {
      view.message = message;
      this.dirty.add(view);
      this.flush();
      return;
    }
    const atEnd = this.to === this.list.length;
    this.list = this.shown;
    const place = this.list.findIndex((item) => item.id === message.id);
    if (place < this.from) {
      this.from += 1;
      this.to += 1;
    } else if (atEnd && place >= this.from) {
      this.to = this.list.length;
      const next = this.list[place + 1];
      this.rows.insertBefore(this.view(message).element, next ? (this.views.get(next.id)?.element ?? null) : null);
      if (this.pinned) this.trimTop();
    }
    this.tellNewest();
  }

  grown({ message, part, index }) {
    if (message.role === 'tool') return this.refreshCall(part.tool_call_id);
    const view = this.views.get(message.id);
    if (!view) return;
    (view.grown ??= new Set()).add(index);
    this.dirty.add(view);
    this.flush();
  }

  refreshCall(call_id) {
    const owner = this.owners?.get(call_id) ?? this.findOwner(call_id);
    const view = owner && this.views.get(owner);
    if (!view) return;
    this.dirty.add(view);
    view.whole = true;
    this.flush();
  }

  findOwner(call_id) {
    this.owners ??= new Map();
    const found = this.history.messages.findLast((message) =>
      message.parts.some((part) => part.type === 'tool_call' && part.id === call_id),
    );
    if (found) this.owners.set(call_id, found.id);
    return found?.id;
  }

  draw() {
    const follows = this.follows();
    let regroup = false;
    for (const view of this.dirty) {
      const message = this.history.byId.get(view.message.id);
      if (!message) continue;
      const onlyGrown = view.grown && !view.whole && message === view.message;
      if (onlyGrown) for (const index of view.grown) view.extend(index);
      else view.set(message);
      regroup ||= !onlyGrown;
      view.grown = null;
      view.whole = false;
    }
    this.dirty.clear();
    if (regroup) this.group();
    if (follows) this.stick();
  }

  /** Draws all rows again: after runs ended, or when names became known. */
  refresh() {
    for (const view of this.views.values()) {
      view.whole = true;
      this.dirty.add(view);
    }
    this.flush();
  }

  removed(id) {
    const place = this.list.findIndex((message) => message.id === id);
    if (place < 0) return;
    this.list = this.shown;
    this.views.get(id)?.element.remove();
    this.views.delete(id);
    if (place < this.from) this.from -= 1;
    if (place < this.to) this.to -= 1;
  }

  // The window

  showOlder(number) {
    const before = this.list[this.from]?.id;
    this.list = this.shown;
    const place = before ? this.list.findIndex((message) => message.id === before) : this.list.length;
    this.to += place - this.from;
    this.from = place;
    this.tellOlder();
    // A search loads older pages too, while the reader stays where they are.
    if (number && this.scroller.scrollTop < NEAR_PX) this.up();
  }

  up() {
    const from = Math.max(0, this.from - STEP);
    if (from === this.from) return;
    this.hold(() => {
      this.rows.prepend(...this.list.slice(from, this.from).map((message) => this.view(message).element));
      this.from = from;
      this.trimBottom();
      this.group();
    });
    this.tellOlder();
    this.tellNewest();
  }

  downwards() {
    const to = Math.min(this.list.length, this.to + STEP);
    if (to === this.to) return;
    this.hold(() => {
      this.rows.append(...this.list.slice(this.to, to).map((message) => this.view(message).element));
      this.to = to;
      this.trimTop();
      this.group();
    });
    this.tellNewest();
  }

  trimTop() {
    while (this.to - this.from > MOST_ROWS) this.drop(this.from++);
    this.tellOlder();
  }

  trimBottom() {
    while (this.to - this.from > MOST_ROWS) this.drop(--this.to);
  }

  drop(place) {
    const { id } = this.list[place];
    this.views.get(id)?.element.remove();
    this.views.delete(id);
  }

  /** Changes rows without moving what is being read. */
  hold(change) {
    this.keepPlace();
    const anchor = this.anchor();
    const before = anchor?.getBoundingClientRect().top;
    change();
    if (anchor?.isConnected) this.scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    this.remember();
  }

  /** Remembers the reading position: rows above it grow when their Markdown arrives. */
  remember() {
    this.mark = this.pinned ? null : this.anchor();
    this.markTop = this.mark?.getBoundingClientRect().top;
    this.markScroll = this.scroller.scrollTop;
    this.history.reading = this.history.byId.get(this.mark?.dataset.id)?.seq ?? null;
  }

  resized() {
    if (this.follows()) this.stick();
    else this.keepPlace();
  }

  /** Whether the end stays in view. Browsers report a scroll with the next frame: who has just left the end stays away. */
  follows() {
    if (!this.scroller || !this.pinned) return this.pinned;
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (scrollTop < this.lastTop - 1 && scrollHeight - scrollTop - clientHeight >= AT_END_PX) {
      this.pinned = false;
      this.remember();
    }
    return this.pinned;
  }

  /** Corrects for rows that moved the reading position, but not for the reader's own scrolling. */
  keepPlace() {
    if (this.pinned || !this.mark?.isConnected) return;
    const scrolled = this.scroller.scrollTop - this.markScroll;
    const moved = this.mark.getBoundingClientRect().top + scrolled - this.markTop;
    if (Math.abs(moved) <= 0.5) return;
    this.scroller.scrollTop += moved;
    this.remember();
  }

  /** The row that stays in place. One that begins above the view may still get its height: if the next one begins in
   *  the upper half, that is what is being read. */
  anchor() {
    const { top, height } = this.scroller.getBoundingClientRect();
    const rows = [...this.rows.children];
    const at = rows.findIndex((row) => row.getBoundingClientRect().bottom > top);
    if (at < 0) return null;
    const next = rows.slice(at + 1).find((row) => row.offsetHeight); // a row in a closed group has none
    const begins = (row) => row.getBoundingClientRect().top - top;
    return next && begins(rows[at]) < 0 && begins(next) < height / 2 ? next : rows[at];
  }

  scrolled() {
    // Browsers report a scroll before new sizes: without this, the new position would include them.
    this.keepPlace();
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const left = scrollHeight - scrollTop - clientHeight;
    const wentUp = scrollTop < this.lastTop - 1;
    this.lastTop = scrollTop;
    // Growing rows also leave the end behind: only a reader who scrolled up wants to stay there.
    if (wentUp || left < NEAR_END_PX) this.pinned = left < (wentUp ? AT_END_PX : NEAR_END_PX) && this.to === this.list?.length;
    this.tellNewest();
    if (!this.list) return;
    if (scrollTop < NEAR_PX) {
      if (this.from > 0) this.up();
      else this.loadOlderPages();
    }
    if (left < NEAR_PX && this.to < this.list.length) this.downwards();
    this.remember();
  }

  /** Loads older pages until there is something to scroll up to: at the very top no scroll event would ask again. */
  async loadOlderPages() {
    if (this.loadingOlder) return;
    this.loadingOlder = true;
    while (!this.closed && this.from === 0 && this.history.older && this.scroller.scrollTop < NEAR_PX) {
      const isRead = await this.history.loadOlder().catch(() => false);
      if (!isRead) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
    this.loadingOlder = false;
  }

  toEnd() {
    this.reset();
    this.scroller.focus({ preventScroll: true });
  }

  /** Brings a message into the window. Its row, or null if it is not loaded. */
  reveal(id) {
    const place = this.list?.findIndex((message) => message.id === id) ?? -1;
    if (place < 0) return null;
    this.pinned = false;
    if (place < this.from || place >= this.to) this.arrange(place - STEP, place + STEP);
    return this.views.get(id).element;
  }

  /** Scrolls so that this rectangle is in the middle, unless it is in view. */
  center({ top, bottom }) {
    const view = this.scroller.getBoundingClientRect();
    const isSeen = top >= view.top && bottom <= view.bottom;
    if (!isSeen) this.scroller.scrollTop += top - view.top - view.height / 3;
    this.moved();
  }

  /** After the page itself scrolled: is the reader at the end? */
  moved() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.pinned = scrollHeight - scrollTop - clientHeight < AT_END_PX && this.to === this.list.length;
    this.lastTop = scrollTop;
    this.tellNewest();
    this.remember();
  }

  /** Moves the focus by a number of messages, from the focused one or from the end. True if there was one. */
  step(by) {
    const rows = [...this.rows.children].filter((row) => row.offsetParent !== null);
    const focused = rows.findIndex((row) => row.contains(document.activeElement));
    const row = focused < 0 ? rows.at(-1) : rows[focused + by];
    if (!row) return false;
    this.reveal(row.dataset.id);
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: 'nearest' });
    this.moved();
    return true;
  }

  stick() {
    if (!this.scroller) return;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.lastTop = this.scroller.scrollTop;
  }

  tellNewest() {
    this.newest.hidden = this.pinned;
  }

  tellOlder() {
    const more = this.from > 0 || this.history.older;
    this.older.textContent = more ? 'Scroll up for older messages' : '';
    this.older.hidden = !more;
  }

  // Notices beside the answers

  setNotices(notices) {
    const key = JSON.stringify(notices);
    if (key === this.noticed) return;
    this.noticed = key;
    const follows = this.follows();
    this.notices.replaceChildren(
      ...notices.map((notice) =>
        h(
          'p',
          { class: `notice ${notice.type}` },
          h('strong', {}, TITLES[notice.type] ?? notice.type),
          ' ',
          withCode([notice.message, notice.detail].filter(Boolean).join(' — ')),
        ),
      ),
    );
    if (follows) this.stick();
  }
}

const TITLES = {
  error: 'Error',
  notice: 'Note',
  retrying: 'Retrying',
  summarizing: 'Summarizing',
  loading: 'Loading',
};
