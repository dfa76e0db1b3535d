-- A cancel of a long queue: the runs that were queued with a seq from first to last are canceled, and their ends are
-- written in batches after it. Gone when the last of them is finished.
CREATE TABLE cancel_covers (
    session_id  TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    first_seq   INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL,
    canceled_by TEXT,
    PRIMARY KEY (session_id, last_seq)
) WITHOUT ROWID;
