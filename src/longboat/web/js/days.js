// Groups by day: today, yesterday, then dates.

const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'long' });
const thisYear = new Intl.DateTimeFormat(undefined, { month: 'long', day: 'numeric' });
const otherYear = new Intl.DateTimeFormat(undefined, { month: 'long', day: 'numeric', year: 'numeric' });

const midnight = (instant) => new Date(instant).setHours(0, 0, 0, 0);

/** The name of the day of an instant, seen from `now`. */
export function dayName(instant, now = new Date()) {
  // Rounded: a day in which the clock is set has 23 or 25 hours.
  const ago = Math.round((midnight(now) - midnight(instant)) / 86_400_000);
  if (ago <= 0) return 'Today'; // also what a clock that is ahead calls tomorrow
  if (ago === 1) return 'Yesterday';
  const then = new Date(instant);
  if (ago < 7) return weekday.format(then);
  return (then.getFullYear() === now.getFullYear() ? thisYear : otherYear).format(then);
}

/** Items in groups of one day each, in the order they come: [name, items] pairs. */
export function byDay(items, instantOf, now = new Date()) {
  const groups = new Map();
  for (const item of items) {
    const name = dayName(instantOf(item), now);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return [...groups];
}
