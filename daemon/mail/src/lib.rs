//! Answers that come by mail: who sent one, which item it is about, and the item's end.
//!
//! A [`Desk`] takes one mail as it came. Who may answer is a matter of the configuration, what the mail says one of
//! `ow-reply`; the store says which answer was the first. What is decided nowhere else is decided here: that an address
//! is a person's, and what the sender of an answer is told.
//!
//! What a person is told by mail is written here too: a notice of an item ([`notice`]), of several, or the answer to
//! their own mail.
//!
//! Mail is handed in and the present is an argument; only the keys of signatures are fetched, over DNS.

mod desk;
mod signatures;
mod told;

mod notice;

pub use desk::{Desk, Dns, MailSettings, Outcome, Taken};
pub use notice::{Letter, LetterError, News, acknowledgement, digest, fits_in_a_mail, message_id, notice};
pub use signatures::{Signatures, Signed};
