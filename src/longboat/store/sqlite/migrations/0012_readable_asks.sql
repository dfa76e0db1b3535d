-- What waits for an answer is counted with every page of the inbox. An ask that cannot be read is not shown, so it is not
-- counted; whether it can be read is decided when it is written.
CREATE INDEX permissions_readable ON permissions (permission_id)
WHERE state = 'pending'
    AND CASE WHEN json_valid(CAST(body AS TEXT)) THEN CAST(body AS TEXT) ->> 'id' = permission_id END;
CREATE INDEX questions_readable ON questions (question_id)
WHERE state = 'pending'
    AND CASE WHEN json_valid(CAST(body AS TEXT)) THEN CAST(body AS TEXT) ->> 'id' = question_id END;
