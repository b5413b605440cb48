//! Text of metrics: families with their metadata, samples with labels, escapes.
//!
//! A family's samples are contiguous, a series occurs once, and a family without samples is left out.

use std::collections::HashSet;
use std::fmt::{self, Display, Write as _};

/// Text format of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    #[default]
    OpenMetrics,
    /// Text format 0.0.4 of Prometheus, for scrapers that do not accept OpenMetrics. It has no units and no type for information.
    Prometheus,
}

impl Format {
    /// Returns the content type of the text in HTTP.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns the format for the value of an `Accept` header: OpenMetrics if the header names it and does not exclude it by `q=0`.
    #[must_use]
    pub fn accepted(header: &str) -> Self {
        let is_open_metrics = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let is_named =
                parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
            let quality =
                parts.find_map(|part| part.strip_prefix("q=")).and_then(|text| text.parse::<f64>().ok());
            is_named && quality.is_none_or(|quality| quality > 0.0)
        };
        if header.split(',').any(is_open_metrics) { Self::OpenMetrics } else { Self::Prometheus }
    }
}

/// Kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// Value that only grows, until its process is replaced. The name of its samples ends with `_total`.
    Counter,
    /// Value that grows and shrinks.
    Gauge,
    /// Labels with the value 1. The name of its samples ends with `_info`.
    Info,
}

/// Family of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name without the ending of samples.
    pub name: &'static str,
    /// Kind.
    pub kind: FamilyKind,
    /// Unit, with which the name ends; empty for counts.
    pub unit: &'static str,
    /// Description.
    pub help: &'static str,
}

impl Family {
    /// Returns the name of the family's samples.
    #[must_use]
    pub fn sample_name(&self) -> String {
        let ending = match self.kind {
            FamilyKind::Counter => "_total",
            FamilyKind::Gauge => "",
            FamilyKind::Info => "_info",
        };
        format!("{}{ending}", self.name)
    }
}

/// Value of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Count(u64),
    Nanoseconds(u64),
}

impl Display for Number {
    /// Writes a count as it is, and nanoseconds as seconds without rounding.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(formatter, "{count}"),
            Self::Nanoseconds(time_ns) => {
                write!(formatter, "{}", time_ns / 1_000_000_000)?;
                let rest = format!("{:09}", time_ns % 1_000_000_000);
                let rest = rest.trim_end_matches('0');
                if rest.is_empty() { Ok(()) } else { write!(formatter, ".{rest}") }
            }
        }
    }
}

/// Label of a sample.
pub(crate) type Label<'a> = (&'static str, &'a str);

/// Text of metrics that grows family by family.
pub(crate) struct Exposition {
    format: Format,
    text: String,
}

/// Family whose samples are added.
pub(crate) struct Samples<'e> {
    exposition: &'e mut Exposition,
    family: &'static Family,
    seen: HashSet<String>,
}

impl Exposition {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, text: String::new() }
    }

    /// Begins a family. Each family may begin once.
    pub(crate) fn family(&mut self, family: &'static Family) -> Samples<'_> {
        Samples { exposition: self, family, seen: HashSet::new() }
    }

    /// Returns the whole text.
    pub(crate) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn begin(&mut self, family: &Family) {
        let (name, kind) = match (self.format, family.kind) {
            (Format::OpenMetrics, FamilyKind::Counter) => (family.name.to_owned(), "counter"),
            (Format::OpenMetrics, FamilyKind::Info) => (family.name.to_owned(), "info"),
            (Format::Prometheus, FamilyKind::Counter) => (family.sample_name(), "counter"),
            (Format::Prometheus, FamilyKind::Info) => (family.sample_name(), "gauge"),
            (_, FamilyKind::Gauge) => (family.name.to_owned(), "gauge"),
        };
        self.line(format_args!("# TYPE {name} {kind}"));
        if self.format == Format::OpenMetrics && !family.unit.is_empty() {
            self.line(format_args!("# UNIT {name} {}", family.unit));
        }
        self.line(format_args!("# HELP {name} {}", escaped(family.help)));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // A string takes any text.
        let _ = writeln!(self.text, "{line}");
    }
}

impl Samples<'_> {
    /// Adds a sample. A series that the family already has is left out: names of a status may be those of another program.
    pub(crate) fn add(&mut self, labels: &[Label<'_>], value: Number) -> &mut Self {
        let texts: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = texts.join(",");
        if !self.seen.contains(&labels) {
            if self.seen.is_empty() {
                self.exposition.begin(self.family);
            }
            self.exposition.line(format_args!("{}{{{labels}}} {value}", self.family.sample_name()));
            self.seen.insert(labels);
        }
        self
    }
}

/// Escapes backslashes, quotes and ends of lines.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    static BYTES: Family =
        Family { name: "x_bytes", kind: FamilyKind::Counter, unit: "bytes", help: "Bytes." };
    static KIND: Family = Family { name: "x", kind: FamilyKind::Info, unit: "", help: "A \"kind\"\\." };

    fn text(format: Format) -> String {
        let mut exposition = Exposition::new(format);
        exposition.family(&KIND).add(&[("name", "a\"b\\c\nd")], Number::Count(1));
        exposition.family(&BYTES).add(&[("a", "1")], Number::Count(7)).add(&[("a", "1")], Number::Count(8));
        exposition.family(&BYTES);
        exposition.finish()
    }

    #[test]
    fn both_formats_have_their_own_metadata() {
        let expected = "# TYPE x info\n# HELP x A \\\"kind\\\"\\\\.\nx_info{name=\"a\\\"b\\\\c\\nd\"} 1\n\
                        # TYPE x_bytes counter\n# UNIT x_bytes bytes\n# HELP x_bytes Bytes.\nx_bytes_total{a=\"1\"} 7\n# EOF\n";
        assert_eq!(text(Format::OpenMetrics), expected);
        let expected = "# TYPE x_info gauge\n# HELP x_info A \\\"kind\\\"\\\\.\nx_info{name=\"a\\\"b\\\\c\\nd\"} 1\n\
                        # TYPE x_bytes_total counter\n# HELP x_bytes_total Bytes.\nx_bytes_total{a=\"1\"} 7\n";
        assert_eq!(text(Format::Prometheus), expected);
    }

    #[test]
    fn times_are_exact_seconds() {
        let texts = [0, 1, 1_500_000_000, u64::MAX].map(|time_ns| Number::Nanoseconds(time_ns).to_string());
        assert_eq!(texts, ["0", "0.000000001", "1.5", "18446744073.709551615"]);
    }

    #[test]
    fn scrapers_get_the_format_that_they_accept() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        for header in
            ["", "*/*", "text/plain", "application/openmetrics-text; q=0", "x/application/openmetrics-text"]
        {
            assert_eq!(Format::accepted(header), Format::Prometheus, "{header}");
        }
    }
}
