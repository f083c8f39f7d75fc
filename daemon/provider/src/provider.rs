use async_trait::async_trait;
use bytes::Bytes;
use ow_model::Reply;
use tokio_util::sync::CancellationToken;

use crate::wire::Parameters;
use crate::{CompletionError, Request};

/// Where completions come from.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The body with which this request goes out first.
    fn body(&self, request: &Request) -> Body;

    /// Makes one completion of a request that goes out first with this body, telling each delta as it arrives.
    ///
    /// Nothing is repeated but a request that was refused for a parameter and could be mended. Cancelling closes the
    /// connection, so that the vendor stops as well.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection too; what had arrived is lost.
    async fn complete(
        &self,
        request: &Request,
        first: Body,
        deltas: &mut Deltas<'_>,
        cancel: &CancellationToken,
    ) -> Result<Completion, CompletionError>;
}

/// The body of a request that is not sent yet.
#[derive(Clone, Debug)]
pub struct Body {
    pub bytes: Bytes,
    /// By which it was made.
    pub(crate) parameters: Parameters,
}

/// Is told of each part of a reply as it arrives.
pub type Deltas<'d> = dyn for<'a> FnMut(Delta<'a>) + Send + 'd;

/// A part of a reply, as it arrives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delta<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    /// The model begins a call; its arguments come with the whole reply. `index` counts from 0.
    CallStarted {
        index: usize,
        name: &'a str,
    },
}

/// A whole reply, with the request that it answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    pub reply: Reply,
    /// The body of the request, byte for byte.
    pub sent: Bytes,
}
