-- What the agent asks, may do, has read, has changed and plans.

CREATE TABLE permissions (
    place         INTEGER PRIMARY KEY AUTOINCREMENT,
    permission_id TEXT NOT NULL UNIQUE,
    workspace_id  TEXT NOT NULL REFERENCES workspaces,
    session_id    TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    run_id        TEXT NOT NULL,
    state         TEXT NOT NULL,
    body          BLOB NOT NULL   -- the whole of it as the wire has it
);
CREATE INDEX permissions_pending ON permissions (workspace_id) WHERE state = 'pending';

CREATE TABLE questions (
    place        INTEGER PRIMARY KEY AUTOINCREMENT,
    question_id  TEXT NOT NULL UNIQUE,
    workspace_id TEXT NOT NULL REFERENCES workspaces,
    session_id   TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    run_id       TEXT NOT NULL,
    state        TEXT NOT NULL,
    body         BLOB NOT NULL
);
CREATE INDEX questions_pending ON questions (workspace_id) WHERE state = 'pending';

-- Rules that a person granted for the rest of a session.
CREATE TABLE grants (
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    rule       TEXT NOT NULL,
    PRIMARY KEY (session_id, rule)
) WITHOUT ROWID;

-- What a session has seen of a file: an edit needs it unchanged since.
CREATE TABLE reads (
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    path       TEXT NOT NULL,
    digest     TEXT NOT NULL,
    PRIMARY KEY (session_id, path)
) WITHOUT ROWID;

-- Every file change of a turn, before and after; NULL is a file that is not there.
CREATE TABLE file_changes (
    change_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    run_id     TEXT NOT NULL,
    path       TEXT NOT NULL,
    before     BLOB,
    after      BLOB,
    pending    TEXT  -- the key of a change that is about to be made; NULL once it is made
);
CREATE INDEX file_changes_of_run ON file_changes (session_id, run_id, change_id);
CREATE UNIQUE INDEX file_changes_pending ON file_changes (pending) WHERE pending IS NOT NULL;

CREATE TABLE todos (
    session_id TEXT PRIMARY KEY REFERENCES sessions (session_id) ON DELETE CASCADE,
    items      BLOB NOT NULL
) WITHOUT ROWID;

-- How a run is done beyond its model, as JSON; and for a sub-agent's run, who it works for.
ALTER TABLE runs ADD COLUMN options BLOB NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN parent_run_id TEXT;
ALTER TABLE runs ADD COLUMN parent_session_id TEXT;

-- 0: part of the transcript. Else the seq of the run that was undone: redo brings it back.
ALTER TABLE messages ADD COLUMN undone INTEGER NOT NULL DEFAULT 0;
CREATE INDEX messages_undone ON messages (session_id) WHERE undone != 0;

-- What the model requests of a run used, by model. No reference to the session: deleting it brings no money back.
CREATE TABLE spendings (
    workspace_id  TEXT NOT NULL,
    session_id    TEXT NOT NULL,
    run_id        TEXT NOT NULL,
    day           TEXT NOT NULL,  -- UTC
    model         TEXT NOT NULL,  -- provider/model
    requests      INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost          REAL NOT NULL,
    PRIMARY KEY (workspace_id, day, session_id, run_id, model)
) WITHOUT ROWID;

-- How often the runs of a session called a tool, and how often that failed.
CREATE TABLE tool_uses (
    workspace_id TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    day          TEXT NOT NULL,
    tool         TEXT NOT NULL,
    calls        INTEGER NOT NULL,
    errors       INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, day, session_id, tool)
) WITHOUT ROWID;

-- What came with an imported session was done elsewhere: no statistics count it, and no undo touches it.
ALTER TABLE runs ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
ALTER TABLE file_changes ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;

CREATE INDEX sessions_of_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
