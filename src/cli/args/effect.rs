//! What a command does: this decides who may call it.

use super::{Agents, Command, Policy, Reminder, Routine, Sessions};

/// What a command does, so far as it matters to who may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only shows something.
    Reads,
    /// It makes or changes definitions: a run may, as far as it has no less itself.
    Makes,
    /// It starts an agent, with no more than whoever starts it.
    Spawns,
    /// It changes runs or the service: the person's alone.
    Rules,
    /// It schedules the next link of the caller's own chain, and nothing else.
    FollowsUp,
    /// It is one of the person's own commands: what it does is its own.
    External,
}

impl Command {
    /// What the command does. Exhaustive on purpose: a new command must be classified.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            Self::Help { .. }
            | Self::Check { .. }
            | Self::Status
            | Self::Next(_)
            | Self::Runs(_)
            | Self::Policy(Policy::Show { .. })
            | Self::Agents(Agents::List | Agents::Show { .. })
            | Self::Sessions(Sessions::List | Sessions::Show { .. })
            | Self::Inbox { .. }
            | Self::Budget { set: None }
            | Self::Config
            | Self::Completions { .. }
            | Self::Routine(Routine::List | Routine::Show { .. })
            | Self::Reminder(Reminder::List | Reminder::Show { .. })
            | Self::Fire { dry_run: true, .. } => Effect::Reads,
            Self::Run(_)
            | Self::Init { .. }
            | Self::Fire { dry_run: false, .. }
            | Self::CancelRun { .. }
            | Self::Pause
            | Self::Resume { .. }
            | Self::FollowUpChain { chain: Some(_), .. }
            | Self::Sessions(Sessions::Patch { .. })
            | Self::Budget { set: Some(_) } => Effect::Rules,
            // A line is tried in the shell of a job, which may be another than the caller: what that one reads would be shown.
            Self::Policy(Policy::Explain(args)) if args.tool == "Bash" => Effect::Rules,
            Self::Policy(Policy::Explain(_)) => Effect::Reads,
            Self::Spawn(_) => Effect::Spawns,
            Self::Routine(
                Routine::Add(_)
                | Routine::Edit { .. }
                | Routine::Enable { .. }
                | Routine::Disable { .. }
                | Routine::Cancel { .. },
            )
            | Self::Reminder(
                Reminder::Add(_)
                | Reminder::Edit { .. }
                | Reminder::Cancel { .. }
                | Reminder::Snooze { .. }
                | Reminder::Restore { .. }
                | Reminder::Retry { .. },
            ) => Effect::Makes,
            Self::FollowUpChain { chain: None, .. } => Effect::FollowsUp,
            Self::External(_) => Effect::External,
        }
    }
}
