-- floor: 1
-- Each start of a server, by a name that no other has. Two servers may come to use one node name: one was paused or cut
-- off for longer than its lease, and was replaced meanwhile. The first must not renew or claim what the second holds.
ALTER TABLE nodes ADD COLUMN instance TEXT COLLATE "C" NOT NULL DEFAULT '';
-- NULL: the lease is kept for whichever server has the owner's name.
ALTER TABLE leases ADD COLUMN instance TEXT COLLATE "C";
