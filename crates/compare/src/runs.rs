//! Runs of a side. Several reports of one run would count as independent ones, so each run counts once.

use rackloom_control::report::Report;

/// Clock of runs that depend on their configuration and their seed alone.
pub(crate) const VIRTUAL: &str = "virtual";

/// Runs of one side, each once.
#[derive(Clone, Debug)]
pub(crate) struct Runs<'r> {
    /// First report of each run, in order.
    pub(crate) reports: Vec<&'r Report>,
    /// Number of other reports, which repeat one of those.
    pub(crate) copies: usize,
}

impl<'r> Runs<'r> {
    pub(crate) fn of(side: &'r [Report]) -> Self {
        let mut reports: Vec<&Report> = Vec::with_capacity(side.len());
        for report in side {
            if !reports.iter().any(|known| is_one_run(known, report)) {
                reports.push(report);
            }
        }
        Self { copies: side.len() - reports.len(), reports }
    }

    /// Returns a note about reports that do not count, if there are any. `side` is `before` or `after`.
    pub(crate) fn note(&self, side: &str) -> Option<String> {
        let (copies, all) = (self.copies, self.copies + self.reports.len());
        (copies > 0).then(|| {
            format!(
                "{side}: {copies} of {all} reports repeat another one of this side and do not count; reports are of one run if their content is equal, or \
                 if they have one seed and one trace in virtual time"
            )
        })
    }
}

/// Returns true for two reports of one run. In virtual time the trace covers everything that happened, and a repeated run has the trace of
/// the first one. Its expectations may be others, so the verdict counts as well.
fn is_one_run(one: &Report, other: &Report) -> bool {
    let is_virtual = one.clock == VIRTUAL && other.clock == VIRTUAL;
    let has_one_trace = one.trace_hash.is_some() && one.trace_hash == other.trace_hash;
    let is_repeated = is_virtual && has_one_trace && (one.seed, one.verdict) == (other.seed, other.verdict);
    is_repeated || one == other
}
