//! Judgement of accesses that owners refused although neither the job nor a fault script provokes any.
//!
//! A refusal keeps memory safe, so no single one is a failure of its owner. But a peer that repeats forbidden accesses
//! is broken or hostile. A run in which that happened does not pass. The litmus provokes refusals and judges them
//! itself.

use super::assemble::Report;
use crate::measure::OperationKind;
use crate::oracle::{Oracle, Verdicts};

/// Kind of event that an owner reports.
const REFUSED: &str = "access-refused";

/// Expectation about refused accesses in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusals {
    /// No refusal may happen.
    Unexpected,
    /// A fault script makes memory refuse.
    Scripted,
    /// Programs of the user may provoke any number of refusals.
    Unknown,
}

impl Report {
    /// Judges the accesses that owners refused. Call it once, on a report whose events are complete.
    pub fn judge_refusals(&mut self, refusals: Refusals) {
        let is_provoked = self.operations.iter().any(|row| row.kind == OperationKind::ForbiddenAccess);
        let of_kind: Vec<_> = self.events.iter().filter(|event| event.kind == REFUSED).collect();
        let count = of_kind.len() as u64 + self.events_omitted.get(REFUSED).copied().unwrap_or(0);
        let mut verdicts = Verdicts::default();
        match refusals {
            Refusals::Scripted => return,
            Refusals::Unexpected if is_provoked => return,
            Refusals::Unknown if count > 0 => verdicts.pass_over(Oracle::Refusals),
            _ if count == 0 => verdicts.hold(Oracle::Refusals),
            _ => {
                for event in of_kind {
                    verdicts.find(Oracle::Refusals, || format!("{} {}", event.member, event.text));
                }
                let unlisted = self.events_omitted.get(REFUSED).copied().unwrap_or(0);
                (0..unlisted).for_each(|_| verdicts.find(Oracle::Refusals, String::new));
            }
        }
        self.add_oracles(&verdicts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Context, EventRecord, Verdict};

    fn report(listed: usize, omitted: u64) -> Report {
        let event = EventRecord {
            at_ns: 5,
            member: "n0".to_owned(),
            kind: REFUSED.to_owned(),
            text: "refused n1 access to r3: bad-key".to_owned(),
            fields: std::collections::BTreeMap::new(),
        };
        let mut report = Report::assemble(Context { events: vec![event; listed], ..Context::default() }, &[]);
        if omitted > 0 {
            report.events_omitted.insert(REFUSED.to_owned(), omitted);
        }
        report
    }

    #[test]
    fn a_run_with_unprovoked_refusals_fails_and_names_owner_initiator_and_count() {
        let mut refused = report(2, 41);
        refused.judge_refusals(Refusals::Unexpected);
        assert_eq!(refused.verdict, Verdict::Fail);
        assert_eq!(refused.failures, ["oracle refusals: n0 refused n1 access to r3: bad-key (43 in all)"]);
        assert_eq!(refused.wrong, refused.failures, "no loss explains it");
    }

    #[test]
    fn scripts_and_programs_may_provoke_them_and_without_any_the_oracle_holds() {
        for (refusals, listed, expected) in [
            (Refusals::Unexpected, 0, Some((1, 0))),
            (Refusals::Scripted, 2, None),
            (Refusals::Unknown, 2, Some((0, 1))),
            (Refusals::Unknown, 0, Some((1, 0))),
        ] {
            let mut report = report(listed, 0);
            report.judge_refusals(refusals);
            assert_eq!(report.verdict, Verdict::Pass, "{refusals:?}");
            let found = report.oracles.of(Oracle::Refusals).map(|tally| (tally.looked, tally.unjudged));
            assert_eq!(found, expected, "{refusals:?}");
        }
    }
}
