-- floor: 1
-- Statistics ask for the runs of some days, among all that there ever were.
CREATE INDEX runs_by_time ON runs (accepted_at) WHERE state = 'finished' AND NOT imported;
