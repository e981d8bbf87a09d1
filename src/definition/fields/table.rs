//! The table of a definition's fields. Each row generates a field's storage, and its reading, writing, display and documentation.
//!
//! A row is
//!
//! ```text
//! /// One line of help.
//! name as member: Type = default, reader, { attributes }
//! ```
//!
//! `as member` also gives [`Definition`] a member of this type. A field without it is part of a trigger or a mode, which
//! [`Draft::from`] and the parser assemble. The reader converts a [`Value`](super::super::values::Value) into the type, and
//! [`FieldType`] converts the type into a [`FieldValue`](super::FieldValue). The attributes are those of [`Field`].

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;

use super::super::{
    DefinitionId, Deliver, Expect, Follows, JobClient, Kind, Mode, Need, OnMissed, OnOverlap, PayloadSchema, Remember,
    Signature, Thinking, Trigger, Urgency, WatchedFolder,
};
use super::{FALSE, Field, FieldKinds, FieldType, INTERNET, Limit, NO_NETWORK, TRUE, sets, takes};
use crate::policy::{AskTerms, JobNetwork, ToolPattern, UpdateMode};

macro_rules! fields {
    ($(
        #[doc = $help:literal]
        $name:ident $(as $member:ident)?: $type:ty = $default:expr, $read:expr, { $($attributes:tt)* }
    )*) => {
        /// A valid routine, reminder or webhook.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Definition {
            /// Its identity.
            pub id: DefinitionId,
            /// Its file, relative to the data folder: `reminders/tea.md`.
            pub file: PathBuf,
            /// The zone of its times: its own, else the configured one, else the system's.
            pub zone: Tz,
            /// The event that fires it.
            pub trigger: Trigger,
            /// Where it runs, with the restrictions of a background job.
            pub mode: Mode,
            /// The markdown body: the prompt, or a description of the command. Only a command may leave it blank.
            pub body: String,
            $($(#[doc = $help] pub $member: $type,)?)*
        }

        /// The fields of a file, before the rules across fields are checked. Writing a draft into a file checks them.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Draft {
            /// Routine, reminder or webhook.
            pub kind: Kind,
            /// The prompt.
            pub body: String,
            $(#[doc = $help] pub $name: $type,)*
        }

        impl Draft {
            /// Returns a draft with every field at its default.
            pub(crate) fn empty(kind: Kind, body: String) -> Self {
                let always_beside = kind == Kind::Webhook;
                let defaults = Self { kind, body, $($name: $default,)* };
                Self { on_missed: kind.on_missed(), background: always_beside, ..defaults }
            }

            /// Returns a draft with the fields that a definition has as members.
            pub(in super::super) fn of_members(definition: &Definition) -> Self {
                Self {
                    $($($name: definition.$member.clone(),)?)*
                    ..Self::empty(definition.kind(), definition.body.clone())
                }
            }

            /// Returns the definition with these fields as members.
            pub(crate) fn into_definition(
                self,
                (id, file, zone): (DefinitionId, PathBuf, Tz),
                trigger: Trigger,
                mode: Mode,
            ) -> Definition {
                Definition { id, file, zone, trigger, mode, body: self.body, $($($member: self.$name,)?)* }
            }
        }

        /// Every field, in the order in which the program writes them.
        pub static FIELDS: &[Field] = &[$(Field {
            name: stringify!($name),
            help: $help,
            shape: <$type as FieldType>::SHAPE,
            read: |value, draft| {
                draft.$name = $read(value)?.into();
                Ok(())
            },
            show: |draft| draft.$name.show(),
            $($attributes)*
            ..Field::BASE
        }),*];
    };
}

fields! {
    /// The job's id; two files with the same id are both refused
    id: Option<DefinitionId> = None, |v: &V| v.text().map(DefinitionId::new), {
        unset: "the file's name without `.md`",
        example: "check-the-oven", may_be_empty: true,
        flags: &[takes("id", "NAME").help("Its id; of a new job its file's name too, which is otherwise made from the text")],
        details: "`add` names the file after the text (`sort-the-mail.md`), with `-2` and so on where that is taken. In every \
                  command the file's name stands for the id, and so does the beginning of either; of four letters or more where the \
                  command changes something. Runs stay recorded under the id that they had.",
    }
    /// One line for lists
    description as description: String = String::new(), |v: &V| v.line(), {
        unset: "empty", example: "Triage the inbox", may_be_empty: true,
        flags: &[takes("description", "TEXT").short('d')],
    }
    /// Minute hour day month weekday: `30 8 * * 1-5`, or `@daily`
    cron: Option<String> = None, |v: &V| v.cron(), {
        on: FieldKinds::Routine, required: true, unset: ONE_OF_THESE, example: "'30 8 * * 1-5'", may_be_empty: true,
        not_with: &["every", "after", "watch"],
        flags: &[takes("cron", "WHEN").help("When it recurs: `30 8 * * 1-5`, `@daily`, `weekdays at 8:30`, `monthly on the 1st at 9`")],
        details: "`add` and `edit` take [phrases](#times) too, and write the expression.",
    }
    /// The time from one occurrence to the next: `2h`, `90m`
    every: Option<Duration> = None, |v: &V| v.period(), {
        on: FieldKinds::Routine, unset: ONE_OF_THESE, example: "90m", not_with: &["cron", "after", "watch"],
        flags: &[takes("every", "SPAN")],
        details: "A minute or more, as it elapses. It is counted from Monday, 1 January 2024, 0:00 in its zone, so that it does not drift, and knows no daylight \
                  saving: `24h` is an hour later in summer. See [times](cron.md#spans).",
    }
    /// The job that this one follows: it fires when that job ends
    after: Option<Follows> = None, |v: &V| v.follows(), {
        on: FieldKinds::Routine, unset: ONE_OF_THESE, example: "email-triage", not_with: &["cron", "every", "watch"],
        flags: &[takes("after", "ID").help("Fires after this job: its id, or 'job: ID, outcome: failed'")],
        details: "An id, or `{ job: ID, outcome: completed }` with `completed`, `failed` (it timed out, too) or `any` (it was cancelled, too). Each end \
                  is an occurrence of its own. One that was skipped has not run, and nothing follows it. See [jobs that follow](events.md).",
        limit: Limit::Other("What a job makes follows only that job itself and jobs that it has made."),
    }
    /// The folder to watch: the job fires when something in it changes
    watch: Option<WatchedFolder> = None, |v: &V| v.folder(), {
        on: FieldKinds::Routine, unset: ONE_OF_THESE, example: "inbox", not_with: &["cron", "every", "after"],
        flags: &[takes("watch", "PATH").help("Fires when something below this folder has changed")],
        details: "A folder of `work/` (`.` is all of it), or an absolute path that the job's rules let it read. What changes within 2 seconds \
                  is one occurrence, and the paths stand in the prompt. See [files that change](events.md#files-that-change).",
        limit: Limit::Other("What a job makes watches folders of `work/`, and what its own rules let it read."),
    }
    /// Spreads its times: delays each one by less than this
    jitter: Option<Duration> = None, |v: &V| v.jitter(), {
        on: FieldKinds::Routine, unset: "none", example: "5m", flags: &[takes("jitter", "SPAN")],
        details: "At most a day. How much later is always the same for the same job and time, never before its time, and always before the \
                  next one.",
    }
    /// How the sender authenticates: `bearer`, `github`, `stripe` or `slack`
    signature: Signature = Signature::Bearer, |v: &V| v.one_of::<Signature>(), {
        on: FieldKinds::Webhook, restricts: true, example: "github",
        details: "`bearer`: the header `Authorization: Bearer SECRET`. The others sign what they send with the secret, as GitHub, Stripe and Slack \
                  do. See [webhooks](webhooks.md).",
    }
    /// The variable in `.env` with the secret that the sender shares
    secret_env: String = DEFAULT_SECRET.to_owned(), |v: &V| v.variable(), {
        on: FieldKinds::Webhook, restricts: true, example: "GITHUB_WEBHOOK_SECRET",
        details: "A secret has 16 characters or more. Without it, nothing is accepted.",
    }
    /// A JSON Schema that each delivery must match
    fields: Option<PayloadSchema> = None, |v: &V| v.payload_schema(), {
        on: FieldKinds::Webhook, restricts: true, unset: "any JSON object",
        example: "{ type: object, required: [ref], properties: { ref: { type: string, maxLength: 200 } } }",
        details: "One that is not is refused, and the answer says why. `{{ref}}` in the text stands for the field `ref` of what was delivered. \
                  See [webhooks](webhooks.md#fields).",
    }
    /// Maximum number of deliveries a minute
    per_minute: u32 = 30, |v: &V| v.count(1), { on: FieldKinds::Webhook, restricts: true, example: "5" , }
    /// When it fires: a time with its offset, or a local time of `timezone`
    run_at: Option<DateTime<FixedOffset>> = None, |v: &V| v.instant(), {
        on: FieldKinds::Reminder, required: true, example: "2027-01-31T18:30:00+01:00", may_be_empty: true,
    }
    /// Wakes the machine from sleep, if the service has the privilege
    wake as wake: bool = false, |v: &V| v.flag(), {
        example: "true", flags: &[sets("wake", TRUE), sets("no-wake", FALSE).help("It waits until the machine is awake").only_edits()],
        details: "The machine's own clock wakes it, and the job runs some seconds late. It takes a privilege that the service does not \
                  have by itself: see [waking the machine](service.md#waking-the-machine). `check`, `status` and `doctor` say where it has no effect.",
        limit: Limit::Other("What a job makes wakes the machine only where the job does."),
    }
    /// The hosts that may run it, by name or label, if several hosts share the journal
    hosts as hosts: Vec<String> = Vec::new(), |v: &V| v.hosts(), {
        unset: "all", example: "[server]", restricts: true, flags: &[takes("hosts", "NAME")],
        details: "A host is named in its config.yaml by `host`, and has `host_labels`. The others leave the job alone. Where there is one host it is \
                  that one's, whatever it is called. See [several hosts](several-hosts.md).",
        limit: Limit::Other("What a job makes runs on the hosts of the job, or some of them."),
    }
    /// IANA zone of its times, e.g. Europe/Berlin
    timezone as own_zone: Option<Tz> = None, |v: &V| v.zone(), {
        unset: "`timezone` of config.yaml, else the system's", example: "Europe/Berlin", may_be_empty: true,
        flags: &[takes("timezone", "ZONE")],
    }
    /// `false`: the job is listed but never fires
    enabled as enabled: bool = true, |v: &V| v.flag(), {
        example: "false", restricts: true,
        flags: &[
            sets("disabled", FALSE).help("It is listed and never fires"),
            sets("enabled", TRUE).help("It fires again").only_edits(),
        ],
        details: "`ollim-bot pause ID` and `ollim-bot resume ID` set it, too.",
    }
    /// Who runs it: `notify` delivers it as written, `exec` runs `command`, `claude` is an agent
    client as client: Option<JobClient> = None, |v: &V| v.one_of::<JobClient>(), {
        restricts: true, unset: "`agent_client` of config.yaml; `notify` where a person's `reminder add` sets nothing that an agent needs",
        example: "notify", flags: &[takes("client", "WHO")],
        details: "What is delivered as written costs nothing, needs no login and waits for no run. A command needs no login, either: see \
                  [commands](exec.md). Fields that only an agent heeds cannot stand beside `notify` or `exec`. A job with `claude` waits \
                  where there is no agent.",
        limit: Limit::Other("A job makes background jobs only, so none that is delivered as it is written. One that runs as an agent makes no command."),
    }
    /// The command line that `client: exec` runs, without a model
    command as command: Option<String> = None, |v: &V| v.shell_line(), {
        command_only: true, restricts: true, unset: "none; `client: exec` needs it", example: "'tar -cf notes.tar notes'",
        flags: &[takes("command", "COMMAND").help("Runs this command line instead of an agent (`--client exec`)")],
        details: "It runs in the job's shell, under the job's own tools, like a [gate](gates.md). Exit 0: the run was completed. Anything \
                  else, or a program that was refused: it failed. What it prints is kept in the run's record. The text below the \
                  frontmatter is for people, and may be left out. See [commands](exec.md).",
        limit: Limit::Other("What a job makes runs its command with at most the tools that the job has, and makes no jobs itself."),
    }
    /// How its messages reach you: `digest`; for a command also failure, always, never
    deliver as deliver: Deliver = Deliver::Failure, |v: &V| v.one_of::<Deliver>(), {
        restricts: true, example: "digest", flags: &[takes("deliver", "WHEN")],
        details: "`digest`: it waits for the end of the next [quiet hours](channels.md#what-holds), and comes with all else that waited as one \
                  message. The news that it failed, and its questions, do not wait for that. Of a command, `failure`: its last lines, where it \
                  failed. `always`: all that it printed, each time it printed something; so it is with `digest`. `never`: nothing of it; that \
                  it failed you are told all the same.",
        limit: Limit::Other("Of what a job makes, no command is `always` or `digest`; where the job is `digest`, the rest is, too."),
    }
    /// Runs it in a fork of its own instead of the main session
    background: bool = false, |v: &V| v.flag(), {
        agent_only: true, command_too: true, example: "true", restricts: true,
        flags: &[sets("background", TRUE), sets("foreground", FALSE).help("A turn of the main session").only_edits()],
    }
    /// Starts a fresh session without the main session's history
    isolated: bool = false, |v: &V| v.flag(), {
        background_only: true, example: "true", flags: &[sets("isolated", TRUE), sets("no-isolated", FALSE).help("With the main session's history").only_edits()],
        limit: Limit::Other("What an isolated job makes is isolated."),
    }
    /// Model alias or full name
    model: Option<String> = None, |v: &V| v.model(), {
        background_only: true, unset: "the main session's", example: "haiku", may_be_empty: true,
        flags: &[takes("model", "MODEL")],
    }
    /// How the model thinks: `true`, `false`, or a maximum number of tokens
    thinking: Thinking = Thinking::Adaptive, |v: &V| v.thinking(), {
        background_only: true, example: "8000", may_be_empty: true,
        flags: &[
            takes("thinking", "TOKENS").help("At most so many tokens of thinking"),
            sets("no-thinking", FALSE).help("No thinking"),
            sets("adaptive-thinking", TRUE).help("As much thinking as the model decides").only_edits(),
        ],
    }
    /// The only tools that the job has
    allowed_tools: Option<Vec<ToolPattern>> = None, |v: &V| v.patterns(), {
        background_only: true, command_too: true, restricts: true, unset: "what the main session has",
        example: "[Read, Bash(ollim-bot gmail *), mcp__bot__ping_user]",
        flags: &[takes("allowed-tools", "PATTERN").help("Only these tools exist for it; '' for none")], not_with: &["disallowed_tools"],
        details: "See [the patterns](policy.md). `Bash(ollim-bot help)` is always added. An empty list, `[]`, grants nothing else.",
        limit: Limit::Other("What a job makes has at most the tools that the job has."),
    }
    /// The main session's tools, except these
    disallowed_tools: Option<Vec<ToolPattern>> = None, |v: &V| v.patterns(), {
        background_only: true, command_too: true, restricts: true, unset: "none",
        example: "[Bash(ollim-bot cal *), WebFetch, WebSearch]",
        flags: &[takes("blocked-tools", "PATTERN").alias("disallowed-tools")], not_with: &["allowed_tools"],
        details: "A denylist of Bash patterns is a guard rail, not a boundary.",
        limit: Limit::Other("What a job makes lacks at least the tools that the job lacks."),
    }
    /// Calls that wait for your answer before they run
    ask_tools: Option<Vec<ToolPattern>> = None, |v: &V| v.patterns(), {
        background_only: true, command_too: true, restricts: true, unset: "none",
        example: "[Bash(git push *), mcp__bot__spawn_agent]",
        flags: &[takes("ask-tools", "PATTERN").help("Calls that wait for your answer; '' for none")],
        details: "A call that it matches, and that nothing denies, waits for your answer. Beside an allowlist it adds what may be asked \
                  for; what `allowed_tools` names runs unasked. Without one, what it matches is asked about instead of allowed. See \
                  [questions](policy.md#questions).",
        limit: Limit::Other("What a job makes can ask for no more than the job may do or ask, and asks wherever the job has to ask."),
    }
    /// How the bot asks you: `deadline`, `default` (`deny` or `allow`) and `channel`
    ask: Option<AskTerms> = None, |v: &V| v.ask_terms(), {
        background_only: true, command_too: true, unset: "`{ deadline: 10m, default: deny }`",
        example: "{ deadline: 10m, default: deny, channel: phone }",
        flags: &[takes("ask", "TERMS").help("How you are asked: 'deadline: 10m, default: deny'")],
        details: "A call waits for `deadline`, 1 second to 24 hours, which counts against `timeout`. Then `default` holds. `channel` is a \
                  name of `channels` in config.yaml, by default the job's.",
        limit: Limit::Other("Silence is a yes in what a job makes only where it is one in the job, or for what the job may do unasked."),
    }
    /// The bot asks you before each run begins
    approve as approve: bool = false, |v: &V| v.flag(), {
        restricts: true, example: "true",
        flags: &[sets("approve", TRUE), sets("no-approve", FALSE).help("It begins unasked").only_edits()],
        details: "Run or skip: by a button, or `ollim-bot questions answer`. Without an answer within `deadline` of `ask`, 10 minutes, the occurrence is \
                  skipped, whatever `default` says. The question outlives a restart. One that you fire by hand does not ask.",
        limit: Limit::Other("What a job makes asks where the job asks."),
    }
    /// The named agent that runs it
    agent: Option<String> = None, |v: &V| v.agent(), {
        background_only: true, restricts: true, unset: "none", example: "Explore",
        flags: &[takes("agent", "NAME")],
        limit: Limit::Other("What a job that runs as an agent makes runs as the same agent."),
    }
    /// How the job reports to the main session
    update_main_session: UpdateMode = UpdateMode::OnPing, |v: &V| v.one_of::<UpdateMode>(), {
        background_only: true, command_too: true, restricts: true, example: "always",
        flags: &[takes("update-main-session", "MODE")],
        details: "`always`: it must report. `on_ping`: it must report if it sent a message. `freely`: it may. `blocked`: it cannot.",
        limit: Limit::Other("What a blocked job makes is blocked."),
    }
    /// Whether the job may send you messages directly
    allow_ping: bool = true, |v: &V| v.flag(), {
        background_only: true, command_too: true, restricts: true, example: "false",
        flags: &[
            sets("no-ping", FALSE).help("It may not reach you directly"),
            sets("ping", TRUE).help("It may reach you directly").only_edits(),
        ],
        limit: Limit::Other("What a job that may not makes may not either."),
    }
    /// The network of its programs: `internet` or `none`
    network: JobNetwork = JobNetwork::Internet, |v: &V| v.one_of::<JobNetwork>(), {
        background_only: true, command_too: true, restricts: true, example: "none",
        flags: &[
            sets("no-network", NO_NETWORK).help("Its programs have no network"),
            sets("network", INTERNET).help("Its programs have the internet").only_edits(),
        ],
        limit: Limit::Other("What a job without network makes has none."),
    }
    /// Skills whose text becomes part of the prompt: folders in skills/
    skills as skills: Vec<String> = Vec::new(), |v: &V| v.skills(), {
        agent_only: true, unset: "none", example: "[mail]", flags: &[takes("skills", "NAME")],
        details: "A skill adds no tools.",
        limit: Limit::Other("What a job makes has the job's own skills only."),
    }
    /// A command that decides, without a model, whether to wake the agent
    gate as gate: Option<String> = None, |v: &V| v.shell_line(), {
        background_only: true, restricts: true, unset: "none",
        example: "'test -s inbox.txt && cat inbox.txt'",
        flags: &[takes("gate", "COMMAND").help("Runs first, without a model: exit 0 wakes the agent, 1 skips this time")],
        details: "Exit 0: the agent is woken, and is given what the command printed. Exit 1: the occurrence is skipped. Anything else: it \
                  failed, and you are told. The command runs under the job's own tools. See [gates](gates.md).",
        limit: Limit::Other("What a job makes runs its gate with at most the tools that the job has."),
    }
    /// Maximum time of the gate: `30s`, `2m`
    gate_timeout as gate_timeout: Option<Duration> = None, |v: &V| v.span(Duration::from_secs(1)), {
        background_only: true, restricts: true, unset: "30 seconds", example: "2m",
        flags: &[takes("gate-timeout", "SPAN")],
        limit: Limit::Other("What a job makes has at most the job's own, or 30 seconds."),
    }
    /// What the job knows of its earlier runs: `last`, `thread`, or `none`
    remember as remember: Remember = Remember::None, |v: &V| v.one_of::<Remember>(), {
        background_only: true, example: "last",
        flags: &[takes("remember", "WHAT")],
        details: "`last`: what it answered in its last completed run, and when. `thread`: the conversation of that run, with which it goes on; \
                  it needs `isolated: true`. A chain's checks remember their chain. `ollim-bot sessions reset ID` makes it forget. See \
                  [memory](memory.md).",
    }
    /// Other jobs whose last answers become part of the prompt
    context_from as context_from: Vec<DefinitionId> = Vec::new(), |v: &V| v.jobs(), {
        background_only: true, unset: "none", example: "[email-triage, calendar]",
        flags: &[takes("context-from", "ID").help("Jobs whose last answers it is given")],
        details: "At most 10 ids. Of each it is given what its last completed run answered, and when. It waits for none of them. \
                  See [memory](memory.md).",
        limit: Limit::Other("What a job makes reads only its own chain and jobs that the same job has made."),
    }
    /// What each run must deliver: `message`, `report`, or `file PATH`
    expect as expect: Option<Expect> = None, |v: &V| v.expect(), {
        background_only: true, command_too: true, restricts: true, unset: "nothing", example: "file notes/today.md",
        flags: &[takes("expect", "WHAT")],
        details: "A run that ends without it has failed, and you are told: `nothing was delivered`. `message`: it sent you one. `report`: it \
                  reported to the main session. `file PATH`: it made or changed this file of `work/`, and something is in it.",
    }
    /// Maximum time of a run by the wall clock, without its gate: `10m`, `1h30m`
    timeout as timeout: Option<Duration> = None, |v: &V| v.span(Duration::from_secs(1)), {
        restricts: true, unset: "`timeout` of config.yaml, 30 minutes", example: "1h30m",
        flags: &[takes("timeout", "SPAN")],
        limit: Limit::Other("What a job makes has at most the job's own, or the usual one."),
    }
    /// Maximum number of the model's turns
    max_turns as max_turns: Option<u32> = None, |v: &V| v.count(1), {
        agent_only: true, command_too: true, restricts: true, unset: "no limit", example: "20", flags: &[takes("max-turns", "N")],
        details: "Beside `client: exec` it limits the jobs that the command makes.", limit: Limit::AtMost,
    }
    /// Maximum cost of a run in US dollars
    max_cost_usd as max_cost_usd: Option<f64> = None, |v: &V| v.dollars(), {
        agent_only: true, command_too: true, restricts: true, unset: "no limit", example: "0.50", flags: &[takes("max-cost-usd", "USD")],
        details: "Beside `client: exec` it limits the jobs that the command makes.", limit: Limit::AtMost,
    }
    /// Maximum cost of all its runs in a day, in US dollars
    max_cost_day_usd as max_cost_day_usd: Option<f64> = None, |v: &V| v.dollars(), {
        agent_only: true, command_too: true, restricts: true, unset: "no limit", example: "2.00",
        flags: &[takes("max-cost-day-usd", "USD").help("At most so many US dollars a day, all its runs together")],
        details: "What it makes and spawns counts, too; beside `client: exec`, that alone. Once it is spent, occurrences are skipped until the day ends. See [costs](costs.md).",
        limit: Limit::AtMost,
    }
    /// What the machine must have before the job starts: `online`, `power`
    requires as requires: Vec<Need> = Vec::new(), |v: &V| v.needs(), {
        restricts: true, unset: "nothing", example: "[online, power]", flags: &[takes("requires", "WHAT")],
        details: "`online`: a default route. `power`: mains; a machine without a battery has it. It waits, and is looked at every 30 seconds. \
                  One that you fire by hand does not wait.",
        limit: Limit::Other("What a job makes requires what the job requires, and may require more."),
    }
    /// How long the job waits for `requires` before it is skipped
    requires_for as requires_for: Option<Duration> = None, |v: &V| v.span(Duration::from_secs(1)), {
        restricts: true, unset: "6 hours", example: "2h", flags: &[takes("requires-for", "SPAN")],
    }
    /// What happens to times that were missed: latest, all, skip
    on_missed as on_missed: OnMissed = OnMissed::All, |v: &V| v.one_of::<OnMissed>(), {
        on: FieldKinds::Timed, example: "skip", flags: &[takes("on-missed", "WHAT")],
        details: "The misfire policy, for occurrences that fell due while nothing could run. `latest`: one late run, for the newest. \
                  `all`: every one, late. `skip`: none; each is recorded.",
    }
    /// What happens if the previous run is still running
    on_overlap: OnOverlap = OnOverlap::Skip, |v: &V| v.one_of::<OnOverlap>(), {
        on: FieldKinds::Routine, example: "queue", flags: &[takes("on-overlap", "WHAT")],
        details: "The concurrency policy. `skip`: the new occurrence is recorded as skipped. `queue`: it waits; at most one does. \
                  `cancel`: the previous run is ended.",
    }
    /// Number of further attempts after a temporary failure
    retry as retry: Option<u32> = None, |v: &V| v.count(0), {
        unset: "2 for reminders and webhooks, 0 for routines and for `client: exec`", example: "3", flags: &[takes("retry", "N")],
    }
    /// After how many failures in a row the bot notifies you: `1` is the first
    alert_after as alert_after: Option<u32> = None, |v: &V| v.count(1), {
        on: FieldKinds::Recurring, unset: "`alert_after` of config.yaml, 1", example: "3", flags: &[takes("alert-after", "N")],
        details: "You are told once for each series of failures, and when the routine works again. A reminder that fails is always told.",
    }
    /// The channel of its messages: a name of `channels` in config.yaml
    channel as channel: Option<String> = None, |v: &V| v.channel(), {
        unset: "`default_channel` of config.yaml", example: "phone", flags: &[takes("channel", "NAME")],
        limit: Limit::Other("What a job makes has the job's own."),
    }
    /// How urgent its messages are: low, normal, critical
    urgency as urgency: Urgency = Urgency::Normal, |v: &V| v.one_of::<Urgency>(), {
        example: "critical", flags: &[takes("urgency", "LEVEL")],
        details: "`critical`: they wait for no quiet hours, go to `critical_channel`, too, and pass where the budget of messages is empty, unless another job has made this one. `low`: \
                  a channel shows them quietly, where it can. It holds for the job's questions and for the news that it failed as well. The \
                  agent may call a single message critical, whatever stands here.",
        limit: Limit::Other("What a job makes has at most the job's own."),
    }
    /// The URL of a monitor, such as healthchecks.io, that gets the results of its runs
    heartbeat_url as heartbeat_url: Option<String> = None, |v: &V| v.web_address(), {
        unset: "none", example: "https://hc-ping.com/0f3c5d0e-…", flags: &[takes("heartbeat-url", "URL")],
        details: "Each attempt calls `URL/start` when it begins, then `URL` when it has done its work or `URL/fail` when it has not. \
                  One that is cancelled calls nothing more. No job waits for it.",
        limit: Limit::Other("What a job makes has the job's own or none."),
    }
    /// Maximum number of follow-ups that the agent may schedule
    max_chain: u32 = 0, |v: &V| v.count(0), {
        on: FieldKinds::Reminder, example: "3", flags: &[takes("max-chain", "N")],
        limit: Limit::Other("What a reminder makes has at most the follow-ups that the reminder has left."),
    }
    /// The position of this reminder in its chain
    chain_depth: u32 = 0, |v: &V| v.count(0), {
        on: FieldKinds::Reminder, example: "1", flags: &[takes("chain-depth", "N").hidden()], details: "Follow-ups set it.",
    }
    /// The first reminder of the chain
    chain_parent: Option<DefinitionId> = None, |v: &V| v.identity(), {
        on: FieldKinds::Reminder, unset: "its own id", example: "check-the-oven", may_be_empty: true,
        flags: &[takes("chain-parent", "ID").hidden()], details: "Follow-ups set it.",
    }
    /// The job whose run created it
    created_by as created_by: Option<DefinitionId> = None, |v: &V| v.identity(), {
        unset: "a person made it", example: "email-triage", may_be_empty: true,
        flags: &[takes("created-by", "ID").hidden()],
        details: "The program sets it. Only that job may change the file later, and the job runs only while it has no more rights than that one.",
    }
    /// Why the reminder in reminders/failed/ failed
    failed_reason: Option<String> = None, |v: &V| Ok(v.text().ok()), {
        on: FieldKinds::Reminder, unset: "none", example: "'the client ended with 1'", may_be_empty: true, note: true,
        details: "The program sets it, and takes it out when the reminder comes back.",
    }
}

/// The variable that held the secret of every bearer in the first ollim-bot.
const DEFAULT_SECRET: &str = "WEBHOOK_SECRET";

/// The `unset` of the fields that say when a routine fires.
const ONE_OF_THESE: &str = "none; a routine has one of `cron`, `every`, `after`, `watch`";

/// The argument of a reader.
type V<'a> = super::super::values::Value<'a>;
