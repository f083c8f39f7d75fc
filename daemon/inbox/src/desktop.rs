use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use ow_store::Delivery;
use tokio::process::Command;
use tokio::time::timeout;

use crate::words::{Words, words};
use crate::{Channel, Delivered, Fault};

/// The program that shows a notice.
#[cfg(not(target_os = "macos"))]
pub const NOTIFIER: &str = "notify-send";
#[cfg(target_os = "macos")]
pub const NOTIFIER: &str = "osascript";

/// A notice is shown at once, or there is no desktop.
const LIMIT: Duration = Duration::from_secs(10);

/// Notices on the desktop of the account that owd runs under.
#[derive(Debug, Default)]
pub struct Desktop;

#[async_trait]
impl Channel for Desktop {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, Fault> {
        let mut command = Command::new(NOTIFIER);
        command.args(arguments(&words(delivery)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        match timeout(LIMIT, command.output()).await {
            Ok(ended) => outcome(ended),
            Err(_elapsed) => Err(Fault::later(format!("{NOTIFIER} did not end within {} seconds", LIMIT.as_secs()))),
        }
    }
}

#[cfg(not(target_os = "macos"))]
fn arguments(words: &Words) -> Vec<String> {
    // The body may hold markup, which what others wrote must not become.
    let text = words.text.trim_end().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    vec!["--app-name=owd".into(), "--".into(), words.title.clone(), text]
}

#[cfg(target_os = "macos")]
fn arguments(words: &Words) -> Vec<String> {
    let script = ["on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run"];
    let mut arguments: Vec<String> = script.into_iter().flat_map(|line| ["-e".to_owned(), line.to_owned()]).collect();
    arguments.extend([words.title.clone(), words.text.trim_end().to_owned()]);
    arguments
}

fn outcome(ended: io::Result<Output>) -> Result<Delivered, Fault> {
    match ended {
        Ok(output) if output.status.success() => Ok(Delivered::default()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("it said nothing").trim();
            Err(Fault::later(format!("{NOTIFIER} failed: {said}")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Fault::never(format!("there is no `{NOTIFIER}`; install it (libnotify), or take `desktop` out")))
        }
        Err(error) => Err(Fault::later(format!("{NOTIFIER} cannot be started: {error}"))),
    }
}
