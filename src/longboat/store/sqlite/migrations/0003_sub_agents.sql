-- Events of a sub-agent's session are for the readers of the session that sent it, too.
ALTER TABLE events ADD COLUMN parent_session_id TEXT;

-- The call that sent it.
ALTER TABLE sessions ADD COLUMN parent_call_id TEXT;

CREATE INDEX spendings_of_session ON spendings (session_id);

-- Tokens of the newest request to the model and its answer: how full the window is.
ALTER TABLE sessions ADD COLUMN context_tokens INTEGER NOT NULL DEFAULT 0;
