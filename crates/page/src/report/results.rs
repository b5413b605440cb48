//! Measured results of the job: sizes and algorithms, traffic, workload, and operations.

use rackloom_control::measure::OperationPath;
use rackloom_control::report::{
    LinkUse, OperationReport, PhaseReport, RankReport, Rechoice, Report, SweepRow, TrafficReport,
    WorkloadReport,
};
use rackloom_drawing::chart::{
    Across, Axis, BarSeries, Bars, Chart, Lane, Lanes, Mark, Meaning, Panels, Point, Series,
};

use crate::model::{Block, Cell, Column, Figure, Row, Table, Tone, Value};
use crate::text;

/// Rows and marks at most.
const ROWS_MAX: usize = 500;
const MARKS_MAX: usize = 200;
/// Lines of a plot, and plots of a figure at most.
const LINES_MAX: usize = 16;
const PANELS_MAX: usize = 40;

/// Returns the bus bandwidth over the size for each algorithm, and the table of rows.
pub(super) fn sweep(rows: &[SweepRow]) -> Vec<Block> {
    let mut blocks: Vec<Block> = bandwidth(rows).into_iter().collect();
    blocks.push(Block::Table(sweep_table(rows)));
    blocks.push(Block::Table(rechoices(rows)));
    blocks
}

/// Draws the rows with a bandwidth. `None` if there are none.
fn bandwidth(rows: &[SweepRow]) -> Option<Block> {
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        let Some(gbps) = row.bus_gbps.filter(|gbps| gbps.is_finite()) else { continue };
        let parts = [&row.what, &row.algorithm, &row.pair];
        let name: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        let name = name.join(" ");
        let point = (row.size_bytes as f64, gbps);
        match series.iter().position(|one| one.name == name) {
            Some(index) => series[index].line.push(point),
            None => series.push(Series { name, line: vec![point], points: Vec::new() }),
        }
    }
    for one in &mut series {
        one.line.sort_by(|one, other| one.0.total_cmp(&other.0));
        one.points = one.line.iter().map(|(size, gbps)| Point::new(*size, *gbps)).collect();
    }
    let has_points = !series.is_empty();
    has_points.then(|| {
        let chart = Chart {
            title: "Bus bandwidth over the size".to_owned(),
            note: String::new(),
            x: Across::Values(Axis::logarithmic("size (B)")),
            y: Axis::from_zero("bus bandwidth (GB/s)"),
            series,
            meanings: vec![Meaning::Point("measured".to_owned())],
        };
        let rest = "The JSON report has all.";
        Block::figure(Figure::Panels(Panels::divided(chart, LINES_MAX, PANELS_MAX, rest)))
    })
}

fn sweep_table(rows: &[SweepRow]) -> Table {
    let texts = ["what", "between", "algorithm"].map(Column::text);
    let sizes = ["size", "count"].map(Column::number);
    let kinds = ["type", "op"].map(Column::text);
    // Those that are compared first stand first: the table may be wider than the window.
    let measured = [
        "time (us)",
        "algbw (GB/s)",
        "busbw (GB/s)",
        "of link",
        "wrong",
        "min (us)",
        "p50 (us)",
        "p99 (us)",
        "estimate (us)",
    ];
    let columns = texts.into_iter().chain(sizes).chain(kinds).chain(measured.map(Column::number)).collect();
    let row = |row: &SweepRow| -> Row {
        let mut cells: Row =
            vec![row.what.as_str().into(), row.pair.as_str().into(), row.algorithm.as_str().into()];
        cells.extend([text::bytes_cell(row.size_bytes), text::count_cell(row.count)]);
        cells.extend([row.element.as_str().into(), row.op.as_str().into()]);
        cells.extend([Some(row.time_us), row.algorithm_gbps, row.bus_gbps].map(text::decimal_cell));
        cells.push(row.of_link.map_or_else(Cell::absent, text::share_cell));
        let tone = if row.wrong > 0 { Tone::Bad } else { Tone::Plain };
        cells.push(text::count_cell(row.wrong).with_tone(tone));
        let quantiles = [row.time_min_us, row.time_p50_us, row.time_p99_us, row.estimate_us];
        cells.extend(quantiles.map(text::decimal_cell));
        cells
    };
    let table = Table { rows: rows.iter().map(row).collect(), ..Table::new("Times and bandwidths", columns) };
    table.without_empty_columns().bounded(ROWS_MAX, "the first ones of the job")
}

/// Returns the trials of other algorithms in the course of the runs.
fn rechoices(rows: &[SweepRow]) -> Table {
    let columns = ["what", "from", "to", "tried"].map(Column::text);
    let numbers = ["size", "run", "before (us)", "expected (us)"].map(Column::number);
    let mut table = Table::new("Algorithms chosen again", columns.into_iter().chain(numbers).collect());
    let all = rows.iter().flat_map(|row| row.rechoices.iter().map(move |rechoice| (row, rechoice)));
    for (row, Rechoice { run, from, to, reference_us, now_us, tried, .. }) in all {
        let tried: Vec<String> =
            tried.iter().map(|one| format!("{} {} us", one.algorithm, text::decimal(one.time_us))).collect();
        table.rows.push(vec![
            row.what.as_str().into(),
            from.as_str().into(),
            to.as_str().into(),
            tried.join(", ").into(),
            text::bytes_cell(row.size_bytes),
            text::count_cell(*run),
            text::decimal_cell(*now_us),
            text::decimal_cell(*reference_us),
        ]);
    }
    table.bounded(ROWS_MAX, "the first ones of the job")
}

/// Returns the result of a traffic pattern.
pub(super) fn traffic(traffic: Option<&TrafficReport>) -> Vec<Block> {
    let Some(traffic) = traffic else { return Vec::new() };
    vec![Block::Values(vec![
        Value::new("pattern", traffic.pattern.as_str()),
        Value::new("messages", text::count(traffic.messages)),
        Value::new("bytes", text::bytes(traffic.bytes)),
        Value::new("completion", text::time(traffic.completion_ns as f64)),
        Value::new("goodput", format!("{} GB/s", text::decimal(traffic.goodput_gbps))),
        Value::new("fairness of the senders (1 is even)", text::decimal(traffic.fairness)),
    ])]
}

/// Returns the results of a workload.
pub(super) fn workload(workload: Option<&WorkloadReport>) -> Vec<Block> {
    let Some(workload) = workload else { return Vec::new() };
    let time = |ns: u64| text::time(ns as f64);
    let values = vec![
        Value::new("workload", workload.name.as_str()),
        Value::new("ranks", ranks_stated(workload)),
        Value::new("iteration", time(workload.iteration_ns)),
        Value::new("longest computation of a rank", time(workload.compute_max_ns)),
        Value::new("exposed communication, median of the ranks", time(workload.exposed_median_ns)),
        Value::new("exposed communication, longest", time(workload.exposed_max_ns)),
        Value::new("operations", text::count(workload.operations)),
        Value::new("messages", text::count(workload.messages)),
        Value::new("bytes", text::bytes(workload.bytes)),
    ];
    let mut blocks = vec![Block::Values(values)];
    blocks.extend(phases_over_time(workload));
    blocks
        .extend([phases(&workload.phases), ranks(&workload.ranks), uses(&workload.links)].map(Block::Table));
    blocks
}

/// Returns the number of ranks of the workload, and how many of them have operations if some have none.
fn ranks_stated(workload: &WorkloadReport) -> String {
    let active = workload.ranks.len() as u64;
    // Reports of earlier versions state only ranks with operations.
    match workload.ranks_stated.max(active) {
        all if all == active => text::count(all),
        all => format!("{}, {} with operations", text::count(all), text::count(active)),
    }
}

/// Draws the phases from the begin of the workload on.
fn phases_over_time(workload: &WorkloadReport) -> Option<Block> {
    let performed: Vec<&PhaseReport> = workload.phases.iter().filter(|phase| phase.operations > 0).collect();
    let mark = |phase: &&PhaseReport| Mark {
        at: phase.began_ns as f64,
        until: Some(phase.ended_ns as f64),
        text: format!(
            "{}: {} to {}, {} operations, {}",
            phase.name,
            text::time(phase.began_ns as f64),
            text::time(phase.ended_ns as f64),
            text::count(phase.operations),
            text::bytes(phase.bytes)
        ),
        name: phase.name.clone(),
    };
    let more = performed.len().saturating_sub(MARKS_MAX);
    let note = if more > 0 { format!("{more} later phases are left out here.") } else { String::new() };
    (!performed.is_empty()).then(|| {
        Block::figure(Figure::TimeLine(Lanes {
            title: "Phases of the workload".to_owned(),
            note,
            time: Axis::linear("time from the begin of the workload (ns)"),
            range: (0.0, workload.iteration_ns as f64),
            lanes: vec![Lane {
                name: "phases".to_owned(),
                marks: performed.iter().take(MARKS_MAX).map(mark).collect(),
            }],
        }))
    })
}

fn phases(phases: &[PhaseReport]) -> Table {
    let numbers = ["operations", "from", "to", "longest computation", "bytes"].map(Column::number);
    let columns = [Column::text("phase")].into_iter().chain(numbers).collect();
    let row = |phase: &PhaseReport| {
        vec![
            phase.name.as_str().into(),
            text::count_cell(phase.operations),
            text::time_cell(phase.began_ns),
            text::time_cell(phase.ended_ns),
            text::time_cell(phase.compute_max_ns),
            text::bytes_cell(phase.bytes),
        ]
    };
    let table =
        Table { rows: phases.iter().map(row).collect(), ..Table::new("Phases of the workload", columns) };
    table.bounded(ROWS_MAX, "the first ones of the workload")
}

/// Returns the table of ranks, those with the longest exposed communication first.
fn ranks(ranks: &[RankReport]) -> Table {
    let numbers = ["operations", "from", "to", "computation", "exposed communication", "messages", "bytes"];
    let columns = [Column::text("rank")].into_iter().chain(numbers.map(Column::number)).collect();
    let mut sorted: Vec<&RankReport> = ranks.iter().collect();
    sorted.sort_by_key(|rank| std::cmp::Reverse(rank.exposed_ns));
    let row = |rank: &&RankReport| {
        vec![
            rank.name.as_str().into(),
            text::count_cell(rank.operations),
            text::time_cell(rank.began_ns),
            text::time_cell(rank.ended_ns),
            text::time_cell(rank.compute_ns),
            text::time_cell(rank.exposed_ns),
            text::count_cell(rank.messages),
            text::bytes_cell(rank.bytes),
        ]
    };
    let table =
        Table { rows: sorted.iter().map(row).collect(), ..Table::new("Ranks of the workload", columns) };
    table.bounded(ROWS_MAX, "ranks with the longest exposed communication")
}

/// Returns the use of links in the iteration, the busiest ones first.
fn uses(links: &[LinkUse]) -> Table {
    let columns =
        vec![Column::text("direction"), Column::number("bytes"), Column::number("share of the iteration")];
    let mut sorted: Vec<&LinkUse> = links.iter().collect();
    sorted.sort_by(|one, other| {
        let share = |link: &LinkUse| link.share.unwrap_or(0.0);
        share(other).total_cmp(&share(one)).then(other.bytes.cmp(&one.bytes))
    });
    let row = |link: &&LinkUse| {
        let share = link.share.map_or_else(Cell::absent, text::share_cell);
        vec![link.name.as_str().into(), text::bytes_cell(link.bytes), share]
    };
    let table =
        Table { rows: sorted.iter().map(row).collect(), ..Table::new("Links in the iteration", columns) };
    table.without_empty_columns().bounded(ROWS_MAX, "the busiest links")
}

/// Returns latencies by kind of operation, as bars and as a table.
pub(super) fn operations(report: &Report) -> Vec<Block> {
    let operations = &report.operations;
    if operations.is_empty() {
        return Vec::new();
    }
    let mut blocks = Vec::new();
    if report.job == "litmus" {
        let note =
            "A litmus checks bytes. Its times include queueing behind other operations and are no benchmark.";
        blocks.push(Block::Text(note.to_owned()));
    }
    let value = |of: fn(&OperationReport) -> u64| {
        operations.iter().map(|operation| (of(operation) > 0).then(|| of(operation) as f64)).collect()
    };
    let series = |name: &str, values| BarSeries { name: name.to_owned(), values };
    blocks.push(Block::figure(Figure::Bars(Bars {
        title: "Latency by kind of operation".to_owned(),
        note: "Successful operations of all nodes. A kind without one has no bar.".to_owned(),
        value: Axis::linear("latency (ns)"),
        names: operations.iter().map(name).collect(),
        series: vec![
            series("median (p50)", value(|operation| operation.latency_ns.p50)),
            series("99th percentile (p99)", value(|operation| operation.latency_ns.p99)),
            series("longest (max)", value(|operation| operation.latency_ns.max)),
        ],
    })));
    blocks.push(Block::Table(operation_table(operations)));
    blocks
}

fn name(operation: &OperationReport) -> String {
    match operation.path {
        Some(OperationPath::Direct) => format!("{}, {}", operation.kind.name(), OperationPath::Direct.name()),
        _ => operation.kind.name().to_owned(),
    }
}

fn operation_table(operations: &[OperationReport]) -> Table {
    let numbers = ["count", "errors", "p50", "p99", "max", "goodput"].map(Column::number);
    let columns = [Column::text("operation"), Column::text("path")].into_iter().chain(numbers);
    let mut table = Table::new("Operations", columns.chain([Column::text("errors by name")]).collect());
    for operation in operations {
        let errors: Vec<String> = operation
            .errors_by_name
            .iter()
            .map(|(name, count)| format!("{name} {}", text::count(*count)))
            .collect();
        let goodput = operation.goodput_bytes_per_s;
        let tone = if operation.errors > 0 { Tone::Warning } else { Tone::Plain };
        table.rows.push(vec![
            operation.kind.name().into(),
            operation.path.map_or("-", OperationPath::name).into(),
            text::count_cell(operation.count),
            text::count_cell(operation.errors).with_tone(tone),
            text::time_cell(operation.latency_ns.p50),
            text::time_cell(operation.latency_ns.p99),
            text::time_cell(operation.latency_ns.max),
            if goodput == 0 {
                Cell::absent()
            } else {
                Cell::number(text::rate(goodput as f64), goodput as f64)
            },
            errors.join(", ").into(),
        ]);
    }
    table.without_empty_columns()
}
