//! Serving a seat in a process from elsewhere: the wires over its socket, then orders out and notices in.
//!
//! The supervisor's copies of the wires are dropped as soon as they are sent. That matters: a neighbour learns of a
//! death because the dead one's socket has no other owner. What could not be sent is gone as well, and with it the seat.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use super::process::{Heard, NOTICE_BYTES_MAX, Said, notice_in, write_orders};
use crate::channel::bounded_lines::BoundedLines;
use rackloom::seat::descriptors::{carrying_bytes, send_batch};
use rackloom_control::order::Start;

/// How long the taker may take to read its start.
const HAND_OVER: Duration = Duration::from_secs(5);

/// What serving the seat takes.
pub(crate) struct Attendance {
    pub(super) member: usize,
    /// Everything the taker needs to begin.
    pub(crate) start: Start,
    /// Its wires, in the order in which the start names them.
    pub(super) wires: Vec<OwnedFd>,
    pub(super) given: UnboundedReceiver<Said>,
    pub(super) kill: Arc<Notify>,
    pub(super) heard: UnboundedSender<(usize, Heard)>,
}

impl Attendance {
    /// Send the line that says so, with the wires, and serve the seat until one of the two ends is gone.
    pub(crate) async fn serve(self, socket: UnixStream, line: &[u8]) {
        let Self { member, wires, given, kill, heard, .. } = self;
        let sent = timeout(HAND_OVER, hand_over(&socket, line, &wires)).await;
        drop(wires);
        let how = match sent.unwrap_or_else(|late| Err(late.into())) {
            Ok(()) => converse(member, socket, given, &kill, &heard).await,
            Err(error) => format!("left before it had its wires: {error}"),
        };
        let _ = heard.send((member, Heard::Ended(how)));
    }
}

/// Write a line with descriptors that go along with it.
pub(super) async fn hand_over(socket: &UnixStream, line: &[u8], wires: &[OwnedFd]) -> io::Result<()> {
    let descriptors: Vec<_> = wires.iter().map(AsFd::as_fd).collect();
    let carrying = carrying_bytes(descriptors.len());
    for place in 0..carrying {
        socket.async_io(Interest::WRITABLE, || send_batch(socket, line, place, &descriptors)).await?;
    }
    let mut rest = line.get(carrying..).unwrap_or_default();
    while !rest.is_empty() {
        let written = socket.async_io(Interest::WRITABLE, || socket.try_write(rest)).await?;
        rest = &rest[written..];
    }
    Ok(())
}

async fn converse(
    member: usize,
    socket: UnixStream,
    given: UnboundedReceiver<Said>,
    kill: &Notify,
    heard: &UnboundedSender<(usize, Heard)>,
) -> String {
    let (reader, writer) = socket.into_split();
    let mut lines = BoundedLines::new(reader, NOTICE_BYTES_MAX);
    let orders = tokio::spawn(write_orders(writer, given));
    loop {
        tokio::select! {
            line = lines.next() => {
                let Ok(Some(line)) = line else { break };
                let _ = heard.send((member, Heard::Notice(notice_in(&line))));
            }
            () = kill.notified() => break,
        }
    }
    orders.abort();
    "left its seat".to_owned()
}
