use std::ffi::OsStr;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use ow_config::{Config, NamedInboxConfig};

use super::Check;
use super::machine::Machine;

const NAME: &str = "notices";
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether what inboxes are bound to can be reached. Nothing is sent: `owctl inbox test` does.
pub(super) fn check(machine: &Machine) -> Vec<Check> {
    let Ok(config) = machine.config() else { return vec![] };
    of(&config, &reach, &|program| on_path(&machine.search_path, program))
}

fn of(config: &Config, reach: &dyn Fn(&str) -> Result<(), String>, on_path: &dyn Fn(&str) -> bool) -> Vec<Check> {
    let mut checks = vec![];
    for (inbox, bound) in &config.inboxes {
        let NamedInboxConfig { desktop, ntfy, webhook, .. } = bound;
        for (key, url) in [("ntfy", ntfy), ("webhook", webhook)] {
            let Some(url) = url else { continue };
            checks.push(match reach(url) {
                Ok(()) => Check::ok(NAME, format!("inboxes.{inbox}.{key}: the server can be reached")),
                Err(why) => Check::warn(
                    NAME,
                    format!("inboxes.{inbox}.{key}: {why}"),
                    "check the address; notices are tried again for two days, then you are told here",
                ),
            });
        }
        let program = if cfg!(target_os = "macos") { "osascript" } else { "notify-send" };
        if *desktop {
            checks.push(if on_path(program) {
                Check::ok(NAME, format!("inboxes.{inbox}.desktop: `{program}` is there"))
            } else {
                let remedy = "install it (Debian: libnotify-bin), or take `desktop` out";
                Check::warn(NAME, format!("inboxes.{inbox}.desktop: there is no `{program}`"), remedy)
            });
        }
    }
    checks
}

/// Connects, and says no more.
fn reach(url: &str) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").ok_or("not an address")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let with_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = if scheme == "http" { 80 } else { 443 };
    let host = if with_port { authority.to_owned() } else { format!("{authority}:{port}") };
    let addresses = host.to_socket_addrs().map_err(|error| format!("`{authority}` has no address: {error}"))?;
    let mut last = format!("`{authority}` has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_connected) => return Ok(()),
            Err(error) => last = format!("`{authority}` cannot be reached: {error}"),
        }
    }
    Err(last)
}

fn on_path(search_path: &OsStr, program: &str) -> bool {
    std::env::split_paths(search_path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use ow_config::Host;
    use ow_model::ZoneName;

    use super::*;

    #[test]
    fn each_binding_is_looked_at_and_the_broken_one_named() {
        let host = Host { home: "/home/ada".into(), timezone: ZoneName("UTC".into()) };
        let text =
            "[inboxes.default]\ndesktop = true\nntfy = \"http://up.example/t\"\nwebhook = \"http://down.example\"\n";
        let config = Config::parse(text, None, &host).expect("sound");
        let reach = |url: &str| if url.contains("down") { Err("connection refused".into()) } else { Ok(()) };
        let found: Vec<String> = of(&config, &reach, &|_| false)
            .into_iter()
            .map(|check| format!("{} {}", check.state.word(), check.message))
            .collect();
        let program = if cfg!(target_os = "macos") { "osascript" } else { "notify-send" };
        assert_eq!(
            found,
            [
                "ok inboxes.default.ntfy: the server can be reached".to_owned(),
                "warn inboxes.default.webhook: connection refused".to_owned(),
                format!("warn inboxes.default.desktop: there is no `{program}`"),
            ]
        );
    }

    #[test]
    fn an_address_is_reached_with_the_port_of_its_scheme_or_its_own() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        assert_eq!(reach(&format!("http://127.0.0.1:{port}/x")), Ok(()));
        drop(listener);
        let refused = reach(&format!("http://127.0.0.1:{port}/x")).expect_err("nobody listens");
        assert!(refused.contains(&format!("`127.0.0.1:{port}` cannot be reached")), "{refused}");
    }
}
