//! What stays closed to a job whose rules open all files for reading, or the folders of the system's programs.

use serde_json::json;

use crate::exec::printed;
use crate::support::bot::TestBot;

/// Tries each way to start a program by name, and says for each what came of it.
const STARTS: &str = r#"
my $program = $ARGV[0];
my ($loader) = grep { -e } ('/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1');

sub started { return system(@_, 'made') == 0 }

sub copied {
    open(my $from, '<:raw', $program) or return 0;
    open(my $to, '>:raw', 'copy') or die "copy: $!";
    print $to (do { local $/; <$from> });
    close($to);
    chmod(0755, 'copy');
    return started('./copy');
}

sub tried {
    my ($way, $is_done) = @_;
    print "$way ", $is_done ? 'done' : 'failed', "\n";
}

tried('start', started($program));
tried('copy', copied());
tried('loader', started($loader, $program));
tried('other name', scalar open(my $file, '<', "/proc/self/root$program"));
"#;

fn job(fields: &str, command: &str) -> String {
    format!(
        "---\ncron: '0 0 29 2 *'\nclient: exec\ncommand: {}\n{fields}---\n",
        serde_json::to_string(command).unwrap()
    )
}

/// A program that is asked about, or denied, starts through the broker only. A job that could read its file would start a copy.
#[test]
fn a_program_that_is_asked_about_is_not_read_by_a_job_that_reads_everything() {
    let bot = TestBot::new();
    bot.write("work/by.pl", STARTS);
    let service = bot.start();
    let asked = "ask_tools: ['Bash(touch *)']\nask: { deadline: 5s, default: deny }\n";
    let lists: Vec<String> =
        ["Read", "Edit", "Grep", "'Read(//usr/**)'", "'Read(//usr/bin/*)'", "'Edit(//usr/bin/**)'", "Glob"]
            .iter()
            .map(|rule| format!("allowed_tools: [{rule}, 'Bash(perl *)']\n{asked}"))
            .chain([
                "disallowed_tools: ['Bash(touch *)']\n".to_owned(),
                format!("allowed_tools: [Read, Bash]\n{asked}"),
            ])
            .collect();
    for list in &lists {
        bot.write("routines/tries.md", &job(list, "perl by.pl /usr/bin/touch"));
        let run = service.fire("tries");
        let said = printed(&bot.json(["runs", "show", run["run"].as_str().unwrap()]));
        assert_eq!(said.matches("failed").count(), 4, "{list}{said}");
        assert!(!bot.path("work/made").exists(), "{list}{said}");
    }
    // Without the question the same ways lead to it.
    bot.write("routines/tries.md", &job("allowed_tools: [Read, 'Bash(perl *)']\n", "perl by.pl /usr/bin/touch"));
    let run = service.fire("tries");
    let said = printed(&bot.json(["runs", "show", run["run"].as_str().unwrap()]));
    assert_eq!(said.matches("done").count(), 4, "{said}");
    assert_eq!(bot.json(["questions"]), json!([]));
    service.stop();
}

/// A program outside of PATH, which a question names by its path, is started by its path.
#[test]
fn a_program_that_is_asked_about_by_its_path_is_started_by_no_other() {
    let bot = TestBot::new();
    let outside = tempfile::Builder::new().prefix("ollim-outside-").tempdir_in("/opt").unwrap();
    let deploy = outside.path().join("deploy");
    std::fs::write(&deploy, "#!/bin/sh\ntouch \"$1\"\n").unwrap();
    std::fs::set_permissions(&deploy, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    bot.write("work/by.pl", STARTS);
    let service = bot.start();
    let deploy = deploy.display().to_string();
    let asked = format!("ask_tools: ['Bash({deploy} *)']\nask: {{ deadline: 5s, default: deny }}\n");
    for list in [
        format!("allowed_tools: ['Bash(perl *)']\n{asked}"),
        format!("allowed_tools: [Read, 'Bash(perl *)']\n{asked}"),
        format!("allowed_tools: ['Read(//opt/**)', 'Bash(perl *)']\n{asked}"),
        format!("disallowed_tools: ['Bash({deploy} *)']\n"),
    ] {
        bot.write("routines/tries.md", &job(&list, &format!("perl by.pl {deploy}")));
        let run = service.fire("tries");
        let said = printed(&bot.json(["runs", "show", run["run"].as_str().unwrap()]));
        assert_eq!(said.matches("failed").count(), 4, "{list}{said}");
        assert!(!bot.path("work/made").exists(), "{list}{said}");
    }
    // The line itself asks, and what is allowed works.
    bot.write(
        "routines/tries.md",
        &job(&format!("allowed_tools: ['Bash(perl *)']\n{}", asked.replace("5s", "1m")), &format!("{deploy} made")),
    );
    let run = bot.ok(["fire", "tries"]);
    let question = service.until("it asks", || bot.json(["questions"]).as_array().unwrap().first().cloned());
    bot.ok(["questions", "answer", &question["number"].to_string(), "allow"]);
    let runs = service.until_ended("tries", 5);
    assert_eq!(runs[0]["outcome"], "completed", "{run}: {runs:#?}");
    service.stop();
}

/// A terminal gives what the person types to its first reader, and a disk gives all files.
#[test]
fn a_job_that_reads_everything_reads_no_device() {
    let bot = TestBot::new();
    let outside = tempfile::Builder::new().prefix("ollim-outside-").tempdir_in("/dev/shm").unwrap();
    std::fs::write(outside.path().join("file"), "a file of the machine").unwrap();
    let file = outside.path().join("file").display().to_string();
    let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&terminal).unwrap();
    rustix::pty::unlockpt(&terminal).unwrap();
    let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let _typed = rustix::io::write(&terminal, b"my-password\n").unwrap();
    let read = "read_one() { timeout 2 head -n 1 \"$1\"; }\n";
    let service = bot.start();
    for rules in ["[Read]", "[Edit, 'Bash(timeout *)', 'Bash(head *)']", "[Read, Bash]", "[Read, 'Bash(perl *)']"] {
        let command = format!(
            "{read} read_one {name}; read_one /dev/ptmx; head -c 1 /dev/urandom > /dev/null && echo random; head -c 30 {file}; \
             head -c 30 < {name}"
        );
        bot.write("routines/tries.md", &job(&format!("allowed_tools: {rules}\n"), &command));
        let run = service.fire("tries");
        let said = printed(&bot.json(["runs", "show", run["run"].as_str().unwrap()]));
        assert_eq!(said.matches("Permission denied").count(), 3, "{rules}: {said}");
        assert!(said.contains("random\n") && said.contains("a file of the machine"), "{rules}: {said}");
        assert!(!said.contains("password"), "{rules}: {said}");
    }
    service.stop();
}
