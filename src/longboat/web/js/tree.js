// The files of the workspace as a tree, and the preview of a file.

import { roving } from './a11y.js';
import { h, icon, replace } from './dom.js';
import { bytes, plain } from './format.js';
import { rendered } from './rendering.js';

/** Shows the text of a file. `insert(text)` puts `@path` into the prompt. */
export async function preview(workspace, path, insert) {
  const body = h(
    'div',
    { class: 'preview-body', tabindex: '0', role: 'group', 'aria-label': 'File contents' },
    'Loading…',
  );
  const facts = h('p', { class: 'quiet' });
  const close = h('button', { type: 'button', class: 'primary', onclick: () => done() }, 'Close');
  const dialog = h(
    'dialog',
    { class: 'dialog preview', 'aria-labelledby': 'preview-title' },
    h('h2', { id: 'preview-title', class: 'path', title: plain(path) }, plain(path)),
    facts,
    body,
    h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'button', onclick: () => done(() => insert(`@${path} `)) }, 'Insert into the prompt'),
      close,
    ),
  );
  const done = (then) => {
    dialog.close();
    then?.();
  };
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
  try {
    const file = await workspace.file(path);
    facts.textContent = `${bytes(file.size)}${file.complete ? '' : ', only the start is shown'}`;
    const made = await rendered('code', file.text, { path: path.slice(-1000) });
    replace(body, h('pre', { class: 'numbered' }, lines(made)));
  } catch (error) {
    body.textContent = error.message;
  }
}

/** The text of what was rendered, with the numbers of its lines beside it. */
function lines(made) {
  const code = made.querySelector('code') ?? made.querySelector('pre') ?? made;
  const count = code.textContent.replace(/\n$/, '').split('\n').length;
  const gutter = Array.from({ length: count }, (_, index) => index + 1).join('\n');
  return [h('span', { class: 'gutter', 'aria-hidden': 'true' }, gutter), h('code', {}, [...code.childNodes])];
}

export class Tree {
  /** `insert(text)` puts a text into the prompt. */
  constructor(workspace, insert) {
    Object.assign(this, { workspace, insert });
    this.list = h('div', { class: 'tree' });
    this.element = h(
      'details',
      { ontoggle: () => this.element.open && this.start() },
      h('summary', { class: 'row' }, icon('right'), 'Browse files'),
      this.list,
    );
    roving(this.list, 'button.entry');
    this.list.addEventListener('keydown', (event) => this.key(event));
  }

  close() {}

  async start() {
    const root = h('ul', {});
    replace(this.list, root);
    await this.fill(root, '.');
    const first = root.querySelector('button.entry');
    if (first) first.tabIndex = 0;
  }

  async fill(list, path) {
    replace(list, h('li', { class: 'quiet' }, 'Loading…'));
    try {
      const page = await this.workspace.files(path);
      const items = [...page.items].sort((one, other) => (other.kind === 'directory') - (one.kind === 'directory'));
      replace(
        list,
        items.map((item) => this.item(item)),
        !page.complete && h('li', { class: 'quiet' }, 'Some files are not listed.'),
        !items.length && h('li', { class: 'quiet' }, 'This directory is empty.'),
      );
    } catch (error) {
      replace(list, h('li', { class: 'quiet' }, error.message));
    }
  }

  item(item) {
    const isDirectory = item.kind === 'directory';
    const below = isDirectory ? h('ul', { hidden: true }) : null;
    const button = h(
      'button',
      {
        type: 'button',
        class: 'entry',
        tabindex: '-1',
        'aria-expanded': isDirectory ? 'false' : null,
        title: plain(item.path),
        data: { path: item.path, kind: item.kind },
        onclick: () => (isDirectory ? this.toggle(button, below) : preview(this.workspace, item.path, this.insert)),
      },
      icon(isDirectory ? 'folder' : 'file'),
      h('span', { class: 'path' }, plain(item.name)),
    );
    const mention = h(
      'button',
      {
        type: 'button',
        class: 'mention',
        tabindex: '-1',
        'aria-label': `Insert ${plain(item.path)} into the prompt`,
        title: 'Insert into the prompt (@)',
        onclick: () => this.insert(`@${item.path} `),
      },
      '@',
    );
    return h('li', {}, h('div', { class: 'row' }, button, mention), below);
  }

  async toggle(button, below) {
    const open = button.getAttribute('aria-expanded') === 'true';
    button.setAttribute('aria-expanded', String(!open));
    below.hidden = open;
    if (!open) await this.fill(below, button.dataset.path);
  }

  key(event) {
    const button = event.target.closest('button.entry');
    if (!button) return;
    const expanded = button.getAttribute('aria-expanded');
    if (event.key === '@') this.insert(`@${button.dataset.path} `);
    else if (event.key === 'ArrowRight' && expanded === 'false') button.click();
    else if (event.key === 'ArrowLeft' && expanded === 'true') button.click();
    else return;
    event.preventDefault();
  }
}
