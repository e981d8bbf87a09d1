//! What the service is given to do, and which job makes it meet which step.

use chrono::{DateTime, SecondsFormat, Utc};
use ollim_bot::failpoints::Step;

use crate::rng::Rng;

/// What a job's client does (`client.sh`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Quiet,
    /// One call with an effect.
    Effect,
    /// The same, and takes its time.
    Slow,
    /// A message to the person.
    Ping,
    /// A turn of the main session: its answer is the message.
    Foreground,
    /// Makes the next link of its chain, which does nothing.
    Chain,
    /// Ends as failed; is not retried.
    Fail,
    /// Exits before its end, every time; is retried.
    Flaky,
    /// A message of several parts to Telegram. No client is started.
    OnTelegram,
    /// The same to Discord.
    OnDiscord,
    /// A line without a client, which is its effect.
    Line,
    /// Nothing, and only where its gate wakes it.
    Gated,
    /// Costs money, of which a day has what [`PAYS_FOR`] of them cost.
    Paid,
}

impl Kind {
    pub const ALL: [Self; 13] = [
        Self::Quiet,
        Self::Effect,
        Self::Slow,
        Self::Ping,
        Self::Foreground,
        Self::Chain,
        Self::Fail,
        Self::Flaky,
        Self::OnTelegram,
        Self::OnDiscord,
        Self::Line,
        Self::Gated,
        Self::Paid,
    ];

    /// One that a reminder may be of.
    pub fn any(rng: &mut Rng) -> Self {
        Self::ALL[usize::try_from(rng.word() % 10).unwrap()]
    }

    /// The word that the client reads.
    pub fn word(self) -> &'static str {
        match self {
            Self::Quiet | Self::Foreground => "quiet",
            Self::Effect => "effect",
            Self::Slow => "slow",
            Self::Ping => "ping",
            Self::Chain => "chain",
            Self::Fail => "fail",
            Self::Flaky => "flaky",
            Self::OnTelegram => "telegram",
            Self::OnDiscord => "discord",
            Self::Line => "line",
            Self::Gated => "gated",
            Self::Paid => "paid",
        }
    }

    /// What the file says of it.
    pub fn fields(self) -> &'static str {
        match self {
            Self::Foreground => "",
            Self::Quiet => "background: true\nisolated: true\nallowed_tools: []\n",
            Self::Effect | Self::Slow => "background: true\nisolated: true\nallowed_tools:\n  - Bash(logger *)\n",
            Self::Ping => "background: true\nisolated: true\nallowed_tools:\n  - mcp__discord__ping_user\n",
            Self::Chain => {
                "background: true\nisolated: true\nmax_chain: 1\nallowed_tools:\n  - mcp__discord__follow_up_chain\n"
            }
            Self::Fail => "background: true\nisolated: true\nretry: 0\nallowed_tools: []\n",
            Self::Flaky => "background: true\nisolated: true\nallowed_tools: []\n",
            Self::OnTelegram => "client: notify\nchannel: tg\n",
            Self::OnDiscord => "client: notify\nchannel: discord\n",
            Self::Line => "client: exec\ncommand: echo \"$TMPDIR\" >> kept/lines\nallowed_tools: ['Edit(kept/**)']\n",
            // It counts by what it keeps, and wakes at each second count.
            Self::Gated => {
                "background: true\nisolated: true\nallowed_tools: ['Edit(kept/**)', Read]\ngate: |\n  \
                 n=0; test ! -e \"$OLLIM_STATE/n\" || read n < \"$OLLIM_STATE/n\"; echo $((++n)) > \"$OLLIM_STATE/n\"\n  \
                 echo \"$TMPDIR $n\" >> kept/gates; ((n % 2)) || { echo even; exit 1; }\n"
            }
            Self::Paid => {
                "background: true\nisolated: true\nallowed_tools: []\nmax_cost_usd: 0.02\nmax_cost_day_usd: 0.1\n"
            }
        }
    }

    /// One that makes the service meet a step; `None`: any does.
    pub fn that_meets(step: Step) -> Option<Self> {
        match step {
            Step::BeforeMark | Step::Marked => Some(Self::Effect),
            Step::BeforeMessage | Step::MessageRecorded => Some(Self::Ping),
            Step::BeforeLink | Step::LinkMade => Some(Self::Chain),
            Step::Staged | Step::Placed | Step::FailedCopied => Some(Self::Fail),
            Step::Routed | Step::BeforeShow | Step::Shown | Step::DeliveryRecorded => Some(Self::Foreground),
            Step::PartSent => Some(Self::OnTelegram),
            Step::PartRecorded => Some(Self::OnDiscord),
            Step::LeftoversEnded | Step::BeforeAgain | Step::AgainRecorded => Some(Self::Slow),
            _ => None,
        }
    }
}

/// How many words a message of several parts has.
pub const WORDS: usize = 1000;

/// A reminder that was given, with its file's name as id.
#[derive(Clone, Debug)]
pub struct Job {
    /// In its text, and in no other's.
    pub token: String,
    pub kind: Kind,
    /// Whether its file came to its place: a command that is killed may not come to that.
    pub there: bool,
}

impl Job {
    pub fn body(&self) -> String {
        let mut body = format!("kind={} token={}.", self.kind.word(), self.token);
        if matches!(self.kind, Kind::OnTelegram | Kind::OnDiscord) {
            (0..WORDS).for_each(|word| body.push_str(&format!(" {}/{word}", self.token)));
        }
        body
    }

    /// A reminder's file.
    pub fn text(&self, at: DateTime<Utc>) -> String {
        let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        format!("---\nrun_at: \"{at}\"\n{}---\n{}\n", self.kind.fields(), self.body())
    }
}

/// So many runs of [`Kind::Paid`] a day pays for.
pub const PAYS_FOR: usize = 5;

/// The routines of a folder, each due every minute: its id, and the rest of its file.
pub const ROUTINES: [(&str, Kind, &str); 9] = [
    ("latest", Kind::Effect, "on_missed: latest\n"),
    ("all", Kind::Quiet, "on_missed: all\non_overlap: queue\n"),
    ("skip", Kind::Slow, "on_missed: skip\n"),
    ("asks", Kind::Quiet, "approve: true\nask: { deadline: 3s }\n"),
    ("line", Kind::Line, "on_missed: latest\non_overlap: queue\n"),
    ("pulse", Kind::Line, "every: 1m\non_missed: all\non_overlap: queue\n"),
    ("gated", Kind::Gated, "on_missed: latest\non_overlap: queue\n"),
    ("paid", Kind::Paid, "on_missed: all\non_overlap: queue\n"),
    // A machine without a network waits, and then skips it.
    ("needs", Kind::Quiet, "requires: [online]\nrequires_for: 2s\non_missed: all\non_overlap: queue\n"),
];

/// A routine's file.
pub fn routine(id: &str, kind: Kind, fields: &str) -> String {
    let when = if fields.starts_with("every: ") { "" } else { "cron: \"* * * * *\"\n" };
    // A line has no prompt.
    let body = if kind == Kind::Line { "# " } else { "---\n" };
    let end = if kind == Kind::Line { "---\n" } else { "" };
    format!("---\n{when}{fields}{}{body}kind={} token={id}.\n{end}", kind.fields(), kind.word())
}

/// A routine that runs after each completed run of `latest`.
pub const FOLLOWER: &str = "follower";

/// Its file.
pub fn follower() -> String {
    let fields = Kind::Quiet.fields();
    format!("---\nafter: latest\non_overlap: queue\n{fields}---\nkind=quiet token={FOLLOWER}.\n")
}

/// A routine that watches the folder `drop` of `work/`.
pub const WATCHER: &str = "watcher";

/// Its file.
pub fn watcher() -> String {
    let fields = Kind::Quiet.fields();
    format!("---\nwatch: drop\non_overlap: queue\n{fields}---\nkind=quiet token={WATCHER}.\n")
}

/// A webhook, to which the same is delivered again and again.
pub const WEBHOOK: &str = "sent";

/// What its sender presents.
pub const SECRET: &str = "a secret of the sender's";

/// Its file.
pub fn webhook() -> String {
    format!("---\nsecret_env: SENDER\n{}---\nkind=quiet token={WEBHOOK}.\n", Kind::Quiet.fields())
}
