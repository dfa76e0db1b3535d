// A diff, unified or side by side. The server renders the rows; this module arranges them.

import { h } from './dom.js';
import { rendered } from './rendering.js';
import { keep, recall } from './storage.js';

const LEAST_FOR_TWO = 520; // pixels: narrower, lines do not fit side by side

/** Whether a diff in this element can be side by side. `margin`: pixels of it that the diff does not get. */
export const hasRoom = (element, margin = 0) => element.clientWidth - margin >= LEAST_FOR_TWO;

const shown = new Set();

export const isSplit = () => recall('split', false);

export function setSplit(split) {
  keep('split', split);
  for (const view of shown) if (!view.element.isConnected) shown.delete(view);
  for (const view of shown) view.draw();
}

/** A button that switches all diffs between one column and two. */
export function splitButton() {
  const button = h('button', {
    type: 'button',
    class: 'small',
    onclick: () => {
      setSplit(!isSplit());
      label();
    },
  });
  const label = () => {
    button.textContent = isSplit() ? 'Unified' : 'Split';
    button.title = isSplit() ? 'Show diffs in one column' : 'Show diffs side by side';
  };
  label();
  return button;
}

export class Diff {
  /** `onDrawn(table)` is called whenever the table was drawn. */
  constructor(text, path, { onDrawn } = {}) {
    this.onDrawn = onDrawn;
    this.element = h('div', { class: 'diff-view', tabindex: '0', role: 'group', 'aria-label': `Changes to ${path}` });
    this.element.append(h('pre', { class: 'plain' }, text));
    shown.add(this);
    rendered('diff', text, path ? { path: path.slice(-1000) } : {}).then((made) => {
      this.rows = [...made.querySelectorAll('tr')];
      if (this.rows.length) this.draw();
    });
  }

  close() {
    shown.delete(this);
  }

  draw() {
    if (!this.rows) return;
    const split = isSplit() && hasRoom(this.element);
    const rows = split ? sideBySide(this.rows) : this.rows;
    const widths =
      split &&
      h(
        'colgroup',
        {},
        ['number', 'line', 'number', 'line'].map((kind) => h('col', { class: kind })),
      );
    const table = h(
      'table',
      { class: split ? 'diff split' : 'diff' },
      widths,
      h(
        'tbody',
        {},
        rows.map((row) => row.cloneNode(true)),
      ),
    );
    this.element.replaceChildren(table);
    this.onDrawn?.(table);
  }
}

function sideBySide(rows) {
  const made = [];
  let removed = [];
  let added = [];
  const settle = () => {
    for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
      made.push(pair(removed[index], added[index]));
    }
    removed = [];
    added = [];
  };
  for (const row of rows) {
    if (row.className === 'del') {
      if (added.length) settle();
      removed.push(row);
    } else if (row.className === 'add') added.push(row);
    else {
      settle();
      made.push(row.className === 'same' ? pair(row, row) : across(row));
    }
  }
  settle();
  return made;
}

function pair(old, now) {
  const half = (row, number) => {
    const kind = row ? row.className : 'none';
    const cells = row ? [row.cells[number].cloneNode(true), row.cells[2].cloneNode(true)] : [h('td'), h('td')];
    cells[0].className = `number ${kind}`;
    cells[1].className = `line ${kind}`;
    return cells;
  };
  return h('tr', {}, half(old, 0), half(now, 1));
}

function across(row) {
  const line = row.cells[2].cloneNode(true);
  line.colSpan = 4;
  return h('tr', { class: row.className }, line);
}
