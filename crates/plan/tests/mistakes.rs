//! What a user sees when a file is wrong: every mistake at once, with its place, a caret and a hint.

use rackloom_plan::{JobKind, Plan, PlanError};

fn wrong(text: &str) -> PlanError {
    match Plan::parse(text, "rack.yaml") {
        Err(error) => error,
        Ok(_) => panic!("accepted:\n{text}"),
    }
}

/// A ring of four with more lines; the mistakes must be exactly these, in the order of the file.
fn expect(lines: &str, messages: &[&str]) {
    let error = wrong(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{lines}"));
    let found: Vec<&str> = error.mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    assert_eq!(found.len(), messages.len(), "{found:#?}");
    for (found, part) in found.iter().zip(messages) {
        assert!(found.contains(part), "{found:?} does not say {part:?}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_shown_at_once() {
    let error = wrong(
        "\
# A rack with everything wrong.
name: bad rack
shape: {ring: {nodes: 4}}
sede: 7
link:
  rate: 100Gb/s
  dealy: 500ns
  loss: 1.5
  corrupt: 1%
links:
  n0--n1: {delay: 500}
  n0--n2: {loss: 0.1}
  n1--n0: {}
nodes:
  n9: {memory: 1MiB}
  n1: {memory: 65GiB}
checks: never
timers: {heartbeat_interval: 0ns}
transport: {mode: selectiv, window_packets: 100000}
frame_bytes_max: 100B
ether_type: 0x0800
job: {litmus: {bytes_max: [1, 2]}}
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn an_explicit_rack_is_held_to_its_own_names() {
    let error = wrong(
        "\
name: custom
shape:
  custom:
    nodes: [left, right, left, alone]
    switches: [hub, -x]
    links:
      - {a: left, b: hub}
      - {a: right, b: rihgt}
      - {a: left, b: left}
      - {a: hub, b: left}
      - {a: left}
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn a_member_without_a_path_is_named() {
    let error = wrong(
        "\
name: custom
shape:
  custom:
    nodes: [a, b, c, d]
    links: [{a: a, b: b}, {a: c, b: d}]
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn broken_yaml_is_shown_with_its_place() {
    insta::assert_snapshot!(wrong("name: r\nshape: {ring: {nodes: 4}\nseed: 1\n"));
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let error = Plan::read(std::path::Path::new("/nonexistent/rack.yaml")).unwrap_err();
    assert_eq!((error.mistakes.len(), error.mistakes[0].line), (1, 0));
    assert!(error.to_string().starts_with("error: cannot read the rack file"), "{error}");
    assert!(error.to_string().contains("--> /nonexistent/rack.yaml"), "{error}");
}

#[test]
fn an_empty_file_lacks_name_and_shape() {
    let error = wrong("");
    let messages: Vec<&str> = error.mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    assert_eq!(messages, ["the rack has no `shape`", "the rack has no `name`"]);
}

#[test]
fn absurd_sizes_cost_a_message_and_no_memory() {
    for shape in [
        "ring: {nodes: 4000000000}",
        "ring: {nodes: 1}",
        "ring: {nodes: 257}",
        "star: {nodes: 4096}",
        "star: {nodes: 4, planes: 13}",
        "star: {nodes: 4, planes: 0}",
        "full-mesh: {nodes: 363}",
        "full-mesh: {nodes: 18446744073709551616}",
    ] {
        let error = wrong(&format!("name: r\nshape: {{{shape}}}"));
        assert_eq!(error.mistakes.len(), 1, "{shape}: {error}");
        assert_eq!(error.mistakes[0].line, 2);
    }
    for shape in ["ring: {nodes: 256}", "star: {nodes: 1024, planes: 4}", "full-mesh: {nodes: 362}"] {
        let text = format!("name: r\nshape: {{{shape}}}\nring_bytes: 64KiB");
        assert!(Plan::parse(&text, "rack.yaml").is_ok(), "{shape}");
    }
}

#[test]
fn a_shape_is_one_of_its_kind() {
    for (shape, part) in [
        ("shape:", "says nothing"),
        ("shape: ring", "is a table"),
        ("shape: {}", "is empty"),
        ("shape: {rng: {nodes: 4}}", "unknown key `rng`"),
        ("shape: {ring: {nodes: 4}, star: {nodes: 4}}", "one shape"),
        ("shape: {ring: {}}", "how many nodes"),
        ("shape: {ring: 4}", "is a table"),
        ("shape: {ring: {nodes: 4, planes: 2}}", "unknown key `planes`"),
    ] {
        let error = wrong(&format!("name: r\n{shape}"));
        assert!(error.mistakes[0].message.contains(part), "{error}");
    }
}

#[test]
fn frames_have_room_for_headers_and_stay_within_a_jumbo() {
    expect("frame_bytes_max: 353B", &["`frame_bytes_max` is 353B, below 354B"]);
    expect("frame_bytes_max: 9015B", &["`frame_bytes_max` is 9015B"]);
    expect("frame_bytes_max: 70000B", &["70000 bytes is too large"]);
    for fine in ["frame_bytes_max: 354B", "frame_bytes_max: 9014B"] {
        assert!(Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{fine}"), "rack.yaml").is_ok());
    }
}

#[test]
fn a_window_fits_its_acknowledgement() {
    expect("transport: {window_packets: 4097}", &["half the sequence space"]);
    expect("transport: {window_packets: 0}", &["outside 1 to 4096"]);
    expect("transport: {window_packets: 4}", &["more than the window of 4 packets"]);
    expect(
        "transport: {window_packets: 4096}\nframe_bytes_max: 600B",
        &["needs 512 bytes in an acknowledgement"],
    );
}

#[test]
fn packets_of_one_sequence_take_several_ways_only_where_reordering_is_repaired() {
    for policy in ["round-robin", "spray", "least-queue"] {
        let lines = format!("transport: {{mode: go-back-n}}\npaths: {{policy: {policy}}}");
        let error = wrong(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{lines}\n"));
        let [mistake] = error.mistakes.as_slice() else { panic!("{error}") };
        assert_eq!((mistake.line, mistake.column), (4, 17), "{error}");
        assert!(mistake.message.contains("go-back-n throws away"), "{error}");
    }
    for policy in ["address", "flow"] {
        let lines = format!("transport: {{mode: go-back-n}}\npaths: {{policy: {policy}}}");
        Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{lines}\n"), "rack").unwrap();
    }
    expect("transport: {reorder_packets: 127}", &["outside 128 to 4096"]);
    expect("transport: {reorder_packets: 4097}", &["outside 128 to 4096"]);
    expect("paths: {policy: sprayed}", &["sprayed"]);
    expect("paths: {order: packet}", &["packet"]);
}

#[test]
fn credits_hold_two_frames_and_leave_room_for_control() {
    expect("credits: {limit: 67}", &["room for fewer than two frames"]);
    expect("credits: {limit: 6145}", &["less than a quarter of a ring of 1MiB"]);
    expect("ring_bytes: 8KiB", &["room for fewer than two frames"]);
    expect("ring_bytes: 1000KiB", &["no power of two"]);
    expect("credits: {unit_bytes: 0B}", &["`credits.unit_bytes` is 0B"]);
    for fine in ["credits: {limit: 68}", "credits: {limit: 6144}", "credits: {limit: 6145}\nwire: packet"] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{fine}");
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn times_that_contradict_each_other_are_refused() {
    expect("timers: {hold_down: 100ms}", &["a link would return after 400ms"]);
    expect("transport: {timeout_min: 30ms}", &["`transport.timeout_min` is 30ms, not below"]);
    expect("transport: {ack_delay: 10ms}", &["`transport.ack_delay` is 10ms, not below"]);
    expect("timers: {heartbeat_interval: 0ns}", &["`timers.heartbeat_interval` is 0ns"]);
    expect("watchdog: 0s", &["`watchdog` is 0ns"]);
}

#[test]
fn a_value_that_cannot_be_read_is_complained_about_once() {
    expect("timers: {heartbeat_interval: 100, hold_down: 10us}", &["has no unit"]);
    expect("link: {corrupt: lots}\nchecks: never", &["`lots` is not a probability"]);
    expect("credits: {limit: many}\nring_bytes: 4KiB", &["`many` is not a whole number"]);
}

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
fn memory_holds_what_the_job_moves() {
    expect("defaults: {memory: 512KiB}", &["the litmus takes 1MiB at once, more than the 512KiB"]);
    expect("nodes: {n1: {memory: 1B}}", &["`nodes.n1.memory`: 1B is outside 4KiB to 64GiB"]);
    let small = "name: r\nshape: {ring: {nodes: 4}}\ndefaults: {memory: 512KiB}\n";
    let mut plan = Plan::parse_for_another_job(small, "test").expect("the file's own job is not judged");
    assert!(plan.check().unwrap_err().to_string().contains("takes 1MiB at once, more than the 512KiB"));
    plan.change(|plan| plan.job.kind = JobKind::None);
    plan.check().expect("the job that will run is judged");
    let idle = "name: r\nshape: {ring: {nodes: 4}}\ndefaults: {memory: 512KiB}\njob: none\n";
    assert!(Plan::parse(idle, "rack.yaml").is_ok());
}

#[test]
fn groups_servers_and_tenants_are_held_to_the_rack_and_to_each_other() {
    let error = wrong(
        "\
name: grouped
shape: {star: {nodes: 4}}
defaults: {tenant: 1, memory: {bytes: 8MiB, hugepages: true, locked: maybe}}
groups:
  left: {nodes: [n0, n1, n4], tenant: 1, server: box}
  right: {nodes: [n1, n2], memory: {numa_node: 5000}}
  nobody: {tenant: 2}
  bad--name: {nodes: [n3], server: a b}
nodes:
  n2: {memory: {bytes: 1KiB}, server: attic}
  s0: {memory: 1MiB}
servers:
  cellar: [n2, n3]
  closet: [n3, n0]
  loft: n1
tenants:
  1: {memory_max: 16MiB}
  01: {}
  2: {memory_max: 1MiB}
  many: {memory_max: 1MiB}
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn a_job_is_held_to_its_own_sense() {
    let error = wrong(
        "\
name: job
shape: {star: {nodes: 4}}
job:
  collective:
    collective: allreduce
    algorithm: direct-one-shot
    op: avg
    type: f23
    bytes: 64KiB
    sizes: {from: 64KiB}
    segments: 0
    repetitions: 0
    root: s0
expect:
  verdict: fine
  retransmitted_min: 2
  retransmitted_max: 1
  elapsed_max: 0s
  nodes_lost: [n0, n9]
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn one_job_with_sizes_that_ascend_and_hold_whole_elements() {
    expect("job: {latency: {}, bandwidth: {}}", &["a rack has one job, found several"]);
    expect("job: [litmus]", &["`job` is a table"]);
    expect("job: collectiv", &["`collectiv` is not a choice"]);
    expect("job: {latency: {sizes: {from: 8B, to: 4B}}}", &["`job.latency.sizes.from` is 8B, more than"]);
    expect("job: {latency: {sizes: {from: 0B, to: 4B}}}", &["`job.latency.sizes.from` is 0B, outside 1B"]);
    expect("job: {latency: {sizes: {from: 1B, to: 4B, factor: 1}}}", &["factor` is 1, outside 2 to 1024"]);
    expect("job: {latency: {sizes: {to: 4B}}}", &["`job.latency.sizes` has no `from`"]);
    expect("job: {bandwidth: {bytes: 65GiB}}", &["outside 0B to 64GiB"]);
    expect("job: {collective: {bytes: 6B}}", &["6B are no whole number of f32 elements, which have 4B"]);
    expect("job: {collective: {sizes: {from: 4B, to: 1KiB}, type: i64}}", &["4B are no whole number of i64"]);
    for fine in [
        "{collective: {bytes: 0B}}",
        "{collective: {bytes: 1B, type: u8}}",
        "{collective: {collective: barrier}}",
        "{latency: {sizes: {from: 0x8B, to: 9B}}}",
    ] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\njob: {fine}\n");
        assert_eq!(Plan::parse(&text, "rack.yaml").is_ok(), !fine.contains("0x8B"), "{fine}");
    }
}

#[test]
fn a_key_that_means_nothing_to_the_collective_is_refused() {
    let job = |settings: &str| format!("job: {{collective: {{{settings}}}}}");
    for collective in ["all-gather", "broadcast", "all-to-all", "gather", "scatter"] {
        let message = format!("`job.collective.op` means nothing to {collective}");
        expect(&job(&format!("collective: {collective}, op: max")), &[&message]);
    }
    for collective in ["all-reduce", "reduce-scatter", "all-gather", "all-to-all"] {
        let message = format!("`job.collective.root` means nothing to {collective}");
        expect(&job(&format!("collective: {collective}, root: n1")), &[&message]);
    }
    expect(
        &job("collective: barrier, op: sum, root: n1, type: f64, bytes: 8B"),
        &["`job.collective.op`", "`job.collective.root`", "`job.collective.type`", "`job.collective.bytes`"],
    );
    expect(&job("collective: barrier, sizes: {from: 8B, to: 64B}"), &["`job.collective.sizes`"]);
    // Nobody knows what a misspelled collective would have taken.
    expect(&job("collective: bariver, op: sum"), &["`bariver` is not a choice"]);
    for fine in ["reduce, op: max, root: n3", "broadcast, root: n1, type: u8, bytes: 3B", "barrier"] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{}", job(&format!("collective: {fine}")));
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn segments_belong_to_the_algorithm_that_cuts() {
    let job = |settings: &str| format!("job: {{collective: {{{settings}, segments: 4}}}}");
    for (settings, algorithm) in
        [("collective: barrier", "auto"), ("algorithm: ring", "ring"), ("collective: broadcast", "auto")]
    {
        let message = format!("`job.collective.segments` means nothing to algorithm {algorithm}");
        expect(&job(settings), &[&message]);
    }
    // Nobody knows what a misspelled algorithm would have taken.
    expect(&job("algorithm: ring-pipelin"), &["`ring-pipelin` is not a choice"]);
    let fine = job("collective: broadcast, algorithm: ring-pipeline");
    Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{fine}"), "rack.yaml")
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_job_is_not_measured_against_memory_that_the_file_does_not_name() {
    let error = wrong("name: r\nshape: {ring: {nodes: 4}}\njob: {collective: {bytes: 16MiB}}\n");
    assert!(error.mistakes[0].message.ends_with("more than the 16MiB that a node has by default"), "{error}");
    // Which of two jobs it would be is not known, and what stands in for them is judged by nobody.
    expect(
        "defaults: {memory: 512KiB}\njob: {latency: {}, bandwidth: {}}",
        &["a rack has one job, found several"],
    );
}

#[test]
fn a_judge_hears_of_a_job_whose_numbers_are_wrong_what_depends_on_none() {
    use rackloom_plan::{Objection, Subject};
    let told = |job: &str| {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\njob: {{collective: {{{job}}}}}\n");
        let judge = |plan: &Plan| {
            let JobKind::Collective(job) = plan.job.kind else { panic!("{:?}", plan.job) };
            assert!(job.sweep.repetitions > 0, "no judge is shown a number that is out of its range");
            let subjects = [Subject::Algorithm, Subject::Memory, Subject::Tenants, Subject::Collective];
            subjects.map(|about| Objection::from_words(about, &format!("{about:?}"))).into()
        };
        let error = Plan::parse_judged(&text, "rack.yaml", judge).expect_err("the judge objects");
        error.mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>()
    };
    let said = |messages: &[String], word: &str| messages.iter().any(|message| message == word);
    let whole = told("algorithm: ring");
    assert_eq!(whole.len(), 4, "{whole:?}");
    let broken = told("algorithm: ring, repetitions: 0, bytes: 5 parsecs");
    assert_eq!(broken.len(), 4, "{broken:?}");
    assert!(said(&broken, "Algorithm") && said(&broken, "Tenants") && !said(&broken, "Memory"), "{broken:?}");
    let unknown = told("algorithm: rign, repetitions: 0");
    assert!(!said(&unknown, "Algorithm") && said(&unknown, "Tenants"), "{unknown:?}");
}

#[test]
fn a_job_larger_than_the_memory_of_a_node_is_refused_with_the_numbers() {
    expect(
        "job: {collective: {bytes: 2052KiB}}\ndefaults: {memory: 4MiB}\nnodes: {n1: {memory: 8MiB}}",
        &["the collective takes 4104KiB at once, more than the 4MiB of `defaults.memory`"],
    );
    expect(
        "job: {collective: {sizes: {from: 4B, to: 2MiB}}}\ngroups: {g: {nodes: [n1], memory: 2MiB}}",
        &["more than the 2MiB of `groups.g.memory`"],
    );
    let plan = "name: r\nshape: {ring: {nodes: 4}}\njob: {collective: {bytes: 2MiB}}\n";
    let mut plan = Plan::parse(plan, "rack.yaml").unwrap();
    plan.change(|plan| plan.members[2].memory_bytes = 1 << 20);
    let error = plan.check().unwrap_err().to_string();
    assert!(error.contains("takes 4MiB at once, more than the 1MiB"), "{error}");
}

#[test]
fn a_tenant_gets_no_more_memory_than_its_quota() {
    let rack = "defaults: {memory: 3MiB}\nnodes: {n3: {tenant: 1}}\ntenants: {0: {memory_max: 9MiB}, 1: {}}";
    assert!(Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{rack}"), "rack.yaml").is_ok());
    expect(
        &rack.replace("9MiB", "8MiB"),
        &["the nodes of tenant 0 (n0, n1, n2) have 9MiB of memory, more than its `memory_max` of 8MiB"],
    );
    expect("tenants: {7: {memory_max: 8MiB}}", &["no node is of tenant 7"]);
}

/// `count` nodes in a row, and more links.
fn row(count: usize, more: &str) -> String {
    let nodes: Vec<String> = (0..count).map(|node| format!("n{node}")).collect();
    let links: Vec<String> =
        nodes.windows(2).map(|pair| format!("{{a: {}, b: {}}}", pair[0], pair[1])).collect();
    let (nodes, links) = (nodes.join(", "), links.join(", "));
    format!("name: row\nshape: {{custom: {{nodes: [{nodes}], links: [{links}{more}]}}}}\nring_bytes: 64KiB\n")
}

#[test]
fn frames_live_long_enough_for_every_way() {
    assert!(Plan::parse(&row(256, ""), "rack.yaml").is_ok());
    let error = wrong(&row(257, ""));
    assert!(error.mistakes[0].message.contains("`n0` and `n256` are 256 links apart"), "{error}");
    // Closed to a ring, nobody is more than 128 links away, until a link is cut.
    assert!(Plan::parse(&row(256, ", {a: n255, b: n0}"), "rack.yaml").is_ok());
    let error = wrong(&row(257, ", {a: n256, b: n0}"));
    assert_eq!(error.mistakes.len(), 1, "{error}");
    assert!(error.mistakes[0].message.contains("without `n0--n1` its ends are 256 links apart"), "{error}");
    // A chord halves the long way round, and a second link leaves no way round to take. Whether such rings stand still is
    // another matter.
    let row = |count, more| row(count, more) + "forwarding: {deadlock: allow}\n";
    assert!(Plan::parse(&row(257, ", {a: n256, b: n0}, {a: n0, b: n128}"), "rack.yaml").is_ok());
    let doubled = row(257, ", {a: n256, b: n0}")
        .replace("}, ", ", parallel: 2}, ")
        .replace("n0}]", "n0, parallel: 2}]");
    Plan::parse(&doubled, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_member_without_a_link_is_told_so_and_nobody_else() {
    let text = "name: r\nshape: {custom: {nodes: [a, b, c], switches: [s], links: [{a: b, b: c}]}}\n";
    let error = wrong(text);
    let messages: Vec<&str> = error.mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    assert_eq!(messages, ["`a` has no link", "`s` has no link"]);
}

#[test]
fn a_pair_is_linked_once_per_plane_or_in_parallel() {
    let links = |links: &str| format!("name: r\nshape: {{custom: {{nodes: [a, b], links: [{links}]}}}}\n");
    for fine in ["{a: a, b: b, parallel: 16}", "{a: a, b: b}, {a: b, b: a, plane: 1, parallel: 2}"] {
        Plan::parse(&links(fine), "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
    for (bad, part) in [
        ("{a: a, b: b}, {a: b, b: a}", "`b` and `a` are linked twice in plane 0"),
        ("{a: a, b: b, plane: 2}, {a: a, b: b, plane: 2, parallel: 2}", "twice in plane 2"),
        ("{a: a, b: b, parallel: 0}", "0 is outside 1 to 16"),
        ("{a: a, b: b, plane: 12}", "12 is outside 0 to 11"),
    ] {
        let error = wrong(&links(bad));
        assert!(error.mistakes[0].message.contains(part), "{error}");
    }
    let named =
        links("{a: a, b: b, parallel: 2}") + "links: {b--a#1: {drop_frames: {a->b: [3]}}, a--b#2: {}}\n";
    let error = wrong(&named);
    assert_eq!(error.mistakes.len(), 1, "{error}");
    assert_eq!(error.mistakes[0].message, "there is no link `a--b#2`");
}

#[test]
fn a_switch_has_a_server_and_nothing_else() {
    let error = wrong("name: r\nshape: {star: {nodes: 2}}\nnodes: {s0: {memory: 1MiB}}\n");
    assert!(error.mistakes[0].message.contains("unknown key `memory`"), "{error}");
}

#[test]
fn a_switch_reports_all_its_links_in_one_frame() {
    let error = wrong("name: r\nshape: {star: {nodes: 2000}}\nring_bytes: 64KiB\n");
    assert_eq!(error.mistakes.len(), 1);
    assert!(error.mistakes[0].message.contains("has 2000 links"), "{error}");
}

#[test]
fn text_of_the_file_does_no_harm_to_a_terminal() {
    let shown = wrong("name: \"\\e[31mred\"\nshape: {ring: {nodes: 4}}\n\"\\e[2J\": 1\n").to_string();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_cable_has_a_length_or_a_delay() {
    expect("link: {delay: 1us, length: 3m}", &["`link.length` and `link.delay` both say"]);
    expect("link: {length: 0m}", &["0mm is outside 1mm to 10km"]);
    expect("link: {length: 20km}", &["20km is outside 1mm to 10km"]);
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
fn retry_that_cannot_work_is_refused_where_it_is_written() {
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
fn relays_that_have_nothing_to_choose_are_refused() {
    expect("paths: {relays: policy}", &["`policy: flow` gives each sequence one way"]);
    let fine = "name: r\nshape: {ring: {nodes: 4}}\npaths: {relays: policy, policy: spray}\n";
    assert!(Plan::parse(fine, "rack").is_ok());
}

#[test]
fn pauses_that_cannot_hold_what_is_under_way_are_refused_where_they_are_written() {
    let pfc = |settings: &str| {
        format!("link: {{rate: 100Gbit/s, delay: 500ns, pfc: {{{settings}}}}}\nchannels: {{rise: hop}}\n")
    };
    expect("link: {pfc: maybe}", &["`link.pfc`"]);
    expect(&pfc("xof: 5KiB"), &["unknown key `xof` in link.pfc"]);
    expect(&pfc("xoff: 8KiB, xon: 8KiB"), &["`link.pfc.xon` is 8KiB, not below `xoff` of 8KiB"]);
    // A frame of 4240 takes 341 ns; 341 + 7 + 1000 ns: 4 more begin, and one made the receiver speak.
    expect(
        &pfc("headroom: 21199B"),
        &["`link.pfc.headroom` is 21199B, and 21200B can be under way when a pause is asked for"],
    );
    for fine in ["headroom: 21200B", "headroom: 1KiB, short_headroom: allow"] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{}", pfc(fine));
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
    expect(&pfc("quanta: 0"), &["`link.pfc.quanta` is 0, outside 1 to 65535"]);
    expect(&pfc("xoff: 2MiB"), &["leave less than a quarter of a ring of 1MiB for control frames"]);
    let both = format!("{}credits: {{limit: 900}}", pfc("xoff: 32KiB"));
    expect(&both, &["`credits.limit` means nothing: every link has `pfc` in place of credits"]);
    let some = format!("{both}\nlinks: {{n0--n1: {{pfc: off}}}}");
    Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{some}"), "rack.yaml")
        .unwrap_or_else(|error| panic!("{error}"));
    expect(
        "links: {n0--n1: {pfc: {xoff: 4KiB, xon: 5KiB}}}",
        &["`links.n0--n1.pfc.xon` is 5KiB, not below `xoff` of 4KiB"],
    );
    // A bubble is kept by counting credits; one link without them is enough for a circle.
    let circle = wrong("name: r\nshape: {ring: {nodes: 4}}\nlinks: {n0--n1: {pfc: on}}");
    let message = circle.to_string();
    assert!(
        message.contains("n0->n1, n1->n2") && message.contains("paused links keep no bubble"),
        "{message}"
    );
}

#[test]
fn credits_that_never_come_back_or_wrap_are_refused() {
    expect(
        "credits: {unit_bytes: 128B, limit: 100, update_spacing: 12801B}",
        &["`credits.update_spacing` is 12801B, and all credits of a link are 12800B"],
    );
    expect("credits: {limit: 129, counter_bits: 8}", &["more than half of the circle of 8-bit counters"]);
    expect("credits: {resync: maybe}", &["`credits.resync`"]);
    for fine in ["limit: 100, update_spacing: 12800B", "limit: 128, counter_bits: 8", "resync: false"] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\ncredits: {{unit_bytes: 128B, {fine}}}\n");
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_burst_says_when_it_begins_and_when_it_ends() {
    expect("link: {burst: {enter: 1%}}", &["`link.burst` has no `leave`"]);
    expect("link: {burst: {enter: 1%, leave: 200%}}", &["2 is no probability"]);
    expect("link: {loss_by_kind: {nack: 1%}}", &["unknown key `nack` in link.loss_by_kind"]);
}

#[test]
fn a_rack_that_can_stand_still_is_refused_with_the_circle_and_where_it_comes_from() {
    let error = wrong("name: r\nshape: {ring: {nodes: 5}}\nforwarding: {bubble: false}\n");
    let mistake = &error.mistakes[0];
    assert_eq!((error.mistakes.len(), mistake.line, mistake.column), (1, 3, 22), "{error}");
    for part in ["can stand still for ever", "n0->n1, n1->n2, n2->n3, n3->n4, n4->n0, and again n0->n1"] {
        assert!(mistake.message.contains(part), "{error}");
    }
    assert!(mistake.hint.contains("rise: dateline") && mistake.hint.contains("deadlock: allow"), "{error}");
    for fine in [
        "forwarding: {bubble: false, deadlock: allow}",
        "forwarding: {bubble: false}\nchannels: {rise: dateline}",
        "forwarding: {bubble: false}\nchannels: {rise: hop}",
    ] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 5}}}}\n{fine}");
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
    // A second ring of the same nodes: a bubble in each does not keep both moving.
    let doubled = "name: r\nshape: {custom: {nodes: [a, b, c, d], links: [{a: a, b: b, parallel: 2}, {a: b, b: c, parallel: 2}, \
                   {a: c, b: d, parallel: 2}, {a: d, b: a, parallel: 2}]}}\n";
    assert!(wrong(doubled).mistakes[0].hint.contains("rise: hop"));
    expect("forwarding: {bubble: false}\nchannels: {rise: hop, levels: 1}", &["can stand still for ever"]);
}

#[test]
fn channels_are_held_to_their_lanes_and_credits() {
    expect("channels: {lanes: {bulk: 4}}", &["4 is outside 0 to 3"]);
    expect(
        "channels: {lanes: {request: 1, reply: 1, bulk: 1, bulk_reply: 1}}",
        &["no class travels on lane 0"],
    );
    expect("channels: {rise: hop, levels: 32}", &["32 levels are 128 channels, of which a link has 32"]);
    expect("channels: {levels: 3}", &["no frame ever comes to the other 2 levels"]);
    expect("channels: {arbiter: weighted, weights: [1, 2]}", &["has 2 numbers for 4 lanes"]);
    expect("channels: {weights: [1, 2, 3, 4]}", &["mean nothing without `arbiter: weighted`"]);
    expect("channels: {datelines: [n3--n0]}", &["mean nothing without `rise: dateline`"]);
    expect("channels: {rise: dateline, datelines: [n0--n2]}", &["there is no link `n0--n2`"]);
    expect("channels: {rise: dateline, datelines: [n3--n0, n0--n3]}", &["names `n0--n3` twice"]);
    expect("channels: {limits: [2000, 1000, 1000, 1000]}", &["5000 credits together, and a link has 4096"]);
    expect(
        "channels: {limits: [2000, 1000, 1000, 50]}",
        &["50 credits of 128B for each of 4 channels are room for fewer"],
    );
    expect("channels: {limits: [0, 1000, 1000, 50]}", &["which is none of its numbers"]);
    expect(
        "channels: by-class\ncredits: {limit: 271}",
        &["for each of 4 channels are room for fewer than two frames"],
    );
    expect(
        "forwarding: {bubble: false, deadlock: allow}\ncredits: {limit: 33}",
        &["room for fewer than one frame"],
    );
    expect("channels: by-classes", &["is not a choice"]);
    let star = "name: s\nshape: {star: {nodes: 4}}\nchannels: {rise: dateline}";
    assert!(wrong(star).mistakes[0].message.contains("only a ring has one of its own"));
}

#[test]
fn credits_and_channels_of_one_link_are_held_to_what_the_link_is() {
    let link = |lines: &str| format!("channels: by-class\nlinks: {{n0--n1: {{{lines}}}}}");
    expect(
        &link("credits: {limit: 271}"),
        &[
            "`links.n0--n1.credits.limit` of 271 is room for fewer than two frames of 4240B of each of 4 channels",
        ],
    );
    expect(&link("channels: {limits: [2000, 1000, 1000]}"), &["has 3 numbers for 4 channels"]);
    expect(
        &link("channels: {limits: [4000, 1000, 1000, 1000]}"),
        &["are 7000 credits together, and it has 4096"],
    );
    expect(
        &link("channels: {limits: [4000, 32, 32, 32]}"),
        &["gives a channel 32, room for fewer than two frames"],
    );
    expect(&link("channels: maybe"), &["`links.n0--n1.channels`: `maybe` is not a choice"]);
    expect(
        &link("credits: {update_spacing: 200KiB}"),
        &["`links.n0--n1.credits.update_spacing` is 200KiB, and a channel of n0--n1 has credits for 128KiB"],
    );
    expect(&link("credits: {resync: perhaps}"), &["`links.n0--n1.credits.resync`"]);
    expect(&link("credits: {unit_bytes: 64B}"), &["unknown key `unit_bytes`"]);
    expect(
        &link("pfc: on, credits: {update_spacing: 4KiB}"),
        &["means nothing: n0--n1 pauses in place of credits"],
    );
    expect(
        "links: {n0--n1: {channels: off}}",
        &["`links.n0--n1.channels` means nothing: the rack has one channel"],
    );
    expect(
        "channels: by-class\nlink: {channels: off}\ncredits: {limit: 40}",
        &["40 credits of 128B are room for fewer than two frames"],
    );
    for fine in [
        link("credits: 272"),
        link("channels: off, credits: {limit: 68}"),
        link("channels: {limits: [3000, 100, 100, 100]}"),
        link("credits: {limit: 6000, update_spacing: 100KiB, resync: false}"),
        "channels: by-class\nlink: {channels: off}\ncredits: {limit: 68}".to_owned(),
        "channels: by-class\nlink: {channels: off}\nlinks: {n0--n1: {channels: on}}".to_owned(),
    ] {
        let text = format!("name: r\nshape: {{full-mesh: {{nodes: 4}}}}\n{fine}\n");
        assert!(Plan::parse(&text, "rack.yaml").is_ok(), "{fine}: {:?}", Plan::parse(&text, "rack.yaml"));
    }
}

/// Pauses stand in place of credits, wherever either is said.
#[test]
fn credits_that_no_link_heeds_are_refused_wherever_they_are_said() {
    let star = |lines: &str| format!("name: r\nshape: {{star: {{nodes: 3}}}}\nchannels: by-class\n{lines}\n");
    for (lines, key) in [
        ("link: {pfc: on}\ncredits: {limit: 900}", "credits.limit"),
        ("link: {pfc: on}\ncredits: {unit_bytes: 64B}", "credits.unit_bytes"),
        ("link: {pfc: on}\ncredits: {overhead_bytes: 0B}", "credits.overhead_bytes"),
        ("link: {pfc: on, credits: 900}", "link.credits"),
        ("link: {pfc: on, credits: {limit: 900}}", "link.credits.limit"),
        ("link: {pfc: on, credits: {resync: false}}", "link.credits.resync"),
        ("link: {pfc: on, channels: {limits: [300, 200, 200, 200]}}", "link.channels.limits"),
        (
            "link: {credits: 900}\nlinks: {n0--s0: {pfc: on}, n1--s0: {pfc: on}, n2--s0: {pfc: on}}",
            "link.credits",
        ),
        ("links: {n0--s0: {pfc: on, credits: 900}}", "links.n0--s0.credits"),
        ("link: {pfc: on}\nlinks: {n0--s0: {credits: 900}}", "links.n0--s0.credits"),
    ] {
        let error = wrong(&star(lines));
        let [mistake] = error.mistakes.as_slice() else { panic!("{lines}: {error}") };
        assert!(mistake.message.starts_with(&format!("`{key}` means nothing:")), "{lines}: {error}");
        assert!(mistake.message.ends_with("in place of credits"), "{lines}: {error}");
    }
    for heeded in [
        "link: {pfc: on, credits: 900}\nlinks: {n0--s0: {pfc: off}}",
        "link: {credits: 900}\nlinks: {n0--s0: {pfc: on}}",
    ] {
        Plan::parse(&star(heeded), "rack.yaml").unwrap_or_else(|error| panic!("{heeded}: {error}"));
    }
}

/// The key of the link that closes the circle is where the message points.
#[test]
fn an_undivided_link_that_closes_a_circle_is_refused_where_it_is_written() {
    let text = "name: r\nshape: {ring: {nodes: 8}}\nchannels: {rise: dateline}\nforwarding: {bubble: false}\n\
                links: {n1--n2: {channels: off}}\n";
    let error = Plan::parse(text, "rack.yaml").expect_err("it can stand still").to_string();
    assert!(
        error.contains("rack.yaml:5:") && error.contains("n1->n2") && error.contains("at `on`"),
        "{error}"
    );
}
