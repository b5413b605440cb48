//! Workloads as tables: the graph before a run, and iteration time, phases and busiest links after it.

use rackloom_jobs::report::{LinkUse, WorkloadReport};
use rackloom_workloads::{Work, Workload};

use super::percent::percent;
use super::table::{Column, Table};
use super::units;

/// Maximum number of links that are listed.
const LINKS_MAX: usize = 8;
/// Maximum number of phases that are listed.
const PHASES_MAX: usize = 40;

/// Formats the results of a workload; empty if the job was another one.
pub(super) fn results(report: Option<&WorkloadReport>) -> String {
    let Some(report) = report else { return String::new() };
    let sections = [iteration(report), phases(report), links(&report.links)];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn iteration(report: &WorkloadReport) -> String {
    let with_operations = report.ranks.len() as u64;
    // Reports of earlier versions state only ranks with operations.
    let ranks = report.ranks_stated.max(with_operations);
    let active = (with_operations < ranks).then_some("with operations");
    let mut columns = vec![Column::Left("workload"), Column::Right("ranks")];
    columns.extend(active.map(Column::Right));
    columns.extend([
        Column::Right("operations"),
        Column::Right("messages"),
        Column::Right("bytes"),
        Column::Right("iteration"),
        Column::Right("compute max"),
        Column::Right("exposed p50"),
        Column::Right("exposed max"),
    ]);
    let mut table = Table::new(&columns);
    let mut cells = vec![report.name.clone(), units::count(ranks)];
    cells.extend(active.map(|_| units::count(with_operations)));
    cells.extend([
        units::count(report.operations),
        units::count(report.messages),
        units::bytes(report.bytes),
        units::time(report.iteration_ns),
        units::time(report.compute_max_ns),
        units::time(report.exposed_median_ns),
        units::time(report.exposed_max_ns),
    ]);
    table.row(cells);
    table.render()
}

fn phases(report: &WorkloadReport) -> String {
    let mut table = Table::new(&[
        Column::Left("phase"),
        Column::Right("operations"),
        Column::Right("begin"),
        Column::Right("end"),
        Column::Right("compute max"),
        Column::Right("bytes"),
    ]);
    for phase in report.phases.iter().filter(|phase| phase.operations > 0).take(PHASES_MAX) {
        table.row([
            phase.name.clone(),
            units::count(phase.operations),
            units::time(phase.began_ns),
            units::time(phase.ended_ns),
            units::time(phase.compute_max_ns),
            units::bytes(phase.bytes),
        ]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

/// Formats the links that are used most.
fn links(links: &[LinkUse]) -> String {
    let mut used: Vec<_> = links.iter().filter_map(|link| Some((link, link.share?))).collect();
    used.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    let mut table = Table::new(&[
        Column::Left("busiest links"),
        Column::Right("on the wire"),
        Column::Right("of the time"),
    ]);
    for (link, share) in used.into_iter().take(LINKS_MAX) {
        table.row([link.name.clone(), units::bytes(link.bytes), percent(share)]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

/// Formats a workload: its size, and its operations by phase.
pub(crate) fn workload(workload: &Workload) -> String {
    let operations: usize = workload.ranks.iter().map(|rank| rank.operations().len()).sum();
    let sums = sums(workload);
    // Work is shown where a computation is stated by it.
    let has_work = sums.iter().any(|sums| sums.kernels > 0);
    let work: &[Column] =
        if has_work { &[Column::Right("operations max"), Column::Right("moved max")] } else { &[] };
    let columns = [
        &[Column::Left("phase"), Column::Right("computations"), Column::Right("compute max")][..],
        work,
        &[
            Column::Right("messages"),
            Column::Right("bytes"),
            Column::Right("collectives"),
            Column::Right("arrays"),
        ],
    ];
    let mut table = Table::new(&columns.concat());
    for (phase, sums) in workload.phases.iter().zip(sums) {
        let work = [units::flops(sums.flops_max), units::bytes(sums.moved_max_bytes)];
        let cells = [
            vec![phase.clone(), units::count(sums.computations), units::time(sums.compute_max_ns)],
            work.into_iter().filter(|_| has_work).collect(),
            vec![
                units::count(sums.messages),
                units::bytes(sums.bytes),
                units::count(sums.collectives),
                units::bytes(sums.array_bytes),
            ],
        ];
        table.row(cells.concat());
    }
    let heading = format!(
        "{}: {} ranks, {} groups, {} operations",
        workload.name,
        workload.ranks.len(),
        workload.groups.len(),
        units::count(operations as u64)
    );
    if table.is_empty() { heading } else { format!("{heading}\n\n{}", table.render()) }
}

/// Operations of one phase.
#[derive(Clone, Debug, Default)]
struct Sums {
    computations: u64,
    /// Computation of the rank that computes longest, as far as durations state it.
    compute_max_ns: u64,
    /// Computations that are stated by their work.
    kernels: u64,
    /// Operations of the rank that performs most of them.
    flops_max: u64,
    /// Bytes of the rank that moves most of them.
    moved_max_bytes: u64,
    messages: u64,
    bytes: u64,
    /// Collectives, each counted once.
    collectives: u64,
    /// Bytes of the arrays of those.
    array_bytes: u64,
}

/// Computations of one rank in one phase.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    compute_ns: u64,
    flops: u64,
    moved_bytes: u64,
}

/// Returns the sums of each phase.
fn sums(workload: &Workload) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); workload.phases.len()];
    for (rank, operations) in workload.ranks.iter().enumerate() {
        let mut own = vec![Own::default(); sums.len()];
        for operation in operations.operations() {
            let phase = usize::from(operation.phase);
            let (Some(sum), Some(own)) = (sums.get_mut(phase), own.get_mut(phase)) else {
                continue;
            };
            match operation.work {
                Work::Compute { duration_ns } => {
                    sum.computations += 1;
                    own.compute_ns = own.compute_ns.saturating_add(duration_ns);
                }
                Work::Kernel { flops, bytes } => {
                    sum.computations += 1;
                    sum.kernels += 1;
                    own.flops = own.flops.saturating_add(flops);
                    own.moved_bytes = own.moved_bytes.saturating_add(bytes);
                }
                Work::Send { bytes, .. } => {
                    sum.messages += 1;
                    sum.bytes = sum.bytes.saturating_add(bytes);
                }
                // The first rank of the group counts for all.
                Work::Collective { group, bytes, .. } if is_first(workload, group, rank) => {
                    sum.collectives += 1;
                    sum.array_bytes = sum.array_bytes.saturating_add(bytes);
                }
                Work::Receive { .. } | Work::Collective { .. } => {}
            }
        }
        for (sum, own) in sums.iter_mut().zip(own) {
            sum.compute_max_ns = sum.compute_max_ns.max(own.compute_ns);
            sum.flops_max = sum.flops_max.max(own.flops);
            sum.moved_max_bytes = sum.moved_max_bytes.max(own.moved_bytes);
        }
    }
    sums
}

fn is_first(workload: &Workload, group: u16, rank: usize) -> bool {
    let ranks = workload.groups.get(usize::from(group)).map(|group| group.ranks.as_slice());
    ranks.and_then(<[u16]>::first).is_some_and(|first| usize::from(*first) == rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_workloads::text;

    #[test]
    fn a_workload_is_shown_by_phase() {
        let read = text::read(
            "workload w\nranks 3\nphase forward\nphase gradients\ngroup 0..2\nrank 0\ncompute 2us\nsend 1 4KiB after -1\n\
             in gradients\ncompute 3us\nall-reduce group 0 1MiB after -1\nrank 1\nreceive 0 4KiB\nin gradients\n\
             compute 3us\nall-reduce group 0 1MiB after -1\nrank 2\nin gradients\ncompute 3us\nall-reduce group 0 1MiB after -1\n",
            "w",
        );
        let read = read.unwrap_or_else(|errors| panic!("{errors}"));
        let text = workload(&read);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "w: 3 ranks, 1 groups, 9 operations");
        let row = |phase: &str, cells: [String; 6]| {
            let line = lines.iter().find(|line| line.starts_with(phase)).expect("a row of the phase");
            assert_eq!(
                line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).skip(1).collect::<Vec<_>>(),
                cells
            );
        };
        let count = |number: u64| number.to_string();
        let (time, bytes) = (units::time, units::bytes);
        row("forward", [count(1), time(2_000), count(1), bytes(4_096), count(0), bytes(0)]);
        // Three ranks compute, and their collective counts once.
        row("gradients", [count(3), time(3_000), count(0), bytes(0), count(1), bytes(1 << 20)]);
    }

    #[test]
    fn work_is_shown_where_a_computation_is_stated_by_it() {
        let shown = |more: &str| {
            let text =
                format!("workload w\nranks 2\nrank 0\ncompute 2us\n{more}rank 1\ncompute 4GFLOP 1MiB\n");
            workload(&text::read(&text, "w").unwrap_or_else(|errors| panic!("{errors}")))
        };
        let text = shown("compute 3GFLOP 3MiB\ncompute 2GFLOP\n");
        assert!(text.contains("operations max") && text.contains("moved max"), "{text}");
        assert!(text.contains("5.00 GFLOP") && text.contains(&units::bytes(3 << 20)), "{text}");
        let timed = text::read("ranks 1\nrank 0\ncompute 2us\n", "w").unwrap();
        assert!(!workload(&timed).contains("moved"));
    }

    #[test]
    fn results_have_an_iteration_phases_and_links() {
        let link = |name: &str, share| LinkUse { name: name.to_owned(), bytes: 1_000, share };
        let report = WorkloadReport {
            name: "w".to_owned(),
            operations: 9,
            iteration_ns: 12_000,
            exposed_median_ns: 3_000,
            links: vec![link("n0->n1", Some(0.25)), link("n1->n0", None), link("n1->n2", Some(0.5))],
            ..WorkloadReport::default()
        };
        let text = results(Some(&report));
        for words in [units::time(12_000), units::time(3_000), "exposed p50".to_owned()] {
            assert!(text.contains(&words), "{words}\n{text}");
        }
        let position = |name: &str| text.find(name);
        assert!(position("n1->n2") < position("n0->n1"), "the busiest link is the first\n{text}");
        assert!(text.contains("50.0 %") && text.contains("25.0 %") && position("n1->n0").is_none(), "{text}");
        assert_eq!(results(None), "");
    }
}
