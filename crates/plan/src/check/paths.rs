//! Checks paths of packets: only a transport that keeps early packets may send one sequence over several paths.

use rackloom_protocol::RetransmissionMode;

use crate::check::inspection::Inspection;
use crate::model::members::paths::RelayPaths;
use crate::read::mistake::Complaint;

/// Checks path selection and reordering against the transport.
pub(super) fn check(check: &mut Inspection<'_>) {
    let (transport, paths) = (check.plan.transport, check.plan.paths);
    let positions = ["paths.relays", "paths.policy"];
    if paths.relays == RelayPaths::Policy && !paths.policy.is_per_packet() && check.intact(&positions) {
        let message = format!(
            "`paths.relays` is policy, and `policy: {}` gives each sequence one way: relays have nothing to choose",
            paths.policy.name()
        );
        let hint = "write `policy: round-robin`, `spray` or `least-queue`, or leave `relays` out";
        check.complain(&positions, Complaint::about(message).hint(hint));
    }
    let positions = ["paths.policy", "transport.mode"];
    if paths.policy.is_per_packet()
        && transport.mode == RetransmissionMode::GoBackN
        && check.intact(&positions)
    {
        let message = format!(
            "`paths.policy` is {}, and go-back-n throws away every packet that another way brings early: all of them \
             would be sent again and again",
            paths.policy.name()
        );
        let hint = "write `policy: flow`, `address` or `destination`, which give each sequence one way, or `transport.mode: selective`";
        check.complain(&positions, Complaint::about(message).hint(hint));
    }
}
