//! Misleading patterns, which restrict less than they seem to, or grant nothing.

use crate::rule::{Matcher, Origin, Rule};
use crate::start::is_name;
use crate::{Application, ToolPattern, client_tools};

/// Returns warnings about a pattern in an allowlist that the person may have meant differently.
pub(super) fn misleading(rule: &Rule) -> Vec<String> {
    let pattern = &rule.pattern;
    let specifier = pattern.specifier().unwrap_or_default();
    let mut out = Vec::new();
    let tool = pattern.canonical_tool();
    if client_tools::BLOCKED.contains(&tool) && tool != "Agent" {
        out.push(format!("`{pattern}` grants nothing: {tool} is blocked for every job; remove it"));
    }
    match &rule.matcher {
        Matcher::Command(_) => out.extend(in_command(pattern, specifier)),
        Matcher::Path(_) => out.extend(in_path(pattern, specifier)),
        _ => {}
    }
    out
}

fn in_command(pattern: &ToolPattern, specifier: &str) -> Option<String> {
    let words: Vec<&str> = specifier.split_whitespace().collect();
    let program = *words.first()?;
    if program.split_once('=').is_some_and(|(name, _)| is_name(name)) {
        return Some(format!(
            "`{pattern}` grants nothing: a variable in front of a command is not a part of it; name the command alone"
        ));
    }
    if program.starts_with('~') {
        return Some(format!(
            "`{pattern}` grants nothing: a program is not looked for under `~`; write its path from `/`"
        ));
    }
    if specifier.strip_suffix(":*").unwrap_or(specifier).contains(":*") {
        return Some(format!("`:*` in `{pattern}` is text: it means ` *` at the end only; write ` *`"));
    }
    // The star of an address stands for no `..`.
    // Quoted code, and values of options, are no paths.
    let mut paths = words.iter().filter(|word| !word.contains("://") && !word.contains(['\'', '"', '@', '=']));
    if let Some((folder, word)) = paths.find_map(|word| Some((word.split_once('*')?.0.rsplit_once('/')?.0, *word))) {
        return Some(format!(
            "`{word}` in `{pattern}` does not keep to `{folder}/`: in a command `*` covers `../` and further arguments \
             too; grant the tool that takes paths, as in `Read({}/**)`",
            folder.trim_start_matches("./")
        ));
    }
    // `ls:*` means what it says. Only `ls*` is misleading.
    if specifier.ends_with(":*") {
        return None;
    }
    let start = program.strip_suffix('*').filter(|start| !start.is_empty() && !start.contains('*'))?;
    Some(format!("`{pattern}` grants every program whose name begins with `{start}`; write `Bash({start} *)` for one"))
}

fn in_path(pattern: &ToolPattern, specifier: &str) -> Option<String> {
    const ROOTS: &[&str] = &[
        "bin", "boot", "dev", "etc", "home", "lib", "media", "mnt", "opt", "private", "proc", "root", "run", "srv",
        "sys", "tmp", "usr", "var", "Users",
    ];
    let mut parts = specifier.trim_start_matches('/').split('/');
    if specifier.starts_with('/')
        && !specifier.starts_with("//")
        && parts.next().is_some_and(|part| ROOTS.contains(&part))
    {
        return Some(format!(
            "`{pattern}` is a place in `work/`: one slash at the beginning is the working folder's; write `{}(/{specifier})`",
            pattern.tool()
        ));
    }
    let protected = specifier.split('/').find(|part| matches!(*part, ".git" | ".claude"))?;
    (pattern.canonical_tool() == "Edit")
        .then(|| format!("`{pattern}` grants nothing: `{protected}/` is protected, whatever a file says; remove it"))
}

impl Application {
    /// Returns risks of pairs of entries: a job could change a file by one that the other one runs. Each has the index of the entry that
    /// runs the file, and a warning.
    #[must_use]
    pub fn pair_warnings(&'static self, list: &[ToolPattern]) -> Vec<(usize, String)> {
        let edits: Vec<&ToolPattern> = list.iter().filter(|pattern| pattern.canonical_tool() == "Edit").collect();
        let mut out = Vec::new();
        if edits.is_empty() {
            return out;
        }
        for (at, pattern) in list.iter().enumerate() {
            let Matcher::Command(command) = Rule::new(pattern, Origin::MainTools, self).matcher else { continue };
            for word in command.fixed() {
                let is_file =
                    word.contains('/') || [".py", ".sh", ".js", ".pl", ".rb"].iter().any(|end| word.ends_with(end));
                let path = word.strip_prefix("./").unwrap_or(word);
                let path = if path.starts_with('/') { format!("/{path}") } else { path.to_owned() };
                let Ok(file) = ToolPattern::parse(&format!("Edit({path})")) else { continue };
                if let Some(edit) = edits.iter().find(|edit| is_file && self.covers(edit, &file)) {
                    out.push((
                    at,
                    format!(
                        "`{pattern}` runs a file that `{edit}` lets the job change: together they can run any program; \
                         keep what it runs out of what it may write"
                    ),
                ));
                    break;
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::BOT;

    fn patterns(texts: &[&str]) -> Vec<ToolPattern> {
        texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect()
    }

    #[track_caller]
    fn check(text: &str, words: &str) {
        let said = BOT.warnings(&ToolPattern::parse(text).unwrap()).join(" | ");
        assert!(if words.is_empty() { said.is_empty() } else { said.contains(words) }, "{text}: {said}");
        // A problem and its solution, in one line.
        assert!(said.is_empty() || (said.contains("; ") && !said.contains("  ")), "{said}");
    }

    #[test]
    fn what_confines_less_than_it_looks_is_told() {
        check("Bash(cat notes/*)", "does not keep to `notes/`");
        check("Bash(head -n 5 notes/2026/*.md)", "does not keep to `notes/2026/`");
        check("Bash(./scripts/*)", "does not keep to `./scripts/`");
        check("Bash(ls*)", "every program whose name begins with `ls`");
        check("Bash(ls:* -l)", "is text");
        check("Edit(/etc/hosts)", "write `Edit(//etc/hosts)`");
        check("Read(/home/ann/**)", "a place in `work/`");
        check("Bash(fetch https://a.example/v1/* notes/*)", "does not keep to `notes/`");
        for text in ["Bash(cat *)", "Bash(ls:*)", "Bash(cat notes/today.md *)", "Edit(/notes/**)", "Read(//etc/hosts)"]
        {
            check(text, "");
        }
        for text in ["Bash(curl https://a.example/v1/*)", "Bash(git clone https://a.example/acme/*)"] {
            check(text, "");
        }
    }

    #[test]
    fn code_is_no_path() {
        for text in ["Bash(sed -i 's/ *$//' log.txt)", "Bash(curl -F file=@notes/* https://a.example/x)"] {
            check(text, "");
        }
    }

    #[test]
    fn what_grants_nothing_is_told() {
        check("CronCreate", "blocked for every job");
        check("KillShell", "blocked for every job");
        check("Bash(TZ=UTC date *)", "a variable in front");
        check("Bash(~/bin/backup *)", "write its path from `/`");
        check("Edit(.claude/**)", "`.claude/` is protected");
        check("Edit(repo/.git/config)", "`.git/` is protected");
        check("Read(repo/.git/config)", "");
        check("Bash(date *)", "");
    }

    #[test]
    fn a_file_that_is_run_and_may_be_changed_is_told() {
        let told =
            |texts: &[&str]| BOT.pair_warnings(&patterns(texts)).into_iter().map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(told(&["Edit(notes/**)", "Bash(python3 notes/report.py *)"]), [1]);
        assert_eq!(told(&["Bash(./notes/run.sh)", "Edit(notes/**)"]), [0]);
        assert_eq!(told(&["Edit", "Bash(bash backup.sh)"]), [1]);
        assert_eq!(told(&["Edit(//srv/**)", "Bash(/srv/tool *)"]), [1]);
        assert_eq!(told(&["Edit(notes/**)", "Bash(python3 tools/report.py *)", "Bash(cat *)"]), [0_usize; 0]);
        assert_eq!(told(&["Read(notes/**)", "Bash(python3 notes/report.py)"]), [0_usize; 0]);
    }

    #[test]
    fn a_denial_of_paths_is_a_guard_rail_where_bash_is_left() {
        let said = |list: &[&str]| BOT.denylist_warnings(&patterns(list)[0], &patterns(list)).join(" | ");
        assert!(said(&["Edit(archive/**)"]).contains("the shell and what it runs"));
        assert!(said(&["Read(private/**)", "Bash(rm *)"]).contains("the shell and what it runs"));
        assert_eq!(said(&["Edit(archive/**)", "Bash"]), "");
        assert_eq!(said(&["Edit"]), "");
    }
}
