//! The kernel's support of the sandbox, in words.

use agent_sandbox::SandboxStatus;

/// The support of the running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSupport {
    /// Whether the kernel enforces domains at all.
    pub enforced: bool,
    /// Whether the kernel enforces every part of a domain.
    pub whole: bool,
    /// The enforced parts, for a person.
    pub words: &'static str,
}

/// Queries the kernel.
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
