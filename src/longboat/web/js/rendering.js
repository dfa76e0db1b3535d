// Markdown, code and diffs as the server renders them: collected for a moment, asked for together, remembered.

import { server } from './api.js';
import { h } from './dom.js';
import { fragment } from './trusted.js';

const MOST_ITEMS = 48;
const MOST_TEXT = 1_500_000;
const LONGEST = 400_000;
const MOST_KEPT = 400;

const kept = new Map(); // key → html, least used first
let waiting = [];
let collecting = false;

/** A fragment of rendered HTML; plain text if there is none to be had. */
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
      if (!collecting) {
        collecting = true;
        setTimeout(flush, 8);
      }
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
  // What scrolls sideways is reached by keyboard.
  for (const wide of whole.querySelectorAll('pre, table:not(.diff)')) wide.tabIndex = 0;
  return whole;
}

function asText(text) {
  const whole = document.createDocumentFragment();
  whole.append(h('pre', { class: 'plain' }, text));
  return whole;
}

async function flush() {
  collecting = false;
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
    jobs.forEach((job) => job.reject(error));
  }
}
