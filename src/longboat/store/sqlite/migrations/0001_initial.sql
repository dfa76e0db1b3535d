CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO meta VALUES ('epoch', 0);

CREATE TABLE workspaces (
    workspace_id TEXT PRIMARY KEY,
    path         TEXT NOT NULL UNIQUE,
    created_at   TEXT NOT NULL
);

-- The rowid orders sessions: newest first is by creation, never by a clock.
CREATE TABLE sessions (
    place         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id    TEXT NOT NULL UNIQUE,
    workspace_id  TEXT NOT NULL REFERENCES workspaces,
    parent_id     TEXT,
    title         TEXT NOT NULL,
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost          REAL NOT NULL DEFAULT 0,
    summary_seq   INTEGER NOT NULL DEFAULT 0  -- the model sees messages from this one on; it is the summary of the rest
);
CREATE INDEX sessions_by_workspace ON sessions (workspace_id, place);

CREATE TABLE messages (
    message_id  TEXT PRIMARY KEY,
    session_id  TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    run_id      TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    role        TEXT NOT NULL,
    parts       BLOB NOT NULL,
    model       TEXT,
    provider    TEXT,
    summary     INTEGER NOT NULL,
    created_at  TEXT NOT NULL,
    finished_at TEXT,
    whole_at    INTEGER NOT NULL,  -- number of its last whole event: later deltas in the log extend these parts
    UNIQUE (session_id, seq)
);
CREATE INDEX messages_open ON messages (session_id) WHERE finished_at IS NULL;

-- AUTOINCREMENT: a seq is never handed out twice, even when the session of the newest run is deleted.
CREATE TABLE runs (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id           TEXT NOT NULL,
    workspace_id     TEXT NOT NULL REFERENCES workspaces,
    session_id       TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    state            TEXT NOT NULL,
    outcome          TEXT,
    delivery         TEXT NOT NULL,
    prompt           TEXT NOT NULL,
    attachments      BLOB NOT NULL,
    fingerprint      TEXT NOT NULL,  -- of the prompt as first submitted: tells a repeated submit from another one
    model            TEXT,
    approve          TEXT NOT NULL,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    folded_into      TEXT,
    error            TEXT,
    tries            INTEGER NOT NULL DEFAULT 0,
    accepted_at      TEXT NOT NULL,
    started_at       TEXT,
    finished_at      TEXT,
    client_id        TEXT,
    UNIQUE (workspace_id, run_id),
    CHECK ((state = 'finished') = (outcome IS NOT NULL))
);
CREATE INDEX runs_by_session ON runs (session_id, seq);
CREATE INDEX runs_unfinished ON runs (workspace_id, seq) WHERE state != 'finished';
CREATE UNIQUE INDEX runs_one_active ON runs (session_id) WHERE state = 'active';

-- The log. One row is a batch of encoded frames with the numbers first..last; numbers have no gaps within a workspace.
CREATE TABLE events (
    entry_id     INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    first        INTEGER NOT NULL,
    last         INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    session_id   TEXT,
    message_id   TEXT,     -- deltas: the message they extend
    run_seq      INTEGER,  -- a terminal event: the seq of its run, which unlike a run_id never comes again
    written_s    INTEGER NOT NULL,
    frames       BLOB NOT NULL
);
CREATE UNIQUE INDEX events_by_number ON events (workspace_id, last);
CREATE INDEX events_of_message ON events (message_id, first) WHERE message_id IS NOT NULL;
CREATE UNIQUE INDEX events_one_terminal ON events (run_seq) WHERE run_seq IS NOT NULL;

CREATE TABLE clients (
    workspace_id TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    attached_at  TEXT NOT NULL,
    PRIMARY KEY (workspace_id, client_id)
) WITHOUT ROWID;
