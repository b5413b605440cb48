//! Control socket of a standing rack: access of clients, and limits on their number, requests and idle time.
//!
//! The private directory keeps other users out, and the user of the peer is checked as well. Each client has
//! a task. It converts lines into requests to the supervisor, and answers into lines. A malformed request
//! gets an error. A client that sends too much, or nothing for too long, is disconnected. No client can block
//! the supervisor.

use std::io;
use std::time::Duration;

use rackloom_control::request::{Answer, Nothing, REQUEST_BYTES_MAX, Request};
use rackloom_jobs::report::EventRecord;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::channel::bounded_lines::BoundedLines;
use crate::supervisor::SeatService;

/// Maximum number of clients at one time. Processes that took a seat do not count.
const CLIENTS_MAX: usize = 32;
/// Number of connections that only `status` and `down` may use, so that other clients cannot prevent the end
/// of a rack.
const RESERVED: usize = 1;
/// Longest time until the request of a client on a reserved connection.
const RESERVED_SILENCE_MAX: Duration = Duration::from_secs(2);
/// Longest time between two requests of a client.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Longest time for a client to read an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for clients to read the last answer.
const LAST_ANSWER_MAX: Duration = Duration::from_secs(2);
/// Maximum number of events that wait for a slow client.
const EVENTS_WAITING_MAX: usize = 4096;
/// Time until the next attempt to accept, after a shortage of descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Refusal of another job for a running rack.
const NO_OTHER_JOB: &str = "a rack that is up does the job that it was started with, if any: its plan, its keys and its epoch follow from that";
const JOB_INSTEAD: &str = "`rackloom up FILE --job NAME` starts one with a job, for whose steps faults can wait; `rackloom job submit` runs programs of yours on vacant seats";

/// Request of a client to the supervisor.
pub(super) struct ClientRequest {
    pub(super) request: Request,
    /// The client's process.
    pub(super) pid: u32,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// Answer of the supervisor to a client.
pub(super) enum Reply {
    /// A line.
    Answer(Answer),
    /// A seat: the answer, and the task that serves the seat.
    Seat(Answer, Box<SeatService>),
}

/// Channels that all clients share.
#[derive(Clone)]
pub(super) struct ClientChannels {
    pub(super) requests: mpsc::Sender<ClientRequest>,
    pub(super) events: broadcast::Sender<EventRecord>,
    /// Changes when the rack has ended.
    closed: watch::Receiver<()>,
}

/// Ends of the channels between clients and supervisor.
pub(super) struct SocketEnds {
    /// End of the clients.
    pub(super) channels: ClientChannels,
    /// Requests of the clients, for the supervisor.
    pub(super) requests: mpsc::Receiver<ClientRequest>,
    /// Closes the socket when it is dropped.
    pub(super) open: watch::Sender<()>,
}

impl ClientChannels {
    /// Returns a receiver that changes when the rack has ended.
    pub(super) fn closed(&self) -> watch::Receiver<()> {
        self.closed.clone()
    }
}

impl SocketEnds {
    pub(super) fn new() -> Self {
        let (to_supervisor, requests) = mpsc::channel(CLIENTS_MAX);
        let (open, closed) = watch::channel(());
        let events = broadcast::channel(EVENTS_WAITING_MAX).0;
        Self { channels: ClientChannels { requests: to_supervisor, events, closed }, requests, open }
    }
}

/// Serves clients until the socket closes, then waits until they have read their last answer.
pub(super) async fn serve_clients(listener: UnixListener, mut channels: ClientChannels) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            _ = channels.closed.changed() => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => accept(&mut clients, stream, &channels),
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            }
        }
    }
    drop(listener);
    let all_gone = async { while clients.join_next().await.is_some() {} };
    let _ = timeout(LAST_ANSWER_MAX, all_gone).await;
}

fn accept(clients: &mut JoinSet<()>, stream: UnixStream, channels: &ClientChannels) {
    let is_crowded = clients.len() >= CLIENTS_MAX;
    let is_reserved = clients.len() >= CLIENTS_MAX - RESERVED;
    let Ok(peer) = stream.peer_cred() else { return };
    let refusal = if peer.uid() != rustix::process::geteuid().as_raw() {
        Some(Answer::refuse("this rack belongs to another user", None))
    } else if is_crowded {
        Some(Answer::refuse(format!("more than {CLIENTS_MAX} clients"), Some("end some of them")))
    } else {
        None
    };
    if let Some(refusal) = refusal {
        // The line fits into an empty socket.
        let _ = stream.try_write(&refusal.line());
        return;
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
    let channels = channels.clone();
    clients.spawn(async move {
        let (reader, writer) = stream.into_split();
        let lines = BoundedLines::new(reader, REQUEST_BYTES_MAX);
        let client = Client { lines, writer, pid, channels, is_reserved };
        // The end of a client in the middle of a request is no error.
        let _ = client.serve().await;
    });
}

struct Client {
    lines: BoundedLines<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    pid: u32,
    channels: ClientChannels,
    /// True on a reserved connection, for one request `status` or `down`.
    is_reserved: bool,
}

impl Client {
    async fn serve(mut self) -> io::Result<()> {
        let silence_max = if self.is_reserved { RESERVED_SILENCE_MAX } else { SILENCE_MAX };
        loop {
            let next = tokio::select! {
                _ = self.channels.closed.changed() => return Ok(()),
                next = timeout(silence_max, self.lines.next()) => next,
            };
            let line = match next {
                Ok(Ok(Some(line))) => line,
                Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    return self.send(&Answer::refuse(error.to_string(), None)).await;
                }
                _ => return Ok(()),
            };
            match Request::from_line(&line) {
                Err(refusal) => self.send(&refusal).await?,
                Ok(request)
                    if self.is_reserved && !matches!(request, Request::Status(_) | Request::Down(_)) =>
                {
                    let hint = Some("end some of them; `status` and `down` are answered");
                    let what = format!("more than {} clients", CLIENTS_MAX - RESERVED);
                    return self.send(&Answer::refuse(what, hint)).await;
                }
                Ok(Request::Subscribe(Nothing {})) => return self.send_events().await,
                Ok(Request::Job(_)) => self.send(&Answer::refuse(NO_OTHER_JOB, Some(JOB_INSTEAD))).await?,
                Ok(request) => match self.request(request).await {
                    Some(Reply::Answer(answer)) => self.send(&answer).await?,
                    Some(Reply::Seat(answer, service)) => {
                        let Ok(stream) = self.lines.into_inner().reunite(self.writer) else { return Ok(()) };
                        // The connection belongs to the seat now. It does not count as a client, and the end
                        // of the rack does not wait for it.
                        tokio::spawn(async move { service.serve(stream, &answer.line()).await });
                        return Ok(());
                    }
                    None => return Ok(()),
                },
            }
            if self.is_reserved {
                return Ok(());
            }
        }
    }

    async fn request(&self, request: Request) -> Option<Reply> {
        let (reply, answer) = oneshot::channel();
        self.channels.requests.send(ClientRequest { request, pid: self.pid, reply }).await.ok()?;
        answer.await.ok()
    }

    /// Sends events until the client disconnects or sends a line, or the rack ends.
    async fn send_events(mut self) -> io::Result<()> {
        let mut events = self.channels.events.subscribe();
        self.send(&Answer::Subscribed(Nothing {})).await?;
        loop {
            let answer = tokio::select! {
                _ = self.channels.closed.changed() => return Ok(()),
                line = self.lines.next() => match line {
                    Ok(Some(_)) => Answer::refuse("this connection sends events", Some("use another connection for requests")),
                    _ => return Ok(()),
                },
                event = events.recv() => match event {
                    Ok(record) => Answer::Event(record),
                    Err(broadcast::error::RecvError::Lagged(count)) => Answer::Missed(count),
                    Err(broadcast::error::RecvError::Closed) => return Ok(()),
                },
            };
            self.send(&answer).await?;
        }
    }

    async fn send(&mut self, answer: &Answer) -> io::Result<()> {
        use tokio::io::AsyncWriteExt;
        timeout(WRITE_TIMEOUT, self.writer.write_all(&answer.line())).await?
    }
}
