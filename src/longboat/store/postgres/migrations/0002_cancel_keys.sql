-- floor: 1
-- A cancel that a client or another node sends again has the same key: it gets the first answer and covers nothing newer.
CREATE TABLE cancel_keys (
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    key        TEXT COLLATE "C" NOT NULL,
    canceled   BYTEA NOT NULL,
    made_s     BIGINT NOT NULL,
    PRIMARY KEY (session_id, key)
);
