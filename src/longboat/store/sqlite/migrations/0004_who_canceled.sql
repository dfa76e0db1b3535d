-- Who called it off.
ALTER TABLE runs ADD COLUMN canceled_by TEXT;
