// A workspace on the screen: its event stream, session list, conversation and side panels.

import { toast } from './a11y.js';
import { Workspace } from './api.js';
import { Changes } from './changes.js';
import { Clients } from './clients.js';
import { Conversation } from './conversation.js';
import { byId, h, replace } from './dom.js';
import { jumpTo } from './jump.js';
import { Jobs } from './jobs.js';
import { Mirror } from './mirror.js';
import { Outbox } from './outbox.js';
import { Review, reviewPath } from './review.js';
import { Sessions } from './sessions.js';
import { Stream } from './stream.js';
import { Timeline } from './timeline.js';
import { Todos } from './todos.js';
import { Tree } from './tree.js';
import { Usage } from './usage.js';

export class WorkspaceView {
  constructor(workspace_id, client_id, { connection, go }) {
    this.workspace = new Workspace(workspace_id, client_id);
    this.go = go;
    this.mirror = new Mirror(this.workspace);
    this.sessions = new Sessions(this.workspace, this.mirror, go);
    this.outbox = new Outbox(this.workspace);
    const { mirror, outbox, sessions } = this;
    this.conversation = new Conversation(this.workspace, { mirror, outbox, sessions, go });
    const insert = (text) => this.conversation.composer.insert(text);
    this.review = new Review(this.workspace, this.mirror, { insert, leave: () => go(this.session_id) });
    const jobs = section('Jobs', null);
    this.panels = {
      todos: new Todos(this.workspace, this.mirror),
      changes: new Changes(this.workspace, this.mirror, (path) => this.openReview(path)),
      tree: new Tree(this.workspace, insert),
      timeline: new Timeline(this.workspace, this.mirror),
      usage: new Usage(this.workspace, this.mirror),
      clients: new Clients(this.workspace, this.mirror),
      jobs: new Jobs(this.workspace, this.mirror, jobs),
    };
    jobs.append(this.panels.jobs.element);
    replace(byId('nav-content'), this.sessions.element);
    replace(byId('main'), this.conversation.element, this.review.element);
    replace(
      byId('aside-content'),
      section('Plan', this.panels.todos.element),
      section('Changes', this.panels.changes.element),
      section('Files', this.panels.tree.element),
      section('Timeline', this.panels.timeline.element),
      section('Usage', this.panels.usage.element),
      jobs,
      section('Connected', this.panels.clients.element),
    );
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

  /** `message_id`: the message to jump to, and the words to find in it. */
  show(session_id, message_id = null, words = '') {
    if (!this.shown || session_id !== this.session_id) this.turnTo(session_id);
    else if (!message_id) this.conversation.composer.arrive();
    if (message_id) this.jump(message_id, words);
  }

  async jump(message_id, words) {
    await this.showing;
    const { transcript } = this.conversation;
    if (transcript && !(await jumpTo(transcript, message_id, words)) && !transcript.closed)
      toast('This message is no longer in the session.');
  }

  turnTo(session_id) {
    this.shown = true;
    this.session_id = session_id;
    this.sessions.show(session_id);
    for (const panel of Object.values(this.panels)) panel.show?.(session_id);
    if (this.conversation.session_id !== session_id || !session_id) this.showing = this.conversation.show(session_id);
  }

  openReview(path) {
    this.review.wanted = path;
    location.hash = reviewPath(this.workspace.id, this.session_id);
  }

  /** Shows the review of the session's changes in place of the conversation, or hides it. */
  showReview(shown) {
    const isShown = Boolean(shown && this.session_id);
    const { composer, element, scroller } = this.conversation;
    const wasShown = element.hidden;
    if (isShown && !wasShown) this.scrolled = scroller.scrollTop;
    element.hidden = isShown;
    this.review.show(isShown ? this.session_id : null);
    if (isShown || !wasShown) return;
    scroller.scrollTop = this.scrolled;
    composer.arrive();
  }

  close() {
    this.review.close();
    this.stream.stop();
    this.mirror.close();
    this.outbox.close();
    this.conversation.close();
    this.sessions.close();
    for (const panel of Object.values(this.panels)) panel.close();
  }
}

function section(title, content) {
  const id = `panel-${title.toLowerCase()}`;
  return h('section', { class: 'panel', 'aria-labelledby': id }, h('h2', { id }, title), content);
}
