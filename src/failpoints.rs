//! Named steps at which a test has this process killed, or one operation on a file fail.
//!
//! Only with the cargo feature `failpoints`, which is for tests. Without it [`fail_point!`](fail_point) is nothing at
//! all, and no name of a step gets into the binary. (Why not the `fail` crate: what is wanted is SIGKILL at the n-th
//! passage, which it does not have, and a list of names that the compiler checks, which it does not keep.)
//!
//! `OLLIM_FAIL_AT=STEP[:PASSAGE[:io|:stop]]` says where: at the first passage or the given one, the process kills itself;
//! with `io` the operation fails instead, once, where it can; with `stop` the process stops itself, as SIGSTOP does, until
//! somebody lets it go on. Knows nothing of what stands around a step.

/// A step of an occurrence's life, or of the service's.
macro_rules! fail_point {
    ($step:ident) => {{
        #[cfg(feature = "failpoints")]
        $crate::failpoints::reach($crate::failpoints::Step::$step);
    }};
    // Where a failure can be returned: in a function that gives `io::Result`.
    (try $step:ident) => {{
        #[cfg(feature = "failpoints")]
        $crate::failpoints::reach_io($crate::failpoints::Step::$step)?;
    }};
}

#[cfg(feature = "failpoints")]
pub use enabled::{Step, ahead, of_lease};
#[cfg(feature = "failpoints")]
pub(crate) use enabled::{reach, reach_io};

/// A span by which hosts count their leases, as it is: only a test shortens it.
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
            /// Where a process may be killed.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum Step { $($(#[doc = $doc])+ $step,)+ }

            impl Step {
                /// All of them, in the order in which an occurrence meets them.
                pub const ALL: &[Self] = &[$(Self::$step,)+];

                /// As it is written in `OLLIM_FAIL_AT`.
                #[must_use]
                pub const fn name(self) -> &'static str {
                    match self { $(Self::$step => $name,)+ }
                }
            }
        };
    }

    steps! {
        /// The data folder is locked; nothing else has happened.
        Locked = "locked",
        /// The journal's file is there, and has no tables yet.
        JournalMade = "journal-made",
        /// The journal is open.
        JournalOpened = "journal-opened",
        /// The definitions are read; what an earlier life left is about to be looked for.
        BeforeRecovery = "before-recovery",
        /// Processes that an earlier life left are ended; their runs still stand as running.
        LeftoversEnded = "leftovers-ended",
        /// What was running stands as interrupted.
        Recovered = "recovered",
        /// A further attempt is about to be recorded.
        BeforeAgain = "before-again",
        /// It is recorded.
        AgainRecorded = "again-recorded",
        /// Since when routines are accounted for is about to be asked and recorded.
        BeforeSight = "before-sight",
        /// It is recorded.
        Sighted = "sighted",
        /// What is due is about to be claimed.
        BeforeClaim = "before-claim",
        /// The claims are committed.
        Claimed = "claimed",
        /// Files have changed, and what they set off is about to be claimed.
        BeforeBurst = "before-burst",
        /// It is claimed.
        BurstClaimed = "burst-claimed",
        /// What was delivered to a webhook is about to be claimed.
        BeforeDelivery = "before-delivery",
        /// It is claimed; whoever delivered it does not know yet.
        Delivered = "delivered",
        /// The person is about to be asked whether a run may begin, or their answer to be looked at.
        BeforeApproval = "before-approval",
        /// They have said yes; the run has not begun.
        Approved = "approved",
        /// An attempt is about to be recorded as running.
        BeforeLaunch = "before-launch",
        /// It is recorded as running; nothing has been started for it.
        Launched = "launched",
        /// A gate has said what it says, and what it keeps waits for the run's end.
        GateEnded = "gate-ended",
        /// A run has taken its cap from what is left.
        CapTaken = "cap-taken",
        /// The client is about to be started.
        BeforeSpawn = "before-spawn",
        /// It is started, and not recorded.
        Spawned = "spawned",
        /// Its start is recorded.
        StartRecorded = "start-recorded",
        /// A call with an effect was decided, and is about to be marked.
        BeforeMark = "before-mark",
        /// It is marked; the client has not been told yet that it may.
        Marked = "marked",
        /// A message to the person is about to be recorded.
        BeforeMessage = "before-message",
        /// It is recorded.
        MessageRecorded = "message-recorded",
        /// The person has said something, which is about to be recorded.
        BeforeWord = "before-word",
        /// It is recorded; its turn has not begun.
        WordRecorded = "word-recorded",
        /// A chain's next link is about to be made.
        BeforeLink = "before-link",
        /// Its file is written.
        LinkMade = "link-made",
        /// An attempt is over, and its end is about to be recorded.
        BeforeOutcome = "before-outcome",
        /// It is recorded, with all that the person is told of it.
        OutcomeRecorded = "outcome-recorded",
        /// A message shows how a turn goes, and that is not recorded.
        StatusShown = "status-shown",
        /// The channels of a message are chosen.
        Routed = "routed",
        /// A message is about to be sent.
        BeforeShow = "before-show",
        /// A part of a message is sent, and not recorded.
        PartSent = "part-sent",
        /// It is recorded; the next one is not sent.
        PartRecorded = "part-recorded",
        /// It is sent, and not marked as delivered.
        Shown = "shown",
        /// It is marked.
        DeliveryRecorded = "delivery-recorded",
        /// A reminder's file is about to be removed or moved away.
        BeforeFile = "before-file",
        /// A new text is written beside its place.
        Staged = "staged",
        /// It is in its place; the folder is not synced.
        Placed = "placed",
        /// A failed reminder stands in `failed/`, and still in its old place.
        FailedCopied = "failed-copied",
        /// A file is removed; the folder is not synced.
        Removed = "removed",
        /// A reminder's file is dealt with, and that is not recorded.
        FileDone = "file-done",
        /// It is recorded.
        FileRecorded = "file-recorded",
        /// The schedule has ended; the journal is open.
        ScheduleEnded = "schedule-ended",
        /// The journal is closed; the socket is still there.
        JournalClosed = "journal-closed",
        /// The lease on a shared journal is about to be renewed.
        BeforeRenewal = "before-renewal",
        /// It is renewed; nobody has looked at the other hosts since.
        Renewed = "renewed",
        /// What a host left that went away is about to be taken over.
        BeforeTakeOver = "before-take-over",
        /// That host's lease is void, in a commit that is not made yet.
        EpochRaised = "epoch-raised",
        /// What it left is this host's.
        TakenOver = "taken-over",
    }

    impl Step {
        /// Those that only a host meets that shares its journal with others.
        pub const SHARED: &[Self] =
            &[Self::BeforeRenewal, Self::Renewed, Self::BeforeTakeOver, Self::EpochRaised, Self::TakenOver];
    }

    /// What happens at a step.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Way {
        Kill,
        Io,
        Stop,
    }

    /// What `OLLIM_FAIL_AT` says.
    struct Wish {
        step: Step,
        passage: u32,
        way: Way,
        passed: AtomicU32,
    }

    fn wish() -> Option<&'static Wish> {
        static WISH: OnceLock<Option<Wish>> = OnceLock::new();
        WISH.get_or_init(|| {
            let text = std::env::var("OLLIM_FAIL_AT").ok()?;
            let wish = read(&text);
            if wish.is_none() {
                // A test that names no step would prove nothing.
                let _ = writeln!(
                    io::stderr(),
                    "OLLIM_FAIL_AT={text}: not STEP[:PASSAGE[:io|:stop]] with a step that there is"
                );
                std::process::abort();
            }
            wish
        })
        .as_ref()
    }

    fn read(text: &str) -> Option<Wish> {
        let mut parts = text.split(':');
        let name = parts.next()?;
        let step = Step::ALL.iter().copied().find(|step| step.name() == name)?;
        let passage = parts.next().map_or(Some(1), |number| number.parse().ok().filter(|number| *number > 0))?;
        let way = match parts.next() {
            None => Way::Kill,
            Some("io") => Way::Io,
            Some("stop") => Way::Stop,
            Some(_) => return None,
        };
        parts.next().is_none().then_some(Wish { step, passage, way, passed: AtomicU32::new(0) })
    }

    /// Whether this is the passage that was asked for.
    fn is_now(step: Step) -> Option<&'static Wish> {
        let wish = wish().filter(|wish| wish.step == step)?;
        (wish.passed.fetch_add(1, Ordering::SeqCst) + 1 == wish.passage).then_some(wish)
    }

    pub(crate) fn reach(step: Step) {
        match is_now(step).map(|wish| wish.way) {
            None => {}
            Some(Way::Stop) => stop(),
            Some(_) => die(),
        }
    }

    pub(crate) fn reach_io(step: Step) -> io::Result<()> {
        match is_now(step) {
            None => Ok(()),
            Some(Wish { way: Way::Io, .. }) => Err(io::Error::other(format!("made to fail at {}", step.name()))),
            Some(Wish { way: Way::Stop, .. }) => {
                stop();
                Ok(())
            }
            Some(_) => die(),
        }
    }

    /// Every thread stops, wherever it is.
    fn stop() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    }

    /// As the kernel would end it: no handler, no destructor, no buffer that is still written.
    fn die() -> ! {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }

    /// By how much the clock is ahead of the machine's: `OLLIM_CLOCK_AHEAD`, in milliseconds. Lets a test come back
    /// minutes later.
    #[must_use]
    pub fn ahead() -> TimeDelta {
        static AHEAD: OnceLock<TimeDelta> = OnceLock::new();
        *AHEAD.get_or_init(|| {
            let text = std::env::var("OLLIM_CLOCK_AHEAD").unwrap_or_default();
            TimeDelta::milliseconds(text.parse().unwrap_or(0))
        })
    }

    /// A span by which hosts count their leases: so many hundredths of it as `OLLIM_LEASE_PERCENT` says.
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
            let read = |text| read(text).map(|wish| (wish.step, wish.passage, wish.way));
            assert_eq!(read("claimed"), Some((Step::Claimed, 1, Way::Kill)));
            assert_eq!(read("staged:3:io"), Some((Step::Staged, 3, Way::Io)));
            assert_eq!(read("marked:1:stop"), Some((Step::Marked, 1, Way::Stop)));
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
