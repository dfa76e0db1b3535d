// Copying to the clipboard: code blocks, messages, answers.

import { say, toast } from './a11y.js';
import { h, icon } from './dom.js';

const DONE_MS = 1_500;

/** Copies a text. True if that worked. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast('The browser blocked copying. Select the text and copy it yourself.', 'error');
    return false;
  }
}

/** The text of a message: what was asked, or the answer as Markdown. */
export const textOf = (message) =>
  message.parts
    .filter((part) => part.type === 'text' && part.text)
    .map((part) => part.text)
    .join('\n\n');

/** Puts a button beside each code block. One listener serves them all: rendered blocks are compared and moved. */
export function withCopyButtons(fragment) {
  for (const code of fragment.querySelectorAll('pre')) {
    const block = h('div', { class: 'code-block' });
    code.replaceWith(block);
    block.append(
      code,
      h('button', { type: 'button', class: 'copy-code', 'aria-label': 'Copy code', title: 'Copy code' }, icon('copy')),
    );
  }
}

export function startCopying() {
  document.addEventListener('click', async ({ target }) => {
    const button = target.closest?.('.copy-code');
    if (!button) return;
    if (await copied(button.previousElementSibling.textContent.replace(/\n$/, ''))) markCopied(button);
  });
}

/** Shows on the button that it worked. */
export function markCopied(button) {
  say('Copied.');
  button.replaceChildren(icon('check'));
  setTimeout(() => button.replaceChildren(icon('copy')), DONE_MS);
}
