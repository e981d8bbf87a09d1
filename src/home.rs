//! Paths in the data folder (`$OLLIM_HOME`, by default `~/.ollim-bot`). Paths only, no I/O.

use std::path::{Path, PathBuf};

/// The data folder. All paths of the program are built here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// Creates a data folder. `root` should be absolute, and free of symlinks if it exists.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }
    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0
    }
    /// `config.yaml`: settings, all optional.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.0.join("config.yaml")
    }
    /// `.env`: secrets, readable by the person only (0600).
    #[must_use]
    pub fn env_file(&self) -> PathBuf {
        self.0.join(".env")
    }
    /// Returns a path relative to the data folder. A path elsewhere is returned unchanged.
    #[must_use]
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.0).unwrap_or(path)
    }
    /// `routines/*.md`: recurring definitions.
    #[must_use]
    pub fn routines(&self) -> PathBuf {
        self.0.join("routines")
    }
    /// `reminders/*.md`: one-shot definitions.
    #[must_use]
    pub fn reminders(&self) -> PathBuf {
        self.0.join("reminders")
    }
    /// `webhooks/*.md`: definitions that fire for deliveries of other services.
    #[must_use]
    pub fn webhooks(&self) -> PathBuf {
        self.0.join("webhooks")
    }
    /// `reminders/failed/`: reminders whose last attempt failed.
    #[must_use]
    pub fn failed_reminders(&self) -> PathBuf {
        self.reminders().join("failed")
    }
    /// `agents/*.md`: this bot's named agents.
    #[must_use]
    pub fn agents(&self) -> PathBuf {
        self.0.join("agents")
    }
    /// `skills/<name>/SKILL.md`.
    #[must_use]
    pub fn skills(&self) -> PathBuf {
        self.0.join("skills")
    }
    /// `bin/ollim-bot-NAME`: the person's own commands.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.0.join("bin")
    }
    /// `work/`: every client's working folder.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }
    /// `tools/NAME/`: data of the person's own command NAME.
    #[must_use]
    pub fn tools(&self) -> PathBuf {
        self.0.join("tools")
    }
    /// `state/`: the program's own files. Inaccessible to all forks.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.0.join("state")
    }
    /// The identity of this data folder among the hosts that share a journal.
    #[must_use]
    pub fn host_identity(&self) -> PathBuf {
        self.state().join("host")
    }

    /// The last common state of this folder and those of the other hosts.
    #[must_use]
    pub fn shared_files(&self) -> PathBuf {
        self.state().join("shared.json")
    }

    /// The journal's SQLite file, if the journal is a file.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.state().join("journal.db")
    }
    /// The daemon's lock file (`flock`); its content is the daemon's pid.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.state().join("lock")
    }
    /// The daemon's control socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.state().join("control.sock")
    }
    /// The token that stands for the person on the control socket (0600).
    #[must_use]
    pub fn user_token(&self) -> PathBuf {
        self.state().join("user.token")
    }
    /// Copies that are being edited.
    #[must_use]
    pub fn edits(&self) -> PathBuf {
        self.state().join("edits")
    }
    /// The service's log: one file per day, one JSON line per event.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.state().join("log")
    }
    /// The folders of all channels' programs.
    #[must_use]
    pub fn channels(&self) -> PathBuf {
        self.state().join("channels")
    }
    /// The folder in which a channel's program may write.
    #[must_use]
    pub fn channel(&self, name: &str) -> PathBuf {
        self.channels().join(name)
    }
    /// The folders of all of the person's MCP servers.
    #[must_use]
    pub fn mcp_servers(&self) -> PathBuf {
        self.state().join("mcp")
    }
    /// The working folder of one of the person's MCP servers, which it may write to.
    #[must_use]
    pub fn mcp_server(&self, name: &str) -> PathBuf {
        self.mcp_servers().join(name)
    }
    /// The service's own copy of `ollim-shell`. An upgrade that replaces the installed file leaves it as it is.
    #[must_use]
    pub fn shell_copy(&self) -> PathBuf {
        self.state().join("ollim-shell")
    }
    /// One folder per run: the client's configuration, transcript and temporary files.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.state().join("runs")
    }

    /// The folders in which jobs write, or the service for them.
    #[must_use]
    pub fn folders_of_jobs(&self) -> [PathBuf; 3] {
        [self.work(), self.state(), self.tools()]
    }
    /// The run folder of the main session, whose client outlives a run. No run has this name.
    #[must_use]
    pub fn main_run(&self) -> PathBuf {
        self.runs().join("main")
    }

    /// The state that the gates of jobs keep between runs.
    #[must_use]
    pub fn gates(&self) -> PathBuf {
        self.state().join("gates")
    }
    /// The main session's own client configuration folder (`CLAUDE_CONFIG_DIR`).
    #[must_use]
    pub fn main_session(&self) -> PathBuf {
        self.state().join("main")
    }
}
