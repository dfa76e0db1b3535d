// What the session is doing now: since when, for whom, with how many tokens; and the button that stops it.

import { h, icon, perFrame } from './dom.js';
import { between, plain, tokens } from './format.js';
import { person } from './people.js';
import { keysOf } from './keys.js';

const SEEN_FROM_START_S = 5;

export class Working {
  /** `on` has: cancel(run), cancelAll(), left() when the focused button is gone, busy(isBusy). */
  constructor(workspace, mirror, on) {
    Object.assign(this, { workspace, mirror, on });
    this.text = h('span', {});
    this.stopOne = h(
      'button',
      { type: 'button', class: 'stop-button', title: 'Stop this run', onclick: () => this.stop() },
      icon('stop'),
      'Stop',
      h('kbd', { 'aria-hidden': 'true' }, keysOf('stop')),
    );
    this.stopOne.setAttribute('aria-label', 'Stop');
    this.stopAll = h(
      'button',
      { type: 'button', class: 'small', title: 'Stop this run and cancel the waiting prompts', onclick: on.cancelAll },
      'Stop all',
    );
    this.element = h(
      'div',
      { class: 'working', hidden: true },
      h('span', { class: 'pulse', 'aria-hidden': 'true' }),
      this.text,
      h('span', { class: 'stop' }, this.stopAll, this.stopOne),
    );
    this.usedBefore = new Map(); // run → tokens of the session when it started
    this.drawSoon = perFrame(() => this.draw());
  }

  close() {
    clearInterval(this.clock);
  }

  show(session_id) {
    this.session_id = session_id;
    this.draw();
  }

  draw() {
    const unfinished = this.session_id ? this.mirror.unfinished(this.session_id) : [];
    const active = unfinished.find((run) => run.state === 'active') ?? unfinished[0];
    this.active = active;
    // The focused Stop button disappears with its run.
    if (!active && this.element.contains(document.activeElement)) this.on.left();
    this.element.hidden = !active;
    this.on.busy(Boolean(active));
    this.tick(Boolean(active));
    if (!active) return;
    this.countFrom(active);
    this.asks = this.mirror.pendingAsks().some((ask) => this.mirror.concerns(ask, this.session_id));
    this.element.classList.toggle('held', this.asks || this.mirror.away !== null);
    this.stopOne.setAttribute('aria-disabled', String(active.cancel_requested));
    const alone = unfinished.length < 2;
    if (alone && document.activeElement === this.stopAll) this.stopOne.focus();
    this.stopAll.hidden = alone;
    this.say();
  }

  tick(on) {
    if (on) this.clock ??= setInterval(() => this.say(), 1000);
    else {
      clearInterval(this.clock);
      this.clock = null;
    }
  }

  say() {
    const { active } = this;
    const me = person(this.workspace.client_id);
    const other = (id) => (id && person(id) !== me ? plain(person(id)) : '');
    if (active.cancel_requested) {
      const by = other(active.canceled_by);
      this.text.textContent = by ? `${by} is stopping this run…` : 'Stopping…';
      return;
    }
    if (this.mirror.away !== null) {
      this.text.textContent = `Waiting for ${plain(this.mirror.away)}`;
      return;
    }
    const who = other(active.client_id);
    const doing = this.asks ? 'Waiting for an answer' : `Working${who && ` for ${who}`}`;
    this.text.textContent = [`${doing}…`, this.elapsed(), this.used()].filter(Boolean).join(' · ');
  }

  elapsed() {
    if (!this.active.started_at) return '';
    const all = Math.max(0, Math.floor((Date.now() - Date.parse(this.active.started_at)) / 1000));
    return all < 60 ? `${all} s` : `${Math.floor(all / 60)} min ${all % 60} s`;
  }

  /** The tokens of a run that was seen from its start. */
  used() {
    const before = this.usedBefore.get(this.active.run_id);
    const used = before === undefined ? 0 : this.total() - before;
    return used > 0 ? `${tokens(used)} tokens` : '';
  }

  countFrom({ run_id, started_at }) {
    if (this.usedBefore.has(run_id)) return;
    const isNew = !started_at || between(started_at, new Date().toISOString()) < SEEN_FROM_START_S;
    this.usedBefore.set(run_id, isNew ? this.total() : undefined);
  }

  total() {
    const usage = this.mirror.sessions.get(this.session_id)?.usage;
    return usage ? usage.input_tokens + usage.output_tokens : 0;
  }

  /** Stops the active run, once. True if there was one. */
  stop() {
    if (!this.active) return false;
    if (!this.active.cancel_requested) this.on.cancel(this.active);
    return true;
  }
}
