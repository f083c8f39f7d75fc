//! Named secrets: where they are kept, values that cannot be printed, and their removal from text.
//!
//! A secret has a name, which may appear anywhere, and a value, which may appear nowhere but in the
//! process that needs it. This crate reads the values from three sources, hands one out only through
//! [`SecretValue::expose`], and makes the [`Redactor`] that takes every known value out of what comes
//! back from a tool. It knows nothing of tools, calls or the store.
//!
//! ```
//! use ow_secret::Secrets;
//!
//! let secrets = Secrets::from_pairs([("token", "s3cr3t-value")]).expect("both are well-formed");
//! assert_eq!(format!("{secrets:?}"), r#"{"token": [redacted]}"#);
//! assert_eq!(secrets.redactor().redact("a s3cr3t-value b"), "a [redacted] b");
//! ```

mod file;
mod redact;
mod sealed;
mod source;
mod value;

pub use file::SecretFile;
pub use redact::{REDACTED, RedactStream, Redactor};
pub use sealed::Sealed;
pub use source::{Origin, SecretError, Secrets, Sources};
pub use value::{SecretName, SecretNameError, SecretValue};
