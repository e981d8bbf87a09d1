//! Waiting for something to become so.

use std::time::{Duration, Instant};

/// Nothing that the tests wait for takes a tenth of this on a machine that is not stuck.
const DEADLINE: Duration = Duration::from_secs(60);

/// Asks until it is so, and gives back what it then was. Panics with `otherwise` when the deadline has passed.
/// A test that waits passes as soon as the thing is so; how long it took is never what it asserts.
#[track_caller]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>, otherwise: impl FnOnce() -> String) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain: {what}\n{}", otherwise());
        std::thread::sleep(Duration::from_millis(10));
    }
}
