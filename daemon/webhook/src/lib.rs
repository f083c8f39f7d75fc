//! Webhooks: whether a request was made by who knows the hook's secret, which delivery it is, and what it says.
//!
//! A [`Profile`] is how one kind of sender signs. [`verify`] holds a request against it and says which delivery it is,
//! or why nobody proved anything; it never fails open: without a secret, a header or a fresh time stamp there is no
//! delivery. [`payload`] reads what was delivered, once it is known whose it is. [`sign`] makes what a sender of the
//! profile would send, to try a hook.
//!
//! Pure: bytes and the present are arguments. It knows no HTTP, no hook's name and no task.
//!
//! ```
//! use ow_webhook::{Headers, Keys, Profile, Refusal, Scheme, sign, verify};
//!
//! let (scheme, keys) = (Scheme::of(Profile::Github), Keys::new(["a secret"]));
//! let now = "2026-11-30T12:00:00Z".parse()?;
//! let signed = sign(&scheme, "a secret", b"{}", "delivery-1", Some("push"), now);
//! let delivery = verify(&scheme, &keys, &Headers::new(signed), b"{}", now)?;
//! assert_eq!((delivery.id.as_deref(), delivery.event.as_deref()), (Some("delivery-1"), Some("push")));
//! assert!(matches!(verify(&scheme, &keys, &Headers::default(), b"{}", now), Err(Refusal::Missing { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod headers;
mod keys;
mod profile;
mod verify;

mod json;
mod payload;
mod sign;

pub use headers::Headers;
pub use keys::Keys;
pub use payload::{Body, Payload, PayloadError, payload};
pub use profile::{Profile, Scheme, ToldApart};
pub use sign::{Sample, sample, sign};
pub use verify::{Delivery, Refusal, verify};

/// The longest id of a delivery that is told apart by its own name, in bytes.
pub const ID_LIMIT: usize = 256;
