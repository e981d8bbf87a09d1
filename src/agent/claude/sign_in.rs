//! Remote login of the client: the client prints a link, and the person brings back a code.
//!
//! Observed with 2.1.197 and 2.1.330: over pipes `claude auth login` writes the link, then `Paste code here if prompted > `. It reads
//! one line, and exits with 0 once the login is in the client's own file. It needs no terminal. A login in that file expires after
//! hours. A client that starts less than five minutes before that, or later, renews it without a request to a model.

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

/// Time for the client to print its link.
const LINK_WITHIN: Duration = Duration::from_secs(20);

/// Time for the client to finish with a code.
const FINISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Time to read the client's output after it has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time that a run waits for a renewal. The client may take `LATE_WITHIN`: if killed during a renewal, it would lose the login.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(15);
const LATE_WITHIN: Duration = Duration::from_secs(60);

/// Time after a failed renewal during which none is tried.
const RENEWAL_BACKOFF: Duration = Duration::from_secs(60);

/// Interval of the checks of the login file during a renewal.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of bytes read of the client's output.
const MOST: usize = 64 * 1024;

/// A login that waits for the person's code. Dropping it ends its client.
#[derive(Debug)]
pub struct SignIn {
    child: Child,
    code: ChildStdin,
    said: ChildStdout,
    faults: ChildStderr,
}

impl SignIn {
    /// Starts a login. Returns it with the link that the person opens.
    ///
    /// # Errors
    /// A sentence on the cause, without its full stop.
    pub async fn start(claude: &Claude) -> Result<(Self, String), String> {
        let mut command = of_the_person(claude);
        // A browser on this machine would not help a person elsewhere.
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

    /// Reads the first `https://` address, up to the blank after it.
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

    /// Passes on the code that the person received, and waits until the login is stored.
    ///
    /// # Errors
    /// The client's last message, without its full stop.
    pub async fn finish(mut self, code: &str) -> Result<(), String> {
        let line = format!("{}\n", code.trim());
        // If the client has already ended, its output says why.
        let _ended = self.code.write_all(line.as_bytes()).await;
        let ended = timeout(FINISH_TIMEOUT, self.child.wait()).await;
        if ended
            .map_err(|_| "the agent client did not finish the login".to_owned())?
            .is_ok_and(|status| status.success())
        {
            return Ok(());
        }
        // A process that the client started may keep its output open.
        let why = timeout(OUTPUT_TIMEOUT, self.end("Paste code here if prompted >")).await;
        Err(why.unwrap_or_else(|_| "the agent client did not say why".into()))
    }

    /// Reads the remaining output and returns its last line, with `prompt` removed.
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
    /// Returns the login to start a client with. If it has expired or is about to, it is renewed first, where possible.
    pub(super) async fn login(&self) -> Option<Login> {
        let found = self.find_login()?;
        if !found.is_over {
            return Some(found);
        }
        let mut failed = self.login.renewing.lock().await;
        if self.find_login()?.is_over && failed.is_none_or(|at: Instant| at.elapsed() > RENEWAL_BACKOFF) {
            // The renewal runs in its own task, since the waiting run may be cancelled.
            let renewal = tokio::spawn(renew(self.clone()));
            let is_renewed = async {
                while self.find_login().is_some_and(|login| login.is_over) && !renewal.is_finished() {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            };
            let _late = timeout(RENEWAL_TIMEOUT, is_renewed).await;
            *failed = self.find_login().is_none_or(|login| login.is_over).then(Instant::now);
            match *failed {
                None => tracing::info!("the agent client has renewed its login"),
                Some(_) => tracing::warn!("the agent client could not renew its login"),
            }
        }
        self.find_login().filter(|login| !login.has_ended)
    }
}

/// Starts the client without a prompt, and ends it once its file has another login.
async fn renew(claude: Claude) {
    let mut command = of_the_person(&claude);
    command.args(["--print", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"]);
    command.args(["--setting-sources", "", "--strict-mcp-config", "--tools", ""]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    let Some(mut input) = child.stdin.take() else { return };
    let greeting = protocol::initialize("renew", 1, &[], false, &ClientOptions::default());
    if input.write_all(format!("{greeting}\n").as_bytes()).await.is_ok() {
        // The client renews its login in parallel with its answer to this message.
        let is_over = || claude.find_login().is_some_and(|login| login.is_over);
        let start = Instant::now();
        while is_over() && start.elapsed() < LATE_WITHIN && matches!(child.try_wait(), Ok(None)) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    drop(input);
    let _late = timeout(RENEWAL_TIMEOUT, child.wait()).await;
}

/// Returns the command that starts the client with the person's own folder, which contains its login.
fn of_the_person(claude: &Claude) -> Command {
    let temporary = std::env::temp_dir();
    let mut env = environment(&claude.client_environment, Path::new(""), &temporary, "");
    // These variables belong to runs only.
    for name in ["CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SHELL", "OLLIM_RUN_TOKEN", "OLLIM_HOME"] {
        env.remove(name);
    }
    let mut command = Command::new(&claude.command);
    command.env_clear().envs(env).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // `/` has no project settings. A job may write in the folder in which the service was started.
    command.current_dir("/").kill_on_drop(true);
    command
}
