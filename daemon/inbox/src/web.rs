use std::error::Error;
use std::fmt::Write;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_model::{Item, Span};
use ow_store::{Content, Delivery, Notice, Reply};
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, StatusCode, redirect};
use ring::hmac;
use serde_json::{Value, json};

use crate::words::words;
use crate::{Channel, Delivered, Fault};

const AGENT: &str = concat!("owd/", env!("CARGO_PKG_VERSION"));
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Connections stay open for the next message of a burst, and not for the next of the day.
const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// A server may not put off the next attempt for longer.
const LONGEST_WAIT: Span = Span::from_secs(86_400);

/// The signature of a webhook's body, with the name of its hash before it.
const SIGNATURE: &str = "x-owd-signature";
/// The name of a webhook's message: the same in each attempt.
const DELIVERY: &str = "x-owd-delivery";

/// Notices to a topic of ntfy: the binding's address is the topic's.
#[derive(Debug, Default)]
pub struct Ntfy {
    clients: Clients,
}

/// Notices as JSON to an address of the person's own.
pub struct Webhook {
    show: Arc<ShowItem>,
    keys: Arc<WebhookKeys>,
    clients: Clients,
}

/// Makes JSON of an item, as the control API shows it.
pub type ShowItem = dyn Fn(&Item) -> Value + Send + Sync;
/// Finds the key by which calls of an address are signed; the error says why it is not there.
pub type WebhookKeys = dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync;

impl Webhook {
    #[must_use]
    pub fn new(show: Arc<ShowItem>, keys: Arc<WebhookKeys>) -> Self {
        Self { show, keys, clients: Clients::default() }
    }

    fn body(&self, delivery: &Delivery) -> Value {
        match &delivery.content {
            Content::Notices(notices) => {
                let shown = notices.iter().map(|Notice { item, occasion, thread: _ }| {
                    json!({ "occasion": occasion.word(), "item": (self.show)(item) })
                });
                json!({ "delivery": delivery.message_id, "notices": shown.collect::<Vec<_>>() })
            }
            Content::Reply(Reply { subject, text, in_reply_to: _, references: _ }) => {
                json!({ "delivery": delivery.message_id, "subject": subject, "text": text })
            }
        }
    }
}

#[async_trait]
impl Channel for Ntfy {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, Fault> {
        let url = delivery.binding.address();
        let words = words(delivery);
        let request = self.clients.of(url)?.post(url).header("title", header(&words.title)).body(words.text);
        send(request).await
    }
}

#[async_trait]
impl Channel for Webhook {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, Fault> {
        let url = delivery.binding.address();
        let body = self.body(delivery).to_string();
        let mut request = self
            .clients
            .of(url)?
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(DELIVERY, header(&delivery.message_id));
        if let Some(key) = (self.keys)(url).map_err(Fault::later)? {
            request = request.header(SIGNATURE, signature(&key, body.as_bytes()));
        }
        send(request.body(body)).await
    }
}

/// `sha256=` and the HMAC of the body, as many services write it.
fn signature(key: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let tag = hmac::sign(&key, body);
    tag.as_ref().iter().fold("sha256=".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all text");
        text
    })
}

/// A header's value; what is not ASCII as mail writes it, which ntfy reads.
fn header(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let text = if plain { text.to_owned() } else { format!("=?UTF-8?B?{}?=", STANDARD.encode(text)) };
    HeaderValue::from_str(&text).expect("printable ASCII")
}

/// The clients of a channel, each made when it is first wanted: to make one takes longer than to send a message. What the
/// person has configured may be an address of this machine or its network.
#[derive(Debug, Default)]
struct Clients {
    clear: OnceLock<Client>,
    secure: OnceLock<Client>,
}

impl Clients {
    fn of(&self, url: &str) -> Result<&Client, Fault> {
        let is_clear = url.starts_with("http://");
        let cell = if is_clear { &self.clear } else { &self.secure };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        // One that cannot be made is tried again with the next attempt.
        let client = client(is_clear)?;
        Ok(cell.get_or_init(|| client))
    }
}

fn client(is_clear: bool) -> Result<Client, Fault> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It fails only where another part has set one already.
        drop(rustls::crypto::ring::default_provider().install_default());
    });
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(AGENT)
        .connect_timeout(CONNECT_LIMIT)
        .timeout(ANSWER_LIMIT)
        .pool_idle_timeout(IDLE_LIMIT);
    if is_clear {
        // A machine without certificates can still speak plain HTTP.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| Fault::later(format!("no HTTP client: {}", cause(&error))))
}

async fn send(request: RequestBuilder) -> Result<Delivered, Fault> {
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => {
            let error = error.without_url();
            let why = if error.is_timeout() { "no answer in time".into() } else { cause(&error) };
            // Once there was a connection it may have been taken.
            return Err(if error.is_connect() { Fault::later(why) } else { Fault::lost(why) });
        }
    };
    let status = response.status();
    if status.is_success() {
        return Ok(Delivered::default());
    }
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let after = seconds.map(|seconds| Span::from_secs(seconds).min(LONGEST_WAIT));
    let may_pass = status.is_server_error()
        || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    let why = format!("the server answered {status}");
    Err(if may_pass { Fault::Later { after, why } } else { Fault::Never { why } })
}

/// The innermost reason, which says what happened.
fn cause(error: &dyn Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_the_body_under_the_key() {
        // RFC 4231, test case 2.
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", b"what do ya want for nothing?"), expected);
    }

    #[test]
    fn a_client_is_made_once_for_all_messages() {
        let clients = Clients::default();
        let of = |url: &str| std::ptr::from_ref(clients.of(url).expect("a client"));
        assert_eq!(of("http://127.0.0.1:1/a"), of("http://example.com/b"));
        assert_ne!(of("http://127.0.0.1:1/a"), of("https://example.com/b"));
    }

    #[test]
    fn a_title_in_any_language_fits_a_header() {
        assert_eq!(header("Backup: ask"), "Backup: ask");
        assert_eq!(header("Löschen?"), "=?UTF-8?B?TMO2c2NoZW4/?=");
    }
}
