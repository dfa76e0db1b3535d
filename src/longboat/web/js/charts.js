// Charts as SVG with a title and a description, and the same numbers as a table. Sizes are in SVG units.

import { h, svg } from './dom.js';

let number = 0;

/** A chart with an accessible title and description. */
export function picture(width, height, title, description, ...children) {
  const id = `chart-${(number += 1)}`;
  return svg(
    'svg',
    { class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-labelledby': `${id}-t ${id}-d` },
    svg('title', { id: `${id}-t` }, title),
    svg('desc', { id: `${id}-d` }, description),
    children,
  );
}

/** The exact numbers of a chart as a table. */
export function table(head, rows, caption) {
  return h(
    'details',
    { class: 'numbers' },
    h('summary', {}, 'Show as table'),
    h(
      'div',
      { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `${caption}, table` },
      h(
        'table',
        {},
        h('caption', { class: 'hidden' }, caption),
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            head.map((text) => h('th', { scope: 'col' }, text)),
          ),
        ),
        h(
          'tbody',
          {},
          rows.map((row) =>
            h(
              'tr',
              {},
              row.map((cell, index) => h(index ? 'td' : 'th', index ? {} : { scope: 'row' }, String(cell))),
            ),
          ),
        ),
      ),
    ),
  );
}

export function legend(entries) {
  return h(
    'ul',
    { class: 'legend' },
    entries.map(([kind, label]) => h('li', {}, h('span', { class: `swatch ${kind}` }), label)),
  );
}

/** The next round number at or above `value`; an even one if the values are counts. */
export function ceiling(value, counted = false) {
  if (counted && value <= 10) return Math.max(2, 2 * Math.ceil(value / 2));
  if (value <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * unit >= value * 0.9999) * unit;
}

/** Columns of stacked values: `data` has {label, values: [[kind, value]…]}. */
export function columns(title, description, data, { format = String, height = 160, width = 560, counted = false } = {}) {
  const left = 56;
  const bottom = 20;
  const top = 8;
  const total = (column) => column.values.reduce((sum, [, value]) => sum + value, 0);
  const most = ceiling(Math.max(0, ...data.map(total)), counted);
  const scale = (height - top - bottom) / most;
  const step = (width - left) / Math.max(data.length, 1);
  const wide = Math.min(step * 0.72, 36);
  const bars = data.flatMap((column, index) => {
    let at = height - bottom;
    const x = left + step * index + (step - wide) / 2;
    return column.values.map(([kind, value]) => {
      const tall = value * scale;
      at -= tall;
      return svg(
        'rect',
        { class: `bar ${kind}`, x, y: at, width: wide, height: Math.max(tall, value > 0 ? 1 : 0) },
        svg('title', {}, `${column.label}: ${kind.replaceAll('_', ' ')} ${format(value)}`),
      );
    });
  });
  const every = Math.ceil(data.length / Math.max(1, Math.floor((width - left) / 56)));
  const labels = data.map((column, index) =>
    index % every === 0
      ? svg(
          'text',
          { class: 'tick', x: left + step * (index + 0.5), y: height - 5, 'text-anchor': 'middle' },
          column.short ?? column.label,
        )
      : null,
  );
  const lines = [0, 0.5, 1].map((part) => {
    const y = height - bottom - part * most * scale;
    return [
      svg('line', { class: 'grid', x1: left, x2: width, y1: y, y2: y }),
      svg('text', { class: 'tick', x: left - 6, y: y + 4, 'text-anchor': 'end' }, format(most * part)),
    ];
  });
  return picture(width, height, title, description, lines, bars, labels);
}

/** Shortens a long name in the middle: its start and end are what tells names apart. */
function within(name, room) {
  if (name.length <= room) return name;
  const half = Math.floor((room - 1) / 2);
  return `${name.slice(0, room - 1 - half)}…${name.slice(-half)}`;
}

/** Horizontal bars: `data` has {label, values: [[kind, value]…], told}. `right` is the room for what is told. */
export function rows(title, description, data, { width = 560, left = 168, right = 90 } = {}) {
  const tall = 24;
  const total = (row) => row.values.reduce((sum, [, value]) => sum + value, 0);
  const most = Math.max(1e-9, ...data.map(total));
  const scale = (width - left - right) / most;
  const height = Math.max(data.length * tall, tall);
  const drawn = data.map((row, index) => {
    let x = left;
    const y = index * tall;
    const bars = row.values.map(([kind, value]) => {
      const bar = svg('rect', {
        class: `bar ${kind}`,
        x,
        y: y + 4,
        width: Math.max(value * scale, value > 0 ? 1 : 0),
        height: tall - 8,
      });
      x += value * scale;
      return bar;
    });
    const room = Math.floor(left / 7.3);
    const name = svg('text', { class: 'label', x: left - 8, y: y + 16, 'text-anchor': 'end' }, within(row.label, room));
    name.append(svg('title', {}, row.label));
    return [
      name,
      bars,
      svg('text', { class: 'tick', x: x + 6, y: y + 16 }, row.told),
    ];
  });
  return picture(width, height, title, description, drawn);
}
