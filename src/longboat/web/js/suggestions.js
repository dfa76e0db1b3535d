// Completions for the prompt: workspace files after `@`, commands after `/`.

// Commands that the page handles itself.
const OWN_COMMANDS = [
  ['cancel', 'Cancel all runs in this session'],
  ['collapse', 'Collapse all tool calls'],
  ['connect', 'Connect a provider and choose the default model'],
  ['copy', 'Copy the last answer'],
  ['diff', 'Review the changes in this session'],
  ['effort', 'Set the reasoning effort', 'low|medium|high'],
  ['expand', 'Expand all tool calls'],
  ['export', 'Save this session to a file', 'markdown|json'],
  ['find', 'Search this session', 'words'],
  ['fork', 'Continue in a copy of this session'],
  ['model', 'Choose the model', 'name'],
  ['new', 'Start a new session'],
  ['plan', 'Turn “Plan first” on or off'],
  ['redo', 'Redo the last undone turn'],
  ['rename', 'Rename this session', 'title'],
  ['stats', 'Show usage statistics'],
  ['summarize', 'Summarize the conversation to free context'],
  ['undo', 'Undo the last turn'],
];

/** `find(kind, word)` resolves to [{value, label, hint}]; `knows(name)` to whether the command exists. */
export function suggestions(workspace) {
  let searching = null;
  let offered = null;

  async function files(word) {
    searching?.abort();
    searching = new AbortController();
    const page = await workspace.search(word, searching.signal);
    return page.items.map((path) => ({ value: `@${path}`, label: path }));
  }

  function projects() {
    offered ??= workspace.skills();
    return offered.catch(() => {
      offered = null;
      return { commands: null };
    });
  }

  async function commands(word) {
    const page = await projects();
    const own = OWN_COMMANDS.map(([name, hint, wish = '']) => ({
      value: `/${name}`,
      label: `/${name} ${wish}`.trim(),
      hint,
    }));
    const theirs = (page.commands ?? []).map((command) => ({
      value: `/${command.name}`,
      label: `/${command.name} ${command.argument_hint ?? ''}`.trim(),
      hint: command.description,
    }));
    return [...theirs, ...own].filter((item) => item.value.slice(1).toLowerCase().includes(word.toLowerCase()));
  }

  /** If in doubt, true: the server may be unreachable, or an MCP server not connected yet. */
  async function knows(name) {
    if (name.includes(':')) return true;
    const page = await projects();
    return !page.commands || page.commands.some((command) => command.name === name);
  }

  return { find: (kind, word) => (kind === 'file' ? files(word) : commands(word)), knows };
}
