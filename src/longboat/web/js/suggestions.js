// What completes a prompt: files of the workspace after `@`, commands after `/`.

// Those that the page does itself.
const OWN_COMMANDS = [
  ['cancel', 'Stop everything in this session'],
  ['copy', 'Copy the last answer'],
  ['effort', 'How much the model thinks', 'low|medium|high'],
  ['export', 'Save this session as a file', 'markdown|json'],
  ['fork', 'A new session from this one'],
  ['model', 'Choose the model', 'name'],
  ['new', 'A new session'],
  ['redo', 'Bring back what was undone'],
  ['rename', 'Give this session a title', 'title'],
  ['stats', 'What was used, in plots'],
  ['summarize', 'Go on from a summary'],
  ['undo', 'Take the last turn back'],
];

/** `find(kind, word)` gives [{value, label, hint}]; `knows(name)` tells whether there is such a command. */
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

  /** A server that cannot be asked may know it, and so may an MCP server that is not connected yet. */
  async function knows(name) {
    if (name.includes(':')) return true;
    const page = await projects();
    return !page.commands || page.commands.some((command) => command.name === name);
  }

  return { find: (kind, word) => (kind === 'file' ? files(word) : commands(word)), knows };
}
