-- Named queries of the SQLite dialect. Each has a name and a purpose line; parameters are named.

-- name: epoch_raise
-- Begin a new start of the server: cursors of former starts are told apart by it.
UPDATE meta SET value = value + 1 WHERE key = 'epoch' RETURNING value;

-- name: last_seq
-- The newest seq ever handed out, deleted runs included.
SELECT seq FROM sqlite_sequence WHERE name = 'runs';

-- name: last_numbers
-- The newest event number of every workspace.
SELECT workspace_id, max(last) AS last FROM events GROUP BY workspace_id;

-- name: workspace_insert
-- Issue a workspace id for a path, for ever.
INSERT INTO workspaces (workspace_id, path, created_at) VALUES (:workspace_id, :path, :created_at);

-- name: workspace_by_id
-- One workspace.
SELECT * FROM workspaces WHERE workspace_id = :workspace_id;

-- name: workspace_by_path
-- The workspace of a resolved path.
SELECT * FROM workspaces WHERE path = :path;

-- name: workspaces_all
-- Every workspace ever opened here.
SELECT * FROM workspaces ORDER BY rowid;

-- name: workspaces_unfinished
-- The workspaces that have work left.
SELECT DISTINCT workspace_id FROM runs WHERE state != 'finished';

-- name: session_insert
-- A new session.
INSERT INTO sessions (session_id, workspace_id, parent_id, title, created_at, updated_at)
VALUES (:session_id, :workspace_id, :parent_id, :title, :created_at, :updated_at);

-- name: session_title
-- Rename a session.
UPDATE sessions SET title = :title, updated_at = :updated_at WHERE session_id = :session_id;

-- name: session_usage
-- Add what a step used.
UPDATE sessions SET input_tokens = input_tokens + :input_tokens, output_tokens = output_tokens + :output_tokens,
    cost = cost + :cost, updated_at = :updated_at
WHERE session_id = :session_id;

-- name: session_summary
-- From this message on the model sees the session.
UPDATE sessions SET summary_seq = :seq WHERE session_id = :session_id;

-- name: session_delete
-- A session with its messages and runs; its events stay in the log until they are too old.
DELETE FROM sessions WHERE session_id = :session_id;

-- name: session_by_id
-- One session of a workspace, and whether a run of it is active.
SELECT sessions.*, (SELECT count(*) FROM runs WHERE runs.session_id = sessions.session_id AND state = 'active') AS busy,
    (SELECT coalesce(max(seq), 0) FROM messages WHERE messages.session_id = sessions.session_id) AS last_message
FROM sessions WHERE session_id = :session_id AND workspace_id = :workspace_id;

-- name: sessions_page
-- Sessions of a workspace, newest first.
SELECT sessions.*, (SELECT count(*) FROM runs WHERE runs.session_id = sessions.session_id AND state = 'active') AS busy
FROM sessions WHERE workspace_id = :workspace_id AND place < :before ORDER BY place DESC LIMIT :limit;

-- name: message_put
-- A whole message: new, restructured, withdrawn or finished. Deltas after :number extend it.
INSERT INTO messages (message_id, session_id, run_id, seq, role, parts, model, provider, summary, created_at, finished_at, whole_at)
VALUES (:message_id, :session_id, :run_id, :seq, :role, :parts, :model, :provider, :summary, :created_at, :finished_at, :number)
ON CONFLICT (message_id) DO UPDATE SET parts = excluded.parts, model = excluded.model, provider = excluded.provider,
    finished_at = excluded.finished_at, whole_at = excluded.whole_at;

-- name: message_delete
-- Withdraw a folded prompt.
DELETE FROM messages WHERE message_id = :message_id;

-- name: messages_page
-- The transcript, oldest first.
SELECT * FROM messages WHERE session_id = :session_id AND seq > :after ORDER BY seq LIMIT :limit;

-- name: messages_open
-- Messages of a workspace that are still being written.
SELECT messages.* FROM messages JOIN sessions USING (session_id)
WHERE sessions.workspace_id = :workspace_id AND messages.finished_at IS NULL ORDER BY sessions.place, messages.seq;

-- name: message_deltas
-- What was streamed into a message after its last whole event.
SELECT frames FROM events WHERE message_id = :message_id AND first > :whole_at ORDER BY first;

-- name: run_insert
-- Accept a prompt.
INSERT INTO runs (seq, run_id, workspace_id, session_id, state, delivery, prompt, attachments, fingerprint, model, approve,
    accepted_at, client_id)
VALUES (:seq, :run_id, :workspace_id, :session_id, :state, :delivery, :prompt, :attachments, :fingerprint, :model, :approve,
    :accepted_at, :client_id);

-- name: run_update
-- A change in a run's life. A finished run never changes again.
UPDATE runs SET state = :state, outcome = :outcome, delivery = :delivery, prompt = :prompt,
    cancel_requested = :cancel_requested, folded_into = :folded_into, error = :error, tries = :tries,
    started_at = :started_at, finished_at = :finished_at
WHERE seq = :seq AND state != 'finished';

-- name: run_by_id
-- One run of a workspace.
SELECT * FROM runs WHERE workspace_id = :workspace_id AND run_id = :run_id;

-- name: runs_page
-- The ledger, newest first.
SELECT * FROM runs WHERE workspace_id = :workspace_id AND seq < :before AND (:state IS NULL OR state = :state)
ORDER BY seq DESC LIMIT :limit;

-- name: runs_page_session
-- The ledger of one session, newest first.
SELECT * FROM runs WHERE session_id = :session_id AND workspace_id = :workspace_id AND seq < :before
    AND (:state IS NULL OR state = :state)
ORDER BY seq DESC LIMIT :limit;

-- name: runs_unfinished
-- The work that is left in a workspace, in order of accept.
SELECT * FROM runs WHERE workspace_id = :workspace_id AND state != 'finished' ORDER BY seq;

-- name: event_append
-- One entry of the log.
INSERT INTO events (workspace_id, first, last, epoch, session_id, message_id, run_seq, written_s, frames)
VALUES (:workspace_id, :first, :last, :epoch, :session_id, :message_id, :run_seq, :written_s, :frames);

-- name: events_ahead
-- What the log has from a number on, and how large it is, without reading it.
SELECT first, last, session_id, length(frames) AS size FROM events WHERE workspace_id = :workspace_id AND last > :number
ORDER BY last LIMIT :limit;

-- name: events_between
-- A stretch of the log, of one session if it is named; what belongs to none is for all.
SELECT first, last, session_id, frames FROM events
WHERE workspace_id = :workspace_id AND last > :number AND last <= :up_to
    AND (:session_id IS NULL OR session_id IS NULL OR session_id = :session_id)
ORDER BY last;

-- name: event_at
-- The entry that holds a number.
SELECT first, last, epoch FROM events WHERE workspace_id = :workspace_id AND last >= :number ORDER BY last LIMIT 1;

-- name: event_newest
-- Where a workspace's log stands.
SELECT last, epoch FROM events WHERE workspace_id = :workspace_id ORDER BY last DESC LIMIT 1;

-- name: events_prune
-- Forget the oldest entries, but neither the newest of all nor what an open message still needs. Leaves no gap.
DELETE FROM events WHERE workspace_id = :workspace_id AND last <= (
    SELECT max(old.last) FROM events AS old
    WHERE old.workspace_id = :workspace_id AND old.written_s < :before_s
        AND old.last < (SELECT max(newest.last) FROM events AS newest WHERE newest.workspace_id = :workspace_id)
        AND old.last <= coalesce((
            SELECT min(messages.whole_at) FROM messages JOIN sessions USING (session_id)
            WHERE sessions.workspace_id = :workspace_id AND messages.finished_at IS NULL), old.last));

-- name: client_put
-- A client holds the workspace.
INSERT INTO clients (workspace_id, client_id, attached_at) VALUES (:workspace_id, :client_id, :attached_at)
ON CONFLICT DO NOTHING;

-- name: client_delete
-- It no longer does.
DELETE FROM clients WHERE workspace_id = :workspace_id AND client_id = :client_id;

-- name: clients_of
-- Who holds a workspace.
SELECT client_id, attached_at FROM clients WHERE workspace_id = :workspace_id ORDER BY attached_at, client_id;

-- name: clients_all
-- Who held what when the server ended.
SELECT workspace_id, client_id, attached_at FROM clients;
