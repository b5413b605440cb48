//! Reader of lines of bounded length, for input that may never end a line.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reader that returns an error for a line of more than `length_max` bytes.
pub(crate) struct BoundedLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    length_max: usize,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub(crate) fn new(reader: R, length_max: usize) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), length_max }
    }

    /// Returns the next line without its newline, or `None` at the end of the input. An incomplete last line
    /// is dropped. Cancel safe: no bytes are lost if the future is dropped.
    ///
    /// # Errors
    /// A line is too long ([`io::ErrorKind::InvalidData`]), or the input cannot be read.
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

    /// Returns the input. Bytes that were read after the last line are lost.
    pub(crate) fn into_inner(self) -> R {
        self.reader.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_above_the_length_limit_is_an_error() {
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
    fn an_incomplete_last_line_is_dropped() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lines = BoundedLines::new(&b"ab"[..], 5);
            assert_eq!(lines.next().await.unwrap(), None);
        });
    }
}
