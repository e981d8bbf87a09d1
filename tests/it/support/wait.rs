//! Waiting until a condition holds.

use std::time::{Duration, Instant};

/// Time limit. On a healthy machine every wait takes less than a tenth of it.
const DEADLINE: Duration = Duration::from_secs(100);

/// Polls `ask` until it returns a value, and returns that value. Panics with `otherwise` after [`DEADLINE`]. A waiting test
/// passes as soon as the condition holds; it never asserts how long that took.
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
        // Long waits poll less often, since polling uses the same two cores.
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}
