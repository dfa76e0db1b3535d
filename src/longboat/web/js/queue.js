// The waiting prompts of the session, from everyone: to edit, delete, or add to the running turn.

import { toastError } from './a11y.js';
import { confirmed } from './dialog.js';
import { h, icon, perFrame } from './dom.js';
import { oneLine, plain, plural } from './format.js';
import { person } from './people.js';

/** The most prompts to list. */
const SHOWN = 100;

export class Queue {
  constructor(workspace, mirror) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.list = h('ol', {});
    this.title = h('h2', {});
    this.clear = h(
      'button',
      { type: 'button', class: 'small', title: 'Delete the waiting prompts', onclick: () => this.clearAll() },
      'Clear queue',
    );
    this.element = h(
      'section',
      { class: 'queue', 'aria-label': 'Queue', hidden: true },
      h('div', { class: 'row' }, this.title, this.clear),
      this.list,
    );
    this.editing = null;
    // Canceling a long queue sends thousands of events: draw them together.
    this.stop = mirror.on(
      'runs',
      perFrame(() => this.draw()),
    );
  }

  show(session_id) {
    this.session_id = session_id;
    this.editing = null;
    this.draw();
  }

  close() {
    this.stop();
  }

  draw() {
    const waiting = this.session_id
      ? this.mirror
          .unfinished(this.session_id)
          .filter((run) => ['accepted', 'queued'].includes(run.state) && !run.cancel_requested)
      : [];
    // Those that steer go first: they join the running turn, or run before the queued ones (L10).
    const behind = waiting
      .filter((run) => run.state === 'queued' || run.position > 0)
      .sort((one, other) => (other.delivery === 'steer') - (one.delivery === 'steer'));
    this.behind = behind;
    if (!behind.length && this.element.contains(document.activeElement)) this.onLeft?.();
    this.element.hidden = !behind.length;
    this.title.textContent = `${plural(behind.length, 'prompt')} waiting`;
    // An open form keeps its focus and text.
    if (this.editing && behind.some((run) => run.run_id === this.editing)) return;
    this.editing = null;
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(...behind.slice(0, SHOWN).map((run) => this.item(run)));
    if (behind.length > SHOWN) this.list.append(h('li', { class: 'quiet' }, `and ${behind.length - SHOWN} more`));
    if (focused) this.list.querySelector('button')?.focus();
  }

  item(run) {
    const steers = run.delivery === 'steer';
    return h(
      'li',
      { data: { run: run.run_id } },
      h('span', { class: 'queued-text', title: run.prompt }, oneLine(run.prompt, 300)),
      h('span', { class: 'quiet' }, [this.nameOf(run), run.plan && 'plan first', steers && 'steers, goes first'].filter(Boolean).join(' · ')),
      h(
        'span',
        { class: 'item-buttons' },
        !steers &&
          !run.plan && // it needs its own turn
          button('steer', 'Steer now', 'Add to the running turn', () =>
            this.run(this.workspace.editRun(run.run_id, { delivery: 'steer' })),
          ),
        button('edit', 'Edit', 'Edit this prompt', () => this.edit(run)),
        button('trash', 'Delete', 'Delete this prompt', () => this.run(this.workspace.cancelRun(run.run_id))),
      ),
    );
  }

  nameOf({ client_id }) {
    const name = person(client_id ?? '');
    return name === person(this.workspace.client_id) ? 'You' : plain(name);
  }

  /** Deletes all waiting prompts; asks first if some are from other people. */
  async clearAll() {
    const names = this.behind.map((run) => this.nameOf(run)).filter((name) => name !== 'You');
    const others = [...new Set(names.map((name) => name || 'a program'))];
    const text = `${plural(names.length, 'prompt')} of ${plural(this.behind.length, 'waiting prompt')} from ${others.join(', ')}.`;
    if (names.length && !(await confirmed('Delete other people’s prompts?', text, 'Delete all', { danger: true }))) return;
    this.run(this.workspace.clearQueue(this.session_id));
  }

  edit(run) {
    this.editing = run.run_id;
    const text = h('textarea', { rows: '3', 'aria-label': 'Prompt', value: run.prompt });
    const done = (work) => {
      this.editing = null;
      if (work) this.run(work);
      this.draw();
    };
    const save = () => done(this.workspace.editRun(run.run_id, { prompt: text.value }));
    const form = h(
      'form',
      {
        onsubmit: (event) => {
          event.preventDefault();
          save();
        },
        onkeydown: (event) => {
          if (event.key === 'Escape') {
            event.stopPropagation();
            done();
          } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            save();
          }
        },
      },
      text,
      h(
        'div',
        { class: 'buttons' },
        h('button', { type: 'submit', class: 'primary' }, 'Save'),
        h('button', { type: 'button', onclick: () => done() }, 'Cancel'),
      ),
    );
    this.list.querySelector(`[data-run="${CSS.escape(run.run_id)}"]`).replaceChildren(form);
    text.focus();
  }

  async run(work) {
    try {
      await work;
    } catch (error) {
      toastError(error);
    }
  }
}

const button = (name, label, title, onclick) =>
  h('button', { type: 'button', class: 'small', title, onclick }, icon(name), ' ', label);
