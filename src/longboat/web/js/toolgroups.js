// Groups of calls that only look: one line such as “Read 5 files” instead of a card for each.

import { h, icon } from './dom.js';
import { base, plain, plural } from './format.js';
import { drawnAs, summary } from './toolinput.js';

const LEAST = 3;

/** A line in front of its cards. They are hidden until someone opens it. */
class Group {
  constructor(isOpen) {
    this.isOpen = isOpen;
    this.label = h('span', { class: 'tool-name' });
    this.about = h('span', { class: 'tool-about' });
    this.element = h(
      'button',
      { type: 'button', class: 'tool-group', onclick: () => this.set(!this.isOpen) },
      icon('right'),
      this.label,
      this.about,
    );
    this.members = [];
  }

  put(members) {
    this.leave(members);
    this.members = members;
    members.forEach(({ card }) => (card.group = this));
    const [{ card }] = members;
    if (card.element.previousSibling !== this.element) card.element.before(this.element);
    const calls = members.map((member) => member.card.part);
    this.label.textContent = labelOf(calls);
    this.about.textContent = plain([...new Set(calls.map((part) => base(summary(part))))].join(', ')).slice(0, 300);
    this.set(this.isOpen);
  }

  set(isOpen) {
    this.isOpen = isOpen;
    this.element.setAttribute('aria-expanded', String(isOpen));
    for (const { card, view, between } of this.members) {
      card.element.hidden = !isOpen;
      between.forEach((element) => element.classList.toggle('in-group', !isOpen));
      const isHead = view === this.members[0].view;
      view.element.classList.toggle('folded', !isOpen && !isHead && isOnlyCalls(view));
    }
  }

  /** Shows the cards that are no longer members. */
  leave(members = []) {
    const kept = new Set(members.map(({ card }) => card));
    for (const { card, view, between } of this.members) {
      if (kept.has(card)) continue;
      card.group = null;
      card.element.hidden = false;
      between.forEach((element) => element.classList.remove('in-group'));
      view.element.classList.remove('folded');
    }
    if (!members.length) this.element.remove();
  }
}

export class ToolGroups {
  constructor(story) {
    this.story = story;
    this.groups = new Map(); // first call → group
  }

  /** Groups the calls of these messages, which follow each other. */
  arrange(views) {
    const found = runsOf(views).filter((members) => members.length >= LEAST);
    const wereOpen = found.map((members) => members.find(({ card }) => card.group)?.card.group.isOpen);
    const ids = new Set(found.map(([{ card }]) => card.part.id));
    for (const [id, group] of this.groups) {
      if (ids.has(id)) continue;
      group.leave();
      this.groups.delete(id);
    }
    found.forEach((members, index) => {
      const { id } = members[0].card.part;
      const group = this.groups.get(id) ?? new Group(wereOpen[index] ?? this.story.expanded ?? false);
      this.groups.set(id, group);
      group.put(members);
    });
  }

  expand(isOpen) {
    for (const group of this.groups.values()) group.set(isOpen);
  }
}

/** The runs of calls that only look, with nothing but thoughts between them. */
function runsOf(views) {
  const runs = [];
  let run = [];
  let between = [];
  const end = () => {
    if (run.length) runs.push(run);
    run = [];
    between = [];
  };
  for (const view of views) {
    if (view.message.role === 'user') end();
    view.message.parts.forEach((part, index) => {
      const shown = view.views[index];
      if (part.type === 'tool_call' && looks(shown.card)) {
        run.push({ card: shown.card, view, between: run.length ? between : [] });
        between = [];
      } else if (part.type === 'reasoning') between.push(shown.element);
      else if (!isNothing(part)) end();
    });
  }
  end();
  return runs;
}

/** A call that is done and only looked. One that someone opened before it was in a group stays outside. */
function looks(card) {
  if (!card || (card.touched && card.element.open && !card.group)) return false;
  const { traits } = card.part;
  const isQuiet = ['file', 'quiet'].includes(drawnAs(card.part));
  return isQuiet && traits?.effect === 'reads' && card.status() === 'done';
}

const isNothing = (part) =>
  (part.type === 'text' && !part.text.trim()) || (part.type === 'finish' && part.reason === 'end_turn');

const isOnlyCalls = (view) =>
  view.message.parts.every(
    (part, index) => isNothing(part) || part.type === 'reasoning' || Boolean(view.views[index].card?.group),
  );

function labelOf(calls) {
  const files = calls.filter((part) => drawnAs(part) === 'file').length;
  const rest = calls.length - files;
  const searches = rest && (rest === 1 ? 'searched once' : `searched ${rest} times`);
  const words = [files && `read ${plural(files, 'file')}`, searches].filter(Boolean).join(', ');
  return words[0].toUpperCase() + words.slice(1);
}
