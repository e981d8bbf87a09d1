//! The environment of all clients, the search path of jobs, and the program of the sandbox.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::agent::claude::options::ClientEnvironment;
use crate::config::Config;
use crate::home::Home;

/// Returns the program of the sandbox's stages: `ollim-shell` beside our own binary, or else our own, which starts more slowly.
#[must_use]
pub fn shell_binary(own_binary: &Path) -> PathBuf {
    let beside = own_binary.with_file_name("ollim-shell");
    if beside.is_file() { beside } else { own_binary.to_path_buf() }
}

/// Returns the search path of jobs: our own binary's folder, the person's own commands, then the service's `PATH`.
#[must_use]
pub fn search_path(env: &BTreeMap<String, String>, own_binary: &Path, home: &Home) -> Vec<PathBuf> {
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let rest = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    own_binary.parent().map(Path::to_path_buf).into_iter().chain([home.bin()]).chain(rest).collect()
}

/// Returns the basis of every client's environment.
#[must_use]
pub fn client_environment(
    config: &Config,
    home: &Home,
    env: &BTreeMap<String, String>,
    own_binary: &Path,
) -> ClientEnvironment {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let added = |name: &String| Some((name.clone(), env.get(name)?.clone()));
    ClientEnvironment {
        own: env.clone(),
        added: config.client_env.iter().filter_map(added).collect(),
        programs: own_binary.parent().map(text).into_iter().chain([text(&home.bin())]).collect(),
        data_folder: text(home.root()),
    }
}
