// Every key of the page. The keyboard, the palette, the list of keys and the documentation all use this table.

/** What it does, its keys, where they work, and how it reads. The documentation is generated from these lines. */
export const KEYS = [
  ['palette', 'Ctrl+K', 'Anywhere', 'Open the command palette'],
  ['find', 'Ctrl+F', 'Anywhere', 'Search this session'],
  ['stop', 'Esc', 'Anywhere', 'Close a dialog or panel; otherwise stop the run'],
  ['new', 'Alt+N', 'Anywhere', 'Start a new session'],
  ['plan', 'Alt+P', 'Anywhere', 'Turn “Plan first” on or off'],
  ['previous', 'Alt+↑', 'Anywhere', 'Go to the previous message'],
  ['next', 'Alt+↓', 'Anywhere', 'Go to the next message'],
  ['keys', '?', 'Outside text, or in the empty prompt', 'Show all keys'],
  ['previous', 'k', 'Outside text', 'Go to the previous message'],
  ['next', 'j', 'Outside text', 'Go to the next message'],
  ['prompt', 'i', 'Outside text', 'Go to the prompt'],
  ['menu', 'Enter', 'On a message', 'Open its actions'],
  ['copy', 'c', 'On a message', 'Copy it'],
  ['edit', 'e', 'On a message', 'Edit and resend the prompt'],
  ['fork', 'f', 'On a message', 'Fork the session from here'],
  ['retry', 'r', 'On a message', 'Retry the failed run'],
  ['sent', 'w', 'On a message', 'Show what was sent to the model'],
  ['toggle', 'o', 'On a message', 'Expand or collapse its tool calls'],
  ['', 'Enter', 'In the prompt', 'Send'],
  ['', 'Shift+Enter', 'In the prompt', 'Start a new line'],
  ['', '↑', 'In the empty prompt', 'Recall earlier prompts'],
  ['', '@', 'In the prompt', 'Mention a file'],
  ['', '/', 'At the start of the prompt', 'Run a command'],
  ['', '!', 'At the start of the prompt', 'Run a shell command'],
  ['', 'y d', 'In the empty prompt, while a request is pending', 'Allow once; deny'],
  ['', 's a', 'In the empty prompt, while a request is pending; then Enter', 'Allow for this session or always'],
  ['', '1–9', 'In the empty prompt, while a request is pending', 'Choose an answer'],
  ['', 'Alt+Enter', 'In the prompt', 'Send as a prompt instead of an answer'],
  ['', '↑ ↓', 'In a list', 'Move; → opens a session’s menu'],
  ['', 'j k', 'In the inbox', 'Go to the next or previous item'],
  ['', '↑ ↓', 'In the inbox', 'Go to the next or previous item'],
  ['', 'Enter', 'In the inbox', 'Open the session'],
  ['', 'y s a d', 'In the inbox', 'Allow once, for this session or always; deny'],
  ['', '1–9', 'In the inbox', 'Choose an answer'],
  ['', 'Esc', 'In the inbox', 'Go back to where you were'],
  ['', 'j k', 'In the review', 'Go to the next or previous file'],
  ['', 'n p', 'In the review', 'Go to the next or previous hunk'],
  ['', '↑ ↓', 'In the review', 'Move by line'],
  ['', 'c', 'In the review', 'Comment on the line'],
  ['', 'u', 'In the review', 'Undo the hunk'],
  ['', 'U', 'In the review', 'Undo all changes to the file'],
  ['', 'r', 'In the review', 'Redo what was undone last'],
  ['', 'o', 'In the review', 'Open the file'],
  ['', 's', 'In the review', 'Show diffs side by side or in one column'],
  ['', 'Esc', 'In the review', 'Go back to the conversation'],
];

const NAMES = { Escape: 'Esc', ArrowUp: '↑', ArrowDown: '↓' };

/** The key as the table spells it. Cmd counts as Ctrl. */
function spelled(event) {
  const isLetter = /^Key[A-Z]$/.test(event.code);
  // With Alt, some keyboards make another character of a letter.
  const key = NAMES[event.key] ?? (event.altKey && isLetter ? event.code.slice(3) : event.key);
  const held = [(event.ctrlKey || event.metaKey) && 'Ctrl', event.altKey && 'Alt'].filter(Boolean);
  return [...held, held.length && key.length === 1 ? key.toUpperCase() : key].join('+');
}

const isText = (node) => node.matches('input, textarea, select, [contenteditable]');

function works(where, node) {
  if (where === 'Anywhere') return true;
  if (where === 'On a message') return node.matches('article.message');
  if (where.includes('empty prompt') && node.id === 'prompt') return !node.value;
  return where.startsWith('Outside text') && !isText(node);
}

/** What the pressed key does, or an empty string. */
export function actionOf(event) {
  const keys = spelled(event);
  const found = KEYS.find(([action, its, where]) => action && its === keys && works(where, event.target));
  return found?.[0] ?? '';
}

/** The keys of an action, for hints. */
export const keysOf = (action) => KEYS.find(([name]) => name === action)?.[1] ?? '';
