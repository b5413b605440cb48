//! Reports made by hand.

use rackloom_control::measure::{OperationKind, OperationPath};
use rackloom_control::report::{
    Context, HostReport, LatencySummary, Manifest, MemberReport, MemberSeat, MemberState, Meta,
    OperationReport, PortReport, Report, SweepRow, Verdict, Versions,
};

/// Returns the report of a run of a rack with these nodes on a ring of links.
pub(crate) fn report_of(nodes: &[&str], clock: &str, seed: u64) -> Report {
    let seats = nodes.iter().map(|name| MemberSeat { name: (*name).to_owned(), has_job: true });
    let count = nodes.len() as u16;
    let links: Vec<(u16, u16)> = (0..count).map(|node| (node, (node + 1) % count)).collect();
    let port = |edge: u16, frames_sent: u64| PortReport {
        edge,
        frames_sent,
        bytes_sent: frames_sent * 100,
        ..PortReport::default()
    };
    let members: Vec<_> = (0..count)
        .map(|node| MemberReport {
            ports: vec![port(node, 10), port((node + count - 1) % count, 20)],
            ..MemberReport::silent(nodes[usize::from(node)], None, MemberState::Finished)
        })
        .collect();
    let context = Context {
        members: seats.collect(),
        links,
        clock: clock.to_owned(),
        seed,
        elapsed_ns: 1_000_000,
        wire: "simulated".to_owned(),
        job: "collective".to_owned(),
        manifest: Manifest { version: "1".to_owned(), ..Manifest::default() },
        ..Context::default()
    };
    let mut report = Report::assemble(context, &members);
    report.verdict = Verdict::Pass;
    report.failures.clear();
    report.operations = vec![OperationReport {
        kind: OperationKind::Put,
        path: Some(OperationPath::Frames),
        count: 100,
        errors: 0,
        errors_by_name: Default::default(),
        latency_ns: LatencySummary { p50: 1000, p99: 2000, max: 3000 },
        goodput_bytes_per_s: 5_000_000,
    }];
    report.sweep = vec![sweep("ring", 1024, 10.0)];
    report.meta = Some(Meta {
        rack: "ring-3".to_owned(),
        command: "rackloom sim ring-3.yaml".to_owned(),
        options: [("llr".to_owned(), "off".to_owned())].into(),
        date: "2026-01-01T00:00:00Z".to_owned(),
        host: HostReport { name: "h".to_owned(), kernel: "k".to_owned(), processors: 4 },
        versions: Versions { rackloom: "1".to_owned(), wire: 1 },
        commit: "c".to_owned(),
    });
    report
}

/// Returns the report of a run of three nodes.
pub(crate) fn report(clock: &str, seed: u64) -> Report {
    report_of(&["n0", "n1", "n2"], clock, seed)
}

/// Returns a row of a sweep.
pub(crate) fn sweep(algorithm: &str, size_bytes: u64, time_us: f64) -> SweepRow {
    let row = SweepRow {
        what: "all-reduce".to_owned(),
        algorithm: algorithm.to_owned(),
        size_bytes,
        element: "f32".to_owned(),
        op: "sum".to_owned(),
        ..SweepRow::default()
    };
    row.timed(time_us * 1000.0, Some(1.5))
}
