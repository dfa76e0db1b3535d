-- Named queries of the PostgreSQL dialect. Each has a name and a purpose line; parameters are named.

-- name: epoch_raise
-- Begin a new start of the server: it distinguishes the cursors of former starts. Partly random: a database that was
-- restored or failed over may count the same numbers again, and they must not be the same epochs.
SELECT (nextval('epochs') << 20) + floor(random() * (1 << 20))::bigint;

-- name: seqs_reserve
-- The first of the next thousand seqs.
SELECT nextval('run_seqs') AS first;

-- name: commit_count
-- Tells, if the answer to a commit is lost, whether it was done.
UPDATE writers SET commits = :commits WHERE node = :node;

-- name: last_numbers
-- The newest event number of every workspace.
SELECT workspace_id, max(last) AS last FROM events GROUP BY workspace_id;

-- name: workspace_insert
-- Issue a workspace id for a path, for ever.
INSERT INTO workspaces (workspace_id, home, path, created_at) VALUES (:workspace_id, :home, :path, :created_at);

-- name: workspace_by_id
-- One workspace.
SELECT * FROM workspaces WHERE workspace_id = :workspace_id;

-- name: workspace_by_path
-- The workspace of a resolved path; of that home, if one is named.
SELECT * FROM workspaces WHERE path = :path AND (:home::text IS NULL OR home = :home) ORDER BY place LIMIT 1;

-- name: workspaces_all
-- Every workspace ever opened here.
SELECT * FROM workspaces ORDER BY place;

-- name: workspaces_activity
-- When each workspace was last worked in, how much waits for somebody there, and whether a run is active.
SELECT workspace_id, (SELECT max(updated_at) FROM sessions WHERE sessions.workspace_id = workspaces.workspace_id) AS used_at,
    (SELECT count(*) FROM permissions WHERE permissions.workspace_id = workspaces.workspace_id AND state = 'pending')
    + (SELECT count(*) FROM questions WHERE questions.workspace_id = workspaces.workspace_id AND state = 'pending') AS waiting,
    EXISTS (SELECT 1 FROM runs WHERE runs.workspace_id = workspaces.workspace_id AND state = 'active') AS busy
FROM workspaces;

-- name: workspaces_unfinished
-- The workspaces that have work left.
SELECT DISTINCT workspace_id FROM runs WHERE state != 'finished';

-- name: session_insert
-- A new session.
INSERT INTO sessions (session_id, workspace_id, parent_id, parent_call_id, title, folded_title, created_at, updated_at)
VALUES (:session_id, :workspace_id, :parent_id, :parent_call_id, :title, :folded_title, :created_at, :updated_at);

-- name: session_title
-- Rename a session.
UPDATE sessions SET title = :title, folded_title = :folded_title, updated_at = :updated_at WHERE session_id = :session_id;

-- name: session_mark
-- Pin or archive a session, or neither any more.
UPDATE sessions SET pinned = :pinned, archived = :archived WHERE session_id = :session_id;

-- name: session_usage
-- Add what a step used.
UPDATE sessions SET input_tokens = input_tokens + :input_tokens, output_tokens = output_tokens + :output_tokens,
    cost = cost + :cost, unpriced_tokens = unpriced_tokens + :unpriced_tokens, context_tokens = :context_tokens,
    updated_at = :updated_at
WHERE session_id = :session_id;

-- name: session_outcome
-- How its last turn ended.
UPDATE sessions SET last_outcome = :last_outcome WHERE session_id = :session_id;

-- name: session_touch
-- It is being worked on.
UPDATE sessions SET updated_at = :updated_at WHERE session_id = :session_id;

-- name: session_summary
-- From this message on the model sees the session.
UPDATE sessions SET summary_seq = :seq WHERE session_id = :session_id;

-- name: session_view
-- The model sees the session from its newest summary on that stands.
UPDATE sessions SET summary_seq = coalesce((
    SELECT max(seq) FROM messages WHERE session_id = :session_id AND summary AND undone = 0), 0)
WHERE session_id = :session_id;

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

-- name: sessions_found
-- Sessions of a workspace, newest first: those whose title is like this, and without those of sub-agents if so wished.
SELECT sessions.*, (SELECT count(*) FROM runs WHERE runs.session_id = sessions.session_id AND state = 'active') AS busy
FROM sessions WHERE workspace_id = :workspace_id AND place < :before AND (:pinned::boolean OR NOT pinned)
    AND (:like::text IS NULL OR folded_title LIKE :like::text ESCAPE '\') AND (NOT :top::boolean OR parent_id IS NULL)
    AND (:archived::text = 'true' OR archived = (:archived::text = 'only'))
ORDER BY place DESC LIMIT :limit;

-- name: sessions_pinned
-- The same of those that are pinned, which an index has by themselves.
SELECT sessions.*, (SELECT count(*) FROM runs WHERE runs.session_id = sessions.session_id AND state = 'active') AS busy
FROM sessions WHERE workspace_id = :workspace_id AND place < :before AND pinned
    AND (:like::text IS NULL OR folded_title LIKE :like::text ESCAPE '\') AND (NOT :top::boolean OR parent_id IS NULL)
    AND (:archived::text = 'true' OR archived = (:archived::text = 'only'))
ORDER BY place DESC LIMIT :limit;

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
SELECT * FROM messages WHERE session_id = :session_id AND seq > :after AND undone = 0 ORDER BY seq LIMIT :limit;

-- name: messages_before
-- The newest messages before a place in the transcript, newest first.
SELECT * FROM messages WHERE session_id = :session_id AND seq < :before AND undone = 0 ORDER BY seq DESC LIMIT :limit;

-- name: messages_close
-- Nothing more is written into the messages of a session that is damaged.
UPDATE messages SET finished_at = :finished_at WHERE session_id = :session_id AND finished_at IS NULL;

-- name: messages_open
-- Messages of a workspace that are still being written.
SELECT messages.* FROM messages JOIN sessions USING (session_id)
WHERE sessions.workspace_id = :workspace_id AND messages.finished_at IS NULL ORDER BY sessions.place, messages.seq;

-- name: message_deltas
-- What was streamed into a message after its last whole event.
SELECT session_id, first, last, frames FROM events WHERE message_id = :message_id AND first > :whole_at ORDER BY first;

-- name: run_insert
-- Accept a prompt; if its session is idle, it starts at once.
INSERT INTO runs (seq, run_id, workspace_id, session_id, state, delivery, prompt, attachments, fingerprint, model, approve,
    options, parent_run_id, parent_session_id, accepted_at, started_at, client_id)
VALUES (:seq, :run_id, :workspace_id, :session_id, :state, :delivery, :prompt, :attachments, :fingerprint, :model, :approve,
    :options, :parent_run_id, :parent_session_id, :accepted_at, :started_at, :client_id);

-- name: run_update
-- A change in a run's life. A finished run never changes again.
UPDATE runs SET state = :state, outcome = :outcome, delivery = :delivery, prompt = :prompt,
    cancel_requested = :cancel_requested, canceled_by = :canceled_by, folded_into = :folded_into, error = :error,
    tries = :tries, started_at = :started_at, finished_at = :finished_at, waited_s = :waited_s
WHERE seq = :seq AND state != 'finished';

-- name: run_give_up
-- End a run of a session that is damaged; one that has an outcome keeps it.
UPDATE runs SET state = 'finished', outcome = coalesce(outcome, 'error'), error = coalesce(error, :error),
    finished_at = coalesce(finished_at, :finished_at)
WHERE seq = :seq;

-- name: runs_without_end
-- Unfinished runs, and how many terminal events each has: one that has any is only damaged.
SELECT *, (SELECT count(*) FROM events WHERE run_seq = runs.seq) AS terminals
FROM runs WHERE workspace_id = :workspace_id AND state != 'finished' ORDER BY seq;

-- name: run_by_id
-- One run of a workspace.
SELECT * FROM runs WHERE workspace_id = :workspace_id AND run_id = :run_id;

-- name: runs_page
-- The ledger, newest first.
SELECT * FROM runs WHERE workspace_id = :workspace_id AND seq < :before AND (:state::text IS NULL OR state = :state::text)
ORDER BY seq DESC LIMIT :limit;

-- name: runs_page_session
-- The ledger of one session, newest first.
SELECT * FROM runs WHERE session_id = :session_id AND workspace_id = :workspace_id AND seq < :before
    AND (:state::text IS NULL OR state = :state::text)
ORDER BY seq DESC LIMIT :limit;

-- name: runs_unfinished
-- The work that is left in a workspace, in order of accept, and which queued runs a cancel covers.
SELECT runs.*, cancel_covers.last_seq IS NOT NULL AS covered, cancel_covers.canceled_by AS covered_by
FROM runs LEFT JOIN cancel_covers ON runs.state = 'queued' AND cancel_covers.session_id = runs.session_id
    AND runs.seq BETWEEN cancel_covers.first_seq AND cancel_covers.last_seq
WHERE runs.workspace_id = :workspace_id AND runs.state != 'finished' ORDER BY runs.seq;

-- name: cancel_cover_insert
-- Cancel a stretch of a session's queue.
INSERT INTO cancel_covers (session_id, first_seq, last_seq, canceled_by)
VALUES (:session_id, :first_seq, :last_seq, :canceled_by);

-- name: cancel_covers_delete
-- All that cancels have covered in a session is finished.
DELETE FROM cancel_covers WHERE session_id = :session_id;

-- name: cancel_key_insert
-- A cancel with its key and its answer.
INSERT INTO cancel_keys (session_id, key, canceled, made_s) VALUES (:session_id, :key, :canceled, :made_s);

-- name: cancel_by_key
-- What a cancel with this key was answered.
SELECT canceled FROM cancel_keys WHERE session_id = :session_id AND key = :key;

-- name: cancel_keys_prune
-- Forget the keys of cancels that nobody sends again.
DELETE FROM cancel_keys WHERE made_s < :before_s;

-- name: event_append
-- Entries of the log, of one unit or of many: each parameter has one value for each entry.
INSERT INTO events (workspace_id, first, last, epoch, session_id, parent_session_id, message_id, run_seq, written_s,
    frames)
SELECT * FROM unnest(:workspace_id::text[], :first::bigint[], :last::bigint[], :epoch::bigint[], :session_id::text[],
    :parent_session_id::text[], :message_id::text[], :run_seq::bigint[], :written_s::bigint[], :frames::bytea[]);

-- name: event_append_one
-- The same for a single entry, as most units have: a quarter less to do than with arrays of one value each.
INSERT INTO events (workspace_id, first, last, epoch, session_id, parent_session_id, message_id, run_seq, written_s,
    frames)
VALUES (:workspace_id, :first, :last, :epoch, :session_id, :parent_session_id, :message_id, :run_seq, :written_s,
    :frames);

-- name: events_ahead
-- What the log has from a number on, and how large it is, without reading it.
SELECT first, last, session_id, parent_session_id, length(frames) AS size FROM events
WHERE workspace_id = :workspace_id AND last > :number
ORDER BY last LIMIT :limit;

-- name: events_between
-- A stretch of the log, of one session and its sub-agents if it is named; what belongs to none is for all.
SELECT first, last, epoch, frames FROM events
WHERE workspace_id = :workspace_id AND last > :number AND last <= :up_to
    AND (:session_id::text IS NULL OR session_id IS NULL OR :session_id::text IN (session_id, parent_session_id))
ORDER BY last;

-- name: event_at
-- The entry that holds a number.
SELECT first, last, epoch FROM events WHERE workspace_id = :workspace_id AND last >= :number ORDER BY last LIMIT 1;

-- name: event_newest
-- Where a workspace's log stands.
SELECT last, epoch FROM events WHERE workspace_id = :workspace_id ORDER BY last DESC LIMIT 1;

-- name: event_written
-- The entry behind a number, and when it was written.
SELECT last, written_s FROM events WHERE workspace_id = :workspace_id AND last > :number ORDER BY last LIMIT 1;

-- name: events_needed
-- What follows this number is still needed by a message that is being written.
SELECT min(messages.whole_at) AS number FROM messages JOIN sessions USING (session_id)
WHERE sessions.workspace_id = :workspace_id AND messages.finished_at IS NULL;

-- name: events_oldest
-- The first and the last of the oldest entries: up to a number, and at most a given count of them.
SELECT min(oldest.last) AS first, max(oldest.last) AS last FROM (
    SELECT last FROM events WHERE workspace_id = :workspace_id AND last <= :up_to ORDER BY last LIMIT :most) AS oldest;

-- name: events_prune
-- Forget a stretch of the log.
DELETE FROM events WHERE workspace_id = :workspace_id AND last BETWEEN :first AND :last;

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
-- Who holds what, or held it when the server ended.
SELECT workspace_id, client_id, attached_at FROM clients ORDER BY attached_at, client_id;

-- name: permission_put
-- An ask, pending, answered or withdrawn; only a pending one can still change.
INSERT INTO permissions (permission_id, workspace_id, session_id, run_id, state, body)
VALUES (:id, :workspace_id, :session_id, :run_id, :state, :body)
ON CONFLICT (permission_id) DO UPDATE SET state = excluded.state, body = excluded.body
WHERE permissions.state = 'pending';

-- name: permission_by_id
-- One ask of a workspace.
SELECT session_id, permission_id AS ask_id, body FROM permissions WHERE permission_id = :id AND workspace_id = :workspace_id;

-- name: permissions_pending
-- What waits for somebody's word, oldest first.
SELECT session_id, permission_id AS ask_id, body FROM permissions WHERE workspace_id = :workspace_id AND state = 'pending' ORDER BY place;

-- name: permissions_withdraw
-- Nobody can answer what a damaged session asks.
UPDATE permissions SET state = 'withdrawn' WHERE session_id = :session_id AND state = 'pending';

-- name: question_put
-- A question, pending, answered or withdrawn; only a pending one can still change.
INSERT INTO questions (question_id, workspace_id, session_id, run_id, state, body)
VALUES (:id, :workspace_id, :session_id, :run_id, :state, :body)
ON CONFLICT (question_id) DO UPDATE SET state = excluded.state, body = excluded.body
WHERE questions.state = 'pending';

-- name: question_by_id
-- One question of a workspace.
SELECT session_id, question_id AS ask_id, body FROM questions WHERE question_id = :id AND workspace_id = :workspace_id;

-- name: questions_pending
-- What waits for an answer, oldest first.
SELECT session_id, question_id AS ask_id, body FROM questions WHERE workspace_id = :workspace_id AND state = 'pending' ORDER BY place;

-- name: question_answered_last
-- The question of a run that was answered last.
SELECT session_id, question_id AS ask_id, body FROM questions
WHERE workspace_id = :workspace_id AND run_id = :run_id AND state = 'answered' ORDER BY place DESC LIMIT 1;

-- name: questions_withdraw
-- Nobody can answer what a damaged session asks.
UPDATE questions SET state = 'withdrawn' WHERE session_id = :session_id AND state = 'pending';

-- name: inbox_page
-- The inbox as a person sees it, newest first.
SELECT inbox_items.*, EXISTS (
    SELECT 1 FROM inbox_seen WHERE inbox_seen.person = :person AND inbox_seen.place = inbox_items.place) AS seen
FROM inbox_items WHERE place < :before ORDER BY place DESC LIMIT :limit;

-- name: inbox_some
-- Some of the inbox as a person sees it, newest first.
SELECT inbox_items.*, EXISTS (
    SELECT 1 FROM inbox_seen WHERE inbox_seen.person = :person AND inbox_seen.place = inbox_items.place) AS seen
FROM inbox_items WHERE place IN (SELECT json_array_elements_text(:places::text::json)::bigint) ORDER BY place DESC;

-- name: inbox_after
-- What came into the inbox after a place, oldest first.
SELECT inbox_items.*, false AS seen FROM inbox_items WHERE place > :after ORDER BY place LIMIT :limit;

-- name: inbox_waiting
-- Which of these places still wait for an answer.
SELECT place FROM inbox WHERE kind IN ('permission', 'question') AND place IN (SELECT json_array_elements_text(:places::text::json)::bigint);

-- name: inbox_newest
-- The newest place that was ever given in the inbox.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS seq FROM inbox_place_seq;

-- name: inbox_marks
-- All of the inbox, with what can change about an item.
SELECT place, session_title, EXISTS (
    SELECT 1 FROM inbox_seen WHERE inbox_seen.person = :person AND inbox_seen.place = inbox_items.place) AS seen
FROM inbox_items;

-- name: inbox_counts
-- How much waits for an answer, and how many runs have ended unseen by a person.
SELECT (SELECT count(*) FROM permissions WHERE state = 'pending')
    + (SELECT count(*) FROM questions WHERE state = 'pending') AS waiting,
    (SELECT count(*) FROM inbox WHERE kind IN ('failed', 'finished') AND NOT EXISTS (
        SELECT 1 FROM inbox_seen WHERE inbox_seen.person = :person AND inbox_seen.place = inbox.place)) AS unseen;

-- name: inbox_see
-- A person has seen these items. What is remembered is bounded, however many names people use.
INSERT INTO inbox_seen (person, place)
SELECT :person::text, place FROM inbox
WHERE (place <= :up_to::bigint OR place IN (SELECT json_array_elements_text(:places::text::json)::bigint))
    AND (SELECT count(*) FROM inbox_seen) < :most::bigint
ON CONFLICT DO NOTHING;

-- name: inbox_prune
-- Forget runs that ended long ago, and all but the newest ones.
DELETE FROM inbox WHERE kind IN ('failed', 'finished') AND (added_s < :before_s OR place <= (
    SELECT place FROM inbox WHERE kind IN ('failed', 'finished') ORDER BY place DESC LIMIT 1 OFFSET :most));

-- name: inbox_drop_ended
-- Take asks out that do not wait, as a damaged or restored store may have them.
DELETE FROM inbox WHERE ask_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM permissions WHERE permission_id = ask_id AND state = 'pending')
    AND NOT EXISTS (SELECT 1 FROM questions WHERE question_id = ask_id AND state = 'pending');

-- name: inbox_add_waiting
-- Put asks in that wait and are missing.
INSERT INTO inbox (kind, workspace_id, session_id, run_id, ask_id, added_s)
SELECT 'permission', workspace_id, session_id, run_id, permission_id, :now_s::bigint FROM permissions
    WHERE state = 'pending' AND permission_id NOT IN (SELECT ask_id FROM inbox WHERE ask_id IS NOT NULL)
UNION ALL
SELECT 'question', workspace_id, session_id, run_id, question_id, :now_s::bigint FROM questions
    WHERE state = 'pending' AND question_id NOT IN (SELECT ask_id FROM inbox WHERE ask_id IS NOT NULL);

-- name: inbox_leave
-- A turn was undone: that its runs have ended is no longer news.
DELETE FROM inbox WHERE session_id = :session_id AND ask_id IS NULL
    AND run_id IN (SELECT json_array_elements_text(:run_ids::text::json));

-- name: push_put
-- A browser wants to be told; the same one again brings its new keys.
INSERT INTO push_subscriptions (endpoint, person, p256dh, auth, created_at)
VALUES (:endpoint, :person, :p256dh, :auth, :created_at)
ON CONFLICT (endpoint) DO UPDATE SET person = excluded.person, p256dh = excluded.p256dh, auth = excluded.auth;

-- name: push_trim
-- Forget the oldest subscriptions if there are too many.
DELETE FROM push_subscriptions WHERE endpoint IN (
    SELECT endpoint FROM push_subscriptions ORDER BY created_at DESC, endpoint OFFSET :most);

-- name: push_delete
-- A browser no longer wants to be told, or is gone.
DELETE FROM push_subscriptions WHERE endpoint = :endpoint;

-- name: push_all
-- The browsers that want to be told.
SELECT endpoint, person, p256dh, auth FROM push_subscriptions ORDER BY created_at, endpoint;

-- name: grant_put
-- A rule for the rest of a session.
INSERT INTO grants (session_id, rule) VALUES (:session_id, :rule) ON CONFLICT DO NOTHING;

-- name: grants_of
-- What was granted in a session.
SELECT session_id, rule FROM grants WHERE session_id = :session_id;

-- name: read_put
-- What a session has seen of a file.
INSERT INTO reads (session_id, path, digest) VALUES (:session_id, :path, :digest)
ON CONFLICT (session_id, path) DO UPDATE SET digest = excluded.digest;

-- name: read_of
-- What a session last saw of a file.
SELECT digest FROM reads WHERE session_id = :session_id AND path = :path;

-- name: change_expect
-- A file change of a turn, or of a person, that is about to be made.
INSERT INTO file_changes (session_id, run_id, path, before, after, pending, author, remark, revert_id, redoes)
VALUES (:session_id, :run_id, :path, :before, :after, :pending, :author, :remark, :revert_id, :redoes);

-- name: change_made
-- A file change that was expected is made.
UPDATE file_changes SET pending = NULL WHERE pending = :pending;

-- name: change_forget
-- A file change that was expected was not made.
DELETE FROM file_changes WHERE pending = :pending;

-- name: changes_of_run
-- The file changes that a run made here, first to last.
SELECT change_id, session_id, run_id, path, before, after, pending, author, remark, revert_id, redoes, imported
FROM file_changes
WHERE session_id = :session_id AND run_id = :run_id AND NOT imported AND pending IS NULL AND author IS NULL
ORDER BY change_id;

-- name: changes_by_people
-- The changes that people made to a session's files after a change, first to last.
SELECT change_id, session_id, run_id, path, before, after, pending, author, remark, revert_id, redoes, imported
FROM file_changes
WHERE session_id = :session_id AND author IS NOT NULL AND pending IS NULL AND change_id > :after ORDER BY change_id;

-- name: reverts_of
-- What people undid and redid of the turns that stand, and the run whose prompt told the model, if that stands.
SELECT session_id, path, remark, revert_id, redoes, CASE WHEN told_run IN (
    SELECT run_id FROM messages WHERE session_id = :session_id AND undone = 0) THEN told_run END AS told_run
FROM file_changes
WHERE session_id = :session_id AND author IS NOT NULL AND pending IS NULL AND EXISTS (
    SELECT 1 FROM file_changes AS ours
    WHERE ours.session_id = :session_id AND ours.path = file_changes.path AND ours.change_id < file_changes.change_id
        AND ours.author IS NULL AND ours.run_id IN (
            SELECT run_id FROM messages WHERE session_id = :session_id AND undone = 0))
ORDER BY change_id;

-- name: reverts_tell
-- A run's prompt tells the model what people undid or redid and no other prompt told.
UPDATE file_changes SET told_run = :run_id
WHERE session_id = :session_id AND author IS NOT NULL AND pending IS NULL AND (told_run IS NULL OR told_run NOT IN (
    SELECT messages.run_id FROM messages WHERE messages.session_id = :session_id AND messages.undone = 0));

-- name: changes_unsettled
-- All changes of those files of which one was expected and never spoken of again, first to last.
SELECT change_id, session_id, run_id, path, before, after, pending, author, remark, revert_id, redoes, imported
FROM file_changes
WHERE session_id = :session_id AND NOT imported AND path IN (
    SELECT expected.path FROM file_changes AS expected
    WHERE expected.session_id = :session_id AND expected.pending IS NOT NULL)
ORDER BY change_id;

-- name: todos_put
-- The plan of a session.
INSERT INTO todos (session_id, items) VALUES (:session_id, :items)
ON CONFLICT (session_id) DO UPDATE SET items = excluded.items;

-- name: todos_of
-- The plan of a session.
SELECT session_id, items FROM todos WHERE session_id = :session_id;

-- name: surroundings_put
-- What a run tells the model about the date and the repository.
INSERT INTO surroundings (session_id, run_id, text) VALUES (:session_id, :run_id, :text)
ON CONFLICT (session_id, run_id) DO UPDATE SET text = excluded.text;

-- name: surroundings_of
-- What the model was told in a session, first to last.
SELECT run_id, text FROM surroundings WHERE session_id = :session_id ORDER BY place;

-- name: request_piece_put
-- Keep a piece of a request. That it is still used is noted at most once a day.
INSERT INTO request_pieces (session_id, digest, used_s, content) VALUES (:session_id, :digest, :used_s, :content)
ON CONFLICT (session_id, digest) DO UPDATE SET used_s = excluded.used_s WHERE request_pieces.used_s < excluded.used_s - 86400;

-- name: request_add
-- A request is sent to a model.
INSERT INTO model_requests (request_id, session_id, run_id, sent_s, frame, same, messages, facts)
VALUES (:request_id, :session_id, :run_id, :sent_s, :frame, :same, :messages, :facts);

-- name: request_end
-- The model has answered a request, or failed.
UPDATE model_requests SET answer = :answer WHERE request_id = :request_id;

-- name: requests_of
-- What was sent to models in a run, first to last.
SELECT request_id, session_id, run_id, frame, same, messages, facts, answer FROM model_requests
WHERE session_id = :session_id AND run_id = :run_id ORDER BY place;

-- name: request_piece
-- One piece of a session's requests.
SELECT content FROM request_pieces WHERE session_id = :session_id AND digest = :digest;

-- name: requests_by_age
-- Requests behind a place, in order, and when they were sent.
SELECT place, sent_s FROM model_requests WHERE place > :after ORDER BY place LIMIT :most;

-- name: requests_prune
-- Forget the requests of runs with one among these places that sent nothing for long. They build on each other: all go.
DELETE FROM model_requests WHERE (session_id, run_id) IN (
        SELECT old.session_id, old.run_id FROM model_requests AS old WHERE old.place > :after AND old.place <= :up_to)
    AND NOT EXISTS (
        SELECT 1 FROM model_requests AS newer WHERE newer.session_id = model_requests.session_id
            AND newer.run_id = model_requests.run_id AND newer.sent_s >= :before_s);

-- name: request_pieces_old
-- Pieces behind a place that no request had for long.
SELECT place FROM request_pieces WHERE place > :after AND used_s < :before_s ORDER BY place LIMIT :most;

-- name: request_pieces_prune
-- Forget those of these pieces that no request had since.
DELETE FROM request_pieces WHERE place = ANY(ARRAY(SELECT json_array_elements_text(:places::text::json)::bigint)) AND used_s < :before_s;

-- name: messages_undo
-- Take the end of the transcript out of it.
UPDATE messages SET undone = :mark WHERE session_id = :session_id AND undone = 0 AND seq >= :from_seq;

-- name: messages_redo
-- Bring an undone turn back.
UPDATE messages SET undone = 0 WHERE session_id = :session_id AND undone = :mark;

-- name: messages_undone
-- The turns that can be redone, the last undone first.
SELECT * FROM messages WHERE session_id = :session_id AND undone != 0 ORDER BY undone, seq;

-- name: turns_undone
-- How many turns can be redone.
SELECT count(DISTINCT undone) AS turns FROM messages WHERE session_id = :session_id AND undone != 0;

-- name: messages_forget
-- A new prompt ends what could be redone.
DELETE FROM messages WHERE session_id = :session_id AND undone != 0;

-- name: changes_standing
-- The file changes of a session, or of one run of it, first to last; without those that were undone.
SELECT change_id, session_id, run_id, path, before, after, pending, author, remark, revert_id, redoes, imported
FROM file_changes
WHERE session_id = :session_id AND pending IS NULL AND (:run_id::text IS NULL OR run_id = :run_id::text)
AND (:path::text IS NULL OR path = :path::text) AND run_id IN (
    SELECT messages.run_id FROM messages WHERE messages.session_id = :session_id AND messages.undone = 0)
ORDER BY change_id;

-- name: change_import
-- A file change that came with an imported session.
INSERT INTO file_changes (session_id, run_id, path, before, after, imported)
VALUES (:session_id, :run_id, :path, :before, :after, true);

-- name: run_clients
-- Who submitted the runs of a session.
SELECT run_id, client_id FROM runs WHERE session_id = :session_id AND client_id IS NOT NULL;

-- name: run_import
-- A finished run that came with an imported session.
INSERT INTO runs (seq, run_id, workspace_id, session_id, state, outcome, delivery, prompt, attachments, fingerprint, approve,
    cancel_requested, canceled_by, folded_into, error, accepted_at, started_at, finished_at, waited_s, client_id,
    parent_run_id, parent_session_id, imported)
VALUES (:seq, :run_id, :workspace_id, :session_id, 'finished', :outcome, :delivery, :prompt, '\x5b5d', '', 'ask',
    :cancel_requested, :canceled_by, :folded_into, :error, :accepted_at, :started_at, :finished_at, :waited_s, :client_id,
    :parent_run_id, :parent_session_id, true);

-- name: runs_of_session
-- All runs of a session, in order of accept.
SELECT * FROM runs WHERE session_id = :session_id ORDER BY seq;

-- name: session_whole
-- A session as it is copied, with its summary mark.
SELECT sessions.*, false AS busy FROM sessions WHERE session_id = :session_id AND workspace_id = :workspace_id;

-- name: sessions_of_parent
-- The sub-agents' sessions of a session.
SELECT session_id FROM sessions WHERE parent_id = :parent_id AND workspace_id = :workspace_id ORDER BY place;

-- name: session_family
-- A session, and those of its sub-agents that have work left.
SELECT sessions.*, (SELECT count(*) FROM runs WHERE runs.session_id = sessions.session_id AND state = 'active') AS busy
FROM sessions WHERE workspace_id = :workspace_id AND (session_id = :session_id OR (
    parent_id = :session_id AND EXISTS (
        SELECT 1 FROM runs WHERE runs.session_id = sessions.session_id AND runs.state != 'finished')))
ORDER BY place;

-- name: reads_copy
-- A fork has seen the files that its origin has seen.
INSERT INTO reads (session_id, path, digest) SELECT :session_id::text, path, digest FROM reads WHERE session_id = :origin;

-- name: spending_add
-- What the model requests of a run used.
INSERT INTO spendings (workspace_id, session_id, run_id, day, model, requests, input_tokens, output_tokens, cost,
    unpriced_tokens)
VALUES (:workspace_id, :session_id, :run_id, :day, :model, 1, :input_tokens, :output_tokens, :cost, :unpriced_tokens)
ON CONFLICT (workspace_id, day, session_id, run_id, model) DO UPDATE SET requests = spendings.requests + 1,
    input_tokens = spendings.input_tokens + excluded.input_tokens,
    output_tokens = spendings.output_tokens + excluded.output_tokens, cost = spendings.cost + excluded.cost,
    unpriced_tokens = spendings.unpriced_tokens + excluded.unpriced_tokens;

-- name: tool_call_add
-- A tool was called.
INSERT INTO tool_calls (workspace_id, session_id, run_id, day, tool, began_at, waited_s, ran_s, outcome)
VALUES (:workspace_id, :session_id, :run_id, :day, :tool, :began_at, :waited_s, :ran_s, :outcome);

-- name: stats_days
-- What was used on each day, in one workspace or in all.
SELECT day, sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens, sum(cost) AS cost,
    sum(unpriced_tokens)::bigint AS unpriced_tokens
FROM spendings WHERE (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text) AND day >= :since GROUP BY day ORDER BY day;

-- name: stats_models
-- What each model was used for, the most expensive first, those without a price last.
SELECT model, sum(requests)::bigint AS requests, sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
    sum(cost) AS cost, sum(unpriced_tokens)::bigint AS unpriced_tokens
FROM spendings WHERE (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text) AND day >= :since
GROUP BY model
ORDER BY sum(cost) = 0 AND sum(unpriced_tokens) > 0, sum(cost) DESC, sum(input_tokens + output_tokens) DESC, model;

-- name: stats_sessions
-- What sessions used, each followed by its sub-agents; the most expensive first; a deleted one has no title.
WITH spent AS (
    SELECT spendings.workspace_id, session_id, coalesce(sessions.parent_id, session_id) AS head, sessions.title,
        count(DISTINCT run_id) AS runs, sum(requests)::bigint AS requests, sum(spendings.input_tokens)::bigint AS input_tokens,
        sum(spendings.output_tokens)::bigint AS output_tokens, sum(spendings.cost) AS cost,
        sum(spendings.unpriced_tokens)::bigint AS unpriced_tokens
    FROM spendings LEFT JOIN sessions USING (session_id)
    WHERE (:workspace_id::text IS NULL OR spendings.workspace_id = :workspace_id::text) AND day >= :since
    GROUP BY spendings.workspace_id, session_id, sessions.parent_id, sessions.title
), heads AS (
    SELECT head, row_number() OVER (
        ORDER BY sum(cost) = 0 AND sum(unpriced_tokens) > 0, sum(cost) DESC, sum(input_tokens + output_tokens) DESC, head
    ) AS rank
    FROM spent GROUP BY head
)
SELECT spent.*, parents.title AS head_title
FROM heads JOIN spent USING (head) LEFT JOIN sessions AS parents ON parents.session_id = heads.head
WHERE heads.rank <= :limit
ORDER BY heads.rank, spent.session_id != spent.head, spent.cost = 0 AND spent.unpriced_tokens > 0, spent.cost DESC,
    spent.input_tokens + spent.output_tokens DESC, spent.session_id;

-- name: stats_of_session
-- What each of the newest runs of a session used, newest first.
SELECT run_id, sum(requests)::bigint AS requests, sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
    sum(cost) AS cost, sum(unpriced_tokens)::bigint AS unpriced_tokens
FROM spendings JOIN runs USING (workspace_id, run_id)
WHERE spendings.workspace_id = :workspace_id AND spendings.session_id = :session_id
GROUP BY run_id ORDER BY max(runs.seq) DESC LIMIT :limit;

-- name: timeline_of_session
-- The longest tool calls of each of the newest runs of a session, in order, and of each run how much all of them are.
WITH newest AS (
    SELECT workspace_id, run_id, seq FROM runs WHERE session_id = :session_id AND workspace_id = :workspace_id
    ORDER BY seq DESC LIMIT :limit
), made AS (
    SELECT newest.seq, calls.run_id, calls.tool, calls.began_at, calls.waited_s, calls.ran_s, calls.outcome,
        row_number() OVER (PARTITION BY newest.seq ORDER BY calls.waited_s + calls.ran_s DESC, calls.place) AS place,
        count(*) OVER (PARTITION BY newest.seq) AS calls, sum(calls.ran_s) OVER (PARTITION BY newest.seq) AS all_ran_s
    FROM newest JOIN tool_calls AS calls USING (workspace_id, run_id)
)
SELECT * FROM made WHERE place <= :most ORDER BY seq, began_at, place;

-- name: stats_runs
-- How the runs of each day ended.
SELECT substr(accepted_at, 1, 10) AS day, outcome, count(*) AS runs FROM runs
WHERE (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text) AND accepted_at >= :since AND state = 'finished'
    AND NOT imported
GROUP BY day, outcome ORDER BY day, outcome;

-- name: stats_tools
-- How often each tool was called and failed, how long it ran and waited for people; the most used first.
WITH made AS (
    SELECT tool, outcome, waited_s, ran_s, row_number() OVER (PARTITION BY tool ORDER BY ran_s NULLS LAST) AS place,
        count(ran_s) OVER (PARTITION BY tool) AS total
    FROM tool_calls
    WHERE (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text) AND day >= :since AND outcome != 'cut_off'
)
SELECT tool, count(*) AS calls, count(*) FILTER (WHERE outcome = 'failed') AS errors, sum(waited_s) AS waited_s,
    max(CASE WHEN place = (total * 50 + 99) / 100 THEN ran_s END) AS p50,
    max(CASE WHEN place = (total * 90 + 99) / 100 THEN ran_s END) AS p90,
    max(CASE WHEN place = (total * 99 + 99) / 100 THEN ran_s END) AS p99, max(ran_s) AS most
FROM made GROUP BY tool ORDER BY count(*) DESC, tool;

-- name: stats_latency
-- Percentiles (nearest rank) of the seconds that finished runs were queued, worked, or waited for people's answers.
WITH timed AS (
    SELECT extract(epoch FROM started_at::timestamptz - accepted_at::timestamptz)::double precision AS waiting,
        extract(epoch FROM finished_at::timestamptz - started_at::timestamptz)::double precision - waited_s AS working,
        nullif(waited_s, 0) AS asking, extract(epoch FROM finished_at::timestamptz - accepted_at::timestamptz)::double precision AS whole
    FROM runs WHERE (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text) AND accepted_at >= :since
        AND state = 'finished' AND started_at IS NOT NULL AND NOT imported
), spans AS (
    SELECT CASE :span::text WHEN 'waiting' THEN waiting WHEN 'working' THEN working WHEN 'asking' THEN asking ELSE whole END
        AS seconds
    FROM timed
), ranked AS (
    SELECT seconds, row_number() OVER (ORDER BY seconds) AS place, count(*) OVER () AS total
    FROM spans WHERE seconds IS NOT NULL
)
SELECT max(CASE WHEN place = (total * 50 + 99) / 100 THEN seconds END) AS p50,
    max(CASE WHEN place = (total * 90 + 99) / 100 THEN seconds END) AS p90,
    max(CASE WHEN place = (total * 99 + 99) / 100 THEN seconds END) AS p99, max(seconds) AS most
FROM ranked;

-- name: stats_days_latency
-- The same for each day, of the time that runs worked.
WITH spans AS (
    SELECT substr(accepted_at, 1, 10) AS day,
        extract(epoch FROM finished_at::timestamptz - started_at::timestamptz)::double precision - waited_s AS seconds
    FROM runs WHERE (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text) AND accepted_at >= :since
        AND state = 'finished' AND started_at IS NOT NULL AND NOT imported
), ranked AS (
    SELECT day, seconds, row_number() OVER (PARTITION BY day ORDER BY seconds) AS place,
        count(*) OVER (PARTITION BY day) AS total FROM spans
)
SELECT day, max(CASE WHEN place = (total * 50 + 99) / 100 THEN seconds END) AS p50,
    max(CASE WHEN place = (total * 90 + 99) / 100 THEN seconds END) AS p90,
    max(CASE WHEN place = (total * 99 + 99) / 100 THEN seconds END) AS p99, max(seconds) AS most
FROM ranked GROUP BY day ORDER BY day;

-- name: check_counts
-- How much a store holds.
SELECT (SELECT count(*) FROM workspaces) AS workspaces, (SELECT count(*) FROM sessions) AS sessions,
    (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM runs) AS runs,
    (SELECT count(*) FROM runs WHERE state != 'finished') AS unfinished_runs,
    (SELECT coalesce(sum(last - first + 1), 0)::bigint FROM events) AS events;

-- name: check_sessions
-- All sessions, page by page.
SELECT *, false AS busy FROM sessions WHERE place > :after ORDER BY place LIMIT :limit;

-- name: check_messages
-- All messages, page by page.
SELECT * FROM messages WHERE place > :after ORDER BY place LIMIT :limit;

-- name: check_runs
-- All runs, page by page.
SELECT *, seq AS place FROM runs WHERE seq > :after ORDER BY seq LIMIT :limit;

-- name: check_permissions
-- All permissions that were ever asked, page by page.
SELECT place, session_id, permission_id AS ask_id, body FROM permissions WHERE place > :after ORDER BY place LIMIT :limit;

-- name: check_questions
-- All questions, page by page.
SELECT place, session_id, question_id AS ask_id, body FROM questions WHERE place > :after ORDER BY place LIMIT :limit;

-- name: check_changes
-- All file changes, page by page.
SELECT *, change_id AS place FROM file_changes WHERE change_id > :after ORDER BY change_id LIMIT :limit;

-- name: check_grants
-- All granted rules, page by page.
SELECT * FROM (SELECT *, row_number() OVER (ORDER BY session_id, rule) AS place FROM grants) AS placed
WHERE place > :after ORDER BY place LIMIT :limit;

-- name: check_todos
-- All plans, page by page.
SELECT * FROM (SELECT *, row_number() OVER (ORDER BY session_id) AS place FROM todos) AS placed
WHERE place > :after ORDER BY place LIMIT :limit;

-- name: check_events
-- The whole log, page by page.
SELECT *, entry_id AS place FROM events WHERE entry_id > :after ORDER BY entry_id LIMIT :limit;

-- name: check_permissions_left
-- Permissions that wait although their run is over.
SELECT permissions.session_id, permission_id AS ask_id FROM permissions JOIN runs USING (workspace_id, run_id)
WHERE permissions.state = 'pending' AND runs.state = 'finished';

-- name: check_questions_left
-- Questions that wait although their run is over.
SELECT questions.session_id, question_id AS ask_id FROM questions JOIN runs USING (workspace_id, run_id)
WHERE questions.state = 'pending' AND runs.state = 'finished';
