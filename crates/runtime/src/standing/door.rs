//! The control socket of a standing rack: who may come in, how much they may say, how long they may stay silent.
//!
//! The directory keeps other users out; the kernel's word about the peer is asked all the same. Every client has a task of
//! its own that turns lines into questions to the supervisor and answers into lines. A client that says nonsense is
//! told so, one that says too much or nothing for too long is shut out, and none of them can hold up the supervisor.

use std::io;
use std::time::Duration;

use rackloom_jobs::report::EventRecord;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::channel::bounded_lines::BoundedLines;
use crate::supervisor::Attendance;
use rackloom_control::request::{Answer, Nothing, REQUEST_BYTES_MAX, Request};

/// Clients at one time; processes that took a seat do not count.
const CLIENTS_MAX: usize = 32;
/// Of these, the last place is for `status` and `down` alone, so that clients that hold all others cannot keep a rack from being taken down.
const RESERVED: usize = 1;
/// A client in the reserved place must ask at once.
const RESERVED_SILENCE_MAX: Duration = Duration::from_secs(2);
/// A client that neither asks nor listens for so long has been forgotten by its user.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// A client that does not read its answer for so long is not waited for.
const DEAFNESS_MAX: Duration = Duration::from_secs(10);
/// After the last answer clients may take so long to read it.
const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// Events that a slow listener may be behind.
const EVENTS_BEHIND_MAX: usize = 4096;
/// The system was short of descriptors or memory; perhaps it is not any more.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Why nobody can give a rack that is up another job, and what there is instead.
const NO_OTHER_JOB: &str = "a rack that is up does the job that it was started with, if any: its plan, its keys and its epoch follow from that";
const JOB_INSTEAD: &str = "`rackloom up FILE --job NAME` starts one with a job, whose places faults can wait for; programs on seats of their own do any other work (docs/library.md)";

/// A question on its way to the supervisor.
pub(super) struct Asked {
    pub(super) request: Request,
    /// The client's process.
    pub(super) pid: u32,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// What the supervisor answers.
pub(super) enum Reply {
    /// A line.
    Answer(Answer),
    /// A seat: the line, and what serving the seat takes.
    Seat(Answer, Box<Attendance>),
}

/// What clients share.
#[derive(Clone)]
pub(super) struct Counter {
    pub(super) asked: mpsc::Sender<Asked>,
    pub(super) events: broadcast::Sender<EventRecord>,
    /// Says when there is nothing more to ask.
    closed: watch::Receiver<()>,
}

impl Counter {
    /// Both ends of what clients and supervisor say to each other, and what closes the door when it is dropped.
    pub(super) fn new() -> (Self, mpsc::Receiver<Asked>, watch::Sender<()>) {
        let (asked, heard) = mpsc::channel(CLIENTS_MAX);
        let (open, closed) = watch::channel(());
        (Self { asked, events: broadcast::channel(EVENTS_BEHIND_MAX).0, closed }, heard, open)
    }
}

/// Let clients in until the door closes, then wait a little for those who still read their last answer.
pub(super) async fn keep_open(listener: UnixListener, mut counter: Counter) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            _ = counter.closed.changed() => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => let_in(&mut clients, stream, &counter),
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            }
        }
    }
    drop(listener);
    let all_gone = async { while clients.join_next().await.is_some() {} };
    let _ = timeout(FAREWELL_MAX, all_gone).await;
}

fn let_in(clients: &mut JoinSet<()>, stream: UnixStream, counter: &Counter) {
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
        // It fits into an empty socket; whoever does not read it has been told all the same.
        let _ = stream.try_write(&refusal.line());
        return;
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
    let counter = counter.clone();
    clients.spawn(async move {
        let (reader, writer) = stream.into_split();
        let lines = BoundedLines::new(reader, REQUEST_BYTES_MAX);
        let client = Client { lines, writer, pid, counter, is_reserved };
        // A client that goes away in the middle has lost interest.
        let _ = client.serve().await;
    });
}

struct Client {
    lines: BoundedLines<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    pid: u32,
    counter: Counter,
    /// It has the place that is kept for `status` and `down`, for one request.
    is_reserved: bool,
}

impl Client {
    async fn serve(mut self) -> io::Result<()> {
        let silence_max = if self.is_reserved { RESERVED_SILENCE_MAX } else { SILENCE_MAX };
        loop {
            let next = tokio::select! {
                _ = self.counter.closed.changed() => return Ok(()),
                next = timeout(silence_max, self.lines.next()) => next,
            };
            let line = match next {
                Ok(Ok(Some(line))) => line,
                Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    return self.say(&Answer::refuse(error.to_string(), None)).await;
                }
                _ => return Ok(()),
            };
            match Request::from_line(&line) {
                Err(refusal) => self.say(&refusal).await?,
                Ok(request)
                    if self.is_reserved && !matches!(request, Request::Status(_) | Request::Down(_)) =>
                {
                    let hint = Some("end some of them; `status` and `down` are answered");
                    let what = format!("more than {} clients", CLIENTS_MAX - RESERVED);
                    return self.say(&Answer::refuse(what, hint)).await;
                }
                Ok(Request::Subscribe(Nothing {})) => return self.tell_events().await,
                Ok(Request::Job(_)) => self.say(&Answer::refuse(NO_OTHER_JOB, Some(JOB_INSTEAD))).await?,
                Ok(request) => match self.ask(request).await {
                    Some(Reply::Answer(answer)) => self.say(&answer).await?,
                    Some(Reply::Seat(answer, attendance)) => {
                        let Ok(stream) = self.lines.into_inner().reunite(self.writer) else { return Ok(()) };
                        // Not one of the clients any more: a seat may stay, and the departure does not wait for it.
                        tokio::spawn(async move { attendance.serve(stream, &answer.line()).await });
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

    async fn ask(&self, request: Request) -> Option<Reply> {
        let (reply, answer) = oneshot::channel();
        self.counter.asked.send(Asked { request, pid: self.pid, reply }).await.ok()?;
        answer.await.ok()
    }

    /// Until the client goes, or says something more, or the rack is over.
    async fn tell_events(mut self) -> io::Result<()> {
        let mut events = self.counter.events.subscribe();
        self.say(&Answer::Subscribed(Nothing {})).await?;
        loop {
            let answer = tokio::select! {
                _ = self.counter.closed.changed() => return Ok(()),
                line = self.lines.next() => match line {
                    Ok(Some(_)) => Answer::refuse("this connection tells events", Some("ask on another one")),
                    _ => return Ok(()),
                },
                event = events.recv() => match event {
                    Ok(record) => Answer::Event(record),
                    Err(broadcast::error::RecvError::Lagged(count)) => Answer::Missed(count),
                    Err(broadcast::error::RecvError::Closed) => return Ok(()),
                },
            };
            self.say(&answer).await?;
        }
    }

    async fn say(&mut self, answer: &Answer) -> io::Result<()> {
        use tokio::io::AsyncWriteExt;
        timeout(DEAFNESS_MAX, self.writer.write_all(&answer.line())).await?
    }
}
