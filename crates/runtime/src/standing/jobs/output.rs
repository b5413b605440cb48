//! Bounded log of a process: the first bytes and the last bytes of its output.
//!
//! Only the newest bytes wait in memory, so a process that prints without end costs a fixed amount of disk and memory. The end of the
//! output is mostly what explains a failure.

use std::collections::VecDeque;
use std::io::{self, Write};

/// Bytes that are written as they come.
pub(super) const HEAD_BYTES_MAX: usize = 192 << 10;
/// Bytes behind them that are kept until the end.
pub(super) const TAIL_BYTES_MAX: usize = 64 << 10;

/// Log of one process.
#[derive(Debug)]
pub(super) struct BoundedLog<W> {
    file: W,
    head_left: usize,
    tail: VecDeque<u8>,
    /// Number of bytes between head and tail that are not kept.
    left_out: u64,
}

impl<W: Write> BoundedLog<W> {
    pub(super) const fn new(file: W) -> Self {
        Self { file, head_left: HEAD_BYTES_MAX, tail: VecDeque::new(), left_out: 0 }
    }

    /// Adds output.
    pub(super) fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_left));
        self.head_left -= head.len();
        self.file.write_all(head)?;
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(TAIL_BYTES_MAX);
        self.tail.drain(..excess);
        self.left_out += excess as u64;
        Ok(())
    }

    /// Writes the end of the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if self.left_out > 0 {
            writeln!(self.file, "\n[{} bytes are left out]", self.left_out)?;
        }
        let (first, second) = self.tail.as_slices();
        self.file.write_all(first)?;
        self.file.write_all(second)?;
        Ok(self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(chunks: &[&[u8]]) -> Vec<u8> {
        let mut log = BoundedLog::new(Vec::new());
        chunks.iter().for_each(|chunk| log.add(chunk).unwrap());
        log.finish().unwrap()
    }

    #[test]
    fn output_within_the_limits_is_kept_as_it_is() {
        assert_eq!(logged(&[b"one\n", b"two\n"]), b"one\ntwo\n");
        let full = vec![b'x'; HEAD_BYTES_MAX + TAIL_BYTES_MAX];
        assert_eq!(logged(&[&full]), full);
    }

    #[test]
    fn the_middle_of_a_long_output_is_left_out_and_counted() {
        let (head, middle, tail) =
            (vec![b'h'; HEAD_BYTES_MAX], vec![b'm'; 3 * TAIL_BYTES_MAX + 5], vec![b't'; TAIL_BYTES_MAX]);
        let kept = logged(&[&head, &middle, &tail]);
        let note = format!("\n[{} bytes are left out]\n", middle.len());
        assert_eq!(kept, [&head[..], note.as_bytes(), &tail].concat());
    }
}
