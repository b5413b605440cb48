//! Fuzz targets of the control socket: requests and answers, orders and notices of seats, and the reader of lines.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rackloom_control::notice::Notice;
use rackloom_control::order::Order;
use rackloom_control::request::{Answer, Request};
use rackloom_fuzz::{MemoryLimit, Target};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, ReadBuf};

use super::bounded_lines::BoundedLines;

/// Memory limit of a target: a JSON text becomes values of at most 512 bytes per input byte, in several
/// copies.
const MEMORY: MemoryLimit = MemoryLimit { base_bytes: 64 << 10, per_input_byte: 512 };
const TOKENS: &[&str] = &[
    "{\"status\": {}}",
    "{\"join\": {\"seat\": \"n2\"}}",
    "{\"inject\": {\"script\": \"\", \"inline\": true}}",
    "{\"job\": [[[[[[[[[[[[",
    "{\"order\": \"say-status\"}",
    "{\"notice\": \"ready\"}",
    "null",
    "true",
    "-1",
    "1e308",
    "\\u0000",
    "\\ud800",
    "\"\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
];
/// Orders and notices of seats. No document has examples of them.
const SEATS: [&str; 16] = [
    r#"{"order": "say-waiting"}"#,
    r#"{"order": "seated", "member": 3, "process": 77, "is_successor": true}"#,
    r#"{"order": "inject", "first": 2, "text": "name: x"}"#,
    r#"{"order": "set-off", "event": 1}"#,
    r#"{"order": "heal", "living": [0, 1, 65535]}"#,
    r#"{"order": "heal", "living": []}"#,
    r#"{"order": "report"}"#,
    r#"{"notice": "progress", "count": 9}"#,
    r#"{"notice": "lost", "member": 2}"#,
    r#"{"notice": "waiting", "lines": ["a", "b"]}"#,
    r#"{"notice": "waiting", "lines": []}"#,
    r#"{"notice": "status", "links_up": 0, "finished": true, "paths": []}"#,
    r#"{"notice": "happened", "at_ns": 0, "member": "", "kind": "", "text": "", "fields": {}}"#,
    r#"{"notice": "status", "links_up": 2, "finished": false, "paths": [[0, 1], []]}"#,
    r#"{"notice": "happened", "at_ns": 1, "member": "n0", "kind": "fault", "text": "x", "fields": {"a": "b"}}"#,
    r#"{"notice": "pausing", "for_ns": 18446744073709551615}"#,
];

/// Returns the examples of `docs/control-socket.md`, one per line.
fn examples() -> Vec<Vec<u8>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/control-socket.md");
    let document = std::fs::read_to_string(path).expect("docs/control-socket.md is there");
    let lines = document.lines().filter(|line| line.starts_with('{'));
    let examples: Vec<_> = lines.map(|line| line.as_bytes().to_vec()).collect();
    assert!(examples.len() >= 10, "the document has lost its examples");
    examples
}

/// Reads a value, writes it, reads and writes it again, and checks that both texts are equal. Returns the
/// keys, or the error.
///
/// # Panics
/// The two texts differ, or an error of syntax has no position.
fn survives<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> String {
    let value: T = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            // An error about fields has no position: the message is read completely before its type is known.
            assert!(error.line() > 0 || error.is_data(), "{error} names no line");
            return error.to_string();
        }
    };
    let written = serde_json::to_string(&value).expect("what was read can be written");
    let again: T = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(serde_json::to_string(&again).expect("what was read can be written"), written);
    let keys = written.split(['"', '{', '}']).filter(|word| word.len() > 2 && word.len() < 14);
    keys.take(6).collect::<Vec<_>>().join(" ")
}

#[test]
fn requests_and_answers_survive_a_write_and_a_read() {
    let target =
        Target { name: "control", seeds: examples(), tokens: TOKENS, input_bytes_max: 8192, memory: MEMORY };
    target.run(|line| {
        let request = Request::from_line(line);
        if let Err(answer) = &request {
            let text = String::from_utf8(answer.line()).expect("an answer is text");
            // An error about fields has no position if the whole message was read before.
            let is_about_fields = serde_json::from_slice::<Request>(line).is_err_and(|error| error.is_data());
            assert!(text.contains("not-understood"), "{text}");
            assert!(text.contains(" column ") || is_about_fields, "{text}");
        }
        format!("{}, {}", survives::<Request>(line), survives::<Answer>(line))
    });
}

#[test]
fn orders_and_notices_survive_a_write_and_a_read() {
    let seeds = SEATS.map(|line| line.as_bytes().to_vec()).to_vec();
    let target = Target { name: "seats", seeds, tokens: TOKENS, input_bytes_max: 8192, memory: MEMORY };
    target.run(|line| format!("{}, {}", survives::<Order>(line), survives::<Notice>(line)));
}

/// Reader that returns at most the given number of bytes at once.
struct Pieces<'b>(&'b [u8], usize);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.1.min(self.0.len()).min(buffer.remaining());
        let (piece, rest) = self.0.split_at(length);
        buffer.put_slice(piece);
        self.0 = rest;
        Poll::Ready(Ok(()))
    }
}

#[test]
fn lines_are_bounded_and_equal_in_any_pieces() {
    const LINE_BYTES_MAX: usize = 40;
    let seeds = [&b"one\ntwo\n\nthree"[..], &[b'x'; 100], b"\n\n\n"].map(<[u8]>::to_vec).to_vec();
    let memory = MemoryLimit { base_bytes: 64 << 10, per_input_byte: 64 };
    let target = Target { name: "lines", seeds, tokens: &["\n", "\r\n"], input_bytes_max: 4096, memory };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs no I/O");
    target.run(|input| {
        let (length, rest) =
            input.split_first().map_or((1, input), |(first, rest)| (usize::from(*first).max(1), rest));
        let mut expected: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').collect();
        let tail = expected.pop().unwrap_or_default();
        let too_long = expected.iter().position(|line| line.len() > LINE_BYTES_MAX);
        let fails = too_long.is_some() || tail.len() > LINE_BYTES_MAX;
        expected.truncate(too_long.unwrap_or(expected.len()));
        let (found, error) = runtime.block_on(async {
            let mut lines = BoundedLines::new(Pieces(rest, length), LINE_BYTES_MAX);
            let mut found = Vec::new();
            loop {
                match lines.next().await {
                    Ok(Some(line)) => found.push(line),
                    Ok(None) => return (found, None),
                    Err(error) => return (found, Some(error.kind())),
                }
            }
        });
        assert_eq!(found, expected);
        assert_eq!(error, fails.then_some(io::ErrorKind::InvalidData));
        format!("{error:?} {}", "x".repeat(found.len().min(4)))
    });
}
