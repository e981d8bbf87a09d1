//! `init` on a terminal: a few questions, each with a default for Enter. Nothing costs money without the person's consent.

mod phone;
mod talk;

use std::io::{self, BufRead as _, IsTerminal as _};

use self::talk::TalkFlags;
use super::args::{Color, InitArgs};
use super::output::{BAD, FAINT, GOOD, HINT, Output, PLAIN, STRONG, WARN, paint};
use super::render::{self, View};
use super::{for_person, run};
use crate::app::{App, Command, InitOptions, Outcome, UnitAct, UnitCommand};
use crate::channel::terminal::plain;
use crate::config::zone_without_variable;
use crate::daemon::shutdown::EndConditions;
use crate::definition::DefinitionId;
use crate::home::Home;
use crate::journal::RunState;
use crate::refusal::Refusal;

/// Creates the data folder from the flags and, on a terminal, from the person's answers.
///
/// # Errors
/// Fails if the folder cannot be created, or if a step that a flag asks for fails.
pub(super) fn init(args: InitArgs, color: Color, app: &App, view: &View, output: &mut Output) -> Result<(), Refusal> {
    let asks = !args.yes && !view.json && io::stdin().is_terminal() && io::stderr().is_terminal();
    let guide = Guide { color, app, view, asks };
    guide.run(args, output)
}

struct Guide<'a> {
    color: Color,
    app: &'a App,
    view: &'a View,
    /// Whether to ask the person.
    asks: bool,
}

impl Guide<'_> {
    fn run(&self, args: InitArgs, output: &mut Output) -> Result<(), Refusal> {
        let flags = TalkFlags::of(&args);
        let InitArgs { force, bare, timezone, ntfy, try_login, service, .. } = args;
        let mut options = InitOptions { force, bare, timezone, ntfy, talk: flags.kind.map(|kind| flags.service(kind)) };
        // Existing settings stay unchanged.
        let asks_for_channels = self.asks && !self.app.home.config_file().exists();
        // Report a refusal before the questions, and before a message is sent.
        self.app.may_init(&options)?;
        if self.asks {
            let place = plain(&self.app.home.root().display().to_string());
            output.line(format!("{} keeps everything in {}.", paint(STRONG, "ollim-bot"), paint(STRONG, &place)));
            if options.timezone.is_none() {
                options.timezone = self.zone(output)?;
            }
            let samples = "Write samples? They cost nothing until you enable them.";
            options.bare = options.bare || !self.yes(samples, true, output)?;
            if asks_for_channels && options.ntfy.is_none() {
                options.ntfy = self.phone(output)?;
            }
        }
        let is_set_up = flags.kind.is_some() || asks_for_channels;
        let token;
        (options.talk, token) = if is_set_up { self.talk(&flags, output)?.unzip() } else { (None, None) };
        let (phone, talk) = (options.ntfy.is_some(), options.talk.as_ref().map(|talk| talk.kind));
        let made = self.app.execute(Command::Init { options })?;
        if let (Some(kind), Some(token)) = (talk, &token) {
            self.app.keep_secret(talk::variable(kind), token)?;
        }
        // Reload the settings, which exist only now. No step before depends on them.
        let app = &self.app.reread();
        render::render(made, self.view, output);
        let answers = !(self.asks || try_login) || self.client(try_login, app, output)?;
        if self.asks && phone {
            self.try_phone(app, output)?;
        }
        if self.asks && (talk.is_some() || !phone) {
            reach(talk, output);
        }
        let installed = (service || self.wants_service(output)?) && self.install(service, app, output)?;
        if !self.view.json {
            next_steps(installed, output);
            if !answers {
                output.line(paint(WARN, "The agent does not answer yet: what is missing stands above."));
                let again = output.command("init --force --yes --try-login");
                output.line(paint(FAINT, &format!("Try it again then: {again}")));
            }
        }
        Ok(())
    }

    /// Returns the time zone, if it is not that of the system. `TZ` of this shell counts, since a service started elsewhere lacks it.
    fn zone(&self, output: &mut Output) -> Result<Option<String>, Refusal> {
        let detected = self.app.zone()?;
        let of_shell = zone_without_variable() != Some(detected);
        loop {
            let answer = self.ask(&format!("Time zone [{detected}]:"), output)?;
            if answer.is_empty() || answer == detected.name() {
                return Ok(of_shell.then(|| detected.name().to_owned()));
            }
            if answer.parse::<chrono_tz::Tz>().is_ok() {
                return Ok(Some(answer));
            }
            output.line(format!("`{}` is no time zone; write it like Europe/Berlin.", plain(&answer)));
        }
    }

    /// Returns the ntfy topic for the person's phone, if any.
    fn phone(&self, output: &mut Output) -> Result<Option<String>, Refusal> {
        let suggested = self.app.new_topic()?;
        output.paragraph(PLAIN, "The app ntfy (https://ntfy.sh, no account) shows messages on your phone. Who knows a topic reads what is sent to it.");
        output.line(format!("A topic that nobody guesses: {}", paint(STRONG, &suggested)));
        loop {
            let topic = match self.ask("Messages to your phone? `y`, a topic of your own, or Enter for no:", output)? {
                answer if ["", "n", "no"].contains(&&*answer) => return Ok(None),
                answer if ["y", "yes"].contains(&&*answer) => suggested.clone(),
                answer => answer,
            };
            match self.app.check_topic(&topic) {
                Ok(()) => return Ok(Some(topic)),
                Err(why) => {
                    output.paragraph(PLAIN, &format!("{why}; {}", why.hints.join(", ")));
                }
            }
        }
    }

    /// Shows the client, and tests its login if the person or the flag `try_it` agrees. Returns `false` if the test failed.
    fn client(&self, try_it: bool, app: &App, output: &mut Output) -> Result<bool, Refusal> {
        if self.asks {
            app.agent_findings().iter().for_each(|finding| render::finding(finding, output));
        }
        let ready = app.has_agent();
        if self.asks && !ready {
            output.paragraph(
                PLAIN,
                "Until then texts of your own reach you as they are written, and jobs for an agent wait.",
            );
        }
        let question = "Try the login with one short call? It costs less than a cent.";
        let agreed = try_it || ready && self.yes(question, false, output)?;
        if !agreed {
            return Ok(true);
        }
        match try_login(app) {
            Ok(words) if self.view.json => output.note(words),
            Ok(words) => output.line(paint(GOOD, &words)),
            Err(why) if try_it => return Err(why),
            Err(why) => {
                output.line(format!("{} {}", paint(BAD, "the call failed:"), plain(&why.to_string())));
                why.hints.iter().for_each(|hint| output.line(format!("{} {}", paint(HINT, "hint:"), plain(hint))));
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn wants_service(&self, output: &mut Output) -> Result<bool, Refusal> {
        let possible = crate::app::is_systemd_there();
        if self.asks && !possible {
            output.paragraph(
                PLAIN,
                "No systemd runs here: `ollim-bot run` ends with its terminal, and does not come back after a restart.",
            );
            let program = std::env::current_exe().unwrap_or_else(|_| "ollim-bot".into());
            let home = self.app.home.root().display();
            output.paragraph(
                FAINT,
                "Have what starts your services start it. With cron, it is this line in `crontab -e`:",
            );
            // cron's own PATH lacks the folder of many agent clients.
            let path = self.app.env.text("PATH").unwrap_or_default().replace('%', "\\%");
            output.verbatim(plain(&format!("  @reboot PATH={path} {} --home {home} run", program.display())));
        }
        Ok(self.asks && possible && self.yes("Have systemd run it, from now on and after a restart?", true, output)?)
    }

    /// Installs the unit. A failure is reported, and ends `init` only if a flag asked for the unit.
    fn install(&self, by_flag: bool, app: &App, output: &mut Output) -> Result<bool, Refusal> {
        match app.execute(Command::Unit(UnitCommand { system: false, act: UnitAct::Install })) {
            Ok(installed) => render::render(installed, self.view, output),
            Err(refusal) if by_flag => return Err(refusal),
            Err(refusal) => {
                output.fail(&refusal);
                output.exit = 0;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn yes(&self, question: &str, usual: bool, output: &mut Output) -> Result<bool, Refusal> {
        if !self.asks {
            return Ok(usual);
        }
        let answer = self.ask(&format!("{question} [{}]", if usual { "Y/n" } else { "y/N" }), output)?;
        Ok(match answer.to_lowercase().chars().next() {
            None => usual,
            Some(first) => first == 'y',
        })
    }

    /// Asks a question. Returns the trimmed answer.
    fn ask(&self, question: &str, output: &mut Output) -> Result<String, Refusal> {
        output.stderr.push_str(&format!("{} ", paint(HINT, question)));
        output.print_now(self.color)?;
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        match read {
            Ok(count) if count > 0 => Ok(answer.trim().to_owned()),
            _ => Err(Refusal::user("the questions were not answered to the end")
                .hint("`ollim-bot init --yes` asks none; what was made stays, and `--force` adds what is missing")),
        }
    }
}

/// Shows where messages reach the person, apart from a phone.
fn reach(talk: Option<&str>, output: &mut Output) {
    if let Some(kind) = talk {
        output.paragraph(
            PLAIN,
            &format!("Messages go to the channel `{kind}`. The bot answers there as soon as the service runs."),
        );
        output.line(paint(FAINT, "What you can write and press: docs/chat.md"));
        return;
    }
    output.paragraph(PLAIN, "Messages reach you in the terminal of `ollim-bot run`, and in `ollim-bot inbox`.");
    let more = "To reach your phone: `channels` in config.yaml; `ollim-bot channels test NAME` tries one.";
    output.paragraph(FAINT, more);
}

fn next_steps(installed: bool, output: &mut Output) {
    if !installed {
        output.line(paint(FAINT, &format!("Start the service: {}", output.command("run"))));
    }
    output.line(paint(FAINT, &format!("Your first reminder: {}", output.command("reminder add --in 1m 'Hello'"))));
}

/// Tests the login by one short run of a job, in a temporary data folder.
///
/// # Errors
/// Returns the reason of the failure.
fn try_login(app: &App) -> Result<String, Refusal> {
    const TRIAL: &str = "---\ncron: '@yearly'\nclient: claude\nbackground: true\nisolated: true\nallowed_tools: []\n\
                         model: haiku\nthinking: false\nmax_turns: 1\nmax_cost_usd: 0.01\ntimeout: 2m\n---\nSay: ready.\n";
    if !app.has_agent() {
        return Err(Refusal::user("there is no agent client, or it is not logged in")
            .hint("`ollim-bot doctor` says what to do"));
    }
    let cannot = |error: io::Error| Refusal::environment(format!("cannot make a folder for the call: {error}"));
    let folder = tempfile::Builder::new().prefix("ollim-init-").tempdir().map_err(cannot)?;
    let home = Home::new(folder.path().canonicalize().map_err(cannot)?);
    std::fs::create_dir(home.routines()).map_err(cannot)?;
    std::fs::write(home.routines().join("trial.md"), TRIAL).map_err(cannot)?;
    for (from, to) in [(app.home.config_file(), home.config_file()), (app.home.env_file(), home.env_file())] {
        if from.exists() {
            std::fs::copy(from, to).map_err(cannot)?;
        }
    }
    let trial = for_person(home, app.env.clone());
    let run = run::serve(EndConditions::default(), Some(DefinitionId::new("trial")), &trial, None)?;
    let run = run.ok_or_else(|| Refusal::environment("the call left no record"))?;
    let Outcome::Run(details) = trial.execute(Command::Run { run: run.to_string(), full: false })? else {
        return Err(Refusal::environment("the call left no record"));
    };
    let run = details.run;
    if run.outcome != RunState::Completed {
        let why = run.error.unwrap_or_else(|| "it did not answer".into());
        let (what, hint) = why.split_once("\nhint: ").unwrap_or((&why, "`ollim-bot doctor` says what is missing"));
        return Err(Refusal::user(what).hint(hint));
    }
    let cost = run.cost_usd.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    Ok(format!("the login works (claude {}{cost})", run.client_version.unwrap_or_default()))
}
