-- floor: 1
-- When each server was last heard of.
ALTER TABLE nodes ADD COLUMN seen_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp();
