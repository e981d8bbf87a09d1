//! Says which commit this is, and links `ollim-shell` statically where the C library can be. It is started twice for each program of a job, and without the dynamic
//! linker's work a start takes 1.1 ms instead of 1.8 (measured on 2 cores).
//!
//! Cargo can set `crt-static` for a whole target only, and the service needs the dynamic C library (name resolution). So the linker is
//! given the same by hand: the start files of a static program, and a folder in which the names of the shared libraries lead to the
//! static ones.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The commit and its date, where there is no repository that says so: an image is built from a folder without one.
const NAMED: &str = "OLLIM_COMMIT";

/// What the standard library is linked with, and what is linked instead.
const INSTEAD: &[(&str, &str)] = &[
    ("libc.so", "-l:libc.a -l:libgcc_eh.a -l:libgcc.a"),
    ("libgcc_s.so", "-l:libgcc_eh.a -l:libgcc.a -l:libc.a"),
    ("libm.so", "-l:libm.a"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=OLLIM_BUILT_FROM={}", built_from());
    link_the_shell();
}

/// What `--version` says behind the number: ` (COMMIT DATE)`. Empty where there is neither a repository nor a package that names its
/// commit.
///
/// Only of a release. Everything is compiled anew when it changes, which would be at each commit.
fn built_from() -> String {
    println!("cargo::rerun-if-env-changed={NAMED}");
    if let Some(named) = env::var(NAMED).ok().filter(|named| !named.trim().is_empty()) {
        return format!(" ({})", named.trim());
    }
    if env::var("PROFILE").as_deref() != Ok("release") {
        return " (development build)".into();
    }
    // What a commit changes: where HEAD leads, and what it leads to.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // A package that was published is in no repository, or in somebody else's.
    let packaged = fs::read_to_string(".cargo_vcs_info.json").ok();
    let commit = packaged.and_then(|text| Some(text.split_once("\"sha1\": \"")?.1.get(..12)?.to_owned()));
    match commit {
        Some(commit) => format!(" ({commit})"),
        None => git(&["log", "-1", "--format= (%h %cs)", "--abbrev=12"])
            .map(|said| format!(" {}", said.trim()))
            .unwrap_or_default(),
    }
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
    let said = String::from_utf8(output.stdout).ok()?;
    Some(said.trim().to_owned()).filter(|said| !said.is_empty())
}

fn link_the_shell() {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|own| own == value);
    let native = env::var("HOST") == env::var("TARGET");
    if !(native && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu")) {
        return;
    }
    // Where a file is missing the program is linked like any other, and only slower to start.
    let needed = ["libc.a", "libm.a", "libgcc.a", "libgcc_eh.a", "rcrt1.o"];
    if !needed.iter().all(|file| the_linker_finds(file)) {
        return;
    }
    let Ok(out) = env::var("OUT_DIR").map(PathBuf::from) else { return };
    let written = INSTEAD.iter().map(|(name, libraries)| fs::write(out.join(name), format!("GROUP ( {libraries} )\n")));
    if written.collect::<Result<Vec<_>, _>>().is_ok() {
        println!("cargo::rustc-link-arg-bin=ollim-shell=-static-pie");
        println!("cargo::rustc-link-arg-bin=ollim-shell=-L{}", out.display());
    }
}

/// Asks the linker's driver, which repeats the bare name of a file that it does not find.
fn the_linker_finds(file: &str) -> bool {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let output = Command::new(linker).arg(format!("-print-file-name={file}")).output();
    output.is_ok_and(|output| {
        output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute()
    })
}
