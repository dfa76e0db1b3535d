-- floor: 1
-- The newest schema that each server knows: a migration does not lock out one that is running.
ALTER TABLE nodes ADD COLUMN known_schema BIGINT NOT NULL DEFAULT 10;
