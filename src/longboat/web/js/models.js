// The models to choose from, with context window and price.

import { h } from './dom.js';
import { plain, plural, price, tokens } from './format.js';

/** Options for a select. Models that are not ready would bury the others: they are only counted. */
export function modelOptions(items) {
  const ready = items.filter((item) => item.ready);
  const others = items.length - ready.length;
  return [
    ...ready.map((item) => h('option', { value: item.name }, label(item))),
    ...(others ? [h('option', { disabled: true }, `${plural(others, 'model')} not ready: /connect adds a provider`)] : []),
  ];
}

const label = (item) =>
  [plain(item.name), item.context_window && `${tokens(item.context_window)} context`, price(item.price)]
    .filter(Boolean)
    .join(' · ');
