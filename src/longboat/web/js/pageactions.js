// What the keys and the palette do on the page.

import { when } from './format.js';
import { showKeys } from './keyboard.js';
import { keysOf } from './keys.js';
import { Palette } from './palette.js';

const SESSIONS = 10;

export class PageActions {
  /** `workspaceView()` is the open workspace, or null. */
  constructor(workspaceView) {
    this.workspaceView = workspaceView;
    this.palette = new Palette({
      actions: () => this.list(),
      commands: (word) => this.commands(word),
      sessions: (word) => this.sessions(word),
    });
  }

  get talk() {
    return this.workspaceView()?.conversation ?? null;
  }

  /** Carries out an action of the table of keys. True if there was something to do. */
  run(action, target) {
    if (action in ON_PAGE) return ON_PAGE[action](this, target);
    return this.onMessage(action, target);
  }

  /** Closes what is open; if nothing is, stops the run; if none is active, goes to the prompt. */
  escape(target) {
    const { talk } = this;
    if (!talk) return false;
    if (talk.finder.close()) return true;
    const isPrompt = target.id === 'prompt';
    if (!isPrompt && target.matches('input, textarea, select')) return false;
    if (talk.working.stop()) return true;
    if (!isPrompt) talk.composer.focus();
    return !isPrompt;
  }

  onMessage(action, row) {
    const view = this.talk?.transcript?.views.get(row.dataset.id);
    if (!view) return false;
    if (action === 'menu') row.querySelector('.message-tools [aria-haspopup=menu]').click();
    else if (action === 'toggle') toggle(row);
    else {
      const found = this.talk.does.of(view.message).find(({ name }) => name === action);
      found?.run();
      return Boolean(found);
    }
    return true;
  }

  // The palette

  /** Actions of the page, of the session, and the buttons of the top bar. */
  list() {
    const { talk } = this;
    const named = (action, label) => ({ label, keys: keysOf(action), run: () => this.run(action, document.body) });
    const buttons = [...document.querySelectorAll('.topbar button, .topbar a[title]')];
    return [
      talk?.working.active && { label: 'Stop the run', keys: keysOf('stop'), run: () => talk.working.stop() },
      talk && named('new', 'New session'),
      talk?.transcript && named('find', 'Search this session'),
      talk && named('prompt', 'Go to the prompt'),
      talk && named('plan', `Plan first: turn ${talk.composer.plan.checked ? 'off' : 'on'}`),
      named('keys', 'Show all keys'),
      ...(talk?.does.list() ?? []).filter(({ label }) => !['New session', 'Search this session'].includes(label)),
      ...buttons
        .filter((button) => button.offsetParent !== null)
        .map((button) => ({ label: button.title || button.textContent, run: () => button.click() })),
    ]
      .filter(Boolean)
      .map((item) => ({ kind: 'Action', ...item }));
  }

  async sessions(q) {
    const workspaceView = this.workspaceView();
    if (!workspaceView) return [];
    const page = await workspaceView.workspace.sessions({ q: q || null, limit: SESSIONS });
    return page.items.map((session) => ({
      label: session.title || 'New session',
      hint: when(session.updated_at),
      kind: 'Session',
      run: () => workspaceView.go(session.id),
    }));
  }

  /** The page's own commands run at once. Others are put into the prompt: they may need arguments. */
  async commands(word) {
    const { talk } = this;
    if (!talk) return [];
    const own = talk.does.commands();
    const found = await talk.composer.on.find('command', word);
    return found.map(({ value, label, hint }) => {
      const name = value.slice(1);
      const run = Object.hasOwn(own, name) ? () => own[name]('') : () => talk.composer.restore(`${value} `, []);
      return { label, hint, kind: 'Command', run };
    });
  }
}

const ON_PAGE = {
  palette: ({ palette }) => {
    palette.open();
    return true;
  },
  keys: () => {
    showKeys();
    return true;
  },
  // Pressed again, it opens the search of the browser.
  find: ({ talk }, target) => target.id !== 'find' && Boolean(talk?.finder.open()),
  stop: (page, target) => page.escape(target),
  new: (page) => {
    page.workspaceView()?.go(null);
    return Boolean(page.workspaceView());
  },
  plan: ({ talk }) => {
    const isShown = Boolean(talk?.composer.element.offsetParent);
    if (isShown) talk.composer.togglePlan();
    return isShown;
  },
  previous: ({ talk }) => Boolean(talk?.transcript?.step(-1)),
  next: ({ talk }) => Boolean(talk?.transcript?.step(1)),
  prompt: ({ talk }) => {
    talk?.composer.focus();
    return Boolean(talk);
  },
};

/** Opens all tool calls of a message, or closes them if all are open. */
function toggle(row) {
  const boxes = [...row.querySelectorAll('details.tool, details.reasoning')];
  const open = boxes.some((box) => !box.open);
  for (const box of boxes) box.open = open;
}
