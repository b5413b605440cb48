//! Verdict of a run that lost live members because the host had no processor for them.
//!
//! Such a run has not failed: no process died, every failure follows from a loss, and the measured lateness
//! exceeds the limits of the timers. All other failures remain, so a rack that truly failed never ends as
//! starved.

use std::collections::BTreeSet;

use rackloom_jobs::report::{EventRecord, NodeReport, Report, Verdict};

use crate::units;

/// Cause of a link that went down because its neighbour was silent.
const BY_HEARTBEATS: &str = "heartbeat-dead";

/// Facts about a run that its report does not contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// True if a process ended, was killed, or sent no report.
    pub(super) has_died: bool,
    /// True if a fault script or an injection acted on the rack.
    pub(super) has_faults: bool,
    /// Shortest lateness that explains the losses: half of the detection time, or of the watchdog's time if
    /// the run stalled.
    pub(super) limit_ns: u64,
}

/// Returns the lateness that the host caused. It is the smallest of the members that reported a neighbour
/// dead, each of which measured its own lateness and its neighbours'. Without such members it is the largest
/// of all. The lateness of a member without a part in the loss explains nothing.
fn lateness_ns(report: &Report) -> u64 {
    let late = |node: &NodeReport| node.shortage.lateness_ns(node.timer_late_max_ns.unwrap_or(0));
    let is_loss =
        |event: &&EventRecord| event.fields.get("cause").is_some_and(|cause| cause == BY_HEARTBEATS);
    let witnesses: BTreeSet<_> =
        report.events.iter().filter(is_loss).map(|event| event.member.as_str()).collect();
    let of_witnesses = report.nodes.iter().filter(|node| witnesses.contains(node.name.as_str())).map(late);
    of_witnesses.min().unwrap_or_else(|| report.nodes.iter().map(late).max().unwrap_or(0))
}

/// Changes a failure that only the host's lack of processors explains into [`Verdict::Starved`]. `explained`:
/// failures that members reported, before expectations were judged.
pub(super) fn judge(report: &mut Report, explained: &[String], facts: Facts) {
    let late_ns = lateness_ns(report);
    let is_explained =
        report.wrong.is_empty() && report.failures.iter().all(|failure| explained.contains(failure));
    if report.verdict != Verdict::Fail
        || facts.has_died
        || facts.has_faults
        || !is_explained
        || late_ns < facts.limit_ns
    {
        return;
    }
    report.verdict = Verdict::Starved;
    report.notes.push(format!(
        "the host had no processor for the members in time: one of them waited {}, and a wait of more than {} explains the losses above; hint: \
         use fewer nodes, longer `timers.heartbeat`, a quieter machine, or `rackloom sim`",
        units::time(late_ns),
        units::time(facts.limit_ns),
    ));
}

#[cfg(test)]
mod tests {
    use rackloom_jobs::report::{Context, HostShortage, JobResult, MemberReport, MemberSeat, MemberState};

    use super::*;

    const LIMIT_NS: u64 = 250_000_000;
    const FACTS: Facts = Facts { has_died: false, has_faults: false, limit_ns: LIMIT_NS };

    /// Returns a run in which n0 lost n1, on a host with a timer that was this late.
    fn report(timer_late_max_ns: u64, waited_ns: u64, mismatch_count: u64) -> Report {
        let job = JobResult { lost_nodes: vec!["n1".to_owned()], mismatch_count, ..JobResult::default() };
        let member = MemberReport {
            job: Some(job),
            timer_late_max_ns,
            shortage: HostShortage { waited_ns, ..HostShortage::default() },
            ..MemberReport::silent("n0", Some(1), MemberState::Finished)
        };
        let seat = MemberSeat { name: "n0".to_owned(), has_job: true };
        Report::assemble(Context { members: vec![seat], ..Context::default() }, &[member])
    }

    fn verdict(mut report: Report, facts: Facts) -> Verdict {
        let explained = report.failures.clone();
        judge(&mut report, &explained, facts);
        report.verdict
    }

    #[test]
    fn a_run_is_starved_only_if_lateness_explains_all_failures() {
        let late = || report(2 * LIMIT_NS, 3 * LIMIT_NS, 0);
        assert_eq!(verdict(late(), FACTS), Verdict::Starved);
        assert_eq!(verdict(report(LIMIT_NS / 2, LIMIT_NS, 0), FACTS), Verdict::Fail, "not late enough");
        assert_eq!(
            verdict(report(9 * LIMIT_NS, 0, 0), FACTS),
            Verdict::Fail,
            "stopped, without waiting for a processor"
        );
        assert_eq!(verdict(report(2 * LIMIT_NS, 3 * LIMIT_NS, 1), FACTS), Verdict::Fail, "a wrong byte");
        assert_eq!(verdict(late(), Facts { has_died: true, ..FACTS }), Verdict::Fail);
        assert_eq!(verdict(late(), Facts { has_faults: true, ..FACTS }), Verdict::Fail);
    }

    #[test]
    fn lateness_of_a_member_without_a_loss_does_not_explain_it() {
        let mut far = report(2 * LIMIT_NS, 3 * LIMIT_NS, 0);
        let mut witness = far.nodes[0].clone();
        "n5".clone_into(&mut witness.name);
        (witness.timer_late_max_ns, witness.shortage) = (None, HostShortage::default());
        far.nodes.push(witness);
        let fields = [("cause".to_owned(), BY_HEARTBEATS.to_owned())].into();
        let event = EventRecord {
            at_ns: 1,
            member: "n5".to_owned(),
            kind: "link-changed".to_owned(),
            text: String::new(),
            fields,
        };
        far.events.push(event);
        assert_eq!(verdict(far, FACTS), Verdict::Fail);
    }

    #[test]
    fn a_failed_expectation_stays_a_failure() {
        let mut late = report(2 * LIMIT_NS, 3 * LIMIT_NS, 0);
        let explained = late.failures.clone();
        late.failures.push("expected at most 3 retransmissions, there were 4".to_owned());
        judge(&mut late, &explained, FACTS);
        assert_eq!(late.verdict, Verdict::Fail);
    }

    #[test]
    fn the_note_has_the_lateness_and_a_hint() {
        let mut late = report(2 * LIMIT_NS, 3 * LIMIT_NS, 0);
        let explained = late.failures.clone();
        judge(&mut late, &explained, FACTS);
        let note = late.notes.last().unwrap();
        assert!(note.contains("500 ms") && note.contains("hint:"), "{note}");
        assert!(!late.failures.is_empty(), "the losses stay listed");
    }
}
