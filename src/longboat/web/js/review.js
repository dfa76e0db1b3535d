// The review of a session's changes, over the whole width: all files below each other, with undo and comments.

import { roving, say, toast, toastError } from './a11y.js';
import { numbers, total } from './changes.js';
import { confirmed } from './dialog.js';
import { hasRoom, isSplit, setSplit, splitButton } from './diff.js';
import { h, iconButton, perFrame, replace } from './dom.js';
import { base, plain, plural } from './format.js';
import { person } from './people.js';
import { lineOf, ReviewFile } from './review_file.js';
import { keep, recall } from './storage.js';
import { preview } from './tree.js';

const MARGIN = 40; // between the list of diffs and a diff
const AHEAD = 600; // pixels around the visible part in which diffs are loaded
const KEYS = 'j k: file · n p: hunk · ↑ ↓: line · c: comment · u: undo hunk · U: undo file · r: redo · o: open · Esc: back';

export class Review {
  /** `insert(text)` puts a text into the prompt; `leave()` shows the conversation. */
  constructor(workspace, mirror, { insert, leave }) {
    Object.assign(this, { workspace, insert, leave });
    this.files = new Map(); // path → ReviewFile
    this.count = h('span', { class: 'quiet' });
    this.split = splitButton();
    this.comments = h('button', { type: 'button', class: 'primary small', hidden: true, onclick: () => this.send() });
    this.again = h('button', { type: 'button', class: 'small', hidden: true, onclick: () => this.redo() });
    this.names = h('nav', { class: 'review-names', 'aria-label': 'Changed files' });
    this.list = h('div', { class: 'review-list', tabindex: '0', role: 'group', 'aria-label': 'Diffs' });
    this.element = h(
      'div',
      { class: 'review', hidden: true, tabindex: '-1' },
      h(
        'div',
        { class: 'review-bar' },
        h('h1', {}, 'Changes'),
        this.count,
        h('span', { class: 'space' }),
        this.comments,
        this.again,
        this.split,
        iconButton('close', 'Back to the conversation (Esc)', () => leave()),
      ),
      h('p', { class: 'review-keys quiet' }, KEYS),
      h('div', { class: 'review-main' }, this.names, this.list),
    );
    this.lookSoon = perFrame(() => this.look());
    this.list.addEventListener('scroll', this.lookSoon);
    this.widths = new ResizeObserver(() => this.fit());
    this.widths.observe(this.list);
    roving(this.names, 'button');
    this.pressed = (event) => this.key(event);
    this.stop = mirror.on('files', (file) => (!file.session_id || file.session_id === this.session_id) && this.soon());
  }

  close() {
    this.stop();
    document.removeEventListener('keydown', this.pressed);
    clearTimeout(this.timer);
    this.widths.disconnect();
    document.body.classList.remove('reviewing');
  }

  /** Shows the review of a session, or hides it. `path`: the file to begin with. */
  show(session_id, path = null) {
    const was = this.session_id;
    this.session_id = session_id;
    this.element.hidden = !session_id;
    document.body.classList.toggle('reviewing', Boolean(session_id));
    // On the document: the focus may be on a button that an undo has just removed.
    if (session_id) document.addEventListener('keydown', this.pressed);
    else document.removeEventListener('keydown', this.pressed);
    if (!session_id) return this.clear();
    this.wanted = path ?? this.wanted;
    if (was !== session_id) {
      this.clear();
      this.count.textContent = 'Loading…';
      this.element.focus();
    }
    this.drawComments();
    this.load();
  }

  /** Offers two columns only where they fit, and redraws the diffs when that changes. */
  fit() {
    this.lookSoon();
    const room = hasRoom(this.list, MARGIN);
    if (this.split.hidden === !room) return;
    this.split.hidden = !room;
    setSplit(isSplit());
  }

  clear() {
    for (const entry of this.files.values()) entry.close();
    this.files.clear();
    this.loaded = new Map(); // path → the file with its diff
    this.at = this.drawn = null;
    this.drawRedo(null);
    replace(this.names);
    replace(this.list);
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.session_id && this.load(), 200);
  }

  async load() {
    const session_id = this.session_id;
    try {
      const page = await this.workspace.changes(session_id, { stat: true });
      if (session_id === this.session_id) this.draw(page);
    } catch (error) {
      if (session_id === this.session_id) this.count.textContent = error.message;
    }
  }

  draw(page) {
    const key = JSON.stringify(page);
    if (key === this.drawn && !this.wanted) return;
    this.drawn = key;
    this.count.textContent = page.items.length ? total(page) : 'No changes.';
    this.drawRedo(page.undone?.[0] ?? null);
    const before = [...this.files.keys()].indexOf(this.at?.file.path);
    const known = new Map(this.files);
    this.files.clear();
    for (const file of page.items) {
      const entry = known.get(file.path) ?? this.entry(file);
      if (known.has(file.path)) entry.set(file);
      this.files.set(file.path, entry);
    }
    for (const [path, entry] of known) if (!this.files.has(path)) entry.close();
    const entries = [...this.files.values()];
    this.arrange(entries);
    replace(
      this.names,
      entries.map((entry) => this.name(entry)),
    );
    const wanted =
      this.files.get(this.wanted) ?? (this.at ? entries[Math.min(before, entries.length - 1)] : entries[0]);
    if (this.wanted || !this.files.has(this.at?.file.path))
      this.select(wanted ?? null, { scroll: Boolean(this.wanted) });
    else this.mark();
    this.wanted = null;
    this.lookSoon();
  }

  /** Puts the sections in order. Those that stay are not moved: a moved field loses its focus. */
  arrange(entries) {
    if (!this.list.firstChild) return this.list.append(...entries.map((entry) => entry.element));
    const wanted = new Set(entries.map((entry) => entry.element));
    for (const child of [...this.list.children]) if (!wanted.has(child)) child.remove();
    entries.forEach((entry, index) => {
      if (this.list.children[index] !== entry.element)
        this.list.insertBefore(entry.element, this.list.children[index] ?? null);
    });
  }

  entry(file) {
    const entry = new ReviewFile(file, {
      load: (wanted) => this.diff(wanted),
      undo: (wanted, hunks) => this.undo(wanted, hunks),
      preview: (wanted) => this.preview(wanted),
      comments: (path) => this.noted().filter((comment) => comment.path === path),
      comment: (comment) => this.setComments([...this.noted(), comment]),
      forget: (comment) => this.setComments(this.noted().filter((each) => !isSame(each, comment))),
      focus: (row) => {
        this.element.focus();
        this.point(entry, row);
      },
    });
    entry.element.addEventListener('focusin', () => this.at !== entry && this.select(entry, { scroll: false }));
    return entry;
  }

  /** Loads the diffs in and near the visible part. Costs the same however many files there are. */
  look() {
    const entries = [...this.files.values()];
    const { scrollTop, clientHeight } = this.list;
    let [low, high] = [0, entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const { offsetTop, offsetHeight } = entries[middle].element;
      if (offsetTop + offsetHeight < scrollTop - AHEAD) low = middle + 1;
      else high = middle;
    }
    for (let at = low; entries[at]?.element.offsetTop < scrollTop + clientHeight + AHEAD; at += 1) {
      if (!entries[at].isWanted) entries[at].show().then(this.lookSoon); // its height changes
    }
  }

  /** The diff of a file, loaded once for each of its states. */
  async diff(file) {
    const known = this.loaded.get(file.path);
    if (known && known.digest === file.digest && file.digest) return known;
    const page = await this.workspace.changes(this.session_id, { path: file.path });
    const found = page.items[0] ?? { ...file, diff: '' };
    this.loaded.set(file.path, found);
    if (found.digest !== file.digest) this.soon();
    return found;
  }

  name(entry) {
    const { file } = entry;
    return h(
      'button',
      {
        type: 'button',
        class: 'changed',
        tabindex: '-1',
        title: plain(file.path),
        data: { path: file.path },
        onclick: () => this.select(entry),
      },
      h('span', { class: 'path' }, plain(file.path)),
      numbers(file),
    );
  }

  // The place

  select(entry, { scroll = true } = {}) {
    this.at = entry;
    this.row = null;
    this.mark();
    if (!entry) return;
    if (scroll) entry.element.scrollIntoView({ block: 'start' });
    say(plain(entry.file.path));
  }

  mark() {
    for (const each of this.list.querySelectorAll('.review-file.at, tr.at')) each.classList.remove('at');
    this.at?.element.classList.add('at');
    if (this.row?.isConnected) this.row.classList.add('at');
    for (const button of this.names.children) {
      const isHere = button.dataset.path === this.at?.file.path;
      button.classList.toggle('at', isHere);
      button.tabIndex = isHere ? 0 : -1;
      if (isHere) button.scrollIntoView({ block: 'nearest' });
    }
  }

  point(entry, row) {
    this.at = entry;
    this.row = row;
    this.mark();
    row.scrollIntoView({ block: 'nearest' });
  }

  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest('textarea, input, select, dialog, [role=menu]')) return;
    const deed = {
      j: () => this.step(1),
      k: () => this.step(-1),
      n: () => this.hunk(1),
      p: () => this.hunk(-1),
      ArrowDown: () => this.line(1),
      ArrowUp: () => this.line(-1),
      o: () => this.at && this.preview(this.at.file),
      u: () => this.undoHere(),
      U: () => this.at && this.undo(this.at.file, null),
      r: () => this.redo(),
      c: () => this.row && this.at.write(this.row),
      s: () => !this.split.hidden && this.split.click(),
      Escape: () => this.leave(),
    }[event.key];
    if (!deed) return;
    event.preventDefault();
    event.stopPropagation();
    deed();
  }

  step(by) {
    const entries = [...this.files.values()];
    const next = entries[entries.indexOf(this.at) + by];
    if (next) this.select(next);
  }

  hunk(by) {
    const heads = this.at?.hunks ?? [];
    const rows = this.at?.rows ?? [];
    const at = this.row ? rows.indexOf(this.row) : -1;
    const places = heads.map((head) => rows.indexOf(head)).filter((place) => (place - at) * by > 0);
    const place = by > 0 ? places[0] : places.at(-1);
    if (place !== undefined) this.point(this.at, rows[place]);
  }

  line(by) {
    const rows = (this.at?.rows ?? []).filter((row) => lineOf(row) !== null || row.classList.contains('hunk'));
    const next = rows[(this.row ? rows.indexOf(this.row) : -1) + by];
    if (next) this.point(this.at, next);
  }

  // Deeds

  preview(file) {
    if (file.change === 'deleted') return toast(`${plain(file.path)} was deleted.`);
    preview(this.workspace, file.path, (text) => {
      this.insert(text);
      this.leave();
    });
  }

  undoHere() {
    if (!this.at) return;
    const number = this.row ? this.at.hunkAt(this.row) : null;
    if (number === null || number < 0) this.undo(this.at.file, null);
    else this.undo(this.at.drawn, [number]);
  }

  async undo(file, hunks) {
    if (!file.digest) return toast('This change cannot be undone: it was made elsewhere, or the file was moved or replaced.', 'error');
    const name = plain(file.path);
    const what = hunks ? `Undo hunk ${hunks[0] + 1} of ${file.hunks} in ${name}?` : `Undo all changes to ${name}?`;
    const detail =
      'This changes the file now. The conversation stays, and Longboat tells the agent with your next prompt.';
    if (!(await confirmed(what, detail, 'Undo', { danger: true }))) return;
    try {
      const done = await this.workspace.revert(this.session_id, { path: file.path, digest: file.digest, hunks });
      if (done.file) this.loaded.set(file.path, done.file);
      say(`Undone: ${name}.`);
    } catch (error) {
      toastError(error);
    }
    await this.load();
    this.element.focus();
  }

  /** Offers to redo what was undone last. */
  drawRedo(undone) {
    const hadFocus = this.again === document.activeElement;
    this.undone = undone;
    this.again.hidden = !undone;
    if (!undone && hadFocus) this.element.focus();
    if (!undone) return;
    const who = undone.by ? ` Undone by ${this.isMine(undone) ? 'you' : plain(person(undone.by))}.` : '';
    this.again.textContent = `Redo ${plain(undone.what)} in ${plain(base(undone.path))}`;
    this.again.title = `${plain(undone.path)}.${who}`;
  }

  isMine({ by }) {
    return person(by) === person(this.workspace.client_id);
  }

  async redo() {
    const { undone } = this;
    if (!undone) return toast('Nothing to redo.');
    const name = plain(undone.path);
    const detail = `${plain(person(undone.by)) || 'Someone'} undid this. Redo changes the file now.`;
    if (!this.isMine(undone) && !(await confirmed(`Redo ${plain(undone.what)} in ${name}?`, detail, 'Redo'))) return;
    try {
      const done = await this.workspace.redoRevert(this.session_id, undone.revert_id);
      if (done.file) this.loaded.set(undone.path, done.file);
      this.wanted = undone.path;
      say(`Redone: ${plain(undone.what)} in ${name}.`);
    } catch (error) {
      toastError(error);
    }
    await this.load();
    this.element.focus();
  }

  // Comments, which become part of a prompt

  get commentsKey() {
    return `comments.${this.workspace.id}.${this.session_id}`;
  }

  noted() {
    return recall(this.commentsKey, []).filter(
      (each) => typeof each?.path === 'string' && typeof each.text === 'string',
    );
  }

  setComments(comments) {
    keep(this.commentsKey, comments.length ? comments : null);
    this.drawComments();
    for (const entry of this.files.values()) {
      for (const row of entry.element.querySelectorAll('tr.commented')) row.remove();
      for (const comment of comments) if (comment.path === entry.file.path) entry.place(comment);
    }
  }

  drawComments() {
    const { length } = this.noted();
    this.comments.hidden = !length;
    this.comments.textContent = `Add ${plural(length, 'comment')} to the prompt`;
  }

  send() {
    const lines = this.noted().map(({ path, line, text }) => `In ${plain(path)} line ${line}: ${text}`);
    this.setComments([]);
    this.leave();
    this.insert(lines.join('\n'));
  }
}

const isSame = (one, other) => one.path === other.path && one.line === other.line && one.text === other.text;

/** Where the review of a session is. */
export const reviewPath = (workspace_id, session_id) =>
  `#/${encodeURIComponent(workspace_id)}/${encodeURIComponent(session_id)}/changes`;
