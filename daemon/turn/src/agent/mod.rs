mod effect;
mod setup;

pub use effect::AgentEffect;
pub use setup::{AgentSetup, Prices, Progress, ToolDecl, ToolKind};
