//! The paths of an imported line: those that a job's sandbox does not open, and the rules that open them.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// What stands for the person's home folder.
const HOMES: [&str; 3] = ["~", "$HOME", "${HOME}"];

/// Folders that all programs of a job may read.
const READABLE: [&str; 8] = ["/bin", "/etc", "/lib", "/lib64", "/opt", "/proc", "/sbin", "/usr"];

/// Folders without regular files.
const DEVICES: [&str; 3] = ["/dev", "/proc", "/sys"];

/// A folder of [`DEVICES`] with regular files.
const MEMORY: &str = "/dev/shm";

/// The paths among its operands that a program writes.
#[derive(Clone, Copy)]
enum Written {
    All,
    First,
    Last,
    /// Those behind these options.
    Behind(&'static [&'static str]),
}

/// Programs that write files which they are given.
const WRITERS: &[(&[&str], Written)] = &[
    (&["chmod", "chown", "dd", "gunzip", "gzip", "mkdir", "mv", "rm", "rmdir"], Written::All),
    (&["sqlite3", "tee", "touch", "truncate", "xz", "zstd"], Written::All),
    (&["cp", "ffmpeg", "install", "ln", "rsync", "scp", "unzip"], Written::Last),
    (&["zip"], Written::First),
    (&["curl", "gpg", "sort"], Written::Behind(&["-o", "--output"])),
    (&["wget"], Written::Behind(&["-O", "-P", "--directory-prefix", "--output-document"])),
    (&["pg_dump"], Written::Behind(&["-f", "--file"])),
];

/// Options behind which many programs take a file that they write.
const OUTPUT_OPTIONS: [&str; 5] = ["--log-file", "--logfile", "--out", "--outfile", "--output"];

/// Programs that start the command behind their own options and values.
const STARTERS: [&str; 10] =
    ["chronic", "env", "exec", "flock", "ionice", "nice", "nohup", "setsid", "sudo", "timeout"];

/// Shells, whose `-c` is followed by a line.
const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// Programs whose operand may look like a path: `sed /foo/d`.
const WITH_EXPRESSIONS: [&str; 5] = ["awk", "egrep", "grep", "perl", "sed"];

/// Subcommands of git that only read.
const GIT_READS: [&str; 6] = ["diff", "log", "ls-files", "rev-parse", "show", "status"];

/// A word of a line.
#[derive(Clone, Debug, Default)]
struct Word {
    text: String,
    is_quoted: bool,
    /// Whether output is redirected to it.
    is_redirected: bool,
}

/// Splits a line into simple commands, and these into words, as a shell does. Expansions stay as they are.
fn commands(line: &str) -> Vec<Vec<Word>> {
    let mut all: Vec<Vec<Word>> = vec![Vec::new()];
    let (mut word, mut quote, mut is_redirected) = (None::<Word>, None, false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let ends = quote.is_none() && (letter.is_whitespace() || "`;|&<>()".contains(letter));
        if ends {
            if let (Some(done), Some(command)) = (word.take(), all.last_mut()) {
                command.push(done);
            }
            match letter {
                '>' => is_redirected = true,
                '<' | ' ' | '\t' => {}
                // `2>&1` and `&>`
                '&' if is_redirected => is_redirected = false,
                _ => all.push(Vec::new()),
            }
            continue;
        }
        let begun = word.get_or_insert_with(|| Word {
            is_quoted: matches!(letter, '\'' | '"'),
            is_redirected: std::mem::take(&mut is_redirected),
            ..Word::default()
        });
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None | Some('"'), '\\') => begun.text.extend(letters.next()),
            _ => begun.text.push(letter),
        }
    }
    if let (Some(done), Some(command)) = (word, all.last_mut()) {
        command.push(done);
    }
    all
}

/// A simple command of a line: the program's name, and its further words.
struct Simple<'a> {
    name: &'a str,
    words: &'a [Word],
}

impl<'a> Simple<'a> {
    /// Takes assignments and programs that start others from the front.
    fn of(mut words: &'a [Word]) -> Option<Self> {
        loop {
            words = &words[words.iter().take_while(|word| word.is_redirected || word.text.contains('=')).count()..];
            let (first, rest) = words.split_first()?;
            let name = first.text.rsplit('/').next().unwrap_or_default();
            if !STARTERS.contains(&name) {
                return Some(Self { name, words: rest });
            }
            let is_own = |word: &&Word| {
                let begin = word.text.chars().next();
                begin.is_some_and(|begin| begin == '-' || begin.is_ascii_digit() || name == "flock" && begin == '/')
            };
            words = &rest[rest.iter().take_while(is_own).count()..];
        }
    }

    fn has(&self, option: &str) -> bool {
        self.words.iter().any(|word| word.text == option)
    }

    /// Returns the line of `sh -c LINE`.
    fn inner(&self) -> Option<&'a str> {
        let at = self.words.iter().position(|word| word.text.starts_with('-') && word.text.ends_with('c'))?;
        SHELLS.contains(&self.name).then(|| self.words.get(at + 1).map(|word| word.text.as_str()))?
    }

    /// Returns which of its paths it writes: `tar -xf /srv/a.tar -C /mnt`.
    fn written(&self) -> Option<Written> {
        let begins = |begin: &str| self.words.iter().any(|word| word.text.starts_with(begin));
        match self.name {
            "tar" => {
                let unpacks = self.words.first().is_some_and(|mode| mode.text.contains('x')) || self.has("--extract");
                Some(if unpacks { Written::Last } else { Written::First })
            }
            "find" => ["-delete", "-exec", "-execdir"].iter().any(|act| self.has(act)).then_some(Written::All),
            "sed" => (begins("-i") || self.has("--in-place")).then_some(Written::All),
            "git" => (!GIT_READS.iter().any(|reads| self.has(reads))).then_some(Written::All),
            name => WRITERS.iter().find(|(names, _)| names.contains(&name)).map(|(_, written)| *written),
        }
    }

    /// Whether it writes to a file that it names by a relative path.
    fn writes_beside_itself(&self) -> bool {
        let is_relative = |text: &str| !text.is_empty() && !text.starts_with(['-', '/', '$', '~']);
        self.words.iter().enumerate().any(|(index, word)| is_relative(&word.text) && self.writes(index))
    }

    /// Whether a word is a place on another machine.
    fn is_remote(&self, word: &Word) -> bool {
        matches!(self.name, "rsync" | "scp" | "sftp" | "ssh") && word.text.contains(':')
    }

    /// Whether it writes the file that its word at `index` names.
    fn writes(&self, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|before| self.words.get(before));
        let operands = || self.words.iter().enumerate().filter(|(_, word)| !word.is_redirected);
        self.words.get(index).is_some_and(|word| word.is_redirected)
            || before.is_some_and(|before| self.writes_behind(&before.text))
            || match self.written() {
                Some(Written::All) => true,
                Some(Written::First) => {
                    // `tar czf x.tgz y`: the first word says what it does.
                    let is_mode = |word: &Word| self.name == "tar" && !word.text.contains(['/', '.', '-']);
                    let is_name = |(at, word): &(usize, &Word)| {
                        let is_option = word.text.starts_with('-');
                        !is_option && (*at > 0 || !is_mode(word))
                    };
                    let mut names = operands().filter(is_name);
                    names.next().map(|(at, _)| at) == Some(index)
                }
                Some(Written::Last) => operands().next_back().map(|(at, _)| at) == Some(index),
                Some(Written::Behind(_)) | None => false,
            }
    }

    /// Returns its absolute paths, and whether it writes each. `~/x` is one in the home folder.
    fn paths(&self, home: Option<&Path>) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            let mut option = None;
            for part in word.text.split(['=', ':', ',']).filter(|_| !self.is_remote(word)) {
                let is_plain = !word.is_quoted && !WITH_EXPRESSIONS.contains(&self.name);
                let path = in_home(part, home).or_else(|| other_home(part).filter(|_| is_plain));
                let path = path.unwrap_or_else(|| part.to_owned());
                if is_path(&path) && (root(&path).exists() || is_plain) {
                    found.push((path, self.writes(index) || option.is_some_and(|option| self.writes_behind(option))));
                }
                option = Some(part);
            }
        }
        found
    }

    /// Whether it writes the file behind this option.
    fn writes_behind(&self, option: &str) -> bool {
        let own = match self.written() {
            Some(Written::Behind(options)) => options,
            _ => &[],
        };
        OUTPUT_OPTIONS.contains(&option) || own.contains(&option)
    }
}

/// Whether a text is an absolute path below the root, and not the rest of an address.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.starts_with("//") && Path::new(text).parent().is_some()
}

/// Returns `/home/me/x` of `~/x` and `$HOME/x`.
fn in_home(text: &str, home: Option<&Path>) -> Option<String> {
    let rest = HOMES.iter().find_map(|sign| text.strip_prefix(sign)?.strip_prefix('/'))?;
    Some(home?.join(rest).to_string_lossy().into_owned())
}

/// Returns `/root/x` of `~root/x`; `None` if there is no such user.
fn other_home(text: &str) -> Option<String> {
    let (name, rest) = text.strip_prefix('~')?.split_at_checked(text.find('/').unwrap_or(text.len()) - 1)?;
    let users = fs::read_to_string("/etc/passwd").ok().filter(|_| !name.is_empty())?;
    let user = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user[0] == name)?;
    Some(format!("{}{rest}", user.get(5)?))
}

/// Returns the folder at the root in which a path lies.
fn root(path: &str) -> PathBuf {
    Path::new(path).components().take(2).collect()
}

/// Returns the absolute path of the file that `flock` makes.
fn lock_file(words: &[Word]) -> Option<&str> {
    let at = words.iter().position(|word| word.text.rsplit('/').next() == Some("flock"))?;
    let is_value = |word: &&Word| word.text.starts_with(|begin: char| begin == '-' || begin.is_ascii_digit());
    let file = words[at + 1..].iter().find(|word| !is_value(word))?;
    is_path(&file.text).then_some(file.text.as_str())
}

/// Returns the absolute paths in a line that the sandbox does not open to every job, and whether the line writes to each: by a redirection,
/// or by a program that is known to write. Between quotes a path counts only if its first folder exists.
fn closed_paths(line: &str, home: Option<&Path>) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    let mut add = |(path, is_written): (String, bool)| {
        let is_in = |folders: &[&str]| folders.iter().any(|folder| Path::new(&path).starts_with(folder));
        let is_open = is_in(&DEVICES) && !is_in(&[MEMORY]) || !is_written && is_in(&READABLE);
        match found.iter_mut().find(|(known, _)| *known == path) {
            _ if is_open => {}
            Some((_, known)) => *known |= is_written,
            None => found.push((path, is_written)),
        }
    };
    // The folder in which the line works, once it has named one.
    let mut folder = None;
    for words in commands(line) {
        let redirected = words.iter().filter(|word| word.is_redirected && word.text.starts_with('/'));
        let Some(simple) = Simple::of(&words) else {
            redirected.for_each(|word| add((word.text.clone(), true)));
            continue;
        };
        let assignments =
            words.iter().take_while(|word| word.text.contains('=')).flat_map(|word| word.text.split(['=', ':']));
        assignments.filter(|part| is_path(part) && root(part).exists()).for_each(|part| add((part.to_owned(), false)));
        // A script is the program itself.
        if let Some(program) = words.iter().find(|word| word.text.ends_with(simple.name)) {
            is_path(&program.text).then(|| add((program.text.clone(), false)));
        }
        lock_file(&words).into_iter().for_each(|path| add((path.to_owned(), true)));
        match simple.inner() {
            Some(inner) => closed_paths(inner, home).into_iter().for_each(&mut add),
            None => simple.paths(home).into_iter().for_each(&mut add),
        }
        if simple.name == "cd" {
            folder = simple.words.first().map(|word| word.text.clone()).filter(|folder| is_path(folder));
        } else if let Some(folder) = folder.as_ref().filter(|_| simple.writes_beside_itself()) {
            add((folder.clone(), true));
        }
    }
    found
}

/// The paths in a line that the sandbox does not open, and whether the line writes to each.
pub(super) struct NamedPaths {
    home: Option<PathBuf>,
    /// Whether the line names the home folder, perhaps without a path in it.
    names_home: bool,
    /// Those in the home folder, relative to it.
    in_home: Vec<(String, bool)>,
    /// Absolute ones elsewhere.
    outside: Vec<(String, bool)>,
}

impl NamedPaths {
    /// Finds the paths of a line. `None` if it names none.
    pub(super) fn of(line: &str, work: &Path, home: Option<&Path>) -> Option<Self> {
        let mut in_home: Vec<(String, bool)> = home.map(|home| relative_to_home(line, home)).unwrap_or_default();
        let (mut outside, mut is_home) = (Vec::new(), false);
        for (path, is_written) in closed_paths(line, home) {
            match home.and_then(|home| Path::new(&path).strip_prefix(home).ok()) {
                Some(below) if below.as_os_str().is_empty() => is_home = true,
                Some(below) => in_home.push((below.to_string_lossy().into_owned(), is_written)),
                None if Path::new(&path).starts_with(work) => {}
                None => outside.push((path, is_written)),
            }
        }
        let signs = HOMES.map(|sign| format!("{sign}/"));
        let names_home = is_home || !in_home.is_empty() || signs.iter().any(|sign| line.contains(sign));
        let home = home.map(Path::to_owned);
        (names_home || !outside.is_empty()).then_some(Self { home, names_home, in_home, outside })
    }

    /// Returns `all.txt in your home and /srv/x, outside of \`work/\``.
    pub(super) fn words(&self) -> String {
        let joined =
            |all: &[(String, bool)]| all.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>().join(" and ");
        let home = match (self.names_home, self.in_home.is_empty()) {
            (false, _) => None,
            (true, true) => Some("your home".to_owned()),
            (true, false) => Some(format!("{} in your home", joined(&self.in_home))),
        };
        let outside = (!self.outside.is_empty()).then(|| format!("{}, outside of `work/`", joined(&self.outside)));
        home.into_iter().chain(outside).collect::<Vec<_>>().join(" and ")
    }

    /// Returns how to open what the line needs.
    pub(super) fn hint(&self) -> String {
        let mut rules = vec!["Bash".to_owned()];
        let mut add = |rule: String| rules.extend((!rules.contains(&rule)).then_some(rule));
        if self.names_home && self.in_home.is_empty() {
            add("'Read(~/**)'".to_owned());
        }
        let mut missing: Vec<String> = Vec::new();
        for (path, is_written) in &self.in_home {
            let file = self.home.as_deref().unwrap_or(Path::new("")).join(path);
            let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
            if *is_written && folder.is_none() && !file.exists() {
                missing.push(format!("~/{path}"));
            }
            add(rule(path, "~/", folder, &file, *is_written));
        }
        for (path, is_written) in &self.outside {
            let file = Path::new(path);
            let folder = file.parent().filter(|folder| folder.parent().is_some());
            add(rule(path, "//", folder, file, *is_written));
        }
        let first = match &missing[..] {
            [] => String::new(),
            // Opening the whole home would be too much for one file.
            all => format!(
                "; make {} first, since a job makes files only in folders that are open as a whole",
                all.join(" and ")
            ),
        };
        format!("grant what it needs: `allowed_tools: [{}]`{first}", rules.join(", "))
    }
}

/// Returns the rule that opens a path. `folder`: the folder around it that may be opened as a whole, since a program can make a file only
/// in such a one.
fn rule(path: &str, root: &str, folder: Option<&Path>, file: &Path, is_written: bool) -> String {
    let folder = folder.filter(|_| is_written && !file.exists());
    let below = if file.is_dir() || folder.is_some() { "/**" } else { "" };
    let opened = folder.unwrap_or(Path::new(path)).to_string_lossy();
    let name = if is_written { "Edit" } else { "Read" };
    format!("'{name}({root}{}{below})'", opened.trim_matches('/'))
}

/// Returns the files that a line names by a path relative to the home folder in which it works, and whether it writes each: existing ones,
/// those that begin with `./`, and those that it writes to.
fn relative_to_home(line: &str, home: &Path) -> Vec<(String, bool)> {
    let Some(line) = line.strip_prefix("cd ~ && ") else { return Vec::new() };
    let mut found: Vec<(String, bool)> = Vec::new();
    let mut lines = vec![line.to_owned()];
    while let Some(line) = lines.pop() {
        let all = commands(&line);
        for (place, words) in all.iter().enumerate() {
            let Some(simple) = Simple::of(words) else { continue };
            if simple.name == "cd" {
                // What follows lies there.
                let folder = simple.words.first().map(|word| word.text.trim_start_matches("./"));
                let is_below = |folder: &&str| !folder.is_empty() && !folder.starts_with(['-', '/', '$', '~']);
                let mut later = all[place + 1..].iter().filter_map(|words| Simple::of(words));
                let writes = later.any(|simple| simple.writes_beside_itself());
                found.extend(folder.filter(is_below).map(|folder| (folder.to_owned(), writes)));
                return found;
            }
            lines.extend(simple.inner().map(str::to_owned));
            let before = words.len() - simple.words.len();
            for (index, word) in words.iter().enumerate() {
                let is_written = word.is_redirected || index >= before && simple.writes(index - before);
                // Of programs that write each operand, some are no files: `chmod 600 x`.
                let makes = is_written && !matches!(simple.written(), Some(Written::All));
                for text in word.text.split(['=', ':', ',']).filter(|_| !simple.is_remote(word)) {
                    let first = Path::new(text).components().find(|part| *part != Component::CurDir);
                    let is_name = !text.starts_with(['-', '$', '~']);
                    let Some(Component::Normal(first)) = first.filter(|_| is_name) else { continue };
                    let is_file = word.is_redirected || makes || text.starts_with("./") || home.join(first).exists();
                    let text = text.trim_start_matches("./");
                    match found.iter_mut().find(|(known, _)| known == text) {
                        Some((_, known)) => *known |= is_written,
                        None if is_file => found.push((text.to_owned(), is_written)),
                        None => {}
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_home_folder_are_named_with_the_rules_that_they_need() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("notes")).unwrap();
        let at = home.path().display().to_string();
        for (line, words, rules) in [
            (
                "cd ~ && sh -c 'tar czf notes/a.tgz notes'",
                "notes/a.tgz and notes",
                "'Edit(~/notes/**)', 'Read(~/notes/**)'",
            ),
            (
                "cd ~ && tar -c -f notes/a.tgz notes/b",
                "notes/a.tgz and notes/b",
                "'Edit(~/notes/**)', 'Read(~/notes/b)'",
            ),
            ("cd ~ && scp notes/a web:notes/b", "notes/a", "'Read(~/notes/a)'"),
            ("cd ~ && chmod 600 notes", "notes", "'Edit(~/notes/**)'"),
            (
                "cd ~ && sh -c 'cat ./notes/today >> notes/all.txt 2>&1'",
                "notes/today and notes/all.txt",
                "'Read(~/notes/today)', 'Edit(~/notes/**)'",
            ),
            ("cd ~ && A=b /usr/bin/pack --from=notes", "notes", "'Read(~/notes/**)'"),
            ("cd ~ && rm -r notes", "notes", "'Edit(~/notes/**)'"),
            ("cd ~ && sh -c 'nohup ./run.sh &'", "run.sh", "'Read(~/run.sh)'"),
            ("cd ~ && sh -c 'cd notes && touch x'", "notes", "'Edit(~/notes/**)'"),
            (
                "cd ~ && sh -c 'cat notes/a; cd ./app/src && make; cat notes/b'",
                "notes/a and app/src",
                "'Read(~/notes/a)', 'Read(~/app/src)'",
            ),
            ("cat ~/notes/x $HOME/y", "notes/x and y", "'Read(~/notes/x)', 'Read(~/y)'"),
            ("cat '${HOME}/notes/x'", "notes/x", "'Read(~/notes/x)'"),
            (&format!("find {at}/notes -delete"), "notes", "'Edit(~/notes/**)'"),
            (&format!("cat \"{at}/x\""), "x", "'Read(~/x)'"),
        ] {
            let named = NamedPaths::of(line, Path::new("/tmp/bot/work"), Some(home.path())).unwrap();
            assert_eq!(named.words(), format!("{words} in your home"), "{line}");
            assert_eq!(named.hint(), format!("grant what it needs: `allowed_tools: [Bash, {rules}]`"), "{line}");
        }
        for line in [
            "cd ~ && sh -c 'echo one > /dev/null; sed s/a/b/ other | cat'",
            "cd ~ && printf %s é | sh -c 'cat é'",
            "cd ~ && sh -c 'cd; ls'",
            "cat x~",
        ] {
            assert!(NamedPaths::of(line, Path::new("/tmp/bot/work"), Some(home.path())).is_none(), "{line}");
        }
    }

    #[test]
    fn a_new_file_in_the_home_is_to_be_made_first_and_what_is_not_known_is_only_read() {
        let (work, home) = (Path::new("/tmp/bot/work"), Path::new("/tmp/nobody"));
        let hint = |line: &str| NamedPaths::of(line, work, Some(home)).unwrap().hint();
        assert_eq!(
            hint("date >> ~/poll.log; cp ~/a /mnt/b"),
            "grant what it needs: `allowed_tools: [Bash, 'Edit(~/poll.log)', 'Read(~/a)', 'Edit(//mnt/**)']`; make ~/poll.log \
             first, since a job makes files only in folders that are open as a whole"
        );
        assert_eq!(
            hint("sh -c \"for f in ~/*; do x; done\""),
            "grant what it needs: `allowed_tools: [Bash, 'Read(~/*)']`"
        );
        assert!(hint("cd ~ && cp a.txt b.txt").contains("[Bash, 'Edit(~/b.txt)']`; make ~/b.txt first"));
        assert_eq!(hint("echo x~/y"), "grant what it needs: `allowed_tools: [Bash, 'Read(~/**)']`");
        assert_eq!(NamedPaths::of("ls /tmp/nobody", work, Some(home)).unwrap().words(), "your home");
        let both = NamedPaths::of("cp ~/a /mnt/b", work, Some(home)).unwrap();
        assert_eq!(both.words(), "a in your home and /mnt/b, outside of `work/`");
    }

    #[test]
    fn paths_outside_of_the_sandbox_are_named() {
        for (line, words, rules) in [
            ("cd ~ && sh -c 'backup > /var/log/backup.log'", "/var/log/backup.log", "'Edit(//var/log/**)'"),
            ("[ -f /tmp/x ] && echo \"there\" >> \"/tmp/y\"", "/tmp/x and /tmp/y", "'Read(//tmp/x)', 'Edit(//tmp/**)'"),
            ("cp /var/one /mnt/gone/two", "/var/one and /mnt/gone/two", "'Read(//var/one)', 'Edit(//mnt/gone/**)'"),
            (
                r"cd ~ && sh -c 'tar -czf /gone/x.tgz /var; sed '\''/none/d'\'' a'",
                "/gone/x.tgz and /var",
                "'Edit(//gone/**)', 'Read(//var/**)'",
            ),
            ("tar -czf /gone/x.tgz /var", "/gone/x.tgz and /var", "'Edit(//gone/**)', 'Read(//var/**)'"),
            ("tar -xf /var/x.tar -C /var", "/var/x.tar and /var", "'Read(//var/x.tar)', 'Edit(//var/**)'"),
            ("ls /var | xargs rm", "/var", "'Read(//var/**)'"),
            ("find /var -delete", "/var", "'Edit(//var/**)'"),
            ("/usr/bin/sed -i s/a/b/ /var/x", "/var/x", "'Edit(//var/**)'"),
            ("sh -c \"cp /var/a /mnt/b\"", "/var/a and /mnt/b", "'Read(//var/a)', 'Edit(//mnt/**)'"),
            ("curl -o /mnt/page.html https://a.example/x", "/mnt/page.html", "'Edit(//mnt/**)'"),
            ("git -C /var pull; git -C /mnt log", "/var and /mnt", "'Edit(//var/**)', 'Read(//mnt/**)'"),
            ("touch '/mnt/my file'", "/mnt/my file", "'Edit(//mnt/**)'"),
            ("nice -n 5 timeout 10m cp a /opt/x", "/opt/x", "'Edit(//opt/**)'"),
            ("rsync -a web:/srv/x /var", "/var", "'Edit(//var/**)'"),
            (
                "FILE=/dev/shm /dev/shm/run.sh 2>/dev/null",
                "/dev/shm and /dev/shm/run.sh",
                "'Read(//dev/shm/**)', 'Read(//dev/shm/run.sh)'",
            ),
            ("cd /opt; touch a", "/opt", "'Edit(//opt/**)'"),
            ("cd /opt && ls > a && cd /usr && ls", "/opt", "'Edit(//opt/**)'"),
            ("cd /var && make -j 4 && cp a b; rm c", "/var", "'Edit(//var/**)'"),
            ("cd /var && curl -o page https://a.example/x", "/var", "'Edit(//var/**)'"),
            ("flock -w 10 /mnt/my.lock cp a /opt/x", "/mnt/my.lock and /opt/x", "'Edit(//mnt/**)', 'Edit(//opt/**)'"),
            ("cd /var && ls a", "/var", "'Read(//var/**)'"),
            ("cat ~root/x ~nobody-at-all/x", "/root/x", "'Read(//root/x)'"),
            ("pack --out=/mnt/x --in=/mnt/y", "/mnt/x and /mnt/y", "'Edit(//mnt/**)', 'Read(//mnt/y)'"),
            ("python3 /home/ann/x.py", "/home/ann/x.py", "'Read(//home/ann/x.py)'"),
            ("PATH=/usr/bin:/var/bin ls /var /var", "/var/bin and /var", "'Read(//var/bin)', 'Read(//var/**)'"),
        ] {
            let outside = NamedPaths::of(line, Path::new("/tmp/bot/work"), Some(Path::new("/home/me"))).unwrap();
            assert_eq!(outside.words(), format!("{words}, outside of `work/`"), "{line}");
            assert_eq!(outside.hint(), format!("grant what it needs: `allowed_tools: [Bash, {rules}]`"), "{line}");
        }
        for line in [
            "curl https://tmp/x; /usr/bin/true > /dev/null 2>&1",
            "sed '/nothing-of-the-root/d' a/tmp/b < /etc/hosts",
            "cat /tmp/bot/work/notes / ",
        ] {
            let outside = NamedPaths::of(line, Path::new("/tmp/bot/work"), Some(Path::new("/home/me")));
            assert!(outside.is_none(), "{line}");
        }
    }
}
