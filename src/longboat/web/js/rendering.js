// Markdown, code and diffs, rendered by the server: requested in batches and cached.

import { server, Unreachable } from './api.js';
import { withCopyButtons } from './copying.js';
import { h } from './dom.js';
import { fragment } from './trusted.js';

const MOST_ITEMS = 48;
const MOST_TEXT = 1_500_000;
const LONGEST = 400_000;
const MOST_KEPT = 400;
const AGAIN_MS = 2_000;
const EVERY_MS = 100; // between requests while text streams

const kept = new Map(); // key → html, least recently used first
let waiting = [];
let collecting = false;
let sentAt = -EVERY_MS;

/** A fragment of rendered HTML, or plain text if rendering failed. */
export async function rendered(kind, text, extra = {}) {
  if (text.length > LONGEST) return asText(text);
  const key = JSON.stringify([kind, extra, text]);
  if (kept.has(key)) {
    const html = kept.get(key);
    kept.delete(key);
    kept.set(key, html);
    return made(html);
  }
  try {
    const html = await new Promise((resolve, reject) => {
      waiting.push({ item: { kind, text, ...extra }, resolve, reject });
      soon();
    });
    kept.set(key, html);
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
    return made(html);
  } catch {
    return asText(text);
  }
}

function made(html) {
  const whole = fragment(html);
  // What scrolls sideways must be reachable by keyboard.
  for (const code of whole.querySelectorAll('pre')) code.tabIndex = 0;
  withCopyButtons(whole);
  for (const table of whole.querySelectorAll('table:not(.diff)')) {
    const box = h('div', { class: 'table-box', tabindex: '0', role: 'group', 'aria-label': 'Table' });
    table.replaceWith(box);
    box.append(table);
  }
  return whole;
}

function asText(text) {
  const whole = document.createDocumentFragment();
  whole.append(h('pre', { class: 'plain' }, text));
  return whole;
}

function soon() {
  if (collecting) return;
  collecting = true;
  setTimeout(flush, Math.max(8, sentAt + EVERY_MS - performance.now()));
}

async function flush() {
  collecting = false;
  sentAt = performance.now();
  while (waiting.length) send(batch());
}

function batch() {
  let text = 0;
  let number = 0;
  for (const { item } of waiting) {
    text += item.text.length;
    if (number && (number === MOST_ITEMS || text > MOST_TEXT)) break;
    number += 1;
  }
  return waiting.splice(0, number);
}

async function send(jobs) {
  try {
    const answer = await server.render(jobs.map((job) => job.item));
    jobs.forEach((job, index) => job.resolve(answer.items[index].html));
  } catch (error) {
    if (!(error instanceof Unreachable)) return jobs.forEach((job) => job.reject(error));
    // Meanwhile the plain text is shown.
    setTimeout(() => {
      waiting.unshift(...jobs);
      soon();
    }, AGAIN_MS);
  }
}
