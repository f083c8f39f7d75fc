use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use ow_protocol::WebhookView;

use super::Check;
use super::daemon::Answer;
use super::machine::Machine;

const NAME: &str = "webhooks";
const WAIT: Duration = Duration::from_secs(2);

/// The hops of a delivery: the listener, a secret, a task.
pub(super) fn check(machine: &Machine, answer: &Answer) -> Vec<Check> {
    let Ok(config) = machine.config() else { return vec![] };
    if config.webhook.is_empty() && config.listener.address.is_none() {
        return vec![];
    }
    let Ok(status) = &answer.status else { return vec![Check::ok(NAME, "not looked at: owd does not answer")] };
    let mut checks = vec![];
    match (&status.listener, config.listener.address) {
        (Some(address), wanted) => checks.push(listener(address, wanted, config.listener.is_exposed())),
        (None, Some(wanted)) => checks.push(Check::fail(
            NAME,
            format!("owd does not listen on {wanted}: it was started before the configuration said so"),
            "restart owd",
        )),
        (None, None) => checks.push(Check::warn(
            NAME,
            "there are webhooks and no listener: nothing can be delivered",
            "set `[listener] address` in owd.toml, then restart owd",
        )),
    }
    checks.extend(answer.webhooks.iter().map(hook));
    checks
}

fn listener(address: &str, wanted: Option<SocketAddr>, is_exposed: bool) -> Check {
    let Ok(at) = address.parse::<SocketAddr>() else { return Check::ok(NAME, format!("listens on {address}")) };
    if wanted.is_some_and(|wanted| wanted != at && wanted.port() != 0) {
        return Check::warn(NAME, format!("owd listens on {at}, the configuration says otherwise"), "restart owd");
    }
    let near = if at.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], at.port())) } else { at };
    match TcpStream::connect_timeout(&near, WAIT) {
        Err(why) => Check::fail(NAME, format!("nobody answers on {at}: {why}"), "`owctl logs`, then restart owd"),
        Ok(_) if is_exposed => Check::warn(
            NAME,
            format!("{at} is open to other machines, without TLS; only signatures guard it"),
            "listen on 127.0.0.1 behind a proxy that speaks TLS, unless that is what you want",
        ),
        Ok(_) => Check::ok(NAME, format!("the listener answers on {at}")),
    }
}

fn hook(hook: &WebhookView) -> Check {
    let name = &hook.name;
    let known = hook.secrets.iter().filter(|secret| secret.known).count();
    if known == 0 {
        let names: Vec<&str> = hook.secrets.iter().map(|secret| secret.name.as_str()).collect();
        return Check::fail(
            NAME,
            format!("{name}: no secret has a value, so that nothing is accepted"),
            format!("`owctl secret set {}`, and enter the same at the sender", names.first().unwrap_or(&"NAME")),
        );
    }
    if hook.tasks.is_empty() {
        return Check::warn(
            NAME,
            format!("{name}: no task runs on it"),
            format!("give one `[[trigger]]` with `webhook = \"{name}\"`, or remove it"),
        );
    }
    match (&hook.last_refused_why, hook.accepted + hook.known) {
        (Some(why), 0) => Check::warn(
            NAME,
            format!("{name}: nothing was accepted since owd started, and {} refused: {why}", hook.refused),
            "enter the same secret at the sender, and choose the `profile` by which it signs",
        ),
        _ => Check::ok(NAME, format!("{name}: {} accepted for {}", hook.accepted, hook.tasks.join(", "))),
    }
}
