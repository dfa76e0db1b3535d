-- What waits for somebody and what has ended, in all workspaces, in the order in which it came. Triggers keep it: every
-- way in which an ask ends or a run finishes is covered, in the transaction in which it happens. Runs that finished
-- before this migration are not news.
CREATE TABLE inbox (
    place        INTEGER PRIMARY KEY AUTOINCREMENT,
    kind         TEXT NOT NULL,  -- permission, question, failed, finished
    workspace_id TEXT NOT NULL,
    session_id   TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    run_id       TEXT NOT NULL,
    ask_id       TEXT UNIQUE,
    added_s      INTEGER NOT NULL
);
CREATE INDEX inbox_of_session ON inbox (session_id);

-- Which of it a person has seen.
CREATE TABLE inbox_seen (
    person TEXT NOT NULL,
    place  INTEGER NOT NULL REFERENCES inbox ON DELETE CASCADE,
    PRIMARY KEY (person, place)
) WITHOUT ROWID;
CREATE INDEX inbox_seen_of_item ON inbox_seen (place);

INSERT INTO inbox (kind, workspace_id, session_id, run_id, ask_id, added_s)
SELECT 'permission', workspace_id, session_id, run_id, permission_id, CAST(strftime('%s', 'now') AS INTEGER)
FROM permissions WHERE state = 'pending' ORDER BY place;

INSERT INTO inbox (kind, workspace_id, session_id, run_id, ask_id, added_s)
SELECT 'question', workspace_id, session_id, run_id, question_id, CAST(strftime('%s', 'now') AS INTEGER)
FROM questions WHERE state = 'pending' ORDER BY place;

CREATE TRIGGER inbox_permission_asked AFTER INSERT ON permissions WHEN NEW.state = 'pending' BEGIN
    INSERT INTO inbox (kind, workspace_id, session_id, run_id, ask_id, added_s)
    VALUES ('permission', NEW.workspace_id, NEW.session_id, NEW.run_id, NEW.permission_id, CAST(strftime('%s', 'now') AS INTEGER));
END;

CREATE TRIGGER inbox_permission_ended AFTER UPDATE OF state ON permissions WHEN NEW.state != 'pending' BEGIN
    DELETE FROM inbox WHERE ask_id = NEW.permission_id;
END;

CREATE TRIGGER inbox_question_asked AFTER INSERT ON questions WHEN NEW.state = 'pending' BEGIN
    INSERT INTO inbox (kind, workspace_id, session_id, run_id, ask_id, added_s)
    VALUES ('question', NEW.workspace_id, NEW.session_id, NEW.run_id, NEW.question_id, CAST(strftime('%s', 'now') AS INTEGER));
END;

CREATE TRIGGER inbox_question_ended AFTER UPDATE OF state ON questions WHEN NEW.state != 'pending' BEGIN
    DELETE FROM inbox WHERE ask_id = NEW.question_id;
END;

CREATE TRIGGER inbox_run_finished AFTER UPDATE OF state ON runs
WHEN NEW.state = 'finished' AND OLD.state != 'finished' AND NEW.outcome != 'canceled'
    AND NEW.parent_run_id IS NULL AND NEW.folded_into IS NULL
BEGIN
    INSERT INTO inbox (kind, workspace_id, session_id, run_id, added_s)
    VALUES (CASE NEW.outcome WHEN 'end_turn' THEN 'finished' ELSE 'failed' END,
        NEW.workspace_id, NEW.session_id, NEW.run_id, CAST(strftime('%s', 'now') AS INTEGER));
END;

-- The inbox as it is shown. An ask of a sub-agent is shown in the session that people know.
CREATE VIEW inbox_items AS
SELECT inbox.place, inbox.kind, inbox.workspace_id, workspaces.path AS workspace_path,
    coalesce(parent.session_id, own.session_id) AS session_id, coalesce(parent.title, own.title) AS session_title,
    inbox.run_id, inbox.ask_id, coalesce(permissions.body, questions.body) AS body, runs.prompt, runs.error,
    runs.outcome, runs.finished_at, runs.client_id
FROM inbox
    JOIN workspaces ON workspaces.workspace_id = inbox.workspace_id
    JOIN sessions AS own ON own.session_id = inbox.session_id
    LEFT JOIN sessions AS parent ON parent.session_id = own.parent_id
    LEFT JOIN permissions ON permissions.permission_id = inbox.ask_id
    LEFT JOIN questions ON questions.question_id = inbox.ask_id
    LEFT JOIN runs ON runs.workspace_id = inbox.workspace_id AND runs.run_id = inbox.run_id;

-- Browsers that want to be told. The endpoint is the address of one browser at its push service.
CREATE TABLE push_subscriptions (
    endpoint   TEXT PRIMARY KEY,
    person     TEXT NOT NULL,
    p256dh     TEXT NOT NULL,
    auth       TEXT NOT NULL,
    created_at TEXT NOT NULL
) WITHOUT ROWID;
