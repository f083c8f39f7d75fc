//! Decides whether a tool call may run: allow, deny or ask, always with the rule that decided.
//!
//! [`judge`] looks at a call, at what the tool found out about it ([`Facts`]) and at who runs it under
//! which rights ([`Situation`]). Five layers speak in turn and the strictest wins: hard blocks in code,
//! configured denies, the shape of a command, configured allows and standing rules, and at last a person.
//! Only this crate makes an [`Authorized`], so holding one *is* the permission.
//!
//! It knows no clock, no file system and no network: links are read through [`path::Links`], names are
//! resolved by the caller, the present is an argument.
//!
//! ```
//! use ow_policy::command::{self, Question};
//!
//! let question = Question { allow: vec!["git status".into()], ..Question::default() };
//! assert_eq!(command::explain("git status -s", &question).verdict, "allow");
//! assert_eq!(command::explain("git status; id", &question).verdict, "ask");
//! assert_eq!(command::explain("rm -rf /", &question).verdict, "deny");
//! ```

mod facts;
mod situation;
mod verdict;

mod authorized;
mod binding;
mod judge;
mod own_tools;
mod risk;
mod rules;
mod session;

pub mod command;
pub mod path;
pub mod url;

pub use authorized::{Authorized, authorize, authorize_answered};
pub use binding::{binding_of, check_binding};
pub use facts::{Action, CommandForm, Facts, PathOp, ResolvedPath};
pub use judge::{ADDRESS_BLOCK, judge};
pub use own_tools::{OWN_TOOLS, OwnTool, Performed};
pub use risk::{RiskOverride, overridden_risk};
pub use rules::{hard_block, never_permits, rule_for_call, rule_for_step};
pub use session::session_offer;
pub use situation::{Hole, HolePlace, Settings, Situation, StepFacts};
pub use verdict::{Explained, Refusal, Verdict};
