// What completes a prompt: files of the workspace after `@`, commands after `/`.

// Those that the page does itself.
const OWN_COMMANDS = [
  ['undo', 'Take the last turn back'],
  ['redo', 'Bring it back'],
  ['summarize', 'Go on from a summary'],
  ['fork', 'A new session from this one'],
  ['new', 'A new session'],
];

/** Finds [{value, label, hint}] for a kind of word. */
export function suggestions(workspace) {
  let searching = null;
  let offered = null;

  async function files(word) {
    searching?.abort();
    searching = new AbortController();
    const page = await workspace.search(word, searching.signal);
    return page.items.map((path) => ({ value: `@${path}`, label: path }));
  }

  async function commands(word) {
    offered ??= workspace.skills();
    const page = await offered.catch(() => {
      offered = null;
      return { commands: [] };
    });
    const own = OWN_COMMANDS.map(([name, hint]) => ({ value: `/${name}`, label: `/${name}`, hint }));
    const theirs = page.commands.map((command) => ({
      value: `/${command.name}`,
      label: `/${command.name} ${command.argument_hint ?? ''}`.trim(),
      hint: command.description,
    }));
    return [...theirs, ...own].filter((item) => item.value.slice(1).toLowerCase().includes(word.toLowerCase()));
  }

  return (kind, word) => (kind === 'file' ? files(word) : commands(word));
}
