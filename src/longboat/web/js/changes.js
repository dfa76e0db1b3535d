// The files that the session changed, one row each. A row opens the review of the changes.

import { h, icon, replace } from './dom.js';
import { plain, plural } from './format.js';

const MOST_ROWS = 100; // the review has them all

export class Changes {
  /** `review(path)` opens the review, at a file if there is a path. */
  constructor(workspace, mirror, review) {
    this.workspace = workspace;
    this.review = review;
    this.count = h('span', { class: 'quiet' });
    this.button = h('button', { type: 'button', class: 'small', hidden: true, onclick: () => review(null) }, 'Review');
    this.list = h('ul', { class: 'changed-files' });
    this.element = h('div', { class: 'changes' }, h('div', { class: 'row' }, this.count, this.button), this.list);
    this.stops = [
      mirror.on('files', (file) => (!file.session_id || file.session_id === this.session_id) && this.soon()),
    ];
  }

  close() {
    this.stops.forEach((stop) => stop());
    clearTimeout(this.timer);
  }

  show(session_id) {
    this.session_id = session_id;
    this.draw({ items: [], complete: true });
    if (session_id) this.load();
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.session_id && this.load(), 200);
  }

  async load() {
    const wanted = this.session_id;
    try {
      const page = await this.workspace.changes(wanted, { stat: true });
      if (wanted === this.session_id) this.draw(page);
    } catch {
      // Loaded again at the next change.
    }
  }

  draw(page) {
    this.count.textContent = page.items.length ? total(page) : 'No changes.';
    const isEmpty = !page.items.length && !page.undone?.length;
    this.element.classList.toggle('empty', isEmpty);
    this.button.hidden = isEmpty;
    const more = page.items.length - MOST_ROWS;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.title : null;
    const rows = page.items.slice(0, MOST_ROWS).map((file) => this.row(file));
    replace(
      this.list,
      rows.map((row) => h('li', {}, row)),
      more > 0 && h('li', { class: 'quiet' }, `and ${plural(more, 'more file')}`),
    );
    if (focused) rows.find((row) => row.title === focused)?.focus();
  }

  row(file) {
    return h(
      'button',
      { type: 'button', class: 'changed', title: `Review ${plain(file.path)}`, onclick: () => this.review(file.path) },
      icon('file'),
      h('span', { class: 'path' }, plain(file.path)),
      numbers(file),
    );
  }
}

/** How many files and lines a page of changes has. */
export function total(page) {
  const sum = (key) => page.items.reduce((all, item) => all + item[key], 0);
  const files = `${plural(page.items.length, 'file')}${page.complete ? '' : ' or more'}`;
  return `${files}, +${sum('additions')} −${sum('deletions')}`;
}

/** What happened to a file, and how many lines were added and removed. */
export function numbers(file) {
  return [
    file.change !== 'updated' && h('span', { class: 'quiet' }, file.change === 'created' ? 'new' : 'deleted'),
    h('span', { class: 'plus' }, `+${file.additions}`),
    h('span', { class: 'minus' }, `−${file.deletions}`),
  ];
}
