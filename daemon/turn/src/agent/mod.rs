//! The machine of an agent's session: a fold of its journal, then one effect.

mod effect;
mod setup;
mod turn;

mod batch;
mod calls;
mod fold;
mod inputs;
mod replies;

mod between;
mod next;
mod own;
mod words;

mod budget;
mod compact;
mod deeds;
mod detect;
mod log;
mod prose;
mod read;
mod schema;
mod shown;

pub use effect::AgentEffect;
pub use own::arguments_of;
pub use setup::{AgentSetup, Prices, Progress, ToolDecl, ToolKind};
pub use shown::framed;
pub use turn::{AgentTurn, Outgoing, Sleep, Spent};
