//! owd beside a local Slack.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use ow_test_support::{SLACK_BOT, Scratch, Slack};

/// A workspace with a channel of ada, who may answer, and eve, who may not.
#[must_use]
pub fn workspace() -> Slack {
    let slack = Slack::start();
    slack.user("UADA", "ada");
    slack.user("UEVE", "eve");
    slack.channel("C1", "ops", &["UADA", "UEVE", SLACK_BOT]);
    slack
}

/// Has owd connect to it, and tell the default inbox's items there. `app`: more of `[slack]`; `inbox`: of the inbox and
/// what follows.
///
/// # Panics
///
/// When a file cannot be written.
pub fn connect(scratch: &Scratch, slack: &Slack, app: &str, inbox: &str) {
    scratch.config(&format!(
        "[slack]\nbot-token = \"slack-bot-token\"\napp-token = \"slack-app-token\"\napi-url = \"{}\"\n{app}\n\
         [people.ada]\nuids = [{}]\nslack = [\"UADA\"]\n[inboxes.default]\n{inbox}\n",
        slack.url(),
        std::fs::metadata(scratch.path()).expect("a home").uid(),
    ));
    tokens(scratch, slack.bot_token(), slack.app_token());
}

/// The app's tokens, among the secrets.
///
/// # Panics
///
/// When the file cannot be written.
pub fn tokens(scratch: &Scratch, bot: &str, app: &str) {
    let file = scratch.path().join("config/secrets.toml");
    std::fs::write(&file, format!("slack_bot_token = \"{bot}\"\nslack_app_token = \"{app}\"\n")).expect("written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("private");
}
