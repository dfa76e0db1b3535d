-- A cancel that a client or another node sends again has the same key: it gets the first answer and covers nothing newer.
CREATE TABLE cancel_keys (
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    key        TEXT NOT NULL,
    canceled   BLOB NOT NULL,
    made_s     INTEGER NOT NULL,
    PRIMARY KEY (session_id, key)
) WITHOUT ROWID;
