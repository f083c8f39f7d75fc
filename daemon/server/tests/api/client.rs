//! A client that sends what it is told to, right or wrong.

use std::net::SocketAddr;
use std::path::Path;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

pub(crate) struct Client {
    sender: http1::SendRequest<Full<Bytes>>,
    /// What a request is sent with if it does not say otherwise.
    headers: Vec<(&'static str, String)>,
    _connection: JoinSet<()>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) async fn unix(path: &Path) -> Self {
        Self::over(UnixStream::connect(path).await.expect("owd listens"), vec![("host", "owd".into())]).await
    }

    pub(crate) async fn tcp(address: SocketAddr, key: &str) -> Self {
        let headers = vec![("host", address.to_string()), ("authorization", format!("Bearer {key}"))];
        Self::over(TcpStream::connect(address).await.expect("owd listens"), headers).await
    }

    async fn over<S>(stream: S, headers: Vec<(&'static str, String)>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        Self { sender, headers, _connection: driver }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn delete(&mut self, path: &str) -> Reply {
        self.send("DELETE", path, &[], "").await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[], &body.to_string()).await
    }

    pub(crate) async fn put(&mut self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, &[], &body.to_string()).await
    }

    /// `headers` replace those of the same name; an empty value leaves the header out.
    pub(crate) async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let response = self.open(method, path, headers, Bytes::copy_from_slice(body.as_bytes())).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().collect().await.expect("a whole body").to_bytes().to_vec();
        Reply { status: status.as_u16(), headers, body }
    }

    /// Sends and gives the answer with its body still coming.
    pub(crate) async fn open(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> hyper::Response<Incoming> {
        let mut request = Request::builder().method(method).uri(path);
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in own.filter(|(name, _)| !headers.iter().any(|(other, _)| other == name)) {
            request = request.header(name, value);
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        self.sender.ready().await.expect("the connection stands");
        let request = request.body(Full::new(body)).expect("a request");
        self.sender.send_request(request).await.expect("an answer")
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON of an answer that is a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        self.json()
    }

    #[track_caller]
    pub(crate) fn done(&self) {
        assert_eq!(self.status, StatusCode::NO_CONTENT, "{}", self.text());
        assert!(self.body.is_empty());
    }

    /// Checks that it is an error of this status and code, whole, and gives it.
    #[track_caller]
    pub(crate) fn error(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        let error = self.json()["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
        assert_eq!(error["request_id"].as_str(), self.header("x-request-id"), "{error}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        error
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }
}
