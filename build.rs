//! Links `ollim-shell` statically where the C library can be. It is started twice for each program of a job, and without the dynamic
//! linker's work a start takes 1.1 ms instead of 1.8 (measured on 2 cores).
//!
//! Cargo can set `crt-static` for a whole target only, and the service needs the dynamic C library (name resolution). So the linker is
//! given the same by hand: the start files of a static program, and a folder in which the names of the shared libraries lead to the
//! static ones.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the standard library is linked with, and what is linked instead.
const INSTEAD: &[(&str, &str)] = &[
    ("libc.so", "-l:libc.a -l:libgcc_eh.a -l:libgcc.a"),
    ("libgcc_s.so", "-l:libgcc_eh.a -l:libgcc.a -l:libc.a"),
    ("libm.so", "-l:libm.a"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
