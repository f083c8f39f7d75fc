use std::cell::OnceCell;

use jiff::Timestamp;
use ow_client::Client;
use ow_config::{Account, PathFlags, Paths};

use crate::failure::Failure;
use crate::output::Out;
use crate::place;
use crate::time::Clock;

/// What every command is given.
pub(crate) struct Context {
    pub(crate) out: Out,
    pub(crate) flags: PathFlags,
    pub(crate) account: Account,
    clock: OnceCell<Clock>,
}

impl Context {
    pub(crate) fn new(out: Out, flags: PathFlags, account: Account) -> Self {
        Self { out, flags, account, clock: OnceCell::new() }
    }

    pub(crate) fn paths(&self) -> Result<Paths, Failure> {
        place::paths(self.account, &self.flags)
    }

    /// The present in the person's zone, read when it is first needed.
    #[expect(clippy::disallowed_methods, reason = "the binary's edge: the present enters here, once a command")]
    pub(crate) fn clock(&self) -> &Clock {
        self.clock.get_or_init(|| Clock::new(Timestamp::now()))
    }

    /// Does work that speaks to owd, on a runtime that lives as long.
    pub(crate) fn with_daemon<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|why| Failure::io("cannot wait for the network", &why))?;
        let mut client = Client::new(&self.paths()?.socket);
        let done = runtime.block_on(work(&mut client));
        if let Some(running) = client.running_version()
            && running != env!("CARGO_PKG_VERSION")
        {
            self.out.note(&format!(
                "warning: owd {} is running and this is owctl {}; restart owd: {}",
                crate::escape::line(running),
                env!("CARGO_PKG_VERSION"),
                place::how_to_restart()
            ));
        }
        done
    }
}
