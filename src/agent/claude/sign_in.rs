//! Logging the client in while the person is elsewhere: it gives a link, and the person brings back a code.
//!
//! Seen with 2.1.197 and 2.1.330. Over pipes `claude auth login` writes the link, then `Paste code here if prompted > `, reads one
//! line, and ends with 0 once the login stands in the client's own file. It needs no terminal. A login in that file ends after hours;
//! a client that starts less than five minutes before, or after that, renews it without a request to a model.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout};

use super::login::Login;
use super::options::environment;
use super::{Claude, protocol};
use crate::agent::ClientOptions;

/// How long the client may take to say its link.
const LINK_WITHIN: Duration = Duration::from_secs(20);

/// How long it may take with a code.
const DONE_WITHIN: Duration = Duration::from_secs(30);

/// How long what it has said may take to come, once it has ended.
const SAID_WITHIN: Duration = Duration::from_secs(2);

/// How long is waited for a login to be renewed. The client goes on for a while: killed while it renews, it would lose the login.
const RENEWED_WITHIN: Duration = Duration::from_secs(15);
const LATE_WITHIN: Duration = Duration::from_secs(60);

/// So long after a renewal that did not work none is tried.
const NOT_AGAIN: Duration = Duration::from_secs(60);

/// How often its file is looked at meanwhile.
const LOOKS_EACH: Duration = Duration::from_millis(50);

/// As much of what it says as is read.
const MOST: usize = 64 * 1024;

/// A login that waits for the person's code. Dropped, the client that holds it ends.
#[derive(Debug)]
pub struct SignIn {
    child: Child,
    code: ChildStdin,
    said: ChildStdout,
    faults: ChildStderr,
}

impl SignIn {
    /// Starts one. The link that the person opens.
    ///
    /// # Errors
    /// A sentence on what went wrong, without its full stop.
    pub async fn start(claude: &Claude) -> Result<(Self, String), String> {
        let mut command = of_the_person(claude);
        // A browser here would be of no use to somebody elsewhere.
        command.args(["auth", "login"]).env("BROWSER", "false");
        let mut child = command.spawn().map_err(|error| format!("the agent client cannot be started: {error}"))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(code), Some(said), Some(faults)) = pipes else { return Err("it has no pipes".into()) };
        let mut sign_in = Self { child, code, said, faults };
        let link = async {
            match sign_in.link().await {
                Some(link) => Ok(link),
                None => Err(format!("the agent client gave no link: {}", sign_in.end("").await)),
            }
        };
        let link = timeout(LINK_WITHIN, link).await;
        let link =
            link.map_err(|_| format!("the agent client gave no link within {} seconds", LINK_WITHIN.as_secs()))??;
        Ok((sign_in, link))
    }

    /// The first address that it says, once a blank follows it.
    async fn link(&mut self) -> Option<String> {
        let mut said = Vec::new();
        while said.len() < MOST && self.said.read_buf(&mut said).await.ok()? > 0 {
            let text = String::from_utf8_lossy(&said);
            let Some((_, link)) = text.split_once("https://") else { continue };
            if let Some((link, _)) = link.split_once(char::is_whitespace) {
                return Some(format!("https://{link}"));
            }
        }
        None
    }

    /// Gives it the code that the person was shown, and waits until the login is there.
    ///
    /// # Errors
    /// What the client said, without its full stop.
    pub async fn finish(mut self, code: &str) -> Result<(), String> {
        let line = format!("{}\n", code.trim());
        // One that has ended says why.
        let _ended = self.code.write_all(line.as_bytes()).await;
        let ended = timeout(DONE_WITHIN, self.child.wait()).await;
        if ended
            .map_err(|_| "the agent client did not finish the login".to_owned())?
            .is_ok_and(|status| status.success())
        {
            return Ok(());
        }
        // What it has started may hold its output open.
        let why = timeout(SAID_WITHIN, self.end("Paste code here if prompted >")).await;
        Err(why.unwrap_or_else(|_| "the agent client did not say why".into()))
    }

    /// The last thing that it says before it ends. `prompt` is none of it.
    async fn end(&mut self, prompt: &str) -> String {
        let (mut said, mut faults) = (Vec::new(), Vec::new());
        let (mut on_output, mut on_error) = ((&mut self.said).take(MOST as u64), (&mut self.faults).take(MOST as u64));
        let _read = tokio::join!(on_output.read_to_end(&mut said), on_error.read_to_end(&mut faults));
        let text = [said, faults].map(|bytes| String::from_utf8_lossy(&bytes).replace(prompt, "")).join("\n");
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it ended without a word");
        last.trim_end_matches('.').chars().filter(|char| !char.is_control()).take(300).collect()
    }
}

impl Claude {
    /// The login to start a client with. One that has ended, or does in a moment, is renewed first, where that is possible.
    pub(super) async fn login(&self) -> Option<Login> {
        let found = self.find_login()?;
        if !found.is_over {
            return Some(found);
        }
        let mut failed = self.login.renewing.lock().await;
        if self.find_login()?.is_over && failed.is_none_or(|at: Instant| at.elapsed() > NOT_AGAIN) {
            // In a task of its own: the run that waits may be cancelled.
            let renewal = tokio::spawn(renew(self.clone()));
            let is_renewed = async {
                while self.find_login().is_some_and(|login| login.is_over) && !renewal.is_finished() {
                    tokio::time::sleep(LOOKS_EACH).await;
                }
            };
            let _late = timeout(RENEWED_WITHIN, is_renewed).await;
            *failed = self.find_login().is_none_or(|login| login.is_over).then(Instant::now);
            match *failed {
                None => tracing::info!("the agent client has renewed its login"),
                Some(_) => tracing::warn!("the agent client could not renew its login"),
            }
        }
        self.find_login().filter(|login| !login.has_ended)
    }
}

/// Starts the client without a prompt, and lets it go once its file has another login.
async fn renew(claude: Claude) {
    let mut command = of_the_person(&claude);
    command.args(["--print", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"]);
    command.args(["--setting-sources", "", "--strict-mcp-config", "--tools", ""]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    let Some(mut input) = child.stdin.take() else { return };
    let greeting = protocol::initialize("renew", 1, &[], false, &ClientOptions::default());
    if input.write_all(format!("{greeting}\n").as_bytes()).await.is_ok() {
        // It renews beside its answer to this.
        let is_over = || claude.find_login().is_some_and(|login| login.is_over);
        let start = Instant::now();
        while is_over() && start.elapsed() < LATE_WITHIN && matches!(child.try_wait(), Ok(None)) {
            tokio::time::sleep(LOOKS_EACH).await;
        }
    }
    drop(input);
    let _late = timeout(RENEWED_WITHIN, child.wait()).await;
}

/// The client as the person would start it: with the person's own folder, where its login is.
fn of_the_person(claude: &Claude) -> Command {
    let temporary = std::env::temp_dir();
    let mut env = environment(&claude.client_environment, Path::new(""), &temporary, "");
    // What only a run has.
    for name in ["CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SHELL", "OLLIM_RUN_TOKEN", "OLLIM_HOME"] {
        env.remove(name);
    }
    let mut command = Command::new(&claude.command);
    command.env_clear().envs(env).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // No settings of a project: a job may write in the folder that the service was started in.
    command.current_dir("/").kill_on_drop(true);
    command
}
