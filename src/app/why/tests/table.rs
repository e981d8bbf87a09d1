//! The cases: events, and the expected sentences.

use super::*;

type Steps = &'static [(&'static str, Step)];

const fn case(name: &'static str, steps: Steps, said: [&'static str; 3]) -> Case {
    Case { name, steps, up: Up::Yes, ask: ("mail", None), said }
}

impl Case {
    const fn off(self) -> Self {
        Self { up: Up::No, ..self }
    }

    const fn no_login(self, since: &'static str) -> Self {
        Self { up: Up::Login(since), ..self }
    }

    const fn no_agent(self, since: &'static str) -> Self {
        Self { up: Up::NoAgent(since), ..self }
    }

    const fn full_disk(self) -> Self {
        Self { up: Up::FullDisk, ..self }
    }

    const fn ask(self, id: &'static str) -> Self {
        Self { ask: (id, None), ..self }
    }

    const fn when(self, id: &'static str, time: &'static str) -> Self {
        Self { ask: (id, Some(time)), ..self }
    }
}

const BERLIN: &str = "---\ncron: \"30 2 * * *\"\ntimezone: Europe/Berlin\nbackground: true\n---\nx\n";
const HOURLY: &str = "---\ncron: \"0 * * * *\"\nbackground: true\n---\nx\n";
const DISABLED: &str = "---\ncron: \"0 8 * * *\"\nenabled: false\n---\nx\n";
const BROKEN: &str = "---\ncron: \"99 8 * * *\"\n---\nx\n";
const LATER: &str = "---\nrun_at: \"2026-03-02T09:00:00Z\"\n---\nTea.\n";
const LINK: &str = "---\nrun_at: \"2026-03-02T09:00:00Z\"\nbackground: true\nmax_chain: 3\nchain_depth: 2\nchain_parent: oven\n---\nLook.\n";
const LAST: &str = "---\nrun_at: \"2026-03-02T08:00:00Z\"\nbackground: true\nmax_chain: 3\nchain_depth: 3\nchain_parent: oven\n---\nLook.\n";
const AFTER: &str = "---\nafter: triage\nbackground: true\n---\nx\n";
const TRIAGE: &str = "---\ncron: \"0 8 * * *\"\n---\nx\n";
const CAPPED: &str = "---\ncron: \"0 * * * *\"\nbackground: true\nmax_cost_day_usd: 1.00\n---\nx\n";
const CONDITIONS: &str =
    "---\ncron: \"0 8 * * *\"\nbackground: true\nrequires: [online, power]\napprove: true\ngate: \"true\"\n---\nx\n";
const UNCOVERED: &str = "---\ncron: \"0 8 * * *\"\nbackground: true\ndisallowed_tools: [Bash]\ngate: df -h\n---\nx\n";
const APPROVED_AFTER: &str = "---\nafter: triage\nbackground: true\napprove: true\n---\nx\n";
const ON_LAPTOP: &str = "---\ncron: \"0 8 * * *\"\nbackground: true\nisolated: true\nhosts: [laptop]\n---\nx\n";
const ISOLATED: &str = "---\ncron: \"0 8 * * *\"\nbackground: true\nisolated: true\n---\nx\n";
const ATTIC: (&str, Step) = ("07:00", Host("attic", true, 0, "", true));
const LAPTOP: (&str, Step) = ("07:00", Host("laptop", true, 0, "", false));
const GONE: (&str, Step) = ("07:00", Host("laptop", false, 0, "", false));
const ON: (&str, Step) = ("08:00", On("laptop"));
const NEXT: &str = "Next: tomorrow at 08:00 (in 23h 54m).";

pub(super) const CASES: &[Case] = &[
    case("on time", &[FILE, SEE, CLAIM, LAUNCH, DONE], ["on_time", "mail fired on time at 08:00; it did its work.", NEXT]),
    case(
        "seconds late",
        &[FILE, SEE, CLAIM, ("08:00:52", Launch), DONE],
        ["on_time", "mail fired at 08:00, 52s late; it did its work.", NEXT],
    ),
    case(
        "running, and soon due again",
        &[("07:00", File("routines/mail.md", HOURLY)), SEE, CLAIM, LAUNCH, ("08:30", Event(EventKind::DefinitionChanged))],
        ["on_time/running", "mail fired on time at 08:00; it is running, for 35m.", "Next: 09:00 (in 25m); it is skipped if this run is not over by then."],
    ),
    case(
        "a gate that its tools do not cover",
        &[("07:00", File("routines/mail.md", UNCOVERED)), SEE, CLAIM, LAUNCH, DONE],
        ["on_time", "mail fired on time at 08:00; it did its work.", "Next: tomorrow at 08:00 (in 23h 54m), and it fails at its gate then: Bash \"df -h\": denied by disallowed_tools \"Bash\" of routine mail."],
    ),
    case(
        "its file is gone while it waits to be tried again",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:01", Retry("no network.", "08:30")), ("08:02", NoFile("routines/mail.md"))],
        ["on_time/retry", "mail fired on time at 08:00; it failed (no network) and is not tried again: its file is gone.", "There is no file of it any more; since when is not recorded. It does not fire again."],
    ),
    case(
        "everything was paused for a moment",
        &[FILE, SEE, ("08:00:23", Claim("08:00")), ("08:00:23", Delayed(DelayCause::Paused, Some("08:00"))), ("08:00:23", Launch), DONE],
        ["on_time", "mail fired at 08:00, 23s late: everything was paused until 08:00; it did its work.", NEXT],
    ),
    case(
        "a reminder whose file came late",
        &[("08:22", File("reminders/tea.md", TEA)), ("08:22", Claim("08:00")), ("08:22", Delayed(DelayCause::FileLate, Some("08:22"))), ("08:22", Launch), ("08:23", Completed), ("08:23", NoFile("reminders/tea.md"))],
        ["late", "tea was due at 08:00 and began 22m late, at 08:22: no file gave it this time until 08:22; it did its work.", "It is done, and does not fire again."],
    ).ask("tea"),
    case(
        "the service was off",
        &[FILE, SEE, ("09:12", Claim("08:00")), ("09:12", Delayed(DelayCause::ServiceOff, Some("09:12"))), ("09:12", Launch), ("09:13", Completed)],
        ["late", "mail was due at 08:00 and began 1h 12m late, at 09:12: the service was not running until 09:12; it did its work.", "Next: tomorrow at 08:00 (in 22h 42m)."],
    ),
    case(
        "every slot was taken",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::Slot, None)), ("08:10", Launch), ("08:11", Completed)],
        ["late", "mail was due at 08:00 and began 10m late, at 08:10: as many runs were going as may (`max_concurrent_runs` is 4 now); it did its work.", "Next: tomorrow at 08:00 (in 23h 44m)."],
    ),
    case(
        "the main session was busy, after an earlier run",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::EarlierRun, None)), ("08:02", Delayed(DelayCause::MainSession, None)), ("08:10", Launch), ("08:11", Completed)],
        ["late", "mail was due at 08:00 and began 10m late, at 08:10: its earlier run was not over, then the main session was busy; it did its work.", "Next: tomorrow at 08:00 (in 23h 44m)."],
    ),
    case(
        "nobody was logged in",
        &[FILE, SEE, ("08:30", Claim("08:00")), ("08:30", Delayed(DelayCause::Login, Some("08:30"))), ("08:30", Launch), ("08:31", Completed)],
        ["late", "mail was due at 08:00 and began 30m late, at 08:30: the agent was not logged in until 08:30; it did its work.", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "there was no agent",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::Agent, None)), ("08:30", Launch), ("08:31", Completed)],
        ["late", "mail was due at 08:00 and began 30m late, at 08:30: there was no agent; it did its work.", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "everything was paused",
        &[FILE, SEE, ("08:30", Claim("08:00")), ("08:30", Delayed(DelayCause::Paused, Some("08:30"))), ("08:30", Launch), ("08:31", Completed)],
        ["late", "mail was due at 08:00 and began 30m late, at 08:30: everything was paused until 08:30; it did its work.", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "the clock was set forward",
        &[FILE, SEE, ("08:30", Event(EventKind::ClockSet { seconds: 3600, slept: false })), ("08:30", Claim("08:00")), ("08:30", Delayed(DelayCause::ClockForward, Some("08:29"))), ("08:30", Launch), ("08:31", Completed)],
        ["late", "mail was due at 08:00 and began 30m late, at 08:30: the clock was set forward; it did its work.", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "the machine slept",
        &[FILE, SEE, ("08:30", Claim("08:00")), ("08:30", Delayed(DelayCause::Slept, Some("08:29"))), ("08:30", Launch), ("08:31", Completed)],
        ["late", "mail was due at 08:00 and began 30m late, at 08:30: the machine slept; it did its work.", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "the machine was offline",
        &[FILE, SEE, CLAIM, ("08:00", Lacks("the machine has no default route (`requires: online`)")), ("08:30", Launch), ("08:31", Completed)],
        ["late", "mail was due at 08:00 and began 30m late, at 08:30: the machine has no default route (`requires: online`); it did its work.", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "its file had an error for a while",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::FileInvalid, None)), ("08:30", Launch), ("08:31", Completed)],
        ["late", "mail was due at 08:00 and began 30m late, at 08:30: its file had an error or could not be read; it did its work.", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "late, recorded by an earlier version",
        &[FILE, SEE, CLAIM, ("08:30", Launch), ("08:31", Completed)],
        ["late", "mail was due at 08:00 and began 30m late, at 08:30: why is not recorded; it did its work.", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "the clocks skipped its time",
        &[("28T23:00", File("routines/mail.md", BERLIN)), ("28T23:00", See), ("29T01:00", Claim("29T01:00")), ("29T01:00", Launch), ("29T01:01", Completed)],
        ["on_time_gap", "mail fired at 01:00 (03:00 in Europe/Berlin), the first moment that there was: the clocks skipped its time that night; it did its work.", "Next: tomorrow at 00:30 (02:30 in Europe/Berlin; in 23h 24m)."],
    ),
    case(
        "the clocks showed its time twice",
        &[("2026-10-24T23:00", File("routines/mail.md", BERLIN)), ("2026-10-24T23:00", See), ("2026-10-25T00:30", Claim("2026-10-25T00:30")), ("2026-10-25T00:30", Launch), ("2026-10-25T00:31", Completed)],
        ["on_time_repeated", "mail fired on time at 00:30 (02:30 in Europe/Berlin), the first of the two that the clocks showed; it did its work.", "Next: tomorrow at 01:30 (02:30 in Europe/Berlin; in 1d)."],
    ),
    case(
        "it follows another job",
        &[
            ("07:00", File("routines/triage.md", TRIAGE)),
            ("07:00", File("routines/mail.md", AFTER)),
            ("08:02", After("triage")),
            ("08:02", Launch),
            ("08:03", Completed),
        ],
        [
            "after",
            "mail fired at 08:02, as `triage` had ended (completed); it did its work.",
            "It fires when `triage` has completed.",
        ],
    ),
    case(
        "it follows another job, and was paused after failures",
        &[
            ("07:00", File("routines/triage.md", TRIAGE)),
            ("07:00", File("routines/mail.md", AFTER)),
            ("08:02", Skip("08:02", "paused: it has failed too often in a row")),
        ],
        [
            "skipped_paused",
            "mail did not run at 08:02: it has failed too often in a row.",
            "It fires when `triage` has completed.",
        ],
    ),
    case(
        "it follows another job, and set itself off",
        &[
            ("07:00", File("routines/triage.md", TRIAGE)),
            ("07:00", File("routines/mail.md", AFTER)),
            ("08:02", Skip("08:02", "cut: it has set itself off 3 times in a row")),
        ],
        [
            "skipped_cut",
            "mail did not run at 08:02: it has set itself off 3 times in a row.",
            "It fires when `triage` has completed.",
        ],
    ),
    case(
        "fired by hand",
        &[FILE, SEE, ("07:30", ByHand), ("07:30", Launch), ("07:31", Completed)],
        ["fired_by_hand", "mail was fired by hand at 07:30; it did its work.", "Next: 08:00 (in 24m)."],
    ),
    case(
        "fired by a channel",
        &[FILE, SEE, ("07:30", ByHand), ("07:30", Requested("phone")), ("07:30", Launch), ("07:31", Completed)],
        ["fired_by_channel", "mail was fired by you on phone at 07:30; it did its work.", "Next: 08:00 (in 24m)."],
    ),
    case(
        "retried after a failure",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:01", Retry("no network.", "08:02")), ("08:02", Again), ("08:02", Launch), ("08:03", Completed)],
        ["on_time/completed_after", "mail fired on time at 08:00; it did its work at the second attempt: the first failed (no network).", "Next: tomorrow at 08:00 (in 23h 52m)."],
    ),
    case(
        "run again after a kill",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:05", CutOff), ("08:05", Again), ("08:05", Launch), ("08:06", Completed)],
        ["on_time/completed_after", "mail fired on time at 08:00; it did its work at the second attempt: the first was cut off when the service ended.", "Next: tomorrow at 08:00 (in 23h 49m)."],
    ),
    case(
        "cut off, and skipped when it would have run again",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:05", CutOff), ("08:05", Again), ("08:05", Launch), ("08:05", End(RunState::Skipped, "budget: $5.00 of $5.00 of the day's budget are spent or taken, until Tue 3 Mar 00:00 UTC"))],
        ["on_time/ended", "mail fired on time at 08:00; it was cut off when the service ended; its second attempt was skipped: budget: $5.00 of $5.00 of the day's budget are spent or taken, until Tue 3 Mar 00:00 UTC.", "Next: tomorrow at 08:00 (in 23h 50m)."],
    ),
    case(
        "fired by hand while every slot is taken",
        &[FILE, SEE, ("07:30", ByHand), ("07:30", Delayed(DelayCause::Slot, None))],
        ["waiting", "mail was fired by hand at 07:30 and waits: as many runs are going as may (`max_concurrent_runs: 4`).", "Next: 08:00 (in 25m); it is skipped if this run is not over by then."],
    ),
    case(
        "missed, and a newer one ran",
        &[FILE, SEE, ("10:00", Skip("08:00", "missed: nothing could run at its time, and of those that were missed only the newest counts (on_missed: latest)")), ("10:00", Delayed(DelayCause::ServiceOff, Some("10:00")))],
        ["skipped_missed", "mail did not run at 08:00: the service was not running until 10:00, and `on_missed: latest` runs only the newest that was missed.", "Next: tomorrow at 08:00 (in 21h 55m)."],
    ),
    case(
        "missed, many at once, not recorded why",
        &[FILE, SEE, ("10:00", SkipAll("01T08:00", "08:00", "missed: nothing could run at its time (on_missed: skip)"))],
        ["skipped_missed", "mail did not run from yesterday at 08:00 to 08:00: nothing could run then (what kept it is not recorded), and `on_missed: skip` makes up for nothing.", "Next: tomorrow at 08:00 (in 21h 55m)."],
    ),
    case(
        "overlap",
        &[FILE, SEE, ("08:00", Skip("08:00", "overlap: run 0badcafe was not over (on_overlap: skip)"))],
        ["skipped_overlap", "mail did not run at 08:00: run 0badcafe was not over (on_overlap: skip).", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "disabled before it could run",
        &[FILE, SEE, ("08:00", Skip("08:00", "disabled: it was disabled before it could run")), ("08:00", File("routines/mail.md", DISABLED))],
        ["skipped_disabled", "mail did not run at 08:00: it was disabled before it could run; its file was changed since.", "It does not fire: it is disabled in its file; `ollim-bot resume mail` ends that."],
    ),
    case(
        "gated",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:00", End(RunState::Skipped, "gate: no new mail"))],
        ["skipped_gate", "mail did not run at 08:00: its gate found nothing to do (no new mail).", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "the gate failed",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:00", Failed("gate_failed", "the gate ended with 7"))],
        ["on_time/gate_failed", "mail fired on time at 08:00; it failed at its gate, so its agent was not woken: the gate ended with 7.", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "over the day's budget",
        &[FILE, SEE, ("07:30", Costs(5.0)), CLAIM, LAUNCH, ("08:00", End(RunState::Skipped, "budget: $5.00 of $5.00 of the day's budget are spent or taken, until Tue 3 Mar 00:00 UTC"))],
        ["skipped_budget", "mail did not run at 08:00: $5.00 of $5.00 of the day's budget are spent or taken, until Tue 3 Mar 00:00 UTC.", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "over the job's own cap",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:00", End(RunState::Skipped, "budget: $1.00 of $1.00 of this job's `max_cost_day_usd` are spent or taken, until Tue 3 Mar 00:00 UTC"))],
        ["skipped_budget", "mail did not run at 08:00: $1.00 of $1.00 of this job's `max_cost_day_usd` are spent or taken, until Tue 3 Mar 00:00 UTC.", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "nobody approved it",
        &[FILE, SEE, CLAIM, ("08:10", End(RunState::Skipped, "not approved: denied, since nobody answered"))],
        ["skipped_approve", "mail did not run at 08:00: you did not approve it (denied, since nobody answered).", "Next: tomorrow at 08:00 (in 23h 45m)."],
    ),
    case(
        "offline for too long",
        &[FILE, SEE, CLAIM, ("08:00", Lacks("the machine has no default route (`requires: online`)")), ("14:00", End(RunState::Skipped, "the machine has no default route (`requires: online`), for 6h"))],
        ["skipped_requires", "mail did not run at 08:00: it waited, and the machine has no default route (`requires: online`), for 6h.", "Next: tomorrow at 08:00 (in 17h 55m)."],
    ),
    case(
        "its file was deleted before it could run",
        &[FILE, SEE, CLAIM, ("08:01", NoFile("routines/mail.md")), ("08:01", End(RunState::Skipped, "its file was deleted before it could run")), ("08:01", Event(EventKind::DefinitionRemoved))],
        ["skipped", "mail did not run at 08:00: its file was deleted before it could run.", "Its file was removed at 08:01. It does not fire again."],
    ),
    case(
        "quiet hours hold its message",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:00", Hold("09:00")), DONE],
        ["on_time/completed_held", "mail fired on time at 08:00; it did its work; its message is held until 09:00.", NEXT],
    ),
    case(
        "waits for a slot",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::Slot, None))],
        ["waiting", "mail was due at 08:00 and waits: as many runs are going as may (`max_concurrent_runs: 4`).", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "waits for a login",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::Login, None))],
        ["waiting", "mail was due at 08:00 and waits: the agent is not logged in; `ollim-bot login` logs it in.", "Next: tomorrow at 08:00 (in 23h 55m), if the agent is logged in by then: jobs wait for that since 07:50."],
    )
    .no_login("07:50"),
    case(
        "waits for an agent, which lacks a login only",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::Agent, None))],
        ["waiting", "mail was due at 08:00 and waits: the agent is not logged in; `ollim-bot login` logs it in.", "Next: tomorrow at 08:00 (in 23h 55m), if the agent is logged in by then: jobs wait for that since 07:50."],
    )
    .no_login("07:50"),
    case(
        "waits for what the machine lacks",
        &[FILE, SEE, CLAIM, ("08:00", Lacks("the machine runs on its battery (`requires: power`)"))],
        ["waiting", "mail was due at 08:00 and waits: the machine runs on its battery (`requires: power`).", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "waits for the main session",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::MainSession, None))],
        ["waiting", "mail was due at 08:00 and waits: the main session is busy.", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "waits, and the service has ended",
        &[FILE, SEE, CLAIM, ("08:00", Delayed(DelayCause::Slot, None))],
        ["waiting", "mail was due at 08:00 and waits: the service is not running; `ollim-bot run` starts it.", "Next: tomorrow at 08:00 (in 23h 55m), if the service runs by then: it is not running."],
    )
    .off(),
    case(
        "waits for an answer",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:01", Ask("git push origin main"))],
        ["on_time/question", "mail fired on time at 08:00; it waits for your answer since 08:01, until 08:11: git push origin main.", NEXT],
    ),
    case(
        "waits for its next attempt",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:01", Retry("no network.", "08:30"))],
        ["on_time/retry", "mail fired on time at 08:00; it failed (no network) and is tried again at 08:30.", NEXT],
    ),
    case(
        "its next attempt waits for a slot",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:01", Retry("no network.", "08:02")), ("08:02", Again), ("08:02", Delayed(DelayCause::Slot, None))],
        ["on_time/retry_waits", "mail fired on time at 08:00; it is to be tried a second time and waits: as many runs are going as may (`max_concurrent_runs: 4`).", "Next: tomorrow at 08:00 (in 23h 53m)."],
    ),
    case(
        "running",
        &[FILE, SEE, CLAIM, LAUNCH],
        ["on_time/running", "mail fired on time at 08:00; it is running, for 5m.", "Next: tomorrow at 08:00 (in 23h 55m)."],
    ),
    case(
        "was cut off, and the service is off",
        &[FILE, SEE, CLAIM, LAUNCH],
        ["on_time/cut_off", "mail fired on time at 08:00; it was cut off when the service ended; the next start runs it again unless it has had an effect.", "Next: tomorrow at 08:00 (in 23h 55m), if the service runs by then: it is not running."],
    )
    .off(),
    case(
        "the file is broken",
        &[FILE, SEE, CLAIM, LAUNCH, DONE, ("08:02", File("routines/mail.md", BROKEN))],
        ["file_broken", "mail does not fire: routines/mail.md, line 2: bad `cron` `99 8 * * *`: the minute field `99` is not valid (0-59).", ""],
    ),
    case(
        "the file is broken, and a time is asked about",
        &[FILE, SEE, CLAIM, LAUNCH, DONE, ("08:02", File("routines/mail.md", BROKEN))],
        ["not_readable", "nothing is recorded of mail at 07:30, and whether it was due is not known: routines/mail.md: bad `cron` `99 8 * * *`: the minute field `99` is not valid (0-59).", ""],
    )
    .when("mail", "07:30"),
    case(
        "the file is broken, and a coming time is asked about",
        &[FILE, SEE, CLAIM, LAUNCH, DONE, ("08:02", File("routines/mail.md", BROKEN))],
        ["not_readable", "mail does not fire at 09:30 unless its file can be read by then: routines/mail.md: bad `cron` `99 8 * * *`: the minute field `99` is not valid (0-59).", ""],
    )
    .when("mail", "09:30"),
    case(
        "the file was edited since",
        &[FILE, SEE, CLAIM, LAUNCH, DONE, ("08:02", File("routines/mail.md", EDITED))],
        ["on_time", "mail fired on time at 08:00; it did its work; its file was changed since.", "Next: tomorrow at 08:00 (in 23h 53m)."],
    ),
    case(
        "a reminder that is done",
        &[("07:00", File("reminders/tea.md", TEA)), CLAIM, LAUNCH, DONE, ("08:01", NoFile("reminders/tea.md"))],
        ["on_time", "tea fired on time at 08:00; it did its work.", "It is done, and does not fire again."],
    )
    .ask("tea"),
    case(
        "a reminder that was cancelled before it fired",
        &[FILE, ("07:00", File("reminders/tea.md", TEA)), ("07:30", ByHand), ("07:30", Launch), ("07:31", End(RunState::Cancelled, "a person ended it")), ("07:32", NoFile("reminders/tea.md"))],
        ["fired_by_hand/ended", "tea was fired by hand at 07:30; it was cancelled: a person ended it.", "It is over, and does not fire again."],
    )
    .ask("tea"),
    case(
        "a reminder that failed",
        &[("07:00", File("reminders/tea.md", TEA)), CLAIM, LAUNCH, ("08:01", Failed("error_result", "the model was lost.\nmore")), ("08:01", NoFile("reminders/tea.md")), ("08:01", File("reminders/failed/tea.md", TEA))],
        ["on_time/ended", "tea fired on time at 08:00; it failed: the model was lost.", "Its file is kept in reminders/failed/: `ollim-bot reminder retry tea` brings it back."],
    )
    .ask("tea"),
    case(
        "a reminder that was snoozed after it fired",
        &[("07:00", File("reminders/tea.md", TEA)), CLAIM, LAUNCH, DONE, ("08:01", File("reminders/tea.md", LATER))],
        ["on_time", "tea fired on time at 08:00; it did its work; its file was changed since.", "Next: 09:00 (in 54m): it was brought back."],
    )
    .ask("tea"),
    case(
        "a reminder that was snoozed before it fired",
        &[("07:00", File("reminders/tea.md", LATER)), ("07:30", Moved("08:00", "09:00"))],
        ["never_fired", "tea has not fired yet.", "Next: 09:00 (in 1h 25m): it was put off from 08:00."],
    )
    .ask("tea"),
    case(
        "a reminder that was snoozed long before its time",
        &[("07:00", File("reminders/tea.md", TEA)), ("07:30", Moved("09:00", "08:00"))],
        ["never_fired", "tea has not fired yet.", "Next: 08:00 (in 25m): it was brought forward from 09:00."],
    )
    .ask("tea"),
    case(
        "a chain that goes on",
        &[("07:00", File("reminders/check.md", CHECK)), CLAIM, LAUNCH, DONE, ("08:01", NoFile("reminders/check.md")), ("08:01", File("reminders/check-3.md", LINK))],
        ["on_time", "check fired on time at 08:00; it did its work.", "Its chain goes on at 09:00: check-3."],
    )
    .ask("check"),
    case(
        "a chain that nobody prolonged",
        &[("07:00", File("reminders/check.md", CHECK)), CLAIM, LAUNCH, DONE, ("08:01", NoFile("reminders/check.md"))],
        ["on_time", "check fired on time at 08:00; it did its work.", "Its chain ended with check 2 of 4: its run asked for no other."],
    )
    .ask("check"),
    case(
        "a watched folder that its rules do not open",
        &[("07:00", File("routines/mail.md", "---\nwatch: /usr\nbackground: true\nallowed_tools: []\n---\nx\n")), SEE],
        ["never_fired", "mail has not fired yet.", "It fires when something in /usr has changed, and now it sees no changes: its rules do not let it read /usr; `Read(//usr/**)` would."],
    ),
    case(
        "a chain that went on",
        &[("07:00", File("reminders/check.md", CHECK)), CLAIM, LAUNCH, DONE, ("08:01", NoFile("reminders/check.md")), ("08:01", File("reminders/check-3.md", LINK)), ("09:00", Claim("09:00")), ("09:00", Launch), ("09:01", Completed), ("09:01", NoFile("reminders/check-3.md"))],
        ["on_time", "check fired on time at 08:00; it did its work.", "Its chain went on; the last check that began is check-3: `ollim-bot why check-3`."],
    )
    .ask("check"),
    case(
        "a chain at its end",
        &[("07:00", File("reminders/check.md", LAST)), CLAIM, LAUNCH, DONE, ("08:01", NoFile("reminders/check.md"))],
        ["on_time", "check fired on time at 08:00; it did its work.", "Its chain ended with check 4 of 4: it was the last."],
    )
    .ask("check"),
    case(
        "a routine whose file was removed",
        &[FILE, SEE, CLAIM, LAUNCH, DONE, ("08:30", NoFile("routines/mail.md")), ("08:30", Event(EventKind::DefinitionRemoved))],
        ["on_time", "mail fired on time at 08:00; it did its work.", "Its file was removed at 08:30. It does not fire again."],
    ),
    case(
        "an unknown id",
        &[FILE, SEE],
        ["there is no job `mial`, and none has run under that id", "did you mean `mail`?", ""],
    )
    .ask("mial"),
    case(
        "not fired yet",
        &[FILE, SEE],
        ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m)."],
    ),
    case(
        "due, and the service is off",
        &[FILE, SEE, ("08:30", File("routines/mail.md", MAIL))],
        ["overdue", "mail was due at 08:00 and has not fired: the service is not running; `ollim-bot run` starts it.", "Next: tomorrow at 08:00 (in 23h 25m), if the service runs by then: it is not running."],
    )
    .off(),
    case(
        "due, and everything is paused",
        &[FILE, SEE, ("07:30", PauseAll), ("08:30", File("routines/mail.md", MAIL))],
        ["overdue", "mail was due at 08:00 and has not fired: everything is paused, since 07:30; `ollim-bot resume` ends that.", "Next: tomorrow at 08:00 (in 23h 25m), if `ollim-bot resume` comes before: everything is paused since 07:30."],
    ),
    case(
        "due, and the disk is full",
        &[FILE, SEE, ("08:30", File("routines/mail.md", MAIL))],
        ["overdue", "mail was due at 08:00 and has not fired: the disk is full.", "Next: tomorrow at 08:00 (in 23h 25m), if it can by then: the disk is full."],
    )
    .full_disk(),
    case(
        "due, and nobody is logged in",
        &[("06:00", File("routines/mail.md", HOURLY)), ("06:30", See), ("08:30", File("routines/mail.md", HOURLY))],
        ["overdue", "mail was due 2 times since 07:00 and has not fired: jobs wait for a login, since 06:50; `ollim-bot login` brings it.", "Next: 09:00 (in 25m), if the agent is logged in by then: jobs wait for that since 06:50."],
    )
    .no_login("06:50"),
    case(
        "due, and there is no agent",
        &[("06:00", File("routines/mail.md", HOURLY)), ("06:30", See), ("08:30", File("routines/mail.md", HOURLY))],
        ["overdue", "mail was due 2 times since 07:00 and has not fired: jobs wait for the agent, since 06:50: `claude` was not found; install it.", "Next: 09:00 (in 25m), if the agent is there by then: jobs wait for it since 06:50."],
    )
    .no_agent("06:50"),
    case(
        "disabled",
        &[("07:00", File("routines/mail.md", DISABLED)), SEE],
        ["never_fired", "mail has not fired yet.", "It does not fire: it is disabled in its file; `ollim-bot resume mail` ends that."],
    ),
    case(
        "paused after failures",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:01", Failed("error_result", "no network")), ("08:01", Pause(5))],
        ["on_time/ended", "mail fired on time at 08:00; it failed: no network.", "It is paused since 08:01, after 5 failures in a row; `ollim-bot resume mail` or an edit ends that."],
    ),
    case(
        "the budget is spent before the next",
        &[("07:00", File("routines/mail.md", HOURLY)), SEE, ("07:30", Costs(5.0)), CLAIM, LAUNCH, DONE],
        ["on_time", "mail fired on time at 08:00; it did its work.", "Next: 09:00 (in 54m), and it is skipped then: the budget of the day is spent until tomorrow at 00:00."],
    ),
    case(
        "the tokens are spent before the next",
        &[("07:00", File("routines/mail.md", HOURLY)), SEE, ("07:30", Tokens(2_000_000)), CLAIM, LAUNCH, DONE],
        ["on_time", "mail fired on time at 08:00; it did its work.", "Next: 09:00 (in 54m), and it is skipped then: the tokens of the day are spent until tomorrow at 00:00."],
    ),
    case(
        "its own cap is spent before the next",
        &[("07:00", File("routines/mail.md", CAPPED)), SEE, ("07:30", OwnCosts(1.0))],
        ["fired_by_hand", "mail was fired by hand at 07:30; it did its work.", "Next: 08:00 (in 25m), and it is skipped then: its `max_cost_day_usd` is spent until tomorrow at 00:00."],
    ),
    case(
        "a time to come, and its own cap is spent",
        &[("07:00", File("routines/mail.md", CAPPED)), SEE, ("07:30", OwnCosts(1.0))],
        ["will_fire", "mail falls due at 09:00, in 1h 25m, and it is skipped then: its `max_cost_day_usd` is spent until tomorrow at 00:00.", ""],
    )
    .when("mail", "9:00"),
    case(
        "it needs more than its time",
        &[("07:00", File("routines/mail.md", CONDITIONS)), SEE],
        ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), if the machine is online, the machine runs on mains power, you approve it and its gate lets it."],
    ),
    case(
        "a time to come, and it needs more",
        &[("07:00", File("routines/mail.md", CONDITIONS)), SEE],
        ["will_fire", "mail fires at 08:00, in 55m, if the machine is online, the machine runs on mains power, you approve it and its gate lets it.", ""],
    )
    .when("mail", "8:00"),
    case(
        "it follows another job, and needs more",
        &[("07:00", File("routines/triage.md", TRIAGE)), ("07:00", File("routines/mail.md", APPROVED_AFTER)), SEE],
        ["never_fired", "mail has not fired yet.", "It fires when `triage` has completed, if you approve it."],
    ),
    case(
        "ended by a newer one",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:01", End(RunState::Cancelled, "a newer occurrence fell due (on_overlap: cancel)"))],
        ["on_time/ended", "mail fired on time at 08:00; it was cancelled: a newer occurrence fell due (on_overlap: cancel).", NEXT],
    ),
    case(
        "over its time",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:31", End(RunState::TimedOut, "it took longer than 30m (`timeout`)"))],
        ["on_time/ended", "mail fired on time at 08:00; it ran over its time: it took longer than 30m (`timeout`).", "Next: tomorrow at 08:00 (in 23h 24m)."],
    ),
    case(
        "ended before it began",
        &[FILE, SEE, CLAIM, ("08:01", End(RunState::Cancelled, "a person ended it"))],
        ["never_began/ended", "mail was due at 08:00 and never began; it was cancelled: a person ended it.", NEXT],
    ),
    case(
        "a time at which nothing was due",
        &[FILE, SEE, CLAIM, LAUNCH, DONE],
        ["nothing_due", "nothing of mail was due at 07:30; the first after it is 08:00.", ""],
    )
    .when("mail", "7:30"),
    case(
        "a time between two",
        &[("06:00", File("routines/mail.md", HOURLY)), ("06:30", See), ("07:00", Claim("07:00")), ("07:00", Launch), ("07:01", Completed), CLAIM, LAUNCH, DONE],
        ["nothing_due", "nothing of mail was due at 07:30; the occurrences around it are 07:00 and 08:00.", ""],
    )
    .when("mail", "7:30"),
    case(
        "a time that was recorded",
        &[("06:00", File("routines/mail.md", HOURLY)), ("06:30", See), ("07:00", Claim("07:00")), ("07:00", Launch), ("07:01", Completed), CLAIM, LAUNCH, ("08:01", Failed("error_result", "no network"))],
        ["on_time", "mail fired on time at 07:00; it did its work.", ""],
    )
    .when("mail", "7:00"),
    case(
        "a time to come",
        &[FILE, SEE, CLAIM, LAUNCH, DONE],
        ["will_fire", "mail fires tomorrow at 08:00, in 23h 54m.", ""],
    )
    .when("mail", "tomorrow 8:00"),
    case(
        "a time to come, disabled",
        &[("07:00", File("routines/mail.md", DISABLED)), SEE],
        ["will_not_fire", "mail is scheduled at 08:00 and will not fire then. It does not fire: it is disabled in its file; `ollim-bot resume mail` ends that.", ""],
    )
    .when("mail", "8:00"),
    case(
        "a time before the file was there",
        &[("08:30", File("routines/mail.md", MAIL)), ("08:30", See), ("08:30", Event(EventKind::DefinitionChanged))],
        ["did_not_count", "nothing is recorded of mail at 08:00: its file was written or changed at 08:30, and what lies before that does not count.", ""],
    )
    .when("mail", "8:00"),
    case(
        "a time of which nobody knows",
        &[("08:30", File("routines/mail.md", MAIL)), ("08:30", See)],
        ["did_not_count", "nothing is recorded of mail at 08:00: it was new, changed, disabled or paused then, or the record is gone; which of these is not recorded.", ""],
    )
    .when("mail", "8:00"),
    case(
        "a time that is due",
        &[FILE, SEE, ("08:30", File("routines/mail.md", MAIL))],
        ["not_fired_yet", "mail was due at 08:00 and has not fired: the service is not running; `ollim-bot run` starts it.", ""],
    )
    .off()
    .when("mail", "8:00"),
    case(
        "the second of two that the clocks show",
        &[("01T23:00", File("routines/mail.md", BERLIN)), ("01T23:00", See)],
        ["repeated_hour", "mail was not due again: the clocks showed 02:30 twice, and it fires the first time.", ""],
    )
    .when("mail", "2026-10-25T02:30:00+01:00"),
    case(
        "a run, as the button asks",
        &[FILE, SEE, CLAIM, LAUNCH, ("08:01", Failed("error_result", "no network"))],
        ["on_time/ended", "mail fired on time at 08:00; it failed: no network.", ""],
    )
    .ask("RUN"),
    case("another host had it", &[FILE, SEE, ATTIC, LAPTOP, CLAIM, LAUNCH, DONE, ("08:01", On("laptop"))], ["elsewhere/on_time", "the host laptop had it: mail fired on time at 08:00; it did its work.", "Next: tomorrow at 08:00 (in 23h 54m)."]),
    case("another host had it, and it failed", &[FILE, SEE, ATTIC, GONE, CLAIM, LAUNCH, ("08:01", Failed("crashed", "no such thing")), ("08:01", On("laptop"))], ["elsewhere/on_time/ended", "the host laptop had it: mail fired on time at 08:00; it failed: no such thing.", "Next: tomorrow at 08:00 (in 23h 54m)."]),
    case("another host skipped it", &[FILE, SEE, ATTIC, LAPTOP, ("08:00", Skip("08:00", "gate: no mail")), ON], ["elsewhere/skipped_gate", "the host laptop had it: mail did not run at 08:00: its gate found nothing to do (no mail).", "Next: tomorrow at 08:00 (in 23h 55m)."]),
    case("another host runs it, and this one is off", &[FILE, SEE, ("07:00", Host("attic", false, 0, "", false)), LAPTOP, CLAIM, LAUNCH, ON], ["elsewhere/on_time/running", "the host laptop has it: mail fired on time at 08:00; it is running, for 5m.", "Next: tomorrow at 08:00 (in 23h 55m), if the service runs by then: it is not running."]).off(),
    case("another host is to begin it", &[FILE, SEE, ATTIC, LAPTOP, CLAIM, ON], ["waiting", "mail was due at 08:00 and waits: the host laptop has it, and is to begin it.", "Next: tomorrow at 08:00 (in 23h 55m)."]),
    case("another host went away before it began", &[FILE, SEE, ATTIC, GONE, CLAIM, ON], ["waiting", "mail was due at 08:00 and waits: the host laptop has it, and went away at 07:30; a host that is up and may run it takes it over.", "Next: tomorrow at 08:00 (in 23h 55m)."]),
    case("another host went away while it ran", &[FILE, SEE, ATTIC, GONE, CLAIM, LAUNCH, ON], ["elsewhere/on_time/host_gone", "the host laptop has it: mail fired on time at 08:00; it was left open when that host went away at 07:30; a host that is up and may run it takes it over.", "Next: tomorrow at 08:00 (in 23h 55m)."]),
    case("its hosts name another", &[("07:00", File("routines/mail.md", ON_LAPTOP)), SEE, ATTIC, LAPTOP], ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), on laptop: its `hosts` name laptop."]),
    case("its hosts name a label", &[("07:00", File("routines/mail.md", ON_LAPTOP)), SEE, ATTIC, ("07:00", Host("den", true, 0, "gpu laptop", false))], ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), on den: its `hosts` name laptop."]),
    case("no host that it names is up", &[("07:00", File("routines/mail.md", ON_LAPTOP)), SEE, ATTIC, GONE], ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), if a host that may run it is up by then: its `hosts` name laptop."]),
    case("no host that it names was up", &[("07:00", File("routines/mail.md", ON_LAPTOP)), SEE, ATTIC, GONE, ("08:00", File("routines/mail.md", ON_LAPTOP))], ["overdue", "mail was due at 08:00 and has not fired: no host that may run it is up (its `hosts` name laptop).", "Next: tomorrow at 08:00 (in 23h 55m), if a host that may run it is up by then: its `hosts` name laptop."]),
    case("another host has the main session", &[FILE, SEE, ("07:00", Host("attic", true, 0, "", false)), ("07:00", Host("laptop", true, 0, "", true))], ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), on laptop: it goes on from the main session, which laptop has."]),
    case("the clock of this host is off", &[("07:00", File("routines/mail.md", ISOLATED)), SEE, ("07:00", Host("attic", true, 12, "", true)), LAPTOP], ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), on laptop: the clock of attic is 12.0 s ahead, and nothing fires by it."]),
    case("the clock of the one host is off", &[("07:00", File("routines/mail.md", ISOLATED)), SEE, ("07:00", Host("attic", true, -12, "", true)), GONE], ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), if a host that may run it is up by then: the clock of attic is 12.0 s behind, and nothing fires by it."]),
    case("this host is off, and another is not", &[("07:00", File("routines/mail.md", ISOLATED)), SEE, ("07:00", Host("attic", false, 0, "", false)), LAPTOP], ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), on laptop: the service of attic is not running."]).off(),
    case("all hosts are off", &[("07:00", File("routines/mail.md", ISOLATED)), SEE, ("07:00", Host("attic", false, 0, "", false)), GONE], ["never_fired", "mail has not fired yet.", "Next: 08:00 (in 55m), if the service runs by then: it is not running."]).off(),
    case("it is to fire on another host", &[("07:00", File("routines/mail.md", ON_LAPTOP)), SEE, ATTIC, LAPTOP], ["will_fire", "mail fires tomorrow at 08:00, in 1d, if it can by then: it is left to laptop, since its `hosts` name laptop.", ""]).when("mail", "tomorrow 08:00"),
];
