//! Tests of mistakes in credits, pauses and channels: too few, without effect, or in a cycle.

use rackloom_plan::Plan;

use crate::{expect, wrong};

#[test]
fn credits_hold_two_frames_and_leave_space_for_control() {
    expect("credits: {limit: 67}", &["hold fewer than two frames"]);
    expect("credits: {limit: 6145}", &["less than a quarter of a ring of 1MiB"]);
    expect("ring_bytes: 8KiB", &["hold fewer than two frames"]);
    expect("ring_bytes: 1000KiB", &["no power of two"]);
    expect("credits: {unit_bytes: 0B}", &["`credits.unit_bytes` is 0B"]);
    for fine in ["credits: {limit: 68}", "credits: {limit: 6144}", "credits: {limit: 6145}\nwire: packet"] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{fine}");
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn pauses_with_too_little_headroom_are_refused_at_their_position() {
    let pfc = |settings: &str| {
        format!("link: {{rate: 100Gbit/s, delay: 500ns, pfc: {{{settings}}}}}\nchannels: {{rise: hop}}\n")
    };
    expect("link: {pfc: maybe}", &["`link.pfc`"]);
    expect(&pfc("xof: 5KiB"), &["unknown key `xof` in link.pfc"]);
    expect(&pfc("xoff: 8KiB, xon: 8KiB"), &["`link.pfc.xon` is 8KiB, not below `xoff` of 8KiB"]);
    // A frame of 4240 takes 341 ns; 341 + 7 + 1000 ns: 4 more begin, and one caused the pause.
    expect(
        &pfc("headroom: 21199B"),
        &["`link.pfc.headroom` is 21199B, and 21200B can be in flight when a pause is sent"],
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
    // A bubble is kept by counting credits. One link without them is enough for a cycle.
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
    expect("credits: {limit: 129, counter_bits: 8}", &["more than half of the range of 8-bit counters"]);
    expect("credits: {resync: maybe}", &["`credits.resync`"]);
    for fine in ["limit: 100, update_spacing: 12800B", "limit: 128, counter_bits: 8", "resync: false"] {
        let text = format!("name: r\nshape: {{ring: {{nodes: 4}}}}\ncredits: {{unit_bytes: 128B, {fine}}}\n");
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_rack_that_can_deadlock_is_refused_with_its_cycle_and_position() {
    let error = wrong("name: r\nshape: {ring: {nodes: 5}}\nforwarding: {bubble: false}\n");
    let mistake = &error.mistakes[0];
    assert_eq!((error.mistakes.len(), mistake.line, mistake.column), (1, 3, 22), "{error}");
    for part in ["can deadlock", "n0->n1, n1->n2, n2->n3, n3->n4, n4->n0, and again n0->n1"] {
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
    expect("forwarding: {bubble: false}\nchannels: {rise: hop, levels: 1}", &["can deadlock"]);
}

#[test]
fn channels_must_match_their_lanes_and_credits() {
    expect("channels: {lanes: {bulk: 4}}", &["`channels.lanes.bulk` is 4, outside 0 to 3"]);
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
        &["50 credits of 128B for each of 4 channels hold fewer"],
    );
    expect("channels: {limits: [0, 1000, 1000, 50]}", &["which is none of its numbers"]);
    expect(
        "channels: by-class\ncredits: {limit: 271}",
        &["for each of 4 channels hold fewer than two frames"],
    );
    expect(
        "forwarding: {bubble: false, deadlock: allow}\ncredits: {limit: 33}",
        &["hold fewer than one frame"],
    );
    expect("channels: by-classes", &["is not a choice"]);
    let star = "name: s\nshape: {star: {nodes: 4}}\nchannels: {rise: dateline}";
    assert!(wrong(star).mistakes[0].message.contains("only a ring or torus has its own"));
}

#[test]
fn credits_and_channels_of_one_link_must_fit_the_link() {
    let link = |lines: &str| format!("channels: by-class\nlinks: {{n0--n1: {{{lines}}}}}");
    expect(
        &link("credits: {limit: 271}"),
        &["`links.n0--n1.credits.limit` of 271 holds fewer than two frames of 4240B of each of 4 channels"],
    );
    expect(&link("channels: {limits: [2000, 1000, 1000]}"), &["has 3 numbers for 4 channels"]);
    expect(
        &link("channels: {limits: [4000, 1000, 1000, 1000]}"),
        &["are 7000 credits together, and it has 4096"],
    );
    expect(
        &link("channels: {limits: [4000, 32, 32, 32]}"),
        &["gives a channel 32, which holds fewer than two frames"],
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
        &["40 credits of 128B hold fewer than two frames"],
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

/// Pauses replace credits, wherever either is stated.
#[test]
fn credits_without_effect_are_refused_at_any_position() {
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

/// The message points at the key of the link that closes the cycle.
#[test]
fn an_undivided_link_that_closes_a_cycle_is_refused_at_its_position() {
    let text = "name: r\nshape: {ring: {nodes: 8}}\nchannels: {rise: dateline}\nforwarding: {bubble: false}\n\
                links: {n1--n2: {channels: off}}\n";
    let error = Plan::parse(text, "rack.yaml").expect_err("it can stand still").to_string();
    assert!(
        error.contains("rack.yaml:5:") && error.contains("n1->n2") && error.contains("at `on`"),
        "{error}"
    );
}
