//! Waiting for something to become so.

use std::time::{Duration, Instant};

/// Nothing that the tests wait for takes a tenth of this on a machine that is not stuck.
const DEADLINE: Duration = Duration::from_secs(100);

/// Asks until it is so, and gives back what it then was. Panics with `otherwise` when the deadline has passed.
/// A test that waits passes as soon as the thing is so; how long it took is never what it asserts.
#[track_caller]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>, otherwise: impl FnOnce() -> String) -> T {
    let start = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain: {what}\n{}", otherwise());
        std::thread::sleep(pause);
        // What takes long is asked less often: asking is work for the same two cores.
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}
