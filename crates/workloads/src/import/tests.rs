//! Formats that follow from the content, and arbitrary content.

use proptest::prelude::*;

use crate::import::{Content, File, Format, Options, read};
use crate::machine::Rates;

fn imported(files: &[(&str, &[u8])], format: Option<Format>) -> Result<Content, String> {
    let files: Vec<_> = files.iter().map(|(name, bytes)| File { name, bytes }).collect();
    let imported = read(&files, format, &Options::default()).map_err(|errors| errors.to_string())?;
    Ok(imported.content)
}

#[test]
fn the_format_follows_from_the_content() {
    let goal: &[u8] = b"num_ranks 1\nrank 0 {\ncalc 5\n}\n";
    let own: &[u8] = b"workload goal\nranks 1\nphase main\nrank 0\ncompute 5ns\n";
    assert_eq!(imported(&[("goal.txt", goal)], None), imported(&[("own.txt", own)], None));
    let trace: &[u8] = &[7, 0x0A, 5, b'0', b'.', b'0', b'.', b'4'];
    assert!(imported(&[("g.json", b"{}"), ("t.et", trace)], None).is_ok());
    let error = imported(&[("a", b"hello")], None).unwrap_err();
    assert!(
        error.starts_with(
            "a: the format of the file is not known by its content; hint: name the format: rackloom"
        ),
        "{error}"
    );
    let error = imported(&[("a", goal), ("b", goal)], None).unwrap_err();
    assert!(error.starts_with("b: a workload of the format goal is one file"), "{error}");
    assert!(imported(&[], None).unwrap_err().contains("no file is named"));
}

#[test]
fn a_machine_without_a_rate_is_refused() {
    let mut options = Options::default();
    options.machine.rates = Some(Rates { flops_per_s: 0.0, ..Rates::default() });
    let files = [File { name: "a", bytes: b"ranks 1\n" }];
    let error = read(&files, None, &options).unwrap_err().to_string();
    assert!(error.starts_with("machine: flops_per_s is not above 0"), "{error}");
}

proptest! {
    #[test]
    fn no_content_makes_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in Format::ALL {
            let _ = imported(&[("a.0.et", &bytes)], Some(format));
        }
    }

    #[test]
    fn no_words_make_a_reader_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "num_ranks", "rank", "0", "1", "2", "{", "}", "\n", ":", "l1", "l2", "send", "recv", "calc", "8b", "to", "from", "tag",
            "requires", "irequires", "Nodes", "Connections", "Triggers", "0->1", "1->0", "start", "size", "id", "trigger",
            "send_done_trigger", "recv_done_trigger", "oneshot", "multishot", "barrier", "count", "Tiers", "Podsize", "Tier",
            "Radix_Down", "Radix_Up", "Bundle", "Downlink_speed_Gbps", "NCCL INFO", "a:1:1 [0] NCCL INFO comm", "nranks",
            "Init COMPLETE", "AllReduce: opCount", "datatype", "root", "comm", "stream", "<system>", "<gpu dev=\"0\"/>", "/*", "//",
        ]), 0..80),
    ) {
        let text = words.join(" ");
        for format in Format::ALL {
            let _ = imported(&[("a.0.et", text.as_bytes())], Some(format));
        }
    }
}
