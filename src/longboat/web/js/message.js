// One message: author, time and parts. A part that only grew is extended, not drawn again.

import { copied, markCopied, textOf } from './copying.js';
import { h, icon, iconButton, replace, withCode } from './dom.js';
import { bytes, exactly, plain, when } from './format.js';
import { Tail } from './livetext.js';
import { menu } from './menu.js';
import { person } from './people.js';
import { Prose } from './prose.js';
import { rendered } from './rendering.js';
import { ToolCard } from './toolcard.js';

const PICTURE = /^image\/(?:png|jpeg|gif|webp)$/;

export class MessageView {
  constructor(message, story) {
    this.story = story;
    this.views = [];
    this.head = h('header', { class: 'message-head' });
    this.body = h('div', { class: 'message-body' });
    this.element = h(
      'article',
      { class: `message ${message.role}`, data: { id: message.id }, tabindex: story.actions && '-1' },
      this.head,
      this.body,
    );
    if (story.actions) this.addTools();
    this.set(message);
  }

  /** The buttons of a message. The keyboard has keys for them, so they are no tab stops. */
  addTools() {
    this.copy = iconButton('copy', 'Copy', () => this.copyText(), { tabindex: '-1', hidden: true });
    const actions = menu('Message actions', () => this.story.actions(this.message), { isTabStop: false });
    this.element.append(h('div', { class: 'message-tools' }, this.copy, actions));
  }

  async copyText() {
    if (await copied(textOf(this.message))) markCopied(this.copy);
  }

  set(message) {
    this.message = message;
    this.element.classList.toggle('summary', Boolean(message.summary));
    this.element.classList.toggle('growing', this.isGrowing());
    this.drawHead();
    if (this.copy) this.copy.hidden = !message.parts.some((part) => part.type === 'text' && part.text);
    message.parts.forEach((part, index) => this.setPart(part, index));
    while (this.views.length > message.parts.length) this.views.pop().element.remove();
  }

  isGrowing() {
    return this.message.role === 'assistant' && !this.message.finished_at && !this.story.isOver(this.message);
  }

  /** A part that cannot be drawn must not break the others. */
  setPart(part, index) {
    try {
      this.drawPart(part, index);
    } catch (error) {
      console.error(error);
      const made = unshown(part);
      if (this.views[index]) this.views[index].element.replaceWith(made.element);
      else this.body.append(made.element);
      this.views[index] = made;
    }
  }

  drawPart(part, index) {
    let view = this.views[index];
    if (!view || view.type !== part.type) {
      const made = PARTS[part.type]?.(this.story, this.message) ?? hidden();
      made.type = part.type;
      if (view) view.element.replaceWith(made.element);
      else this.body.append(made.element);
      this.views[index] = view = made;
    }
    view.set(part, this.message, !this.isGrowing() || index < this.message.parts.length - 1);
  }

  /** After a delta: redraws only that part. */
  extend(index) {
    this.setPart(this.message.parts[index], index);
  }

  /** After new results or the end of the run. */
  refresh() {
    this.set(this.message);
  }

  drawHead() {
    const { role, model, created_at } = this.message;
    const who = this.story.author(this.message);
    const time = h('time', { datetime: created_at, title: exactly(created_at) }, when(created_at));
    const key = `${who}|${model}|${this.message.summary}`;
    if (this.headKey === key) return;
    this.headKey = key;
    this.element.setAttribute('aria-label', role === 'user' ? `Prompt from ${who}` : `Answer from ${who}`);
    this.head.replaceChildren(
      h('span', { class: 'who' }, this.message.summary ? 'Summary' : who),
      time,
    );
  }
}

/** Has no type, so that the next change tries to draw the part again. */
const unshown = (part) => ({
  element: h('p', { class: 'finish' }, `This page cannot show a part of type ${part.type}. Reload it to update.`),
  set() {},
});

const hidden = () => ({ element: h('span', { hidden: true }), set() {} });

function userText() {
  const element = h('div', { class: 'said' });
  return {
    element,
    set(part) {
      element.textContent = part.text;
    },
  };
}

function prose() {
  const view = new Prose();
  return { element: view.element, set: (part, _, finished) => view.set(part.text, finished) };
}

function reasoning() {
  const words = new Tail('thoughts');
  const label = h('span', {});
  const element = h('details', { class: 'reasoning' }, h('summary', {}, icon('right'), label), words.element);
  return {
    element,
    set(part, _, finished) {
      label.textContent = finished ? 'Reasoning' : 'Reasoning…';
      element.hidden = !part.text && finished;
      words.show(part.text, 0);
    },
  };
}

function toolCall(story) {
  const card = new ToolCard(story);
  return { element: card.element, set: (part, message) => card.set(part, message), card };
}

function file() {
  const element = h('div', { class: 'attached' });
  return {
    element,
    set(part) {
      const picture = part.data && PICTURE.test(part.media_type);
      element.replaceChildren(
        picture
          ? h('img', { class: 'picture', src: `data:${part.media_type};base64,${part.data}`, alt: plain(part.name) })
          : textFile(part),
      );
    },
  };
}

function textFile(part) {
  const size = part.text !== null ? (part.text?.length ?? 0) : ((part.data?.length ?? 0) * 3) / 4;
  const name = [icon('file'), plain(part.name), h('span', { class: 'quiet' }, bytes(Math.round(size)))];
  if (!part.text) return h('span', { class: 'chip' }, name);
  const box = h('div', { class: 'code-box' });
  const draw = () => {
    if (box.childNodes.length) return;
    box.append(h('pre', { class: 'plain' }, plain(part.text.slice(0, 100_000))));
    rendered('code', part.text.slice(0, 100_000), { path: part.name.slice(-500) }).then((made) =>
      box.replaceChildren(made),
    );
  };
  return h('details', { class: 'attachment', ontoggle: draw }, h('summary', {}, icon('right'), name), box);
}

const ENDS = {
  canceled: 'Canceled',
  error: 'Failed',
  interrupted: 'Interrupted',
  max_tokens: 'Cut off: the answer reached the model’s length limit',
  content_filter: 'Stopped by the provider’s content filter',
  limit: 'Stopped at a limit',
};

/** Failures that another key or model fixes: the codes of the server's errors. */
const NO_MODEL = new Set(['model_not_configured', 'model_not_found', 'auth']);

function finish(story) {
  const element = h('p', { class: 'finish' });
  return {
    element,
    set(part, message) {
      element.hidden = part.reason === 'end_turn';
      element.dataset.reason = part.reason;
      const [label, detail] = endOf(part, story);
      const words = h('span', {}, h('strong', {}, plain(label)), withCode(detail));
      const button = (name, run) => run && h('button', { type: 'button', class: 'small', onclick: run }, name);
      const hadFocus = element.contains(document.activeElement);
      replace(
        element,
        words,
        button('Connect a model', NO_MODEL.has(part.code) && story.connect),
        button('Retry', story.retry?.(message)),
      );
      if (hadFocus) element.querySelector('button')?.focus();
    },
  };
}

/** One sentence in two pieces: how it ended, and who or what ended it. */
function endOf({ reason, title, detail }, story) {
  const label = ENDS[reason] ?? reason;
  if (reason === 'canceled') {
    const who = detail.replace(/^by /, '');
    return [label, who && ` by ${story.isMe(who) ? 'you' : person(who)}`];
  }
  const after = detail ? `: ${detail}` : '';
  if (reason === 'error') return [title || label, after]; // a title already says that it failed
  return [label, title && title !== label ? `: ${title}${after}` : after];
}

const PARTS = {
  text: (story, message) => (message.role === 'user' ? userText() : prose()),
  reasoning,
  tool_call: toolCall,
  file,
  finish,
};
