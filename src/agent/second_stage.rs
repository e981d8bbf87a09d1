//! The second stage: the process that puts the kernel's wall around itself and becomes the client.
//!
//! It has one thread, starts nothing, and dies with the wrapper. It is apart from the wrapper because a wall cannot
//! be taken down, and because what is within it may not signal what is outside.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal, setsid};

use super::launch::Launch;
use super::wall::Wall;
use super::wrapper::CANNOT_START;

/// The hidden command that enters it.
pub(super) const COMMAND: &str = "__stage2";

/// The wall cannot be raised, or holds less than is required.
pub(super) const NO_WALL: u8 = 126;

/// The command line of the second stage for this client: nothing of it is secret.
pub(super) fn arguments(launch: &Launch) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![COMMAND.into(), std::process::id().to_string().into()];
    if let Some(wall) = &launch.wall {
        words.push(if wall.required { "--wall-required".into() } else { "--wall".into() });
        for (option, paths) in [("--hidden", &wall.hidden), ("--read", &wall.read), ("--write", &wall.write)] {
            for path in paths {
                words.extend([option.into(), path.into()]);
            }
        }
    }
    words.extend(["--".into(), launch.program.clone().into()]);
    words.extend(launch.args.iter().map(OsString::from));
    words
}

struct Stage {
    wrapper: String,
    wall: Option<Wall>,
    client: Vec<OsString>,
}

/// The way back from [`arguments`], without the command's own name. `None`: not what that writes.
fn read(mut words: impl Iterator<Item = OsString>) -> Option<Stage> {
    let wrapper = words.next()?.into_string().ok()?;
    let mut wall: Option<Wall> = None;
    loop {
        let word = words.next()?;
        match word.to_str()? {
            "--" => break,
            "--wall" => wall = Some(Wall::default()),
            "--wall-required" => wall = Some(Wall { required: true, ..Wall::default() }),
            option => {
                let wall = wall.as_mut()?;
                let list = match option {
                    "--hidden" => &mut wall.hidden,
                    "--read" => &mut wall.read,
                    "--write" => &mut wall.write,
                    _ => return None,
                };
                list.push(words.next()?.into());
            }
        }
    }
    let client: Vec<OsString> = words.collect();
    (!client.is_empty()).then_some(Stage { wrapper, wall, client })
}

/// Becomes the client, or says on standard error why not.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let (code, error) = match read(args) {
        Some(stage) => become_client(&stage),
        None => (CANNOT_START, "this command is for ollim-bot itself".to_string()),
    };
    // Nobody may be listening any more; there is nobody else to tell.
    let _ = writeln!(io::stderr(), "ollim-bot: {error}");
    ExitCode::from(code)
}

fn become_client(stage: &Stage) -> (u8, String) {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return (CANNOT_START, format!("cannot be tied to the wrapper: {error}"));
    }
    // The wrapper may have ended before that was set.
    if getppid().map(|pid| pid.to_string()) != Some(stage.wrapper.clone()) {
        return (CANNOT_START, "the wrapper has ended".into());
    }
    // No terminal: keys and job control are the service's. It fails only for a leader, which this is not.
    if let Err(error) = setsid() {
        return (CANNOT_START, format!("no session of its own: {error}"));
    }
    if let Some(wall) = &stage.wall
        && let Err(error) = wall.raise()
    {
        return (NO_WALL, error.to_string());
    }
    let (program, args) = (&stage.client[0], &stage.client[1..]);
    let error = Command::new(program).args(args).exec();
    (CANNOT_START, format!("cannot start {}: {error}", program.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let wall = Wall {
            hidden: vec!["/home/ann".into(), "--".into()],
            read: vec![],
            write: vec!["--read".into()],
            required: true,
        };
        for wall in [None, Some(Wall::default()), Some(wall)] {
            let launch = Launch {
                program: "/bin/claude".into(),
                args: vec!["--".into(), String::new(), "--wall".into()],
                env: BTreeMap::new(),
                work_dir: "/".into(),
                secret: None,
                wall: wall.clone(),
            };
            let stage = read(arguments(&launch).into_iter().skip(1)).unwrap();
            assert_eq!(stage.wall, wall);
            assert_eq!(stage.client, ["/bin/claude", "--", "", "--wall"]);
        }
    }

    #[test]
    fn anything_else_starts_nothing() {
        for words in
            [&[][..], &["1"], &["1", "--"], &["1", "--read", "/", "--", "x"], &["1", "--wall", "--read"], &["1", "x"]]
        {
            assert!(read(words.iter().map(OsString::from)).is_none(), "{words:?}");
        }
    }
}
