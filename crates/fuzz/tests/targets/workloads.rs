//! Workloads: the text format, and the formats of other tools that are imported.

use rackloom_fuzz::{MemoryLimit, Target};
use rackloom_plan::Plan;
use rackloom_workloads::import::{self, Content, File, Format, Hardware, Options};
use rackloom_workloads::{Machine, Place, Workload, WorkloadErrors, check, text};

/// Lists of ranks and groups have bounds of their own; a list of operations is shared by the ranks of its block.
const MEMORY: MemoryLimit = MemoryLimit { base_bytes: 32 << 20, per_input_byte: 16_384 };
/// Imports with a few lines describe thousands of ranks or links.
const IMPORT_MEMORY: MemoryLimit = MemoryLimit { base_bytes: 256 << 20, per_input_byte: 65_536 };
/// Most operations of a workload whose order is checked here: the check takes time for each rank of a block.
const CHECKED_MAX: usize = 1 << 16;
/// Most members of a rack that is planned here: a plan computes all routes.
const PLANNED_MAX: usize = 32;
/// Separates the files of one input.
const NEXT_FILE: &[u8] = b"\n=====\n";

const TEXT_TOKENS: &[&str] = &[
    "\nworkload w\n",
    "\nranks 8\n",
    "\nphase forward\n",
    "\nin forward\n",
    "\ngroup 0..3\n",
    "\nrank 0..7\n",
    "\nrank 1 3\n",
    "\ncompute 5us\n",
    "\ncompute 2TFLOP 4MiB\n",
    "\ncompute 7FLOP after -1\n",
    "\nsend 1 4KiB tag 7\n",
    "\nreceive 0 4KiB tag 7\n",
    "\nall-reduce group 0 1MiB\n",
    "\nbroadcast group 0 9B root 2\n",
    "\nbarrier group 0\n",
    " after ",
    "-1",
    "..",
    "PFLOP",
    "GiB",
    "ns",
    "#",
    "\r\n",
    "\t",
    "\u{a0}",
    "\u{feff}",
    "\u{1f980}",
];
const GOAL_TOKENS: &[&str] = &[
    "num_ranks 2\n",
    "\nrank 0 {\n",
    "}\n",
    "l1: send 8b to 1 tag 7\n",
    "l2: recv 8b from 0 tag 7\n",
    "l3: calc 100\n",
    "l1 requires l2\n",
    "l1 irequires l3\n",
    " cpu 1",
    " nic 0",
    "/* ",
    " */",
    "//",
];
const MATRIX_TOKENS: &[&str] = &[
    "Nodes 4\n",
    "Connections 3\n",
    "Triggers 1\n",
    "0->1 id 1 start 0 size 100\n",
    " trigger 1",
    " send_done_trigger 1",
    " recv_done_trigger 1",
    "trigger id 1 oneshot\n",
    "trigger id 1 multishot\n",
    "trigger id 1 barrier count 2\n",
    " prio 1",
    "failure ",
];
const LOG_TOKENS: &[&str] = &[
    "n0:1:2 [0] NCCL INFO ",
    "ncclCommInitRank comm 0xa rank 0 nranks 2 cudaDev 0 busId 1 commId 0x1 - Init COMPLETE\n",
    "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 8 datatype 7 op 0 root 0 comm 0xa [nranks=2] stream 0x5\n",
    "Broadcast: opCount 1 ",
    "Send: opCount 2 ",
    "Recv: opCount 2 ",
    "datatype 9",
    "ncclGroupStart",
    "ncclGroupEnd",
];
const XML_TOKENS: &[&str] = &[
    "<system version=\"1\">",
    "</system>",
    "<cpu host_hash=\"0x1\" numaid=\"0\">",
    "</cpu>",
    "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">",
    "</pci>",
    "<gpu dev=\"0\" rank=\"0\">",
    "</gpu>",
    "<nvlink target=\"0000:02:00.0\" count=\"4\" tclass=\"0x030200\"/>",
    "<nic><net name=\"m\" dev=\"0\" speed=\"200000\"/></nic>",
    "<!--",
    "&amp;",
    "&#65;",
];
const TREE_TOKENS: &[&str] = &[
    "Nodes 8\n",
    "Tiers 2\n",
    "Podsize 4\n",
    "Tier 0\n",
    "Tier 1\n",
    "Radix_Down 2\n",
    "Radix_Up 2\n",
    "Downlink_speed_Gbps 100\n",
    "Downlink_Latency_ns 1000\n",
    "Switch_Latency_ns 300\n",
    "Oversubscribed 2\n",
    "Bundle 2\n",
];

/// Checks that every mistake has a reason and a hint, and a position within the text. Returns the first reason.
fn mistake(errors: &WorkloadErrors, files: &[File<'_>]) -> String {
    assert!(!errors.errors.is_empty(), "an error without a mistake");
    let named = files.iter().find(|file| file.name == errors.origin);
    let content = named.map_or_else(String::new, |file| String::from_utf8_lossy(file.bytes).into_owned());
    // Something that is missing may stand in the empty line behind the last one.
    let lines: Vec<_> = content.split('\n').map(|line| line.chars().count()).collect();
    for error in &errors.errors {
        assert!(!error.reason.is_empty() && !error.hint.is_empty(), "{error:?}");
        if let Place::Line { line, column } = error.place {
            assert!((1..=lines.len()).contains(&line), "{error:?} is outside the {} lines", lines.len());
            // A position behind the last character is that of something missing.
            let most = lines[line - 1] + 1;
            assert!((1..=most).contains(&column), "{error:?} is outside a line of {most} columns");
        }
    }
    errors.errors[0].reason.clone()
}

/// Writes a workload and reads it again. Returns its kinds of operations.
fn returns(workload: &Workload) -> String {
    let written = text::write(workload);
    let again = text::read(&written, "written").unwrap_or_else(|errors| panic!("{errors}\n{written}"));
    assert!(again == *workload, "a workload differs after it was written and read:\n{written}");
    let first = workload.ranks.iter().flat_map(|rank| rank.operations().iter().take(3));
    let names =
        first.take(8).map(|operation| format!("{:?}", operation.work).chars().take(7).collect::<String>());
    names.collect::<Vec<_>>().join(",")
}

fn operations(workload: &Workload) -> usize {
    workload.ranks.iter().map(|rank| rank.operations().len()).sum()
}

#[test]
fn workloads_are_read_and_written_alike() {
    let seeds = [
        "# Two ranks.\nworkload exchange\nranks 2\nphase forward\nphase gradients\ngroup 0..1\nrank 0\ncompute 1500ns\n\
         send 1 4KiB tag 7 after -1\nreceive 1 4KiB\nin gradients\nall-reduce group 0 1MiB after 1 2\nrank 1\n\
         receive 0 4KiB tag 7\nsend 0 4KiB after -1\nin gradients\nall-reduce group 0 1MiB after -1\n",
        "ranks 4\ngroup 0..3\nrank 0..3\ncompute 2TFLOP 4MiB\ncompute 1500FLOP after -1\nbarrier group 0\n",
        "ranks 3\ngroup 2 0\nrank 0 2\nbroadcast group 0 9B root 1\nrank 1\ncompute 0FLOP 3GB\n",
        "ranks 65536\nrank 0..65535\ncompute 1ns\n",
        "ranks 2\nrank 0\nsend 1 8B\n",
    ];
    let target = Target {
        name: "workloads",
        seeds: seeds.map(|text| text.as_bytes().to_vec()).to_vec(),
        tokens: TEXT_TOKENS,
        input_bytes_max: 4096,
        memory: MEMORY,
    };
    target.run(|bytes| {
        let Ok(content) = std::str::from_utf8(bytes) else { return "no text".to_owned() };
        let files = [File { name: "fuzz", bytes }];
        match text::read(content, "fuzz") {
            Err(errors) => mistake(&errors, &files),
            Ok(workload) => {
                let kinds = returns(&workload);
                if operations(&workload) > CHECKED_MAX {
                    return kinds;
                }
                match text::read_checked(content, "fuzz") {
                    Ok(checked) => {
                        assert_eq!((&checked, check(&checked)), (&workload, Ok(())));
                        kinds
                    }
                    Err(errors) => mistake(&errors, &files),
                }
            }
        }
    });
}

/// Splits an input into files. Pieces that begin like JSON have such a name.
fn parts<'i>(input: &'i [u8], ending: &str) -> Vec<(String, &'i [u8])> {
    let mut pieces = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.windows(NEXT_FILE.len()).position(|window| window == NEXT_FILE) {
        pieces.push(&rest[..at]);
        rest = &rest[at + NEXT_FILE.len()..];
    }
    pieces.push(rest);
    let name = |(number, piece): (usize, &'i [u8])| {
        let ending = if piece.starts_with(b"{") { "json" } else { ending };
        (format!("file.{number}.{ending}"), piece)
    };
    pieces.into_iter().enumerate().map(name).collect()
}

/// Imports inputs of one format. A workload must return after it was written, and a rack file must be a plan.
fn import(
    name: &'static str,
    format: Format,
    ending: &str,
    seeds: Vec<Vec<u8>>,
    tokens: &'static [&'static str],
) {
    let target = Target { name, seeds, tokens, input_bytes_max: 4096, memory: IMPORT_MEMORY };
    let stated = Options {
        machine: Machine { rates: None, ..Machine::default() },
        dimensions: vec![2, 1],
        ..Options::default()
    };
    target.run(|input| {
        let parts = parts(input, ending);
        let files: Vec<_> = parts.iter().map(|(name, bytes)| File { name, bytes }).collect();
        let read = |options: &Options| import::read(&files, Some(format), options);
        let _ = import::read(&files, None, &Options::default());
        if let Ok(imported) = read(&stated)
            && let Content::Workload(workload) = imported.content
        {
            returns(&workload);
        }
        match read(&Options::default()) {
            Err(errors) => mistake(&errors, &files),
            Ok(imported) => match imported.content {
                Content::Workload(workload) => {
                    if operations(&workload) <= CHECKED_MAX {
                        assert_eq!(check(&workload), Ok(()));
                    }
                    returns(&workload)
                }
                Content::Hardware(hardware) => planned(&hardware),
            },
        }
    });
}

/// Reads the rack file of a hardware, and compares its members and links. Only a single node is no rack.
fn planned(hardware: &Hardware) -> String {
    let yaml = hardware.to_rack_yaml();
    let members = hardware.nodes.len() + hardware.switches.len();
    if members > PLANNED_MAX {
        return "a large rack".to_owned();
    }
    match Plan::parse(&yaml, "imported") {
        Ok(plan) => {
            assert_eq!((plan.members.len(), plan.endpoint_count()), (members, hardware.nodes.len()));
            let links: u32 = hardware.links.iter().map(|link| link.parallel).sum();
            assert_eq!(plan.links.len(), links as usize, "{yaml}");
            "a rack".to_owned()
        }
        Err(error) => {
            assert!(hardware.nodes.len() < 2, "the file is no rack: {error}\n{yaml}");
            "a single node".to_owned()
        }
    }
}

fn texts(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[test]
fn goal_texts_become_workloads_or_mistakes() {
    let seeds = texts(&[
        "// An exchange.\nnum_ranks 2\n\nrank 0 {\nl1: send 1024b to 1 tag 2\nl2: recv 8 b from 1\nl3: calc 100 cpu 0\n\
         l3 requires l1\nl3 requires l2\n}\nrank 1 { l2: recv 1024b from 0 tag 2; l1: send 8b to 0 tag 0 cpu 1 nic 0; l1 requires l2 }\n",
        "/* none */ num_ranks 1\nrank 0 {\nl1: calc 5\nl2: calc 6\nl2 irequires l1\n}\n",
        "num_ranks 2\nrank 0 {\nl1: recv 8b from -1\n}\n",
    ]);
    import("goal", Format::Goal, "goal", seeds, GOAL_TOKENS);
}

#[test]
fn connection_matrices_become_workloads_or_mistakes() {
    let seeds = texts(&[
        "Nodes 3\nConnections 4\n# all to one\n0->2 start 0 size 2000000\n1->2 start 5000.000 size 10\n\
         1->0 id 7 start 2001 size 20 prio 3\n1->2 start 5000 size 30\n",
        "Nodes 2\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 100 send_done_trigger 1\n1->0 id 2 trigger 1 size 50\n\
         trigger id 1 oneshot\n",
        "Nodes 2\nConnections 1\n0->0 size 0\n",
    ]);
    import("connections", Format::Connections, "cm", seeds, MATRIX_TOKENS);
}

#[test]
fn logs_of_nccl_become_workloads_or_mistakes() {
    let rank = |rank: u32| {
        let body = [
            format!(
                "ncclCommInitRank comm 0x{rank}a rank {rank} nranks 2 cudaDev 0 busId 1 commId 0xc - Init COMPLETE"
            ),
            format!(
                "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 8 datatype 7 op 0 root 0 comm 0x{rank}a [nranks=2] stream 0x5"
            ),
        ];
        body.map(|body| format!("n{rank}:1{rank}:2{rank} [{rank}] NCCL INFO {body}\n")).concat()
    };
    let next = String::from_utf8_lossy(NEXT_FILE);
    let seeds = texts(&[
        &(rank(0) + &rank(1)),
        &(rank(0) + &next + &rank(1)),
        "n0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1]\n",
    ]);
    import("nccl-log", Format::NcclLog, "log", seeds, LOG_TOKENS);
}

#[test]
fn topologies_of_nccl_become_racks_or_mistakes() {
    let seeds = texts(&[
        r#"<system version="1">
  <cpu host_hash="0x1" numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="1" gdr="1"><nvlink target="0000:03:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8">
        <gpu dev="1" sm="90" rank="0" gdr="1"><nvlink target="0000:aa:00.0" count="2" tclass="0x068000"/></gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020000" link_speed="8.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1" latency="0.000000"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
"#,
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x030200\"><gpu dev=\"0\"/></pci></cpu></system>",
    ]);
    import("nccl-topology", Format::NcclTopology, "xml", seeds, XML_TOKENS);
}

#[test]
fn fat_trees_become_racks_or_mistakes() {
    let seeds = texts(&[
        "Nodes 8\nTiers 2\nPodsize 8\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 2\nQueue_Up 9\n\
         Downlink_Latency_ns 1000\nSwitch_Latency_ns 300\nOversubscribed 2\n\nTier 1\nDownlink_speed_Gbps 200\n\
         Radix_Down 2\nDownlink_Latency_ns 500\nSwitch_Latency_ns 300\n",
        "Nodes 8\nTiers 3\nPodsize 4\nTier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\n\
         Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 100\n\
         Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\nBundle 2\n",
    ]);
    import("fat-trees", Format::Topo, "topo", seeds, TREE_TOKENS);
}

/// Fields of the protocol buffers of a trace.
mod field {
    pub(super) fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    pub(super) fn number(tag: u64, value: u64) -> Vec<u8> {
        [varint(tag << 3), varint(value)].concat()
    }

    pub(super) fn bytes(tag: u64, value: &[u8]) -> Vec<u8> {
        [varint(tag << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
    }
}

#[test]
fn traces_of_chakra_become_workloads_or_mistakes() {
    use field::{bytes, number, varint};
    let attribute =
        |name: &str, value: u64| bytes(10, &[bytes(1, name.as_bytes()), number(9, value)].concat());
    let node = |id: u64, kind: u64, after: &[u64], more: &[Vec<u8>]| {
        let packed: Vec<u8> = after.iter().flat_map(|id| varint(*id)).collect();
        [number(1, id), bytes(2, b"n"), number(3, kind), bytes(5, &packed), more.concat()].concat()
    };
    let trace = |nodes: &[Vec<u8>]| -> Vec<u8> {
        let records = std::iter::once(bytes(1, b"0.0.4")).chain(nodes.iter().cloned());
        records.flat_map(|record| [varint(record.len() as u64), record].concat()).collect()
    };
    let worked = node(1, 4, &[], &[attribute("num_ops", 500), attribute("tensor_size", 700)]);
    let timed = node(2, 4, &[1], &[number(7, 3)]);
    let reduce = node(3, 7, &[2], &[attribute("comm_type", 0), attribute("comm_size", 4_096)]);
    let send =
        node(4, 5, &[], &[attribute("comm_dst", 1), attribute("comm_size", 64), attribute("comm_tag", 9)]);
    let receive =
        node(4, 6, &[], &[attribute("comm_src", 0), attribute("comm_size", 64), attribute("comm_tag", 9)]);
    let alone = trace(&[worked.clone(), timed.clone()]);
    let first = trace(&[worked, timed, reduce.clone(), send]);
    let second = trace(&[reduce, receive]);
    let pair = [&first[..], &second].join(NEXT_FILE);
    let groups = [&pair[..], br#"{"0": [0, 1]}"#].join(NEXT_FILE);
    import(
        "chakra",
        Format::Chakra,
        "et",
        vec![alone, pair, groups],
        &["num_ops", "comm_size", "pg_name", "0"],
    );
}
