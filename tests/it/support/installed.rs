//! Both programs in a folder, as a package installs them.

use std::fs;
use std::path::{Path, PathBuf};

use super::bot::TestBot;

/// Returns a folder with both programs.
pub fn programs(bot: &TestBot) -> PathBuf {
    let folder = bot.person().join("prog");
    fs::create_dir(&folder).unwrap();
    replace(&folder);
    folder
}

/// Replaces both programs by a rename, as every installer does.
pub fn replace(folder: &Path) {
    for program in [env!("CARGO_BIN_EXE_ollim-bot"), env!("CARGO_BIN_EXE_ollim-shell")] {
        let place = folder.join(Path::new(program).file_name().unwrap());
        let fresh = place.with_extension("new");
        fs::copy(program, &fresh).unwrap();
        fs::rename(fresh, place).unwrap();
    }
}
