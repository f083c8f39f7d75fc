//! The running system, held by a test: real binaries, a scratch home, real signals, a stub of a model
//! provider, and a terminal.
//!
//! Every wait is for a condition with a limit; nothing sleeps for a duration. What is started is stopped
//! when its owner is dropped.

mod certificates;
mod dovecot;
mod fault;
mod mail_sink;
pub mod model_server;
mod owctl;
mod owd;
mod postfix;
mod proxy;
mod receiver;
mod sender;
mod slack;
mod terminal;
mod wait;

pub use certificates::Certificates;
pub use dovecot::{Dovecot, free_port};
pub use fault::{Fault, FaultAction, FaultCall};
pub use mail_sink::{MailSink, Sunk};
pub use owctl::{Answer, Owctl};
pub use owd::{Owd, Scratch, binary, id, rows};
pub use postfix::Postfix;
pub use proxy::Proxy;
pub use receiver::{Received, Receiver};
pub use sender::{Answered, exchange, hmac_hex, post};
pub use slack::{SLACK_BOT, Slack, SlackCall};
pub use terminal::Terminal;
pub use wait::{LIMIT, monotonic, until};
