//! Reads a person's reply: which item it answers, and what it says; everything in doubt says nothing.
//!
//! [`explain`] takes a message, what waits for an answer and who may give one, and finds the item it names and the
//! decision in what the person newly wrote: quotes, signatures, attached messages and hidden text do not count. An
//! approval is the whole new text and nothing beside it (see [`Phrases`] for the grammar and its words); an answer that
//! a machine sent, a forward, a sender who may not answer or cannot be proven decide nothing.
//!
//! It knows no clock, no file, no network and no store: the present and the items are arguments, and proof by the
//! sender's signature is looked for elsewhere ([`Proof::Given`]).
//!
//! ```
//! use ow_reply::{Decision, Kind, Phrases, Reading, read};
//!
//! let phrases = Phrases::default();
//! let says = |text: &str| read(text, &Kind::Approval, &[], &phrases).decision;
//! assert_eq!(says("Approved, thanks."), Decision::Approve);
//! assert_eq!(says("no, don't approve"), Decision::Deny);
//! assert_eq!(says("approve, but only for staging"), Decision::None);
//! ```

mod token;
mod words;

mod doubt;
mod languages;
mod phrase;

mod contact;
mod gateway;
mod grammar;
mod sign_off;
mod signature;
mod titles;

mod attribution;
mod labels;
mod quote;

mod colour;
mod html;
mod style;

mod mail;
mod results;
mod sender;
mod unasked;

mod explain;

pub use explain::{Cause, Context, Explained, Message, Pending, Proof, Received, State, explain};
pub use grammar::{Decision, Kind, Reading, option, read};
pub use languages::{LANGUAGES, Language};
pub use mail::without_envelope;
pub use phrase::{PhraseError, Phrases};
pub use sender::{Sender, sender};
pub use token::tokens;
