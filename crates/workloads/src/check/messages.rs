//! Partners of messages: the n-th send of a sender, receiver and tag belongs to the n-th receive.

use crate::check::describe;
use crate::check::nodes::{NONE, Numbers};
use crate::check::report::Report;
use crate::error::WorkloadError;
use crate::model::{Work, Workload};

/// For each operation the one that it waits for in addition to its dependencies: for a receive its send, for a send the
/// previous send of the same sender, receiver and tag. [`NONE`] for others.
pub(super) type Partners = Vec<u32>;

/// One end of a message. The order of the fields is the order of the sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    from: u16,
    to: u16,
    tag: u32,
    is_receive: bool,
    number: u32,
    bytes: u64,
}

impl End {
    const fn key(&self) -> (u16, u16, u32) {
        (self.from, self.to, self.tag)
    }
}

/// Returns the partners. Adds each message without partner and each pair of unequal sizes to the report.
pub(super) fn matched(workload: &Workload, numbers: &Numbers, report: &mut Report) -> Partners {
    let mut ends = ends(workload, numbers);
    ends.sort_unstable();
    let mut partners = vec![NONE; numbers.count()];
    for same in ends.chunk_by(|one, other| one.key() == other.key()) {
        let (sends, receives) = same.split_at(same.partition_point(|end| !end.is_receive));
        for pair in sends.windows(2) {
            partners[pair[1].number as usize] = pair[0].number;
        }
        for (send, receive) in sends.iter().zip(receives) {
            partners[receive.number as usize] = send.number;
            check_sizes(workload, numbers, (send, receive), report);
        }
        let both = sends.len().min(receives.len());
        for lost in sends[both..].iter().chain(&receives[both..]) {
            if report.is_full() {
                break;
            }
            report.add(lost_peer(numbers, lost, (sends.len(), receives.len())));
        }
    }
    partners
}

/// Returns both ends of all messages in the order of ranks and operations.
fn ends(workload: &Workload, numbers: &Numbers) -> Vec<End> {
    let mut ends = Vec::new();
    for (rank, operations) in workload.ranks.iter().enumerate() {
        for (index, operation) in operations.operations().iter().enumerate() {
            let number = numbers.number(rank, index);
            let this = rank as u16;
            match operation.work {
                Work::Send { to, bytes, tag } => {
                    ends.push(End { from: this, to, tag, is_receive: false, number, bytes });
                }
                Work::Receive { from, bytes, tag } => {
                    ends.push(End { from, to: this, tag, is_receive: true, number, bytes });
                }
                Work::Compute { .. } | Work::Kernel { .. } | Work::Collective { .. } => {}
            }
        }
    }
    ends
}

fn check_sizes(workload: &Workload, numbers: &Numbers, (send, receive): (&End, &End), report: &mut Report) {
    if send.bytes != receive.bytes && !report.is_full() {
        let sent = describe::operation(workload, numbers.place(send.number));
        let reason = format!("a receive of {} bytes gets the message of {sent}", receive.bytes);
        let hint =
            "messages match in the order of both lists; state equal sizes, or tags that distinguish them";
        report.add(numbers.error(receive.number, reason, hint));
    }
}

fn lost_peer(numbers: &Numbers, lost: &End, (sends, receives): (usize, usize)) -> WorkloadError {
    let End { from, to, tag, .. } = lost;
    let missing = if lost.is_receive { "send" } else { "receive" };
    let peer = if lost.is_receive { from } else { to };
    let reason = format!(
        "no {missing} at rank {peer} belongs to it: from rank {from} to rank {to} with tag {tag} there are \
         {sends} sends and {receives} receives"
    );
    numbers.error(lost.number, reason, "add the missing operation with equal tag, or remove this one")
}
