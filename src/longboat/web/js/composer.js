// The prompt form: text, attachments, model, effort, steer or queue, plan first, approval. Keeps a draft for each session until it
// is sent; from then on the outbox has it.

import { say, toast } from './a11y.js';
import { Attachments } from './attachments.js';
import { Completion } from './completion.js';
import { confirmed } from './dialog.js';
import { h, icon, iconButton } from './dom.js';
import { plain } from './format.js';
import { keysOf } from './keys.js';
import { modelOptions } from './models.js';
import { keep, recall } from './storage.js';

const MOST_HISTORY = 50;
const NARROW = 360; // pixels

export class Composer {
  /** `on` has: send(prompt), find(kind, word), knows(command), actions (command name → function of its argument). */
  constructor(workspace, on) {
    this.workspace = workspace;
    this.on = on;
    this.files = new Attachments();
    this.text = h('textarea', {
      id: 'prompt',
      rows: '1',
      'aria-label': 'Prompt',
      onkeydown: (event) => this.key(event),
      oninput: () => this.changed(),
      onpaste: (event) => this.files.paste(event) && event.preventDefault(),
    });
    this.completion = new Completion(this.text, on.find);
    this.model = h('select', { 'aria-label': 'Model', onchange: () => this.choose() });
    this.effort = h(
      'select',
      { 'aria-label': 'Effort', onchange: () => this.choose() },
      ...EFFORTS.map(([value, label]) => h('option', { value }, label)),
    );
    this.delivery = this.deliveryChoice();
    this.plan = h('input', { type: 'checkbox', id: 'plan-first', onchange: () => this.setPlan(this.plan.checked) });
    this.planning = h(
      'p',
      { class: 'planning', hidden: true },
      'Plan first: the agent changes nothing until you approve its plan. ',
      h('kbd', {}, keysOf('plan')),
      h('span', { class: 'keys' }, ' turns it off.'),
    );
    this.approve = h('input', { type: 'checkbox', id: 'approve-all', onchange: () => this.approveAll() });
    this.warning = h(
      'p',
      { class: 'warning', hidden: true, role: 'status' },
      '“Approve all” is on: your prompts run commands and change files without asking.',
    );
    this.send = h(
      'button',
      { type: 'submit', class: 'primary send', 'aria-label': 'Send', title: 'Send (Enter)' },
      icon('send'),
    );
    this.element = this.form();
    this.setPlan(recall('plan', false));
    new ResizeObserver(() => this.fit()).observe(this.text);
  }

  /** The width changed: the longer placeholder may not fit. */
  fit() {
    const { clientWidth } = this.text;
    if (!clientWidth || clientWidth === this.width) return;
    this.width = clientWidth;
    this.text.placeholder = clientWidth < NARROW ? 'Ask anything' : 'Ask anything: @file, /command, !shell';
  }

  form() {
    return h(
      'form',
      {
        class: 'composer',
        'aria-label': 'Prompt',
        onsubmit: (event) => {
          event.preventDefault();
          this.submit();
        },
      },
      this.warning,
      this.planning,
      this.files.element,
      h('div', { class: 'write' }, this.completion.element, h('div', { class: 'field' }, this.text), this.send),
      h(
        'div',
        { class: 'choices' },
        iconButton('clip', 'Attach files', () => this.files.pick()),
        this.files.picker,
        this.model,
        this.effort,
        h(
          'label',
          { class: 'approve plan-first', title: `The agent changes nothing until you approve its plan (${keysOf('plan')})` },
          this.plan,
          h('span', {}, ' Plan', h('span', { class: 'roomy' }, ' first')),
        ),
        h('label', { class: 'approve', title: 'For prompts you send from this page' }, this.approve, ' Approve all'),
        this.delivery.element,
      ),
    );
  }

  /** Attaches files that are dropped anywhere on `place`. Otherwise the browser would navigate to them. */
  takeDrops(place) {
    const mark = (on) => this.element.classList.toggle('dropping', on);
    place.addEventListener('dragover', (event) => {
      event.preventDefault();
      mark(true);
    });
    place.addEventListener('dragleave', () => mark(false));
    place.addEventListener('drop', (event) => {
      event.preventDefault();
      mark(false);
      this.files.add([...event.dataTransfer.files]);
    });
  }

  deliveryChoice() {
    const radio = (value, label, title) => {
      const input = h('input', { type: 'radio', name: 'delivery', value, onchange: () => keep('delivery', value) });
      input.checked = value === recall('delivery', 'steer');
      return h('label', { title }, input, ` ${label}`);
    };
    const element = h(
      'fieldset',
      { class: 'delivery', hidden: true },
      h('legend', { class: 'hidden' }, 'While the agent is working'),
      radio('steer', 'Steer', 'Add to the running turn at its next step'),
      radio('queue', 'Queue', 'Run as a separate turn after this one'),
    );
    return {
      element,
      get value() {
        return element.querySelector('input:checked')?.value ?? 'steer';
      },
    };
  }

  // Session

  show(session_id) {
    this.saveDraft();
    this.session_id = session_id;
    const draft = recall(this.draftKey, {});
    this.text.value = typeof draft.text === 'string' ? draft.text : '';
    this.files.set([]);
    this.approve.checked = false;
    this.warning.hidden = true;
    this.completion.hide();
    this.pickModel();
    this.grow();
  }

  get draftKey() {
    return `draft.${this.workspace.id}.${this.session_id ?? 'new'}`;
  }

  saveDraft() {
    if (this.session_id !== undefined) keep(this.draftKey, this.text.value ? { text: this.text.value } : null);
  }

  /** The new session was created: keep what was typed in the meantime. */
  adopt(session_id) {
    keep(this.draftKey, null);
    this.session_id = session_id;
    this.saveDraft();
    this.choose();
  }

  setBusy(busy) {
    this.busy = busy;
    this.drawDelivery();
  }

  /** A prompt that plans first needs its own turn: there is nothing to choose. */
  drawDelivery() {
    const { busy } = this;
    this.delivery.element.hidden = !busy || this.plan.checked;
    this.send.title = !busy ? 'Send (Enter)' : this.plan.checked ? 'Queue (Enter)' : 'Send to the running agent (Enter)';
  }

  /** Whether the next prompts plan first, in any session of this browser until it is turned off. */
  setPlan(on) {
    this.plan.checked = on;
    this.planning.hidden = !on;
    this.element.classList.toggle('plans', on);
    keep('plan', on || null);
    this.drawDelivery();
  }

  togglePlan() {
    this.setPlan(!this.plan.checked);
    say(this.plan.checked ? 'Plan first is on.' : 'Plan first is off.');
  }

  setModels(page) {
    this.models = page;
    const large = page.large ? `Default: ${page.large}` : 'No model available';
    this.model.replaceChildren(
      h('option', { value: '' }, large),
      ...modelOptions(page.items),
    );
    this.pickModel();
  }

  pickModel() {
    const chosen = recall(`choice.${this.session_id ?? 'new'}`, {});
    const known = this.models?.items.some((item) => item.name === chosen.model && item.ready);
    this.model.value = known ? chosen.model : '';
    this.effort.value = chosen.effort ?? '';
    this.offerEffort();
  }

  offerEffort() {
    const name = this.model.value || this.models?.large;
    const info = this.models?.items.find((item) => item.name === name);
    this.effort.hidden = info ? !info.effort : false;
    const configured = info?.default_effort ? ` (${info.default_effort})` : '';
    this.effort.options[0].textContent = `${EFFORTS[0][1]}${configured}`;
  }

  choose() {
    this.offerEffort();
    keep(`choice.${this.session_id ?? 'new'}`, { model: this.model.value, effort: this.effort.value });
  }

  async approveAll() {
    if (this.approve.checked) {
      this.approve.checked = await confirmed(
        'Turn on “Approve all”?',
        'Prompts that you send from this page run commands and change files without asking, until you turn this off or leave the session. Deny rules still apply. Other people’s prompts still need approval.',
        'Approve all',
        { danger: true },
      );
    }
    this.warning.hidden = !this.approve.checked;
  }

  // Writing

  key(event) {
    if (this.completion.key(event) || this.answering?.key(event)) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    } else if (event.altKey) return; // goes to other messages
    else if (event.key === 'ArrowUp' && !this.text.value) this.fromHistory(event, 1);
    else if (this.recalled !== undefined && ['ArrowUp', 'ArrowDown'].includes(event.key))
      this.fromHistory(event, event.key === 'ArrowUp' ? 1 : -1);
  }

  fromHistory(event, step) {
    const past = recall('prompts', []);
    const at = (this.recalled ?? -1) + step;
    if (at >= past.length) return;
    event.preventDefault();
    this.text.value = at < 0 ? '' : past[at];
    this.grow();
    this.recalled = at < 0 ? undefined : at;
  }

  changed() {
    this.recalled = undefined;
    this.grow();
    this.saveDraft();
  }

  /** The style sheet lays the text out once more behind the field, which is as high as that. */
  grow() {
    this.text.parentElement.dataset.text = this.text.value;
    this.element.classList.toggle('shell', this.text.value.startsWith('!'));
  }

  focus() {
    this.text.focus();
  }

  /** Focuses the prompt of a session that was just opened, but not on a phone: its keyboard would cover the page. */
  arrive() {
    if (!matchMedia('(pointer: coarse)').matches && !document.querySelector('dialog[open]')) this.text.focus();
  }

  /** Puts a text into the prompt and focuses it. */
  begin(text) {
    this.put(text);
    this.text.focus();
  }

  /** Puts a text, such as an undone prompt, into an empty prompt field. */
  put(text) {
    if (this.text.value) return;
    this.text.value = text;
    this.grow();
    this.saveDraft();
  }

  /** Adds a text at the end of the prompt and focuses it. */
  insert(text) {
    const before = this.text.value;
    this.text.value = `${before}${before && !/\s$/.test(before) ? '\n' : ''}${text}`;
    this.changed();
    this.text.focus();
    this.text.setSelectionRange(this.text.value.length, this.text.value.length);
  }

  /** Puts an unsent prompt back, before what was typed since. */
  restore(text, files) {
    this.text.value = [text, this.text.value].filter(Boolean).join('\n\n');
    this.files.set([...files, ...this.files.items]);
    this.grow();
    this.saveDraft();
    this.text.focus();
  }

  // Sending

  /** `asPrompt`: even if a request waits for an answer. */
  async submit({ asPrompt = false } = {}) {
    const text = this.text.value.trim();
    if (!text && !this.files.items.length) return;
    // A path is not a command, and neither is anything after a leading space.
    const [, name, wish] = /^\/([\w:.-]+)(?:\s+(.*))?$/s.exec(this.text.value.trimEnd()) ?? [];
    if (name && Object.hasOwn(this.on.actions, name)) {
      this.clear();
      return this.on.actions[name](wish ?? '');
    }
    if (name && !(await this.on.knows(name)))
      return toast(`Unknown command /${plain(name)}. To send it as a prompt, put a space before it.`, 'error');
    if (this.text.value.trim() !== text) return; // the text changed in the meantime
    if (!asPrompt && this.answering?.take(text)) return;
    const command = text.startsWith('!') ? text.slice(1).trim() : '';
    remember(text);
    // Shell commands have no attachments: the files stay for the next prompt.
    const prompt = { text, command, attachments: command ? [] : this.files.take(), choices: this.choices() };
    this.clear();
    this.on.send(prompt);
  }

  /** Selects a model or an effort by name, or moves the focus to the list. */
  prefer(what, wish) {
    const select = this[what];
    const found = [...select.options].find((option) => option.value === wish || option.value.split('/').at(-1) === wish);
    if (!wish || !found) {
      if (wish) toast(`Unknown ${what} “${plain(wish)}”.`, 'error');
      return select.focus();
    }
    select.value = found.value;
    this.choose();
    toast(what === 'model' ? `Model: ${plain(found.textContent)}` : found.textContent);
  }

  choices() {
    const plan = this.plan.checked;
    return {
      delivery: plan ? 'queue' : this.delivery.value,
      ...(plan && { plan }),
      approve: this.approve.checked ? 'all' : 'ask',
      ...(this.model.value && { model: this.model.value }),
      ...(this.effort.value && !this.effort.hidden && { effort: this.effort.value }),
    };
  }

  clear() {
    this.text.value = '';
    this.recalled = undefined;
    this.saveDraft();
    this.completion.hide();
    this.grow();
  }
}

const EFFORTS = [
  ['', 'Effort: default'],
  ['low', 'Effort: low'],
  ['medium', 'Effort: medium'],
  ['high', 'Effort: high'],
];

function remember(text) {
  if (text) keep('prompts', [text, ...recall('prompts', []).filter((past) => past !== text)].slice(0, MOST_HISTORY));
}
