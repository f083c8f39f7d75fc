//! Slack as a surface: what people there answer and ask, and what they are told.
//!
//! What Slack sends is stored before it is acknowledged ([`Intake`]), each event once however often it comes, and worked
//! off from the store. Pure code reads it: [`parse`] says what a payload tells. Slack's word for who did something is the
//! proof; which person that is and what they may answer is the configuration's to say.
//!
//! The Web API and Socket Mode are called directly, on the HTTP client that is there anyway.

mod app;
mod client;
mod fault;
mod websocket;

mod envelope;
mod event;
mod markdown;
mod posted;
mod text;

mod answer;
mod notice;

mod door;
mod intake;
mod socket;
mod standing;

mod shown;

mod channel;
mod desk;
mod surface;

mod examine;
mod threads;
mod tools;

pub use answer::{
    About, Alone, Decided, Modal, Reader, Way, about, alone, choice, in_session, of_message, of_press, of_reaction,
    of_submit, reads,
};
pub use app::App;
pub use channel::SlackChannel;
pub use client::{API, Client, Me};
pub use desk::{Desk, Directory};
pub use door::{Answered, Door};
pub use envelope::{Said, said};
pub use event::{Event, Parsed, Place, Press, Submit, Written, parse};
pub use examine::{Hop, SCOPES, examine};
pub use fault::Fault;
pub use intake::Intake;
pub use notice::{Post, digest, fits, notice, outcome};
pub use posted::{Posted, payload};
pub use socket::SocketMode;
pub use standing::{Standing, Trouble};
pub use surface::Surface;
pub use text::{plain, sign};
pub use tools::register;
