-- Format 2: sessions that people talk to. A chat is the one run of a hidden task of its own.

ALTER TABLE tasks ADD COLUMN chat INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN chat INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN inputs INTEGER NOT NULL DEFAULT 0; -- the number that the last input got

-- Runs gain the state idle: a session that waits for an input.
DROP INDEX runs_active;
DROP INDEX runs_running;
DROP INDEX runs_open;
DROP INDEX runs_ready;
CREATE INDEX runs_active ON runs (task, ord) WHERE state IN ('queued', 'running', 'interrupted', 'idle');
CREATE INDEX runs_running ON runs (task) WHERE state IN ('running', 'interrupted', 'idle');
CREATE INDEX runs_open ON runs (ord, state, chat) WHERE state IN ('queued', 'running', 'parked', 'interrupted');
CREATE INDEX runs_ready ON runs (answered, ord) WHERE state = 'queued' AND not_before IS NULL AND chat = 0;
CREATE INDEX runs_ready_chats ON runs (ord) WHERE state = 'queued' AND not_before IS NULL AND chat = 1;

CREATE TABLE sessions (
    run INTEGER PRIMARY KEY,
    title TEXT,
    active_at INTEGER NOT NULL,          -- the last input or end of a turn
    queued_at INTEGER,                   -- who has waited longest goes first
    mode TEXT,                           -- as set since it began
    model TEXT
) STRICT;
CREATE INDEX sessions_active ON sessions (active_at, run);

-- What was said and, while `input` is there, is not in the history yet.
CREATE TABLE inputs (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    key TEXT,                            -- the sender's own: the same twice is one input
    input TEXT,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX inputs_waiting ON inputs (run, number) WHERE input IS NOT NULL;
CREATE UNIQUE INDEX inputs_key ON inputs (run, key) WHERE key IS NOT NULL;
