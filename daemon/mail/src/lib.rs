//! Answers that come by mail: who sent one, which item it is about, and the item's end.
//!
//! A [`Desk`] takes one mail as it came. Who may answer is a matter of the configuration, what the mail says one of
//! `ow-reply`; the store says which answer was the first. What is decided nowhere else is decided here: that an address
//! is a person's, and what the sender of an answer is told.
//!
//! What a person is told by mail is written here too: a notice of an item ([`notice`]), of several, or the answer to
//! their own mail.
//!
//! Tasks and agents send mail of their own by a tool ([`register`]).
//!
//! Mail comes from a mailbox ([`MailboxReader`], IMAP), over a socket ([`LmtpSocket`]) or is handed in, and all of it ends
//! at the desk; what goes out is a channel of the outbox ([`MailChannel`]). How a mailbox is read is decided by
//! [`Progress`], which knows no server.

mod arrival;
mod desk;
mod said;
mod signatures;

mod channel;
mod notice;
mod outgoing;
mod smtp;
mod submit;

mod imap;
mod lmtp;
mod net;
mod probe;
mod progress;
mod reader;

pub use arrival::{MailEvent, as_event, list, written};
pub use channel::MailChannel;
pub use desk::{Arrived, Correspondent, Desk, Dns, MailSettings, Outcome, Taken, acknowledgement as acknowledged};
pub use imap::{Account, ImapError};
pub use lmtp::{Admits, Admitted, LmtpSocket};
pub use net::{Host, NetError, Security};
pub use notice::{Letter, LetterError, acknowledgement, digest, fits_in_a_mail, message_id, notice};
pub use outgoing::{Outgoing, register};
pub use probe::{Probe, probe_mailbox, probe_out};
pub use progress::{Handled, Look, Next, Progress};
pub use reader::{Extent, MailboxReader, Takes};
pub use said::{Said, Saying};
pub use signatures::{Signatures, Signed};
pub use submit::Way;
