-- floor: 1
-- The token of a cluster whose nodes are given none: each makes it of this and of the cluster's secret, which is not here.
CREATE TABLE cluster_token (
    only_one BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_one),
    seed     BYTEA NOT NULL
);
