use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ow_clock::Clock;
use ow_store::Store;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::desk::Desk;
use crate::threads::Threads;
use crate::{Client, Directory, Fault, Intake, Me, SocketMode, Standing};

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// Between attempts that a person must help, with a token.
const HELPLESS_WAIT: Duration = Duration::from_mins(10);

/// All that comes from Slack: it is taken in, and worked off.
pub struct Surface {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub client: Client,
    pub directory: Arc<dyn Directory>,
    pub standing: watch::Sender<Standing>,
    /// Where the intake is put for a [`Door`](crate::Door), once Slack has said who the app is.
    pub intake: Arc<OnceLock<Arc<Intake>>>,
}

impl Surface {
    /// Runs until it is told to stop; Slack may be unreachable at any time.
    pub async fn run(self, stop: CancellationToken) {
        let me = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            me = self.me() => me,
        };
        let Self { store, clock, client, directory, standing, intake: shared } = self;
        standing.send_modify(|standing| standing.team = Some(me.team_name));
        let intake = Arc::new(Intake::new(Arc::clone(&store), me.user.clone()));
        let intake = shared.get_or_init(|| intake).clone();
        let said = Arc::new(Notify::new());
        let threads = Threads {
            store: Arc::clone(&store),
            client: client.clone(),
            clock: clock.clone(),
            said: Arc::clone(&said),
        };
        let desk = Desk {
            store,
            clock: clock.clone(),
            client: client.clone(),
            intake: Arc::clone(&intake),
            directory,
            bot: me.user,
            said,
        };
        let is_connected = client.has_app_token();
        let mode = SocketMode { client, intake, clock, standing };
        let connection = async {
            if is_connected {
                mode.run(stop.clone()).await;
            }
        };
        tokio::join!(connection, desk.run(stop.clone()), threads.run(stop.clone()));
    }

    /// Whose tokens they are: without it, nobody could tell the app's own words from others'.
    async fn me(&self) -> Me {
        let mut wait = FIRST_WAIT;
        loop {
            let (why, pause) = match self.client.me().await {
                Ok(me) => return me,
                Err(Fault::Later { after, why }) => (why, after.unwrap_or(wait).max(wait)),
                Err(Fault::Lost { why }) => (why, wait),
                Err(fault @ Fault::Never { .. }) => (fault.to_string(), HELPLESS_WAIT),
            };
            warn!(why, seconds = pause.as_secs(), "Slack does not say who the app is; it is asked again");
            self.standing.send_modify(|standing| standing.lost(self.clock.now(), &why));
            sleep(pause).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}
