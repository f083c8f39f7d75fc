//! Where a path leads, and whether a call may go there.
//!
//! A path is judged on what it resolves to, links followed. The walk itself reads nothing: the caller
//! hands in [`Links`]. Between this check and the opening the tree may change, so the tool opens beneath
//! its root without leaving it.

mod grant;
mod names;
mod resolve;
mod scope;

pub use grant::grantable;
pub use names::{runs_later, secret_name};
pub(crate) use resolve::lexical;
pub use resolve::{LinkAt, Links, NoLinks, PathRefusal, resolve};
pub(crate) use scope::words;
pub use scope::{Scope, Standing, explain, holds_owds, is_owds, standing};
