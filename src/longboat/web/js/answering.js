// Typed answers. While a permission or a question of the session waits, what is typed into the prompt answers the oldest
// one; a line above the prompt says what Enter will do, and offers to send the text as a prompt instead. A single key
// answers if nothing else is typed.

import { say } from './a11y.js';
import { answerText, isPermission } from './asks.js';
import { h, isTouch } from './dom.js';
import { oneLine, plain } from './format.js';
import { hasGrant, isOnlyWide } from './permission.js';

export const GRACE_MS = 500; // who was typing when a request appeared has not seen it yet
const ALONE_MS = 400; // a key answers if no other follows: it may begin a sentence
const WORDS = {
  once: ['y', 'yes', 'ok', 'allow', 'allow once'],
  session: ['s', 'session', 'allow for this session'],
  always: ['a', 'always', 'always allow'],
  deny: ['d', 'n', 'no', 'deny'],
};
const LASTING = ['session', 'always']; // “a” may begin a sentence: in the prompt such an answer takes Enter
const EFFECTS = {
  once: 'allows this call once',
  session: 'allows it for this session',
  always: 'always allows it',
  deny: 'denies this call',
};

export class Answering {
  constructor(asks, mirror, composer) {
    Object.assign(this, { asks, composer, mirror, target: null, note: '' });
    this.text = h('span', { class: 'effect', role: 'status' });
    this.instead = h(
      'button',
      { type: 'button', class: 'small', onclick: () => this.sendAsPrompt() },
      'Send as a prompt instead',
      h('kbd', { 'aria-hidden': 'true' }, 'Alt+Enter'),
    );
    this.element = h('div', { class: 'answering', hidden: true }, this.text, this.instead);
    composer.answering = this;
    composer.text.addEventListener('input', () => this.typed());
    composer.text.addEventListener('keyup', () => this.draw()); // a key may have put an earlier prompt there
    this.onKey = (event) => this.keyElsewhere(event);
    document.addEventListener('keydown', this.onKey);
    this.onResize = () => this.draw(); // keys are mentioned on wide screens alone
    addEventListener('resize', this.onResize);
    this.stops = [
      mirror.on('answered', (answer) => this.settled(answer)),
      mirror.on('asks', () => this.draw()),
    ];
  }

  close() {
    clearTimeout(this.alone);
    document.removeEventListener('keydown', this.onKey);
    removeEventListener('resize', this.onResize);
    this.stops.forEach((stop) => stop());
  }

  get draft() {
    return this.composer.text.value.trim();
  }

  /** Whether Enter would send the draft as something else: a command, a shell command, a prompt with files. */
  get isOther() {
    return /^[/!]/.test(this.draft) || this.composer.files.items.length > 0;
  }

  typed() {
    this.note = '';
    this.draw();
  }

  /** Shows what Enter will do. */
  draw() {
    const shown = (ask) => ask.id !== this.sending && this.asks.cards.has(ask.id);
    const [oldest = null] = this.asks.pending().filter(shown);
    if (oldest?.id !== this.target?.id) this.turnTo(oldest);
    for (const [id, card] of this.asks.cards) card.classList.toggle('next', id === oldest?.id);
    const effect = oldest && !this.isOther ? this.effect(oldest) : this.note && 'Enter sends it as a prompt.';
    const told = [this.note, effect].filter(Boolean).join(' ');
    this.element.hidden = !told;
    this.element.classList.toggle('risky', Boolean(oldest?.danger));
    if (this.text.textContent !== told) this.text.textContent = told;
    this.instead.hidden = !oldest || !this.draft || this.isOther;
  }

  turnTo(ask) {
    this.target = ask;
    this.heardAt = performance.now();
    clearTimeout(this.alone);
  }

  effect(ask) {
    const { draft } = this;
    if (!draft && isTouch()) return touchHint(ask);
    if (!draft && ask.danger) return 'Press d to deny; or type what to do instead.'; // its card says how to allow it
    if (!draft) return promptHint(ask);
    if (!isPermission(ask)) return `Enter answers the question with “${oneLine(plain(textsOf(ask, draft).join(', ')), 60)}”.`;
    const word = wordOf(ask, draft);
    return word ? `Enter ${EFFECTS[word]}.` : 'Enter denies this call and tells the agent what to do instead.';
  }

  /** Someone answered. If that was not this page, what is typed stays, and says so. */
  settled(answer) {
    if (answer.id !== this.target?.id || answer.id === this.sending || !this.draft) return;
    if (answer.answered_by !== this.asks.workspace.client_id) this.keep(answerText(answer, false));
  }

  keep(why) {
    this.note = `${plain(why)} Your text is still here.`;
    say(this.note);
    this.draw();
  }

  /** Whether a key comes too soon after the request to be meant for it. It takes a pause in typing to end this. */
  isHasty() {
    if (this.heardAt === null) return false;
    const before = this.heardAt;
    this.heardAt = performance.now();
    if (this.heardAt - before < GRACE_MS) return true;
    this.heardAt = null;
    return false;
  }

  /** A key in the prompt. Returns whether it is done with. */
  key(event) {
    clearTimeout(this.alone);
    if (event.isComposing || event.ctrlKey || event.metaKey) return false;
    if (event.key === 'Enter' && event.altKey) {
      event.preventDefault();
      this.sendAsPrompt();
      return true;
    }
    if (event.altKey || !(this.target || this.note)) return false;
    if (event.key === 'Enter' && !event.shiftKey) return this.enter(event);
    if (!this.target) return false;
    const hasty = event.key.length === 1 && this.isHasty();
    const lasts = isPermission(this.target) && LASTING.includes(wordOf(this.target, event.key));
    if (!hasty && !lasts && !this.composer.text.value && !this.isOther) this.arm(event.key);
    return false;
  }

  /** Enter in an empty prompt sends what is marked in a question; it never answers a permission. */
  enter(event) {
    if (this.isHasty()) {
      event.preventDefault();
      return true;
    }
    const form = !this.draft && this.target && !isPermission(this.target) && this.asks.cards.get(this.target.id)?.querySelector('form');
    if (!form || !form.querySelector('input:checked')) return false;
    event.preventDefault();
    form.requestSubmit();
    return true;
  }

  /** A key while nothing that takes text has the focus. */
  keyElsewhere(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    if (event.target === this.composer.text) return;
    clearTimeout(this.alone);
    const takesText = event.target.closest?.('input, textarea, select, dialog, [contenteditable]');
    if (!this.target || takesText || this.composer.text.value || event.key.length > 1 || this.isHasty()) return;
    if (!this.element.offsetParent || document.querySelector('dialog[open]')) return;
    this.arm(event.key);
  }

  /** Answers with this key unless another one follows. */
  arm(key) {
    const ask = this.target;
    const act = keyAnswer(this.asks, ask, key);
    if (!act) return;
    this.alone = setTimeout(() => {
      if (this.target?.id !== ask.id || !['', key].includes(this.composer.text.value)) return;
      this.composer.clear();
      act();
      this.draw();
    }, ALONE_MS);
  }

  /** Takes the draft as an answer. Returns whether it is one. */
  take(text) {
    clearTimeout(this.alone);
    const ask = this.target;
    if (this.isOther || !(ask || this.sending)) return false;
    if (!this.sending) this.send(ask, text); // else the same Enter twice
    return true;
  }

  async send(ask, text) {
    this.sending = ask.id;
    const typed = this.composer.text.value;
    const answer = isPermission(ask) ? answerOf(ask, text) : textsOf(ask, text);
    let refusal = '';
    const done = await this.asks.reply(ask, answer, (error) => (refusal = error.message));
    this.sending = null;
    if (done && this.composer.text.value === typed) this.composer.clear();
    if (refusal) this.keep(refusal);
    else this.draw();
  }

  sendAsPrompt() {
    clearTimeout(this.alone);
    this.note = '';
    this.composer.submit({ asPrompt: true });
    this.composer.focus();
    this.draw();
  }
}

/** What a single key does with a request, or null. */
export function keyAnswer(asks, ask, key) {
  if (!isPermission(ask)) return choiceKey(asks, ask, key);
  const word = key.length === 1 && wordOf(ask, key);
  return word ? () => asks.reply(ask, answerOf(ask, key)) : null;
}

function choiceKey(asks, ask, key) {
  const choice = /^[1-9]$/.test(key) && ask.choices[Number(key) - 1];
  if (!choice) return null;
  if (!ask.multiple) return () => asks.reply(ask, [choice]);
  return () => asks.cards.get(ask.id)?.querySelectorAll('input[type=checkbox]')[Number(key) - 1]?.click();
}

/** The answer that a short word stands for, if this call takes it. */
function wordOf(ask, text) {
  const said = text.toLowerCase().replace(/[.!]$/, '');
  const word = Object.keys(WORDS).find((each) => WORDS[each].includes(said));
  if (ask.danger && said.length === 1 && word !== 'deny') return undefined; // a slip must not allow it
  return LASTING.includes(word) && !hasGrant(ask) ? undefined : word;
}

function answerOf(ask, text) {
  const word = wordOf(ask, text);
  if (!word) return { answer: 'deny', reason: text };
  return LASTING.includes(word) ? { answer: word, wide: isOnlyWide(ask) } : { answer: word };
}

/** The answers in a text: numbers stand for choices, anything else is the answer itself. */
function textsOf(ask, text) {
  const numbers = ask.multiple ? text.split(',').map((piece) => piece.trim()) : [text];
  const choices = numbers.map((number) => (/^[1-9][0-9]?$/.test(number) ? ask.choices[Number(number) - 1] : undefined));
  return choices.every((choice) => choice !== undefined) ? [...new Set(choices)] : [text];
}

function touchHint(ask) {
  if (isPermission(ask)) return 'Choose an answer, or type what to do instead.';
  return ask.choices.length ? 'Choose an answer, or type your own.' : 'Type your answer.';
}

/** How a request is answered from the empty prompt. */
function promptHint(ask) {
  if (!isPermission(ask)) return keyHint(ask, 'type your answer');
  const more = hasGrant(ask) ? ' For a lasting answer, press s (this session) or a (always) and Enter.' : '';
  return `Press y to allow once, d to deny; or type what to do instead.${more}`;
}

/** How single keys answer a request, with what can be done instead. */
export function keyHint(ask, instead = '') {
  const or = instead && `; or ${instead}`;
  if (isPermission(ask)) {
    if (ask.danger) return `To allow this once, type yes and press Enter. Press d to deny${or}.`;
    const more = hasGrant(ask) ? ', s to allow for this session, a to always allow' : '';
    return `Press y to allow once${more}, d to deny${or}.`;
  }
  const count = Math.min(ask.choices.length, 9);
  if (!count) return instead && 'Type your answer and press Enter.';
  const keys = count === 1 ? '1' : `1–${count}`;
  return ask.multiple ? `Press ${keys} to mark choices and Enter to send them${or}.` : `Press ${keys} to choose${or}.`;
}
