// The usage of the session: tokens and cost per run and in total.

import { columns, legend, table } from './charts.js';
import { h, perFrame, replace } from './dom.js';
import { cost, costOf, tokens } from './format.js';

const MOST = 24;

export class Usage {
  constructor(workspace, mirror) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.element = h('div', { class: 'usage' });
    this.items = [];
    this.draw = perFrame(() => this.drawNow());
    this.stops = [
      mirror.on('run_complete', (run) => run.session_id === this.session_id && this.load()),
      mirror.on('sessions', () => this.draw()),
    ];
  }

  close() {
    this.stops.forEach((stop) => stop());
  }

  show(session_id) {
    this.session_id = session_id;
    this.items = [];
    this.draw();
    if (session_id) this.load();
  }

  async load() {
    const wanted = this.session_id;
    try {
      const page = await this.workspace.usage(wanted);
      if (wanted !== this.session_id) return;
      this.items = page.items;
      this.draw();
    } catch {
      // Loaded again after the next run.
    }
  }

  drawNow() {
    const total = this.mirror.sessions.get(this.session_id)?.usage;
    const isEmpty = !total?.input_tokens && !total?.output_tokens;
    this.element.classList.toggle('empty', isEmpty);
    if (isEmpty) return replace(this.element);
    const wasOpen = this.element.querySelector('details')?.open;
    const shown = this.items.slice(-MOST);
    const name = (index) => String(this.items.length - shown.length + index + 1);
    const numbers = table(
      ['Run', 'Tokens in', 'Tokens out', 'Cost'],
      shown.map(({ usage }, index) => [name(index), usage.input_tokens, usage.output_tokens, costOf(usage)]),
      'Tokens and cost by run',
    );
    numbers.open = Boolean(wasOpen);
    replace(
      this.element,
      h(
        'dl',
        { class: 'figures' },
        figure('In', tokens(total.input_tokens)),
        figure('Out', tokens(total.output_tokens)),
        figure('Cost', costOf(total)),
      ),
      total.unpriced_tokens > 0 &&
        h('p', { class: 'quiet small-print' }, `${tokens(total.unpriced_tokens)} tokens have no known price.`),
      shown.length === 1 && numbers,
      shown.length > 1 && [
        columns(
          'Tokens by run',
          `${total.input_tokens} tokens in and ${total.output_tokens} out over ${this.items.length} runs.`,
          shown.map(({ usage }, index) => ({
            label: `Run ${name(index)}`,
            short: name(index),
            values: [
              ['input', usage.input_tokens],
              ['output', usage.output_tokens],
            ],
          })),
          { format: tokens, height: 96, width: 300 },
        ),
        total.cost > 0 &&
          columns(
            'Cost by run',
            `${costOf(total)} in total.`,
            shown.map(({ usage }, index) => ({
              label: `Run ${name(index)}`,
              short: name(index),
              values: [['cost', usage.cost ?? 0]],
            })),
            { format: cost, height: 80, width: 300 },
          ),
        legend([['input', 'tokens in'], ['output', 'tokens out'], ...(total.cost > 0 ? [['cost', 'cost']] : [])]),
        numbers,
      ],
    );
  }
}

const figure = (name, value) => h('div', {}, h('dt', {}, name), h('dd', {}, value));
