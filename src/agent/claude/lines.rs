//! Lines of a stream, with a bound on their length: a client that writes without end costs a bounded memory.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that is taken. A tool result with large files in it comes to a few MiB.
pub(super) const LONGEST: usize = 64 * 1024 * 1024;

/// What is read at once, and what the buffer shrinks to.
const CHUNK: usize = 64 * 1024;

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    /// It has no end within [`LONGEST`].
    #[error("a line of more than {} MiB", .0 / 1024 / 1024)]
    TooLong(usize),
    /// The stream cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads line by line. [`Lines::next`] may be cancelled at any moment; nothing is lost.
pub(super) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to here the buffer holds no further line feed.
    searched: usize,
    longest: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(stream: R) -> Self {
        Self::bounded(stream, LONGEST)
    }

    fn bounded(stream: R, longest: usize) -> Self {
        Self { stream, buffer: Vec::new(), start: 0, searched: 0, longest }
    }

    /// The next line, without its end. `None`: the stream has ended; what came after the last line feed is a line too.
    ///
    /// # Errors
    /// [`LineError`]; the stream is of no use afterwards.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n') {
                let end = self.searched + at;
                let line = self.buffer[self.start..end].to_vec();
                self.start = end + 1;
                self.searched = self.start;
                return Ok(Some(line));
            }
            self.drop_what_was_read();
            if self.buffer.len() > self.longest {
                self.buffer = Vec::new();
                self.searched = 0;
                return Err(LineError::TooLong(self.longest));
            }
            self.buffer.reserve(CHUNK);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                self.searched = 0;
                let line = std::mem::take(&mut self.buffer);
                return Ok((!line.is_empty()).then_some(line));
            }
        }
    }

    fn drop_what_was_read(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.searched = self.buffer.len();
        // A long line has passed: its memory is not kept for the short ones.
        if self.buffer.len() < CHUNK && self.buffer.capacity() > 16 * CHUNK {
            self.buffer.shrink_to(CHUNK);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn lines_come_one_by_one() {
        for (text, expect) in [
            ("", vec![]),
            ("a\nb\n", vec!["a", "b"]),
            ("\n\nlast", vec!["", "", "last"]),
            ("1234567890\n", vec!["1234567890"]),
        ] {
            let mut lines = Lines::bounded(text.as_bytes(), 16);
            let mut got = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                got.push(String::from_utf8(line).unwrap());
            }
            assert_eq!(got, expect, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_flood_without_an_end_is_cut_off() {
        let mut lines = Lines::new(tokio::io::repeat(b'x'));
        assert!(matches!(lines.next().await, Err(LineError::TooLong(LONGEST))));
        assert_eq!(lines.buffer.capacity(), 0, "what was read is let go");
    }

    #[tokio::test]
    async fn a_reader_that_is_cancelled_loses_nothing() {
        let (mut writer, reader) = tokio::io::duplex(8);
        let mut lines = Lines::new(reader);
        writer.write_all(b"half").await.unwrap();
        tokio::select! {
            biased;
            line = lines.next() => panic!("no line has ended: {line:?}"),
            () = std::future::ready(()) => {}
        }
        writer.write_all(b" and\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap().unwrap(), b"half and");
    }
}
