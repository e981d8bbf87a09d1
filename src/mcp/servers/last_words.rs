//! The last words of a server's process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::connection::cut;

/// What a server wrote to standard error at last: its last line that names an error, or its last line. Node.js ends its report of an error
/// with its own version.
#[derive(Clone, Default)]
pub(super) struct LastWords {
    line: Arc<Mutex<String>>,
    /// Locked while there may be more.
    reading: Arc<tokio::sync::Mutex<()>>,
}

/// Maximum wait for a server's last words when it has ended: they come by another pipe than its answers.
const END: Duration = Duration::from_secs(1);

/// Minimum length of a secret to hide. A shorter one would hide half of the text.
const SHORTEST_SECRET: usize = 4;

impl LastWords {
    pub(super) fn get(&self) -> String {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the line after the server has ended, or after [`END`] at the latest.
    pub(super) async fn at_end(&self) -> String {
        let _late = tokio::time::timeout(END, self.reading.lock()).await;
        self.get()
    }

    /// Keeps the last line, without the secrets that the server was given, because agents and the record get the line.
    pub(super) fn follow(&self, mut stderr: impl AsyncRead + Unpin + Send + 'static, secrets: Vec<String>) {
        let (line_kept, reading) = (self.line.clone(), self.reading.clone().try_lock_owned());
        let hidden = move |line: &str| {
            let long = secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET);
            long.fold(line.to_owned(), |line, secret| line.replace(secret.as_str(), "***"))
        };
        tokio::spawn(async move {
            let _reading = reading;
            let mut end = Vec::new();
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
                end.extend_from_slice(&chunk[..read]);
                let surplus = end.len().saturating_sub(4096);
                end.drain(..surplus);
                let text = String::from_utf8_lossy(&end);
                if let Some(line) = telling(&text) {
                    *line_kept.lock().unwrap_or_else(PoisonError::into_inner) = cut(&hidden(line));
                }
            }
        });
    }
}

/// Returns the line of an output that tells most.
fn telling(output: &str) -> Option<&str> {
    let mut last = output.lines().rev().filter(|line| !line.trim().is_empty()).peekable();
    let fallback = last.peek().copied();
    last.find(|line| line.contains("Error")).or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_names_an_error_tells_most() {
        let node = "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module '/srv/a.js'\n    at \
            Function.executeUserEntryPoint {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n";
        for (output, expect) in [
            (node, Some("Error: Cannot find module '/srv/a.js'")),
            (
                "Traceback:\n  import a\nModuleNotFoundError: No module named 'a'\n",
                Some("ModuleNotFoundError: No module named 'a'"),
            ),
            ("listening\nkilled\n\n", Some("killed")),
            ("\n \n", None),
        ] {
            assert_eq!(telling(output), expect);
        }
    }
}
