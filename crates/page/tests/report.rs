//! Pages of reports that are made by hand: content, texts, bounds, and reports whose parts do not fit each other.

use std::collections::BTreeMap;

use rackloom_control::measure::OperationKind;
use rackloom_control::report::{
    Context, EventRecord, FaultReport, GpuRates, GpuUse, LatencySummary, LinkSeries, MeanAndMax,
    MemberReport, MemberSeat, MemberState, Meta, NodeSeries, OperationReport, PhaseBalance, PhaseReport,
    PhaseSpan, PortReport, Report, Series, SweepRow, Topology, TopologyLink, TopologyMember, TopologyShape,
    WorkloadReport,
};
use rackloom_page::report_page;

const RATE: u64 = 8_000_000_000;

fn seat(name: &str) -> MemberSeat {
    MemberSeat { name: name.to_owned(), has_job: true }
}

/// Returns the report of a star of these nodes below one switch per plane. Node `i` sends `1000 (i + 1)` bytes to each.
fn star(names: &[String], planes: usize) -> Report {
    let nodes = names.len();
    let switches: Vec<String> = (0..planes).map(|plane| format!("s{plane}")).collect();
    let edges: Vec<(u16, u16)> = (0..nodes)
        .flat_map(|node| (0..planes).map(move |plane| (node as u16, (nodes + plane) as u16)))
        .collect();
    let port = |edge: usize, bytes: u64| PortReport {
        edge: edge as u16,
        frames_sent: bytes / 100,
        bytes_sent: bytes,
        ..PortReport::default()
    };
    let mut members: Vec<MemberReport> = names
        .iter()
        .enumerate()
        .map(|(node, name)| MemberReport {
            ports: (0..planes).map(|plane| port(node * planes + plane, 1000 * (node as u64 + 1))).collect(),
            ..MemberReport::silent(name.as_str(), None, MemberState::Finished)
        })
        .collect();
    members.extend(switches.iter().enumerate().map(|(plane, name)| MemberReport {
        ports: (0..nodes).map(|node| port(node * planes + plane, 0)).collect(),
        ..MemberReport::silent(name.as_str(), None, MemberState::Running)
    }));
    let link = |(index, (a, b)): (usize, &(u16, u16))| TopologyLink {
        name: format!("l{index}"),
        a: *a,
        b: *b,
        a_port: (index % planes) as u16,
        b_port: (index / planes) as u16,
        rate_bits_per_s: Some(RATE),
    };
    let topology = Topology {
        shape: TopologyShape::Star,
        sizes: Vec::new(),
        members: (0..nodes + planes)
            .map(|index| TopologyMember { is_switch: index >= nodes, server: String::new() })
            .collect(),
        links: edges.iter().enumerate().map(link).collect(),
    };
    let context = Context {
        members: names.iter().chain(&switches).map(|name| seat(name)).collect(),
        links: edges,
        clock: "virtual".to_owned(),
        wire: "simulated".to_owned(),
        job: "collective".to_owned(),
        elapsed_ns: 1_000_000,
        topology: Some(topology),
        ..Context::default()
    };
    Report::assemble(context, &members)
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|node| format!("n{node}")).collect()
}

fn event(at_ns: u64, kind: &str, text: &str, fields: &[(&str, &str)]) -> EventRecord {
    EventRecord {
        at_ns,
        member: "n0".to_owned(),
        kind: kind.to_owned(),
        text: text.to_owned(),
        fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

/// Adds content to every part of a report, with this text wherever a text is free.
fn fill(report: &mut Report, text: &str) {
    report.failures = vec![format!("failure {text}")];
    report.gpu_use = vec![GpuUse {
        uuid: format!("uuid {text}"),
        name: format!("gpu {text}"),
        nodes: vec![format!("node {text}")],
        ..GpuUse::default()
    }];
    report.notes = vec![format!("note {text}")];
    report.meta = Some(Meta {
        rack: format!("rack {text}"),
        command: format!("rackloom sim {text}"),
        options: BTreeMap::from([(format!("option {text}"), format!("value {text}"))]),
        date: "2026-01-02T03:04:05Z".to_owned(),
        ..Meta::default()
    });
    report.events = vec![
        event(1000, "link-changed", "port0 init -> up", &[("from", "init"), ("to", "up"), ("port", "port0")]),
        event(
            200_000,
            "fault",
            &format!("down {text} begins"),
            &[("event", "1"), ("time", "1"), ("begins", "true")],
        ),
        event(
            300_000,
            "link-changed",
            "port0 suspect -> down",
            &[("from", "suspect"), ("to", "down"), ("port", "port0")],
        ),
        event(400_000, "fault", "down ends", &[("event", "1"), ("time", "1"), ("begins", "false")]),
        event(500_000, &format!("kind {text}"), &format!("event {text}"), &[]),
    ];
    report.events_omitted = BTreeMap::from([(format!("kind {text}"), 12)]);
    report.faults = vec![FaultReport {
        line: 3,
        what: format!("down {text}"),
        times: 1,
        detected_after_ns: Some(900),
        detection_bound_ns: Some(1000),
        ..FaultReport::default()
    }];
    report.operations = vec![OperationReport {
        kind: OperationKind::Get,
        path: None,
        count: 10,
        errors: 1,
        errors_by_name: BTreeMap::from([(format!("error {text}"), 1)]),
        latency_ns: LatencySummary { p50: 1000, p99: 2000, max: 4000 },
        goodput_bytes_per_s: 5_000_000_000,
    }];
    report.sweep = ["ring", "two-shot"]
        .iter()
        .map(|algorithm| SweepRow {
            what: format!("all-reduce {text}"),
            algorithm: (*algorithm).to_owned(),
            size_bytes: 4096,
            count: 1024,
            time_us: 12.5,
            bus_gbps: Some(1.5),
            ..SweepRow::default()
        })
        .collect();
    report.balance.push(PhaseBalance {
        name: format!("phase {text}"),
        began_ns: 100_000,
        ended_ns: 600_000,
        imbalance: 2.5,
        fullest: Some(format!("fullest {text}")),
        ..report.balance[0].clone()
    });
    report.phases.push(PhaseSpan { name: format!("phase {text}"), began_ns: 100_000, ended_ns: 600_000 });
    report.workload = Some(WorkloadReport {
        name: format!("workload {text}"),
        ranks_stated: 4,
        iteration_ns: 77,
        ..WorkloadReport::default()
    });
    let link = report.links[0].name.clone();
    report.series = Some(Series {
        from_ns: 0,
        interval_ns: 100_000,
        intervals: 3,
        links: vec![LinkSeries {
            name: link,
            bytes: vec![0, 50_000, 10],
            frames: vec![0, 50, 1],
            dropped: BTreeMap::from([(format!("reason {text}"), vec![0, 3, 0])]),
            retransmitted: vec![0, 2, 0],
            ..LinkSeries::default()
        }],
        nodes: vec![NodeSeries {
            name: "n0".to_owned(),
            operations: vec![1, 2, 0],
            latency_p50_ns: vec![100, 200, 0],
            latency_p99_ns: vec![300, 400, 0],
            ..NodeSeries::default()
        }],
    });
}

#[test]
fn with_equal_rates_the_busiest_direction_has_one_name() {
    let report = star(&names(3), 1);
    assert!(report.balance[0].busiest.is_some() && report.balance[0].fullest == report.balance[0].busiest);
    let html = report_page(&report).html();
    assert!(html.contains("busiest direction") && !html.contains("most bytes"));
}

#[test]
fn every_part_of_a_report_is_on_its_page() {
    let mut report = star(&names(3), 2);
    fill(&mut report, "WORD");
    let html = report_page(&report).html();
    for text in [
        "<title>rack WORD: collective</title>",
        "verdict: fail",
        "failure WORD",
        "gpu WORD",
        "uuid WORD",
        "node WORD",
        "note WORD",
        "rackloom sim WORD",
        "option WORD",
        "value WORD",
        "2026-01-02T03:04:05Z",
        // The picture, and a link that is down.
        "3 GPU nodes, 2 switches, 6 links of 8 Gbit/s",
        "link that is down",
        // The time line.
        "<title>200 \u{b5}s: down WORD begins, until 400 \u{b5}s</title>",
        "<title>300 \u{b5}s: n0: port0 suspect -&gt; down</title>",
        "<title>phase WORD: 100 \u{b5}s to 600 \u{b5}s, imbalance 2.500</title>",
        "2 packets retransmitted",
        "12 of kind kind WORD",
        // The direction with the greatest share is another one than that with the most bytes.
        "fullest WORD",
        "most bytes",
        "4, 0 with operations",
        // Results.
        "Bus bandwidth over the size",
        "workload WORD",
        "Latency by kind of operation",
        "error WORD 1",
        "within the bound",
        "reason WORD",
        "Use of the busiest links",
        "p99: greatest of the nodes",
    ] {
        assert!(html.contains(text), "{text} is not in the page");
    }
    assert!(!html.contains("port0 init -&gt; up</title>"), "first states are not in the time line");
}

/// Returns the text of a cell of the first row of the table with this title.
fn first_cell(html: &str, title: &str, column: &str) -> String {
    let table = &html[html.find(&format!("<caption>{title}</caption>")).expect("the table")..];
    let (head, body) = table.split_once("<tbody>").expect("a body");
    let headings: Vec<&str> = head.split("<th ").skip(1).collect();
    let at =
        headings.iter().position(|heading| heading.contains(&format!(">{column}</th>"))).expect("the column");
    let row = body.split("</tr>").next().expect("a row").replace("<th ", "<td ");
    let cell = row.split("<td").nth(at + 1).expect("a cell").split_once('>').expect("its begin").1;
    cell.split("</t").next().expect("its end").to_owned()
}

#[test]
fn cells_stand_below_their_headings() {
    let mut report = star(&names(3), 2);
    fill(&mut report, "x");
    report.sweep[0].of_link = Some(0.25);
    report.sweep[0].time_p99_us = Some(99.0);
    report.sweep[0].wrong = 7;
    let html = report_page(&report).html();
    let cell = |column| first_cell(&html, "Times and bandwidths", column);
    assert_eq!(
        (cell("algorithm"), cell("size"), cell("time (us)")),
        ("ring".into(), "4 KiB".into(), "12.500".into())
    );
    assert_eq!(
        (cell("busbw (GB/s)"), cell("of link"), cell("p99 (us)")),
        ("1.500".into(), "25.0 %".into(), "99.000".into())
    );
    assert!(cell("wrong").ends_with("</span>7</span>"), "{}", cell("wrong"));
    assert!(!html.contains(">min (us)<"), "a column without values");
    let cell = |column| first_cell(&html, "Operations", column);
    assert_eq!(
        (cell("p50"), cell("p99"), cell("max")),
        ("1 \u{b5}s".into(), "2 \u{b5}s".into(), "4 \u{b5}s".into())
    );
    let cell = |column| first_cell(&html, "Faults of the script", column);
    assert_eq!(
        (cell("line"), cell("detected after"), cell("bound")),
        ("3".into(), "900 ns".into(), "1 \u{b5}s".into())
    );
    let cell = |column| first_cell(&html, "Links, by direction", column);
    // Node n2 sends 3000 bytes in 30 frames to the first switch.
    assert_eq!(
        (cell("direction"), cell("frames"), cell("bytes on the wire")),
        ("n2-&gt;s0".into(), "30".into(), "2.93 KiB".into())
    );
}

#[test]
fn a_real_gpu_has_a_row_with_the_quantities_that_it_reports() {
    let mut report = star(&names(2), 1);
    assert!(!report_page(&report).html().contains("Real GPUs"), "no GPU was sampled");
    report.gpu_use.push(GpuUse {
        uuid: "GPU-1b2c3d4e".to_owned(),
        name: "NVIDIA H200".to_owned(),
        nodes: vec!["n0".to_owned(), "n1".to_owned()],
        samples: 20,
        busy_share: Some(MeanAndMax { mean: 0.25, max: 0.97 }),
        memory_used_max_bytes: Some(3 << 30),
        memory_bytes: Some(140 << 30),
        sm_clock_mhz: Some(MeanAndMax { mean: 1500.0, max: 1980.0 }),
        rates: GpuRates { nvlink_sent_bytes_per_s: Some(2_500_000_000), ..GpuRates::default() },
        ..GpuUse::default()
    });
    let html = report_page(&report).html();
    let expected = [
        ("GPU", "NVIDIA H200"),
        ("unique name", "GPU-1b2c3d4e"),
        ("nodes", "n0, n1"),
        ("kernels ran, mean", "25.0 %"),
        ("kernels ran, max", "97.0 %"),
        ("memory used, max", "3 GiB"),
        ("memory", "140 GiB"),
        ("NVLink sent", "2.5 GB/s"),
        ("SM clock, max (MHz)", "1980.000"),
        ("samples", "20"),
    ];
    for (column, text) in expected {
        assert_eq!(first_cell(&html, "Real GPUs", column), text, "{column}");
    }
    for absent in ["memory busy, mean", "PCIe sent", "power, max (W)"] {
        assert!(!html.contains(&format!(">{absent}<")), "{absent} has no values");
    }
}

#[test]
fn the_share_of_a_link_is_its_bytes_over_the_possible_ones() {
    let mut report = star(&names(2), 1);
    report.operations.clear();
    let html = report_page(&report).html();
    // Node n1 sends 2000 bytes in 20 frames, with 20 more bytes each: 2400 of 1 000 000 in 1 ms.
    assert!(html.contains("<title>n1-&gt;s0: 0.24 %</title>"), "{html}");
    // The busiest link stands first in the table.
    let table = &html[html.find("<caption>Links, by direction").expect("the table")..];
    assert!(table.find("n1-&gt;s0").expect("a row") < table.find("n0-&gt;s0").expect("a row"));
}

#[test]
fn hostile_texts_are_text_and_make_no_elements() {
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u{202e}\u{5d0}";
    let page = |text: &str, name: &str| {
        let mut names = names(3);
        names[1] = name.to_owned();
        let mut report = star(&names, 2);
        fill(&mut report, text);
        report_page(&report).html()
    };
    let html = page(hostile, hostile);
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (1, 1));
    assert!(!html.contains("<img") && !html.contains('\u{202e}'));
    // Texts of pictures are broken into lines; everything else has the elements of a harmless page.
    let elements = |html: &str| html.matches('<').count() - 2 * html.matches("<text ").count();
    assert_eq!(elements(&html), elements(&page("harmless", "n1")));
}

#[test]
fn a_page_of_1024_nodes_is_bounded_and_states_what_it_leaves_out() {
    let mut report = star(&names(1024), 4);
    fill(&mut report, "x");
    for at in 0..20_000 {
        report.events.push(event(at * 50, "node-lost", &format!("lost n{at}"), &[]));
    }
    let span = report.phases[0].clone();
    report
        .phases
        .extend((0..2000).map(|number| PhaseSpan { name: format!("phase {number}"), ..span.clone() }));
    let phase = report.balance[1].clone();
    report
        .balance
        .extend((0..2000).map(|number| PhaseBalance { name: format!("phase {number}"), ..phase.clone() }));
    let row = report.sweep[0].clone();
    report.sweep.extend((0..3000).map(|size| SweepRow { size_bytes: size, ..row.clone() }));
    let html = report_page(&report).html();
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    assert!(html.len() > 300_000, "{} bytes: rows are missing", html.len());
    for text in [
        "500 of 8192 rows: directions that lost frames",
        "500 of 1028 rows: members that did not finish",
        "500 of 20005 events",
        "300 of 2002 rows",
        "500 of 3002 rows",
        "The texts of",
        "The 32 busiest of 4096 directions",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // Switches did not finish, so they stand before 1024 nodes.
    assert!(html.contains("<th scope=\"row\">s3</th>"));
}

#[test]
fn a_report_whose_parts_do_not_fit_has_a_page() {
    let mut report = star(&names(3), 2);
    fill(&mut report, "x");
    let html = |report: &Report| report_page(report).html();
    let mut changed = report.clone();
    let topology = changed.topology.as_mut().expect("a topology");
    topology.members.truncate(2);
    topology.links[0].a = 999;
    topology.links.push(TopologyLink { b: 77, ..TopologyLink::default() });
    changed.balance[0].bytes = vec![1; 99];
    changed.balance[0].imbalance = f64::NAN;
    let series = changed.series.as_mut().expect("series");
    series.interval_ns = 0;
    series.links[0].frames.clear();
    series.nodes[0].latency_p99_ns.clear();
    assert!(html(&changed).contains("</html>"));
    for part in 0..5 {
        let mut changed = report.clone();
        match part {
            0 => changed.links.clear(),
            1 => changed.nodes.clear(),
            2 => changed.topology = None,
            3 => changed.balance.clear(),
            _ => changed.elapsed_ns = 0,
        }
        assert!(html(&changed).contains("</html>"), "{part}");
    }
}

#[test]
fn equal_reports_have_equal_pages() {
    let mut report = star(&names(3), 2);
    fill(&mut report, "x");
    assert_eq!(report_page(&report).html(), report_page(&report.clone()).html());
}

#[test]
fn phases_of_the_job_and_of_the_workload_have_their_names_in_the_picture() {
    let mut report = star(&names(2), 1);
    let spans = [("forward", 0, 400), ("backward", 400, 1000)];
    report.elapsed_ns = 1000;
    report.phases = spans
        .map(|(name, began_ns, ended_ns)| PhaseSpan { name: format!("job {name}"), began_ns, ended_ns })
        .to_vec();
    let phase = |(name, began_ns, ended_ns): (&str, u64, u64)| PhaseReport {
        name: name.to_owned(),
        operations: 1,
        began_ns,
        ended_ns,
        ..PhaseReport::default()
    };
    report.workload = Some(WorkloadReport {
        iteration_ns: 1000,
        phases: spans.map(phase).to_vec(),
        ..WorkloadReport::default()
    });
    let html = report_page(&report).html();
    for name in ["forward", "backward", "job forward", "job backward"] {
        assert_eq!(html.matches(&format!(">{name}</text>")).count(), 1, "{name}");
    }
}

#[test]
fn every_algorithm_of_a_report_has_a_line() {
    let mut report = star(&names(2), 1);
    let row = |size_bytes: u64, number: usize| SweepRow {
        algorithm: format!("algorithm {number}"),
        size_bytes,
        bus_gbps: Some(number as f64 + 1.0),
        ..SweepRow::default()
    };
    report.sweep = (0..40).flat_map(|number| [row(1024, number), row(4096, number)]).collect();
    let html = report_page(&report).html();
    assert_eq!(html.matches("<polyline").count(), 40);
    assert!(html.contains(">40 lines in 3 panels.<"));
}
