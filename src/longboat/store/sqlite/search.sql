-- The search index: a file of its own that is made from the store and can be made again. `store` is the store, attached.

CREATE TABLE progress (
    entry_id      INTEGER NOT NULL,  -- the log is read up to here,
    workspace_id  TEXT,              -- and this is the entry there: another one means that the log is another one
    last          INTEGER,
    epoch         INTEGER,
    session_place INTEGER,           -- sessions and messages that were there at first are read up to here; NULL: all
    message_place INTEGER
);

CREATE TABLE documents (
    document_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    message_id   TEXT UNIQUE,  -- NULL: the title of the session
    role         TEXT,
    at           TEXT NOT NULL
);
CREATE INDEX documents_of_session ON documents (session_id);

CREATE VIRTUAL TABLE texts USING fts5 (body, tokenize = "unicode61 remove_diacritics 2");
