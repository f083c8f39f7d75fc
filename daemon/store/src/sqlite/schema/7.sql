-- Format 7: conversations elsewhere that are sessions here.

CREATE TABLE threads (
    name TEXT PRIMARY KEY,               -- `slack:<channel>/<ts of its first message>`
    session TEXT NOT NULL,
    told INTEGER NOT NULL DEFAULT 0,     -- the first fact of its journal that is not told there
    open INTEGER NOT NULL DEFAULT 1,     -- 0: all is told, and nothing is to come
    said_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_open ON threads (name) WHERE open = 1;
