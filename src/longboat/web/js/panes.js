// The panels left and right of the conversation on a wide screen: they can be resized and folded away, which this
// browser remembers. On a narrow screen they are drawers, which is another matter (a11y.js).

import { byId, h } from './dom.js';
import { keep, recall } from './storage.js';

const STEP_PX = 16;
const PANES = {
  nav: { label: 'Sessions', width: 264, least: 200, most: 520, towards: 1 },
  aside: { label: 'Details', width: 336, least: 260, most: 720, towards: -1 },
};

class Pane {
  constructor(id, { label, width, least, most, towards }, frame) {
    Object.assign(this, { id, frame, usual: width, least, most, towards });
    this.button = byId(`fold-${id}`);
    this.button.addEventListener('click', () => this.fold(!this.isFolded));
    this.separator = h('div', {
      class: 'separator',
      id: `resize-${id}`,
      role: 'separator',
      tabindex: '0',
      'aria-orientation': 'vertical',
      'aria-controls': id,
      'aria-label': `Width of ${label.toLowerCase()}`,
      'aria-valuemin': least,
      'aria-valuemax': most,
      title: 'Drag, or use the arrow keys; Enter hides the panel',
      onkeydown: (event) => this.pressed(event),
      onpointerdown: (event) => this.grabbed(event),
      ondblclick: () => this.resize(this.usual),
    });
    byId(id).append(this.separator);
    this.resize(Number(recall(`pane.${id}.width`, width)), false);
    this.fold(recall(`pane.${id}.folded`, false), false);
  }

  resize(width, isChosen = true) {
    this.width = Math.round(Math.min(this.most, Math.max(this.least, width || this.usual)));
    document.documentElement.style.setProperty(`--${this.id}-width`, `${this.width}px`);
    this.separator.setAttribute('aria-valuenow', String(this.width));
    if (isChosen) keep(`pane.${this.id}.width`, this.width);
  }

  fold(isFolded, isChosen = true) {
    this.isFolded = isFolded;
    this.frame.classList.toggle(`${this.id}-folded`, isFolded);
    this.button.setAttribute('aria-expanded', String(!isFolded));
    if (!isChosen) return;
    keep(`pane.${this.id}.folded`, isFolded || null);
    if (isFolded && document.activeElement === this.separator) this.button.focus();
  }

  pressed(event) {
    const to = {
      ArrowRight: this.width + STEP_PX * this.towards,
      ArrowLeft: this.width - STEP_PX * this.towards,
      Home: this.least,
      End: this.most,
    }[event.key];
    if (event.key === 'Enter') this.fold(true);
    else if (to === undefined) return;
    else this.resize(to);
    event.preventDefault();
  }

  grabbed(event) {
    if (event.button !== 0) return;
    const { clientX } = event;
    const { width } = this;
    const move = (now) => this.resize(width + (now.clientX - clientX) * this.towards);
    this.separator.setPointerCapture(event.pointerId);
    this.separator.addEventListener('pointermove', move);
    this.separator.addEventListener('lostpointercapture', () => this.separator.removeEventListener('pointermove', move), {
      once: true,
    });
  }
}

export function startPanes() {
  const frame = document.querySelector('.frame');
  for (const [id, about] of Object.entries(PANES)) new Pane(id, about, frame);
}
