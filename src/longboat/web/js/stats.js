// The statistics page: usage and runs over some days, from /v1/stats.

import { server } from './api.js';
import { columns, legend, rows, table } from './charts.js';
import { byId, h, replace } from './dom.js';
import { base, brief, cost, costOf, count, plain, plural, seconds, tokens } from './format.js';
import { startKeyboard } from './keyboard.js';
import { PageActions } from './pageactions.js';
import { startTheme } from './theme.js';

const OUTCOMES = [
  ['end_turn', 'done'],
  ['canceled', 'canceled'],
  ['error', 'failed'],
  ['interrupted', 'interrupted'],
];
const narrow = matchMedia('(max-width: 600px)');
/** Chart size in SVG units: fewer on a phone, so that the text stays readable. */
const size = () => (narrow.matches ? { width: 320 } : {});
const lines = () => (narrow.matches ? { width: 320, left: 104 } : {});
let shown = null;

const NOTHING = { input_tokens: 0, output_tokens: 0, cost: 0, unpriced_tokens: 0 };
const runsOf = (outcomes, kind) => outcomes.find((item) => item.outcome === kind)?.runs ?? 0;

function figure(title, text, chart, keys, numbers) {
  return h(
    'figure',
    { class: 'card' },
    h('figcaption', {}, h('h2', {}, title), h('p', { class: 'quiet' }, text)),
    chart,
    keys && legend(keys),
    numbers,
  );
}

/** Every day of the period, including days without runs. */
function everyDay(stats) {
  const known = new Map(stats.days.map((day) => [day.day, day]));
  const days = [];
  const end = new Date();
  for (let at = new Date(`${stats.since}T00:00:00Z`); at <= end; at.setUTCDate(at.getUTCDate() + 1)) {
    const day = at.toISOString().slice(0, 10);
    days.push(known.get(day) ?? { day, usage: NOTHING, outcomes: [] });
  }
  return days;
}

/** One column for each day, or for each week of a long period. */
function grouped(days) {
  const size = days.length > 92 ? 7 : 1;
  const groups = [];
  for (let at = 0; at < days.length; at += size) groups.push(days.slice(at, at + size));
  return groups.map((group) => ({
    label: size === 1 ? group[0].day : `week of ${group[0].day}`,
    short: group[0].day.slice(5),
    sum: (value) => group.reduce((total, day) => total + value(day), 0),
    most: (value) => Math.max(...group.map(value)),
  }));
}

const KPI = (name, value, hint) =>
  h(
    'div',
    { class: 'card kpi' },
    h('dt', {}, name),
    h('dd', {}, value),
    hint && h('dd', { class: 'quiet hint' }, hint),
  );

function drawNothing() {
  replace(byId('figures'));
  replace(
    byId('charts'),
    h(
      'div',
      { class: 'card wide' },
      h('h2', {}, 'No data yet'),
      h(
        'p',
        { class: 'quiet' },
        'No runs in this period. ',
        h('a', { href: '/' }, 'Send a prompt'),
        ', or choose a longer period or another workspace above.',
      ),
    ),
  );
}

function draw(stats) {
  const groups = grouped(everyDay(stats));
  const all = stats.outcomes.reduce((sum, item) => sum + item.runs, 0);
  const chart = (value) => groups.map((group) => ({ label: group.label, short: group.short, values: value(group) }));
  if (!all && !stats.days.length) return drawNothing();
  replace(
    byId('figures'),
    KPI('Runs', count(all), `${count(runsOf(stats.outcomes, 'end_turn'))} done`),
    KPI('Tokens in', tokens(stats.usage.input_tokens)),
    KPI('Tokens out', tokens(stats.usage.output_tokens)),
    KPI(
      'Cost',
      costOf(stats.usage),
      stats.usage.unpriced_tokens > 0 && `${tokens(stats.usage.unpriced_tokens)} tokens without a known price`,
    ),
    KPI('Run time', seconds(stats.working.p50), 'median, without waiting for you'),
  );
  replace(
    byId('charts'),
    figure(
      'Tokens',
      'Per day (UTC)',
      columns(
        'Tokens by day',
        `${stats.usage.input_tokens} in and ${stats.usage.output_tokens} out since ${stats.since}.`,
        chart((group) => [
          ['input', group.sum((day) => day.usage.input_tokens)],
          ['output', group.sum((day) => day.usage.output_tokens)],
        ]),
        { format: tokens, ...size() },
      ),
      [
        ['input', 'in'],
        ['output', 'out'],
      ],
      table(
        ['Day', 'In', 'Out'],
        groups.map((group) => [
          group.label,
          group.sum((day) => day.usage.input_tokens),
          group.sum((day) => day.usage.output_tokens),
        ]),
        'Tokens by day',
      ),
    ),
    figure(
      'Cost',
      'Per day (UTC), for models with known prices',
      columns(
        'Cost by day',
        `${costOf(stats.usage)} since ${stats.since}.`,
        chart((group) => [['cost', group.sum((day) => day.usage.cost ?? 0)]]),
        { format: cost, ...size() },
      ),
      null,
      table(
        ['Day', 'Cost'],
        groups.map((group) => [group.label, costOf(usageOf(group))]),
        'Cost by day',
      ),
    ),
    figure(
      'Runs',
      'By outcome, per day (UTC)',
      columns(
        'Runs by outcome and day',
        OUTCOMES.map(([kind, label]) => `${runsOf(stats.outcomes, kind)} ${label}`).join(', '),
        chart((group) => OUTCOMES.map(([kind]) => [kind, group.sum((day) => runsOf(day.outcomes, kind))])),
        { format: count, counted: true, ...size() },
      ),
      OUTCOMES,
      table(
        ['Day', ...OUTCOMES.map(([, label]) => label)],
        groups.map((group) => [
          group.label,
          ...OUTCOMES.map(([kind]) => group.sum((day) => runsOf(day.outcomes, kind))),
        ]),
        'Runs by outcome and day',
      ),
    ),
    latencyByDay(groups),
    latency(stats),
    toolsUsed(stats),
    toolTimes(stats),
    models(stats),
    sessions(stats),
  );
}

function usageOf(group) {
  const known = group.sum((day) => day.usage.cost ?? 0);
  const unpriced_tokens = group.sum((day) => day.usage.unpriced_tokens);
  return { cost: known || !unpriced_tokens ? known : null, unpriced_tokens };
}

function latencyByDay(groups) {
  const rank = (name) => (day) => day.working?.[name] ?? 0;
  const columnsOf = groups.map((group) => ({
    label: group.label,
    short: group.short,
    values: [
      ['p50', group.most(rank('p50'))],
      ['p90', group.most(rank('p90')) - group.most(rank('p50'))],
      ['most', group.most(rank('most')) - group.most(rank('p90'))],
    ],
  }));
  const slowest = Math.max(0, ...groups.map((group) => group.most(rank('most'))));
  const ranks = ['p50', 'p90', 'most'];
  return figure(
    'Run time',
    groups.some((group) => group.label.startsWith('week'))
      ? 'Without waiting for you, slowest day (UTC) of each week'
      : 'Without waiting for you, per day (UTC)',
    columns('Run time by day', `The slowest run took ${seconds(slowest)}.`, columnsOf, {
      format: brief,
      ...size(),
    }),
    [
      ['p50', 'median'],
      ['p90', 'p90'],
      ['most', 'max'],
    ],
    table(
      ['Day', 'Median', 'p90', 'Max'],
      groups.map((group) => [group.label, ...ranks.map((name) => seconds(group.most(rank(name))))]),
      'Run time by day',
    ),
  );
}

function latency(stats) {
  const kinds = [
    ['waiting', 'Queued'],
    ['working', 'Working'],
    ['asking', 'Waiting for you'],
    ['whole', 'Total'],
  ];
  const ranks = { p50: 'median', p90: 'p90', most: 'max' };
  const data = kinds.flatMap(([key, label]) =>
    Object.entries(ranks).map(([rank, name]) => ({
      label: `${label}, ${name}`,
      values: [[key === 'whole' ? 'input' : key, stats[key][rank] ?? 0]],
      told: seconds(stats[key][rank]),
    })),
  );
  return figure(
    'Latency',
    'How long runs were queued, worked, and waited for your answers',
    rows('Latency of runs', data.map((row) => `${row.label} ${row.told}`).join(', '), data, lines()),
    null,
    table(
      ['', 'Median', 'p90', 'p99', 'Max'],
      kinds.map(([key, label]) => [label, ...['p50', 'p90', 'p99', 'most'].map((rank) => seconds(stats[key][rank]))]),
      'Latency of runs',
    ),
  );
}

function toolsUsed(stats) {
  const data = stats.tools.slice(0, 20).map((tool) => ({
    label: plain(tool.tool),
    values: [
      ['tool', tool.calls - tool.errors],
      ['error', tool.errors],
    ],
    told: `${count(tool.calls)}${tool.errors ? `, ${tool.errors} failed` : ''}`,
  }));
  if (!data.length) return figure('Tools', 'No tool calls in this period', null);
  return figure(
    'Tools',
    'Number of calls',
    rows('Tool calls', data.map((row) => `${row.label} ${row.told}`).join('; '), data, lines()),
    [
      ['tool', 'succeeded'],
      ['error', 'failed'],
    ],
    table(
      ['Tool', 'Calls', 'Failed'],
      stats.tools.map((tool) => [plain(tool.tool), tool.calls, tool.errors]),
      'Tool calls',
    ),
  );
}

function toolTimes(stats) {
  const timed = stats.tools.filter((tool) => tool.ran.most !== null);
  if (!timed.length) return figure('Tool time', 'No tool calls in this period', null);
  const data = timed.slice(0, 20).map(({ tool, ran }) => ({
    label: plain(tool),
    values: [
      ['p50', ran.p50],
      ['p90', ran.p90 - ran.p50],
      ['most', ran.most - ran.p90],
    ],
    told: ran.p50 < ran.most ? `${seconds(ran.p50)} to ${seconds(ran.most)}` : seconds(ran.p50),
  }));
  return figure(
    'Tool time',
    'Per call, without waiting for you',
    rows('Time per tool call', data.map((row) => `${row.label} ${row.told}`).join('; '), data, {
      ...lines(),
      right: 124,
    }),
    [
      ['p50', 'median'],
      ['p90', 'p90'],
      ['most', 'max'],
    ],
    table(
      ['Tool', 'Median', 'p90', 'Max', 'Waited for you'],
      timed.map(({ tool, ran, waited_s }) => [
        plain(tool),
        seconds(ran.p50),
        seconds(ran.p90),
        seconds(ran.most),
        waited_s ? seconds(waited_s) : '–',
      ]),
      'Time per tool call',
    ),
  );
}

function models(stats) {
  const data = stats.models.slice(0, 12).map((model) => ({
    label: plain(model.model),
    values: [
      ['input', model.usage.input_tokens],
      ['output', model.usage.output_tokens],
    ],
    told: `${tokens(model.usage.input_tokens + model.usage.output_tokens)} · ${model.usage.cost === null ? 'cost unknown' : costOf(model.usage)}`,
  }));
  if (!data.length) return figure('Models', 'No models used in this period', null);
  return figure(
    'Models',
    'Tokens by model, most expensive first',
    rows('Tokens by model', data.map((row) => `${row.label} ${row.told}`).join('; '), data, {
      ...lines(),
      right: 136,
    }),
    [
      ['input', 'in'],
      ['output', 'out'],
    ],
    table(
      ['Model', 'Requests', 'In', 'Out', 'Cost'],
      stats.models.map((model) => [
        plain(model.model),
        model.requests,
        model.usage.input_tokens,
        model.usage.output_tokens,
        costOf(model.usage),
      ]),
      'Tokens by model',
    ),
  );
}

function sessions(stats) {
  if (!stats.sessions.length) return null;
  const link = (item) =>
    item.title === null
      ? h('span', { class: 'quiet' }, 'deleted')
      : h('a', { href: `/#/${item.workspace_id}/${item.session_id}` }, plain(item.title) || 'New session');
  const row = (item, isSubAgent = false) =>
    h(
      'tr',
      { class: isSubAgent ? 'sub-agent' : null },
      h('td', {}, isSubAgent && '↳ ', link(item), !isSubAgent && subAgentsOf(item)),
      h('td', {}, count(item.runs)),
      h('td', {}, tokens(item.usage.input_tokens + item.usage.output_tokens)),
      h('td', {}, costOf(item.usage)),
    );
  return h(
    'figure',
    { class: 'card wide' },
    h('figcaption', {}, h('h2', {}, 'Sessions'), h('p', { class: 'quiet' }, 'Most expensive first, with their sub-agents')),
    h(
      'div',
      { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Sessions' },
      h(
        'table',
        { class: 'listing' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ['Session', 'Runs', 'Tokens', 'Cost'].map((text) => h('th', { scope: 'col' }, text)),
          ),
        ),
        h(
          'tbody',
          {},
          stats.sessions.slice(0, 20).map((item) => [row(item), item.sub_agents.map((each) => row(each, true))]),
        ),
      ),
    ),
  );
}

const subAgentsOf = ({ sub_agents: { length } }) =>
  length > 0 && h('span', { class: 'quiet' }, ` with ${plural(length, 'sub-agent')}`);

async function load() {
  const status = byId('status');
  status.textContent = 'Loading…';
  try {
    shown = await server.stats(byId('days').value, byId('place').value);
    draw(shown);
    status.textContent = '';
  } catch (error) {
    status.textContent = error.message;
  }
}

async function start() {
  dispatchEvent(new Event('longboat-started'));
  startTheme();
  const actions = new PageActions(() => null); // no workspace is open here
  startKeyboard((action, target) => actions.run(action, target));
  byId('days').addEventListener('change', load);
  byId('place').addEventListener('change', load);
  narrow.addEventListener('change', () => shown && draw(shown));
  load();
  const { items } = await server.workspaces().catch(() => ({ items: [] }));
  byId('place').append(
    ...items.map((workspace) =>
      h('option', { value: workspace.id, title: workspace.path }, plain(base(workspace.path))),
    ),
  );
}

start();
