-- What was sent to models. The requests of a session have most of their messages in common: each is kept once, under the
-- digest of its content.
CREATE TABLE request_pieces (
    place      INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    digest     BLOB NOT NULL,
    used_s     INTEGER NOT NULL,
    content    BLOB NOT NULL,
    UNIQUE (session_id, digest)
);

-- A request begins with as many messages of the one before it in its run as `same` says. `messages` are the digests of
-- the others, one after the other; `frame` is the digest of the body without messages.
CREATE TABLE model_requests (
    place      INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    run_id     TEXT NOT NULL,
    sent_s     INTEGER NOT NULL,
    frame      BLOB NOT NULL,
    same       INTEGER NOT NULL,
    messages   BLOB NOT NULL,
    facts      BLOB NOT NULL,
    answer     BLOB
);
CREATE INDEX model_requests_of_run ON model_requests (session_id, run_id, place);
