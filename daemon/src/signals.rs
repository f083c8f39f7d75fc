//! What the system asks of owd.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) enum SignalEvent {
    Reload,
    Stop,
}

pub(crate) struct Signals {
    hangup: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            hangup: listen(SignalKind::hangup())?,
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    pub(crate) async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => SignalEvent::Stop,
            _ = self.interrupt.recv() => SignalEvent::Stop,
            _ = self.hangup.recv() => SignalEvent::Reload,
        }
    }

    pub(crate) async fn stop(&mut self) {
        loop {
            match self.next().await {
                SignalEvent::Stop => return,
                SignalEvent::Reload => {}
            }
        }
    }
}
