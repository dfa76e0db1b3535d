// What people can do with a session and its messages: copy, fork, edit and resend, retry, expand.

import { toast, toastError } from './a11y.js';
import { copied, textOf } from './copying.js';
import { reviewPath } from './review.js';
import { showSent } from './sent.js';

export class SessionActions {
  /** `view` is the conversation that shows the session. */
  constructor(view) {
    this.view = view;
  }

  get session_id() {
    return this.view.session_id;
  }

  get session() {
    return this.view.mirror.sessions.get(this.session_id);
  }

  get messages() {
    return this.view.mirror.history(this.session_id).messages;
  }

  /** For the menu of the session. Redo is offered if something was undone, or if no one knows. */
  async menu() {
    const status = this.session && (await this.view.workspace.status(this.session_id).catch(() => null));
    return this.list().map((item) => (item.label === 'Redo' ? { ...item, disabled: status?.undone === 0 } : item));
  }

  /** All of them. */
  list() {
    const { sessions, go, finder } = this.view;
    const connect = { label: 'Connect a provider', run: () => this.view.welcome.connect() };
    if (!this.session) return [{ label: 'New session', run: () => go(null) }, connect];
    return [
      { label: 'Undo the last turn', run: () => this.view.undo.undo() },
      { label: 'Redo', run: () => this.view.undo.redo() },
      { label: 'Review changes', run: () => this.commands().diff() },
      { label: 'What was sent', run: () => this.showLastSent() },
      { label: 'Summarize', run: () => this.commands().summarize() },
      { label: 'Search this session', run: () => finder.open() },
      { label: 'Expand all', run: () => this.expandAll(true) },
      { label: 'Collapse all', run: () => this.expandAll(false) },
      connect,
      ...sessions.actions(this.session), // the last one deletes it
    ];
  }

  /** The commands of the page, by name. Each gets what was typed after it. */
  commands() {
    const { workspace, sessions, go } = this.view;
    const here = (work) => (wish) => this.session_id && work(this.session, wish);
    return {
      new: () => go(null),
      undo: () => this.view.undo.undo(),
      redo: () => this.view.undo.redo(),
      cancel: here(({ id }) => this.attempt(workspace.cancelAll(id))),
      collapse: here(() => this.expandAll(false)),
      connect: () => this.view.welcome.connect(),
      copy: here(() => this.copyAnswer()),
      diff: here(({ id }) => (location.hash = reviewPath(workspace.id, id))),
      effort: (wish) => this.view.composer.prefer('effort', wish),
      expand: here(() => this.expandAll(true)),
      export: here((session, wish) => sessions.save(session, wish === 'json' ? 'json' : 'markdown')),
      find: here((_, wish) => this.view.finder.open(wish)),
      fork: here((session) => sessions.fork(session)),
      model: (wish) => this.view.composer.prefer('model', wish),
      plan: () => this.view.composer.togglePlan(),
      rename: here((session, wish) =>
        wish ? this.attempt(workspace.rename(session.id, wish)) : sessions.rename(session),
      ),
      stats: () => location.assign('/stats'),
      summarize: here(({ id }) => this.attempt(workspace.summarize(id))),
    };
  }

  // One message

  /** For the menu of a message. `name` is the action in the table of keys. */
  of(message) {
    const text = textOf(message);
    return [
      text && { name: 'copy', label: 'Copy', run: () => this.copy(message) },
      message.role === 'user' && { name: 'edit', label: 'Edit and resend', run: () => this.resend(message) },
      this.canRetry(message) && { name: 'retry', label: 'Retry', run: () => this.retry(message) },
      { name: 'fork', label: 'Fork from here', run: () => this.fork(message) },
      message.run_id && { name: 'sent', label: 'What was sent', run: () => this.showSent(message.run_id) },
    ].filter(Boolean);
  }

  async copy(message) {
    if (await copied(textOf(message))) toast('Copied.');
  }

  /** Copies the last answer as Markdown. */
  async copyAnswer() {
    const answer = this.messages.findLast((message) => message.role === 'assistant' && textOf(message));
    if (!answer) return toast('No answer to copy yet.');
    if (await copied(textOf(answer))) toast('Copied the last answer.');
  }

  fork(message) {
    return this.view.sessions.fork({ id: this.session_id }, message.id);
  }

  /** What the run of a message sent to models. A prompt that steered has none of its own: it joined another run. */
  showSent(run_id) {
    showSent(this.view.workspace, this.view.mirror.runs.get(run_id)?.folded_into ?? run_id);
  }

  showLastSent() {
    const last = this.messages.findLast((message) => message.run_id);
    if (last) this.showSent(last.run_id);
    else toast('Nothing was sent to a model yet.');
  }

  /** A prompt as it was sent: a command, not what it stands for. */
  promptOf(message) {
    const text = this.view.mirror.runs.get(message.run_id)?.prompt || textOf(message);
    const attachments = message.parts
      .filter((part) => part.type === 'file')
      .map(({ name, media_type, text: words, data }) => ({ name, media_type, ...(data ? { data } : { text: words ?? '' }) }));
    return { text, attachments };
  }

  /** Puts a prompt back into the prompt field, in a fork that ends before it: nothing of the session changes. */
  async resend(message) {
    const { view } = this;
    const { text, attachments } = this.promptOf(message);
    const before = await this.before(message);
    const made = before && (await this.attempt(view.workspace.fork(this.session_id, before.id)));
    if (before && !made) return;
    if (made) view.mirror.sessions.set(made.id, made);
    view.go(made?.id ?? null);
    view.show(made?.id ?? null);
    view.composer.restore(text, attachments);
    if (view.mirror.runs.get(message.run_id)?.plan) view.composer.setPlan(true);
    toast(`${made ? 'Forked before this prompt' : 'New session'}. The original session is unchanged.`);
  }

  /** The message before another one; its calls bring their results. */
  async before(message) {
    const history = this.view.mirror.history(this.session_id);
    const find = () => history.messages.findLast((item) => item.seq < message.seq && item.role !== 'tool');
    if (!find() && history.older) await history.loadOlder().catch(() => false);
    return find();
  }

  /** Whether this message ends a failed run that nothing came after. */
  canRetry(message) {
    const failed = message.parts.some((part) => part.type === 'finish' && FAILED.has(part.reason));
    if (!failed || this.view.mirror.unfinished(this.session_id).length) return false;
    return !this.messages.findLast((item) => item.role === 'user' && item.seq > message.seq);
  }

  /** Sends the prompt of a failed run again, with the model that is chosen now. */
  retry(message) {
    const prompt = this.messages.findLast((item) => item.role === 'user' && item.seq < message.seq);
    if (!prompt) return;
    const { text, attachments } = this.promptOf(prompt);
    const choices = this.view.composer.choices();
    if (this.view.mirror.runs.get(message.run_id)?.plan) Object.assign(choices, { plan: true, delivery: 'queue' });
    this.view.send({ text, command: '', attachments, choices });
    this.view.composer.focus();
  }

  // The session

  expandAll(open) {
    const { transcript } = this.view;
    if (!transcript) return;
    transcript.story.expanded = open; // also for rows that come into view later
    for (const box of transcript.rows.querySelectorAll('details.tool, details.reasoning')) box.open = open;
    transcript.groups.expand(open);
  }

  async attempt(work) {
    try {
      return (await work) ?? true;
    } catch (error) {
      toastError(error);
      return null;
    }
  }
}

const FAILED = new Set(['error', 'interrupted', 'limit']);
