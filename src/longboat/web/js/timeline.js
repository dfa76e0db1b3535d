// The newest runs of a session on one scale: queued, the model, tools, waiting for a person. Every row begins when its
// prompt was accepted, so that their lengths can be compared.

import { ceiling, legend, picture } from './charts.js';
import { h, perFrame, replace, svg } from './dom.js';
import { between, brief, oneLine, plain, plural, seconds, when } from './format.js';

const MOST_RUNS = 8;
const WIDTH = 300;
const ROW = 34;
const AXIS = 18;
const SHORTEST_S = 1; // of the scale: a run that failed at once is a short bar, not a long one
const KINDS = [
  ['waiting', 'queued'],
  ['working', 'model'],
  ['tool', 'tools'],
  ['asking', 'waiting for you'],
];

export class Timeline {
  constructor(workspace, mirror) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.element = h('div', { class: 'timeline' });
    this.calls = new Map(); // run → its tool calls, as the server has recorded them
    this.leftOut = new Map(); // run → how many shorter calls are not among them, and how long these ran
    this.draw = perFrame(() => this.drawNow());
    this.stops = [
      mirror.on('runs', () => this.draw()),
      mirror.on('asks', () => this.draw()),
      mirror.on('run_complete', (run) => run.session_id === this.session_id && this.load()),
    ];
    this.clock = setInterval(() => this.isLive && !document.hidden && this.draw(), 1000);
  }

  close() {
    this.stops.forEach((stop) => stop());
    clearInterval(this.clock);
  }

  show(session_id) {
    this.session_id = session_id;
    this.calls.clear();
    this.leftOut.clear();
    this.draw();
    if (session_id) this.load();
  }

  /** The transcript would not do: only its newest page is here, and undone turns are not in it. */
  async load() {
    const wanted = this.session_id;
    try {
      const page = await this.workspace.timeline(wanted);
      if (wanted !== this.session_id) return;
      for (const { run_id, calls, left_out, left_out_s } of page.items) {
        this.calls.set(run_id, calls);
        this.leftOut.set(run_id, { calls: left_out, ran_s: left_out_s });
      }
      this.draw();
    } catch {
      // Loaded again after the next run.
    }
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
    this.element.classList.toggle('empty', !runs.length);
    if (!runs.length) return replace(this.element);
    const wasOpen = this.element.querySelector('details')?.open;
    const now = new Date().toISOString();
    const rows = runs.map((run) =>
      timesOf(run, this.callsOf(run, now), run.finished_at ?? now, this.leftOut.get(run.run_id)),
    );
    const longest = ceiling(Math.max(SHORTEST_S, ...rows.map((row) => row.whole)));
    const numbers = table(rows);
    numbers.open = Boolean(wasOpen);
    replace(
      this.element,
      picture(
        WIDTH,
        rows.length * ROW + AXIS,
        'Runs over time',
        rows.map(describe).join(' '),
        axis(longest, rows.length * ROW),
        rows.map((row, index) => drawRun(row, index * ROW, longest)),
      ),
      legend(KINDS.filter(([kind]) => rows.some((row) => row.spans.some((span) => span.kind === kind)))),
      numbers,
    );
  }

  /** The tool calls of a run. While it runs, they are in the transcript only. */
  callsOf(run, now) {
    const recorded = this.calls.get(run.run_id);
    if (run.state === 'finished' && recorded) return recorded;
    const messages = this.mirror.histories.get(this.session_id)?.messages ?? [];
    return messages
      .filter((message) => message.run_id === run.run_id && message.role === 'tool')
      .flatMap((message) => message.parts)
      .filter((part) => part.type === 'tool_result' && part.began_at)
      .map((part) => this.liveCall(part, run, now));
  }

  liveCall(part, run, now) {
    if (part.finished) return part;
    const ask = this.mirror
      .pendingAsks()
      .find(({ tool_call_id, run_id }) => tool_call_id === part.tool_call_id && run_id === run.run_id);
    const waited_s = part.waited_s + (ask ? Math.max(0, between(ask.asked_at, now)) : 0);
    return { began_at: part.began_at, waited_s, ran_s: Math.max(0, between(part.began_at, now) - waited_s) };
  }
}

/** What is drawn and told of a run, in seconds since its prompt was accepted. */
function timesOf(run, calls, end, leftOut = { calls: 0, ran_s: 0 }) {
  const at = (instant) => Math.max(0, between(run.accepted_at, instant));
  const whole = at(end);
  const started = run.started_at ? Math.min(at(run.started_at), whole) : whole;
  const within = (from, length) => [Math.min(from, whole), Math.min(from + length, whole)];
  const asking = calls.map((call) => within(at(call.began_at), call.waited_s));
  const tool = calls.map((call) => within(at(call.began_at) + call.waited_s, call.ran_s ?? 0));
  const spans = [
    { kind: 'waiting', from: 0, to: started },
    { kind: 'working', from: started, to: whole, live: run.state === 'active' },
    ...tool.map(([from, to]) => ({ kind: 'tool', from, to })),
    ...asking.map(([from, to]) => ({ kind: 'asking', from, to })),
  ].filter(({ from, to }) => to > from);
  const asked = covered(asking);
  const called = Math.min(covered([...tool, ...asking]) + leftOut.ran_s, whole - started);
  return {
    run,
    spans,
    whole,
    calls: calls.length + leftOut.calls,
    queued: started,
    model: Math.max(0, whole - started - called),
    tools: Math.max(0, called - asked),
    asked,
  };
}

/** How long any of the spans lasts: calls that run side by side count once. */
function covered(spans) {
  let total = 0;
  let end = 0;
  for (const [from, to] of [...spans].sort((one, other) => one[0] - other[0])) {
    if (to > end) {
      total += to - Math.max(from, end);
      end = to;
    }
  }
  return total;
}

function axis(longest, y) {
  const x = (part) => part * (WIDTH - 2) + 1;
  return [0, 0.5, 1].map((part) => [
    svg('line', { class: 'grid', x1: x(part), x2: x(part), y1: 0, y2: y }),
    svg(
      'text',
      { class: 'tick', x: x(part), y: y + 13, 'text-anchor': ['start', 'middle', 'end'][part * 2] },
      brief(longest * part),
    ),
  ]);
}

function drawRun(row, y, longest) {
  const x = (time) => 1 + (time / longest) * (WIDTH - 2);
  const { run, spans, whole } = row;
  return svg(
    'g',
    { class: 'run' },
    svg('title', {}, describe(row)),
    svg('text', { class: 'label', x: 0, y: y + 12 }, oneLine(plain(run.prompt), 26)),
    svg('circle', { class: `end ${run.outcome ?? run.state}`, cx: WIDTH - 108, cy: y + 8.5, r: 4 }),
    svg('text', { class: 'tick', x: WIDTH - 100, y: y + 12 }, `${brief(whole)}, ${stateOf(run)}`),
    spans.map(({ kind, from, to, live }) =>
      svg('rect', {
        class: `span ${kind}${live ? ' live' : ''}`,
        x: x(from),
        y: y + 18,
        width: Math.max(x(to) - x(from), 1.5),
        height: 9,
      }),
    ),
  );
}

const stateOf = (run) => (run.outcome ? run.outcome.replace('end_turn', 'done').replace('error', 'failed') : run.state);

function describe({ run, queued, model, tools, asked, calls }) {
  const waited = asked ? `, waiting for you ${seconds(asked)}` : '';
  return `“${oneLine(plain(run.prompt), 60)}”: accepted ${when(run.accepted_at)}, queued ${seconds(queued)}, model ${seconds(model)}, tools ${seconds(tools)} (${plural(calls, 'call')})${waited}, ${stateOf(run)}.`;
}

/** The exact numbers. The prompt has a row of its own: beside the numbers there is no room for it. */
function table(rows) {
  const cell = (name) => (row) => h('td', {}, row[name] ? seconds(row[name]) : '–');
  const cells = [cell('queued'), cell('model'), cell('tools'), cell('asked'), (row) => h('td', {}, stateOf(row.run))];
  return h(
    'details',
    { class: 'numbers' },
    h('summary', {}, 'Show as table'),
    h(
      'table',
      { class: 'stacked' },
      h('caption', { class: 'hidden' }, 'Runs in this session'),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['Queued', 'Model', 'Tools', 'Waiting for you', 'Outcome'].map((text) => h('th', { scope: 'col' }, text)),
        ),
      ),
      rows.map((row) =>
        h(
          'tbody',
          {},
          h('tr', {}, h('th', { scope: 'rowgroup', colspan: cells.length }, oneLine(plain(row.run.prompt), 80))),
          h(
            'tr',
            {},
            cells.map((make) => make(row)),
          ),
        ),
      ),
    ),
  );
}
