// A chart of the runs of a session over time: waiting, working, tools, outcome.

import { legend, picture, table } from './charts.js';
import { h, perFrame, replace, svg } from './dom.js';
import { between, brief, oneLine, plain, plural, seconds, when } from './format.js';

const MOST_RUNS = 8;
const WIDTH = 300;
const ROW = 26;
const KINDS = [
  ['waiting', 'waiting'],
  ['working', 'working'],
  ['tool', 'tool'],
  ['end_turn', 'done'],
  ['error', 'failed'],
  ['canceled', 'canceled'],
  ['interrupted', 'interrupted'],
];

export class Timeline {
  constructor(mirror) {
    this.mirror = mirror;
    this.element = h('div', { class: 'timeline' });
    this.draw = perFrame(() => this.drawNow());
    this.stops = [mirror.on('runs', () => this.draw())];
    this.clock = setInterval(() => this.isLive && !document.hidden && this.draw(), 1000);
  }

  close() {
    this.stops.forEach((stop) => stop());
    clearInterval(this.clock);
  }

  show(session_id) {
    this.session_id = session_id;
    this.draw();
  }

  runs() {
    return [...this.mirror.runs.values()]
      .filter((run) => run.session_id === this.session_id)
      .sort((one, other) => one.seq - other.seq)
      .slice(-MOST_RUNS);
  }

  drawNow() {
    const runs = this.runs();
    this.isLive = runs.some((run) => run.state !== 'finished');
    if (!runs.length) return replace(this.element, h('p', { class: 'quiet' }, 'No runs yet.'));
    const wasOpen = this.element.querySelector('details')?.open;
    const now = new Date().toISOString();
    const rows = runs.map((run) => ({ run, tools: this.tools(run.run_id), end: run.finished_at ?? now }));
    const described = rows.map(({ run, tools, end }) => describe(run, tools, end)).join(' ');
    const present = new Set([
      'waiting',
      'working',
      ...(rows.some((row) => row.tools.length) ? ['tool'] : []),
      ...runs.map((run) => run.outcome),
    ]);
    const numbers = table(
      ['Run', 'Waited', 'Worked', 'Tools', 'Outcome'],
      rows.map(({ run, tools, end }) => numbersOf(run, tools, end)),
      'Runs of this session',
    );
    numbers.open = Boolean(wasOpen);
    replace(
      this.element,
      picture(
        WIDTH,
        rows.length * ROW + 4,
        'Runs over time',
        described,
        rows.map((row, index) => drawRun(row, index * ROW)),
      ),
      legend(KINDS.filter(([kind]) => present.has(kind))),
      numbers,
    );
  }

  /** When the tools of a run were running. */
  tools(run_id) {
    const history = this.mirror.histories.get(this.session_id);
    return (history?.messages ?? [])
      .filter((message) => message.run_id === run_id && message.role === 'tool')
      .map((message) => ({ from: message.created_at, to: message.finished_at }));
  }
}

function drawRun({ run, tools, end }, y) {
  const whole = Math.max(between(run.accepted_at, end), 0.05);
  const x = (instant) => (Math.min(Math.max(between(run.accepted_at, instant), 0), whole) / whole) * (WIDTH - 62);
  const started = run.started_at ? x(run.started_at) : WIDTH - 62;
  const bar = (kind, from, to) =>
    svg('rect', { class: `span ${kind}`, x: from, y: y + 13, width: Math.max(to - from, 2), height: 7, rx: 1.5 });
  const outcome = run.outcome ?? run.state;
  return svg(
    'g',
    {},
    svg('title', {}, describe(run, tools, end)),
    svg('text', { class: 'label', x: 0, y: y + 10 }, oneLine(plain(run.prompt), 40)),
    bar('waiting', 0, started),
    run.started_at && bar(run.state === 'active' ? 'working live' : 'working', started, WIDTH - 62),
    tools.map((tool) => bar('tool', x(tool.from), x(tool.to ?? end))),
    svg('circle', { class: `end ${outcome}`, cx: WIDTH - 54, cy: y + 16.5, r: 4 }),
    svg('text', { class: 'tick', x: WIDTH - 46, y: y + 20 }, brief(whole)),
  );
}

function describe(run, tools, end) {
  const state = run.outcome ? run.outcome.replace('end_turn', 'done') : run.state;
  const [, waited, worked] = numbersOf(run, tools, end);
  return `“${oneLine(plain(run.prompt), 60)}”: accepted ${when(run.accepted_at)}, waited ${waited}, worked ${worked}, ${plural(tools.length, 'tool call')}, ${state}.`;
}

function numbersOf(run, tools, end) {
  return [
    oneLine(plain(run.prompt), 40),
    seconds(between(run.accepted_at, run.started_at ?? end)),
    run.started_at ? seconds(between(run.started_at, end)) : '–',
    tools.length,
    run.outcome ? run.outcome.replace('end_turn', 'done') : run.state,
  ];
}
