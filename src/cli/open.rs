//! Opens the page in the person's browser, if there is a screen.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use super::args;
use super::output::{FAINT, Output, paint};
use crate::app::{App, Environment, Outcome, ServiceReply};

/// The program that opens a file in the default application.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Whether to open the link: `web` on a terminal with a screen, and not over ssh.
pub(super) fn is_wanted(command: Option<&args::Command>, json: bool, env: &Environment) -> bool {
    let is_set = |names: [&str; 2]| names.iter().any(|name| env.text(name).is_some());
    let has_screen = cfg!(target_os = "macos") || is_set(["DISPLAY", "WAYLAND_DISPLAY"]);
    let is_remote = is_set(["SSH_CONNECTION", "SSH_TTY"]);
    let asks = matches!(command, Some(args::Command::Web { no_open: false, .. }));
    asks && !json && has_screen && !is_remote && io::stdout().is_terminal()
}

/// Opens the link of an outcome. If that fails, the person still has the printed link.
pub(super) fn open(outcome: &Outcome, app: &App, output: &mut Output) {
    // A tunnel must be opened before the link.
    let Outcome::Service(ServiceReply::WebLink { url, tunnel: None, .. }) = outcome else { return };
    if let Err(error) = open_link(url, app) {
        output.note(paint(FAINT, &format!("no browser was opened ({OPENER}: {error}): open the link yourself")));
    }
}

/// Opens the link through a private file. All users can read command lines, and the link logs in.
fn open_link(url: &str, app: &App) -> io::Result<()> {
    let (file, url) = (app.home.state().join("open.html"), url.replace('"', "%22"));
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut page = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
    writeln!(page, "<!doctype html><meta http-equiv=refresh content=\"0; url={url}\"><a href=\"{url}\">The page</a>")?;
    let mut opener = Command::new(OPENER);
    opener.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
    Ok(())
}
