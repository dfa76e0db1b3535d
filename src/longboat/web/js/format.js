// Formats numbers, times and names for people.

const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const hours = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const date = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

export const count = (number) => (number < 10_000 ? String(number) : short.format(number));
export const tokens = (number) => short.format(number);

export function cost(number) {
  if (!number) return '$0';
  return number < 0.01 ? `$${number.toPrecision(1)}` : `$${number.toFixed(2)}`;
}

/** The cost of a usage, as far as prices are known. */
export function costOf(usage) {
  if (usage.cost === null) return 'unknown';
  return usage.unpriced_tokens ? `≥ ${cost(usage.cost)}` : cost(usage.cost);
}

/** What a million tokens of a model cost. */
export function price(known) {
  if (!known) return 'price unknown';
  return known.input || known.output ? `$${known.input} in, $${known.output} out per M` : 'free';
}

export function seconds(value) {
  if (value === null || value === undefined) return '–';
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(value / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(value % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A short duration for the axis of a chart. */
export function brief(value) {
  if (!value) return '0';
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  const [size, unit] = value < 120 ? [1, 's'] : value < 7200 ? [60, 'min'] : [3600, 'h'];
  return `${Number((value / size).toFixed(1))} ${unit}`;
}

export const between = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000;

export function when(instant) {
  const then = new Date(instant);
  return then.toDateString() === new Date().toDateString() ? hours.format(then) : date.format(then);
}

/** The time of day, in five characters. */
export const hour = (instant) => hours.format(new Date(instant));
export const exactly = (instant) => whole.format(new Date(instant));
export const plural = (number, word) => `${number} ${word}${number === 1 ? '' : 's'}`;

export function bytes(size) {
  if (size < 1024) return `${size} B`;
  return size < 1 << 20 ? `${(size / 1024).toFixed(1)} KB` : `${(size / (1 << 20)).toFixed(1)} MB`;
}

/** The last directory of a path. */
export const base = (path) => path.replace(/\/+$/, '').split('/').pop() || path;

export const oneLine = (text, most = 120) => {
  const line = text.trim().split('\n', 1)[0];
  return line.length > most || line.length < text.trim().length ? `${line.slice(0, most)}…` : line;
};

// Terminal escape sequences mean nothing on a page: they are removed.
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Removes escape sequences, control characters and text direction overrides from program output. */
export function plain(text) {
  return text.replaceAll('\r\n', '\n').replace(ESCAPES, '').replace(CONTROLS, '');
}
