-- floor: 1
-- What “always” made of a project's file in a directory that all nodes have: the SHA-256 of its content before and after.
-- Before, it is empty if the file needed no trust. Each node records by itself what its user trusts, and follows these.
CREATE TABLE trust_steps (
    workspace_id TEXT NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    before       TEXT NOT NULL,
    after        TEXT NOT NULL,
    PRIMARY KEY (workspace_id, before, after)
);
