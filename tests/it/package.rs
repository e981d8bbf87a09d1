//! The Debian package, from `scripts/package` with the programs that the tests use. It is unpacked, and its programs are run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::bot::CommandOutput;

/// Builds the package and unpacks it into the folder. Returns the fields that describe it.
fn unpacked(folder: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = folder.join("ollim-bot.deb");
    let mut package = Command::new(root.join("scripts/package"));
    package.arg("--built").arg("--output").arg(&file).current_dir(root);
    let made = CommandOutput::of(package);
    assert_eq!(made.code, 0, "the package cannot be built: {made:#?}");
    let deb = |words: &[&str], last: Option<&Path>| {
        let mut deb = Command::new("dpkg-deb");
        let ran = CommandOutput::of({
            deb.args(words).arg(&file).args(last);
            deb
        });
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.stdout
    };
    deb(&["-x"], Some(&folder.join("root")));
    deb(&["--field"], None)
}

/// Returns the names in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Runs the package's program, in an environment in which only its own folder is new.
fn run(root: &Path, program: &str, args: &[&str]) -> CommandOutput {
    let mut command = Command::new(root.join("usr/bin").join(program));
    command.args(args).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", root).current_dir(root);
    CommandOutput::of(command)
}

#[test]
fn what_the_debian_package_installs_works() {
    let folder = tempfile::TempDir::with_prefix("ollim-package-").unwrap();
    let described = unpacked(folder.path());
    for field in ["Package: ollim-bot\n", concat!("Version: ", env!("CARGO_PKG_VERSION")), "ca-certificates"] {
        assert!(described.contains(field), "{field}: {described}");
    }
    let root = folder.path().join("root");

    assert_eq!(names(&root.join("usr/bin")), BTreeSet::from(["ollim-bot", "ollim-shell"].map(str::to_owned)));
    let version = run(&root, "ollim-bot", &["--version"]);
    assert!(version.stdout.starts_with(concat!("ollim-bot ", env!("CARGO_PKG_VERSION"))), "{version:#?}");
    let made = run(&root, "ollim-bot", &["init", "--yes", "--bare"]);
    assert!(made.code == 0 && root.join(".ollim-bot/config.yaml").is_file(), "{made:#?}");

    // The unit is the packager's, and starts the program where the package puts it.
    let unit = fs::read_to_string(root.join("usr/lib/systemd/user/ollim-bot.service")).unwrap();
    let starts = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/")).unwrap();
    assert!(root.join(starts.split(' ').next().unwrap()).is_file(), "{starts}");

    // Each visible command has its page.
    let pages = names(&root.join("usr/share/man/man1"));
    let help = run(&root, "ollim-bot", &["--help"]).stdout;
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let begins = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let commands: Vec<&str> =
        commands.lines().filter(begins).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"reminder"), "{commands:?}");
    for command in commands {
        assert!(pages.contains(&format!("ollim-bot-{command}.1.gz")), "{command}: {pages:?}");
    }
    let page =
        Command::new("gzip").args(["-dc"]).arg(root.join("usr/share/man/man1/ollim-bot-reminder-add.1.gz")).output();
    assert!(String::from_utf8(page.unwrap().stdout).unwrap().contains(".TH ollim-bot-reminder-add 1"));

    for (shell, file) in [
        ("bash", "bash-completion/completions/ollim-bot"),
        ("zsh", "zsh/vendor-completions/_ollim-bot"),
        ("fish", "fish/vendor_completions.d/ollim-bot.fish"),
    ] {
        let installed = fs::read_to_string(root.join("usr/share").join(file)).unwrap();
        assert_eq!(installed, run(&root, "ollim-bot", &["completions", shell]).stdout);
    }
    // The documents that the README leads to are there.
    let docs = root.join("usr/share/doc/ollim-bot");
    let readme = fs::read_to_string(docs.join("README.md")).unwrap();
    let linked: Vec<PathBuf> =
        readme.split("](docs/").skip(1).map(|rest| PathBuf::from(rest.split([')', '#']).next().unwrap())).collect();
    assert!(!linked.is_empty());
    for page in linked {
        assert!(docs.join("docs").join(&page).is_file(), "{}", page.display());
    }
}
