//! Named steps at which a test kills this process, or makes one file operation fail.
//!
//! They exist only with the cargo feature `failpoints`, which is for tests. Without it [`fail_point!`](fail_point)
//! expands to nothing, and no name of a step gets into the binary. (Why not the `fail` crate: it has no SIGKILL at the
//! n-th passage, and no list of names that the compiler checks.)
//!
//! `OLLIM_FAIL_AT=STEP[:PASSAGE[:io|:stop|:term]]` selects a step and a passage, the first by default. The process then
//! kills itself; with `io` the operation fails once instead, if it can; with `stop` the process stops itself as by
//! SIGSTOP, until it gets SIGCONT; with `term` it gets SIGTERM, whose handlers have run when it goes on. This module
//! knows nothing of the code around a step.

/// Marks a step in the life of an occurrence, or of the service.
macro_rules! fail_point {
    ($step:ident) => {{
        #[cfg(feature = "failpoints")]
        $crate::failpoints::reach($crate::failpoints::Step::$step);
    }};
    // For a function that returns `io::Result`, and so can return the failure.
    (try $step:ident) => {{
        #[cfg(feature = "failpoints")]
        $crate::failpoints::reach_io($crate::failpoints::Step::$step)?;
    }};
}

#[cfg(feature = "failpoints")]
pub use enabled::{Step, ahead, of_lease};
#[cfg(feature = "failpoints")]
pub(crate) use enabled::{reach, reach_io};

/// Returns a span of a host's lease unchanged. Only tests shorten it.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn of_lease(span: std::time::Duration) -> std::time::Duration {
    span
}

#[cfg(feature = "failpoints")]
mod enabled {
    use std::io::{self, Write as _};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use chrono::TimeDelta;

    macro_rules! steps {
        ($($(#[doc = $doc:literal])+ $step:ident = $name:literal,)+) => {
            /// A step at which a process may be killed.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum Step { $($(#[doc = $doc])+ $step,)+ }

            impl Step {
                /// All steps, in the order in which an occurrence reaches them.
                pub const ALL: &[Self] = &[$(Self::$step,)+];

                /// Returns the name in `OLLIM_FAIL_AT`.
                #[must_use]
                pub const fn name(self) -> &'static str {
                    match self { $(Self::$step => $name,)+ }
                }
            }
        };
    }

    steps! {
        /// The data folder is locked. Nothing else has happened.
        Locked = "locked",
        /// The journal's file exists, without tables.
        JournalMade = "journal-made",
        /// The journal is open.
        JournalOpened = "journal-opened",
        /// The definitions are read. The search for leftovers of the previous process is about to begin.
        BeforeRecovery = "before-recovery",
        /// Processes that the previous process left have ended. Their runs are still recorded as running.
        LeftoversEnded = "leftovers-ended",
        /// The runs that were running are recorded as interrupted.
        Recovered = "recovered",
        /// A further attempt is about to be recorded.
        BeforeAgain = "before-again",
        /// The attempt is recorded.
        AgainRecorded = "again-recorded",
        /// The start of routines' accounts is about to be determined and recorded.
        BeforeSight = "before-sight",
        /// The start is recorded.
        Sighted = "sighted",
        /// The due occurrences are about to be claimed.
        BeforeClaim = "before-claim",
        /// The claims are committed.
        Claimed = "claimed",
        /// Definitions of the database have records for their times, and are about to get their next times.
        BeforeMove = "before-move",
        /// The next times are committed.
        TimeMoved = "time-moved",
        /// Files have changed, and the occurrences that they trigger are about to be claimed.
        BeforeBurst = "before-burst",
        /// The occurrences are claimed.
        BurstClaimed = "burst-claimed",
        /// A delivery to a webhook is about to be claimed.
        BeforeDelivery = "before-delivery",
        /// The delivery is claimed. Its sender has no answer yet.
        Delivered = "delivered",
        /// The person is about to be asked whether a run may begin, or their answer is about to be read.
        BeforeApproval = "before-approval",
        /// The person has approved. The run has not begun.
        Approved = "approved",
        /// An attempt is about to be recorded as running.
        BeforeLaunch = "before-launch",
        /// The attempt is recorded as running. Nothing has been started for it.
        Launched = "launched",
        /// A gate has given its verdict. Its new state waits for the run's end.
        GateEnded = "gate-ended",
        /// A run has reserved its spending limit.
        CapTaken = "cap-taken",
        /// The client is about to be started.
        BeforeSpawn = "before-spawn",
        /// The client is started, but not recorded.
        Spawned = "spawned",
        /// Its start is recorded.
        StartRecorded = "start-recorded",
        /// A call with an effect was decided, and is about to be marked.
        BeforeMark = "before-mark",
        /// The call is marked. The client has not been allowed to make it yet.
        Marked = "marked",
        /// A message to the person is about to be recorded.
        BeforeMessage = "before-message",
        /// The message is recorded.
        MessageRecorded = "message-recorded",
        /// A command or a button of the person is about to have its effect.
        InputBegun = "input-begun",
        /// A message of the person is about to be recorded.
        BeforeWord = "before-word",
        /// The message is recorded. Its turn has not begun.
        WordRecorded = "word-recorded",
        /// A chain's follow-up is about to be created.
        BeforeLink = "before-link",
        /// Its file is written.
        LinkMade = "link-made",
        /// An attempt is over, and its end is about to be recorded.
        BeforeOutcome = "before-outcome",
        /// The end is recorded, with all messages to the person about it.
        OutcomeRecorded = "outcome-recorded",
        /// A message shows the progress of a turn, but is not recorded.
        StatusShown = "status-shown",
        /// The channels of a message are chosen.
        Routed = "routed",
        /// A message is about to be sent.
        BeforeShow = "before-show",
        /// A part of a message is sent, but not recorded.
        PartSent = "part-sent",
        /// The part is recorded. The next one is not sent.
        PartRecorded = "part-recorded",
        /// The message is sent, but not marked as delivered.
        Shown = "shown",
        /// The message is marked as delivered.
        DeliveryRecorded = "delivery-recorded",
        /// A reminder's file is about to be removed or moved away.
        BeforeFile = "before-file",
        /// A new text is written to a temporary file.
        Staged = "staged",
        /// The file is in its place. The folder is not synced.
        Placed = "placed",
        /// A failed reminder is in `failed/`, and still in its old place.
        FailedCopied = "failed-copied",
        /// A file is removed. The folder is not synced.
        Removed = "removed",
        /// A reminder's file is dealt with, but that is not recorded.
        FileDone = "file-done",
        /// That is recorded.
        FileRecorded = "file-recorded",
        /// The schedule has ended. The journal is open.
        ScheduleEnded = "schedule-ended",
        /// The journal is closed. The socket still exists.
        JournalClosed = "journal-closed",
        /// The lease on a shared journal is about to be renewed.
        BeforeRenewal = "before-renewal",
        /// The lease is renewed. The other hosts have not been checked since.
        Renewed = "renewed",
        /// The leftovers of a host that disappeared are about to be taken over.
        BeforeTakeOver = "before-take-over",
        /// That host's lease is void, in a transaction that is not committed yet.
        EpochRaised = "epoch-raised",
        /// The leftovers belong to this host.
        TakenOver = "taken-over",
        /// The lease is lost, and the process is about to execute itself.
        BeforeExec = "before-exec",
    }

    impl Step {
        /// The steps that only a host with definitions in the database reaches.
        pub const PUSHED: &[Self] = &[Self::BeforeMove, Self::TimeMoved];

        /// The steps that only a host with a shared journal reaches.
        pub const SHARED: &[Self] = &[
            Self::BeforeRenewal,
            Self::Renewed,
            Self::BeforeTakeOver,
            Self::EpochRaised,
            Self::TakenOver,
            Self::BeforeExec,
        ];
    }

    /// The effect of reaching the step.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum FailAction {
        Kill,
        Io,
        Stop,
        Term,
    }

    /// The parsed value of `OLLIM_FAIL_AT`.
    struct FailRequest {
        step: Step,
        passage: u32,
        way: FailAction,
        passed: AtomicU32,
    }

    fn request() -> Option<&'static FailRequest> {
        static REQUEST: OnceLock<Option<FailRequest>> = OnceLock::new();
        REQUEST
            .get_or_init(|| {
                let text = std::env::var("OLLIM_FAIL_AT").ok()?;
                let request = read(&text);
                if request.is_none() {
                    // A test that names an unknown step would prove nothing.
                    let _ = writeln!(
                        io::stderr(),
                        "OLLIM_FAIL_AT={text}: not STEP[:PASSAGE[:io|:stop|:term]] with a step that there is"
                    );
                    std::process::abort();
                }
                request
            })
            .as_ref()
    }

    fn read(text: &str) -> Option<FailRequest> {
        let mut parts = text.split(':');
        let name = parts.next()?;
        let step = Step::ALL.iter().copied().find(|step| step.name() == name)?;
        let passage = parts.next().map_or(Some(1), |number| number.parse().ok().filter(|number| *number > 0))?;
        let way = match parts.next() {
            None => FailAction::Kill,
            Some("io") => FailAction::Io,
            Some("stop") => FailAction::Stop,
            Some("term") => FailAction::Term,
            Some(_) => return None,
        };
        parts.next().is_none().then_some(FailRequest { step, passage, way, passed: AtomicU32::new(0) })
    }

    /// Returns the wish if this is the selected passage.
    fn is_now(step: Step) -> Option<&'static FailRequest> {
        let request = request().filter(|request| request.step == step)?;
        (request.passed.fetch_add(1, Ordering::SeqCst) + 1 == request.passage).then_some(request)
    }

    pub(crate) fn reach(step: Step) {
        match is_now(step).map(|request| request.way) {
            None => {}
            Some(FailAction::Stop) => stop(),
            Some(FailAction::Term) => terminate(),
            Some(_) => die(),
        }
    }

    pub(crate) fn reach_io(step: Step) -> io::Result<()> {
        match is_now(step) {
            None => Ok(()),
            Some(FailRequest { way: FailAction::Io, .. }) => {
                Err(io::Error::other(format!("made to fail at {}", step.name())))
            }
            Some(FailRequest { way: FailAction::Stop, .. }) => {
                stop();
                Ok(())
            }
            Some(FailRequest { way: FailAction::Term, .. }) => {
                terminate();
                Ok(())
            }
            Some(_) => die(),
        }
    }

    /// Stops all threads, wherever they are.
    fn stop() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    }

    /// Gives this thread the signal, so that no other one handles it later.
    fn terminate() {
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
    }

    /// Ends the process as the kernel would: no handlers, no destructors, no flushed buffers.
    fn die() -> ! {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }

    /// Returns how far the clock is ahead of the machine's: `OLLIM_CLOCK_AHEAD`, in milliseconds. Lets a test come back
    /// minutes later.
    #[must_use]
    pub fn ahead() -> TimeDelta {
        static CLOCK_OFFSET: OnceLock<TimeDelta> = OnceLock::new();
        *CLOCK_OFFSET.get_or_init(|| {
            let text = std::env::var("OLLIM_CLOCK_AHEAD").unwrap_or_default();
            TimeDelta::milliseconds(text.parse().unwrap_or(0))
        })
    }

    /// Returns a span of a host's lease, scaled to `OLLIM_LEASE_PERCENT` percent.
    #[must_use]
    pub fn of_lease(span: Duration) -> Duration {
        static PERCENT: OnceLock<u32> = OnceLock::new();
        let percent = PERCENT.get_or_init(|| {
            let text = std::env::var("OLLIM_LEASE_PERCENT").unwrap_or_default();
            text.parse().unwrap_or(100)
        });
        span * *percent / 100
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_wish_names_a_step_that_there_is() {
            let read = |text| read(text).map(|request| (request.step, request.passage, request.way));
            assert_eq!(read("claimed"), Some((Step::Claimed, 1, FailAction::Kill)));
            assert_eq!(read("staged:3:io"), Some((Step::Staged, 3, FailAction::Io)));
            assert_eq!(read("marked:1:stop"), Some((Step::Marked, 1, FailAction::Stop)));
            for text in ["", "nowhere", "claimed:0", "claimed:x", "claimed:1:kill", "claimed:1:io:1"] {
                assert!(read(text).is_none(), "{text}");
            }
        }

        #[test]
        fn no_two_steps_share_a_name() {
            let names: std::collections::BTreeSet<&str> = Step::ALL.iter().map(|step| step.name()).collect();
            assert_eq!(names.len(), Step::ALL.len());
        }
    }
}
