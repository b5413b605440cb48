//! Tests of mistakes in links: cables, faults and retry.

use rackloom_plan::Plan;

use crate::expect;

#[test]
fn corruption_needs_a_check_that_finds_it() {
    expect("checks: never\nlink: {corrupt: 1%}", &["flips bits"]);
    let quiet = "name: r\nshape: {ring: {nodes: 4}}\nchecks: never\nwire: packet\n";
    assert!(Plan::parse(quiet, "rack.yaml").is_ok());
}

#[test]
fn probabilities_are_probabilities() {
    for bad in ["-0.1", "1.01", "101%", "nan", "inf"] {
        expect(&format!("link: {{loss: {bad}}}"), &["no probability"]);
    }
}

#[test]
fn dropped_frames_name_a_direction_of_their_link() {
    expect("link: {drop_frames: {n0->n1: [1]}}", &["has no directions"]);
    expect("links: {n0--n1: {drop_frames: {n0->n2: [1]}}}", &["`n0->n2` is not a direction"]);
    expect("link: {drop_frames: [0]}", &["counts frames from 1"]);
    expect("link: {drop_frames: 5}", &["is a list"]);
}

#[test]
fn a_cable_has_a_length_or_a_delay() {
    expect("link: {delay: 1us, length: 3m}", &["`link.length` and `link.delay` both state"]);
    expect("link: {length: 0m}", &["`link.length` is 0mm, outside 1mm to 10km"]);
    expect("link: {length: 20km}", &["`link.length` is 20km, outside 1mm to 10km"]);
    expect("link: {length: 3}", &["has no unit"]);
    expect("link: {medium: fibre}", &["`link.medium` means nothing"]);
    expect(
        "links: {n0--n1: {length: 3m}, n1--n2: {medium: fibre}}",
        &["`links.n1--n2.medium` means nothing"],
    );
    expect("link: {headers: sue}", &["not a choice"]);
    let mixed = "name: r\nshape: {ring: {nodes: 4}}\nlink: {length: 3m, medium: fibre}\nlinks: {n0--n1: {delay: 1us}}\n";
    let plan = Plan::parse(mixed, "rack").unwrap_or_else(|error| panic!("{error}"));
    let latencies: Vec<u64> = plan.links.iter().map(|link| link.profile.latency_ps()).collect();
    assert_eq!(latencies, [1_000_000, 14_700, 14_700, 14_700]);
}

#[test]
fn cut_through_between_different_rates_is_refused() {
    expect(
        "link: {rate: 100Gbit/s}\nlinks: {n0--n1: {rate: 50Gbit/s}}\nforwarding: {mode: cut-through}",
        &["n0 cannot pass frames on while they come in", "n1 cannot pass frames on"],
    );
    let fine = "name: r\nshape: {ring: {nodes: 4}}\nlink: {rate: 100Gbit/s}\nforwarding: {mode: cut-through, latency: 1us}\n";
    assert!(Plan::parse(fine, "rack").is_ok());
}

#[test]
fn retry_that_cannot_work_is_refused_at_its_position() {
    let llr = |settings: &str| format!("link: {{delay: 2us, llr: {{{settings}}}}}\n");
    expect("link: {llr: maybe}", &["`link.llr`"]);
    expect(&llr("window: 5"), &["unknown key `window` in link.llr"]);
    expect(
        &llr("sequence_bits: 8, outstanding_frames: 129"),
        &["`link.llr.outstanding_frames` is 129, beyond half of the sequence numbers of 8 bits"],
    );
    Plan::parse(
        &format!(
            "name: r\nshape: {{ring: {{nodes: 4}}}}\n{}",
            llr("sequence_bits: 8, outstanding_frames: 128")
        ),
        "rack.yaml",
    )
    .expect("exactly half may be outstanding");
    expect(&llr("outstanding_bytes: 4239B"), &["less than one frame of 4240B"]);
    expect(&llr("outstanding_bytes: 8KiB, ack_spacing: 8193B"), &["more than the replay buffer"]);
    expect(&llr("replay_timer: 3us"), &["every frame would be sent twice"]);
    expect(&llr("ack_delay: 10us, replay_timer: 10us"), &["not below the replay timer of 10us"]);
    expect(&llr("replay_count_max: 256"), &["outside 0 to 255"]);
    expect(
        "links: {n0--n1: {llr: {outstanding_bytes: 1KiB}}}",
        &["`links.n0--n1.llr.outstanding_bytes` is 1KiB, a replay buffer for less than one frame"],
    );
}

#[test]
fn a_burst_states_its_beginning_and_its_end() {
    expect("link: {burst: {enter: 1%}}", &["`link.burst` has no `leave`"]);
    expect("link: {burst: {enter: 1%, leave: 200%}}", &["2 is no probability"]);
    expect("link: {loss_by_kind: {nack: 1%}}", &["unknown key `nack` in link.loss_by_kind"]);
}
