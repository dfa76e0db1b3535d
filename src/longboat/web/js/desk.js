// A workspace on the screen: its event stream, session list, conversation and side panels.

import { Workspace } from './api.js';
import { Changes } from './changes.js';
import { Clients } from './clients.js';
import { Conversation } from './conversation.js';
import { byId, h, replace } from './dom.js';
import { Jobs } from './jobs.js';
import { Mirror } from './mirror.js';
import { listenFor } from './notify.js';
import { Outbox } from './outbox.js';
import { Sessions } from './sessions.js';
import { Stream } from './stream.js';
import { Timeline } from './timeline.js';
import { Todos } from './todos.js';
import { Usage } from './usage.js';

export class Desk {
  constructor(workspace_id, client_id, { connection, go }) {
    this.workspace = new Workspace(workspace_id, client_id);
    this.go = go;
    this.mirror = new Mirror(this.workspace);
    this.sessions = new Sessions(this.workspace, this.mirror, go);
    this.outbox = new Outbox(this.workspace);
    const { mirror, outbox, sessions } = this;
    this.conversation = new Conversation(this.workspace, { mirror, outbox, sessions, go });
    const jobs = section('Jobs', null);
    this.panels = {
      todos: new Todos(this.workspace, this.mirror),
      changes: new Changes(this.workspace, this.mirror),
      timeline: new Timeline(this.workspace, this.mirror),
      usage: new Usage(this.workspace, this.mirror),
      clients: new Clients(this.workspace, this.mirror),
      jobs: new Jobs(this.workspace, this.mirror, jobs),
    };
    jobs.append(this.panels.jobs.element);
    replace(byId('nav-content'), this.sessions.element);
    replace(byId('main'), this.conversation.element);
    replace(
      byId('aside-content'),
      section('Plan', this.panels.todos.element),
      section('Changes', this.panels.changes.element),
      section('Timeline', this.panels.timeline.element),
      section('Usage', this.panels.usage.element),
      jobs,
      section('Connected', this.panels.clients.element),
    );
    this.stopNotifying = listenFor(this.mirror);
    this.stream = new Stream(this.workspace.eventsPath, {
      take: (type, data) => this.mirror.take(type, data),
      tell: (state, detail) => {
        connection.set(state, detail);
        if (state !== 'live') return;
        this.outbox.wake();
        this.panels.jobs.load(); // jobs of a killed server ended without an event
      },
    });
  }

  show(session_id) {
    if (this.shown && session_id === this.session_id) return this.conversation.composer.arrive();
    this.shown = true;
    this.session_id = session_id;
    this.sessions.show(session_id);
    for (const panel of Object.values(this.panels)) panel.show?.(session_id);
    if (this.conversation.session_id !== session_id || !session_id) this.conversation.show(session_id);
  }

  close() {
    this.stream.stop();
    this.mirror.close();
    this.outbox.close();
    this.stopNotifying();
    this.conversation.close();
    this.sessions.close();
    for (const panel of Object.values(this.panels)) panel.close();
  }
}

function section(title, content) {
  const id = `panel-${title.toLowerCase()}`;
  return h('section', { class: 'panel', 'aria-labelledby': id }, h('h2', { id }, title), content);
}
