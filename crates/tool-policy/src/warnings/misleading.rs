//! Misleading patterns, which restrict less than they seem to, or grant nothing.

use crate::attenuation::rule_covers;
use crate::command_rule::CommandRule;
use crate::programs::{self, Effect};
use crate::rule::{Matcher, Rule};
use crate::start::{Executes, Writes, is_name};
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
    // A script such as `test:unit`, an address, or a part of one.
    let last = specifier.strip_suffix(":*").and_then(|_| words.last()).and_then(|word| word.strip_suffix(":*"));
    let runs_scripts = programs::by_base_name(program).harmless.is_some_and(|_| words.len() > 2);
    // `git push origin HEAD:*`
    let is_refspec =
        words.len() > 3 && programs::by_base_name(program).is_git() && ["fetch", "pull", "push"].contains(&words[1]);
    if let Some(last) = last.filter(|last| runs_scripts || is_refspec || last.contains(['@', ':', '/'])) {
        return Some(format!(
            "`:*` at the end of `{pattern}` means ` *`, and not a word that begins with `{last}:`; write `{last} *`, or \
             `{last}:**` for such words"
        ));
    }
    // The star of an address stands for no `..`.
    // Quoted code, and values of options, are no paths.
    let mut paths = words.iter().filter(|word| !word.contains("://") && !word.contains(['\'', '"', '@', '=']));
    // Further operands must be like the rule's.
    let are_alike = words.iter().any(|word| programs::contains(programs::by_base_name(program).alike, word));
    if !are_alike
        && let Some((folder, word)) = paths.find_map(|word| Some((word.split_once('*')?.0.rsplit_once('/')?.0, *word)))
    {
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
        let entries = self.changing_entries(list.iter().enumerate());
        let warning = |(at, pattern): (usize, &ToolPattern)| {
            let (_, changing) = entries.first_for(pattern, |other| *other != at)?;
            let said = format!(
                "`{pattern}` runs a file that `{changing}` lets the job change: together they can run any program; \
                 keep what it runs out of what it may write"
            );
            Some((at, said))
        };
        list.iter().enumerate().filter_map(warning).collect()
    }

    /// Returns those of some entries by which a job may change files. Each has a key of the caller's.
    pub fn changing_entries<'a, K>(
        &'static self,
        entries: impl Iterator<Item = (K, &'a ToolPattern)>,
    ) -> ChangingEntries<'a, K> {
        let changing = entries.filter_map(|(key, pattern)| {
            let rule = self.rule(pattern);
            let overwrites = overwrites(&rule);
            (overwrites || pattern.canonical_tool() == "Edit").then_some((key, pattern, rule, overwrites))
        });
        ChangingEntries { application: self, entries: changing.collect() }
    }
}

/// Entries by which jobs may change files. They are read once, since each of many rules is compared with all of them.
pub struct ChangingEntries<'a, K> {
    application: &'static Application,
    /// Key, entry, the same as a rule, and whether it lets programs put contents into any file of `work/`.
    entries: Vec<(K, &'a ToolPattern, Rule, bool)>,
}

impl<'a, K> ChangingEntries<'a, K> {
    /// Returns the first entry, among those with a key that counts, by which a job may change a file that a Bash rule names and runs.
    pub fn first_for(&self, runs: &ToolPattern, counts: impl Fn(&K) -> bool) -> Option<(&K, &'a ToolPattern)> {
        let Matcher::Command(command) = self.application.rule(runs).matcher else { return None };
        let files: Vec<(bool, Rule)> =
            run_files(&command).iter().map(|file| (is_absolute(file), self.application.rule(file))).collect();
        if files.is_empty() {
            return None;
        }
        let changes = |entry: &Rule, overwrites: bool| {
            files.iter().any(|(is_absolute, file)| (overwrites && !is_absolute) || rule_covers(entry, file))
        };
        let found = self.entries.iter().find(|(key, _, rule, overwrites)| counts(key) && changes(rule, *overwrites));
        found.map(|(key, pattern, ..)| (key, *pattern))
    }
}

/// Returns whether an entry lets programs put contents into any file of `work/` (`cp *`, `sed -i *`), and runs none.
fn overwrites(rule: &Rule) -> bool {
    let Matcher::Command(command) = &rule.matcher else { return false };
    let Some(program) = command.program() else { return false };
    let known = programs::known(program);
    let puts = known.brings.is_some()
        || known.writes_operands
        || command.spelled(program).iter().any(|option| option.effect == Effect::Writes);
    let rights = command.rights(program);
    let is_open = rule.pattern.specifier().is_some_and(|text| text.ends_with(" *"));
    puts && is_open && rights.writes == Writes::Work && rights.executes != Executes::Anything
}

/// Returns the files that a rule names and its program runs, as patterns.
fn run_files(command: &CommandRule) -> Vec<ToolPattern> {
    let Some(program) = command.program() else { return Vec::new() };
    if command.rights(program).executes != Executes::Anything {
        return Vec::new();
    }
    let is_file = |word: &&String| {
        word.contains('/') || [".py", ".sh", ".js", ".pl", ".rb"].iter().any(|end| word.ends_with(end))
    };
    let pattern = |word: &String| {
        let path = word.strip_prefix("./").unwrap_or(word);
        let path = if path.starts_with('/') { format!("/{path}") } else { path.to_owned() };
        ToolPattern::parse(&format!("Edit({path})")).ok()
    };
    command.fixed().iter().filter(is_file).filter_map(pattern).collect()
}

fn is_absolute(file: &ToolPattern) -> bool {
    file.specifier().is_some_and(|path| path.starts_with(['/', '~']))
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
        check("Bash(git push origin bot/*)", "");
        check("Bash(ls*)", "every program whose name begins with `ls`");
        check("Bash(ls:* -l)", "is text");
        for text in [
            "Bash(npm run test:*)",
            "Bash(scp a host:in:*)",
            "Bash(git push git@h:*)",
            "Bash(git push origin HEAD:*)",
            "Bash(curl http://h:*)",
        ] {
            check(text, "means ` *`, and not a word that begins with");
        }
        for text in ["Bash(git log:*)", "Bash(git remote show:*)", "Bash(npm run:*)", "Bash(make check:*)"] {
            check(text, "");
        }
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
        for entry in ["Bash(cp *)", "Bash(sed -i *)", "Bash(tee *)", "Bash(tar -xzf *)", "Bash(mv a *)"] {
            assert_eq!(told(&[entry, "Bash(./run.sh *)"]), [1], "{entry}");
            assert_eq!(told(&["Bash(python3 tools/report.py)", entry]), [0], "{entry}");
        }
        for entry in
            ["Bash(cat *)", "Bash(sed -n *)", "Bash(git commit *)", "Bash(rm *)", "Bash(cp a b)", "Bash(tar -tzf *)"]
        {
            assert_eq!(told(&[entry, "Bash(./run.sh *)"]), [0_usize; 0], "{entry}");
        }
        assert_eq!(told(&["Edit(notes/**)", "Bash(cat notes/today.md)", "Bash(cp *)"]), [0_usize; 0]);
        assert_eq!(told(&["Bash(cp *)", "Bash(/srv/tool *)"]), [0_usize; 0]);
        assert_eq!(told(&["Read(notes/**)", "Bash(python3 notes/report.py)"]), [0_usize; 0]);
    }

    #[test]
    fn a_question_about_paths_of_work_binds_no_program() {
        let said = |asked: &str, granted: &[&str]| {
            BOT.ask_warnings(&patterns(&[asked])[0], Some(&patterns(granted))).join(" | ")
        };
        for asked in ["Read(notes/private/**)", "Edit(notes/**)", "Read(/notes/x)"] {
            assert!(said(asked, &["Read", "Bash(cp *)"]).contains("programs that `Bash(cp *)` starts"), "{asked}");
            assert!(said(asked, &["Bash"]).contains("programs that `Bash` starts"), "{asked}");
            assert!(BOT.ask_warnings(&patterns(&[asked])[0], None).join(" | ").contains("programs that `Bash` starts"));
            assert_eq!(said(asked, &["Read", "Bash(bot help)"]), "", "{asked}");
        }
        for asked in ["Read(//srv/private/**)", "Edit(~/notes/**)", "Bash(git push *)"] {
            assert_eq!(said(asked, &["Bash(cp *)"]), "", "{asked}");
        }
    }

    #[test]
    fn a_question_about_a_program_that_a_granted_one_starts_by_its_path_is_told() {
        let said = |asked: &str, granted: &[&str]| {
            BOT.ask_warnings(&patterns(&[asked])[0], Some(&patterns(granted))).join(" | ")
        };
        for (asked, granted, expect) in [
            ("Bash(gi* push *)", "Bash(python3 *)", "names no program"),
            ("Bash(* push *)", "Bash(make *)", "names no program"),
            ("Bash(./deploy.sh *)", "Bash(make *)", "runs the same file of `work/` unasked"),
            ("Bash(npm publish *)", "Bash(npm run *)", "may call it by its path"),
        ] {
            assert!(said(asked, &["Read", granted]).contains(expect), "{asked}: {}", said(asked, &["Read", granted]));
            assert!(!said(asked, &["Read", "Bash(cat *)"]).contains(expect), "{asked}");
        }
        let fetches = ["Edit(notes/**)", "Bash(git fetch *)"];
        assert!(said("Bash(git push *)", &fetches).contains("may call it by its path"));
        assert_eq!(said("Bash(git push *)", &fetches[1..]), "");
        for (asked, granted) in [
            ("Bash(git push *)", "Bash(make *)"),
            ("Bash(git push *)", "Bash(git log *)"),
            ("Bash(/opt/deploy *)", "Bash(make *)"),
        ] {
            assert_eq!(said(asked, &[granted]), "", "{asked}");
        }
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
