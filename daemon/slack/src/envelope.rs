//! What Slack says on a socket.

use serde_json::Value;

/// One message of a socket's.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// The socket is good.
    Hello,
    /// Another socket is wanted in place of this one.
    Refresh { reason: String },
    /// No socket is wanted any more: Socket Mode is switched off in the app's settings.
    Disabled,
    /// What happened, to be acknowledged by its id.
    Envelope { id: String, payload: Value },
    /// Something else.
    Other,
    /// No JSON.
    Broken,
}

/// Reads a message of a socket's.
#[must_use]
pub fn said(text: &str) -> Said {
    let Ok(mut message) = serde_json::from_str::<Value>(text) else { return Said::Broken };
    match message["type"].as_str() {
        Some("hello") => return Said::Hello,
        Some("disconnect") => {
            let reason = message["reason"].as_str().unwrap_or_default();
            return if reason == "link_disabled" {
                Said::Disabled
            } else {
                Said::Refresh { reason: reason.to_owned() }
            };
        }
        _ => {}
    }
    let Some(id) = message["envelope_id"].as_str().map(str::to_owned) else { return Said::Other };
    let payload = message.get_mut("payload").map(Value::take).unwrap_or_default();
    Said::Envelope { id, payload }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_socket_says_what_slack_documents_and_nothing_else_counts() {
        let refresh = |reason: &str| Said::Refresh { reason: reason.into() };
        for (text, meant) in [
            (r#"{"type":"hello","num_connections":1}"#, Said::Hello),
            (r#"{"type":"disconnect","reason":"refresh_requested"}"#, refresh("refresh_requested")),
            (r#"{"type":"disconnect"}"#, refresh("")),
            (r#"{"type":"disconnect","reason":"link_disabled"}"#, Said::Disabled),
            (
                r#"{"type":"events_api","envelope_id":"e1","payload":{"type":"event_callback"}}"#,
                Said::Envelope { id: "e1".into(), payload: json!({ "type": "event_callback" }) },
            ),
            (
                r#"{"type":"slash_commands","envelope_id":"e2"}"#,
                Said::Envelope { id: "e2".into(), payload: Value::Null },
            ),
            (r#"{"envelope_id":7}"#, Said::Other),
            ("[1]", Said::Other),
            ("hello", Said::Broken),
        ] {
            assert_eq!(said(text), meant, "{text}");
        }
    }
}
