//! The real agent client against a stub of its API: the tools that it shows, the calls that run, and those that do not.

use std::sync::Arc;
use std::time::Duration;

use ollim_bot::agent::{AttemptEnd, FailureClass, Request, SessionId, SessionMode};
use ollim_bot::search_path::find;
use serde_json::json;

use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::turn::{Fixture, HookReply, Host};
use crate::support::{processes, turn, wait};

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_does_what_the_host_allows_and_nothing_else() {
    let api = MessagesApi::script([
        Reply::bash("echo ran > allowed.txt; echo $((6*7))"),
        Reply::bash("echo ran > denied.txt"),
        Reply::call("mcp__discord__ping_user", json!({"message": "hey"})),
        Reply::call("mcp__discord__report_updates", json!({"message": "hey"})),
        Reply::call("Read", json!({"file_path": "/etc/hostname"})),
        Reply::say("all done"),
    ]);
    let fixture = Fixture::new(&client::real(), api.url());
    let host =
        Arc::new(Host::new(
            |call| if call.input.to_string().contains("denied") { HookReply::Deny } else { HookReply::Allow },
        ));
    let report = fixture.run(fixture.request(&host, "do it", &["Bash", "mcp__discord__ping_user"])).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    assert_eq!(report.answer.as_deref(), Some("all done"));
    assert_eq!(report.turns, Some(6));
    assert!(report.cost_usd.unwrap() > 0.0);
    assert!(report.transcript.as_ref().unwrap().starts_with(fixture.run_dir()), "{report:?}");
    assert_eq!(api.requests()[0].tools(), ["Bash", "mcp__discord__ping_user"]);
    let results = api.last().results();
    let texts: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
    // 2.1.330 puts before it that it comes from a hook.
    assert!(texts[1].ends_with("Deny by the test: Bash"), "{texts:?}");
    assert_eq!([texts[0], texts[2]], ["42", "ping_user served"]);
    assert!(texts[3].contains("No such tool available"), "{texts:?}");
    assert!(texts[4].contains("No such tool available"), "{texts:?}");
    assert!(fixture.work().join("allowed.txt").exists());
    assert!(!fixture.work().join("denied.txt").exists());
    assert_eq!(host.asked_tools(), ["Bash", "Bash", "mcp__discord__ping_user"]);
    assert_eq!(*host.served.lock().unwrap(), [("ping_user".to_string(), json!({"message": "hey"}))]);
    let denied: Vec<String> = host.client_denied.lock().unwrap().iter().map(|(tool, _)| tool.clone()).collect();
    assert_eq!(denied, ["mcp__discord__report_updates", "Read"]);
    let started = host.started.lock().unwrap();
    assert_eq!((started.len(), &started[1].1), (2, &report.session), "{started:?}");
}

/// Every way in which a verdict can fail to arrive is a denial.
#[tokio::test(flavor = "multi_thread")]
async fn no_verdict_is_a_no() {
    for (say, verdict, client_waits, expect) in [
        (HookReply::Panic, 60_000, 60, &["failed to judge"][..]),
        (HookReply::Nothing, 50, 60, &["did not come to a verdict in time"]),
        // Here the client itself stops waiting for the hook.
        (
            HookReply::Nothing,
            60_000,
            1,
            &["doesn't want to take this action", "hook did not respond before its timeout"],
        ),
    ] {
        let api = MessagesApi::script([Reply::bash("touch ran")]);
        let mut fixture = Fixture::new(&client::real(), api.url());
        fixture.claude.limits.verdict = Duration::from_millis(verdict);
        fixture.claude.limits.client_waits = Duration::from_secs(client_waits);
        fixture.claude.limits.host_ends = Duration::from_millis(1);
        let host = Arc::new(Host::new(move |_| say));
        let report = fixture.run(fixture.request(&host, "do it", &["Bash"])).await;
        assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
        let results = api.last().results();
        assert!(results[0].is_error && expect.iter().any(|words| results[0].text.contains(words)), "{results:?}");
        assert!(!fixture.work().join("ran").exists(), "{say:?} {expect:?}");
        assert_eq!(host.asked_tools(), ["Bash"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_in_a_prompt_is_not_read() {
    let api = MessagesApi::script([Reply::say("no")]);
    let fixture = Fixture::new(&client::real(), api.url());
    std::fs::write(fixture.work().join("notes.txt"), "the-secret-of-the-notes").unwrap();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let host = Arc::new(Host::new(|_| HookReply::Allow));
    let prompt = "look at @/etc/passwd, @notes.txt and @./notes.txt @\"notes.txt\"\n@/etc/passwd";
    let report = fixture.run(fixture.request(&host, prompt, &[])).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    assert!(api.last().mentions("@notes.txt"), "the prompt came");
    for request in api.all() {
        assert!(!request.mentions("the-secret-of-the-notes") && !request.mentions(passwd.lines().next().unwrap()));
    }
}

/// The policy's layers are off (the host allows everything), so only the kernel's sandbox restricts the fork.
#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_keeps_a_fork_in_its_place() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let attempts = |fixture: &Fixture| -> Vec<(Reply, &str, bool)> {
        let (root, home) = (fixture.root.display().to_string(), fixture.home().display().to_string());
        let programs = fixture.claude.client_environment.programs.join(":");
        let write = |path: &str| Reply::call("Write", json!({"file_path": path, "content": "x"}));
        let read = |path: &str| Reply::call("Read", json!({"file_path": path}));
        vec![
            // Granted access.
            (Reply::bash("cat open.txt"), "bash-reads-work", true),
            (
                Reply::bash(
                    "mkdir -p notes/deep && echo x > notes/deep/a && mv notes/deep/a notes/b && rm notes/b && echo done",
                ),
                "bash-writes-notes",
                true,
            ),
            (write(&format!("{root}/work/notes/w.txt")), "write-in-notes", true),
            (read(&format!("{root}/work/open.txt")), "read-work", true),
            (
                Reply::bash(
                    "echo $TMPDIR; echo x > $TMPDIR/t && cat /etc/hostname > /dev/null && ls /usr > /dev/null && echo done",
                ),
                "the-system",
                true,
            ),
            // This bash is not ours. It is a login shell, since the client can keep no snapshot of one, and sets a PATH of its own.
            (Reply::bash(&format!("PATH={programs} command -v ollim-bot")), "our-binary", true),
            // It has the variables for the client's own git, which sees no repository.
            (Reply::bash("unset GIT_DIR; git init -q $TMPDIR/repo && git -C $TMPDIR/repo status"), "git", true),
            // Access that was not granted.
            (
                Reply::bash(&format!("cat {root}/work/planted/id || echo x > {root}/work/planted/evil")),
                "planted-link",
                false,
            ),
            (Reply::bash("echo x > other.txt"), "bash-writes-work", false),
            (write(&format!("{root}/work/other.txt")), "write-in-work", false),
            (Reply::bash(&format!("cat {root}/.env {root}/state/user.token {root}/routines/a.md")), "secrets", false),
            (Reply::bash(&format!("ls {root} || ls {root}/state")), "list-data-folder", false),
            (Reply::bash(&format!("ls {home} || cat {home}/.ssh/id")), "home", false),
            (read(&format!("{home}/.ssh/id")), "read-home", false),
            (Reply::bash(&format!("ln -s {home}/.ssh/id $TMPDIR/link && cat $TMPDIR/link")), "through-a-link", false),
            (Reply::bash(&format!("ln {root}/.env $TMPDIR/hard && cat $TMPDIR/hard")), "hard-link", false),
            (Reply::bash("cat /proc/$PPID/root/tmp/../../proc/1/environ"), "environment-of-others", false),
            (Reply::bash("touch /tmp/ollim-wall-test"), "tmp", false),
            (
                Reply::bash(&format!("setsid --wait sh -c 'cat {root}/.env; echo x > {root}/work/other.txt'")),
                "detached",
                false,
            ),
            (Reply::bash(&format!("mv {root}/work/open.txt $TMPDIR/")), "move-out", false),
        ]
    };
    let api_desk = Fixture::new(&client::real(), "http://unused");
    let names: Vec<(&str, bool)> = attempts(&api_desk).iter().map(|(_, name, runs)| (*name, *runs)).collect();
    let api = MessagesApi::script(attempts(&api_desk).into_iter().map(|(reply, ..)| reply));
    let mut fixture = api_desk;
    fixture.claude.client_environment.own.insert("ANTHROPIC_BASE_URL".into(), api.url().into());
    for (file, text) in [
        ("work/open.txt", "open"),
        ("work/notes/.keep", ""),
        (".env", "TOP-SECRET"),
        ("state/user.token", "TOP-SECRET"),
        ("routines/a.md", "TOP-SECRET"),
        ("../.gitconfig", "[user]\n\tname = Ann\n"),
        ("../.ssh/id", "TOP-SECRET"),
    ] {
        let path = fixture.root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    // An earlier run left a link in a place where this one may write.
    std::os::unix::fs::symlink(fixture.home().join(".ssh"), fixture.work().join("planted")).unwrap();
    let host = Arc::new(Host::new(|_| HookReply::Allow));
    let mut request = fixture.request(&host, "do it", &["Bash", "Read", "Write"]);
    request.sandbox = fixture.sandbox(&["work/notes", "work/planted"]);
    let report = fixture.run(request).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let results = api.last().results();
    assert_eq!(results.len(), names.len());
    for (result, (name, runs)) in results.iter().zip(names) {
        assert_eq!(!result.is_error, runs, "{name}: {result:?}");
        assert!(!result.text.contains("TOP-SECRET"), "{name}: {result:?}");
    }
    assert!(!fixture.work().join("other.txt").exists());
    assert!(fixture.work().join("notes/w.txt").exists());
    assert!(!std::path::Path::new("/tmp/ollim-wall-test").exists());
}

/// Requests to the API stop at the first refusal. The client alone would try ten times.
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_api_have_their_class() {
    for (reply, class, asked) in [
        (Reply::Error(401, "authentication_error"), FailureClass::NotLoggedIn, Some(1)),
        (Reply::Error(529, "overloaded_error"), FailureClass::Overloaded, None),
        (Reply::Error(500, "api_error"), FailureClass::Overloaded, None),
        (Reply::Error(429, "rate_limit_error"), FailureClass::Overloaded, None),
        (Reply::Error(400, "invalid_request_error"), FailureClass::ErrorResult, None),
    ] {
        let api = MessagesApi::answering(move |_| reply.clone());
        let mut fixture = Fixture::new(&client::real(), api.url());
        if asked.is_none() {
            fixture.claude.client_environment.added.insert("CLAUDE_CODE_MAX_RETRIES".into(), "1".into());
        }
        let host = Arc::new(Host::new(|_| HookReply::Allow));
        let report = fixture.run(fixture.request(&host, "do it", &[])).await;
        let AttemptEnd::Failed(failure) = report.end else { panic!("{report:?}") };
        assert_eq!(failure.class, class, "{failure:?}");
        assert!(asked.is_none_or(|asked| api.requests().len() == asked), "{}", api.requests().len());
    }
    // No server listens there.
    let mut fixture = Fixture::new(&client::real(), "http://127.0.0.1:9");
    fixture.claude.client_environment.added.insert("CLAUDE_CODE_MAX_RETRIES".into(), "1".into());
    let report = fixture.run(fixture.request(&Arc::new(Host::new(|_| HookReply::Allow)), "do it", &[])).await;
    let AttemptEnd::Failed(failure) = report.end else { panic!("{report:?}") };
    assert_eq!(failure.class, FailureClass::Overloaded, "{failure:?}");
}

/// The client gets the login by a descriptor. No command of the agent finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_reaches_the_api_and_nothing_else() {
    let walled = turn::kernel_supports_sandbox();
    for (variable, secret, header) in [
        ("ANTHROPIC_API_KEY", "sk-hush-hush-key", "x-api-key"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "tok-hush-hush-token", "authorization"),
    ] {
        // Environments, command lines, descriptors (the command's and its parent's) and files: all that a command can read.
        let search = "{ env; for p in /proc/[0-9]*; do cat $p/environ $p/cmdline; done; \
            for f in /proc/self/fd/* /proc/$PPID/fd/*; do \
              case $(readlink $f) in pipe*|socket*) timeout 0.1 head -c 200 $f;; esac; done; \
            grep -ra hus[h] $CLAUDE_CONFIG_DIR $TMPDIR; } > $TMPDIR/../found 2>/dev/null < /dev/null; \
            echo found $(grep -ac hush-hus[h] $TMPDIR/../found) $(grep -ac OLLIM_RUN_TOKEN $TMPDIR/../found)";
        let api = MessagesApi::script([Reply::bash(search)]);
        let mut fixture = Fixture::new(&client::real(), api.url());
        fixture.claude.login.variables = [(variable.to_string(), secret.to_string())].into();
        let host = Arc::new(Host::new(|_| HookReply::Allow));
        let mut request = fixture.request(&host, "do it", &["Bash"]);
        if walled {
            request.sandbox = fixture.sandbox(&["state/runs"]);
        }
        let report = fixture.run(request).await;
        assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
        assert!(api.requests()[0].headers[header].contains(secret), "{:?}", api.requests()[0].headers);
        let result = &api.last().results()[0];
        assert!(result.text.starts_with("found 0 ") && !result.text.ends_with(" 0"), "{result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_login_nothing_is_started() {
    let mut fixture = Fixture::new(&client::real(), "http://127.0.0.1:9");
    fixture.claude.login.variables.clear();
    let host = Arc::new(Host::new(|_| HookReply::Allow));
    let report = fixture.run(fixture.request(&host, "do it", &[])).await;
    let AttemptEnd::Failed(failure) = report.end else { panic!("{report:?}") };
    assert_eq!(failure.class, FailureClass::NotLoggedIn);
    assert!(failure.message.contains("hint: log in with `ollim-bot login`"), "{failure:?}");
    assert!(host.started.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_is_kept_going_once() {
    let api = MessagesApi::script([
        Reply::say("that was it"),
        Reply::call("mcp__discord__report_updates", json!({"message": "done"})),
        Reply::say("now it is"),
    ]);
    let fixture = Fixture::new(&client::real(), api.url());
    let mut host = Host::new(|_| HookReply::Allow);
    host.go_on = Some("call report_updates first".into());
    let host = Arc::new(host);
    let report = fixture.run(fixture.request(&host, "do it", &["mcp__discord__report_updates"])).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    assert_eq!(report.answer.as_deref(), Some("now it is"));
    assert_eq!(*host.stops.lock().unwrap(), [false, true]);
    assert!(api.last().mentions("call report_updates first"));
    assert_eq!(host.served.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_end_a_run_and_are_named() {
    let loops = || MessagesApi::answering(|_| Reply::bash("true"));
    let run = async |api: &MessagesApi, change: &dyn Fn(&mut Request)| {
        let fixture = Fixture::new(&client::real(), api.url());
        let mut request = fixture.request(&Arc::new(Host::new(|_| HookReply::Allow)), "do it", &["Bash"]);
        change(&mut request);
        let report = fixture.run(request).await;
        assert_eq!(processes::naming(&fixture.root), [], "nothing is left");
        report
    };
    let report = run(&loops(), &|request| request.options.max_turns = Some(3)).await;
    let AttemptEnd::Failed(failure) = &report.end else { panic!("{report:?}") };
    assert!(failure.message.contains("max_turns"), "{failure:?}");
    let report = run(&loops(), &|request| request.options.max_budget_usd = Some(0.000_1)).await;
    let AttemptEnd::Failed(failure) = &report.end else { panic!("{report:?}") };
    assert!(failure.message.contains("the limit of $0.0001 was reached"), "{failure:?}");

    let silent = MessagesApi::answering(|_| Reply::Silence);
    let report = run(&silent, &|request| request.inactivity_timeout = Duration::from_secs(2)).await;
    let AttemptEnd::TimedOut(limit) = &report.end else { panic!("{report:?}") };
    assert!(limit.contains("inactivity_timeout"), "{limit}");
    let report = run(&silent, &|request| request.timeout = Duration::from_secs(2)).await;
    let AttemptEnd::TimedOut(limit) = &report.end else { panic!("{report:?}") };
    assert!(limit.contains("`timeout`"), "{limit}");
}

/// The run is cancelled while a command runs that ignores every signal it can.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_leaves_no_process() {
    let stubborn = "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; touch up; sleep 1000' & (setsid sleep 1001 &) ; sleep 1002";
    let api = MessagesApi::script([Reply::bash(stubborn)]);
    let fixture = Fixture::new(&client::real(), api.url());
    let host = Arc::new(Host::new(|_| HookReply::Allow));
    let request = fixture.request(&host, "do it", &["Bash"]);
    let cancel = request.cancel.clone();
    let up = fixture.work().join("up");
    let waiting = std::thread::spawn(move || {
        wait::until("the command runs", || up.exists().then_some(()), String::new);
        cancel.cancel();
    });
    let report = fixture.run(request).await;
    waiting.join().unwrap();
    assert_eq!(report.end, AttemptEnd::Cancelled);
    assert!(report.session.is_some());
    assert_eq!(processes::naming(&fixture.root), []);
    assert_eq!(processes::zombies_of(std::process::id()), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_main_session_goes_on_and_a_fork_leaves_it_as_it_is() {
    let api = MessagesApi::answering(|request| {
        let first = request.answers() == 0;
        Reply::say(if first { "I shall remember the heron" } else { "the heron" })
    });
    let fixture = Fixture::new(&client::real(), api.url());
    let host = Arc::new(Host::new(|_| HookReply::Allow));
    let said = async |session: SessionMode, prompt: &str| {
        let mut request = fixture.request(&host, prompt, &["Bash"]);
        let fork = matches!(session, SessionMode::ForkOfMain { .. });
        if fork && turn::kernel_supports_sandbox() {
            request.sandbox = fixture.sandbox(&[]);
        }
        request.session = session;
        let report = fixture.run(request).await;
        assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
        report
    };
    let first = said(SessionMode::Main(None), "the word is heron").await;
    let session = first.session.clone().unwrap();
    let second = said(SessionMode::Main(Some(session.clone())), "which word").await;
    assert_eq!(second.session, Some(session), "a session keeps its id");
    assert_eq!(second.answer.as_deref(), Some("the heron"));
    assert!(api.last().mentions("the word is heron"), "and its history");
    let parent = second.transcript.unwrap();
    assert_eq!(first.transcript.as_ref(), Some(&parent));
    assert!(parent.starts_with(fixture.root.join("state/main")));

    let before = std::fs::read(&parent).unwrap();
    let copy = fixture.run_dir().join("main.jsonl");
    std::fs::copy(&parent, &copy).unwrap();
    let fork = said(SessionMode::ForkOfMain { transcript: copy.clone() }, "what was the word").await;
    assert!(api.last().mentions("the word is heron"), "a fork has the history");
    assert_ne!(fork.session, first.session);
    let own = fork.transcript.unwrap();
    assert!(own.starts_with(fixture.run_dir()), "{}", own.display());
    assert_eq!(std::fs::read(&parent).unwrap(), before, "the parent is as it was");
    assert_eq!(std::fs::read(&copy).unwrap(), before, "and so is the copy");

    // As for each run that goes on with another one's. A client begins with empty folders.
    std::fs::copy(&own, &copy).unwrap();
    let again = said(SessionMode::ForkOfMain { transcript: copy }, "and again").await;
    assert!(api.last().mentions("what was the word"), "a fork's own transcript can be forked: {again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_gone_is_named() {
    let api = MessagesApi::script([]);
    let fixture = Fixture::new(&client::real(), api.url());
    for session in [
        SessionMode::Main(Some(SessionId("11111111-2222-4333-8444-555555555555".into()))),
        SessionMode::ForkOfMain { transcript: fixture.run_dir().join("gone.jsonl") },
    ] {
        let mut request = fixture.request(&Arc::new(Host::new(|_| HookReply::Allow)), "hello", &[]);
        request.session = session.clone();
        let report = fixture.run(request).await;
        let AttemptEnd::Failed(failure) = report.end else { panic!("{report:?}") };
        assert_eq!(failure.class, FailureClass::MainSessionMissing, "{session:?}: {failure:?}");
        assert!(api.requests().is_empty());
    }
}

/// A client that shows more tools than the policy allows is ended before it asks the model anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_surplus_tool_ends_the_run() {
    let api = MessagesApi::script([Reply::bash("touch ran")]);
    let folder = tempfile::tempdir().unwrap();
    let more =
        client::script(folder.path(), &format!("exec {} \"$@\" --tools Bash,Read,Task", client::real().display()));
    let fixture = Fixture::new(&more, api.url());
    let host = Arc::new(Host::new(|_| HookReply::Allow));
    let report = fixture.run(fixture.request(&host, "do it", &["Bash"])).await;
    let AttemptEnd::Failed(failure) = report.end else { panic!("{report:?}") };
    assert_eq!(failure.class, FailureClass::SurfaceMismatch, "{failure:?}");
    assert!(failure.message.contains("`Task`, `Read`") || failure.message.contains("`Read`, `Task`"), "{failure:?}");
    assert!(!fixture.work().join("ran").exists());
    assert!(host.asked_tools().is_empty());
}

/// A client that does not support our way to name our server would run jobs that cannot send messages.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_our_tools_runs_nothing() {
    let api = MessagesApi::script([]);
    let folder = tempfile::tempdir().unwrap();
    let script = format!("sed -u 's/\"sdkMcpServers\"/\"unknown\"/' | {} \"$@\"", client::real().display());
    let older = client::script(folder.path(), &script);
    let fixture = Fixture::new(&older, api.url());
    let host = Arc::new(Host::new(|_| HookReply::Allow));
    let mut request = fixture.request(&host, "do it", &["Bash"]);
    request.mcp_tools = vec!["ping_user".into()];
    let AttemptEnd::Failed(failure) = fixture.run(request).await.end else { panic!("it ran") };
    assert_eq!(failure.class, FailureClass::SurfaceMismatch, "{failure:?}");
    assert!(failure.message.contains("none of our tools"), "{failure:?}");
}

/// The hook also decides in the client's `default` mode, which the main session uses.
#[tokio::test(flavor = "multi_thread")]
async fn the_main_session_asks_the_host_too() {
    let api = MessagesApi::script([
        Reply::bash("echo 1 > allowed.txt"),
        Reply::bash("cat denied.txt"),
        Reply::call("Write", json!({"file_path": "/tmp/ollim-denied", "content": "x"})),
        Reply::say("ok"),
    ]);
    let fixture = Fixture::new(&client::real(), api.url());
    let host =
        Arc::new(Host::new(
            |call| if call.input.to_string().contains("denied") { HookReply::Deny } else { HookReply::Allow },
        ));
    let mut request = fixture.request(&host, "do it", &["Bash", "Write"]);
    request.session = SessionMode::Main(None);
    let report = fixture.run(request).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    assert!(fixture.work().join("allowed.txt").exists());
    let results = api.last().results();
    assert!(results[1].is_error && results[1].text.contains("Deny by the test"), "{results:?}");
    assert!(results[2].is_error && !std::path::Path::new("/tmp/ollim-denied").exists(), "{results:?}");
    assert_eq!(host.asked_tools(), ["Bash", "Bash", "Write"]);
}

#[tokio::test]
async fn a_client_is_found_and_says_its_version() {
    let real = client::real();
    let path = [std::path::PathBuf::from("/no/such"), real.parent().unwrap().to_owned()];
    let name = real.file_name().unwrap().to_str().unwrap();
    let home = real.parent().unwrap().parent().unwrap();
    assert_eq!(find(name, &path, home).unwrap(), real);
    assert_eq!(find(real.to_str().unwrap(), &[], home).unwrap(), real);
    let from_home = format!("~/{}", real.strip_prefix(home).unwrap().display());
    assert_eq!(find(&from_home, &[], home).unwrap(), real);
    assert!(find("no-such-client", &path, home).is_err());
    assert!(find("/etc/passwd", &path, home).unwrap_err().to_string().contains("cannot be executed"));
    let mut fixture = Fixture::new(&real, "http://127.0.0.1:9");
    assert!(fixture.claude.version().await.unwrap().starts_with("2."), "{:?}", fixture.claude.version().await);
    fixture.claude.command = "/no/such/claude".into();
    let failure = fixture.claude.version().await.unwrap_err();
    assert!(failure.message.contains("npm install -g"), "{failure:?}");
}

/// The host decides a subagent's calls too, with its type. A subagent has no tools beyond those of the main agent.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_is_held_as_its_caller_is() {
    let api = MessagesApi::answering(|request| match (!request.mentions("[reminder-bg:test]"), request.answers()) {
        (false, 0) => Reply::call(
            "Agent",
            json!({"description": "help", "prompt": "be quick, helper", "subagent_type": "general-purpose"}),
        ),
        (true, 0) | (false, 1) => Reply::bash("echo ran > denied.txt"),
        _ => Reply::say("done"),
    });
    let fixture = Fixture::new(&client::real(), api.url());
    let host = Arc::new(Host::new(|call| if call.tool == "Bash" { HookReply::Deny } else { HookReply::Allow }));
    let report = fixture.run(fixture.request(&host, "do it", &["Agent", "Bash"])).await;
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let asked: Vec<(String, Option<String>)> =
        host.asked.lock().unwrap().iter().map(|call| (call.tool.clone(), call.agent_type.clone())).collect();
    let (agent, bash) = ("Agent".to_string(), "Bash".to_string());
    assert_eq!(asked, [(agent, None), (bash.clone(), Some("general-purpose".into())), (bash, None)]);
    assert!(!fixture.work().join("denied.txt").exists());
}
