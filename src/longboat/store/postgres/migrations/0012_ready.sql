-- floor: 1
-- Whether the directory exists and its configuration can be used, as its node has seen it last: the other nodes cannot see
-- it. Servers of the last release leave it as it is.
ALTER TABLE workspaces ADD COLUMN ready BOOLEAN NOT NULL DEFAULT true;
