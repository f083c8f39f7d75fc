-- Format 6: what a surface has sent, kept from before it is acknowledged until it is worked off.

CREATE TABLE intake (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,                -- `slack`
    key TEXT NOT NULL,                   -- the same for each time that it is sent
    payload TEXT,                        -- JSON; none once it is worked off
    received_at INTEGER NOT NULL,
    UNIQUE (source, key)
) STRICT;
CREATE INDEX intake_waiting ON intake (source, id) WHERE payload IS NOT NULL;
CREATE INDEX intake_age ON intake (received_at) WHERE payload IS NULL;
