//! Counters of one port. Each is declared once, with its name and meaning; reports take both from here.
//!
//! [`port_counters`](crate::port_counters) has the counters of every port. The groups (link-level retry, pauses, marks) state for each
//! counter which end of a link counts for a direction. This file counts nothing.

use crate::event::DropReason;

/// Passes the counters of every port to a macro, as `always { name, ... } if_counted { name: End, ... }` with documentation comments.
///
/// The report of a port contains those of the first list. Those of the second list are in it, in the report of a link and in the table
/// of links, if they are not zero; `End` is the [`CountingEnd`](crate::link::counters::CountingEnd) that counts for a direction.
#[macro_export]
macro_rules! port_counters {
    ($then:ident) => {
        $then! {
            always {
                /// Frames handed to the device, control frames included.
                frames_sent,
                /// Bytes of those frames, Ethernet header included, without preamble and gap.
                bytes_sent,
                /// Frames sent that carry operations, forwarded ones included.
                data_frames_sent,
                /// Bytes of the data frames sent.
                data_bytes_sent,
                /// Packets of this endpoint among the frames sent that are retransmissions.
                retransmitted,
                /// Frames sent that were forwarded for other members.
                forwarded,
                /// Frames taken from the device.
                frames_received,
                /// Bytes of the frames received.
                bytes_received,
                /// Frames of the neighbour that did not arrive (gaps in the link sequence).
                missing,
                /// Times that sending stopped for lack of credits or because of a pause.
                credit_stalls,
                /// Credit frames among the frames sent.
                credit_updates,
            }
            if_counted {
                /// Credit counters of the sending end that cannot be right (W-20), as the receiving end counts them. They were ignored,
                /// or limited to the possible range.
                credit_violations: Receiver,
            }
        }
    };
}

/// Declares [`PortCounters`] with the listed counters.
macro_rules! port_structure {
    (
        always { $($(#[$always_doc:meta])+ $always:ident,)+ }
        if_counted { $($(#[$rare_doc:meta])+ $rare:ident: $end:ident,)+ }
    ) => {
        /// Counters of one port. "Sent" and "received" are as seen from this member.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct PortCounters {
            $($(#[$always_doc])+ pub $always: u64,)+
            $($(#[$rare_doc])+ pub $rare: u64,)+
            /// Received frames that were dropped, indexed by [`DropReason`].
            pub dropped: [u64; DropReason::ALL.len()],
            /// Counters of link-level retry; zero if it is off.
            pub retry: RetryCounters,
            /// Counters of pauses; zero if they are off.
            pub pause: PauseCounters,
            /// Counters of congestion marks; zero if queues have no mark limit.
            pub marks: MarkCounters,
        }
    };
}

port_counters!(port_structure);

/// Declares a group of counters: each with its meaning, and the end of a link that counts for a direction, `SENDER` or `RECEIVER`.
macro_rules! counters {
    ($(#[$meta:meta])+ pub struct $name:ident { $($(#[$doc:meta])+ $counter:ident: $end:ident,)+ }) => {
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])+ pub $counter: u64,)+ }

        impl $name {
            /// Names of all counters, in report order, each with the end that counts for a direction of a link.
            pub const ENDS: &'static [(&'static str, CountingEnd)] = &[$((stringify!($counter), $end),)+];

            /// Returns all counters by name, in report order.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($counter), self.$counter),)+].into_iter()
            }
        }
    };
}

/// End of a link whose counter describes a direction. Acknowledgements and pauses travel against the frames that they concern, so the
/// receiving end counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountingEnd {
    /// Member that sends in this direction.
    Sender,
    /// Member that receives in this direction.
    Receiver,
}

impl CountingEnd {
    /// Returns the one of two values that belongs to this end.
    pub fn of<T>(self, sender: T, receiver: T) -> T {
        match self {
            Self::Sender => sender,
            Self::Receiver => receiver,
        }
    }
}

const SENDER: CountingEnd = CountingEnd::Sender;
const RECEIVER: CountingEnd = CountingEnd::Receiver;

counters! {
    /// Congestion marks at one port. "Rx" counts frames received for this member.
    pub struct MarkCounters {
        /// Data frames marked here because more than the limit was queued for this port.
        marked: SENDER,
        /// Data frames for this member that arrived marked.
        rx_marked: RECEIVER,
        /// Acknowledgements for this member which report that its packets arrived marked.
        rx_echo: RECEIVER,
    }
}

counters! {
    /// Counters of pauses at one port. "Tx" counts messages that pause the neighbour, "rx" counts messages of the
    /// neighbour.
    pub struct PauseCounters {
        /// Pauses sent, repeated ones included.
        tx_pause: RECEIVER,
        /// Resumes sent.
        tx_resume: RECEIVER,
        /// Pauses received.
        rx_pause: SENDER,
        /// Resumes received.
        rx_resume: SENDER,
        /// Time in which data could not leave, summed over all channels, in nanoseconds.
        paused_ns: SENDER,
        /// Times that the watchdog began to ignore pauses.
        watchdog: SENDER,
        /// Largest number of bytes of one channel that were held here.
        held_bytes_max: RECEIVER,
    }
}

counters! {
    /// Counters of link-level retry at one port. The names follow public descriptions of UEC link-level retry where these
    /// exist. "Tx" counts frames of this end, "rx" frames of the neighbour.
    pub struct RetryCounters {
        /// Routed frames sent for the first time.
        tx_ok: SENDER,
        /// Frames replayed.
        tx_replay: SENDER,
        /// Frames discarded while the link was flushed.
        tx_discard: SENDER,
        /// Unacknowledged frames given up by a flush or when the link went down.
        tx_flushed: SENDER,
        /// Acknowledgements sent as separate frames.
        tx_ack: RECEIVER,
        /// Negative acknowledgements sent.
        tx_nack: RECEIVER,
        /// Times that sequence numbers were offered to the neighbour.
        tx_init: SENDER,
        /// Replays begun, after a negative acknowledgement or a timeout.
        replays: SENDER,
        /// Times that the replay limit was reached.
        flushes: SENDER,
        /// Times that a frame waited for the window of unacknowledged frames.
        window_stalls: SENDER,
        /// Routed frames accepted in order.
        rx_ok: RECEIVER,
        /// Gaps: times that a frame arrived while an earlier one was missing.
        rx_missing_seq: RECEIVER,
        /// Frames that had been accepted before.
        rx_duplicate_seq: RECEIVER,
        /// Acknowledgements received as separate frames.
        rx_ack: SENDER,
        /// Negative acknowledgements received.
        rx_nack: SENDER,
    }
}

impl PortCounters {
    /// Number of frames dropped for this reason.
    #[must_use]
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }
    /// Returns the reason for which the last frame was dropped, from the counts `before` it arrived, or `None` if it
    /// was used.
    #[must_use]
    pub fn dropped_since(&self, before: &[u64; DropReason::ALL.len()]) -> Option<DropReason> {
        let mut reasons = DropReason::ALL.into_iter();
        reasons.find(|reason| self.dropped[*reason as usize] != before[*reason as usize])
    }
}
