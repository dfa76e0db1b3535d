-- How long a run waited for people's answers.
ALTER TABLE runs ADD COLUMN waited_s REAL NOT NULL DEFAULT 0;

-- How the last turn of a session ended.
ALTER TABLE sessions ADD COLUMN last_outcome TEXT;
UPDATE sessions SET last_outcome = (
    SELECT outcome FROM runs
    WHERE runs.session_id = sessions.session_id AND started_at IS NOT NULL AND folded_into IS NULL AND state = 'finished'
    ORDER BY seq DESC LIMIT 1);

-- Tokens whose price is unknown. Until now they were counted as free; only the local model is.
ALTER TABLE spendings ADD COLUMN unpriced_tokens INTEGER NOT NULL DEFAULT 0;
UPDATE spendings SET unpriced_tokens = input_tokens + output_tokens WHERE cost = 0 AND model NOT LIKE 'local/%';
ALTER TABLE sessions ADD COLUMN unpriced_tokens INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET unpriced_tokens = coalesce((
    SELECT sum(spendings.unpriced_tokens) FROM spendings WHERE spendings.session_id = sessions.session_id), 0);

-- Every tool call with its times: for the statistics and the timeline, which outlive undone messages and deleted
-- sessions. Replaces the counts by day.
CREATE TABLE tool_calls (
    workspace_id TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    run_id       TEXT,  -- NULL: only counted, before times were recorded; then began_at and ran_s are NULL too
    day          TEXT NOT NULL,  -- UTC
    tool         TEXT NOT NULL,
    began_at     TEXT,
    waited_s     REAL NOT NULL,
    ran_s        REAL,
    outcome      TEXT NOT NULL
);
CREATE INDEX tool_calls_of_run ON tool_calls (workspace_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX tool_calls_by_day ON tool_calls (day);

INSERT INTO tool_calls (workspace_id, session_id, day, tool, waited_s, outcome)
WITH RECURSIVE numbers (number) AS (
    SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < (SELECT max(calls) FROM tool_uses)
)
SELECT workspace_id, session_id, day, tool, 0, CASE WHEN number <= errors THEN 'failed' ELSE 'done' END
FROM tool_uses JOIN numbers ON number <= calls;
DROP TABLE tool_uses;
