// A tool call: its input, its output so far, how it ended. Sub-agents are shown inside the call that started them.

import { Diff } from './diff.js';
import { h, icon, replace } from './dom.js';
import { oneLine, plain, plural, seconds } from './format.js';
import { person } from './people.js';
import { rendered } from './rendering.js';
import { planList } from './todos.js';
import { asText, drawnAs, fileOf, parsed, splitDiff, summary } from './toolinput.js';

const MOST_LINES = 24;
const MOST_SHOWN = 100_000;
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

export class ToolCard {
  constructor(story) {
    this.story = story;
    this.state = h('span', { class: 'tool-state' });
    this.name = h('span', { class: 'tool-name' });
    this.about = h('span', { class: 'tool-about', onclick: (event) => this.openFile(event) });
    this.said = h('span', { class: 'tool-said' });
    this.time = h('span', { class: 'tool-time' });
    this.body = h('div', { class: 'tool-body' });
    this.element = h(
      'details',
      { class: 'tool', ontoggle: () => this.toggled() },
      h('summary', {}, icon('right'), this.state, this.name, this.about, this.said, this.time),
      this.body,
    );
    this.drawn = '';
  }

  /** Shows the current state of the call. Its result comes from the history. */
  set(part, message) {
    this.part = part;
    this.message = message;
    const found = this.story.history.results.get(part.id);
    this.result = found?.part ?? null;
    const status = this.status();
    this.element.dataset.status = status;
    this.state.textContent = { running: '●', done: '✓', failed: '✕', waiting: '○', asked: '?', lost: '–' }[status];
    this.state.setAttribute('role', 'img');
    this.state.setAttribute('aria-label', LABELS[status]);
    this.name.textContent = plain(part.name);
    this.about.textContent = summary(part);
    this.about.classList.toggle('opens', Boolean(fileOf(part)));
    this.drawSaid();
    this.time.textContent = this.took();
    if (!this.touched) this.element.open = this.opens(status);
    if (this.element.open) this.draw();
  }

  status() {
    if (this.result?.finished) return this.result.is_error ? 'failed' : 'done';
    if (this.story.isOver(this.message)) return 'lost';
    if (this.story.isAsked(this.part.id, this.message.run_id)) return 'asked';
    return this.result ? 'running' : 'waiting';
  }

  /** Who allowed or denied it, or answered its question. */
  drawSaid() {
    const answers = this.result?.answers ?? [];
    const words = answers.map((answer) => saidOf(answer, this.story.isMe(answer.answered_by), this.result.content, this.part));
    this.said.textContent = [...new Set(words)].join(', ');
    this.said.title = answers.map((answer) => plain(person(answer.answered_by ?? ''))).join(', ');
    this.said.hidden = !words.length;
  }

  /** How long the tool ran, and how long the call waited for a person before. */
  took() {
    if (!this.result?.finished) return '';
    const { ran_s, waited_s } = this.result;
    const ran = ran_s >= 0.1 ? seconds(ran_s) : '';
    return [ran, waited_s >= 1 && `waited ${seconds(waited_s)} for an answer`].filter(Boolean).join(', ');
  }

  /** Opens automatically: running calls, file changes, failures, and commands that a person ran. */
  opens(status) {
    if (this.story.expanded !== undefined) return this.story.expanded;
    if (status === 'running' || !this.message.model) return true;
    return drawnAs(this.part) === 'diff' || (status === 'failed' && !this.story.compact);
  }

  toggled() {
    if (this.part && this.element.open !== this.opens(this.status())) this.touched = true;
    if (this.element.open) this.draw();
  }

  draw() {
    const key = `${this.status()}/${this.part.input.length}/${this.result?.content.length}/${this.result?.finished}`;
    if (this.drawn === key) return;
    this.drawn = key;
    const isAsked = this.status() === 'asked'; // it has not run yet, so there is no output to wait for
    if (this.result && !this.result.finished && this.output && !isAsked) {
      this.output.set(this.result.content); // live output: the same box grows
      return;
    }
    this.output = null;
    try {
      replace(this.body, this.fileButton(), this.input(), this.child(), this.outcome());
    } catch (error) {
      console.error(error);
      this.body.textContent = plain(this.result?.content.slice(-MOST_SHOWN) ?? '');
    }
  }

  /** A click on the path opens the file and leaves the card as it is. */
  openFile(event) {
    const path = fileOf(this.part);
    if (!path) return;
    event.preventDefault();
    this.story.openFile(path);
  }

  /** The same by keyboard. */
  fileButton() {
    const path = fileOf(this.part);
    return (
      path &&
      h(
        'button',
        { type: 'button', class: 'small open-file', title: plain(path), onclick: () => this.story.openFile(path) },
        'Open file',
      )
    );
  }

  input() {
    const { input, traits } = this.part;
    const values = parsed(input);
    const drawn = drawnAs(this.part);
    const command = drawn === 'command' ? values[traits.command] : null;
    if (typeof command === 'string') {
      return h(
        'pre',
        { class: 'command', tabindex: '0', role: 'group', 'aria-label': 'Command' },
        plain(command),
      );
    }
    if (['diff', 'file', 'sub_agent'].includes(drawn)) return null; // the heading or the outcome says it all
    if (drawn === 'plan' && Array.isArray(values.items))
      return [
        typeof values.summary === 'string' && markdown(plain(values.summary)),
        h('div', { class: 'todos' }, planList(values.items)),
      ];
    if (drawn === 'question' && typeof values.text === 'string') return this.question(values);
    const rest = Object.entries(values).filter(([, value]) => value !== null && value !== '');
    if (!rest.length) return input ? h('pre', { class: 'plain' }, plain(input)) : null;
    const shown = (value) => plain(asText(value));
    return h(
      'dl',
      { class: 'arguments' },
      rest.map(([key, value]) => [h('dt', {}, key), h('dd', {}, shown(value).slice(0, 2000))]),
    );
  }

  /** The question and its choices, with a mark on those that were chosen. */
  question({ text, choices }) {
    const chosen = new Set(this.result?.finished ? this.result.content.split('\n') : []);
    const offered = Array.isArray(choices) ? choices.map(asText) : [];
    return [
      h('p', { class: 'said' }, plain(text)),
      offered.length > 0 &&
        h(
          'ul',
          { class: 'offered', 'aria-label': 'Choices' },
          offered.map((choice) =>
            h('li', { class: chosen.has(choice) ? 'chosen' : null }, chosen.has(choice) ? '● ' : '○ ', plain(choice)),
          ),
        ),
    ];
  }

  child() {
    return drawnAs(this.part) === 'sub_agent' ? (this.story.subAgent?.(this.part.id) ?? null) : null;
  }

  outcome() {
    const result = this.result;
    if (!result) return null;
    const pictures = (result.images ?? []).filter((image) => PICTURES.has(image.media_type)).map(picture);
    return [this.text(result), pictures];
  }

  text(result) {
    if (!result.content) return result.finished || this.status() === 'asked' ? null : this.box('');
    const change = !result.is_error && drawnAs(this.part) === 'diff' ? splitDiff(result.content) : null;
    if (change) {
      const path = parsed(this.part.input)[this.part.traits.path] ?? '';
      return [
        change.before && h('p', { class: 'quiet' }, plain(change.before)),
        new Diff(change.diff, asText(path)).element,
        change.after && this.box(change.after),
      ];
    }
    const drawn = drawnAs(this.part);
    if (drawn === 'sub_agent' && result.finished && !result.is_error) return markdown(result.content);
    if (drawn === 'plan' && result.finished && !result.is_error && !this.isDeclined()) return null; // the plan says it all
    if (drawn === 'question' && result.finished && !result.is_error) return answerOf(result);
    return this.box(result.content, result.is_error);
  }

  /** Whether it proposed a plan that was not approved: then the result says what people want instead. */
  isDeclined() {
    return Boolean(this.part.traits?.proposes) && !this.result.answers?.some(({ answer }) => answer);
  }

  box(text, isError = false) {
    this.output = new Output(isError);
    this.output.set(text);
    return this.output.element;
  }
}

/** Who answered what. The result of a question is its answer. */
function saidOf({ answer, answered_by }, mine, result, part) {
  const who = mine ? 'you' : plain(person(answered_by ?? 'someone'));
  if (part.traits?.proposes) return `${answer ? 'approved' : 'not approved'} by ${who}`;
  if (!answer) return `answered by ${who}: “${oneLine(plain(result).replaceAll('\n', ', '), 120)}”`;
  return `${answer === 'deny' ? 'denied' : `allowed (${plain(answer)})`} by ${who}`;
}

const LABELS = {
  running: 'running',
  done: 'done',
  failed: 'failed',
  waiting: 'waiting',
  asked: 'needs an answer',
  lost: 'did not finish',
};

function picture(image) {
  return h('img', {
    class: 'picture',
    src: `data:${image.media_type};base64,${image.data}`,
    alt: 'Image in the result',
  });
}

const answerOf = (result) => h('p', { class: 'answer' }, h('strong', {}, 'Answer: '), h('span', {}, plain(result.content)));

/** What a sub-agent answered. Hidden while its transcript is open, which ends with it. */
function markdown(text) {
  const box = h('div', { class: 'prose sub-answer' }, h('div', { class: 'tail' }, text));
  rendered('markdown', text).then((made) => box.replaceChildren(made));
  return box;
}

/** Growing text: shows its end, and all of it on request. */
class Output {
  constructor(isError) {
    this.pre = h('pre', {
      class: isError ? 'output failed' : 'output',
      tabindex: '0',
      role: 'group',
      'aria-label': isError ? 'Error' : 'Output',
    });
    this.more = h('button', { type: 'button', class: 'small', hidden: true, onclick: () => this.toggle() });
    this.element = h('div', { class: 'output-box' }, this.more, this.pre);
    this.whole = false;
  }

  set(text) {
    this.text = plain(text.slice(-MOST_SHOWN)).replace(/\n$/, '');
    this.draw();
  }

  toggle() {
    this.whole = !this.whole;
    this.draw();
  }

  draw() {
    const lines = this.text.split('\n');
    const hidden = lines.length - MOST_LINES;
    this.more.hidden = hidden <= 3;
    this.more.textContent = this.whole ? 'Show less' : `Show ${plural(hidden, 'more line')}`;
    const { pre } = this;
    const isAtEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 8;
    pre.textContent = this.whole || hidden <= 3 ? this.text : lines.slice(hidden).join('\n');
    if (isAtEnd) requestAnimationFrame(() => (pre.scrollTop = pre.scrollHeight));
  }
}
