//! Tests of settings of the command line in place of keys of the file: `--set link.loss=1%`.

use std::time::Instant;

use rackloom_plan::{Plan, with_settings};

const FILE: &str = "name: quad\nshape: {ring: {nodes: 4}}\nlink: {loss: 0, delay: 1us}\n";

fn plan(settings: &[&str]) -> Result<Plan, String> {
    let settings: Vec<_> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    Plan::parse(&with_settings(FILE, &settings), "quad.yaml").map_err(|error| error.to_string())
}

#[test]
fn any_key_of_the_file_gets_another_value() {
    let plan = plan(&[
        "link.loss=1%",
        "shape.ring.nodes=6",
        "timers.heartbeat_interval=7ms",
        "links.n0--n1.delay=3us",
        "name=other",
        "tenants={0: {memory_max: 900MiB}}",
    ])
    .expect("a plan");
    assert_eq!((plan.name.as_str(), plan.members.len()), ("other", 6));
    assert_eq!(plan.timers.heartbeat_interval_ns, 7_000_000);
    assert!(plan.links.iter().all(|link| link.profile.loss.to_bits() == 0.01_f64.to_bits()));
    let delays: Vec<_> = plan.links.iter().map(|link| (link.name.as_str(), link.profile.delay_ns)).collect();
    assert!(delays.contains(&("n0--n1", 3_000)) && delays.contains(&("n1--n2", 1_000)), "{delays:?}");
    assert_eq!(plan.tenants.len(), 1);
}

#[test]
fn the_last_of_several_settings_of_a_key_counts() {
    let plan = plan(&["link.loss=1%", "link.loss=2%"]).expect("a plan");
    assert_eq!(plan.links[0].profile.loss.to_bits(), 0.02_f64.to_bits());
}

#[test]
fn mistakes_point_at_the_setting_and_at_no_line_of_the_file() {
    for (setting, what, hint) in [
        ("link.loss=7", "7", "hint"),
        ("link.lose=1%", "lose", "did you mean `loss`"),
        ("link.loss", "a key and a value", "KEY=VALUE"),
        ("=3", "a key and a value", "KEY=VALUE"),
        ("shape.ring.nodes=[", "", "hint"),
    ] {
        let error = plan(&[setting]).expect_err(setting);
        assert!(error.contains(what) && error.contains(hint), "{setting}: {error}");
        assert!(error.contains(&format!("| --set {setting}")), "{setting}: {error}");
        assert!(!error.contains("quad.yaml:"), "no line of the file is meant: {error}");
    }
}

#[test]
fn a_large_full_mesh_is_checked_in_less_than_a_second_of_work() {
    let parse = |nodes: u32| {
        let text = format!("name: mesh\nshape: {{full-mesh: {{nodes: {nodes}}}}}\nring_bytes: 64KiB\n");
        let begun = Instant::now();
        Plan::parse(&text, "mesh.yaml").expect("a plan");
        begun.elapsed()
    };
    parse(90);
    // 16 times as many links. Work for each pair of links would take 256 times as long; a busy host makes both slower.
    let (small, large) = (parse(90), parse(360));
    assert!(large < small * 64, "{small:?} for 4005 links, {large:?} for 64620");
}
