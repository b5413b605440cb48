//! Service of a seat in a process that the supervisor did not start: descriptors of its wires, then orders
//! and notices.
//!
//! The supervisor closes its copies of the descriptors as soon as they are sent, because a neighbour detects
//! a death by the socket of the dead process, which must have no other owner. If the descriptors cannot be
//! sent, the seat ends.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rackloom_control::order::Start;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use super::socket::{NOTICE_BYTES_MAX, OrderWithWires, SeatMessage, parse_notice, send_line, write_orders};
use crate::channel::bounded_lines::BoundedLines;

/// Longest time for the process to read its start order.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// State of the service of one seat.
pub(crate) struct SeatService {
    pub(crate) member: usize,
    /// Start order of the seat.
    pub(crate) start: Start,
    /// Descriptors of its wires, in the order in which the start order names them.
    pub(crate) wires: Vec<OwnedFd>,
    pub(crate) orders: UnboundedReceiver<OrderWithWires>,
    pub(crate) kill: Arc<Notify>,
    pub(crate) messages: UnboundedSender<(usize, SeatMessage)>,
}

impl SeatService {
    /// Sends the first line with the wires, and serves the seat until one end of the socket is closed.
    pub(crate) async fn serve(self, socket: UnixStream, line: &[u8]) {
        let Self { member, wires, orders, kill, messages, .. } = self;
        let sent = timeout(START_TIMEOUT, send_line(&socket, line, &wires)).await;
        drop(wires);
        let how = match sent.unwrap_or_else(|late| Err(late.into())) {
            Ok(()) => exchange_lines(member, socket, orders, &kill, &messages).await,
            Err(error) => format!("left before it had received its wires: {error}"),
        };
        let _ = messages.send((member, SeatMessage::Ended(how)));
    }
}

async fn exchange_lines(
    member: usize,
    socket: UnixStream,
    orders: UnboundedReceiver<OrderWithWires>,
    kill: &Notify,
    messages: &UnboundedSender<(usize, SeatMessage)>,
) -> String {
    let (reader, writer) = socket.into_split();
    let mut lines = BoundedLines::new(reader, NOTICE_BYTES_MAX);
    let writing = tokio::spawn(write_orders(writer, orders));
    loop {
        tokio::select! {
            line = lines.next() => {
                let Ok(Some(line)) = line else { break };
                let _ = messages.send((member, SeatMessage::Notice(parse_notice(&line))));
            }
            () = kill.notified() => break,
        }
    }
    writing.abort();
    "left its seat".to_owned()
}
