//! Requests signed as Slack signs them: `v0=` and the HMAC-SHA256 of `v0:<time>:<body>`.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ring::hmac;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(3);

/// The signature of a body sent at this second.
pub(super) fn signature(secret: &str, second: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("v0:{second}:{body}").as_bytes());
    tag.as_ref().iter().fold("v0=".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

pub(super) fn wall_clock() -> u64 {
    clock_gettime(ClockId::Realtime).tv_sec.unsigned_abs()
}

/// Posts a signed body to `url` (http on loopback), and gives status and body of the answer.
pub(super) fn post(
    url: &str,
    secret: &str,
    kind: &str,
    retry: Option<(u32, &str)>,
    body: &str,
) -> io::Result<(u16, Value)> {
    let bad = || io::Error::new(io::ErrorKind::InvalidInput, "no http address");
    let rest = url.strip_prefix("http://").ok_or_else(bad)?;
    let (host, path) = rest.split_at(rest.find('/').ok_or_else(bad)?);
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let second = wall_clock();
    let mut text = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nuser-agent: Slackbot 1.0\r\ncontent-type: {kind}\r\n\
         x-slack-request-timestamp: {second}\r\nx-slack-signature: {}\r\ncontent-length: {}\r\n",
        signature(secret, second, body),
        body.len()
    );
    if let Some((number, reason)) = retry {
        write!(text, "x-slack-retry-num: {number}\r\nx-slack-retry-reason: {reason}\r\n").map_err(io::Error::other)?;
    }
    text.push_str("\r\n");
    text.push_str(body);
    stream.write_all(text.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split_whitespace().nth(1).and_then(|word| word.parse().ok()).ok_or_else(bad)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    Ok((status, serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.into()))))
}

#[cfg(test)]
mod tests {
    use super::signature;

    #[test]
    fn the_published_example_has_the_published_signature() {
        let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
                    channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                    response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F\
                    96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signed = signature("8f742231b10e8888abcd99yyyzzz85a5", 1_531_420_618, body);
        assert_eq!(signed, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503");
    }
}
