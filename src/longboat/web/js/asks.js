// Pending permissions and questions as cards, until someone answers.

import { alertTo, say, toastError } from './a11y.js';
import { Refused } from './api.js';
import { h } from './dom.js';
import { oneLine, plain } from './format.js';
import { person } from './people.js';
import { permissionCard } from './permission.js';
import { rendered } from './rendering.js';

const ANSWER_SHOWN_MS = 5000;
const ANSWERS = { once: 'allowed once', session: 'allowed for this session', always: 'always allowed', deny: 'denied' };

export class Asks {
  constructor(workspace, mirror) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.element = h('section', { class: 'asks', 'aria-label': 'Waiting for an answer' });
    this.cards = new Map();
    this.stops = [
      mirror.on('asks', (event) => this.draw(event)),
      mirror.on('answered', (answer) => this.showAnswer(answer)),
    ];
  }

  show(session_id) {
    this.session_id = session_id;
    this.cards.clear();
    this.element.replaceChildren();
    this.draw({});
    this.element.scrollTop = 0; // the previous session may have scrolled
  }

  close() {
    this.stops.forEach((stop) => stop());
  }

  /** What this session and its sub-agents ask, oldest first. */
  pending() {
    const mine = (ask) => this.session_id && this.mirror.concerns(ask, this.session_id);
    return this.mirror
      .pendingAsks()
      .filter(mine)
      .sort((one, other) => one.asked_at.localeCompare(other.asked_at));
  }

  draw(event) {
    const pending = this.pending();
    const ids = new Set(pending.map((ask) => ask.id));
    for (const [id, card] of this.cards) {
      if (!ids.has(id) && !card.classList.contains('leaving')) this.drop(id);
    }
    for (const ask of pending) {
      if (this.cards.has(ask.id)) continue;
      const card = this.card(ask);
      this.cards.set(ask.id, card);
      this.element.append(card);
      if (event.asked?.id === ask.id) {
        const needed = [ask.title, ask.danger].filter(Boolean).join(' ');
        alertTo(isPermission(ask) ? `Approval needed: ${plain(needed)}` : `Question: ${plain(ask.text)}`);
      }
    }
  }

  card(ask) {
    if (!isPermission(ask)) {
      const [title, more] = inTwo(ask.text);
      return frame(ask, 'question', title, more && prose(more), questionForm(ask, (words) => this.reply(ask, words)));
    }
    const { kind, title, content } = permissionCard(ask, (body) => this.reply(ask, body));
    return frame(ask, kind, title, ...content);
  }

  /** Answers a permission with the body of the request, a question with its texts. A refusal goes to `tell`. */
  async reply(ask, answer, tell = toastError) {
    const card = this.cards.get(ask.id);
    if (!card) return false; // settled in the meantime
    card.hadFocus = card.contains(document.activeElement); // an inert card loses the focus
    card.inert = true;
    try {
      if (isPermission(ask)) await this.workspace.answerPermission(ask.id, answer);
      else await this.workspace.answerQuestion(ask.id, answer);
      return true;
    } catch (error) {
      card.inert = false;
      if (card.hadFocus) card.querySelector('button')?.focus(); // of a dangerous call, the one that denies it
      tell(error);
      if (error instanceof Refused && [404, 409].includes(error.status)) this.drop(ask.id);
      return false;
    }
  }

  /** Shows briefly, in place of the card, who answered. */
  showAnswer(answer) {
    const card = this.cards.get(answer.id);
    if (!card) return;
    const hadFocus = card.hadFocus || card.contains(document.activeElement);
    const mine = isSame(answer.answered_by, this.workspace.client_id);
    const told = answerText(answer, mine);
    if (mine || !card.isConnected) this.drop(answer.id);
    else {
      card.classList.add('leaving');
      card.replaceChildren(h('p', {}, told));
      setTimeout(() => this.drop(answer.id), ANSWER_SHOWN_MS);
    }
    say(told);
    if (hadFocus) this.onLeft?.();
  }

  drop(id) {
    this.cards.get(id)?.remove();
    this.cards.delete(id);
  }
}

export const isPermission = (ask) => ask.tool !== undefined;

/** Whether two windows are of one person. */
const isSame = (one, other) => Boolean(one) && person(one) === person(other);

export function answerText(answer, mine) {
  const what = oneLine(plain((answer.kind === 'permissions' ? answer.title : answer.text) ?? 'Request'), 200);
  if (answer.state === 'withdrawn') return `No longer needs an answer, because the run ended: ${what}`;
  const who = mine ? 'you' : plain(person(answer.answered_by ?? 'someone'));
  if (answer.kind === 'permissions') return `${what}: ${ANSWERS[answer.answer]} by ${who}.`;
  return `Answered by ${who}: “${plain(answer.answer.join(', '))}” (${what})`;
}

function frame(ask, kind, title, ...children) {
  const id = `ask-${ask.id}`;
  return h(
    'article',
    { class: `ask ${kind}`, 'aria-labelledby': id, data: { id: ask.id } },
    h('h2', { id }, title),
    ask.parent_session_id && h('p', { class: 'quiet' }, 'Asked by a sub-agent'),
    ...children,
  );
}

/** The first paragraph of a question, and what follows: of a plan, why and its steps. */
function inTwo(text) {
  const [title, ...more] = plain(text).trim().split(/\n[ \t]*\n/);
  return [title, more.join('\n\n').trim()];
}

/** Markdown: as text until it is rendered. */
function prose(text) {
  const box = h('div', { class: 'prose', tabindex: '0', role: 'group', 'aria-label': 'Details' }, h('div', { class: 'tail' }, text));
  rendered('markdown', text).then((made) => box.replaceChildren(made));
  return box;
}

/** What a choice means, below it. */
const meaningOf = (text) => text && [h('br'), h('small', { class: 'quiet' }, plain(text))];

/** Choices with their numbers, which are keys too, and a field for an own answer. */
function questionForm(ask, send) {
  const kind = ask.multiple ? 'checkbox' : 'radio';
  const choices = ask.choices.map((choice, index) =>
    h(
      'label',
      { class: 'choice' },
      h('input', { type: kind, name: `choice-${ask.id}`, value: String(index) }),
      h('kbd', { 'aria-hidden': 'true' }, index < 9 ? String(index + 1) : ''),
      h('span', {}, plain(choice), meaningOf(ask.descriptions?.[index])),
    ),
  );
  const own = h('input', { id: `own-${ask.id}`, autocomplete: 'off', maxlength: '10000' });
  const form = h(
    'form',
    {
      onsubmit: (event) => {
        event.preventDefault();
        const picked = [...form.querySelectorAll('input:checked')].map((input) => ask.choices[Number(input.value)]);
        const words = own.value.trim();
        const all = words ? (ask.multiple ? [...picked, words] : [words]) : picked;
        if (!all.length) return own.focus();
        send(all);
      },
    },
    choices.length > 0 &&
      h('fieldset', {}, h('legend', {}, ask.multiple ? 'Choose one or more' : 'Choose one'), choices),
    h('label', { for: own.id }, choices.length ? 'Or type your own answer' : 'Your answer'),
    own,
    h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Answer')),
  );
  return form;
}
