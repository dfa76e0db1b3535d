// The files that the agent's tools changed in this session, with their diffs.

import { Diff, splitButton } from './diff.js';
import { h, icon, replace } from './dom.js';
import { plain, plural } from './format.js';

export class Changes {
  constructor(workspace, mirror) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.count = h('span', { class: 'quiet' });
    this.list = h('div', { class: 'changed-files' });
    this.element = h('div', { class: 'changes' }, h('div', { class: 'row' }, this.count, splitButton()), this.list);
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
    this.open = new Set();
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
      const page = await this.workspace.diff(wanted);
      if (wanted === this.session_id) this.draw(page);
    } catch {
      // Loaded again at the next change.
    }
  }

  draw(page) {
    const sum = (key) => page.items.reduce((total, item) => total + item[key], 0);
    this.count.textContent = page.items.length
      ? `${plural(page.items.length, 'file')}, +${sum('additions')} −${sum('deletions')}${page.complete ? '' : ' (some not shown)'}`
      : 'No changes.';
    this.element.querySelector('button').hidden = !page.items.length;
    replace(
      this.list,
      page.items.map((item) => this.file(item)),
    );
  }

  file(item) {
    const key = item.path;
    const body = h('div', {});
    const details = h(
      'details',
      {
        class: 'changed',
        ontoggle: () => {
          if (!details.open) return void this.open.delete(key);
          this.open.add(key);
          if (!body.childNodes.length)
            body.append(
              item.diff ? new Diff(item.diff, item.path).element : h('p', { class: 'quiet' }, 'No diff to show.'),
            );
        },
      },
      h(
        'summary',
        {},
        icon('right'),
        h('span', { class: 'path', title: item.path }, plain(item.path)),
        item.change !== 'updated' && h('span', { class: 'quiet' }, item.change === 'created' ? 'new' : 'deleted'),
        h('span', { class: 'plus' }, `+${item.additions}`),
        h('span', { class: 'minus' }, `−${item.deletions}`),
      ),
      body,
    );
    details.open = this.open.has(key);
    return details;
  }
}
