// The agent's plan for the session.

import { h, replace } from './dom.js';
import { plain } from './format.js';

const MARKS = { pending: ['○', 'to do'], in_progress: ['◐', 'in progress'], completed: ['✓', 'done'] };

export class Todos {
  constructor(workspace, mirror) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.element = h('div', { class: 'todos' });
    this.stops = [
      mirror.on('todos', (todos) =>
        todos.session_id ? todos.session_id === this.session_id && this.draw() : this.load(),
      ),
    ];
  }

  close() {
    this.stops.forEach((stop) => stop());
  }

  show(session_id) {
    this.session_id = session_id;
    this.draw();
    this.load();
  }

  async load() {
    const wanted = this.session_id;
    if (!wanted) return;
    try {
      const todos = await this.workspace.todos(wanted);
      this.mirror.todos.set(wanted, todos.items);
      if (wanted === this.session_id) this.draw();
    } catch {
      // The next event brings the whole plan.
    }
  }

  draw() {
    const items = this.mirror.todos.get(this.session_id) ?? [];
    this.element.classList.toggle('empty', !items.length);
    replace(this.element, planList(items));
  }
}

/** A plan as a list. The items may come from a model: they may be anything. */
export function planList(items) {
  return h(
    'ul',
    {},
    items.map((item) => {
      const state = Object.hasOwn(MARKS, item?.state) ? item.state : 'pending';
      const [mark, label] = MARKS[state];
      return h(
        'li',
        { class: state },
        h('span', { class: 'mark', role: 'img', 'aria-label': label }, mark),
        h('span', {}, plain(String(typeof item === 'string' ? item : (item?.text ?? '')))),
      );
    }),
  );
}
