-- Format 1. Instants are microseconds since 1970 UTC; ids are their text; JSON stands in TEXT.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    source TEXT NOT NULL,
    state TEXT NOT NULL,                 -- active, paused, deleted
    state_json TEXT NOT NULL,
    file_gone INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    accounted_until INTEGER NOT NULL,    -- the high-water mark: every slot up to here has its record
    next_due INTEGER,
    wake_at INTEGER,                     -- when the task must be looked at
    failures_in_row INTEGER NOT NULL DEFAULT 0,
    waiting INTEGER NOT NULL DEFAULT 0,  -- events that no run has
    has_watch INTEGER NOT NULL,
    has_startup INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tasks_name ON tasks (name) WHERE state <> 'deleted';
CREATE INDEX tasks_wake ON tasks (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX tasks_waiting ON tasks (id) WHERE waiting > 0;
CREATE INDEX tasks_watch ON tasks (name) WHERE has_watch = 1 AND state <> 'deleted';
CREATE INDEX tasks_startup ON tasks (id) WHERE has_startup = 1 AND state <> 'deleted';
CREATE INDEX tasks_file ON tasks (name) WHERE source = 'file' AND file_gone = 0 AND state <> 'deleted';
CREATE INDEX tasks_paused ON tasks (name) WHERE state = 'paused';

CREATE TABLE revisions (
    id INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    spec TEXT NOT NULL,
    text TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    UNIQUE (task, revision)
) STRICT;

-- Which tasks run after the end of the task named `source`.
CREATE TABLE after_edges (
    source TEXT NOT NULL,
    task INTEGER NOT NULL,
    on_end TEXT NOT NULL,
    PRIMARY KEY (source, task, on_end)
) STRICT, WITHOUT ROWID;
CREATE INDEX after_edges_task ON after_edges (task);

CREATE TABLE slots (
    id INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    kind INTEGER NOT NULL,               -- 0 instant, 1 range, 2 event, 3 manual, 4 voided
    starts INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    key TEXT,                            -- of an event; the run of a manual one
    count INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    disposition TEXT NOT NULL,
    recorded_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX slots_instant ON slots (task, starts) WHERE kind = 0;
CREATE INDEX slots_range ON slots (task, ends) WHERE kind = 1;
CREATE INDEX slots_other ON slots (task, starts) WHERE kind >= 2;
CREATE UNIQUE INDEX slots_event ON slots (task, key) WHERE kind = 2;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    key TEXT NOT NULL,
    payload TEXT NOT NULL,
    depth INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    state INTEGER NOT NULL,              -- 0 waiting, 1 given to a run, 2 refused, 3 damaged
    UNIQUE (task, key)
) STRICT;
CREATE INDEX events_waiting ON events (task, id) WHERE state = 0;

CREATE TABLE run_events (
    run INTEGER NOT NULL,
    event INTEGER NOT NULL,
    PRIMARY KEY (run, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_events_event ON run_events (event);

-- What a watch has seen of its files; an empty path without a size says that it has looked.
CREATE TABLE watch_seen (
    task INTEGER NOT NULL,
    watch TEXT NOT NULL,
    path BLOB NOT NULL,
    inode INTEGER,
    size INTEGER,
    modified INTEGER,
    PRIMARY KEY (task, watch, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    ord INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task INTEGER NOT NULL,
    task_name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    cause TEXT NOT NULL,
    scheduled_for INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    taken_at INTEGER,
    ended_at INTEGER,
    state TEXT NOT NULL,                 -- queued, running, parked, interrupted, ended, damaged
    outcome TEXT,                        -- of an ended one
    outcome_word TEXT,
    answered INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER,
    holds INTEGER NOT NULL DEFAULT 0,
    stop_why TEXT,                       -- a running one that must be stopped
    stop_told INTEGER NOT NULL DEFAULT 0,
    concurrency TEXT,
    needs_network INTEGER NOT NULL,
    beside INTEGER NOT NULL,             -- how many of the task may have begun at once
    counts_parked INTEGER NOT NULL,      -- whether a parked one that holds is among them
    depth INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    retry_of TEXT,
    ran_for_ms INTEGER NOT NULL DEFAULT 0,
    next_seq INTEGER NOT NULL DEFAULT 0  -- the journal's length: the fence
) STRICT;
CREATE INDEX runs_name ON runs (task_name, ord);
CREATE INDEX runs_active ON runs (task, ord) WHERE state IN ('queued', 'running', 'interrupted');
CREATE INDEX runs_parked ON runs (task, holds, ord) WHERE state = 'parked';
CREATE INDEX runs_running ON runs (task) WHERE state IN ('running', 'interrupted');
CREATE INDEX runs_open ON runs (ord, state) WHERE state IN ('queued', 'running', 'parked', 'interrupted');
CREATE INDEX runs_ready ON runs (answered, ord) WHERE state = 'queued' AND not_before IS NULL;
CREATE INDEX runs_later ON runs (not_before) WHERE state = 'queued' AND not_before IS NOT NULL;
CREATE INDEX runs_group ON runs (concurrency) WHERE state = 'running' AND concurrency IS NOT NULL;
CREATE INDEX runs_stop ON runs (ord) WHERE state = 'running' AND stop_why IS NOT NULL AND stop_told = 0;
CREATE INDEX runs_outcome ON runs (outcome_word, ord) WHERE outcome_word <> 'succeeded';
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE journal (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    fact TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE items (
    ord INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task_name TEXT,
    run INTEGER,
    run_id TEXT,
    asks INTEGER NOT NULL,               -- 1: a call of the run waits for it
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,                -- equal for equal questions
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    remind_at INTEGER,
    remind_after INTEGER,                -- milliseconds; doubled by each reminder
    reminded INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL,                 -- pending, resolved, expired, withdrawn, damaged
    state_json TEXT NOT NULL,
    settled_at INTEGER,
    trimmed INTEGER NOT NULL DEFAULT 0,
    holds_back INTEGER NOT NULL DEFAULT 0,
    notice_key TEXT,
    fold_key TEXT,
    count INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX items_pending ON items (ord) WHERE state = 'pending';
CREATE INDEX items_expiry ON items (expires_at) WHERE state = 'pending' AND expires_at IS NOT NULL;
CREATE INDEX items_reminder ON items (remind_at) WHERE state = 'pending' AND remind_at IS NOT NULL;
CREATE INDEX items_run ON items (run, ord) WHERE run IS NOT NULL;
CREATE INDEX items_task ON items (task_name, ord) WHERE task_name IS NOT NULL;
CREATE INDEX items_task_pending ON items (task_name, ord) WHERE state = 'pending' AND task_name IS NOT NULL;
CREATE UNIQUE INDEX items_notice ON items (notice_key) WHERE notice_key IS NOT NULL;
CREATE UNIQUE INDEX items_fold ON items (fold_key) WHERE fold_key IS NOT NULL AND state = 'pending';
CREATE INDEX items_settled ON items (settled_at) WHERE settled_at IS NOT NULL AND trimmed = 0;

-- The calls that wait for an item; equal calls of one run share one.
CREATE TABLE item_calls (
    item INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (item, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE rules (
    ord INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task_name TEXT,                      -- none: everywhere
    rule TEXT NOT NULL,
    expires_at INTEGER,
    uses_left INTEGER,
    used INTEGER NOT NULL
) STRICT;
CREATE INDEX rules_task ON rules (task_name);

CREATE TABLE stream (
    position INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL,
    added_at INTEGER NOT NULL,
    referenced INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_loose ON blobs (added_at) WHERE referenced = 0;

CREATE TABLE blob_refs (
    run INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (run, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_hash ON blob_refs (hash);

-- Records that could not be read, as they were found.
CREATE TABLE damage (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    why TEXT NOT NULL,
    record TEXT NOT NULL,
    found_at INTEGER NOT NULL,
    UNIQUE (source, key)
) STRICT;

INSERT INTO meta (key, value) VALUES ('epoch', '1');
