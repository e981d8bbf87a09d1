//! What the kernel holds of a sandbox, in words.

use agent_sandbox::SandboxStatus;

/// What the running kernel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Whether it holds domains at all.
    pub domains: bool,
    /// What holds, for a person.
    pub words: &'static str,
}

/// Asks the kernel.
#[must_use]
pub fn held() -> Held {
    match agent_sandbox::probe() {
        SandboxStatus::Whole => Held { domains: true, words: "Landlock, seccomp" },
        SandboxStatus::Partly => Held {
            domains: true,
            words: "Landlock, an older one, which does not hold signals to other processes; seccomp",
        },
        SandboxStatus::Not => Held { domains: false, words: "none: this kernel has no Landlock, or it is off" },
    }
}
