//! Lines on a seat's control socket, at the supervisor's end: orders with descriptors, and notices.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rackloom::seat::descriptors::{carrying_bytes, send_batch};
use rackloom_control::notice::Notice;
use rackloom_control::order::Order;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc::UnboundedReceiver;

/// Maximum length of a notice, in bytes. A report is the longest one.
pub(crate) const NOTICE_BYTES_MAX: usize = 64 << 20;

/// Message from the task of a seat's socket to the supervisor.
#[derive(Debug)]
pub(crate) enum SeatMessage {
    /// A notice.
    Notice(Notice),
    /// The process has ended.
    Ended(String),
    /// The time for a successor of the member has come.
    SuccessorDue,
}

/// Order, and the descriptors that are sent with it.
pub(crate) type OrderWithWires = (Order, Vec<OwnedFd>);

/// Writes orders as fast as the seat reads them. Closes the socket after the last one.
pub(crate) async fn write_orders(mut socket: OwnedWriteHalf, mut orders: UnboundedReceiver<OrderWithWires>) {
    while let Some((order, wires)) = orders.recv().await {
        let Ok(mut line) = serde_json::to_vec(&order) else { continue };
        line.push(b'\n');
        if send_line(socket.as_ref(), &line, &wires).await.is_err() {
            return;
        }
    }
    let _ = socket.shutdown().await;
}

/// Parses a notice. A malformed line becomes a notice about the failure of its seat.
pub(crate) fn parse_notice(line: &[u8]) -> Notice {
    serde_json::from_slice(line)
        .unwrap_or_else(|error| Notice::Failed { what: format!("sent a malformed notice: {error}") })
}

/// Writes a line, and sends descriptors with it.
pub(crate) async fn send_line(socket: &UnixStream, line: &[u8], wires: &[OwnedFd]) -> io::Result<()> {
    let descriptors: Vec<_> = wires.iter().map(AsFd::as_fd).collect();
    let carrying = carrying_bytes(descriptors.len());
    for batch in 0..carrying {
        socket.async_io(Interest::WRITABLE, || send_batch(socket, line, batch, &descriptors)).await?;
    }
    let mut rest = line.get(carrying..).unwrap_or_default();
    while !rest.is_empty() {
        let written = socket.async_io(Interest::WRITABLE, || socket.try_write(rest)).await?;
        rest = &rest[written..];
    }
    Ok(())
}
