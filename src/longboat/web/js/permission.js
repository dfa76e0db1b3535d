// The card of a permission request: the call, why it needs approval, what each answer allows, and the answers.

import { Diff } from './diff.js';
import { h } from './dom.js';
import { plain } from './format.js';
import { splitDiff } from './toolinput.js';

const NEEDS_APPROVAL = 'needs approval'; // as the server says it of a part

/** The content of the card. `send(body)` answers. */
export function permissionCard(ask, send) {
  const wide = h('input', { type: 'checkbox' });
  wide.checked = wide.disabled = isOnlyWide(ask);
  const rules = h('code');
  const showRules = () => (rules.textContent = toldRules(ask, wide.checked ? ask.wide : ask.grant));
  wide.addEventListener('change', showRules);
  showRules();
  const buttons = answers(ask, {
    once: () => send({ answer: 'once' }),
    session: () => send({ answer: 'session', wide: wide.checked }),
    always: () => send({ answer: 'always', wide: wide.checked }),
    deny: () => form.open(),
  });
  const form = reasonForm(ask.id, (reason) => send({ answer: 'deny', reason }), buttons);
  const command = ask.parts?.length > 0;
  return {
    kind: ask.danger ? 'permission dangerous' : 'permission',
    title: command ? 'Allow this command?' : plain(ask.title || `${ask.tool}: ${ask.argument}`),
    content: [
      command ? commandText(ask) : detail(ask),
      ask.danger &&
        h('p', { class: 'why-danger' }, h('strong', {}, h('span', { 'aria-hidden': 'true' }, '⚠ '), 'Dangerous. '), plain(ask.danger)),
      (command ? !ask.danger && hasReason(ask) : ask.why) && h('p', { class: 'quiet' }, plain(ask.why)),
      command && partsOf(ask),
      grant(ask, rules, wide),
      ask.danger && h('p', { class: 'how' }, 'To allow this once, type yes and press Enter, or use a button. No single key allows it.'),
      buttons,
      form.element,
    ],
  };
}

/** Whether there is more to say of a command than that no rule allows it. Then its sentence would only repeat it. */
const hasReason = (ask) => ask.parts.some(({ why }) => why && why !== NEEDS_APPROVAL);

export const hasGrant = (ask) => ask.grant.length + ask.wide.length > 0;
/** Whether no rule can name exactly this call. */
export const isOnlyWide = (ask) => !ask.grant.length && ask.wide.length > 0;

/** The rules for people: the text of the command is not repeated. */
function toldRules(ask, rules) {
  const exact = `${ask.tool}(= ${ask.argument.trim()})`;
  return plain(rules.map((rule) => (rule === exact ? 'exactly this command' : rule)).join('  '));
}

/** What “Allow for this session” and “Always allow” cover, and which file the latter changes. */
function grant(ask, rules, wide) {
  if (!hasGrant(ask)) return h('p', { class: 'rules' }, 'This call can only be allowed once.');
  const many = ask.grant.length > 1;
  return [
    h(
      'p',
      { class: 'rules' },
      '“Allow for this session” and “Always allow” will allow: ',
      rules,
      '. “Always allow” adds ',
      many ? 'these rules' : 'this rule',
      ' to ',
      h('code', {}, plain(ask.rules_file || 'longboat.json')),
      '.',
    ),
    ask.wide.length > 0 &&
      h(
        'p',
        { class: 'rules' },
        h('label', { class: 'wider' }, wide, ' Use the wider rules: ', h('code', {}, plain(ask.wide.join('  ')))),
      ),
  ];
}

/** For a dangerous call, the answer that does no harm comes first, and no answer looks like the one to choose. */
function answers(ask, on) {
  const button = (label, key, kind, run) =>
    h(
      'button',
      { type: 'button', class: kind, ...(key && { 'aria-keyshortcuts': key }), onclick: run },
      label,
      key ? h('kbd', { 'aria-hidden': 'true', class: 'sa'.includes(key) ? 'lasting' : null }, key) : null,
    );
  const grants = hasGrant(ask);
  const allows = (key) => (ask.danger ? '' : key); // no single key allows a dangerous call
  const risky = ask.danger ? 'danger' : '';
  const deny = button('Deny', 'd', ask.danger ? 'deny' : 'danger deny', on.deny);
  deny.setAttribute('aria-expanded', 'false');
  return h(
    'div',
    { class: 'buttons' },
    ask.danger && deny,
    button('Allow once', allows('y'), ask.danger ? 'danger' : 'primary', on.once),
    grants && button('Allow for this session', allows('s'), risky, on.session),
    grants && button('Always allow', allows('a'), risky, on.always),
    !ask.danger && deny,
  );
}

function detail(ask) {
  const change = ask.detail && splitDiff(ask.detail);
  if (change) return new Diff(change.diff, ask.argument).element;
  const beyond = beyondTitle(ask);
  return beyond && h('pre', { class: 'command', tabindex: '0', role: 'group', 'aria-label': 'Requested action' }, plain(beyond));
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

/** The command, once, with its risky parts marked. What the detail says beyond it follows. */
function commandText(ask) {
  const notes = ask.detail.startsWith(ask.argument) ? ask.detail.slice(ask.argument.length).trim() : '';
  return [
    h('pre', { class: 'command', tabindex: '0', role: 'group', 'aria-label': 'Command' }, pieces(ask)),
    notes && h('p', { class: 'quiet' }, plain(notes)),
  ];
}

/** The text of the command in pieces. Places count code points, as the server does. */
function pieces(ask) {
  const signs = Array.from(ask.argument);
  const placed = ask.parts.filter((part) => Number.isInteger(part.start) && (part.danger || part.why));
  const isWhole = (part) => part.start === 0 && part.end === signs.length;
  const marked = placed.filter((part) => part.danger || !isWhole(part)); // marking all of it would say nothing
  const edges = marked.flatMap((part) => [part.start, part.end]);
  const cuts = [...new Set([0, ...edges, signs.length])].sort((one, other) => one - other);
  const kindAt = (at) => {
    const here = marked.filter((part) => part.start <= at && at < part.end);
    return here.some((part) => part.danger) ? 'risky' : here.length ? 'asked' : '';
  };
  const made = [];
  cuts.slice(0, -1).forEach((from, index) => {
    const piece = { kind: kindAt(from), text: signs.slice(from, cuts[index + 1]).join('') };
    if (made.at(-1)?.kind === piece.kind) made.at(-1).text += piece.text;
    else made.push(piece);
  });
  return made.map(({ kind, text }) => (kind ? h('mark', { class: kind }, plain(text)) : plain(text)));
}

/** Each part of a longer command with the reason, or with what allows it. Closed: the marks say which parts matter. */
function partsOf(ask) {
  if (ask.parts.length < 2) return null;
  return h(
    'details',
    { class: 'parts' },
    h('summary', {}, 'Why each part needs approval'),
    h(
      'ul',
      { 'aria-label': 'Parts of the command' },
      ask.parts.map(part),
      ask.more_parts > 0 && h('li', { class: 'quiet' }, `… and ${ask.more_parts} more`),
    ),
  );
}

function part({ text, why, rule, danger }) {
  const note = why || (rule ? `allowed by ${rule}` : 'needs no approval');
  const told = danger ? (why?.endsWith('.') ? `${danger} ${why}` : danger) : note;
  return h(
    'li',
    { class: why ? 'asked' : 'quiet' },
    h('span', { 'aria-hidden': 'true' }, danger ? '⚠ ' : why ? '? ' : '✓ '),
    text && h('code', {}, plain(text)),
    text && ' ',
    plain(told),
  );
}

function reasonForm(id, deny, buttons) {
  const input = h('input', { id: `reason-${id}`, maxlength: '10000', autocomplete: 'off' });
  const toggle = (open) => {
    element.hidden = !open;
    buttons.hidden = open;
    (open ? input : buttons.querySelector('.deny')).focus();
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
    h('label', { for: input.id }, 'What should the agent do instead? (optional)'),
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
