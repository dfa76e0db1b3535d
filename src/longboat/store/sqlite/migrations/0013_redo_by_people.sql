-- A person can redo what a person undid of a run's change: that is a change by a person, too. `revert_id` names what was
-- undone; in a change that redid it, `redoes` does.
ALTER TABLE file_changes ADD COLUMN revert_id TEXT;
ALTER TABLE file_changes ADD COLUMN redoes TEXT;
UPDATE file_changes SET revert_id = lower(hex(randomblob(16))) WHERE author IS NOT NULL;
