// The waiting prompts of the session, from everyone: to edit, delete, or add to the running turn.

import { toast } from './a11y.js';
import { h, iconButton, perFrame } from './dom.js';
import { oneLine, plural } from './format.js';

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
      { type: 'button', class: 'small', onclick: () => this.run(this.workspace.clearQueue(this.session_id)) },
      'Clear',
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
          .sort((one, other) => (other.delivery === 'steer') - (one.delivery === 'steer')) // these go first (L10)
      : [];
    const behind = waiting.filter((run) => run.state === 'queued' || run.position > 0);
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
      h('span', { class: 'quiet' }, [run.client_id, steers && 'steering'].filter(Boolean).join(' · ')),
      h(
        'span',
        { class: 'item-buttons' },
        !steers &&
          iconButton('steer', 'Add to the running turn', () =>
            this.run(this.workspace.editRun(run.run_id, { delivery: 'steer' })),
          ),
        iconButton('edit', 'Edit', () => this.edit(run)),
        iconButton('trash', 'Delete', () => this.run(this.workspace.cancelRun(run.run_id))),
      ),
    );
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
      toast(error.message, 'error');
    }
  }
}
