//! Other mounts that show a place of the file system once more.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The kernel's list of mounts (proc_pid_mountinfo(5)).
const MOUNTS: &str = "/proc/self/mountinfo";

/// A mount: a tree of a file system, and where it is.
struct Mount {
    /// The file system, as the kernel numbers it.
    device: String,
    /// The tree, from the root of the file system.
    root: PathBuf,
    /// Where it is mounted.
    at: PathBuf,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').skip(2);
        let device = fields.next()?.to_owned();
        Some(Self { device, root: unescaped(fields.next()?), at: unescaped(fields.next()?) })
    }
}

/// Returns the paths at which other mounts show these places or parts of them. The places must be free of symlinks. A bind mount shows a
/// folder at a second path, and so does a file system that is mounted twice.
#[must_use]
pub fn other_paths(places: &[PathBuf]) -> Vec<PathBuf> {
    // Without /proc, nobody can tell. A path that is no text hides none of the others.
    let mounts = std::fs::read(MOUNTS).unwrap_or_default();
    in_mounts(&String::from_utf8_lossy(&mounts), places)
}

fn in_mounts(mounts: &str, places: &[PathBuf]) -> Vec<PathBuf> {
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let others = |place: &PathBuf| {
        // Another mount may cover this one, at the place or above it. What is below shows elsewhere, too.
        let own = mounts.iter().filter(|mount| place.starts_with(&mount.at));
        own.flat_map(|own| others_of(&mounts, own, place)).collect::<Vec<_>>()
    };
    let mut found: Vec<PathBuf> = places.iter().flat_map(others).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the paths at which other mounts show a place of the mount `own`.
fn others_of(mounts: &[Mount], own: &Mount, place: &Path) -> Vec<PathBuf> {
    let Ok(below) = place.strip_prefix(&own.at) else { return Vec::new() };
    let in_file_system = own.root.join(below);
    let same = mounts.iter().filter(|mount| mount.device == own.device);
    let paths = same.filter_map(|mount| match in_file_system.strip_prefix(&mount.root) {
        Ok(below) => Some(mount.at.join(below)),
        // It may show a part of the place.
        Err(_) => mount.root.starts_with(&in_file_system).then(|| mount.at.clone()),
    });
    // A joined empty path ends in a slash.
    let paths = paths.map(|path| path.components().collect::<PathBuf>());
    paths.filter(|path| !path.starts_with(place) && path.parent().is_some()).collect()
}

/// Replaces `\040` by a blank, and so on.
fn unescaped(field: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\');
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root, a home on a file system of its own, and further mounts.
    const BASE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 8:2 / /home rw,relatime shared:2 - ext4 /dev/sda2 rw
";

    #[track_caller]
    fn check(more: &str, place: &str, expect: &[&str]) {
        let expect: Vec<PathBuf> = expect.iter().map(PathBuf::from).collect();
        assert_eq!(in_mounts(&format!("{BASE}{more}"), &[place.into()]), expect, "{more}");
    }

    #[test]
    fn each_mount_that_shows_a_place_once_more_is_found() {
        let bot = "/home/ann/.ollim-bot";
        check("", bot, &[]);
        check("30 22 8:2 /ann /srv/ann rw - ext4 /dev/sda2 rw", bot, &["/srv/ann/.ollim-bot"]);
        check("30 22 8:2 /ann/.ollim-bot /mnt/my\\040bot rw - ext4 /dev/sda2 rw", bot, &["/mnt/my bot"]);
        // The whole file system once more, as with subvolumes.
        check("30 22 8:2 / /mnt/all rw - ext4 /dev/sda2 rw", bot, &["/mnt/all/ann/.ollim-bot"]);
        // Another part of it, another file system, and a mount in the place itself.
        check("30 22 8:2 /bob /srv/bob rw - ext4 /dev/sda2 rw", bot, &[]);
        check("30 22 8:3 /ann /srv/ann rw - ext4 /dev/sda3 rw", bot, &[]);
        check("30 22 8:2 / /home/ann/.ollim-bot/work/all rw - ext4 /dev/sda2 rw", bot, &[]);
        // A part of the place.
        check("30 22 8:2 /ann/.ollim-bot/state /srv/state rw - ext4 /dev/sda2 rw", bot, &["/srv/state"]);
        // A place below the root, whose file system is mounted once more.
        check("30 22 8:1 / /sysroot rw - ext4 /dev/sda1 rw", "/var/bot", &["/sysroot/var/bot"]);
        // A later mount covers an earlier one at the same path.
        check("30 24 8:4 /ann /home rw - ext4 /d rw\n31 22 8:4 / /mnt rw - ext4 /d rw", "/home/bot", &["/mnt/ann/bot"]);
        check("not a mount", bot, &[]);
    }

    #[test]
    fn what_a_covered_mount_shows_elsewhere_is_found() {
        let mounts = "\
30 22 0:40 / /home/ann/.ollim-bot rw - tmpfs a rw
31 22 0:41 / /home rw - tmpfs b rw
32 22 0:41 / /mnt rw - tmpfs b rw
33 22 0:40 / /srv rw - tmpfs a rw
";
        let found = in_mounts(&format!("{BASE}{mounts}"), &["/home/ann/.ollim-bot".into()]);
        assert_eq!(found, ["/mnt/ann/.ollim-bot", "/srv"].map(PathBuf::from));
    }
}
