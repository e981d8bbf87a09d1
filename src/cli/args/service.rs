//! `service`: the service as a systemd unit.

use clap::{Args, Subcommand};

use crate::app::{Command, UnitAct, UnitCommand};

/// `service …`.
#[derive(Debug, Subcommand)]
pub enum Service {
    /// Write the unit, start it, and enable it
    Install {
        /// Print the unit, without installing it
        #[arg(long)]
        print: bool,
        /// The systemd manager.
        #[command(flatten)]
        flags: UnitFlags,
    },
    /// Stop the service and remove the unit; the data folder stays
    Uninstall(UnitFlags),
    /// Show the unit's state; exit 1 if it is not running
    Status(UnitFlags),
    /// Start the service
    Start(UnitFlags),
    /// Stop the service gracefully; it starts again at the next boot
    Stop(UnitFlags),
    /// Stop the service gracefully, and start it again
    Restart(UnitFlags),
    /// Show the service's log
    Logs(Logs),
}

/// The systemd manager that runs the unit.
#[derive(Clone, Copy, Debug, Args)]
pub struct UnitFlags {
    /// Use the machine's manager instead of your own
    #[arg(long)]
    pub system: bool,
}

/// `service logs`.
#[derive(Clone, Debug, Args)]
pub struct Logs {
    /// The systemd manager.
    #[command(flatten)]
    pub flags: UnitFlags,
    /// Also show new lines as they arrive
    #[arg(short, long)]
    pub follow: bool,
    /// The number of lines from the end
    #[arg(short = 'n', default_value_t = 100)]
    pub count: u32,
    /// Only lines since this time, as journalctl(1) reads it: `-1h`, `yesterday`
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub since: Option<String>,
}

impl Service {
    /// Returns the command to execute. `logs` needs no more than `status`.
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
