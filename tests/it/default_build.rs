//! A default build contains no code that exists only for tests.

use crate::support::bot::TestBot;

/// The variables that the feature `failpoints` reads, and names of steps that only it contains.
const MARKS: [&str; 4] = ["OLLIM_FAIL_AT", "OLLIM_CLOCK_AHEAD", "leftovers-ended", "outcome-recorded"];

#[test]
fn a_default_build_knows_no_fail_points() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_ollim-bot")).unwrap();
    let holds = |mark: &&str| binary.windows(mark.len()).any(|window| window == mark.as_bytes());
    let found: Vec<&str> = MARKS.into_iter().filter(holds).collect();
    if cfg!(feature = "failpoints") {
        // The search finds them in a build with the feature.
        assert_eq!(found, MARKS);
        return;
    }
    assert_eq!(found, [""; 0]);
    let ended = TestBot::new().env("OLLIM_FAIL_AT", "locked").run(["run", "--until-idle"]);
    assert_eq!(ended.code, 0, "{ended:?}");
}
