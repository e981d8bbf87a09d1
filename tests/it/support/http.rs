//! Answers of an HTTP server, read as they come over the connection.

use std::io::Read as _;
use std::net::TcpStream;

/// An answer.
pub struct Answer {
    /// The status; 0 if there was no answer.
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Reads an answer until the server closes the connection.
pub fn answer(mut stream: TcpStream) -> Answer {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    let (head, body) = match text.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
        Some(end) => (&text[..end], &text[end + 4..]),
        None => (&*text, &[][..]),
    };
    let head = String::from_utf8_lossy(head).into_owned();
    let body = if head.contains("transfer-encoding: chunked") { joined(body) } else { body.to_vec() };
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Answer { status, head, body: String::from_utf8_lossy(&body).into_owned() }
}

/// Joins the chunks of a body.
fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let line = body.iter().position(|byte| *byte == b'\r').expect("a chunk has its length");
        let length = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return whole;
        }
        let (chunk, rest) = body[line + 2..].split_at(length);
        whole.extend_from_slice(chunk);
        body = &rest[2..];
    }
}
