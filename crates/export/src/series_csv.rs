//! Time series of a run as CSV in long form: one line for each interval, link or node, and quantity.
//!
//! Fields with commas, quotes or ends of lines are quoted as RFC 4180 states. Lines end with a line feed alone, as in other CSV files of
//! this project; readers of CSV accept both.

use std::fmt::{self, Write};

use rackloom_control::report::{LinkSeries, NodeSeries, Series};

/// First line of the text.
pub const HEADER: &str = "time_ns,kind,name,quantity,value";

/// Writes the series. `time_ns` is the begin of an interval. Quantities that a series does not have are left out.
///
/// # Errors
/// Those of `out`.
pub fn write(series: &Series, out: &mut impl Write) -> fmt::Result {
    writeln!(out, "{HEADER}")?;
    for link in &series.links {
        of_link(series, link, out)?;
    }
    for node in &series.nodes {
        of_node(series, node, out)?;
    }
    Ok(())
}

fn of_link(series: &Series, link: &LinkSeries, out: &mut impl Write) -> fmt::Result {
    let lists = [
        ("bytes", &link.bytes),
        ("frames", &link.frames),
        ("accounted", &link.accounted),
        ("replayed", &link.replayed),
        ("retransmitted", &link.retransmitted),
        ("credit_waits", &link.credit_waits),
        ("missing", &link.missing),
        ("queued", &link.queued),
    ];
    let dropped = link.dropped.iter().map(|(reason, values)| (format!("dropped:{reason}"), values));
    for (quantity, values) in lists.into_iter().map(|(name, values)| (name.to_owned(), values)).chain(dropped)
    {
        lines(series, ["link", &link.name, &quantity], values, out)?;
    }
    Ok(())
}

fn of_node(series: &Series, node: &NodeSeries, out: &mut impl Write) -> fmt::Result {
    let lists = [
        ("operations", &node.operations),
        ("latency_p50_ns", &node.latency_p50_ns),
        ("latency_p99_ns", &node.latency_p99_ns),
    ];
    for (quantity, values) in lists {
        let kind = if node.is_switch { "switch" } else { "node" };
        lines(series, [kind, &node.name, quantity], values, out)?;
    }
    Ok(())
}

fn lines(series: &Series, fields: [&str; 3], values: &[u64], out: &mut impl Write) -> fmt::Result {
    let fields = fields.map(quoted).join(",");
    let mut time_ns = series.from_ns;
    for value in values {
        writeln!(out, "{time_ns},{fields},{value}")?;
        time_ns = time_ns.saturating_add(series.interval_ns);
    }
    Ok(())
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_a_line_and_hostile_names_are_quoted() {
        let link = LinkSeries {
            name: "a,\"b\"\n->c".to_owned(),
            bytes: vec![5, 0],
            frames: vec![1, 0],
            dropped: [("queue-full".to_owned(), vec![0, 2])].into(),
            ..LinkSeries::default()
        };
        let node = NodeSeries {
            name: "n0".to_owned(),
            operations: vec![3],
            latency_p50_ns: vec![10],
            latency_p99_ns: vec![20],
            ..NodeSeries::default()
        };
        let switch = NodeSeries {
            name: "s0".to_owned(),
            is_switch: true,
            operations: vec![4],
            ..NodeSeries::default()
        };
        let nodes = vec![node, switch];
        let series = Series { from_ns: 100, interval_ns: 50, intervals: 2, links: vec![link], nodes };
        let mut text = String::new();
        write(&series, &mut text).unwrap();
        let name = "\"a,\"\"b\"\"\n->c\"";
        let expected = format!(
            "time_ns,kind,name,quantity,value\n100,link,{name},bytes,5\n150,link,{name},bytes,0\n100,link,{name},frames,1\n\
             150,link,{name},frames,0\n100,link,{name},dropped:queue-full,0\n150,link,{name},dropped:queue-full,2\n\
             100,node,n0,operations,3\n100,node,n0,latency_p50_ns,10\n100,node,n0,latency_p99_ns,20\n\
             100,switch,s0,operations,4\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn an_empty_series_has_a_header() {
        let mut text = String::new();
        write(&Series::default(), &mut text).unwrap();
        assert_eq!(text, "time_ns,kind,name,quantity,value\n");
    }
}
