-- A person undid a change of a run, or part of it: that is a change too. `author` is the person's client, '' if it gave
-- no name; NULL: the run itself made the change. `remark` says how much was undone. `told_run` is the run whose prompt
-- told the model of it.
ALTER TABLE file_changes ADD COLUMN author TEXT;
ALTER TABLE file_changes ADD COLUMN remark TEXT;
ALTER TABLE file_changes ADD COLUMN told_run TEXT;
CREATE INDEX file_changes_by_people ON file_changes (session_id, change_id) WHERE author IS NOT NULL;
