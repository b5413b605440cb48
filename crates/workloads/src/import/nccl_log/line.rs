//! One line of a log of NCCL: the end of an initialisation, or a call.
//!
//! Source of the forms: `src/init.cc`, `src/enqueue.cc` and `src/debug.cc` of NCCL. Other lines are no events.

use rackloom_collectives::CollectiveKind;

/// Line that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event<'t> {
    /// A communicator is ready.
    Ready(Ready<'t>),
    /// An operation is called.
    Call(Call<'t>),
}

/// Communicator of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready<'t> {
    /// Host and process, such as `host:123`.
    pub(super) process: &'t str,
    /// Device, such as `[0]`.
    pub(super) device: &'t str,
    /// Address of the communicator in its process.
    pub(super) communicator: &'t str,
    /// Rank within the communicator.
    pub(super) rank: u32,
    /// Ranks of the communicator.
    pub(super) ranks: u32,
    /// Name that all ranks of the communicator state, if the version of NCCL writes it.
    pub(super) name: Option<&'t str>,
    /// Origin of a communicator that was split from another one.
    pub(super) split: Option<Split<'t>>,
}

/// Origin of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split<'t> {
    /// Address of the other communicator.
    pub(super) parent: &'t str,
    /// Number of the split, if the version of NCCL writes it.
    pub(super) count: &'t str,
    /// Part of the ranks.
    pub(super) color: &'t str,
}

/// Call of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call<'t> {
    /// Host and process.
    pub(super) process: &'t str,
    /// Kind.
    pub(super) kind: Kind,
    /// Number of the call in its communicator. Calls of one group have one number.
    pub(super) number: u64,
    /// Number of elements, as the kind counts them.
    pub(super) count: u64,
    /// Bytes of an element.
    pub(super) element_bytes: u64,
    /// Root, or peer of a message.
    pub(super) root: u32,
    /// Address of the communicator.
    pub(super) communicator: &'t str,
    /// Address of the stream.
    pub(super) stream: &'t str,
}

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Message to a peer.
    Send,
    /// Message from a peer.
    Receive,
    /// Collective.
    Collective(CollectiveKind),
}

const MARK: &str = "NCCL INFO ";

/// Reads a line. Returns `None` for a line that does not matter, and the reason for one that is cut off or unknown.
pub(super) fn read(line: &str) -> Result<Option<Event<'_>>, String> {
    let Some((before, body)) = line.split_once(MARK) else { return Ok(None) };
    if body.contains("Init COMPLETE") {
        return ready(before, body).map(|ready| Some(Event::Ready(ready)));
    }
    match body.split_once(": opCount ") {
        Some((name, _)) => call(before, name.trim(), body).map(|call| Some(Event::Call(call))),
        None => Ok(None),
    }
}

/// Returns host with process, and device, from the begin of a line.
fn process(before: &str) -> Result<(&str, &str), String> {
    let mut words = before.split_whitespace().rev();
    let device = words.by_ref().find(|word| word.starts_with('[') && word.ends_with(']'));
    let process = words.next().and_then(|thread| thread.rsplit_once(':')).map(|(process, _)| process);
    process.zip(device).ok_or_else(|| format!("`{}` names no host, process and device", before.trim()))
}

/// Returns the word behind a key.
fn word<'t>(body: &'t str, key: &str) -> Option<&'t str> {
    let mut words = body.split_whitespace();
    words.find(|word| *word == key)?;
    words.next()
}

fn wanted<'t>(body: &'t str, key: &str) -> Result<&'t str, String> {
    word(body, key).ok_or_else(|| format!("the line has no `{key}`"))
}

fn number<N: core::str::FromStr>(body: &str, key: &str) -> Result<N, String> {
    let word = wanted(body, key)?;
    word.parse().map_err(|_| format!("`{word}` is no number in range for `{key}`"))
}

fn ready<'t>(before: &'t str, body: &'t str) -> Result<Ready<'t>, String> {
    let (process, device) = process(before)?;
    let split = word(body, "parent").zip(word(body, "color"));
    let split = split.map(|(parent, color)| Split {
        parent,
        count: word(body, "childCount").unwrap_or_default(),
        color,
    });
    Ok(Ready {
        process,
        device,
        communicator: wanted(body, "comm")?,
        rank: number(body, "rank")?,
        ranks: number(body, "nranks")?,
        name: word(body, "commId"),
        split,
    })
}

fn call<'t>(before: &'t str, name: &str, body: &'t str) -> Result<Call<'t>, String> {
    let count = wanted(body, "opCount")?;
    let data_type = number::<usize>(body, "datatype")?;
    let element_bytes = ELEMENT_BYTES.get(data_type);
    Ok(Call {
        process: process(before)?.0,
        kind: kind(name).ok_or_else(|| format!("`{name}` is no known operation"))?,
        number: u64::from_str_radix(count, 16).map_err(|_| format!("`{count}` is no hexadecimal number"))?,
        count: number(body, "count")?,
        element_bytes: *element_bytes.ok_or_else(|| format!("there is no data type {data_type}"))?,
        root: number(body, "root")?,
        communicator: wanted(body, "comm")?,
        stream: wanted(body, "stream")?,
    })
}

/// Bytes of the data types 0 to 11: `int8`, `uint8`, `int32`, `uint32`, `int64`, `uint64`, `float16`, `float32`, `float64`,
/// `bfloat16`, `float8e4m3`, `float8e5m2`. Source: `ncclDataType_t` in `nccl.h`.
const ELEMENT_BYTES: [u64; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "Send" => Kind::Send,
        "Recv" => Kind::Receive,
        "AllReduce" => Kind::Collective(CollectiveKind::AllReduce),
        "AllGather" => Kind::Collective(CollectiveKind::AllGather),
        "ReduceScatter" => Kind::Collective(CollectiveKind::ReduceScatter),
        "Broadcast" | "Bcast" => Kind::Collective(CollectiveKind::Broadcast),
        "Reduce" => Kind::Collective(CollectiveKind::Reduce),
        "AlltoAll" | "AllToAll" => Kind::Collective(CollectiveKind::AllToAll),
        "Gather" => Kind::Collective(CollectiveKind::Gather),
        "Scatter" => Kind::Collective(CollectiveKind::Scatter),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "n1:12:34 [3] NCCL INFO AllGather: opCount 1e sendbuff 0xa recvbuff 0xb count 64 datatype 9 op 0 root 2 \
                        comm 0xc [nranks=8] stream 0xd";

    #[test]
    fn a_call_is_read_with_and_without_a_time() {
        let expected = Call {
            process: "n1:12",
            kind: Kind::Collective(CollectiveKind::AllGather),
            number: 30,
            count: 64,
            element_bytes: 2,
            root: 2,
            communicator: "0xc",
            stream: "0xd",
        };
        assert_eq!(read(CALL), Ok(Some(Event::Call(expected))));
        let timed = CALL.replace("[3] ", "[3] 1558545003174220 ");
        assert_eq!(read(&format!("[2026-01-02 03:04:05] {timed}")), Ok(Some(Event::Call(expected))));
    }

    #[test]
    fn communicators_are_read_with_and_without_a_name() {
        let line = "n1:12:34 [3] NCCL INFO ncclCommInitRank comm 0xc rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 9000 commId 0xfe - \
                    Init COMPLETE";
        let expected = Ready {
            process: "n1:12",
            device: "[3]",
            communicator: "0xc",
            rank: 3,
            ranks: 8,
            name: Some("0xfe"),
            split: None,
        };
        assert_eq!(read(line), Ok(Some(Event::Ready(expected))));
        let old = "n1:12:34 [3] NCCL INFO comm 0xc rank 3 nranks 8 cudaDev 3 busId 9000 - Init COMPLETE";
        assert_eq!(read(old), Ok(Some(Event::Ready(Ready { name: None, ..expected }))));
        let split = "n1:12:34 [3] NCCL INFO ncclCommSplit comm 0xd rank 3 nranks 8 cudaDev 3 parent 0xc childCount 1 color 5 key 0 - \
                     Init COMPLETE";
        let origin = Split { parent: "0xc", count: "1", color: "5" };
        let expected = Ready { communicator: "0xd", name: None, split: Some(origin), ..expected };
        assert_eq!(read(split), Ok(Some(Event::Ready(expected))));
    }

    #[test]
    fn lines_of_other_kinds_are_no_events() {
        for line in [
            "",
            "hello",
            "n1:1:1 [0] NCCL INFO Channel 00/02 : 0 1",
            "n1:1:1 [0] NCCL WARN AllReduce: opCount 0",
        ] {
            assert_eq!(read(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn calls_that_are_cut_off_or_unknown_are_refused() {
        let cases = [
            (CALL.replace(" stream 0xd", ""), "the line has no `stream`"),
            (CALL.replace("AllGather", "AllBroadcast"), "`AllBroadcast` is no known operation"),
            (CALL.replace("datatype 9", "datatype 12"), "there is no data type 12"),
            (
                CALL.replace("count 64", "count 99999999999999999999"),
                "`99999999999999999999` is no number in range",
            ),
            (CALL.replace("opCount 1e", "opCount xy"), "`xy` is no hexadecimal number"),
            (CALL.replace("n1:12:34 [3] ", "n1 "), "`n1` names no host, process and device"),
        ];
        for (line, expected) in cases {
            let reason = read(&line).expect_err(&line);
            assert!(reason.starts_with(expected), "{reason}");
        }
    }
}
