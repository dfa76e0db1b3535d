// One file of the review: its heading, and its diff with hunks to undo and lines to comment on. The diff is loaded when
// the file comes near the visible part of the page.

import { numbers } from './changes.js';
import { Diff } from './diff.js';
import { h, icon, iconButton, replace } from './dom.js';
import { plain, plural } from './format.js';

export class ReviewFile {
  /** `on` has: load(file) (gives it with its diff), undo(file, hunks), preview(file), comments(path), comment(path, line, text). */
  constructor(file, on) {
    this.on = on;
    this.heading = h('h2', { class: 'review-name', tabindex: '-1' });
    this.facts = h('span', { class: 'quiet who' });
    this.buttons = h('span', { class: 'row' });
    this.body = h('div', { class: 'review-body' });
    this.element = h(
      'section',
      { class: 'review-file', 'aria-label': plain(file.path) },
      h('header', {}, this.heading, this.facts, this.buttons),
      this.body,
    );
    this.set(file);
  }

  /** The file as the list has it now. Its diff is loaded again if it changed. */
  set(file) {
    const isSame = this.file?.digest === file.digest && Boolean(file.digest);
    this.file = file;
    replace(
      this.heading,
      icon('file'),
      h('span', { class: 'path', title: plain(file.path) }, plain(file.path)),
      numbers(file),
    );
    this.facts.textContent = who(file);
    const name = plain(file.path);
    replace(
      this.buttons,
      h(
        'button',
        { type: 'button', class: 'small', 'aria-label': `Open ${name}`, onclick: () => this.on.preview(file) },
        'Open',
      ),
      file.digest &&
        h(
          'button',
          {
            type: 'button',
            class: 'small danger',
            'aria-label': `Undo all changes to ${name}`,
            onclick: () => this.on.undo(file, null),
          },
          'Undo file',
        ),
    );
    if (!this.diff) this.body.className = `review-body size-${sizeOf(file)}`;
    if (this.isWanted && !(isSame && this.diff)) this.show();
  }

  /** Draws the diff, or draws it again. */
  async show() {
    const { file } = this;
    this.isWanted = true;
    this.tries = (this.tries ?? 0) + 1;
    const newest = this.tries;
    const loaded = await this.on.load(file).catch(() => null);
    if (!loaded) this.isWanted = false; // tried again when the list moves
    if (this.tries !== newest || !this.isWanted) return;
    this.diff?.close();
    this.diff = new Diff(loaded.diff, plain(file.path), { onDrawn: (table) => this.equip(table, loaded) });
    this.body.className = 'review-body';
    replace(this.body, loaded.diff ? this.diff.element : h('p', { class: 'quiet' }, nothing(loaded)));
  }

  close() {
    this.isWanted = false;
    this.diff?.close();
  }

  /** Adds the buttons and the comments to a table that was just drawn. `drawn`: the change that it shows, which is not
   * the newest while that is being loaded. */
  equip(table, drawn) {
    this.drawn = drawn;
    this.rows = [...table.rows];
    this.hunks = this.rows.filter((row) => row.className === 'hunk');
    if (drawn.digest) this.hunks.forEach((row, number) => row.lastElementChild.append(this.undoButton(number)));
    table.addEventListener('click', (event) => {
      const cell = event.target.closest('td.number');
      if (cell && lineOf(cell.parentElement) !== null) this.write(cell.parentElement);
    });
    for (const comment of this.on.comments(this.file.path)) this.place(comment);
  }

  undoButton(number) {
    const { drawn } = this;
    const label = `Undo hunk ${number + 1} of ${drawn.hunks} in ${plain(drawn.path)}`;
    return h(
      'button',
      { type: 'button', class: 'small danger', 'aria-label': label, onclick: () => this.on.undo(drawn, [number]) },
      'Undo hunk',
    );
  }

  /** The number of the hunk that a row belongs to. */
  hunkAt(row) {
    const at = this.rows?.indexOf(row) ?? -1;
    return at < 0 ? null : this.hunks.filter((head) => this.rows.indexOf(head) <= at).length - 1;
  }

  // Comments

  /** Opens a field below a row, or focuses the one that is open. */
  write(row) {
    const line = lineOf(row);
    if (line === null) return;
    const open = row.nextElementSibling?.querySelector('textarea');
    if (open) return open.focus();
    const text = h('textarea', {
      rows: '2',
      'aria-label': `Comment on line ${line} of ${plain(this.file.path)}`,
      placeholder: `Comment on line ${line}`,
      onkeydown: (event) => {
        if (event.key === 'Escape') done();
        else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) save();
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
    });
    const form = across(
      row,
      h(
        'div',
        { class: 'comment-form' },
        text,
        button('Add comment', () => save(), 'primary'),
        button('Cancel', () => done()),
      ),
    );
    const done = () => {
      form.remove();
      this.on.focus(row);
    };
    const save = () => {
      const words = text.value.trim();
      done();
      if (words) this.on.comment({ path: this.file.path, line, text: words });
    };
    row.after(form);
    text.focus();
  }

  /** Shows a comment below its line. */
  place(comment) {
    const row = this.rows?.find((each) => lineOf(each) === comment.line);
    if (!row) return;
    const remove = iconButton('trash', 'Remove the comment', () => this.on.forget(comment));
    row.after(across(row, h('div', { class: 'comment' }, h('p', {}, comment.text), remove)));
  }
}

const button = (label, onclick, kind = '') => h('button', { type: 'button', class: `small ${kind}`, onclick }, label);

function across(row, content) {
  const cells = [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0);
  return h('tr', { class: 'commented' }, h('td', { colspan: cells }, content));
}

/** The line number in the new file, or in the old one if the line was removed. */
export function lineOf(row) {
  const shown = [...row.querySelectorAll('td.number')].map((cell) => cell.textContent).filter(Boolean);
  return shown.length ? Number(shown.at(-1)) : null;
}

/** How high the diff will be, about 40 × 2ⁿ pixels: what is not loaded yet takes as much room. */
function sizeOf(file) {
  const rows = file.additions + file.deletions + 7 * file.hunks;
  return Math.min(8, Math.max(0, Math.round(Math.log2((rows * 17.4) / 40))));
}

function nothing(file) {
  return file.hunks ? 'The diff is too long to show.' : 'No lines to show: the file is empty or not text.';
}

/** For whom the agent changed it, and what became of that. */
function who(file) {
  return [
    file.by.length && `for ${file.by.map(plain).join(', ')}`,
    file.runs.length > 1 && `in ${plural(file.runs.length, 'turn')}`,
    file.undone_by.length && `partly undone by ${file.undone_by.map(plain).join(', ')}`,
    file.others && 'also edited by others',
  ]
    .filter(Boolean)
    .join(', ');
}
