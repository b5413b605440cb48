//! Tests of mistakes in jobs: contradictions, keys without effect, and too little memory.

use rackloom_plan::{JobKind, Plan};

use crate::{expect, wrong};

#[test]
fn memory_holds_what_the_job_moves() {
    expect("defaults: {memory: 512KiB}", &["the litmus takes 1MiB at once, more than the 512KiB"]);
    expect("nodes: {n1: {memory: 1B}}", &["`nodes.n1.memory` is 1B, outside 4KiB to 64GiB"]);
    let small = "name: r\nshape: {ring: {nodes: 4}}\ndefaults: {memory: 512KiB}\n";
    let mut plan = Plan::parse_for_another_job(small, "test").expect("the file's own job is not judged");
    assert!(plan.check().unwrap_err().to_string().contains("takes 1MiB at once, more than the 512KiB"));
    plan.change(|plan| plan.job.kind = JobKind::None);
    plan.check().expect("the job that will run is judged");
    let idle = "name: r\nshape: {ring: {nodes: 4}}\ndefaults: {memory: 512KiB}\njob: none\n";
    assert!(Plan::parse(idle, "rack.yaml").is_ok());
}

#[test]
fn a_job_must_be_consistent() {
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
fn a_key_without_effect_on_the_collective_is_refused() {
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
    // It is unknown which keys a misspelled collective would take.
    expect(&job("collective: bariver, op: sum"), &["`bariver` is not a choice"]);
    for fine in ["reduce, op: max, root: n3", "broadcast, root: n1, type: u8, bytes: 3B", "barrier"] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{}", job(&format!("collective: {fine}")));
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_list_of_algorithms_names_each_once_and_no_auto() {
    let job = |list: &str| format!("job: {{collective: {{algorithm: {list}}}}}");
    expect(&job("[ring, rign]"), &["`job.collective.algorithm`: `rign` is not a choice"]);
    expect(&job("[ring, two-shot, ring]"), &["`job.collective.algorithm`: algorithm ring is listed twice"]);
    expect(&job("[ring, auto]"), &["algorithm auto stands beside others"]);
    expect(&job("[]"), &["the list of algorithms is empty"]);
    expect(&job("[[ring]]"), &["`job.collective.algorithm` is a single value, found a list"]);
    expect(
        &job("[ring, two-shot], segments: 2"),
        &["`job.collective.segments` means nothing to algorithm ring,two-shot"],
    );
}

#[test]
fn segments_belong_to_the_pipelined_algorithm() {
    let job = |settings: &str| format!("job: {{collective: {{{settings}, segments: 4}}}}");
    for (settings, algorithm) in
        [("collective: barrier", "auto"), ("algorithm: ring", "ring"), ("collective: broadcast", "auto")]
    {
        let message = format!("`job.collective.segments` means nothing to algorithm {algorithm}");
        expect(&job(settings), &[&message]);
    }
    // It is unknown which keys a misspelled algorithm would take.
    expect(&job("algorithm: ring-pipelin"), &["`ring-pipelin` is not a choice"]);
    let fine = job("collective: broadcast, algorithm: ring-pipeline");
    Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{fine}"), "rack.yaml")
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_job_is_not_measured_against_memory_that_the_file_does_not_name() {
    let error = wrong("name: r\nshape: {ring: {nodes: 4}}\njob: {collective: {bytes: 16MiB}}\n");
    assert!(error.mistakes[0].message.ends_with("more than the 16MiB that a node has by default"), "{error}");
    // It is unknown which of two jobs is meant, so their defaults are not checked.
    expect(
        "defaults: {memory: 512KiB}\njob: {latency: {}, bandwidth: {}}",
        &["a rack has one job, found several"],
    );
}

#[test]
fn a_judge_of_a_job_with_wrong_numbers_objects_only_independently_of_them() {
    use rackloom_plan::{Objection, Subject};
    let found = |job: &str| {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\njob: {{collective: {{{job}}}}}\n");
        let judge = |plan: &Plan| {
            let JobKind::Collective(job) = plan.job.kind else { panic!("{:?}", plan.job) };
            assert!(job.sweep.repetitions > 0, "no judge is shown a number that is out of its range");
            let subjects = [Subject::Algorithm, Subject::Memory, Subject::Tenants, Subject::Collective];
            let objection =
                |about| Objection { about, message: format!("{about:?}"), hint: "none".to_owned() };
            subjects.map(objection).into()
        };
        let error = Plan::parse_judged(&text, "rack.yaml", judge).expect_err("the judge objects");
        error.mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>()
    };
    let has = |messages: &[String], text: &str| messages.iter().any(|message| message == text);
    let whole = found("algorithm: ring");
    assert_eq!(whole.len(), 4, "{whole:?}");
    let broken = found("algorithm: ring, repetitions: 0, bytes: 5 parsecs");
    assert_eq!(broken.len(), 4, "{broken:?}");
    assert!(has(&broken, "Algorithm") && has(&broken, "Tenants") && !has(&broken, "Memory"), "{broken:?}");
    let unknown = found("algorithm: rign, repetitions: 0");
    assert!(!has(&unknown, "Algorithm") && has(&unknown, "Tenants"), "{unknown:?}");
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
