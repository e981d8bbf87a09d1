//! Attacks on the sandbox itself, by programs and by native code in the job's shell. The corpora cannot express these.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ollim_bot::policy::{AgentRules, BOT, PermissionMode};

use super::engine;
use super::shell::CorpusShell;
use crate::support::job_shell::LineResult;
use crate::support::turn;

/// Runs `line` in a job's shell whose rules are `rules`.
fn run(stage: &CorpusShell, rules: &[&str], line: &str) -> LineResult {
    let (policy, granted) = engine::of_rules(rules, &stage.workspace);
    stage.place.run(&policy, &granted, line, &stage.workspace.work())
}

/// Compiles a library that executes `body` when `enable -f` loads it, as a line in a job's shell can do.
fn library(stage: &CorpusShell, body: &str) -> Option<()> {
    let source = stage.workspace.work().join("notes/x.c");
    std::fs::create_dir_all(source.parent()?).ok()?;
    let head = "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <string.h>\n#include <sys/types.h>\n#include <sys/socket.h>\n#include <sys/un.h>\n#include <sys/stat.h>\n#include <sys/resource.h>\n#include <sys/ipc.h>\n#include <sys/msg.h>\n#include <sched.h>\n#include <signal.h>\n#include <unistd.h>\n#include <sys/time.h>\n#include <fcntl.h>\n\
                __attribute__((constructor)) static void go(void) {\n";
    std::fs::write(&source, format!("{head}{body}\nfflush(stdout);\n}}\n")).ok()?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(source.with_extension("so")).arg(&source);
    compiler.status().ok()?.success().then_some(())
}

const LOAD: &str = "enable -f notes/x.so x 2>/dev/null; echo loaded";

/// Returns the text that a datagram socket with a path has received after `line`.
fn datagram(rules: &[&str], prepare: impl Fn(&CorpusShell, &str) -> Option<()>, line: &str) -> Option<String> {
    let stage = CorpusShell::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    prepare(&stage, &path.display().to_string())?;
    let ran = run(&stage, rules, line);
    let mut bytes = [0; 64];
    match socket.recv(&mut bytes) {
        Ok(length) => Some(String::from_utf8_lossy(&bytes[..length]).into_owned()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{ran:?}");
            Some(String::new())
        }
    }
}

#[test]
fn a_pair_of_sockets_leads_to_no_other_socket() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let by_python = |stage: &CorpusShell, path: &str| {
        let program = format!(
            "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'forged', {path:?})\n"
        );
        std::fs::create_dir_all(stage.workspace.work().join("tools")).ok()?;
        std::fs::write(stage.workspace.work().join("tools/t.py"), program).ok()
    };
    let sent = datagram(&["Bash(/usr/bin/python3 tools/t.py)"], by_python, "/usr/bin/python3 tools/t.py");
    assert_eq!(sent.as_deref(), Some(""), "a granted program has spoken with a socket on this machine");
    let by_shell = |stage: &CorpusShell, path: &str| {
        let body = format!(
            "int p[2]; struct sockaddr_un a = {{AF_UNIX, \"{path}\"}};\n\
             socketpair(AF_UNIX, SOCK_DGRAM, 0, p); sendto(p[0], \"forged\", 6, 0, (void *)&a, sizeof a);"
        );
        library(stage, &body)
    };
    let sent = datagram(&["Bash(ls *)", "Read(notes/**)"], by_shell, LOAD);
    assert!(sent.is_none_or(|sent| sent.is_empty()), "the shell itself has spoken with a socket on this machine");
}

/// Returns the output of native code in a shell that has no write access and no network.
fn by_code(body: &str) -> Option<String> {
    let stage = CorpusShell::new();
    library(&stage, body)?;
    Some(run(&stage, &["Bash(ls *)", "Read(notes/**)"], LOAD).output)
}

#[test]
fn code_in_the_shell_reaches_no_other_process() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id();
    let tried = by_code(&format!(
        "struct sched_param p = {{0}}; cpu_set_t c; CPU_ZERO(&c); CPU_SET(0, &c);\n\
         printf(\"nice %d\\n\", setpriority(PRIO_PROCESS, {pid}, 19));\n\
         printf(\"idle %d\\n\", sched_setscheduler({pid}, SCHED_IDLE, &p));\n\
         printf(\"bound %d\\n\", sched_setaffinity({pid}, sizeof c, &c));\n\
         printf(\"queue %d\\n\", msgget(0x6f6c6c69, IPC_CREAT | 0600) < 0 ? -1 : 0);\n\
         printf(\"signal %d\\n\", kill({pid}, 0));"
    ));
    child.kill().unwrap();
    child.wait().unwrap();
    let Some(output) = tried else { return };
    for what in ["nice", "idle", "bound", "queue", "signal"] {
        assert!(output.contains(&format!("{what} -1")), "{what}: {output}");
    }
}

#[test]
fn a_program_that_has_lost_its_socket_is_judged_all_the_same() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let stage = CorpusShell::new();
    let program = "import os, socket\n\
                   os.close(237)\n\
                   os.system('echo started-$((40+2)); secret x; ls notes')\n\
                   os.system('git --version')\n\
                   def present(role, token):\n    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n    \
                   s.connect(os.environ['AGENT_SANDBOX_SOCKET'])\n    s.settimeout(2)\n    \
                   s.send(role + b' ' + token.encode() + b'\\nenv')\n    return s.recv(100)\n\
                   print(present(b'shell', os.environ['AGENT_SANDBOX_TOKEN']))\n";
    std::fs::create_dir_all(stage.workspace.work().join("tools")).unwrap();
    std::fs::write(stage.workspace.work().join("tools/t.py"), program).unwrap();
    let granted = ["Bash(/usr/bin/python3 tools/t.py)", "Bash(git --version)"];
    let ran = run(&stage, &granted, "/usr/bin/python3 tools/t.py");
    assert!(ran.output.contains("started-42"), "{ran:?}");
    // Variables that the shell inherited do not count as assignments of the line.
    assert!(ran.output.contains("git version"), "{ran:?}");
    // A program's token does not authorize it as a shell.
    assert!(!ran.output.contains("bash\":"), "{ran:?}");
}

#[test]
fn no_folder_is_made_through_a_link() {
    let stage = CorpusShell::new();
    let (work, elsewhere) = (stage.workspace.work(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(elsewhere.path(), work.join("cache")).unwrap();
    run(&stage, &["Bash(ls *)", "Edit(cache/sub/**)", "Edit(own/sub/**)"], "ls");
    assert!(work.join("own/sub").is_dir());
    assert!(!elsewhere.path().join("sub").exists());
}

#[test]
fn an_agents_shell_writes_where_both_lists_let_it() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let list = |texts: &[&str]| engine::patterns(texts.iter().copied());
    for (of_agent, may) in [
        (&["Bash", "Edit(**/*.md)"][..], false),
        (&["Bash", "Edit(~/elsewhere/**)"], false),
        (&["Bash", "Edit(notes/**)"], true),
        (&["*"], true),
    ] {
        let stage = CorpusShell::new();
        let (policy, granted) = engine::of_rules(&["Bash(ls *)", "Edit(notes/**)"], &stage.workspace);
        let rules = AgentRules {
            name: "writer".into(),
            tools: Some(list(of_agent)),
            disallowed: Vec::new(),
            read_only: false,
            permission_mode: PermissionMode::default(),
        };
        let both = BOT.intersection(&granted, &list(of_agent));
        let line = "mkdir -p notes; echo mine > notes/plan.txt";
        std::fs::create_dir_all(stage.workspace.work().join("notes")).unwrap();
        let ran = stage.place.run(&policy.as_agent(&rules), &both, line, &stage.workspace.work());
        assert_eq!(stage.workspace.work().join("notes/plan.txt").exists(), may, "{of_agent:?}: {ran:?}");
    }
}

/// Counts connections and answers each with 404.
fn listener() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    // The thread ends with the process.
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut client = client;
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (port, count)
}

#[test]
fn git_takes_no_proxy_from_its_repository() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let ((host, asked), (proxy, led)) = (listener(), listener());
    let address = format!("http://127.0.0.1:{host}");
    let settings = ["http.proxy".to_owned(), format!("http.{address}/.proxy"), "remote.origin.proxy".to_owned()];
    for setting in settings {
        for scheme in ["http", "socks5"] {
            let stage = CorpusShell::new();
            for words in [
                &["init", "-q", "."][..],
                &["remote", "add", "origin", &format!("{address}/x")],
                &["config", &setting, &format!("{scheme}://127.0.0.1:{proxy}")],
            ] {
                let ended = Command::new("git").args(words).current_dir(stage.workspace.work()).status().unwrap();
                assert!(ended.success(), "{words:?}");
            }
            for line in ["git ls-remote origin", "git fetch origin"] {
                let before = asked.load(Ordering::SeqCst);
                let ran = run(&stage, &["Bash(git ls-remote *)", "Bash(git fetch *)"], line);
                assert_eq!(led.load(Ordering::SeqCst), 0, "{setting} {scheme}: {line}: {ran:?}");
                assert!(asked.load(Ordering::SeqCst) > before, "{setting} {scheme}: {line}: {ran:?}");
            }
        }
    }
}

#[test]
fn what_is_not_utf8_is_not_judged_as_another_path() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let stage = CorpusShell::new();
    let line = "cd notes; ln -s / $'x\\xff'; git -C $'x\\xff/opt' log";
    std::fs::create_dir_all(stage.workspace.work().join("notes")).unwrap();
    let ran = run(&stage, &["Bash(git log *)", "Bash(ln *)", "Edit(notes/**)"], line);
    assert_eq!(ran.output.matches("not UTF-8").count(), 2, "{ran:?}");
    assert!(ran.starts.is_empty(), "{ran:?}");
}
