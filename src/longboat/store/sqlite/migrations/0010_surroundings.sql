-- What the model was told of the day and the repository, first to last: in the system prompt, and in front of a run's
-- prompt when something had changed.
CREATE TABLE surroundings (
    place      INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    run_id     TEXT NOT NULL,
    text       TEXT NOT NULL,
    UNIQUE (session_id, run_id)
);
