// Pending permissions and questions as cards, until someone answers.

import { alertTo, say, toast } from './a11y.js';
import { Refused } from './api.js';
import { Diff } from './diff.js';
import { h } from './dom.js';
import { plain } from './format.js';
import { person } from './people.js';
import { splitDiff } from './toolinput.js';

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

  pending() {
    const mine = (ask) => this.session_id && this.mirror.concerns(ask, this.session_id);
    return [
      ...[...this.mirror.permissions.values()].filter(mine).map((ask) => ({ ask, make: permissionCard })),
      ...[...this.mirror.questions.values()].filter(mine).map((ask) => ({ ask, make: questionCard })),
    ];
  }

  draw(event) {
    const pending = this.pending();
    const ids = new Set(pending.map(({ ask }) => ask.id));
    for (const [id, card] of this.cards) {
      if (!ids.has(id) && !card.classList.contains('leaving')) this.drop(id);
    }
    for (const { ask, make } of pending) {
      if (this.cards.has(ask.id)) continue;
      const card = make(ask, (send) => this.answer(ask.id, send), this.workspace);
      this.cards.set(ask.id, card);
      this.element.append(card);
      if (event.asked?.id === ask.id) {
        alertTo(ask.title ? `Approval needed: ${plain(ask.title)}` : `Question: ${plain(ask.text)}`);
      }
    }
  }

  async answer(id, send) {
    const card = this.cards.get(id);
    card.hadFocus = card.contains(document.activeElement); // an inert card loses the focus
    card.inert = true;
    try {
      await send();
    } catch (error) {
      card.inert = false;
      if (card.hadFocus) card.querySelector('button')?.focus();
      toast(error.message, 'error');
      if (error instanceof Refused && [404, 409].includes(error.status)) this.drop(id);
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

/** Whether two windows are of one person. */
const isSame = (one, other) => Boolean(one) && person(one) === person(other);

function answerText(answer, mine) {
  const what = answer.kind === 'permissions' ? plain(answer.title ?? 'Permission') : plain(answer.text ?? 'Question');
  if (answer.state === 'withdrawn') return `Withdrawn because the run ended: ${what}`;
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

function permissionCard(ask, answer, workspace) {
  const send = (body) => answer(() => workspace.answerPermission(ask.id, body));
  const wide = h('input', { type: 'checkbox', id: `wide-${ask.id}` });
  const rules = () => (wide.checked ? ask.wide : ask.grant);
  const told = h('code', {}, plain(ask.grant.join('  ')));
  wide.addEventListener('change', () => (told.textContent = plain(rules().join('  '))));
  const grant = (kind) => () => send({ answer: kind, wide: wide.checked });
  const buttons = h(
    'div',
    { class: 'buttons' },
    h('button', { type: 'button', class: 'primary', onclick: () => send({ answer: 'once' }) }, 'Allow once'),
    ask.grant.length > 0 && h('button', { type: 'button', onclick: grant('session') }, 'For this session'),
    ask.grant.length > 0 && h('button', { type: 'button', onclick: grant('always') }, 'Always'),
    h('button', { type: 'button', class: 'danger', 'aria-expanded': 'false', onclick: () => denyForm.open() }, 'Deny…'),
  );
  const denyForm = reasonForm(ask.id, (reason) => send({ answer: 'deny', reason }), buttons);
  return frame(
    ask,
    isToldByTitle(ask) ? 'permission told' : 'permission',
    plain(ask.title || `${ask.tool}: ${ask.argument}`),
    detail(ask),
    h('p', { class: 'quiet' }, plain(ask.why)),
    parts(ask),
    ask.grant.length > 0 && h('p', { class: 'rules' }, '“For this session” and “Always” will allow: ', told),
    ask.wide?.length > 0 &&
      h(
        'p',
        {},
        wide,
        ' ',
        h('label', { for: wide.id }, 'Use wider rules: ', h('code', {}, plain(ask.wide.join('  ')))),
      ),
    buttons,
    denyForm.element,
  );
}

function detail(ask) {
  const change = ask.detail && splitDiff(ask.detail);
  if (change) return new Diff(change.diff, ask.argument).element;
  const beyond = beyondTitle(ask);
  if (!beyond) return null;
  return h('pre', { class: 'command', tabindex: '0', role: 'group', 'aria-label': 'Requested action' }, plain(beyond));
}

/** Whether only the title has the argument: then it is never shortened. */
function isToldByTitle(ask) {
  return beyondTitle(ask) !== (ask.detail || ask.argument).trim();
}

/** The part of the detail that the title does not show already. */
function beyondTitle(ask) {
  const text = (ask.detail || ask.argument).trim();
  const argument = ask.argument.trim();
  if (ask.title.endsWith(text)) return '';
  if (argument && ask.title.endsWith(argument) && text.startsWith(`${argument}\n`)) {
    return text.slice(argument.length).trim();
  }
  return text;
}

/** The parts of a shell command, with a mark on those that need approval. */
function parts(ask) {
  if (!(ask.parts?.length > 1)) return null;
  return h(
    'ul',
    { class: 'parts', 'aria-label': 'Parts of the command' },
    ask.parts.map((part) =>
      h(
        'li',
        { class: part.why ? 'asked' : 'quiet' },
        h('span', { 'aria-hidden': 'true' }, part.why ? '? ' : '✓ '),
        part.text && h('code', {}, plain(part.text)),
        part.text && ' ',
        plain(part.why || (part.rule ? `allowed by ${part.rule}` : 'needs no approval')),
      ),
    ),
    ask.more_parts > 0 && h('li', { class: 'quiet' }, `… and ${ask.more_parts} more`),
  );
}

function reasonForm(id, deny, buttons) {
  const input = h('input', { id: `reason-${id}`, maxlength: '10000', autocomplete: 'off' });
  const toggle = (open) => {
    element.hidden = !open;
    buttons.hidden = open;
    (open ? input : buttons.querySelector('.danger')).focus();
  };
  const element = h(
    'form',
    {
      class: 'reason',
      hidden: true,
      onsubmit: (event) => {
        event.preventDefault();
        deny(input.value.trim());
      },
      onkeydown: (event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        toggle(false);
      },
    },
    h('label', { for: input.id }, 'Reason to give the model (optional)'),
    input,
    h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'submit', class: 'danger' }, 'Deny'),
      h('button', { type: 'button', onclick: () => toggle(false) }, 'Cancel'),
    ),
  );
  return { element, open: () => toggle(true) };
}

function questionCard(ask, answer, workspace) {
  const kind = ask.multiple ? 'checkbox' : 'radio';
  const choices = ask.choices.map((choice, index) =>
    h(
      'label',
      { class: 'choice' },
      h('input', { type: kind, name: `choice-${ask.id}`, value: String(index) }),
      h('span', {}, plain(choice)),
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
        answer(() => workspace.answerQuestion(ask.id, all));
      },
    },
    choices.length > 0 &&
      h('fieldset', {}, h('legend', {}, ask.multiple ? 'Choose one or more' : 'Choose one'), choices),
    h('label', { for: own.id }, choices.length ? 'Or type your own answer' : 'Your answer'),
    own,
    h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Answer')),
  );
  return frame(ask, 'question', plain(ask.text), form);
}
