// One session on the screen: the bar above it, its transcript, approvals and questions, queue and prompt.

import { say, toast } from './a11y.js';
import { Refused, Unreachable } from './api.js';
import { Answering } from './answering.js';
import { Asks } from './asks.js';
import { AwayNotice } from './away.js';
import { Composer } from './composer.js';
import { h } from './dom.js';
import { Finder } from './finding.js';
import { costOf, plain, tokens } from './format.js';
import { menu } from './menu.js';
import { Outgoing } from './outgoing.js';
import { person } from './people.js';
import { Queue } from './queue.js';
import { SessionActions } from './sessionactions.js';
import { SubAgents } from './subagents.js';
import { suggestions } from './suggestions.js';
import { setTitle } from './title.js';
import { Transcript } from './transcript.js';
import { preview } from './tree.js';
import { Undo } from './undo.js';
import { lost, Welcome } from './welcome.js';
import { Working } from './working.js';

const MORE_RUNS = 200;

export class Conversation {
  constructor(workspace, { mirror, outbox, sessions, go }) {
    Object.assign(this, { workspace, mirror, outbox, sessions, go });
    this.title = h('h1', { class: 'title' });
    this.facts = h('p', { class: 'facts quiet' });
    this.bar = h(
      'div',
      { class: 'session-bar' },
      h('div', { class: 'names' }, this.title, this.facts),
      menu('Session', () => this.does.menu()),
    );
    this.scroller = h('section', { class: 'scroller', tabindex: '0', 'aria-label': 'Transcript' });
    this.away = new AwayNotice(workspace, mirror);
    this.does = new SessionActions(this);
    this.undo = new Undo(this);
    this.working = new Working(workspace, mirror, {
      cancel: (run) => this.does.attempt(workspace.cancelRun(run.run_id)),
      cancelAll: () => this.does.attempt(workspace.cancelAll(this.session_id)),
      left: () => this.composer.focus(),
      busy: (isBusy) => this.composer.setBusy(isBusy),
    });
    this.asks = new Asks(workspace, mirror);
    this.asks.onLeft = () => this.composer.focus();
    this.queue = new Queue(workspace, mirror);
    this.queue.onLeft = () => this.composer.focus();
    this.composer = new Composer(workspace, {
      send: (prompt) => this.send(prompt),
      ...suggestions(workspace),
      actions: this.does.commands(),
    });
    this.answering = new Answering(this.asks, mirror, this.composer);
    this.welcome = new Welcome({
      workspace,
      put: (text) => this.composer.begin(text),
      look: () => this.loadModels(),
    });
    this.outgoing = new Outgoing(outbox, {
      takeBack: (entry) => this.takeBack(entry),
      discard: (entry) => outbox.takeBack(entry),
      again: (entry) => outbox.again(entry, entry.session_id ? {} : { place: this.place }),
      left: () => this.composer.focus(),
    });
    this.outgoing.onDrawn = () => this.transcript?.pinned && this.transcript.stick();
    this.finder = new Finder({ left: () => this.composer.focus() });
    this.holder = h(
      'div',
      { class: 'scroll-holder' },
      h('h2', { class: 'hidden' }, 'Transcript'),
      this.finder.element,
      this.scroller,
    );
    this.dock = h(
      'div',
      { class: 'dock' },
      this.working.element,
      this.asks.element,
      this.queue.element,
      this.answering.element,
      this.composer.element,
    );
    this.element = h('div', { class: 'conversation' }, this.bar, this.away.element, this.holder, this.dock);
    // Runs before the browser reports its own scrolling, so that a reader at the end stays there.
    this.heights = new MutationObserver(() => this.transcript?.resized());
    this.heights.observe(this.dock, { attributes: true, characterData: true, childList: true, subtree: true });
    this.composer.takeDrops(this.element);
    this.stops = [
      mirror.on('runs', (run) => this.runChanged(run)),
      mirror.on('runs', () => outbox.seen((run_id) => mirror.runs.has(run_id))),
      mirror.on('run_complete', (run) => this.ended(run)),
      mirror.on('sessions', (event) => this.sessionChanged(event)),
      mirror.on('asks', () => this.asked()),
      mirror.on('notices', () => this.drawNotices()),
      mirror.on('lost', ({ session_id, error }) => session_id === this.session_id && this.lostSession(error)),
      outbox.listen((kind, entry) => this.onItsWay(kind, entry)),
      mirror.on('snapshot', () => this.session_id && this.loadRuns(true)),
      mirror.on('config', () => this.loadModels()),
      mirror.on('snapshot', () => this.models && this.loadModels()), // the models may have changed while disconnected
    ];
    this.loadModels();
  }

  close() {
    this.composer.saveDraft();
    this.stops.forEach((stop) => stop());
    this.away.close();
    this.asks.close();
    this.answering.close();
    this.heights.disconnect();
    this.queue.close();
    this.undo.close();
    this.working.close();
    this.outgoing.close();
    this.leave();
  }

  leave() {
    this.finder.show(null);
    this.transcript?.close();
    this.children?.close();
    this.stopListening?.();
    this.transcript = this.children = null;
    this.scroller.replaceChildren();
    this.holder.querySelector('.newest')?.remove();
  }

  async show(session_id) {
    this.leave();
    this.session_id = session_id;
    this.lost = this.dock.hidden = false;
    this.nextRuns = undefined;
    if (this.composer.session_id !== session_id) this.composer.show(session_id);
    this.asks.show(session_id);
    this.answering.typed();
    this.queue.show(session_id);
    this.outgoing.show(session_id);
    this.drawBar();
    this.working.show(session_id);
    this.composer.arrive();
    if (!session_id) {
      this.place = this.outbox.place();
      this.scroller.replaceChildren(this.welcome.element, this.outgoing.element);
      this.welcome.refresh();
      if (!this.models || this.models.problem || this.models.advice) this.loadModels();
      return;
    }
    const history = this.mirror.history(session_id);
    this.children = new SubAgents(this.mirror, session_id, (id) => this.story(this.mirror.history(id), true));
    this.transcript = new Transcript(this.scroller, this.story(history, false));
    this.transcript.element.append(this.undo.element, this.outgoing.element);
    this.undo.show();
    this.scroller.replaceChildren(this.transcript.element);
    this.holder.append(this.transcript.newest);
    this.finder.show(this.transcript);
    this.stopListening = history.listen((kind) => {
      if (['reset', 'message'].includes(kind)) this.drawNotices();
      this.undo.heard(kind);
    });
    this.drawNotices();
    await Promise.all([this.loadHistory(history), this.loadRuns(true), this.loadSession(session_id)]);
  }

  async loadHistory(history) {
    try {
      await history.load();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (this.transcript?.history === history) this.lostSession(error);
    }
  }

  /** Shows that the session does not exist. Hides the prompt: there is nothing to send it to. */
  lostSession(error) {
    if (error.status === 401) return; // the page shows that it is logged out
    this.leave();
    if (error.status === 404) this.mirror.sessions.delete(this.session_id);
    // Unsent prompts for it stay visible: they can be sent to another session.
    this.scroller.replaceChildren(
      lost(error.status === 404 ? '' : error.message, this.workspace.id),
      this.outgoing.element,
    );
    this.dock.hidden = true;
    this.lost = true;
    this.drawBar();
  }

  async loadSession(id) {
    if (this.mirror.sessions.has(id)) return;
    const session = await this.workspace.session(id).catch(() => null);
    if (session) this.mirror.sessions.set(id, session);
    this.drawBar();
  }

  async loadModels() {
    const page = await this.workspace.models().catch((error) =>
      // An unreadable configuration is shown in the same place.
      error instanceof Unreachable ? null : { items: [], large: null, problem: error.message },
    );
    if (!page) return;
    const news = page.problem && page.problem !== this.models?.problem;
    this.models = page;
    this.composer.setModels(page);
    this.welcome.setModels(page);
    if (news && this.session_id) toast(page.problem, 'error');
  }

  /** Loads who sent which prompt and how each run ended, including runs from before this page was opened. */
  async loadRuns(fresh) {
    const session_id = this.session_id;
    try {
      const page = await this.workspace.runs(session_id, fresh ? undefined : this.nextRuns, fresh ? 60 : MORE_RUNS);
      for (const run of page.items) {
        const known = this.mirror.runs.get(run.run_id);
        if (!known || run.state === 'finished') this.mirror.runs.set(run.run_id, run);
      }
      if (session_id !== this.session_id) return;
      this.nextRuns = page.next;
      this.transcript?.refresh();
      this.mirror.tell('runs', {});
    } catch {
      // The names are missing until the next snapshot.
    }
  }

  // What messages need from the session

  story(history, compact) {
    return {
      history,
      compact,
      isMe: (name) => Boolean(name) && person(name) === person(this.workspace.client_id),
      author: (message) => (compact && message.role === 'user' ? 'Main agent' : this.author(message)),
      isOver: (message) => {
        const run = this.mirror.runs.get(message.run_id);
        return run ? run.state === 'finished' : Boolean(message.finished_at);
      },
      isAsked: (call_id, run_id) =>
        this.mirror.pendingAsks().some((ask) => ask.tool_call_id === call_id && ask.run_id === run_id),
      subAgent: compact ? null : (call_id) => this.children?.place(call_id),
      openFile: (path) => preview(this.workspace, path, (text) => this.composer.insert(text)),
      actions: compact ? null : (message) => this.does.of(message),
      connect: compact ? null : () => this.welcome.connect(),
      retry: compact ? null : (message) => this.does.canRetry(message) && (() => this.does.retry(message)),
    };
  }

  author(message) {
    if (message.role === 'assistant') return message.model ? plain(message.model) : 'Longboat';
    const run = this.mirror.runs.get(message.run_id);
    if (!run && this.nextRuns && !this.fetching) {
      this.fetching = setTimeout(() => {
        this.fetching = null;
        if (this.nextRuns) this.loadRuns(false);
      }, 100);
    }
    if (run?.parent_run_id) return 'Main agent';
    if (!run?.client_id) return 'Prompt';
    const who = person(run.client_id);
    return who === person(this.workspace.client_id) ? 'You' : plain(who);
  }

  // Events

  sessionChanged({ change, session }) {
    this.drawBar();
    if (change !== 'deleted' || session.id !== this.session_id) return;
    this.lostSession(new Error('Someone deleted this session.'));
    say('This session was deleted.');
  }

  runChanged(run) {
    if (run.session_id && run.session_id !== this.session_id) return;
    // At once: by the next frame, the first step may have been counted.
    if (run.state && run.state !== 'finished') this.working.countFrom(run);
    this.working.drawSoon();
    if (run.state === 'finished' || run.outcome) this.transcript?.refresh();
  }

  ended(run) {
    this.transcript?.refresh();
    this.drawNotices();
    if (run.session_id !== this.session_id || run.folded_into) return;
    if (run.error) say(plain(run.error)); // says whether it failed or was interrupted
    else if (run.cancelled) say('The run was canceled.');
    else say(`Answer: ${plain(run.text).slice(0, 300)}`);
  }

  asked() {
    this.transcript?.refresh();
    this.working.draw();
  }

  drawBar() {
    const session = this.mirror.sessions.get(this.session_id);
    const unknown = this.lost ? 'Not found' : this.session_id ? '…' : 'New session';
    this.title.textContent = session ? plain(session.title) || 'New session' : unknown;
    setTitle(`${session?.busy ? '● ' : ''}${this.title.textContent} · Longboat`);
    const usage = session?.usage;
    const used = usage && usage.input_tokens + usage.output_tokens;
    const spent = usage?.cost === null ? ' · cost unknown' : usage?.cost ? ` · ${costOf(usage)}` : '';
    this.facts.textContent = used ? `${tokens(used)} tokens${spent}` : '';
  }

  drawNotices() {
    const told = this.mirror.notices.get(this.session_id) ?? [];
    if (!told.length) return this.transcript?.setNotices([]);
    const shown = new Set(
      this.transcript?.history.messages
        .filter((message) => message.parts.some((part) => part.type === 'finish' && part.reason !== 'end_turn'))
        .map((message) => message.run_id),
    );
    // The last message of a failed run already shows its error.
    this.transcript?.setNotices(
      told.filter((notice) => notice.type !== 'error' || !shown.has(notice.run_id)).slice(-5),
    );
  }

  // Sending prompts

  send(prompt) {
    this.outbox.add({ ...prompt, session_id: this.session_id ?? null, place: this.session_id ? null : this.place });
    this.mirror.notices.delete(this.session_id);
    this.drawNotices();
    this.transcript?.stick();
    if (this.transcript) this.transcript.pinned = true;
  }

  onItsWay(kind, entry) {
    // Of this session, the reason is shown at the prompt.
    if (kind === 'refused' && entry.session_id === this.session_id) say(`Not sent. ${entry.problem}`);
    else if (kind === 'refused') toast(entry.problem, 'error');
    else if (kind === 'made' && !this.session_id && entry.place === this.place) this.moveTo(entry);
  }

  /** The session of a first prompt was created. */
  moveTo({ session_id, made }) {
    if (made) this.mirror.sessions.set(session_id, made);
    this.composer.adopt(session_id);
    this.show(session_id);
    this.go(session_id);
  }

  /** Puts an unsent prompt back into the prompt field; if its session was deleted, into that of a new session. */
  takeBack(entry) {
    if (!this.outbox.takeBack(entry)) return;
    if (entry.choices?.plan) this.composer.setPlan(true);
    if (this.lost) this.go(null);
    const restore = () => this.composer.restore(entry.text, entry.attachments);
    if (this.lost) this.show(null).then(restore);
    else restore();
  }
}
