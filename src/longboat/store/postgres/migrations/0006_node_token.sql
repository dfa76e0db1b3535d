-- floor: 1
-- A fingerprint of the node's token: clients have one token for all nodes. Empty: a version that stored none.
ALTER TABLE nodes ADD COLUMN token TEXT COLLATE "C" NOT NULL DEFAULT '';
