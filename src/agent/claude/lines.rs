//! Lines of a stream, with a bounded length: a client that writes endlessly uses bounded memory.

use std::io;

use futures::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum length of a line, in bytes. A tool result with large files comes to a few MiB.
pub(super) const LONGEST: usize = 64 * 1024 * 1024;

/// Size of a read, and the size to which the buffer shrinks, in bytes.
const CHUNK: usize = 64 * 1024;

/// The error of [`Lines::next`].
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    /// The line does not end within the limit.
    #[error("a line of more than {} MiB", .0 / 1024 / 1024)]
    TooLong(usize),
    /// The stream cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A reader of lines. [`Lines::next`] is cancel safe.
pub(super) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// The position in the buffer where the next line begins.
    start: usize,
    /// The position in the buffer up to which there is no further line feed.
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

    /// Returns the next line without its line feed, or `None` at the end of the stream. Text after the last line feed is a line.
    ///
    /// # Errors
    /// [`LineError`]. The stream must not be read afterwards.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n') {
                let end = self.searched + at;
                let line = self.buffer[self.start..end].to_vec();
                self.start = end + 1;
                self.searched = self.start;
                return Ok(Some(line));
            }
            self.drop_consumed();
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

    /// Returns what the stream has given and nobody has read, without waiting for more. It stays for [`Self::next`].
    pub(super) fn unread(&mut self) -> &[u8] {
        while self.buffer.len() <= self.longest {
            self.buffer.reserve(CHUNK);
            match self.stream.read_buf(&mut self.buffer).now_or_never() {
                Some(Ok(1..)) => {}
                // [`Self::next`] meets the end, or the error.
                _ => break,
            }
        }
        &self.buffer[self.start..]
    }

    fn drop_consumed(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.searched = self.buffer.len();
        // Releases the memory of a long line; short lines do not need it.
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
    async fn what_is_unread_stays_to_be_read() {
        let (mut writer, reader) = tokio::io::duplex(64);
        let mut lines = Lines::new(reader);
        assert_eq!(lines.unread(), b"");
        tokio::io::AsyncWriteExt::write_all(&mut writer, b"one\ntwo").await.unwrap();
        assert_eq!(lines.unread(), b"one\ntwo");
        assert_eq!(lines.next().await.unwrap().unwrap(), b"one");
        assert_eq!(lines.unread(), b"two");
        drop(writer);
        assert_eq!(lines.unread(), b"two");
        assert_eq!(lines.next().await.unwrap().unwrap(), b"two");
        assert!(lines.next().await.unwrap().is_none());
    }

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
