//! The check of a job's requirements on the machine (`requires`), by files of the kernel.

use std::fs;
use std::io;
use std::path::Path;

use crate::definition::Need;

/// Returns the first unmet requirement, as a sentence without its full stop; `None` if all are met. `root` is `/`.
#[must_use]
fn unmet_requirement(needs: &[Need], root: &Path) -> Option<&'static str> {
    let missing = |need: &Need| match need {
        Need::Online => (!is_online(root)).then_some("the machine has no default route (`requires: online`)"),
        Need::Power => (!has_power(root)).then_some("the machine runs on its battery (`requires: power`)"),
    };
    needs.iter().find_map(missing)
}

/// Free space without which no run starts, in bytes. Its folder and its own small files need less.
const ROOM_OF_RUN: u64 = 1024 * 1024;

/// The number of free files without which no run starts.
const FILES_OF_RUN: u64 = 100;

/// The free space on a disk.
#[derive(Clone, Copy, Debug)]
pub struct FreeSpace {
    /// In bytes.
    pub room: u64,
    /// The number of files that can be made.
    pub files: u64,
}

/// Returns the free space on the disk of a folder.
///
/// # Errors
/// If the kernel does not tell it.
pub fn free_space(folder: &Path) -> io::Result<FreeSpace> {
    let facts = rustix::fs::statvfs(folder)?;
    // Some file systems do not count their files.
    let files = if facts.f_files == 0 { u64::MAX } else { facts.f_favail };
    Ok(FreeSpace { room: facts.f_bavail.saturating_mul(facts.f_frsize), files })
}

/// Returns why a run cannot have its folder, as a sentence without its full stop; `None` if there is room on the disk of the data folder.
fn full_disk(data_folder: &Path) -> Option<&'static str> {
    let FreeSpace { room, files } = free_space(data_folder).ok()?;
    (room < ROOM_OF_RUN || files < FILES_OF_RUN).then_some("the disk of the data folder is full")
}

/// Returns why this machine cannot begin a job now: as [`unmet_requirement`], or since the disk is full. `data_folder` is given for a job that
/// needs a folder of its own there.
#[must_use]
pub fn missing(needs: &[Need], data_folder: Option<&Path>) -> Option<&'static str> {
    data_folder.and_then(full_disk).or_else(|| unmet_requirement(needs, Path::new("/")))
}

/// Returns whether there is a default route. If the kernel shows no routes at all, the job is not delayed.
fn is_online(root: &Path) -> bool {
    const UP: u32 = 0x1;
    const REJECT: u32 = 0x200;
    let read = |file: &str| fs::read_to_string(root.join("proc/net").join(file)).ok();
    let (v4, v6) = (read("route"), read("ipv6_route"));
    if v4.is_none() && v6.is_none() {
        return true;
    }
    let number = |text: &&str| u32::from_str_radix(text, 16).unwrap_or(REJECT);
    let leads = |device: &str, flags: u32| device != "lo" && flags & UP != 0 && flags & REJECT == 0;
    let by_v4 = v4.unwrap_or_default().lines().skip(1).any(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        matches!(&words[..], [device, "00000000", _, flags, _, _, _, "00000000", ..] if leads(device, number(flags)))
    });
    by_v4
        || v6.unwrap_or_default().lines().any(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let is_default =
                words.first().is_some_and(|to| to.bytes().all(|b| b == b'0')) && words.get(1) == Some(&"00");
            is_default && matches!(&words[..], [.., flags, device] if leads(device, number(flags)))
        })
}

/// Returns whether the machine runs on mains power. A machine without a battery does.
fn has_power(root: &Path) -> bool {
    let Ok(entries) = fs::read_dir(root.join("sys/class/power_supply")) else { return true };
    let (mut discharges, mut supplied) = (false, false);
    for entry in entries.flatten() {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default().trim().to_owned();
        match &*read("type") {
            // Batteries of devices such as a mouse or a headset do not count.
            "Battery" if read("scope") != "Device" => discharges |= read("status") == "Discharging",
            "Mains" | "USB" => supplied |= read("online") == "1",
            _ => {}
        }
    }
    supplied || !discharges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        root
    }

    #[test]
    fn a_default_route_is_online() {
        const HEAD: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";
        const NOWHERE: &str = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 \
                               ffffffff 00000001 00000000 00200200 lo";
        let v6 = NOWHERE.replace("00200200 lo", "00000003 wlan0");
        let (default, local) =
            ("eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0", "eth0 000200C0 0 0001 0 0 0 00FFFFFF 0 0 0");
        for (v4, v6, expected) in [
            (default, NOWHERE, true),
            (local, NOWHERE, false),
            ("eth0 00000000 010200C0 0002 0 0 0 00000000 0 0 0", NOWHERE, false),
            // A tunnel's route for half of the internet is not a default route.
            ("tun0 00000000 010200C0 0003 0 0 0 00000080 0 0 0", NOWHERE, false),
            ("", NOWHERE, false),
            (local, &v6, true),
        ] {
            let root = machine(&[("proc/net/route", &format!("{HEAD}{v4}")), ("proc/net/ipv6_route", v6)]);
            assert_eq!(unmet_requirement(&[Need::Power, Need::Online], root.path()).is_none(), expected, "{v4} {v6}");
        }
        assert_eq!(unmet_requirement(&[Need::Online], machine(&[]).path()), None);
    }

    #[test]
    fn a_battery_that_empties_is_no_mains() {
        let battery =
            |status: &str| [("B/type".to_owned(), "Battery".to_owned()), ("B/status".to_owned(), status.to_owned())];
        let mains =
            |online: &str| [("A/type".to_owned(), "Mains".to_owned()), ("A/online".to_owned(), online.to_owned())];
        let mouse = [("M/type", "Battery"), ("M/status", "Discharging"), ("M/scope", "Device")];
        let mouse = mouse.map(|(file, text)| (file.to_owned(), text.to_owned()));
        for (supplies, expected) in [
            (vec![], true),
            (mouse.to_vec(), true),
            ([battery("Discharging"), mains("0")].concat(), false),
            ([battery("Discharging"), mains("1")].concat(), true),
            ([battery("Charging"), mains("1")].concat(), true),
            (battery("Discharging").to_vec(), false),
            (battery("Full").to_vec(), true),
            (mains("1").to_vec(), true),
        ] {
            let files: Vec<_> =
                supplies.iter().map(|(file, text)| (format!("sys/class/power_supply/{file}"), text.as_str())).collect();
            let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), *text)).collect();
            assert_eq!(unmet_requirement(&[Need::Power], machine(&files).path()).is_none(), expected, "{files:?}");
        }
    }
}
