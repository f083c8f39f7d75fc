-- Format 5: where items are told of.

ALTER TABLE items ADD COLUMN inbox TEXT NOT NULL DEFAULT 'default';
ALTER TABLE items ADD COLUMN also TEXT NOT NULL DEFAULT '[]';  -- inboxes that it came to since
ALTER TABLE items ADD COLUMN escalate_at INTEGER;
ALTER TABLE items ADD COLUMN escalate_to TEXT;
CREATE INDEX items_escalation ON items (escalate_at) WHERE state = 'pending' AND escalate_at IS NOT NULL;

-- What is to be told where. Rows of one bundle and binding are one message.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    bundle INTEGER NOT NULL,             -- the id of its first row
    item TEXT,
    what TEXT NOT NULL,                  -- asked, reminded, escalated, delegated, settled, reply
    binding TEXT NOT NULL,
    message_id TEXT NOT NULL,            -- the bundle's, fixed before the first attempt
    body TEXT,                           -- of a reply
    digest INTEGER NOT NULL DEFAULT 0,   -- 1: others may join until it is due
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'waiting', -- waiting, taken, sent, failed, dropped
    perhaps INTEGER NOT NULL DEFAULT 0,  -- 1: owd died in the middle; it may have arrived
    reference TEXT,                      -- what the channel calls it
    error TEXT,
    done_at INTEGER
) STRICT;
CREATE INDEX outbox_waiting ON outbox (binding, due_at, bundle) WHERE state = 'waiting';
CREATE INDEX outbox_taken ON outbox (id) WHERE state = 'taken';
CREATE INDEX outbox_item ON outbox (item, id) WHERE item IS NOT NULL;
CREATE INDEX outbox_bundle ON outbox (bundle);
CREATE INDEX outbox_message ON outbox (message_id);
CREATE INDEX outbox_reference ON outbox (reference) WHERE reference IS NOT NULL;
CREATE INDEX outbox_done ON outbox (done_at) WHERE done_at IS NOT NULL;
CREATE INDEX outbox_failed ON outbox (id) WHERE state = 'failed';
