//! Metrics of a rack, read by a strict reader.

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use rackloom_control::request::RackStatus;
use rackloom_export::openmetrics::{FAMILIES, FamilyKind, Format, exposition};
use support::{Sample, read, status};

/// Returns the values of a metric by one of its labels.
fn by_label(samples: &[Sample], name: &str, label: &str) -> BTreeMap<String, f64> {
    let of_name = samples.iter().filter(|sample| sample.name == name);
    of_name.map(|sample| (sample.labels[label].clone(), sample.value)).collect()
}

fn values<const N: usize>(expected: [(&str, f64); N]) -> BTreeMap<String, f64> {
    expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[test]
fn the_metrics_have_the_numbers_of_the_status() {
    let samples = read(&exposition(&status("r", "s"), Format::OpenMetrics));
    let of = |name: &str, label: &str| by_label(&samples, name, label);
    assert_eq!(of("rackloom_rack_state", "state"), values([("starting", 0.0), ("up", 1.0), ("going", 0.0)]));
    assert_eq!(of("rackloom_rack_uptime_seconds", "rack"), values([("r", 12.5)]));
    assert_eq!(of("rackloom_links_up", "rack"), values([("r", 1.0)]));
    assert_eq!(of("rackloom_faults", "member"), values([("n0", 2.0), ("n1", 0.0), ("s0", 0.0)]));
    assert_eq!(of("rackloom_fault_age_seconds", "fault"), values([("down n0--s0", 3.0)]), "the oldest one");
    assert_eq!(of("rackloom_member_up", "member"), values([("n0", 1.0), ("n1", 0.0), ("s0", 1.0)]));
    let silent: Vec<_> = samples
        .iter()
        .filter(|sample| {
            sample.name == "rackloom_member_state" && sample.labels["member"] == "n1" && sample.value == 1.0
        })
        .map(|sample| sample.labels["state"].as_str())
        .collect();
    assert_eq!(silent, ["silent"]);
    assert_eq!(
        of("rackloom_member_uptime_seconds", "member"),
        values([("n0", 11.000_000_001), ("s0", 11.0)])
    );
    assert_eq!(of("rackloom_member_reached_nodes", "member"), values([("n0", 1.0)]));
    assert_eq!(of("rackloom_member_unreached_nodes", "member"), values([("n0", 1.0)]));
    assert_eq!(of("rackloom_member_paths_alive_min", "member"), values([("n0", 0.0)]));
    let limits = values([("n0", 16_777_216.0), ("n1", 16_777_216.0)]);
    assert_eq!(of("rackloom_member_memory_limit_bytes", "member"), limits, "a switch has no memory");
    assert_eq!(of("rackloom_member_memory_registered_bytes", "member"), values([("n0", 4096.0)]));
    assert_eq!(of("rackloom_member_memory_registered_peak_bytes", "member"), values([("n0", 6000.0)]));
    assert_eq!(of("rackloom_member_operations_total", "path"), values([("direct", 5.0), ("frames", 6.0)]));
    assert_eq!(
        of("rackloom_member_operation_bytes_total", "path"),
        values([("direct", 50.0), ("frames", 60.0)])
    );
    assert_eq!(
        of("rackloom_member_ip_frames_total", "direction"),
        values([("sent", 1.0), ("received", 3.0)])
    );
    assert_eq!(
        of("rackloom_member_ip_dropped_frames_total", "reason"),
        values([("queue-full", 5.0), ("unreached", 6.0), ("refused", 7.0)])
    );
    assert_eq!(of("rackloom_link_sent_frames_total", "kind"), values([("data", 90.0), ("control", 10.0)]));
    assert_eq!(of("rackloom_link_sent_bytes_total", "kind"), values([("data", 950.0), ("control", 50.0)]));
    assert_eq!(
        of("rackloom_link_dropped_frames_total", "reason"),
        values([("injected", 5.0), ("hop-check", 6.0)])
    );
    assert_eq!(of("rackloom_link_retransmitted_packets_total", "link"), values([("n0->s0", 2.0)]));
    assert_eq!(of("rackloom_link_replayed_frames_total", "link"), values([("n0->s0", 3.0)]));
    assert_eq!(of("rackloom_link_missing_frames_total", "link"), values([("n0->s0", 4.0)]));
    assert_eq!(of("rackloom_jobs", "state"), values([("queued", 0.0), ("running", 1.0), ("ending", 0.0)]));
    assert_eq!(
        of("rackloom_job_nodes", "state"),
        values([("free", 1.0), ("job", 1.0), ("held", 0.0), ("spare", 0.0)])
    );
    assert_eq!(of("rackloom_tenant_node_seconds_total", "tenant"), values([("3", 1.5)]));
    assert_eq!(of("rackloom_tenant_memory_peak_bytes", "tenant"), values([("3", 9.0)]));
    let member = samples.iter().find(|sample| sample.name == "rackloom_member_info").unwrap();
    assert_eq!((member.labels["server"].as_str(), member.labels["tenant"].as_str()), ("s", "3"));
}

#[test]
fn a_link_is_up_if_every_end_here_says_so() {
    let is_up = |status: &RackStatus| {
        by_label(&read(&exposition(status, Format::OpenMetrics)), "rackloom_link_up", "link")
    };
    let mut status = status("r", "s");
    assert_eq!(
        is_up(&status),
        values([("n0->s0", 1.0), ("s0->n1", 0.0)]),
        "n1 does not answer, and s0 sees it down"
    );
    status.members[2].links_down.clear();
    assert_eq!(is_up(&status)["s0->n1"], 0.0, "n1 does not answer");
    status.members[1].state = "elsewhere".to_owned();
    assert_eq!(is_up(&status)["s0->n1"], 1.0, "n1 is on another host");
    status.members[2].links_down = vec![0];
    assert_eq!(is_up(&status)["n0->s0"], 0.0);
}

#[test]
fn every_family_has_samples_and_no_other_is_written() {
    let samples = read(&exposition(&status("r", "s"), Format::OpenMetrics));
    let mut written: Vec<_> = samples.iter().map(|sample| sample.name.clone()).collect();
    written.dedup();
    let declared: Vec<_> = FAMILIES.iter().map(|family| family.sample_name()).collect();
    assert_eq!(written, declared);
    assert!(FAMILIES.iter().all(|family| family.name.starts_with("rackloom_") && family.help.ends_with('.')));
}

#[test]
fn an_empty_status_is_a_whole_text() {
    let samples = read(&exposition(&RackStatus::default(), Format::OpenMetrics));
    assert!(samples.iter().any(|sample| sample.name == "rackloom_rack_info"));
    assert!(samples.iter().all(|sample| !sample.name.starts_with("rackloom_link_")));
}

#[test]
fn members_of_equal_names_give_no_series_twice() {
    let mut status = status("r", "s");
    status.members.push(status.members[0].clone());
    status.links.push(status.links[0].clone());
    read(&exposition(&status, Format::OpenMetrics));
}

#[test]
fn the_text_of_prometheus_has_the_samples_of_openmetrics() {
    let status = status("r", "s");
    let samples = |format| -> Vec<String> {
        exposition(&status, format).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    assert_eq!(samples(Format::Prometheus), samples(Format::OpenMetrics));
    let text = exposition(&status, Format::Prometheus);
    for family in FAMILIES {
        let kind = if family.kind == FamilyKind::Counter { "counter" } else { "gauge" };
        let line = format!("# TYPE {} {kind}", family.sample_name());
        assert_eq!(text.lines().filter(|one| *one == line).count(), 1, "{line}");
    }
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[\\\\\"\n\r{},=# ]{0,5}", Just("n0".to_owned())]
}

proptest! {
    #[test]
    fn hostile_names_return_as_they_were(
        texts in proptest::collection::vec(any_text(), 7),
        numbers in proptest::collection::vec(any::<u64>(), 6),
    ) {
        let mut status = status(&texts[0], &texts[1]);
        (status.state, status.job) = (texts[2].clone(), texts[3].clone());
        status.members[1].name = texts[4].clone();
        status.links[0].name = texts[5].clone();
        status.faults[0].what = texts[6].clone();
        status.links[0].dropped.get_or_insert_default().insert(texts[6].clone(), numbers[0]);
        let sent = status.links[0].sent.get_or_insert_default();
        (sent.frames, sent.data_frames, sent.bytes) = (numbers[1], numbers[2], numbers[3]);
        (status.uptime_ns, status.faults[0].age_ns) = (numbers[4], numbers[5]);
        let samples = read(&exposition(&status, Format::OpenMetrics));
        let rack = samples.iter().find(|sample| sample.name == "rackloom_rack_info").unwrap();
        prop_assert_eq!((&rack.labels["rack"], &rack.labels["job"]), (&texts[0], &texts[3]));
        let dropped = by_label(&samples, "rackloom_link_dropped_frames_total", "reason");
        prop_assert_eq!(dropped[&texts[6]], numbers[0] as f64);
        prop_assert!(by_label(&samples, "rackloom_link_up", "link").contains_key(&texts[5]));
    }
}
