// Requests to the server. Knows paths and shapes; must not know how they are shown.

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The server could not be reached or is shutting down: the same call may succeed later. */
export class Unreachable extends Error {}

const READ_MS = 20_000; // until the response starts
const CHANGE_MS = 60_000;

const RETRY_FOR_MS = 30_000;
const PAUSE_MS = [250, 500, 1000, 2000];

export async function call(method, path, body, { signal, key } = {}) {
  const late = signal ? null : new AbortController();
  const options = { method, signal: signal ?? late.signal, cache: 'no-store', headers: { accept: 'application/json' } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers['content-type'] = 'application/json';
  }
  if (key) options.headers['idempotency-key'] = key;
  // A connection can die silently. Callers that pass a signal have their own timeout.
  const timer = late && setTimeout(() => late.abort(), method === 'GET' ? READ_MS : CHANGE_MS);
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError' && signal) throw error;
    throw new Unreachable('Cannot reach the server.');
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return response.status === 204 ? null : response.json();
  const told = await response.json().catch(() => ({}));
  if ([502, 503, 504].includes(response.status)) throw new Unreachable(told.message ?? 'The server is unavailable.');
  throw new Refused(
    response.status,
    told.code ?? '',
    told.message ?? `The server answered with status ${response.status}.`,
  );
}

/** A change that is tried again while the server is away. By its key, the server does it once. */
async function postWithRetry(path) {
  let key = `retry-${newId()}`;
  const end = performance.now() + RETRY_FOR_MS;
  for (let failures = 0; ; failures += 1) {
    try {
      return await call('POST', path, undefined, { key });
    } catch (error) {
      if (!(error instanceof Unreachable) || performance.now() >= end) throw error;
      if (failures === 0) key = `again-${key}`; // the server may have done it
    }
    const pause = PAUSE_MS[Math.min(failures, PAUSE_MS.length - 1)];
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

const query = (values) => {
  const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return set.length ? `?${new URLSearchParams(set)}` : '';
};

export const server = {
  health: () => call('GET', '/v1/health'),
  nodes: () => call('GET', '/v1/nodes'),
  workspaces: () => call('GET', '/v1/workspaces'),
  join: (path, client_id) => call('POST', '/v1/workspaces', { path, client_id }),
  stats: (days, workspace_id) =>
    call(
      'GET',
      `${workspace_id ? `/v1/workspaces/${encodeURIComponent(workspace_id)}` : '/v1'}/stats${query({ days })}`,
    ),
  inbox: (client_id, before, limit) => call('GET', `/v1/inbox${query({ client_id, before, limit })}`),
  inboxEventsPath: (client_id) => `/v1/inbox/events${query({ client_id, answers: true })}`,
  seen: (body) => call('POST', '/v1/inbox/seen', body),
  push: () => call('GET', '/v1/push'),
  subscribe: (body) => call('POST', '/v1/push/subscriptions', body),
  unsubscribe: (endpoint) => call('DELETE', `/v1/push/subscriptions${query({ endpoint })}`),
  search: (q, values) => call('GET', `/v1/search${query({ q, ...values })}`),
  providers: () => call('GET', '/v1/providers'),
  checkProvider: (id, entered) => call('POST', `/v1/providers/${encodeURIComponent(id)}/check`, entered),
  connectProvider: (id, wanted) => call('PUT', `/v1/providers/${encodeURIComponent(id)}`, wanted),
  forgetProvider: (id) => call('DELETE', `/v1/providers/${encodeURIComponent(id)}`),
  render: (items) => call('POST', '/v1/render', { items }),
};

/** A workspace's routes, called on behalf of one client. */
export class Workspace {
  constructor(id, client_id) {
    this.id = id;
    this.client_id = client_id;
    this.root = `/v1/workspaces/${encodeURIComponent(id)}`;
    this.asked = new Map(); // path → the answer on its way
  }

  get eventsPath() {
    return `${this.root}/events${query({ client_id: this.client_id, answers: true })}`;
  }

  at(session_id, rest = '') {
    return `${this.root}/sessions/${encodeURIComponent(session_id)}${rest}`;
  }

  about() {
    return call('GET', this.root);
  }

  /** Others see at once that this client left. */
  release() {
    return call('DELETE', `${this.root}${query({ client_id: this.client_id })}`);
  }

  sessions(values) {
    return call('GET', `${this.root}/sessions${query({ top: true, ...values })}`);
  }

  session(id) {
    return call('GET', this.at(id));
  }

  /** With an id that we choose: sending it again creates no second session. */
  createSession(session_id, signal) {
    return call('POST', `${this.root}/sessions`, { session_id }, { signal });
  }

  rename(id, title) {
    return call('PATCH', this.at(id), { title });
  }

  /** `marks`: pinned, archived. */
  mark(id, marks) {
    return call('PATCH', this.at(id), marks);
  }

  status(id) {
    return call('GET', `${this.root}/agent/sessions/${encodeURIComponent(id)}`);
  }

  remove(id) {
    return call('DELETE', this.at(id));
  }

  fork(id, message_id) {
    return call('POST', this.at(id, '/fork'), message_id ? { message_id } : {});
  }

  exportPath(id, format) {
    return this.at(id, `/export${query({ format })}`);
  }

  messages(id, before = '', limit = 60) {
    return call('GET', this.at(id, `/messages${query({ before, limit })}`));
  }

  todos(id) {
    return call('GET', this.at(id, '/todos'));
  }

  usage(id) {
    return call('GET', this.at(id, '/usage'));
  }

  timeline(id) {
    return call('GET', this.at(id, '/timeline'));
  }

  undo(id) {
    return call('POST', this.at(id, '/undo'));
  }

  redo(id) {
    return call('POST', this.at(id, '/redo'));
  }

  summarize(id) {
    return call('POST', this.at(id, '/summarize'), { client_id: this.client_id });
  }

  submit(prompt, signal) {
    return call('POST', `${this.root}/agent`, { ...prompt, client_id: this.client_id }, { signal });
  }

  shell(id, command, run_id, signal) {
    return call('POST', this.at(id, '/shell'), { command, run_id, client_id: this.client_id }, { signal });
  }

  runs(session_id, after, limit = 60) {
    return call('GET', `${this.root}/runs${query({ session_id, after, limit })}`);
  }

  /** For requests that tell others who made them. */
  get me() {
    return query({ client_id: this.client_id });
  }

  cancelRun(id, signal) {
    return call('POST', `${this.root}/runs/${encodeURIComponent(id)}/cancel${this.me}`, undefined, { signal });
  }

  /** What the run sent to models, without the bodies. */
  sentRequests(run_id) {
    return call('GET', `${this.root}/runs/${encodeURIComponent(run_id)}/requests`);
  }

  sentRequest(run_id, number) {
    return call('GET', `${this.root}/runs/${encodeURIComponent(run_id)}/requests/${number}`);
  }

  editRun(id, changes) {
    return call('PATCH', `${this.root}/runs/${encodeURIComponent(id)}`, changes);
  }

  cancelAll(session_id) {
    return postWithRetry(`${this.root}/agent/sessions/${encodeURIComponent(session_id)}/cancel${this.me}`);
  }

  clearQueue(session_id) {
    return postWithRetry(`${this.root}/agent/sessions/${encodeURIComponent(session_id)}/prompts/clear${this.me}`);
  }

  answerPermission(id, answer) {
    return call('POST', `${this.root}/permissions/${encodeURIComponent(id)}`, { ...answer, client_id: this.client_id });
  }

  answerQuestion(id, answer) {
    return call('POST', `${this.root}/questions/${encodeURIComponent(id)}`, { answer, client_id: this.client_id });
  }

  models() {
    return call('GET', `${this.root}/models`);
  }

  welcome() {
    return call('GET', `${this.root}/welcome`);
  }

  skills() {
    return call('GET', `${this.root}/skills`);
  }

  search(q, signal) {
    return call('GET', `${this.root}/search${query({ q, limit: 20 })}`, undefined, { signal });
  }

  /** `what` has: stat (without diffs), or path (only this file). Who asks while it is being asked gets the same. */
  changes(session_id, what) {
    const path = `${this.root}/changes${query({ session_id, ...what })}`;
    if (!this.asked.has(path)) {
      const answer = call('GET', path);
      this.asked.set(path, answer);
      answer.catch(() => {}).finally(() => this.asked.delete(path));
    }
    return this.asked.get(path);
  }

  revert(id, change) {
    return call('POST', this.at(id, '/revert'), { ...change, client_id: this.client_id });
  }

  redoRevert(id, revert_id) {
    const path = this.at(id, `/reverts/${encodeURIComponent(revert_id)}/redo`);
    return call('POST', path, { client_id: this.client_id });
  }

  files(path) {
    return call('GET', `${this.root}/files${query({ path })}`);
  }

  file(path) {
    return call('GET', `${this.root}/file${query({ path })}`);
  }

  jobs() {
    return call('GET', `${this.root}/jobs`);
  }

  job(id) {
    return call('GET', `${this.root}/jobs/${encodeURIComponent(id)}`);
  }

  killJob(id) {
    return call('POST', `${this.root}/jobs/${encodeURIComponent(id)}/kill${query({ client_id: this.client_id })}`);
  }
}

/** A new id. randomUUID exists only on https and on localhost. */
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
