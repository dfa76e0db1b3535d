// Connect a provider: choose it, enter its key and have it tested, choose the default model. One dialog, three steps.

import { say, toast } from './a11y.js';
import { server } from './api.js';
import { confirmed } from './dialog.js';
import { h, replace } from './dom.js';
import { plain, tokens } from './format.js';

const SOURCES = {
  environment: 'key from the environment',
  stored: 'stored key',
  configuration: 'set in longboat.json',
  running: 'running on this machine',
  local: 'installed',
};
const MOST = 50; // models on the screen; the filter finds the others

/** Opens the dialog. Resolves to the new default model, or to null. */
export function openSetup() {
  return new Setup().open();
}

class Setup {
  constructor() {
    this.title = h('h2', { id: 'setup-title', tabindex: '-1' });
    this.body = h('div', {});
    this.element = h('dialog', { class: 'dialog setup', 'aria-labelledby': 'setup-title' }, this.title, this.body);
    this.made = null;
  }

  open() {
    document.body.append(this.element);
    this.element.showModal();
    this.providers();
    return new Promise((resolve) =>
      this.element.addEventListener('close', () => {
        this.element.remove();
        resolve(this.made);
      }),
    );
  }

  step(title, ...content) {
    this.title.textContent = title;
    replace(this.body, ...content);
    (this.body.querySelector('[autofocus]') ?? this.title).focus();
  }

  // 1. Which provider

  async providers() {
    const list = h('ul', { class: 'setup-choices', 'aria-label': 'Providers' });
    const wrong = alert();
    this.step('Connect a provider', list, wrong, this.buttons({ back: null }));
    try {
      const page = await server.providers();
      replace(
        list,
        page.items.map((provider) =>
          h(
            'li',
            {},
            h(
              'button',
              { type: 'button', onclick: () => this.key(provider) },
              h('span', {}, plain(provider.name)),
              provider.connected && h('span', { class: 'quiet' }, `✓ ${SOURCES[provider.source] ?? 'connected'}`),
            ),
          ),
        ),
      );
      list.querySelector('button')?.focus();
    } catch (error) {
      wrong.textContent = error.message;
    }
  }

  // 2. Key and address

  key(provider) {
    const wrong = alert();
    const url =
      provider.url === 'none' ? null : field('setup-url', 'Base URL', { type: 'url', value: provider.base_url ?? '' });
    const key =
      provider.key === 'none'
        ? null
        : field('setup-key', keyLabel(provider), { type: 'password', value: '', autocomplete: 'off' });
    const test = h('button', { type: 'submit', class: 'primary' }, 'Test');
    const form = h(
      'form',
      {
        onsubmit: (event) => {
          event.preventDefault();
          const entered = { api_key: key?.input.value.trim() || undefined, base_url: url?.input.value.trim() || undefined };
          this.test(provider, entered, { wrong, test });
        },
      },
      provider.key_page?.startsWith('https://') &&
        h(
          'p',
          {},
          h('a', { href: provider.key_page, target: '_blank', rel: 'noopener noreferrer' }, 'Create an API key'),
          h('span', { class: 'quiet' }, ` at ${new URL(provider.key_page).host}`),
        ),
      url?.element,
      key?.element,
      wrong,
      this.buttons({ back: () => this.providers(), forget: provider.stored && (() => this.forget(provider, wrong)), action: test }),
    );
    this.step(plain(provider.name), form);
    ((provider.base_url && key) || url || key)?.input.focus();
    if (!url && !key) form.requestSubmit(test);
  }

  /** Deletes the stored key. What longboat.json and the environment say stays. */
  async forget(provider, wrong) {
    const name = plain(provider.name);
    const text = 'The server deletes the key for all workspaces. longboat.json and the environment stay as they are.';
    if (!(await confirmed(`Forget the key for ${name}?`, text, 'Forget key', { danger: true }))) return;
    try {
      const left = await server.forgetProvider(provider.id);
      toast(`Key for ${name} deleted.${left.connected ? ` Still connected: ${SOURCES[left.source] ?? 'another key'}.` : ''}`);
      await this.providers();
    } catch (error) {
      wrong.textContent = plain(error.message);
    }
  }

  async test(provider, entered, { wrong, test }) {
    wrong.textContent = '';
    test.disabled = true;
    test.textContent = 'Testing…';
    try {
      const found = await server.checkProvider(provider.id, entered);
      if (!test.isConnected) return; // the person went back
      if (found.ok) return this.models(provider, { ...entered, base_url: entered.base_url && found.base_url }, found);
      wrong.textContent = plain(found.problem ?? 'The test failed. Check the key and the base URL.');
    } catch (error) {
      wrong.textContent = plain(error.message);
    }
    test.disabled = false;
    test.textContent = 'Test';
    (this.body.querySelector('#setup-key') ?? this.body.querySelector('#setup-url') ?? test).focus();
  }

  // 3. The model

  models(provider, entered, found) {
    const wrong = alert();
    const named = !found.models.length;
    const filter = field('setup-model', named ? 'Model name' : 'Filter', { value: '', autocomplete: 'off' });
    const list = h('fieldset', { class: 'setup-choices models' });
    const use = h('button', { type: 'submit', class: 'primary' }, 'Use this model');
    const draw = () => {
      const words = filter.input.value.toLowerCase().split(/\s+/);
      const fitting = found.models.filter((model) => words.every((word) => model.name.toLowerCase().includes(word)));
      replace(list, h('legend', { class: 'hidden' }, 'Models'), fitting.slice(0, MOST).map(modelChoice));
    };
    if (!named) {
      draw();
      filter.input.addEventListener('input', draw);
    }
    const form = h(
      'form',
      {
        onsubmit: (event) => {
          event.preventDefault();
          const chosen = list.querySelector('input:checked')?.value;
          const model = named
            ? { name: `${provider.id}/${filter.input.value.trim()}` }
            : found.models.find((each) => each.name === chosen);
          if (model && !model.name.endsWith('/')) this.connect(provider, entered, model, { wrong, use });
        },
      },
      h(
        'p',
        { role: 'status' },
        named
          ? 'The test passed, but the server has no list of models. Enter a model name.'
          : 'The test passed. Choose the model for new prompts.',
      ),
      (named || found.models.length > 8) && filter.element,
      !named && list,
      wrong,
      this.buttons({ back: () => this.key(provider), action: use }),
    );
    this.step('Choose the default model', form);
    (list.querySelector('input') ?? filter.input).focus();
    say('The test passed.');
  }

  async connect(provider, entered, model, { wrong, use }) {
    use.disabled = true;
    try {
      const name = model.name.slice(provider.id.length + 1);
      await server.connectProvider(provider.id, { ...entered, model: name, context_window: model.context_window });
      this.made = model.name;
      this.element.close();
      toast(`Connected. Default model: ${plain(model.name)}.`);
    } catch (error) {
      wrong.textContent = plain(error.message);
      use.disabled = false;
    }
  }

  buttons({ back, forget, action }) {
    return h(
      'div',
      { class: 'buttons' },
      forget && h('button', { type: 'button', class: 'danger forget', onclick: forget }, 'Forget key'),
      back && h('button', { type: 'button', onclick: back }, 'Back'),
      h('button', { type: 'button', onclick: () => this.element.close() }, 'Cancel'),
      action,
    );
  }
}

function modelChoice(model, index) {
  const facts = [
    model.price && `$${model.price.input} in, $${model.price.output} out per million tokens`,
    model.context_window && `${tokens(model.context_window)} context`,
  ];
  return h(
    'label',
    {},
    h('input', { type: 'radio', name: 'setup-choice', value: model.name, checked: index === 0 }),
    h('span', { class: 'model-name' }, plain(model.name)),
    h('span', { class: 'quiet' }, facts.filter(Boolean).join(', ')),
  );
}

function keyLabel(provider) {
  if (provider.connected) return 'API key (leave empty to keep the current setting)';
  return provider.key === 'optional' ? 'API key (leave empty if none is needed)' : 'API key';
}

function field(id, label, props) {
  const input = h('input', { id, spellcheck: 'false', ...props });
  return { input, element: h('div', {}, h('label', { for: id }, label), input) };
}

const alert = () => h('p', { class: 'wrong', role: 'alert' });
