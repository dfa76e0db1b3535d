// What a run sent to models: every request with its numbers, and its body as text. The body holds what others wrote:
// nothing of it becomes markup.

import { toast } from './a11y.js';
import { copied } from './copying.js';
import { h, icon, replace, withCode } from './dom.js';
import { bytes, exactly, hour, oneLine, plain, plural, seconds, tokens } from './format.js';

const MOST_SHOWN = 100_000; // characters of one piece
const PARTS = {
  system: 'System prompt',
  tools: 'Tools',
  user: 'Prompts',
  assistant: 'Answers and tool calls',
  tool: 'Tool results',
  settings: 'Settings',
};
const MODES = { native: '', steps: ', tool calls as steps in JSON', text: ', tool calls as text' };

/** Shows the requests of a run in a dialog. */
export async function showSent(workspace, run_id) {
  const list = h('div', { class: 'sent-list', tabindex: '0', role: 'group', 'aria-label': 'Requests' }, 'Loading…');
  const facts = h('p', { class: 'quiet' });
  const close = h('button', { type: 'button', class: 'primary', onclick: () => dialog.close() }, 'Close');
  const dialog = h(
    'dialog',
    { class: 'dialog preview sent', 'aria-labelledby': 'sent-title' },
    h('h2', { id: 'sent-title' }, 'What was sent to the model'),
    facts,
    list,
    h('div', { class: 'buttons' }, close),
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
  try {
    const { items } = await workspace.sentRequests(run_id);
    facts.textContent = items.length
      ? `${plural(items.length, 'request')} of this run, retries included. Without keys and headers; token counts by part are estimates.`
      : 'This run sent nothing to a model, or it is no longer stored.';
    replace(list, items.map((item) => request(item, () => workspace.sentRequest(run_id, item.number))));
    list.hidden = !items.length;
  } catch (error) {
    list.textContent = plain(error.message);
  }
}

/** One request. Its body is loaded when it is opened; `load()` asks for it. */
function request(item, load) {
  const body = h('div', { class: 'sent-body' });
  const open = async () => {
    if (!box.open || body.childNodes.length) return;
    replace(body, parts(item), h('p', { class: 'quiet' }, 'Loading…'));
    try {
      const whole = await load();
      replace(body, parts(item), content(item, whole.body));
    } catch (error) {
      replace(body, h('p', { class: 'wrong', role: 'alert' }, plain(error.message)));
      box.addEventListener('toggle', () => replace(body), { once: true }); // opened again, it tries again
    }
  };
  const box = h(
    'details',
    { class: 'sent-request', ontoggle: open },
    h(
      'summary',
      {},
      icon('right'),
      h('strong', {}, `Request ${item.number}`),
      h('span', {}, plain(item.model)),
      h('time', { datetime: item.sent_at, title: exactly(item.sent_at) }, hour(item.sent_at)),
      h('span', { class: 'quiet' }, numbers(item)),
      item.error && h('span', { class: 'wrong' }, oneLine(plain(item.error), 200)),
    ),
    body,
  );
  return box;
}

function numbers({ messages, new_messages, usage, cached_tokens, seconds: took, stop_reason, summary, error }) {
  return [
    summary && 'summary',
    `${plural(messages, 'message')} (${new_messages} new)`,
    usage && `${tokens(usage.input_tokens)} tokens in (${tokens(cached_tokens ?? 0)} from the cache)`,
    usage && `${tokens(usage.output_tokens)} out`,
    took !== null && took !== undefined && seconds(took),
    error ? 'failed' : plain(stop_reason ?? 'no answer yet').replaceAll('_', ' '),
  ]
    .filter(Boolean)
    .join(' · ');
}

/** How much each part takes up. */
function parts(item) {
  const cell = (part) => (part.tokens === null || part.tokens === undefined ? '–' : `about ${tokens(part.tokens)}`);
  const head = ['Part', 'Tokens', 'Size'].map((text) => h('th', { scope: 'col' }, text));
  return [
    h(
      'table',
      { class: 'sent-parts' },
      h('caption', { class: 'hidden' }, `Parts of request ${item.number}`),
      h('thead', {}, h('tr', {}, head)),
      h(
        'tbody',
        {},
        item.parts.map((part) =>
          h(
            'tr',
            {},
            h('th', { scope: 'row' }, PARTS[part.name] ?? plain(part.name)),
            h('td', {}, cell(part)),
            h('td', {}, bytes(part.size)),
          ),
        ),
      ),
    ),
    item.error && h('p', { class: 'wrong' }, withCode(item.error)),
    !item.exact &&
      h('p', { class: 'quiet' }, 'As Longboat gave it to the provider’s library, which writes it in the provider’s own format.'),
  ];
}

/** The body in pieces, in the order in which the model reads it. What is new in this request is open. */
function content(item, body) {
  const { system, tools, messages, ...settings } = body;
  const said = Array.isArray(messages) ? messages : [];
  const old = said.length - item.new_messages;
  const copy = async () => {
    if (await copied(JSON.stringify(body, null, 2))) toast('Copied.');
  };
  return [
    h('p', {}, h('button', { type: 'button', class: 'small', onclick: copy }, 'Copy as JSON')),
    system !== undefined && piece('system', text(system)),
    Array.isArray(tools) && piece(`tools (${tools.length})`, tools.map((tool) => json(tool)).join('\n\n')),
    said.map((message, at) => piece(`${at + 1}. ${plain(String(message?.role ?? ''))}`, wordsOf(message), at >= old)),
    piece(`settings${MODES[item.tool_mode] ?? ''}`, json(settings)),
  ];
}

function piece(title, whole, open = false) {
  const shown = plain(whole.slice(0, MOST_SHOWN));
  const rest = whole.length - MOST_SHOWN;
  return h(
    'details',
    { class: 'sent-piece', open },
    h('summary', {}, icon('right'), title, h('span', { class: 'quiet' }, oneLine(shown, 100))),
    h('pre', { class: 'output', tabindex: '0', role: 'group', 'aria-label': title }, shown),
    rest > 0 && h('p', { class: 'quiet' }, `${plural(rest, 'more character')}. “Copy as JSON” has everything.`),
  );
}

const json = (value) => JSON.stringify(value, null, 2) ?? '';

/** Text as it is, anything else as JSON. */
function text(value) {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return json(value);
  return value.map((part) => (typeof part?.text === 'string' ? part.text : text(part))).join('\n');
}

function wordsOf(message) {
  if (message === null || typeof message !== 'object') return text(message);
  const { role, content: said, parts: given, ...rest } = message;
  const more = Object.entries(rest).filter(([, value]) => value !== null);
  return [
    ...[said, given].filter((value) => value !== null && value !== undefined && value !== '').map(text),
    ...more.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : json(value)}`),
  ].join('\n');
}
