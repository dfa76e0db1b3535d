// Summarizes a tool call in one line. The model wrote the input: it may be anything, and incomplete.

import { oneLine, plain } from './format.js';

export function parsed(input) {
  try {
    const value = JSON.parse(input);
    return value && typeof value === 'object' && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/** How the tool wants its calls to be drawn; a call without traits is drawn like any. */
export function drawnAs(part) {
  return part.traits?.draw ?? 'call';
}

// For tools that do not say which arguments tell most.
const KEYS = ['command', 'path', 'pattern', 'query', 'url', 'question', 'text', 'prompt', 'job_id', 'symbol', 'name'];

/** The most telling argument. */
export function summary(part) {
  const input = parsed(part.input);
  const named = (key) => (typeof input[key] === 'string' ? input[key] : '');
  if (drawnAs(part) === 'plan' && Array.isArray(input.items)) {
    if (input.items.every((item) => typeof item === 'string')) return `${input.items.length} steps`;
    const done = input.items.filter((item) => item?.state === 'completed').length;
    return `${done} of ${input.items.length} done`;
  }
  const told = heading(part.traits ?? {}, named);
  if (told) return plain(oneLine(told, 160));
  const key = KEYS.find(named);
  if (key) return plain(oneLine(named(key), 160));
  return Object.keys(input).length ? plain(oneLine(asText(input), 160)) : '';
}

/** What the tool says tells most: a file, or what is looked for and where. */
function heading({ heading: keys = [], path = '', lists = 'nothing' }, named) {
  const place = keys.includes(path) ? named(path) : '';
  const lead = named(keys.find((key) => key !== path && named(key)));
  if (lists === 'nothing' || !lead) return place || lead;
  return place && place !== '.' ? `${lead} in ${place}` : lead;
}

/** The file that a call reads or changes; nothing for a call that lists several. */
export function fileOf(part) {
  const { path = '', lists = 'nothing' } = part.traits ?? {};
  const value = path && lists === 'nothing' ? parsed(part.input)[path] : null;
  return typeof value === 'string' && value ? value : null;
}

/** Any value as text. Some are nested too deeply for JSON. */
export function asText(value) {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '…';
  }
}

/** The unified diff in the result of an edit, and the text before and after it. */
export function splitDiff(content) {
  const lines = content.split('\n');
  const start = lines.findIndex((line, index) => line.startsWith('--- ') && lines[index + 1]?.startsWith('+++ '));
  if (start < 0) return null;
  let end = start + 2;
  while (end < lines.length && /^(?:[ +\-\\@]|diff |--- |\+\+\+ )/.test(lines[end])) end += 1;
  return {
    before: lines.slice(0, start).join('\n').trim(),
    diff: lines.slice(start, end).join('\n'),
    after: lines.slice(end).join('\n').trim(),
  };
}
