//! Bounded lines from a peer that may never end one. A read can be cancelled, and no line exceeds a given length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reader of bounded lines.
pub(crate) struct BoundedLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    length_max: usize,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub(crate) fn new(reader: R, length_max: usize) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), length_max }
    }

    /// Returns the next line without its newline; `None` at the end of the input, where an incomplete line is dropped. A
    /// line that is too long is [`io::ErrorKind::InvalidData`]. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let take = end.unwrap_or(chunk.len());
            if self.line.len() + take > self.length_max {
                let what = format!("a line of more than {} bytes", self.length_max);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            self.line.extend_from_slice(&chunk[..take]);
            self.reader.consume(take + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }

    /// The input, without what has been read ahead of the last line.
    pub(crate) fn into_inner(self) -> R {
        self.reader.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_no_longer_than_agreed() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lines = BoundedLines::new(&b"ab\n\n12345\n123456\n"[..], 5);
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(&b"ab"[..]));
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(&b""[..]));
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(&b"12345"[..]));
            assert_eq!(lines.next().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        });
    }

    #[test]
    fn a_line_without_an_end_is_none() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lines = BoundedLines::new(&b"ab"[..], 5);
            assert_eq!(lines.next().await.unwrap(), None);
        });
    }
}
