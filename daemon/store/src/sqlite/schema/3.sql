-- Format 3: the audit. Entries are only ever added, and outlive the runs that they speak of.

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,             -- 1, 2, 3 … without gaps
    task TEXT,
    run TEXT,
    position INTEGER,
    entry TEXT NOT NULL,                 -- what the hash covers, besides the hash before it
    hash TEXT NOT NULL
) STRICT;
CREATE INDEX audit_call ON audit (run, position);
