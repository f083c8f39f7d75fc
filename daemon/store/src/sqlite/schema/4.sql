-- Format 4: what wakes a session that sleeps, beside its time and its people.

CREATE TABLE wakes (
    what TEXT NOT NULL,                  -- `job <id>`, `event <type>`
    run INTEGER NOT NULL,
    PRIMARY KEY (what, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX wakes_run ON wakes (run);
