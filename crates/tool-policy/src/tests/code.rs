//! Code that a rule spells, and files that say what a program does: no star, and no other folder, exchanges them.

use super::*;

/// The star of a rule that looks exact. Between quotes it stands for itself, and within a word of code for no more code.
#[test]
fn a_star_in_code_stands_for_no_code() {
    for (rule, granted, refused) in [
        (
            "perl -ne 'print if /foo.*bar/' log.txt",
            "perl -ne print␣if␣/foo.*bar/ log.txt",
            &["perl -ne print␣if␣/foo./;␣system(q(id));␣/bar/ log.txt"][..],
        ),
        (
            "node -e \"console.log(2*3)\"",
            "node -e console.log(2*3)",
            &["node -e console.log(2);require(\"child_process\").execSync(\"id\");(3)"],
        ),
        ("node -e console.log(2*3)", "node -e console.log(2-3)", &["node -e console.log(2);evil();(3)"]),
        ("python3 -c 'print(2*3)'", "python3 -c print(2*3)", &["python3 -c print(2);evil();(3)"]),
        (
            "sqlite3 notes.db 'select * from t'",
            "sqlite3 notes.db select␣*␣from␣t",
            &["sqlite3 notes.db select␣edit(\"x\",␣\"id\")␣from␣t"],
        ),
        ("psql -c 'select * from t'", "psql -c select␣*␣from␣t", &["psql -c select␣1;drop␣table␣x;select␣1␣from␣t"]),
        ("sed -i 's/ *$//' log.txt", "sed -i s/␣*$// log.txt", &["sed -i s/␣/x/;w␣evil;s/$// log.txt"]),
        ("sed -i s/x*/y/ log.txt", "sed -i s/xx/y/ log.txt", &["sed -i s/x/y/;w␣evil;s/a/y/ log.txt"]),
        ("ssh host 'ls *.log'", "ssh host ls␣*.log", &["ssh host ls␣x;id␣.log"]),
        (
            "docker exec web rm -f /tmp/*.tmp",
            "docker exec web rm -f /tmp/a.tmp",
            &["docker exec web rm -f /tmp/$(id).tmp"],
        ),
        (
            "make deploy ENV=*",
            "make deploy ENV=staging",
            &["make deploy ENV=x;␣id", "make deploy ENV=$(shell␣id)", "make deploy ENV=a␣b", "make deploy ENV=`id`"],
        ),
        ("find . -name '*.md'", "find . -name *.md", &["find . -name x.md -delete -name y.md", "find . -name x.md"]),
    ] {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, &[granted]);
        for call in refused {
            // A filter may run without a rule, and without any power.
            let decided = start(&policy, call);
            assert!(!matches!(decided.location, Location::Outside(_)), "{rule}: {decided:?}");
        }
    }
    // A denial counts in doubt.
    let policy = policy(Some(&["Bash(node *)"]), Some(&["Bash(node -e 'x*')"]));
    denies(&policy, &["node -e xy", "node -e x*"]);
    // Behind a script that the rule names, words are the script's own.
    grants(&allowing(&["Bash(python3 report.py --title=*)"]), &["python3 report.py --title=Hello␣(2026);␣world"]);
}

/// A file that says what a program does is another one in another folder, and a job makes its own in `$TMPDIR`.
#[test]
fn what_a_file_says_is_done_in_the_working_folder_only() {
    let elsewhere = [&format!("{WORK}/notes"), "/home/u/.bot/state/runs/0a1b2c3d/tmp"];
    for (rule, call) in [
        ("curl -K api.conf http://a.example/acme/*", "curl -K api.conf http://a.example/acme/a"),
        ("curl -d @body.json https://a.example/*", "curl -d @body.json https://a.example/x"),
        ("curl -H @headers.txt https://a.example/*", "curl -H @headers.txt https://a.example/x"),
        ("curl -T report.txt https://a.example/*", "curl -T report.txt https://a.example/x"),
        ("curl -F file=@report.txt https://a.example/*", "curl -F file=@report.txt https://a.example/x"),
        ("wget -q -i list.txt *", "wget -q -i list.txt"),
        ("wget --config=rc http://a.example/*", "wget --config=rc --max-redirect=0 http://a.example/x"),
        ("sed -i -f p.sed *", "sed -i -f p.sed a.txt"),
        ("sed -i -fp.sed *", "sed -i -fp.sed a.txt"),
        ("awk -f sums.awk *", "awk -f sums.awk a.txt"),
        ("patch -p1 -i fix.patch *", "patch -p1 -i fix.patch a.txt"),
        ("tar -T list -cf a.tar *", "tar -T list -cf a.tar"),
        ("find -files0-from list -delete *", "find -files0-from list -delete"),
        ("git apply fix.patch *", "git apply fix.patch"),
        ("git config -f cfg *", "git config -f cfg a.b c"),
        ("make -n *", "make -n all"),
        ("make -j4 *", "make -j4 all"),
        ("just -n *", "just -n all"),
        ("cargo -q *", "cargo -q test"),
        ("gradle --offline *", "gradle --offline x"),
        ("npx --no-install *", "npx --no-install x"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})"), "Edit(notes/**)"]);
        let here = start(&policy, call);
        assert!(here.is_allowed(), "{rule}: {here:?}");
        for folder in elsewhere {
            let decided = start_in(&policy, call, folder, &[]);
            assert!(!matches!(decided.location, Location::Outside(_)), "{rule} in {folder}: {decided:?}");
        }
    }
    // What names no such file applies in every folder that is open.
    for (rule, call) in [
        ("git log *", "git log -3"),
        ("git commit -m *", "git commit -m x"),
        ("curl -s https://a.example/*", "curl -s https://a.example/x"),
        ("curl -X POST https://a.example/*", "curl -X POST https://a.example/x"),
        ("make *", "make all"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})"), "Edit(notes/**)"]);
        let decided = start_in(&policy, call, &format!("{WORK}/notes"), &[]);
        assert!(decided.is_allowed(), "{rule}: {decided:?}");
    }
    denies(&allowing(&["Bash(make -n *)"]), &["make -n -C notes all", "make -n -f x all", "make -n X=1 all"]);
}

/// Operands that a program takes for commands, and words that it joins to a line.
#[test]
fn a_star_stands_for_no_operand_that_is_a_command() {
    for (rule, granted, refused) in [
        (
            "perl -ne 'print if /x/' *",
            &["perl -ne print␣if␣/x/ a.txt b.txt"][..],
            &[
                "id␣|",
                "|id",
                ">notes",
                "<x",
                "␣|␣id",
                "+<x",
                "id|␣",
                "-F/x/);system(q(id));(",
                "-i a.txt",
                "-i.bak a.txt",
            ]
            .map(|last| format!("perl -ne print␣if␣/x/ {last}"))[..],
        ),
        ("perl report.pl *", &["perl report.pl a.txt -v"], &["perl report.pl id|".to_owned()]),
        (
            "tmux ls *",
            &["tmux ls", "tmux ls -a"],
            &["; run-shell id", "x; run-shell id", "-F #(id)", "-F x"].map(|last| format!("tmux ls {last}")),
        ),
        (
            "tmux display-message -p *",
            &["tmux display-message -p hello"],
            &["tmux display-message -p #{E:#{a:35}(id)}".to_owned()],
        ),
        ("tmux has-session -t *", &["tmux has-session -t main"], &["tmux has-session -t a ; run-shell id".to_owned()]),
        (
            "watch -n 1 ls *",
            &["watch -n 1 ls notes -l"],
            &[";id", "$(id)", "x|y"].map(|last| format!("watch -n 1 ls {last}")),
        ),
        ("ssh host uptime *", &["ssh host uptime -p"], &[";rm", "&&␣id"].map(|last| format!("ssh host uptime {last}"))),
        ("ssh host *", &["ssh host ls;id"], &[]),
    ] {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, granted);
        denies(&policy, &refused.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Programs with a hundred options, of which a star stands for the known ones only.
#[test]
fn a_star_stands_for_the_harmless_options_of_a_program_with_many() {
    for (rule, granted, refused) in [
        (
            "gpg --verify *",
            &["gpg --verify a.sig a.txt", "gpg --verify -q --batch a.sig"][..],
            &[
                "--homedir x",
                "--photo-viewer id",
                "--verify-options show-photos",
                "--status-file=x",
                "-o x",
                "--decrypt",
            ][..],
        ),
        (
            "systemctl status *",
            &["systemctl status x -n 5 --no-pager"],
            &["-H root@a x", "--host=a x", "-M a x", "--root=x"],
        ),
        (
            "journalctl -b *",
            &["journalctl -b -u x -n 5 --since today"],
            &["--update-catalog --root=x", "-D x", "--file=x", "--cursor-file=x", "--vacuum-time=1s", "--rotate"],
        ),
        ("git clone http://a.example/acme/*", &["git clone http://a.example/acme/x.git n"], &[]),
        ("sqlite3 -readonly -safe a.db *", &["sqlite3 -readonly -safe a.db select␣1"], &["-cmd x"]),
    ] {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, granted);
        let head = granted[0];
        denies(
            &policy,
            &refused
                .iter()
                .map(|more| format!("{head} {more}"))
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        );
    }
    denies(
        &allowing(&["Bash(git clone http://a.example/acme/*)"]),
        &[
            "git clone http://a.example/acme/x.git n --bundle-uri=http://b.example/x",
            "git clone http://a.example/acme/x.git n --bundle=http://b.example/x",
        ],
    );
    denies(
        &allowing(&["Bash(sqlite3 -readonly a.db *)"]),
        &["sqlite3 -readonly a.db .shell␣id", "sqlite3 -readonly a.db select␣1"],
    );
    for header in ["X-Sudo: a", "X-On-Behalf-Of: b", "X-Tenant: c", "X-Remote-User: d"] {
        let call = format!("curl -H {} https://a.example/x", header.replace(' ', "␣"));
        denies(&allowing(&["Bash(curl https://a.example/*)"]), &[&call]);
    }
}

/// Go makes one program of all the files in front of the first other word.
#[test]
fn a_star_behind_a_file_of_code_stands_for_no_further_one() {
    families(&[
        (
            "go run main.go *",
            &["go run main.go", "go run main.go -port 3 x", "go run main.go x other.go"],
            &["go run main.go evil.go", "go run main.go evil.go x", "go run main.go ./notes/evil.go"],
        ),
        ("go run -race main.go *", &["go run -race main.go x"], &["go run -race main.go evil.go"]),
        ("go run a.go b.go *", &["go run a.go b.go x"], &["go run a.go b.go c.go"]),
        ("go run *", &["go run a.go b.go", "go run ./cmd x.go"], &[]),
        ("go run ./cmd *", &["go run ./cmd x.go y.go"], &[]),
        ("gradle build *", &["gradle build -q"], &["gradle build -Pcmd=id", "gradle build -Pcmd=id -q"]),
        ("gradle *", &["gradle build -Pcmd=id"], &[]),
        (
            "yq -i .a=1 *",
            &["yq -i .a=1 x.yaml"],
            &["yq -i .a=1 -f extract x.md", "yq -i .a=1 --front-matter=process x.md"],
        ),
    ]);
}

/// What stands behind the code that a rule names is that code's own.
#[test]
fn options_behind_named_code_need_no_rule() {
    families(&[
        (
            "java -jar x.jar *",
            &["java -jar x.jar -v --input a.txt @more", "java -jar x.jar"],
            &["java -jar y.jar x.jar", "java -Dx -jar x.jar", "java -agentlib:y -jar x.jar"],
        ),
        ("java -jar *", &["java -jar x.jar"], &["java -jar -agentlib:y x.jar"]),
        ("bun x cowsay *", &["bun x cowsay -f a"], &["bun x --bun evil cowsay"]),
        (
            "deno run --allow-net x.ts *",
            &["deno run --allow-net x.ts --port 3"],
            &["deno run --allow-net --allow-run x.ts"],
        ),
        ("deno run -A x.ts *", &["deno run -A x.ts --port 3"], &["deno run -A y.ts x.ts"]),
        ("deno run --quiet x.ts *", &["deno run --quiet x.ts -A"], &[]),
        (
            "deno run --seed x.ts *",
            &["deno run --seed x.ts"],
            &["deno run --seed x.ts --allow-all", "deno run --seed x.ts y.ts --allow-all"],
        ),
    ]);
}

/// Its name would be another row, and all of them where it meets itself.
#[test]
fn a_star_in_the_place_of_a_value_stands_for_no_column() {
    for (rule, call) in [
        ("psql app -c 'delete from t where id = '*", "psql app -c delete␣from␣t␣where␣id␣=␣VALUE"),
        ("psql app -c 'delete from t where id in ('*')'", "psql app -c delete␣from␣t␣where␣id␣in␣(VALUE)"),
        ("mysql app -e 'delete from t where id='*", "mysql app -e delete␣from␣t␣where␣id=VALUE"),
        ("mysql app --execute='delete from t where id<'*", "mysql app --execute=delete␣from␣t␣where␣id<VALUE"),
        ("sqlite3 a.db 'delete from t where id = '*", "sqlite3 a.db delete␣from␣t␣where␣id␣=␣VALUE"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, &["5", "2026", "1.5"].map(|value| call.replace("VALUE", value)).each_ref().map(String::as_str));
        let columns = ["id", "t.id", "any", "null", "1--", "0x1", "1e9", "5,6", "-1"];
        denies(&policy, &columns.map(|value| call.replace("VALUE", value)).each_ref().map(String::as_str));
    }
    families(&[
        (
            "psql app -c 'select 1 from '*",
            &["psql app -c select␣1␣from␣notes"],
            &["psql app -c select␣1␣from␣notes,keys"],
        ),
        ("psql app -c 'select '*' from t'", &["psql app -c select␣id␣from␣t"], &["psql app -c select␣id,key␣from␣t"]),
        ("psql app -c 'select 1 from a.'*", &["psql app -c select␣1␣from␣a.t"], &[]),
        ("psql app -c 'truncate '*", &["psql app -c truncate␣t"], &["psql app -c truncate␣t,u"]),
        (
            "mysql app -e 'delete from t where a = \"it'\\''s\" and id = '*",
            &["mysql app -e delete␣from␣t␣where␣a␣=␣\"it's\"␣and␣id␣=␣4"],
            &["mysql app -e delete␣from␣t␣where␣a␣=␣\"it's\"␣and␣id␣=␣id"],
        ),
        (
            "psql app -c 'select 1 from notes'*",
            &["psql app -c select␣1␣from␣notes_old"],
            &["psql app -c select␣1␣from␣notes,keys"],
        ),
        ("sqlite3 a.db 'delete from t where name like '*", &[], &["sqlite3 a.db delete␣from␣t␣where␣name␣like␣name"]),
        (
            "sqlite3 a.db 'delete from t where id is '*",
            &["sqlite3 a.db delete␣from␣t␣where␣id␣is␣4"],
            &["sqlite3 a.db delete␣from␣t␣where␣id␣is␣id"],
        ),
        (
            "sqlite3 a.db 'delete from t where id between '*' and 9'",
            &["sqlite3 a.db delete␣from␣t␣where␣id␣between␣8␣and␣9"],
            &["sqlite3 a.db delete␣from␣t␣where␣id␣between␣-99␣and␣9"],
        ),
        (
            "sqlite3 a.db 'delete from t where id = 5'*",
            &["sqlite3 a.db delete␣from␣t␣where␣id␣=␣55"],
            &["sqlite3 a.db delete␣from␣t␣where␣id␣=␣5-5+id"],
        ),
        (
            "psql app -c \"select 1 from t where name = '\"*\\'",
            &["psql app -c select␣1␣from␣t␣where␣name␣=␣'ada'"],
            &[],
        ),
    ]);
}

/// `ours` leaves nothing of the other side.
#[test]
fn a_star_stands_for_no_strategy_of_a_merge() {
    families(&[
        (
            "git merge topic *",
            &["git merge topic --no-ff", "git merge topic -X theirs", "git merge topic -m x␣--strategy"],
            &[
                "git merge topic -s ours",
                "git merge topic -sours",
                "git merge topic --strategy=ours",
                "git merge topic --strat ours",
            ],
        ),
        ("git merge *", &["git merge -s ours topic"], &[]),
        ("git cherry-pick topic *", &["git cherry-pick topic -s"], &["git cherry-pick topic --strategy=ours"]),
        ("git revert HEAD *", &["git revert HEAD -s"], &["git revert HEAD --strategy ours"]),
        ("git rebase main *", &["git rebase main -q"], &["git rebase main -s ours", "git rebase main --strategy=ours"]),
    ]);
}

#[test]
fn options_of_a_clone_may_stand_in_front_of_the_address() {
    families(&[(
        "git clone https://h/acme/*",
        &[
            "git clone --depth 1 https://h/acme/x",
            "git clone --depth=1 https://h/acme/x y",
            "git clone -q --branch main --single-branch https://h/acme/x",
        ],
        &[
            "git clone --branch https://h/acme/x https://evil/x",
            "git clone --depth 1 https://evil/x",
            "git clone --depth 1 -c core.sshCommand=id https://h/acme/x",
            "git clone --mirror https://h/acme/x",
        ],
    )]);
}

/// Each letter at the end of such a script may be a command or a flag, and so may each one in front of a letter.
#[test]
fn a_star_in_a_script_without_quotes_stands_for_no_command() {
    families(&[
        (
            "perl -pe s/a/b/* notes.md",
            &["perl -pe s/a/b/ notes.md"],
            &["perl -pe s/a/b/.eval notes.md", "perl -pe s/a/b/e notes.md", "perl -pe s/a/b/ee notes.md"],
        ),
        (
            "perl -ne print* notes.md",
            &["perl -ne print notes.md"],
            &["perl -ne print-eval notes.md", "perl -ne print.unlink notes.md"],
        ),
        ("sed -i s/a/*/ f", &["sed -i s/a/b_2.c/ f"], &["sed -i s/a/b/w/ f"]),
        ("sed -i 1,*d f", &["sed -i 1,20d f"], &["sed -i 1,2wtodo.md f", "sed -i 1,2wtodod f", "sed -i 1,2rxd f"]),
        ("sed -i s/a/b/* f", &["sed -i s/a/b/2 f"], &["sed -i s/a/b/wtodo f", "sed -i s/a/b/e f"]),
        ("sed -n *p f", &["sed -n 1,5p f"], &["sed -n wtodop f"]),
    ]);
}

/// Options in front of it do not hide that.
#[test]
fn no_star_in_front_of_more_words_stands_for_a_script() {
    for (rule, calls) in [
        ("deno run --no-lock * x.ts", &["deno run --no-lock evil.ts x.ts", "deno run --no-lock x.ts"][..]),
        ("deno run * main.ts", &["deno run evil.ts main.ts"]),
        ("bun run * main.ts", &["bun run evil.ts main.ts"]),
        ("uv run * main.py", &["uv run evil.py main.py"]),
        ("node --no-warnings * app.js", &["node --no-warnings evil.js app.js"]),
        ("node --title x * app.js", &["node --title x evil.js app.js"]),
        ("python3 -W ignore * app.py", &["python3 -W ignore evil.py app.py"]),
        ("java -cp lib.jar * Main", &["java -cp lib.jar Evil Main"]),
        ("uv run --with acme * main.py", &["uv run --with acme evil.py main.py"]),
        ("kubectl --context x * pods", &["kubectl --context x delete pods", "kubectl --context x get pods"]),
        ("docker --context x * web", &["docker --context x rm web"]),
        ("npm --prefix web * test", &["npm --prefix web exec test"]),
        ("sudo -u bot * ls", &["sudo -u bot evil ls"]),
        ("java -Xmx1g * Main", &["java -Xmx1g Evil Main"]),
        ("deno run -q * x.ts", &["deno run -q evil.ts x.ts"]),
        ("go run -race * x", &["go run -race evil.go x"]),
    ] {
        denies(&allowing(&[&format!("Bash({rule})")]), calls);
    }
    families(&[
        ("pnpm run * --silent", &["pnpm run lint --silent"], &[]),
        ("deno run *", &["deno run x.ts"], &[]),
        ("node --title * app.js", &["node --title x app.js"], &[]),
        ("java -cp * Main", &["java -cp x Main"], &[]),
    ]);
}

/// Such a word would be one more file.
#[test]
fn a_star_in_the_value_of_an_option_stands_for_no_further_file() {
    families(&[
        ("truncate --size=* log", &["truncate --size=0 log"], &["truncate --size=0 notes.md log"]),
        ("shred --iterations=* tmp/x", &["shred --iterations=1 tmp/x"], &["shred --iterations=1 notes.md tmp/x"]),
        ("patch -p* -i fix.patch", &["patch -p1 -i fix.patch"], &["patch -p1 todo -i fix.patch"]),
        (
            "tar -czf b.tgz --exclude=* docs",
            &["tar -czf b.tgz --exclude=x docs"],
            &["tar -czf b.tgz --exclude=x secret docs"],
        ),
        ("mv inbox/*.eml done/", &["mv inbox/a.eml inbox/b.eml done/"], &["mv inbox/a todo.txt b.eml done/"]),
        ("git commit --date=* -m x", &["git commit --date=1␣day -m x"], &["git commit --date=1 secret -m x"]),
    ]);
}

/// Only marks that quote it make a name of what a star stands for.
#[test]
fn a_star_in_a_script_is_a_name_only_where_marks_quote_it() {
    families(&[
        (
            "perl -ne 'print if $. == '*';' f",
            &["perl -ne print␣if␣$.␣==␣7; f"],
            &["perl -ne print␣if␣$.␣==␣eval; f", "perl -ne print␣if␣$.␣==␣readpipe; f"],
        ),
        ("perl -e '$x/'*'/2'", &["perl -e $x/3/2"], &["perl -e $x/eval/2"]),
        ("perl -pe s/a/*/ f", &["perl -pe s/a/b/ f"], &["perl -pe s/a/b/;eval;s/c/ f"]),
        ("ruby -e 'puts '*'; puts 1'", &["ruby -e puts␣2;␣puts␣1"], &["ruby -e puts␣binding.irb;␣puts␣1"]),
        ("php -r 'echo '*';'", &["php -r echo␣2;"], &["php -r echo␣include-1;", "php -r echo␣1+require@M_PI;"]),
        ("sed -i 's/a/b/'*';3d' f", &["sed -i s/a/b/2;3d f"], &["sed -i s/a/b/e;3d f"]),
        ("sed -i s/a/b/* f", &["sed -i s/a/b/g f", "sed -i s/a/b/2 f"], &["sed -i s/a/b/e f", "sed -i s/a/b/w f"]),
        ("perl -pe 's/a/b/'* f", &["perl -pe s/a/b/gi f"], &["perl -pe s/a/b/ee f"]),
        ("sed -i 1,*!d f", &["sed -i 1,2!d f"], &["sed -i 1,2wtodo.md!d f"]),
        ("sed -i /^*/d f", &["sed -i /^x/d f"], &["sed -i /^x/w/d f"]),
    ]);
}

/// Each star of a script is code, and the script is the first operand behind options with a value.
#[test]
fn each_star_of_a_script_stands_for_no_command() {
    for sed in ["sed", "gsed"] {
        let rules = [
            ("-i s/*/b/* f", "-i s/a/b/g f", &["-i s/a/b/wtodo.md f", "-i s/a/b/e f", "-i s/a/w/b/ f"][..]),
            ("-i s/*/*/g f", "-i s/a/b/g f", &["-i s/a/b/wx/g f", "-i s/a/b/e;s/c/d/g f"]),
            ("-i *,*d f", "-i 1,5d f", &["-i 1,5wnotes/tod f", "-i 1w,5d f", "-i 1,5wa.md d f"]),
            ("-n *,*p f", "-n 1,5p f", &["-n 1,5wbackup f", "-n 1,5ebackup f"]),
            ("-i /*/* f", "-i /x/5 f", &["-i /x/wtodo.md f"]),
            ("-i *s/a/b/* f", "-i 1s/a/b/2 f", &["-i 1s/a/b/wtodo.md f", "-i wx;s/a/b/g f"]),
            ("-l 5 s/a/b/* f", "-l 5 s/a/b/g f", &["-l 5 s/a/b/wx f"]),
            ("-i -l 5 1,*d f", "-i -l 5 1,5d f", &["-i -l 5 1,5wd f"]),
            ("-i --line-length 5 1,*d f", "-i --line-length 5 1,5d f", &["-i --line-length 5 1,5wd f"]),
            ("-i -e s/a/*/ -e *,*d f", "-i -e s/a/b/ -e 1,5d f", &["-i -e s/a/b/ -e 1,5wd f"]),
            ("-i 1,*d notes/*", "-i 1,5d notes/a.md", &["-i 1,5wd notes/a.md"]),
            ("-i -e 1,5d notes/*", "-i -e 1,5d notes/a.md", &[]),
            ("-i s/a/b/ notes/*", "-i s/a/b/ notes/a.md notes/b.md", &[]),
            ("--in-place s/a/b/ notes/*/*.md", "--in-place s/a/b/ notes/a/b.md", &[]),
        ];
        for (rule, granted, refused) in rules {
            let refused: Vec<String> = refused.iter().map(|call| format!("{sed} {call}")).collect();
            let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
            families(&[(&format!("{sed} {rule}"), &[&format!("{sed} {granted}")], &refused)]);
        }
    }
}
