-- Format 8: which tasks run on events of a source, as `webhook:ci`.

CREATE TABLE event_sources (
    source TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (source, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_sources_task ON event_sources (task);
