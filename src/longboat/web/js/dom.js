// Creates elements without parsing markup: text from outside always becomes a text node.

import { plain } from './format.js';

const SVG = 'http://www.w3.org/2000/svg';

/** Creates an element. Keys that start with "on" are listeners, `data` is the dataset; null children are skipped. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'data') Object.assign(element.dataset, value);
    else if (key === 'value') element.value = value;
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && typeof child !== 'boolean') element.append(child);
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Text whose `commands` are shown as code. */
export function withCode(text) {
  return plain(text)
    .split(/`([^`\n]+)`/)
    .map((piece, index) => (index % 2 ? h('code', {}, piece) : piece));
}

/** Whether people use fingers here: then keys are not mentioned. The style sheets use the same condition. */
export const isTouch = () => matchMedia('(max-width: 760px), (pointer: coarse)').matches;

export const byId = (id) => document.getElementById(id);

// SVG paths on a 16 × 16 grid.
const ICONS = {
  menu: 'M2 4h12M2 8h12M2 12h12',
  panel: 'M2 3h12v10H2zM10 3v10',
  plus: 'M8 3v10M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  send: 'M8 13V3M4 7l4-4 4 4',
  stop: 'M4 4h8v8H4z',
  clip: 'M12.5 7.5l-5 5a3 3 0 0 1-4.2-4.2l5.4-5.4a2 2 0 0 1 2.8 2.8l-5.3 5.3a1 1 0 0 1-1.4-1.4L9.5 5',
  edit: 'M3 13l1-3 7-7 2 2-7 7z',
  trash: 'M3 5h10M6 5V3h4v2M5 5l.5 8h5L11 5',
  down: 'M4 6l4 4 4-4',
  up: 'M4 10l4-4 4 4',
  copy: 'M5 5V2h9v9h-3M2 5h9v9H2z',
  right: 'M6 4l4 4-4 4',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z',
  chart: 'M2 14h12M4 12V8M8 12V3M12 12V6',
  check: 'M3 8.5l3 3 7-7',
  dots: 'M3.5 7.5h1v1h-1zM7.5 7.5h1v1h-1zM11.5 7.5h1v1h-1z',
  steer: 'M3 8h8M8 4l4 4-4 4',
  fork: 'M5 2v12M5 11c0-4 6-2 6-6V2M9 4l2-2 2 2',
  file: 'M4 2h5l3 3v9H4zM9 2v3h3',
  folder: 'M2 4h4l1.5 2H14v7H2z',
  inbox: 'M2 9l2-6h8l2 6v4H2zM2 9h4l1 2h2l1-2h4',
  bell: 'M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2',
};

export function icon(name) {
  return svg(
    'svg',
    { class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true', focusable: 'false' },
    svg('path', { d: ICONS[name] }),
  );
}

/** A button with an icon, and a label for screen readers and the tooltip. */
export function iconButton(name, label, onclick, props = {}) {
  return h(
    'button',
    { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick, ...props },
    icon(name),
  );
}

/** Runs `work` at most once per frame, however often it is called. A hidden page draws no frames and uses a timer. */
export function perFrame(work) {
  let waiting = false;
  const run = () => {
    waiting = false;
    work();
  };
  return () => {
    if (waiting) return;
    waiting = true;
    if (document.hidden) setTimeout(run, 200);
    else requestAnimationFrame(run);
  };
}
