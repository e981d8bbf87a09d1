//! Refuses system calls that no job needs and that bypass a domain, by seccomp.
//!
//! There are several filters, since each has one answer: calls of the x32 ABI do not exist; `clone3` does not exist, so that the
//! C library falls back to `clone`, whose flags a filter can see; calls in [`RULES`] and [`sockets`] are not permitted. A filter
//! is inherited and cannot be removed.
//!
//! Source: seccomp(2), <https://docs.kernel.org/userspace-api/seccomp_filter.html>.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::domain::{Attributes, Network};

/// Reasons why a filter could not be set.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The processor is not supported.
    #[error("no filter is written for this processor")]
    Processor,
    /// The filter could not be built.
    #[error(transparent)]
    Built(#[from] BackendError),
    /// The kernel refused it.
    #[error(transparent)]
    Refused(#[from] seccompiler::Error),
}

/// Calls refused with any arguments: inspection of other processes, the kernel's keyrings, programs in the kernel, asynchronous
/// system calls that no filter sees, memory that no limit counts, other namespaces, file systems, kernels.
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
    libc::SYS_memfd_secret,
    libc::SYS_vmsplice,
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
    // `statmount`, `listmount` and `open_tree_attr`, which have these numbers on every processor.
    457,
    458,
    467,
];

/// Namespaces, as flags of `clone` and `unshare`. (`clone` has no flag for a time namespace. Its bit there belongs to the number of
/// a signal that does not exist.)
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

/// Calls that change attributes of a file by its path: mode, owner, times. Landlock restricts none of them. The last are `fchmodat2`,
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

/// Older calls of this kind, and the older call for watching, on processors that have them.
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

/// Calls that change attributes of an open file, even if it is open only for reading.
const BY_DESCRIPTOR: &[i64] =
    &[libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_fsetxattr, libc::SYS_fremovexattr, libc::SYS_utimensat];

/// Calls for memory and queues that all processes of a user share, and that outlive a run.
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

/// Calls that watch folders, even those out of reach. A user also has few watches.
const WATCHING: &[i64] = &[libc::SYS_inotify_init1, libc::SYS_inotify_add_watch, libc::SYS_fanotify_init];

/// Calls that set how another process is scheduled. The first argument is its pid.
const SCHEDULING: &[i64] =
    &[libc::SYS_sched_setaffinity, libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler];

/// The bit in the numbers of the x32 ABI's calls, which otherwise repeat known calls.
const X32: u32 = 0x4000_0000;

/// Commands of `fcntl`: leases (`F_SETLEASE`) delay others that open a file, and `F_NOTIFY` watches a folder.
const HOLDING_UP: &[u32] = &[1024, 1026];

/// Modes of `fallocate`: keep the file's length; and, together with that, free blocks instead of allocating them.
const KEEP_SIZE: u32 = 1;
const KEEP_SIZE_OR_PUNCH_HOLE: u64 = 3;

/// Types of `ioctl` (bits 8 to 15 of the request) that change a file's attributes or a folder's contents through a descriptor for reading:
/// those that file systems share, of XFS, of versions, and of btrfs.
const OF_FILE_SYSTEMS: &[u32] = &[0x66, 0x58, 0x76, 0x94];

/// Filters for a process, which are all set.
type Filters = Arc<[BpfProgram]>;

/// The filters that this process has built. Building them takes longer than setting them.
static BUILT: Mutex<Vec<((Network, Attributes), Filters)>> = Mutex::new(Vec::new());

/// Sets the filters for the calling thread and its descendants.
///
/// # Errors
/// [`FilterError`]; the process must then end.
pub fn apply(network: Network, attributes: Attributes) -> Result<(), FilterError> {
    built(network, attributes)?.iter().try_for_each(|filter| Ok(seccompiler::apply_filter(filter)?))
}

/// Returns the filters, and keeps them for [`apply`].
///
/// # Errors
/// [`FilterError`] if they cannot be built.
pub(crate) fn built(network: Network, attributes: Attributes) -> Result<Filters, FilterError> {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, filters)) = built.iter().find(|(of, _)| *of == (network, attributes)) {
        return Ok(Arc::clone(filters));
    }
    let filters: Filters = build(network, attributes)?.into();
    built.push(((network, attributes), Arc::clone(&filters)));
    Ok(filters)
}

fn build(network: Network, attributes: Attributes) -> Result<Vec<BpfProgram>, FilterError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| FilterError::Processor)?;
    let none = |numbers: &[i64]| numbers.iter().map(|number| (*number, Vec::new())).collect::<BTreeMap<_, _>>();
    let mut refused = none(RULES);
    refused.extend(none(SHARED));
    // Refuse to change limits of another process, and the limit that is a run's mark.
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
    // Refuse PR_SET_DUMPABLE: the usage of a process that cannot be inspected cannot be counted.
    refused
        .insert(libc::SYS_prctl, vec![SeccompRule::new(vec![argument(0, SeccompCmpOp::Eq, libc::PR_SET_DUMPABLE)?])?]);
    // A job could slow down the user's other processes, and could not undo that.
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
            // Of netlink only protocol 0: the routes and addresses of this machine, which name resolution reads.
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
    // The kernel checks the limit of a file's size only against its length, so blocks beyond the end would not count.
    let beyond_the_end = number(1, SeccompCmpOp::MaskedEq(KEEP_SIZE_OR_PUNCH_HOLE), KEEP_SIZE)?;
    let blocks = BTreeMap::from([(libc::SYS_fallocate, vec![SeccompRule::new(vec![beyond_the_end])?])]);
    let mut filters = vec![
        filter(refused, libc::EPERM)?,
        filter(none(&[libc::SYS_clone3, libc::SYS_io_setup]), libc::ENOSYS)?,
        filter(blocks, libc::EOPNOTSUPP)?,
    ];
    filters.extend(cfg!(target_arch = "x86_64").then(no_x32));
    Ok(filters)
}

/// The calls of Landlock. The kernel accounts its rules to nobody, and a process could make gigabytes of them, so a process in its last
/// domain makes no more. The calls do not exist, as in kernels before 5.13, so programs that would sandbox themselves continue.
const DOMAINS: &[i64] =
    &[libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];

/// Keeps the calling thread and its descendants from entering further domains.
///
/// # Errors
/// [`FilterError`]; the process must then end.
pub(crate) fn no_more_domains() -> Result<(), FilterError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| FilterError::Processor)?;
    let calls = DOMAINS.iter().map(|number| (*number, Vec::new())).collect();
    let answer = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter: BpfProgram = SeccompFilter::new(calls, SeccompAction::Allow, answer, arch)?.try_into()?;
    Ok(seccompiler::apply_filter(&filter)?)
}

/// Returns one rule for each value. One match is enough.
fn any_of<T>(
    values: &[T],
    condition: impl Fn(&T) -> Result<SeccompCondition, FilterError>,
) -> Result<Vec<SeccompRule>, FilterError> {
    values.iter().map(|value| Ok(SeccompRule::new(vec![condition(value)?])?)).collect()
}

/// Returns rules that match if the flag of any namespace is set.
fn namespaces() -> Result<Vec<SeccompRule>, FilterError> {
    any_of(NAMESPACES, |flag| {
        let mask = u64::from(flag.unsigned_abs());
        Ok(SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), mask)?)
    })
}

/// Returns rules for pairs of datagram sockets. Each of them can send to any socket with a path, without `socket` or `connect`.
fn unbound_pairs() -> Result<Vec<SeccompRule>, FilterError> {
    any_of(&[libc::SOCK_DGRAM, libc::SOCK_RAW], |kind| of_kind(*kind))
}

/// Returns a condition on the kind of socket in the second argument. Flags beside the kind are ignored.
fn of_kind(kind: libc::c_int) -> Result<SeccompCondition, FilterError> {
    let compare = SeccompCmpOp::MaskedEq(0xf);
    Ok(SeccompCondition::new(1, SeccompCmpArgLen::Dword, compare, u64::from(kind.unsigned_abs()))?)
}

/// Returns rules that refuse `socket` for every family except these.
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

/// Returns a filter that loads the call's number, answers ENOSYS from [`X32`] up, and allows all else.
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
