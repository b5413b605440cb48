//! Runs as trace events in JSON, which Perfetto and other viewers draw over time.
//!
//! | track | content |
//! |---|---|
//! | rack, `phases` | slices of the phases of the job, with the balance of their load |
//! | member, `events` | instants of the report's events |
//! | member, `faults` | slices of faults, from the line of their begin to that of their end |
//! | member, `operations` | slices of single operations |
//! | member, counters | series of the directions of links that begin at the member, and of its operations |
//!
//! Slices of one track that overlap are on lanes of their own: no two slices of a thread overlap. Times are microseconds with three
//! decimals, so that no nanosecond is lost. The number of events is bounded, and the trace says how many it leaves out.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Write};

use rackloom_control::report::{EventRecord, LinkSeries, OperationSpan, Report, Series};

use crate::lanes::Lanes;

/// Number of events that a trace has at most, if its user sets no other.
pub const EVENTS_MAX: usize = 1_000_000;

/// Process of tracks that belong to no member.
const RACK: usize = 1;
/// Process of the first member.
const MEMBERS: usize = 2;
/// Thread of events. Threads of slices follow.
const EVENTS_THREAD: usize = 1;
/// Kind of the lines of fault scripts.
const FAULT: &str = "fault";

/// Content of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// Report of the run.
    pub report: &'a Report,
    /// Number of events that are written at most. Names of tracks do not count.
    pub events_max: usize,
}

/// Number of events of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Events that were written.
    pub written: usize,
    /// Events beyond the limit.
    pub left_out: usize,
}

/// Writes a trace. Phases and faults precede events, operations and counters, so that the limit takes the most frequent ones.
///
/// # Errors
/// Those of `out`.
pub fn write(trace: &Trace<'_>, out: &mut impl Write) -> Result<EventCounts, fmt::Error> {
    let report = trace.report;
    let members: HashMap<&str, usize> =
        report.nodes.iter().zip(MEMBERS..).map(|(node, process)| (node.name.as_str(), process)).collect();
    let mut writer =
        Writer { out, is_first: true, events_max: trace.events_max, counts: EventCounts::default() };
    writer.out.write_str("{\"traceEvents\":[")?;
    let mut threads = Threads::default();
    let names = report.nodes.iter().map(|node| node.name.as_str());
    for (process, name) in (RACK..).zip(std::iter::once("rack").chain(names)) {
        writer.process(process, name)?;
    }
    writer.slices(&mut threads, RACK, "phases", phases(report))?;
    for (process, slices) in faults(report, &members) {
        writer.slices(&mut threads, process, "faults", slices)?;
    }
    events(&mut writer, report, &members)?;
    operations(&mut writer, &mut threads, trace, &members)?;
    if let Some(series) = &report.series {
        counters(&mut writer, series, &members)?;
    }
    let counts = writer.counts;
    writer.out.write_str("\n],\"displayTimeUnit\":\"ns\",\"otherData\":{")?;
    let clock = quoted(&report.clock);
    let (job, verdict) = (quoted(&report.job), quoted(report.verdict.name()));
    write!(
        writer.out,
        "\"clock\":{clock},\"job\":{job},\"verdict\":{verdict},\"events left out\":\"{}\"}}}}",
        counts.left_out
    )?;
    writeln!(writer.out)?;
    Ok(counts)
}

/// Time as microseconds.
#[derive(Clone, Copy)]
struct Micros(u64);

impl Display for Micros {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Interval with a name.
struct Slice {
    begin_ns: u64,
    end_ns: u64,
    name: String,
    /// Members of the object of arguments, as JSON.
    arguments: String,
}

/// Next free thread of each process.
#[derive(Default)]
struct Threads(BTreeMap<usize, usize>);

impl Threads {
    /// Reserves threads of a process and returns the first.
    fn reserve(&mut self, process: usize, count: usize) -> usize {
        let next = self.0.entry(process).or_insert(EVENTS_THREAD + 1);
        let first = *next;
        *next += count;
        first
    }
}

struct Writer<'o, W> {
    out: &'o mut W,
    is_first: bool,
    events_max: usize,
    counts: EventCounts,
}

impl<W: Write> Writer<'_, W> {
    /// Writes an object, which is given without its braces.
    fn object(&mut self, members: fmt::Arguments<'_>) -> fmt::Result {
        let separator = if std::mem::take(&mut self.is_first) { "" } else { "," };
        write!(self.out, "{separator}\n{{{members}}}")
    }

    /// Counts an event. Returns false if it is beyond the limit.
    fn takes(&mut self) -> bool {
        let is_within = self.counts.written < self.events_max;
        if is_within {
            self.counts.written += 1;
        } else {
            self.counts.left_out += 1;
        }
        is_within
    }

    fn process(&mut self, process: usize, name: &str) -> fmt::Result {
        let name = quoted(name);
        self.object(format_args!(
            "\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"tid\":0,\"ts\":0,\"args\":{{\"name\":{name}}}"
        ))?;
        self.object(format_args!(
            "\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{process},\"tid\":0,\"ts\":0,\"args\":{{\"sort_index\":{process}}}"
        ))
    }

    fn thread(&mut self, process: usize, thread: usize, name: &str) -> fmt::Result {
        let name = quoted(name);
        self.object(format_args!(
            "\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{process},\"tid\":{thread},\"ts\":0,\"args\":{{\"name\":{name}}}"
        ))?;
        self.object(format_args!(
            "\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{process},\"tid\":{thread},\"ts\":0,\"args\":{{\"sort_index\":{thread}}}"
        ))
    }

    /// Writes slices on as many threads as they need. Each thread has the name of the track.
    fn slices(
        &mut self,
        threads: &mut Threads,
        process: usize,
        track: &str,
        mut slices: Vec<Slice>,
    ) -> fmt::Result {
        // A longer slice first, so that those within it are placed after it.
        slices.sort_by_key(|slice| (slice.begin_ns, std::cmp::Reverse(slice.end_ns)));
        slices.retain(|_| self.takes());
        let mut lanes = Lanes::default();
        let placed: Vec<_> = slices.iter().map(|slice| lanes.place(slice.begin_ns, slice.end_ns)).collect();
        let first = threads.reserve(process, lanes.count());
        for lane in 0..lanes.count() {
            self.thread(process, first + lane, track)?;
        }
        for (slice, lane) in slices.into_iter().zip(placed) {
            let Slice { begin_ns, end_ns, name, arguments } = slice;
            let (name, track) = (quoted(&name), quoted(track));
            let (begin, duration) = (Micros(begin_ns), Micros(end_ns.saturating_sub(begin_ns)));
            self.object(format_args!(
                "\"ph\":\"X\",\"name\":{name},\"cat\":{track},\"pid\":{process},\"tid\":{},\"ts\":{begin},\"dur\":{duration},\"args\":{{{arguments}}}",
                first + lane
            ))?;
        }
        Ok(())
    }

    fn counter(&mut self, process: usize, name: &str, at_ns: u64, values: &str) -> fmt::Result {
        let (name, at) = (quoted(name), Micros(at_ns));
        self.object(format_args!(
            "\"ph\":\"C\",\"name\":{name},\"pid\":{process},\"tid\":0,\"ts\":{at},\"args\":{{{values}}}"
        ))
    }
}

fn quoted(text: &str) -> String {
    // A text is always valid JSON.
    serde_json::to_string(text).unwrap_or_default()
}

fn phases(report: &Report) -> Vec<Slice> {
    // The first phase of the balance is the whole run.
    let phases = report.phases.iter().map(|phase| {
        let load = report.balance.iter().skip(1).find(|load| load.name == phase.name);
        let arguments = load.filter(|load| load.imbalance.is_finite()).map(|load| {
            let busiest = quoted(load.busiest.as_deref().unwrap_or(""));
            let fullest = load.fullest.as_deref().map(|name| format!(",\"fullest\":{}", quoted(name)));
            let fullest = fullest.unwrap_or_default();
            format!("\"imbalance\":{:.3},\"busiest\":{busiest}{fullest}", load.imbalance)
        });
        Slice {
            begin_ns: phase.began_ns,
            end_ns: phase.ended_ns.max(phase.began_ns),
            name: phase.name.clone(),
            arguments: arguments.unwrap_or_default(),
        }
    });
    phases.collect()
}

/// Returns the slices of faults by process. A fault without a line of its end lasts until the end of the run.
fn faults(report: &Report, members: &HashMap<&str, usize>) -> BTreeMap<usize, Vec<Slice>> {
    let mut open = BTreeMap::<(&str, &str), u64>::new();
    let mut slices = BTreeMap::<usize, Vec<Slice>>::new();
    let mut close = |(event, member): (&str, &str), begin_ns: u64, end_ns: u64| {
        let number = event.parse::<usize>().ok();
        let fault = report.faults.iter().find(|fault| Some(fault.event) == number);
        let name = fault.map_or_else(|| format!("event {event}"), |fault| fault.what.clone());
        let process = members.get(member).copied().unwrap_or(RACK);
        let arguments = format!("\"event\":{}", quoted(event));
        let end_ns = end_ns.max(begin_ns);
        slices.entry(process).or_default().push(Slice { begin_ns, end_ns, name, arguments });
    };
    for record in report.events.iter().filter(|record| record.kind == FAULT) {
        let field = |name: &str| record.fields.get(name).map_or("", String::as_str);
        let key = (field("event"), record.member.as_str());
        if field("begins") == "true" {
            open.entry(key).or_insert(record.at_ns);
        } else if let Some(begin_ns) = open.remove(&key) {
            close(key, begin_ns, record.at_ns);
        }
    }
    open.into_iter().for_each(|(key, begin_ns)| close(key, begin_ns, report.elapsed_ns));
    slices
}

fn events<W: Write>(
    writer: &mut Writer<'_, W>,
    report: &Report,
    members: &HashMap<&str, usize>,
) -> fmt::Result {
    let process_of = |record: &EventRecord| members.get(record.member.as_str()).copied().unwrap_or(RACK);
    let shown = || report.events.iter().filter(|record| record.kind != FAULT);
    let mut processes: Vec<_> = shown().map(process_of).collect();
    processes.sort_unstable();
    processes.dedup();
    for process in processes {
        writer.thread(process, EVENTS_THREAD, "events")?;
    }
    for record in shown() {
        if !writer.takes() {
            continue;
        }
        let (name, text, at) = (quoted(&record.kind), quoted(&record.text), Micros(record.at_ns));
        let mut arguments = format!("\"text\":{text}");
        for (key, value) in record.fields.iter().filter(|(key, _)| *key != "text") {
            arguments.push_str(&format!(",{}:{}", quoted(key), quoted(value)));
        }
        let process = process_of(record);
        writer.object(format_args!(
            "\"ph\":\"i\",\"s\":\"t\",\"name\":{name},\"cat\":\"event\",\"pid\":{process},\"tid\":{EVENTS_THREAD},\"ts\":{at},\"args\":{{{arguments}}}"
        ))?;
    }
    Ok(())
}

fn operations<W: Write>(
    writer: &mut Writer<'_, W>,
    threads: &mut Threads,
    trace: &Trace<'_>,
    members: &HashMap<&str, usize>,
) -> fmt::Result {
    let mut by_node = BTreeMap::<&str, Vec<&OperationSpan>>::new();
    for span in &trace.report.spans {
        by_node.entry(&span.node).or_default().push(span);
    }
    for (node, spans) in by_node {
        let process = members.get(node).copied().unwrap_or(RACK);
        let slice = |span: &OperationSpan| {
            let mut arguments = format!("\"bytes\":{}", span.bytes);
            for (name, value) in [("peer", &span.peer), ("error", &span.error)] {
                if let Some(value) = value {
                    arguments.push_str(&format!(",\"{name}\":{}", quoted(value)));
                }
            }
            let end_ns = span.end_ns.max(span.begin_ns);
            Slice { begin_ns: span.begin_ns, end_ns, name: span.kind.name().to_owned(), arguments }
        };
        writer.slices(threads, process, "operations", spans.into_iter().map(slice).collect())?;
    }
    Ok(())
}

/// List of a series: its name, its values, and whether they are counts per interval that become rates.
struct Quantity<'a> {
    name: String,
    values: &'a [u64],
    is_rate: bool,
}

fn counters<W: Write>(
    writer: &mut Writer<'_, W>,
    series: &Series,
    members: &HashMap<&str, usize>,
) -> fmt::Result {
    for link in &series.links {
        let sender = link.name.split_once("->").map_or("", |(sender, _)| sender);
        let process = members.get(sender).copied().unwrap_or(RACK);
        counter(writer, series, process, &link.name, &quantities_of(link))?;
    }
    for node in &series.nodes {
        let process = members.get(node.name.as_str()).copied().unwrap_or(RACK);
        let quantity = |name: &str, values, is_rate| Quantity { name: name.to_owned(), values, is_rate };
        let quantities = [
            quantity("operations_per_s", &node.operations, true),
            quantity("latency_p50_ns", &node.latency_p50_ns, false),
            quantity("latency_p99_ns", &node.latency_p99_ns, false),
        ];
        counter(writer, series, process, &node.name, &quantities)?;
    }
    Ok(())
}

fn quantities_of(link: &LinkSeries) -> Vec<Quantity<'_>> {
    let quantity = |name: &str, values, is_rate| Quantity { name: name.to_owned(), values, is_rate };
    let lists = [
        quantity("bytes_per_s", &link.bytes, true),
        quantity("frames_per_s", &link.frames, true),
        quantity("accounted_per_s", &link.accounted, true),
        quantity("replayed", &link.replayed, false),
        quantity("retransmitted", &link.retransmitted, false),
        quantity("credit_waits", &link.credit_waits, false),
        quantity("missing", &link.missing, false),
        quantity("queued", &link.queued, false),
    ];
    let dropped =
        link.dropped.iter().map(|(reason, values)| quantity(&format!("dropped {reason}"), values, false));
    lists.into_iter().chain(dropped).filter(|quantity| !quantity.values.is_empty()).collect()
}

/// Writes one event per interval in which a value changes. After the last interval all values are zero.
fn counter<W: Write>(
    writer: &mut Writer<'_, W>,
    series: &Series,
    process: usize,
    name: &str,
    quantities: &[Quantity<'_>],
) -> fmt::Result {
    let length = quantities.iter().map(|quantity| quantity.values.len()).max().unwrap_or(0);
    let mut earlier = String::new();
    for index in 0..=length {
        let texts: Vec<_> = quantities
            .iter()
            .map(|quantity| {
                let value = quantity.values.get(index).copied().unwrap_or(0);
                let value = if quantity.is_rate { per_second(value, series.interval_ns) } else { value };
                format!("{}:{value}", quoted(&quantity.name))
            })
            .collect();
        let values = texts.join(",");
        if values == earlier || values.is_empty() || !writer.takes() {
            continue;
        }
        let at_ns = series.from_ns.saturating_add(series.interval_ns.saturating_mul(index as u64));
        writer.counter(process, name, at_ns, &values)?;
        earlier = values;
    }
    Ok(())
}

/// Returns a rate, rounded down; zero if the interval has no length.
fn per_second(count: u64, interval_ns: u64) -> u64 {
    let rate = (u128::from(count) * 1_000_000_000).checked_div(u128::from(interval_ns));
    u64::try_from(rate.unwrap_or(0)).unwrap_or(u64::MAX)
}
