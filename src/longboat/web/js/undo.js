// Undo and redo of whole turns, and the line at the end of the transcript that offers to redo.

import { toast } from './a11y.js';
import { textOf } from './copying.js';
import { confirmed } from './dialog.js';
import { h } from './dom.js';
import { oneLine, plain, plural } from './format.js';
import { person } from './people.js';

const SOON_MS = 50; // the messages of a turn go one by one

export class Undo {
  /** `view` is the conversation that shows the session. */
  constructor(view) {
    this.view = view;
    this.text = h('span', {});
    this.button = h('button', { type: 'button', class: 'small', onclick: () => this.redo() }, 'Redo');
    this.element = h('p', { class: 'undone', role: 'status', hidden: true }, this.text, this.button);
    this.count = 0;
  }

  get session_id() {
    return this.view.session_id;
  }

  show() {
    this.files = [];
    this.put = '';
    this.draw(0);
    this.look();
  }

  close() {
    clearTimeout(this.looking);
  }

  /** Messages came or went: another window may have undone or redone a turn, or a prompt has made redo impossible. */
  heard(kind) {
    if (kind !== 'removed' && !(kind === 'message' && this.count)) return;
    clearTimeout(this.looking);
    this.looking = setTimeout(() => this.look(), SOON_MS);
  }

  async look() {
    const { session_id } = this;
    const status = await this.view.workspace.status(session_id).catch(() => null);
    if (status && session_id === this.session_id) this.draw(status.undone);
  }

  draw(count) {
    if (count < this.count) this.files = [];
    this.count = count;
    this.text.textContent = count ? `${plural(count, 'turn')} undone${restored(this.files)} — ` : '';
    this.element.hidden = !count;
    if (count && this.view.transcript?.pinned) this.view.transcript.stick();
  }

  /** The prompt of the last turn, and the other people who sent or steered it. */
  lastTurn() {
    const { mirror, workspace } = this.view;
    const prompt = mirror.history(this.session_id).messages.findLast((message) => message.role === 'user');
    const run = mirror.runs.get(prompt?.run_id);
    const first = run?.folded_into ?? run?.run_id;
    const isOfTurn = ({ run_id, folded_into }) => first && (run_id === first || folded_into === first);
    const names = [...mirror.runs.values()].filter(isOfTurn).map(({ client_id }) => person(client_id ?? ''));
    const others = names.filter((name) => name !== person(workspace.client_id));
    return { prompt, others: [...new Set(others.map((name) => plain(name) || 'a program'))] };
  }

  /** Asks first if other people sent the turn. Puts your own prompt back. */
  async undo() {
    if (!this.session_id) return;
    const { prompt, others } = this.lastTurn();
    if (others.length) {
      const names = others.join(' and ');
      const text = `“${oneLine(plain(textOf(prompt)), 80)}” is from ${names}. The files that the turn changed are restored.`;
      if (!(await confirmed(`Undo the turn of ${names}?`, text, 'Undo', { danger: true }))) return;
      if (this.lastTurn().prompt?.id !== prompt.id) return this.undo(); // another turn by now
    }
    const done = await this.view.does.attempt(this.view.workspace.undo(this.session_id));
    if (!done) return;
    this.files = done.files;
    this.put = prompt && !others.length ? textOf(prompt) : '';
    this.view.composer.put(this.put);
    this.view.mirror.tell('files', {});
    await this.look();
  }

  async redo() {
    if (!this.session_id) return;
    const hadFocus = document.activeElement === this.button;
    const done = await this.view.does.attempt(this.view.workspace.redo(this.session_id));
    if (!done) return;
    toast(`1 turn redone${restored(done.files)}.`);
    const { composer } = this.view;
    if (this.put && composer.text.value === this.put) composer.clear(); // it is in the transcript again
    this.put = '';
    this.view.mirror.tell('files', {});
    await this.look();
    if (hadFocus && this.element.hidden) composer.focus();
  }
}

const restored = (files) => (files.length ? `. Restored: ${files.map(plain).join(', ')}` : '');
