//! What the kernel enforces of a sandbox, in words.

use agent_sandbox::SandboxStatus;

/// What the running kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSupport {
    /// Whether it enforces domains at all.
    pub enforced: bool,
    /// Whether it enforces all that a domain says.
    pub whole: bool,
    /// What it enforces, for a person.
    pub words: &'static str,
}

/// Asks the kernel.
#[must_use]
pub fn kernel_support() -> KernelSupport {
    match agent_sandbox::probe() {
        SandboxStatus::Whole => KernelSupport { enforced: true, whole: true, words: "Landlock, seccomp" },
        SandboxStatus::Partly => KernelSupport {
            enforced: true,
            whole: false,
            words: "Landlock, an older one, which does not hold signals to other processes; seccomp",
        },
        SandboxStatus::Not => {
            KernelSupport { enforced: false, whole: false, words: "none: this kernel has no Landlock, or it is off" }
        }
    }
}
