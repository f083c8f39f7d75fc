//! Which settings wait for the next start.

use ow_config::Config;

/// The settings that are read only at a start, and stand otherwise in the configuration now.
pub(crate) fn waiting(at_start: &Config, now: &Config) -> Vec<&'static str> {
    let changed: [(&'static str, bool); 10] = [
        ("[listener] address", at_start.listener.address != now.listener.address),
        ("[server] tcp", at_start.server.tcp != now.server.tcp),
        ("[server] key-file", at_start.server.key_file != now.server.key_file),
        ("[server] allowed-origins", at_start.server.allowed_origins != now.server.allowed_origins),
        ("[scheduler] workers", at_start.scheduler.workers != now.scheduler.workers),
        ("[scheduler] chat-workers", at_start.scheduler.chat_workers != now.scheduler.chat_workers),
        ("[scheduler] grace", at_start.scheduler.grace != now.scheduler.grace),
        ("[retention]", at_start.retention != now.retention),
        // The connections need no restart; which tools there are is settled at the start.
        ("[slack], for its tools,", at_start.slack.is_none() && now.slack.is_some()),
        ("[mail.out], for its tool,", at_start.mail.out.is_none() && now.mail.out.is_some()),
    ];
    changed.into_iter().filter_map(|(name, is_changed)| is_changed.then_some(name)).collect()
}

#[cfg(test)]
mod tests {
    use ow_config::Host;

    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, None, &Host::new(&|_| None)).expect("a configuration")
    }

    #[test]
    fn only_what_is_read_at_a_start_waits_for_one() {
        let before = config("");
        for (text, waits) in [
            ("[listener]\naddress = \"127.0.0.1:9\"\n", vec!["[listener] address"]),
            ("[server]\ntcp = \"127.0.0.1:9\"\n", vec!["[server] tcp"]),
            ("[scheduler]\nworkers = 3\ngrace = \"3s\"\n", vec!["[scheduler] workers", "[scheduler] grace"]),
            ("[slack]\nbot-token = \"a\"\n", vec!["[slack], for its tools,"]),
            ("[inboxes.default]\nslack = [\"C1\"]\n[policy]\nallow = [\"make\"]\n", vec![]),
        ] {
            let now = config(text);
            assert_eq!(waiting(&before, &now), waits, "{text}");
            assert_eq!(waiting(&now, &now), Vec::<&str>::new());
        }
    }
}
