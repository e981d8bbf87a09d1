//! Attacks with descriptors that are sent to a run's broker or to the service, and on which a call can wait for ever.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, socket_with};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;

use crate::support::bot::TestBot;
use crate::support::{processes, turn};

/// Makes a socket whose close waits, and the one that it waits for. The other scripts begin with it.
const LINGERS: &str = r#"
import socket, struct
def lingers():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    server.bind(("127.0.0.1", 0))
    server.listen()
    full = socket.socket()
    full.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    full.connect(server.getsockname())
    other, _ = server.accept()
    full.setblocking(False)
    try:
        while True: full.send(b"x" * 4096)
    except BlockingIOError: pass
    full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 100000))
    return full, other
"#;

/// Sends the broker a request that makes a call on it wait, starts a process, and waits. The argument says which.
const HOLDS: &str = r#"
import array, fcntl, os, socket, struct, subprocess, sys, time
broker = socket.socket(fileno=237)
here = os.open(".", os.O_PATH)
def send(*descriptors):
    rights = array.array("i", descriptors)
    broker.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
def blocks(fd):
    time.sleep(0.5)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
kind = sys.argv[1]
ours, theirs = socket.socketpair()
if kind == "read":
    send(theirs.fileno(), here)
    blocks(theirs.fileno())
    ours.send(struct.pack("<I", 100))
elif kind == "pipe":
    out, into = os.pipe()
    send(out, here)
    blocks(out)
    os.write(into, struct.pack("<I", 100))
elif kind == "close":
    # The broker has to close last. Some of the children are quicker than it is.
    for _ in range(20):
        if os.fork() == 0:
            full, other = lingers()
            send(full.fileno())
            full.close()
            time.sleep(1000)
elif kind == "queued":
    full, other = lingers()
    ours.sendmsg([struct.pack("<I", 100)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [full.fileno()]))])
    full.close()
    send(theirs.fileno(), here)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
print("sent", kind, flush=True)
time.sleep(1000)
"#;

/// Sends each of these sockets 600 messages with descriptors whose close waits, more than there are places for connections. The first
/// argument is the type of the sockets, the others are their paths.
const FREEZES: &str = r#"
import array, resource, socket, struct, sys, threading, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
held = []
for path in sys.argv[2:]:
    for _ in range(600):
        full, other = lingers()
        to = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[1]))
        to.connect(path)
        rights = array.array("i", [full.fileno()])
        try:
            to.sendmsg([b"POST /x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except BrokenPipeError:
            # The other side was quicker. A close of the socket would make this process wait.
            held.append(full)
        else:
            # The last close waits, which is ours if the other side has closed its own already.
            threading.Thread(target=full.close, daemon=True).start()
        held.append((other, to))
print("sent", flush=True)
time.sleep(1000)
"#;

/// A process that sends such messages. It ends with the value.
struct Freezer(Child);

impl Freezer {
    fn start(kind: &str, socket: &Path) -> Self {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", &format!("{LINGERS}{FREEZES}"), kind]).arg(socket).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "sent\n");
        Self(child)
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _gone = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ended = self.0.wait();
    }
}

fn python_is_there() -> bool {
    Path::new("/usr/bin/python3").exists()
}

/// The socket of a run's broker has a path, which every program with sockets can find.
#[test]
fn a_stranger_does_not_make_the_broker_of_a_run_wait() {
    if !turn::kernel_supports_sandbox() || !python_is_there() {
        return;
    }
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("work/x", "");
    let command = "until test -e go; do sleep 0.1; done; ls x";
    let head = "cron: '@yearly'\nclient: exec\nretry: 0\nallowed_tools: ['Bash(ls *)', Read]\ntimeout: 30s\n";
    bot.write("routines/victim.md", &format!("---\n{head}command: {command}\n---\n"));
    assert_eq!(bot.run(["fire", "victim"]).code, 0);
    let socket = service.until("its broker listens", || {
        let runs = bot.names("state/runs").into_iter();
        runs.map(|run| bot.path(&format!("state/runs/{run}/shell.sock"))).find(|socket| socket.exists())
    });
    let _freezer = Freezer::start("SOCK_SEQPACKET", &socket);
    bot.write("work/go", "");
    let run = service.until("it ends", || bot.runs("victim").into_iter().find(|run| !run["ended"].is_null()));
    assert_eq!(run["outcome"], "completed", "{run:#}");
    service.stop();
}

/// The service answers and ends although somebody holds up his own connections.
#[test]
fn a_caller_without_a_token_does_not_make_the_service_wait() {
    if !python_is_there() {
        return;
    }
    let bot = TestBot::new();
    bot.write("config.yaml", &format!("timezone: UTC\nweb: {}\n", bot.path("web.sock").display()));
    let service = bot.start();
    let freezers = ["state/control.sock", "web.sock"].map(|socket| Freezer::start("SOCK_STREAM", &bot.path(socket)));
    let status = bot.json(["status"]);
    assert_eq!(status["daemon"]["pid"], service.pid(), "{status:#}");
    service.stop();
    drop(freezers);
}

/// The runner ends the run although its broker waits.
#[test]
fn a_run_whose_job_makes_the_broker_wait_ends_on_time_and_leaves_nothing() {
    if !turn::kernel_supports_sandbox() || !python_is_there() {
        return;
    }
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("work/holds.py", &format!("{LINGERS}{HOLDS}"));
    for kind in ["read", "pipe", "close", "queued"] {
        let head = "cron: '@yearly'\nclient: exec\nretry: 0\nallowed_tools: ['Bash(/usr/bin/python3 holds.py *)']\n";
        let text = format!("---\n{head}command: /usr/bin/python3 holds.py {kind}\ntimeout: 8s\n---\n");
        bot.write(&format!("routines/{kind}.md"), &text);
        let run = service.fire(kind);
        let run = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
        assert_eq!(super::exec::printed(&run), format!("sent {kind}\n"), "{run:#}");
        assert_eq!(run["error"], json!("the command took longer than 8s (`timeout`) and was ended"), "{run:#}");
        let is_left = || bot.processes().iter().any(|process| process.command.contains("python3"));
        service.until("no process of the run is left", || (!is_left()).then_some(()));
    }
    service.stop();
}

/// The service ends what a runner that hangs does not end.
#[test]
fn a_runner_that_hangs_is_killed_with_its_run() {
    let bot = TestBot::new();
    let service = bot.start();
    let text =
        "---\ncron: '@yearly'\nclient: exec\nretry: 0\nallowed_tools: []\ncommand: sleep 1000\ntimeout: 8s\n---\n";
    bot.write("routines/long.md", text);
    assert_eq!(bot.run(["fire", "long"]).code, 0);
    let of_run = |name: &str| bot.processes().into_iter().find(|process| process.command.contains(name));
    service.until("the command runs", || of_run("sleep 1000"));
    // Also their parents, which would end what a killed runner leaves.
    for pid in processes::runners_of(service.pid()) {
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::STOP).unwrap();
    }
    let run = service.until("the run has ended", || bot.runs("long").into_iter().find(|run| !run["ended"].is_null()));
    assert_eq!(run["outcome"], "timed_out", "{run:#}");
    assert!(of_run("sleep 1000").is_none(), "{:#?}", bot.processes());
    service.stop();
}

/// A process outside of the run holds the streams of a command, as one of another run can that the command has passed them to.
#[test]
fn a_command_ends_though_somebody_else_holds_its_streams() {
    if !turn::kernel_supports_sandbox() || !python_is_there() {
        return;
    }
    let bot = TestBot::new();
    let service = bot.start();
    let passes = "import array, socket\nto = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\nto.connect('holder')\n\
                  to.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1, 2]))])\nprint('passed')\n";
    bot.write("work/passes.py", passes);
    // Programs of jobs have no other sockets with paths.
    let holder = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None).unwrap();
    bind(&holder, &SocketAddrUnix::new(bot.path("work/holder")).unwrap()).unwrap();
    listen(&holder, 1).unwrap();
    let head = "cron: '@yearly'\nclient: exec\nretry: 0\nallowed_tools: ['Bash(/usr/bin/python3 passes.py)']\n";
    bot.write("routines/leak.md", &format!("---\n{head}command: /usr/bin/python3 passes.py\n---\n"));
    assert_eq!(bot.run(["fire", "leak"]).code, 0);
    // What is in the queue of a connection stays open.
    let _held = service.until("the streams are passed on", || accept(&holder).ok());
    let run = service.until("it ends", || bot.runs("leak").into_iter().find(|run| !run["ended"].is_null()));
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let run = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
    assert_eq!(super::exec::printed(&run), "passed\n", "{run:#}");
    service.stop();
}
