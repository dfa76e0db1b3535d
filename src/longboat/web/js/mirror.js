// The workspace state from the event stream: sessions, runs, permissions, questions, clients, plans.
// Must not know how it is drawn.

import { History } from './history.js';

const MOST_NOTICES = 30;
const PASSING = new Set(['retrying', 'summarizing', 'loading']);

export class Mirror {
  constructor(workspace) {
    this.workspace = workspace;
    this.sessions = new Map();
    this.runs = new Map(); // including the finished ones that are known
    this.permissions = new Map();
    this.questions = new Map();
    this.clients = new Map();
    this.todos = new Map();
    this.jobs = new Map();
    this.notices = new Map(); // session → notices beside the answers, such as retries
    this.histories = new Map();
    this.topics = new Map();
    this.away = null; // the node with the directory, while it is down or stopping
  }

  /**
   * Subscribes to a topic: snapshot, sessions, lost (a session that cannot be read), runs, run_complete, asks,
   * answered, clients, todos, files, jobs, notices, config (the models changed), workspace (another server works on
   * it, or its directory is away).
   */
  on(topic, listener) {
    if (!this.topics.has(topic)) this.topics.set(topic, new Set());
    this.topics.get(topic).add(listener);
    return () => this.topics.get(topic).delete(listener);
  }

  tell(topic, what) {
    for (const listener of this.topics.get(topic) ?? []) listener(what);
  }

  history(session_id) {
    let found = this.histories.get(session_id);
    if (!found) {
      found = new History((before) => this.workspace.messages(session_id, before));
      this.histories.set(session_id, found);
    }
    return found;
  }

  close() {
    for (const history of this.histories.values()) history.close();
  }

  take(type, data) {
    if (type === 'snapshot') return this.restart(data.payload);
    if (type === 'resync') return;
    const { type: change, payload } = data.payload;
    HANDLERS[type]?.(this, change, payload, data.parent_session_id ?? null);
  }

  restart(snapshot) {
    const fill = (map, items, key) => {
      map.clear();
      for (const item of items) map.set(item[key], item);
    };
    for (const session of snapshot.sessions) this.sessions.set(session.id, session);
    const unfinished = new Set(snapshot.runs.map((run) => run.run_id));
    for (const run of this.runs.values()) {
      // It ended while we were disconnected; the list of runs has its outcome.
      if (run.state !== 'finished' && !unfinished.has(run.run_id)) this.runs.delete(run.run_id);
    }
    for (const run of snapshot.runs) this.runs.set(run.run_id, run);
    fill(this.permissions, snapshot.permissions, 'id');
    fill(this.questions, snapshot.questions, 'id');
    fill(this.clients, snapshot.clients, 'client_id');
    for (const [session_id, history] of this.histories) {
      // One that is loading for the first time must start again too.
      if (history.loaded || history.loading)
        history.restart().catch((error) => this.tell('lost', { session_id, error }));
    }
    for (const session_id of this.notices.keys()) this.settle(session_id);
    for (const topic of ['snapshot', 'sessions', 'runs', 'asks', 'clients', 'todos', 'files']) this.tell(topic, {});
  }

  /** The unfinished runs of a session, in order. */
  unfinished(session_id) {
    return [...this.runs.values()]
      .filter((run) => run.session_id === session_id && run.state !== 'finished')
      .sort((one, other) => one.seq - other.seq);
  }

  /** Forgets notices of a wait, such as retries, once it is over: an answer comes, or the run has ended. */
  settle(session_id) {
    const told = this.notices.get(session_id);
    if (!told?.some((notice) => PASSING.has(notice.type))) return;
    this.notices.set(
      session_id,
      told.filter((notice) => !PASSING.has(notice.type)),
    );
    this.tell('notices', {});
  }

  pendingAsks() {
    return [...this.permissions.values(), ...this.questions.values()];
  }

  /** Whether a permission or question belongs to this session or to one of its sub-agents. */
  concerns(ask, session_id) {
    return ask.session_id === session_id || ask.parent_session_id === session_id;
  }

  children(session_id) {
    return [...this.sessions.values()]
      .filter((session) => session.parent_id === session_id)
      .sort((one, other) => one.created_at.localeCompare(other.created_at));
  }
}

function ask(map) {
  return (mirror, _, payload) => {
    mirror[map].set(payload.id, payload);
    mirror.tell('asks', { asked: payload, kind: map });
  };
}

function answered(map) {
  return (mirror, _, payload) => {
    const before = mirror[map].get(payload.id);
    mirror[map].delete(payload.id);
    mirror.tell('answered', { ...before, ...payload, kind: map });
    mirror.tell('asks', {});
  };
}

function message(type) {
  return (mirror, change, payload) => mirror.histories.get(payload.session_id)?.apply(type, change, payload);
}

const delta = message('message_delta');

const HANDLERS = {
  message: message('message'),
  message_delta(mirror, change, payload) {
    delta(mirror, change, payload);
    mirror.settle(payload.session_id);
  },
  session(mirror, change, payload) {
    if (change === 'deleted') {
      mirror.sessions.delete(payload.id);
      mirror.histories.get(payload.id)?.close();
      mirror.histories.delete(payload.id);
    } else mirror.sessions.set(payload.id, payload);
    mirror.tell('sessions', { change, session: payload });
  },
  run(mirror, _, payload) {
    mirror.runs.set(payload.run_id, payload);
    mirror.tell('runs', payload);
  },
  run_complete(mirror, _, payload, parent) {
    const run = mirror.runs.get(payload.run_id);
    if (run && run.state !== 'finished') {
      mirror.runs.set(run.run_id, {
        ...run,
        state: 'finished',
        position: null,
        outcome: payload.outcome,
        error: payload.error || null,
        finished_at: new Date().toISOString(),
      });
    }
    mirror.settle(payload.session_id);
    mirror.tell('runs', payload);
    mirror.tell('run_complete', { ...payload, parent });
  },
  agent_event(mirror, _, payload) {
    if (payload.type === 'agent_finished') return;
    const told = mirror.notices.get(payload.session_id) ?? [];
    // A wait has one notice: the next attempt replaces the last one.
    const others = PASSING.has(payload.type) ? told.filter((notice) => !PASSING.has(notice.type)) : told;
    mirror.notices.set(payload.session_id, [...others, payload].slice(-MOST_NOTICES));
    mirror.tell('notices', payload);
  },
  permission_request: ask('permissions'),
  permission_notification: answered('permissions'),
  question_request: ask('questions'),
  question_notification: answered('questions'),
  file: (mirror, _, payload) => mirror.tell('files', payload),
  todo(mirror, _, payload) {
    mirror.todos.set(payload.session_id, payload.items);
    mirror.tell('todos', payload);
  },
  job(mirror, _, payload) {
    mirror.jobs.set(payload.id, payload);
    mirror.tell('jobs', payload);
  },
  config_changed: (mirror, _, payload) => mirror.tell('config', payload),
  workspace: (mirror, _, payload) => mirror.tell('workspace', payload),
  client(mirror, change, payload) {
    if (change === 'deleted') mirror.clients.delete(payload.client_id);
    else mirror.clients.set(payload.client_id, payload);
    mirror.tell('clients', { change, client: payload });
  },
};
