-- Pinned sessions are listed first, archived ones only if asked for.
ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_pinned ON sessions (workspace_id, place) WHERE pinned != 0;
