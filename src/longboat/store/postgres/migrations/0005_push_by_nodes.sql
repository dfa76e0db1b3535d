-- floor: 1
-- Notifications by several servers: they sign with one key, and each item is sent by the server that takes it from the
-- queue. What was answered meanwhile leaves the queue with the inbox.
CREATE TABLE push_key (
    only_one BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_one),
    pem      BYTEA NOT NULL
);
CREATE TABLE push_queue (
    place BIGINT PRIMARY KEY REFERENCES inbox ON DELETE CASCADE
);
-- A server that has the database to itself takes nothing from the queue. A node may be a little late with its renewal.
CREATE FUNCTION push_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM push_subscriptions)
        AND EXISTS (SELECT 1 FROM nodes WHERE until > clock_timestamp() - interval '1 hour')
    THEN
        INSERT INTO push_queue (place) VALUES (NEW.place);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER push_item AFTER INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION push_item();
-- Whether someone can answer at an inbox stream of the node.
ALTER TABLE nodes ADD COLUMN answering BOOLEAN NOT NULL DEFAULT false;
