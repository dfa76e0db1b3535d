// Where the directory of a workspace is, if several servers share a database; and a notice while it is away.

import { say } from './a11y.js';
import { h, replace } from './dom.js';
import { exactly, plain, when } from './format.js';

/** The server that works on a workspace now, or that has its directory. */
export const nodeOf = ({ owner, home }) => owner ?? home ?? null;

/** "boat-1 has been down since 14:03" or "boat-1 is stopping"; null if the directory is there. */
export function awayWords({ away, away_since, home, home_stopping }) {
  if (!away) return null;
  if (home_stopping) return `${plain(home ?? '')} is stopping`;
  const since = away_since ? `has been down since ${when(away_since)}` : 'is down';
  return `${plain(home ?? '')} ${since}`;
}

/** Above the transcript while the directory is on a node that is down or stopping. */
export class AwayNotice {
  constructor(workspace, mirror) {
    Object.assign(this, { workspace, mirror });
    this.element = h('p', { class: 'away-notice', role: 'status', hidden: true });
    this.heard = 0;
    this.stops = [
      mirror.on('workspace', (about) => {
        this.heard += 1;
        this.draw(about);
      }),
      mirror.on('snapshot', () => this.load()), // it may have changed while disconnected
    ];
  }

  async load() {
    const { heard } = this;
    const about = await this.workspace.about().catch(() => null);
    if (about && heard === this.heard) this.draw(about);
  }

  draw(about) {
    const wasAway = this.mirror.away !== null;
    this.mirror.away = about.away ? (about.home ?? '') : null;
    this.element.hidden = !about.away;
    replace(
      this.element,
      about.away && [
        `Node ${plain(about.home ?? '')}, which has this directory, `,
        about.home_stopping
          ? 'is stopping'
          : about.away_since
            ? ['has been down since ', h('time', { title: exactly(about.away_since) }, when(about.away_since))]
            : 'is down',
        '. Prompts are queued until it is back.',
      ],
    );
    if (wasAway && !about.away) say(`Node ${plain(about.home ?? '')} is back.`);
  }

  close() {
    this.stops.forEach((stop) => stop());
  }
}
