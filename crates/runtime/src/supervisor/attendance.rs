//! Service of a seat in a process that the supervisor did not start: descriptors of its wires, then orders and notices.
//!
//! The supervisor closes its copies of the descriptors as soon as they are sent. A neighbour detects a death because the socket of the dead
//! process has no other owner. If they cannot be sent, the seat ends.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rackloom_control::order::Start;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use super::conversation::{Heard, NOTICE_BYTES_MAX, Said, hand_over, notice_in, write_orders};
use crate::channel::bounded_lines::BoundedLines;

/// Longest time for the process to read its start order.
const HAND_OVER: Duration = Duration::from_secs(5);

/// State of the service of one seat.
pub(crate) struct Attendance {
    pub(super) member: usize,
    /// Start order.
    pub(crate) start: Start,
    /// Its wires, in the order in which the start names them.
    pub(super) wires: Vec<OwnedFd>,
    pub(super) given: UnboundedReceiver<Said>,
    pub(super) kill: Arc<Notify>,
    pub(super) heard: UnboundedSender<(usize, Heard)>,
}

impl Attendance {
    /// Sends the first line with the wires, and serves the seat until one end of the socket is closed.
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
