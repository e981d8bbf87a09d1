//! `service`: the service as a unit of systemd.

use clap::{Args, Subcommand};

use crate::app::{Command, UnitAct, UnitCommand};

/// `service …`.
#[derive(Debug, Subcommand)]
pub enum Service {
    /// Write the unit, start it, and have it started from now on
    Install {
        /// Show the unit, and install nothing
        #[arg(long)]
        print: bool,
        /// Whose manager.
        #[command(flatten)]
        flags: UnitFlags,
    },
    /// Stop it, and remove the unit; the data folder stays
    Uninstall(UnitFlags),
    /// How the unit is; exit 1 if it does not run
    Status(UnitFlags),
    /// Start it
    Start(UnitFlags),
    /// End it in order; it starts again at the next boot
    Stop(UnitFlags),
    /// End it in order, and start it again
    Restart(UnitFlags),
    /// What it logged
    Logs(Logs),
}

/// Whose manager.
#[derive(Clone, Copy, Debug, Args)]
pub struct UnitFlags {
    /// The machine's manager instead of your own
    #[arg(long)]
    pub system: bool,
}

/// `service logs`.
#[derive(Clone, Debug, Args)]
pub struct Logs {
    /// Whose manager.
    #[command(flatten)]
    pub flags: UnitFlags,
    /// Go on as more comes
    #[arg(short, long)]
    pub follow: bool,
    /// So many lines of the end
    #[arg(short = 'n', default_value_t = 100)]
    pub count: u32,
    /// Not before this time, as journalctl(1) reads it: `-1h`, `yesterday`
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub since: Option<String>,
}

impl Service {
    /// What it asks for; `logs` asks for no more than `status`.
    pub(in super::super) fn command(self) -> Command {
        let (UnitFlags { system }, act) = match self {
            Self::Install { print: true, flags } => (flags, UnitAct::Print),
            Self::Install { print: false, flags } => (flags, UnitAct::Install),
            Self::Uninstall(flags) => (flags, UnitAct::Uninstall),
            Self::Start(flags) => (flags, UnitAct::Start),
            Self::Stop(flags) => (flags, UnitAct::Stop),
            Self::Restart(flags) => (flags, UnitAct::Restart),
            Self::Status(flags) | Self::Logs(Logs { flags, .. }) => (flags, UnitAct::Status),
        };
        Command::Unit(UnitCommand { system, act })
    }
}
