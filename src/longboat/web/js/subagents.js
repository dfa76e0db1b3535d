// Sub-agents inside the tool call that started them: each a small transcript of its own session.

import { h, icon } from './dom.js';
import { Transcript } from './transcript.js';

export class SubAgents {
  /** `story(session_id)` is what the messages of a sub-agent need from its session. */
  constructor(mirror, session_id, story) {
    this.mirror = mirror;
    this.session_id = session_id;
    this.story = story;
    this.places = new Map(); // call → {element, child}
    this.stop = mirror.on('sessions', () => this.match());
  }

  close() {
    this.stop();
    for (const place of this.places.values()) place.transcript?.close();
  }

  /** The element for the sub-agent of a call. It is filled once that sub-agent is known. */
  place(call_id) {
    let place = this.places.get(call_id);
    if (!place) {
      place = { element: h('div', { class: 'sub-agent' }), child: null };
      this.places.set(call_id, place);
    }
    this.match();
    return place.element;
  }

  match() {
    for (const child of this.mirror.children(this.session_id)) {
      const place = this.places.get(child.parent_call_id);
      if (!place || place.child) continue;
      place.child = child.id;
      this.fill(place);
    }
  }

  fill(place) {
    const box = h('div', { class: 'nested' });
    const details = h(
      'details',
      {
        ontoggle: () => {
          if (!details.open || place.transcript) return;
          const history = this.mirror.history(place.child);
          place.transcript = new Transcript(null, this.story(place.child));
          box.append(place.transcript.element);
          history.load().catch(() => {});
        },
      },
      h('summary', {}, icon('right'), 'Sub-agent transcript'),
      box,
    );
    place.element.replaceChildren(details);
  }
}
