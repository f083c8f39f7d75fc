//! Every limit of the control API, in one place for the code and for the docs.

use std::time::Duration;

/// The largest request body.
pub const BODY_LIMIT: usize = 16 * 1024 * 1024;
/// Likewise of one that brings a mail: [`ow_protocol::LARGEST_MAIL`] in base64.
pub const MAIL_BODY_LIMIT: usize = ow_protocol::LARGEST_MAIL / 3 * 4 + 4 * 1024;
/// A body over the limit is read and thrown away up to here, so that its sender gets to read the refusal.
pub const DISCARD_LIMIT: usize = 4 * BODY_LIMIT;
/// A request's body must have come in whole within this time.
pub const BODY_TIME: Duration = Duration::from_secs(30);
/// A request's head must have come within this time. It also ends a connection that is kept open unused.
pub const HEAD_TIME: Duration = Duration::from_secs(30);
/// The largest request head in bytes.
pub const HEAD_LIMIT: usize = 64 * 1024;
/// Connections at a time over the Unix socket; the next ones wait in the kernel's queue.
pub const UNIX_CONNECTIONS: usize = 256;
/// Connections at a time over TCP.
pub const TCP_CONNECTIONS: usize = 64;
/// Changing requests that one TCP client may make within [`RATE_TIME`].
pub const RATE_LIMIT: usize = 30;
/// The span over which [`RATE_LIMIT`] counts.
pub const RATE_TIME: Duration = Duration::from_secs(10);
/// How long requests that are being answered may take once owd stops.
pub const DRAIN_TIME: Duration = Duration::from_secs(5);
/// How often a silent event stream over TCP says that it is alive. Over the Unix socket it never does: idle means asleep.
pub const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long the listener rests after it could not accept a connection (no file handles left).
pub const ACCEPT_REST: Duration = Duration::from_millis(200);

/// A head of a request at the webhook listener must have come within this time.
pub const HOOK_HEAD_TIME: Duration = Duration::from_secs(10);
/// Likewise its body.
pub const HOOK_BODY_TIME: Duration = Duration::from_secs(30);
/// Connections at a time at the webhook listener; the next ones wait in the kernel's queue.
pub const HOOK_CONNECTIONS: usize = 128;
/// Of these from one address: it may be that of a proxy, behind which all senders are.
pub const HOOK_CONNECTIONS_OF_ONE: usize = 96;
/// Bytes of bodies that the webhook listener holds at a time.
pub const HOOK_BODY_ROOM: usize = 64 * 1024 * 1024;
/// The largest body that Slack may post.
pub const SLACK_BODY_LIMIT: usize = 1024 * 1024;
/// When a sender may try again whose delivery could not be stored.
pub const HOOK_RETRY: Duration = Duration::from_mins(1);

/// Rows of a page when the request names no number.
pub const PAGE_DEFAULT: usize = 50;
/// Rows of a page at most.
pub const PAGE_LIMIT: usize = 500;
/// Events that one request may bring.
pub const EVENTS_LIMIT: usize = 10_000;
/// The longest key of an event in bytes.
pub const EVENT_KEY_LIMIT: usize = 1024;
/// Events that a watcher is sent at a time.
pub const STREAM_CHUNK: usize = 256;
/// Files that go with one message at most.
pub const ATTACHMENTS_LIMIT: usize = 20;
/// The longest text of one message in bytes.
pub const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;
/// Characters of a call's result that a history shows; the rest is kept whole on the side.
pub const RESULT_SHOWN: usize = 20_000;
/// How long what a person tells a session waits for a worker that is about to take or leave it.
pub const WORKER_WAIT: Duration = Duration::from_secs(2);
/// How long it waits for the worker that has the session: calls that are interrupted end first.
pub const COMMAND_WAIT: Duration = Duration::from_mins(1);
/// After which such a worker is looked for again.
pub const WORKER_OPENS: Duration = Duration::from_millis(20);
/// Slot records that `why` shows at most.
pub const WHY_LIMIT: usize = 500;
