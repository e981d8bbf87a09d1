//! System calls that no job needs and that lead around a domain, refused by seccomp.
//!
//! Several filters, since each has one answer: calls of another ABI of the processor (x32) do not exist; `clone3` does not
//! exist, so that the C library falls back to `clone`, whose flags can be seen; what [`RULES`] and [`sockets`] name is not
//! permitted. A filter is inherited and cannot be taken off.
//!
//! Source: seccomp(2), <https://docs.kernel.org/userspace-api/seccomp_filter.html>.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::domain::{Attributes, Network};

/// Why a filter could not be set.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// This processor is not known.
    #[error("no filter is written for this processor")]
    Processor,
    /// The filter could not be built.
    #[error(transparent)]
    Built(#[from] BackendError),
    /// The kernel refused it.
    #[error(transparent)]
    Refused(#[from] seccompiler::Error),
}

/// Refused whatever their arguments: looking into or at other processes, the kernel's keyrings, programs in the kernel,
/// asynchronous system calls that no filter sees, other namespaces, file systems, kernels.
const RULES: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    // `statmount`, `listmount`, `open_tree_attr`, which have these numbers on every processor.
    457,
    458,
    467,
];

/// Namespaces, as flags of `clone` and `unshare`. (That of time is no flag of `clone`, where its bit is part of a signal that
/// there is not.)
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWTIME,
];

/// They change attributes of a file by its path: mode, owner, times. Landlock holds none of them back. The last are `fchmodat2`,
/// `setxattrat`, `removexattrat` and `file_setattr`, which have these numbers on every processor.
const BY_PATH: &[i64] = &[
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    452,
    463,
    466,
    469,
];

/// The same, and the older call for watching, on processors that have them.
#[cfg(target_arch = "x86_64")]
const BY_PATH_BEFORE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_inotify_init,
];
#[cfg(not(target_arch = "x86_64"))]
const BY_PATH_BEFORE: &[i64] = &[];

/// They change attributes of an open file, be it open for reading only.
const BY_DESCRIPTOR: &[i64] =
    &[libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_fsetxattr, libc::SYS_fremovexattr, libc::SYS_utimensat];

/// Memory and queues that all processes of a user share, and that outlive a run.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// They tell what happens in folders, those out of reach too, and a user has few of them.
const WATCHING: &[i64] = &[libc::SYS_inotify_init1, libc::SYS_inotify_add_watch, libc::SYS_fanotify_init];

/// They set how another process is scheduled, by its number as the first argument.
const SCHEDULING: &[i64] =
    &[libc::SYS_sched_setaffinity, libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler];

/// Calls of the x32 ABI have this bit; they are the same calls under other numbers.
const X32: u32 = 0x4000_0000;

/// Leases (`F_SETLEASE`) hold up whoever opens a file, be it open for reading only; `F_NOTIFY` tells what happens in a folder.
const HOLDING_UP: &[u32] = &[1024, 1026];

/// Modes of `fallocate`: the file's length stays; and, together with that, blocks are given back instead of taken.
const KEEP_SIZE: u32 = 1;
const KEEP_SIZE_OR_PUNCH_HOLE: u64 = 3;

/// Types of `ioctl` that change a file's attributes, or what a folder holds, by a descriptor for reading: those of file systems in
/// common, of XFS, of versions, and of btrfs. (Bits 8 to 15 of the request.)
const OF_FILE_SYSTEMS: &[u32] = &[0x66, 0x58, 0x76, 0x94];

/// Sets the filters for the calling thread and all that it starts.
///
/// # Errors
/// [`FilterError`]; the process must then not go on.
pub fn apply(network: Network, attributes: Attributes) -> Result<(), FilterError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| FilterError::Processor)?;
    let none = |numbers: &[i64]| numbers.iter().map(|number| (*number, Vec::new())).collect::<BTreeMap<_, _>>();
    let mut refused = none(RULES);
    refused.extend(none(SHARED));
    // The limits of another process, and the one that is a run's mark.
    let of_another = SeccompRule::new(vec![argument(0, SeccompCmpOp::Ne, 0)?])?;
    let is_set = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let of_mark = SeccompRule::new(vec![number(1, SeccompCmpOp::Eq, libc::RLIMIT_RTTIME)?, is_set])?;
    refused.insert(libc::SYS_prlimit64, vec![of_another, of_mark]);
    refused
        .insert(libc::SYS_setrlimit, vec![SeccompRule::new(vec![number(0, SeccompCmpOp::Eq, libc::RLIMIT_RTTIME)?])?]);
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        refused.insert(call, namespaces()?);
    }
    refused.insert(libc::SYS_fcntl, any_of(HOLDING_UP, |command| number(1, SeccompCmpOp::Eq, *command))?);
    // What cannot be looked at cannot be counted (PR_SET_DUMPABLE).
    refused
        .insert(libc::SYS_prctl, vec![SeccompRule::new(vec![argument(0, SeccompCmpOp::Eq, libc::PR_SET_DUMPABLE)?])?]);
    // A user can make other processes of theirs slow, and cannot take it back.
    for call in SCHEDULING {
        refused.insert(*call, vec![SeccompRule::new(vec![argument(0, SeccompCmpOp::Ne, 0)?])?]);
    }
    for call in [libc::SYS_setpriority, libc::SYS_ioprio_set] {
        let itself = if call == libc::SYS_setpriority { 0 } else { 1 };
        let others = [argument(0, SeccompCmpOp::Ne, itself)?, argument(1, SeccompCmpOp::Ne, 0)?];
        let rules = others.into_iter().map(|other| SeccompRule::new(vec![other])).collect::<Result<_, _>>()?;
        refused.insert(call, rules);
    }
    if attributes == Attributes::None {
        refused.extend(none(BY_PATH));
        refused.extend(none(BY_PATH_BEFORE));
        refused.extend(none(BY_DESCRIPTOR));
        refused.extend(none(WATCHING));
        let of_type = |kind: &u32| number(1, SeccompCmpOp::MaskedEq(0xff00), kind << 8);
        refused.insert(libc::SYS_ioctl, any_of(OF_FILE_SYSTEMS, of_type)?);
    }
    match network {
        Network::None => refused.extend(none(&[
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_accept,
            libc::SYS_accept4,
        ])),
        Network::Local => _ = refused.insert(libc::SYS_socket, sockets(&[libc::AF_UNIX])?),
        Network::Internet | Network::All => {
            let mut rules = sockets(&[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?;
            // Of netlink only the routes and addresses of this machine (protocol 0), which name resolution reads.
            rules.push(SeccompRule::new(vec![
                argument(0, SeccompCmpOp::Eq, libc::AF_NETLINK)?,
                argument(2, SeccompCmpOp::Ne, 0)?,
            ])?);
            if network == Network::Internet {
                for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW] {
                    rules.push(SeccompRule::new(vec![argument(0, SeccompCmpOp::Eq, libc::AF_UNIX)?, of_kind(kind)?])?);
                }
            }
            refused.insert(libc::SYS_socket, rules);
        }
    }
    if matches!(network, Network::None | Network::Internet) {
        refused.insert(libc::SYS_socketpair, unbound_pairs()?);
    }
    let filter = |rules, errno: libc::c_int| -> Result<BpfProgram, FilterError> {
        let answer = SeccompAction::Errno(errno.unsigned_abs());
        Ok(SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()?)
    };
    seccompiler::apply_filter(&filter(refused, libc::EPERM)?)?;
    seccompiler::apply_filter(&filter(none(&[libc::SYS_clone3, libc::SYS_io_setup]), libc::ENOSYS)?)?;
    // The kernel holds the limit of a file's size against its length only: blocks beyond its end would not count.
    let beyond_the_end = number(1, SeccompCmpOp::MaskedEq(KEEP_SIZE_OR_PUNCH_HOLE), KEEP_SIZE)?;
    let blocks = BTreeMap::from([(libc::SYS_fallocate, vec![SeccompRule::new(vec![beyond_the_end])?])]);
    seccompiler::apply_filter(&filter(blocks, libc::EOPNOTSUPP)?)?;
    if cfg!(target_arch = "x86_64") {
        seccompiler::apply_filter(&no_x32())?;
    }
    Ok(())
}

/// Rules of Landlock's own kind, which the kernel counts for nobody and of which a process can make gigabytes: whoever is in its last
/// domain makes no more. They do not exist, as on a kernel before 5.13, so that programs that would shut themselves in go on.
const DOMAINS: &[i64] =
    &[libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];

/// No domain is entered any more by the calling thread and all that it starts.
///
/// # Errors
/// [`FilterError`]; the process must then not go on.
pub(crate) fn no_more_domains() -> Result<(), FilterError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| FilterError::Processor)?;
    let calls = DOMAINS.iter().map(|number| (*number, Vec::new())).collect();
    let answer = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter: BpfProgram = SeccompFilter::new(calls, SeccompAction::Allow, answer, arch)?.try_into()?;
    Ok(seccompiler::apply_filter(&filter)?)
}

/// One rule for each value: any of them is enough.
fn any_of<T>(
    values: &[T],
    condition: impl Fn(&T) -> Result<SeccompCondition, FilterError>,
) -> Result<Vec<SeccompRule>, FilterError> {
    values.iter().map(|value| Ok(SeccompRule::new(vec![condition(value)?])?)).collect()
}

/// The flag of some namespace is set.
fn namespaces() -> Result<Vec<SeccompRule>, FilterError> {
    any_of(NAMESPACES, |flag| {
        let mask = u64::from(flag.unsigned_abs());
        Ok(SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), mask)?)
    })
}

/// Pairs of datagram sockets: each of them sends to any socket with a path, which needs neither `socket` nor `connect`.
fn unbound_pairs() -> Result<Vec<SeccompRule>, FilterError> {
    any_of(&[libc::SOCK_DGRAM, libc::SOCK_RAW], |kind| of_kind(*kind))
}

/// The second argument is this kind of socket; beside the kind stand flags.
fn of_kind(kind: libc::c_int) -> Result<SeccompCondition, FilterError> {
    let compare = SeccompCmpOp::MaskedEq(0xf);
    Ok(SeccompCondition::new(1, SeccompCmpArgLen::Dword, compare, u64::from(kind.unsigned_abs()))?)
}

/// Refuses `socket` for every family but these.
fn sockets(families: &[libc::c_int]) -> Result<Vec<SeccompRule>, FilterError> {
    let others = families.iter().map(|family| argument(0, SeccompCmpOp::Ne, *family)).collect::<Result<_, _>>()?;
    Ok(vec![SeccompRule::new(others)?])
}

fn argument(at: u8, compare: SeccompCmpOp, value: libc::c_int) -> Result<SeccompCondition, FilterError> {
    number(at, compare, value.unsigned_abs())
}

fn number(at: u8, compare: SeccompCmpOp, value: u32) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(at, SeccompCmpArgLen::Dword, compare, u64::from(value))?)
}

/// Load the call's number; not below [`X32`]: it does not exist; else it is allowed by this filter.
fn no_x32() -> BpfProgram {
    let (load, at_least, answer) = (0x20, 0x35, 0x06);
    let (allowed, errno) = (0x7fff_0000, 0x0005_0000);
    vec![
        sock_filter { code: load, jt: 0, jf: 0, k: 0 },
        sock_filter { code: at_least, jt: 0, jf: 1, k: X32 },
        sock_filter { code: answer, jt: 0, jf: 0, k: errno | libc::ENOSYS.unsigned_abs() },
        sock_filter { code: answer, jt: 0, jf: 0, k: allowed },
    ]
}
