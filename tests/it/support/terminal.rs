//! A command on a real pty that a test reads and types on.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::wait;

/// A command with a terminal as its input and output.
pub struct Terminal {
    child: Child,
    keys: File,
    screen: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    pub fn start(command: Command) -> Self {
        Self::start_on(command, None, true)
    }

    /// Starts a command on a terminal with this number of columns.
    pub fn with_notes(command: Command, columns: u16) -> Self {
        Self::start_on(command, Some(columns), true)
    }

    /// Starts a command on a terminal with this number of columns, which shows only the command's data.
    pub fn narrow(command: Command, columns: u16) -> Self {
        Self::start_on(command, Some(columns), false)
    }

    fn start_on(mut command: Command, columns: Option<u16>, with_notes: bool) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let side = || File::options().read(true).write(true).open(&name).unwrap();
        command.stdin(side()).stdout(side()).stderr(if with_notes { Stdio::from(side()) } else { Stdio::null() });
        if let Some(columns) = columns {
            let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(&master, size).unwrap();
        }
        let child = command.spawn().unwrap();
        let (keys, mut shown) = (File::from(master.try_clone().unwrap()), File::from(master));
        let screen = Arc::new(Mutex::new(String::new()));
        let text = screen.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The read fails when the last program on the terminal has ended.
            while let Ok(count) = shown.read(&mut bytes) {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, keys, screen, reader }
    }

    /// Returns the output so far, without colours.
    pub fn shown(&self) -> String {
        anstream::adapter::strip_str(&self.screen.lock().unwrap()).to_string().replace("\r\n", "\n")
    }

    /// Waits for a text.
    #[track_caller]
    pub fn until(&self, text: &str) {
        wait::until(text, || self.shown().contains(text).then_some(()), || self.shown());
    }

    /// Waits for a question, then types a line.
    #[track_caller]
    pub fn answer(&mut self, question: &str, line: &str) {
        self.until(question);
        writeln!(self.keys, "{line}").unwrap();
    }

    /// Waits for the command's end. Returns its status and all of its output.
    #[track_caller]
    pub fn end(mut self) -> (ExitStatus, String) {
        let (child, screen, reader) = (&mut self.child, &self.screen, &self.reader);
        let shown = || screen.lock().unwrap().clone();
        let status = wait::until("it ends", || child.try_wait().unwrap(), shown);
        wait::until("all that it wrote is read", || reader.is_finished().then_some(()), shown);
        (status, self.shown())
    }
}
