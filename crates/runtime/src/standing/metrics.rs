//! Metrics of a standing rack over HTTP, for Prometheus and similar collectors.
//!
//! It answers `GET /metrics`, one request per connection. Every process that can reach the address can read the metrics, and nothing else. Each
//! request costs one round of answers from all members. Requests, connections and waits are bounded.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rackloom_control::request::{Answer, Request, StatusOptions};
use rackloom_export::openmetrics::{Format, exposition};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::clients::{ClientRequest, Reply};

/// Path of the metrics.
const PATH: &str = "/metrics";
/// Maximum number of connections at one time. Further ones wait.
const CONNECTIONS_MAX: usize = 8;
/// Maximum length of the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Maximum number of headers of a request.
const HEADERS_MAX: usize = 64;
/// Longest time until the head of a request has arrived, and until an answer has been taken.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time of all members together to answer.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Time until the next attempt to accept, after a shortage of descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Opens the address.
///
/// # Errors
/// The address is in use, or is none of this machine.
pub(super) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves metrics until the rack ends.
pub(super) async fn serve(
    listener: TcpListener,
    requests: mpsc::Sender<ClientRequest>,
    mut closed: watch::Receiver<()>,
) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
        tokio::select! {
            _ = closed.changed() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let requests = requests.clone();
                    tokio::spawn(async move {
                        // The end of a client in the middle of an answer is no error.
                        let _ = timeout(2 * CLIENT_TIMEOUT + STATUS_TIMEOUT, answer(stream, requests)).await;
                        drop(permit);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            }
        }
    }
}

/// Reads one request and answers it.
async fn answer(mut stream: TcpStream, requests: mpsc::Sender<ClientRequest>) -> io::Result<()> {
    let head = match timeout(CLIENT_TIMEOUT, read_head(&mut stream)).await {
        Ok(Ok(head)) => head,
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            return send(&mut stream, "400 Bad Request", TEXT, &format!("{error}\n")).await;
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => return send(&mut stream, "408 Request Timeout", TEXT, "the request did not come\n").await,
    };
    match head.refusal() {
        None => {}
        Some(status) => {
            return send(&mut stream, status, TEXT, "metrics are at GET /metrics\n").await;
        }
    }
    match timeout(STATUS_TIMEOUT, status(&requests)).await {
        Ok(Some(text)) => {
            send(&mut stream, "200 OK", head.format.content_type(), &exposition(&text, head.format)).await
        }
        _ => send(&mut stream, "503 Service Unavailable", TEXT, "the rack does not answer\n").await,
    }
}

async fn status(
    requests: &mpsc::Sender<ClientRequest>,
) -> Option<Box<rackloom_control::request::RackStatus>> {
    let (reply, answered) = oneshot::channel();
    let request = ClientRequest { request: Request::Status(StatusOptions::default()), pid: 0, reply };
    requests.send(request).await.ok()?;
    match answered.await.ok()? {
        Reply::Answer(Answer::Status(status)) => Some(status),
        _ => None,
    }
}

/// Content type of messages.
const TEXT: &str = "text/plain; charset=utf-8";

async fn send(stream: &mut TcpStream, status: &str, content_type: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    timeout(CLIENT_TIMEOUT, write).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Part of a request that matters here.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    method: String,
    path: String,
    format: Format,
}

impl Head {
    /// Returns the status of a refusal if the request is not for the metrics.
    fn refusal(&self) -> Option<&'static str> {
        if self.path != PATH {
            Some("404 Not Found")
        } else if self.method != "GET" {
            Some("405 Method Not Allowed")
        } else {
            None
        }
    }

    /// Parses the head of a request; `None` if it is not complete.
    fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(bytes).map_err(|error| invalid(format!("not a request: {error}")))?;
        if parsed.is_partial() {
            return Ok(None);
        }
        let (method, path) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default();
        let accept = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("accept"));
        let accept = accept.and_then(|header| std::str::from_utf8(header.value).ok()).unwrap_or_default();
        let format = Format::accepted(accept);
        Ok(Some(Self { method: method.to_owned(), path: path.to_owned(), format }))
    }
}

async fn read_head(stream: &mut TcpStream) -> io::Result<Head> {
    let mut received = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let length = stream.read(&mut piece).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&piece[..length]);
        if let Some(head) = Head::parse(&received)? {
            return Ok(head);
        }
        if received.len() > HEAD_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too long"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> io::Result<Option<Head>> {
        Head::parse(text.as_bytes())
    }

    #[test]
    fn only_a_get_of_the_path_is_for_the_metrics() {
        let of = |text: &str| head(text).expect("a request").expect("it is complete").refusal();
        assert_eq!(of("GET /metrics HTTP/1.1\r\n\r\n"), None);
        assert_eq!(of("GET /metrics?x=1 HTTP/1.0\r\nHost: a\r\n\r\n"), None);
        assert_eq!(of("GET / HTTP/1.1\r\n\r\n"), Some("404 Not Found"));
        assert_eq!(of("POST /metrics HTTP/1.1\r\n\r\n"), Some("405 Method Not Allowed"));
    }

    #[test]
    fn a_request_is_incomplete_complete_or_refused() {
        assert_eq!(head("GET /metrics HT").expect("it may become one"), None);
        assert!(head("\u{1}\u{2} /metrics\r\n\r\n").is_err());
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        assert!(head(&many).is_err());
    }
}
