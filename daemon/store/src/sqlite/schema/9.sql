-- Format 9: mailboxes that are read, and how far each was.

CREATE TABLE mailboxes (
    name TEXT NOT NULL PRIMARY KEY,      -- the account and the mailbox in it
    validity INTEGER NOT NULL,           -- IMAP's UIDVALIDITY: numbers of another one mean other mails
    seen INTEGER NOT NULL,               -- up to this number each mail is handled, or in `again`
    at INTEGER NOT NULL,                 -- when that was noted
    again TEXT NOT NULL                  -- those that are to be tried again, as JSON
) STRICT, WITHOUT ROWID;
