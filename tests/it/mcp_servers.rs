//! MCP servers of the person's own: real ones from npm and PyPI, and a misbehaving one.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::wait;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the program of a server, as its settings name it.
fn npm(name: &str) -> String {
    format!("{ROOT}/.mcp-servers/npm/node_modules/.bin/mcp-server-{name}")
}

fn pypi(name: &str) -> String {
    format!("{ROOT}/.mcp-servers/python/bin/mcp-server-{name}")
}

/// Returns settings with the odd server. `more`: further settings of it.
fn odd(more: &str) -> String {
    format!("mcp_servers:\n  odd: {{ command: [python3, -B, {ROOT}/tests/mcp-servers/odd.py], timeout: 3s{more} }}\n")
}

/// Returns the answer of the odd server's tool to the person.
#[track_caller]
fn call(bot: &TestBot, tool: &str, text: &str) -> String {
    let said = bot.run(["mcp", "call", "odd", tool, &json!({ "text": text }).to_string()]);
    format!("{}{}", said.stdout, said.stderr).trim_end().to_owned()
}

/// Returns the results of a run's calls, in order.
fn results(api: &MessagesApi) -> Vec<String> {
    api.last().results().iter().map(|result| result.text.clone()).collect()
}

#[test]
fn a_job_has_exactly_the_tools_of_real_servers_that_it_is_granted() {
    let bot_folder = TestBot::new();
    let folder = bot_folder.path("elsewhere");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("note.txt"), "buy milk").unwrap();
    let folder = folder.display().to_string();
    let note = format!("{folder}/note.txt");
    let api = MessagesApi::script([
        Reply::call("mcp__files__read_text_file", json!({ "path": note })),
        Reply::call("mcp__files__write_file", json!({ "path": note, "content": "gone" })),
        Reply::call(
            "mcp__time__convert_time",
            json!({ "source_timezone": "Europe/Vienna", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
        ),
        Reply::say("Done."),
    ]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write(
        "config.yaml",
        &format!(
            "timezone: UTC\nagent_client: claude\nmcp_servers:\n  files: {{ command: [{}, '{folder}'], writes: ['{folder}'], network: false }}\n  time: {{ command: [{}] }}\n",
            npm("filesystem"),
            pypi("time"),
        ),
    );
    let fields = "background: true\nallowed_tools: [mcp__files__read_text_file, mcp__time]\n";
    bot.write("reminders/job.md", &reminder(now(), fields, "Look at the note."));
    let service = bot.start();
    let run = service.until_ended("job", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let mut shown = api.requests()[0].tools();
    shown.sort();
    let servers: Vec<&String> = shown.iter().filter(|tool| tool.starts_with("mcp__")).collect();
    assert_eq!(servers, ["mcp__files__read_text_file", "mcp__time__convert_time", "mcp__time__get_current_time"]);
    let results = results(&api);
    assert!(results[0].contains("buy milk"), "{results:?}");
    assert!(results[1].contains("write_file"), "{results:?}");
    assert!(results[2].contains("T20:00:00+09:00") || results[2].contains("T19:00:00+09:00"), "{results:?}");
    assert_eq!(fs::read_to_string(&note).unwrap(), "buy milk");
    let shown = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
    let calls: Vec<&Value> =
        shown["events"].as_array().unwrap().iter().filter(|event| event["event"] == "tool_decided").collect();
    assert!(calls.len() >= 2, "{shown:#}");
    assert!(bot.ok(["mcp", "tools", "time"]).contains("mcp__time__get_current_time"));
    let listed = bot.json(["mcp"]);
    assert_eq!((&listed[0]["name"], &listed[0]["starts"]), (&json!("files"), &json!(1)), "{listed:#}");
    service.stop();
}

#[test]
fn a_server_is_held_by_a_sandbox_of_its_own_and_has_its_own_secrets_only() {
    let bot = TestBot::new();
    let inside = bot.path("inside");
    fs::create_dir_all(&inside).unwrap();
    bot.write("config.yaml", &(odd(&format!(", network: false, env: [ODD_TOKEN], reads: ['{}']", inside.display()))));
    bot.secrets("ODD_TOKEN=o-1-long\nOTHER_TOKEN=o-2\n");
    fs::write(inside.join("a"), "alpha").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let service = bot.start();
    let environment = call(&bot, "environment", "");
    assert!(environment.contains("ODD_TOKEN=o-1-long") && !environment.contains("o-2"), "{environment}");
    assert!(!environment.contains("OLLIM_"), "{environment}");
    assert_eq!(call(&bot, "read", &inside.join("a").display().to_string()), "alpha");
    for (tool, path) in [
        ("read", bot.path("config.yaml")),
        ("read", bot.path(".env")),
        ("read", bot.path("state/journal.db")),
        ("write", bot.path("work/planted")),
        ("write", bot.path("routines/planted.md")),
        ("write", inside.join("planted")),
        ("write", "/tmp/planted-by-a-server".into()),
    ] {
        let said = call(&bot, tool, &path.display().to_string());
        assert!(said.starts_with("failed: "), "{tool} {}: {said}", path.display());
    }
    let port = listener.local_addr().unwrap().port();
    let said = call(&bot, "connect", &format!("127.0.0.1 {port}"));
    assert!(said.starts_with("failed: "), "{said}");
    // Agents receive its last words, without the secrets that it was given.
    let died = call(&bot, "die", "");
    assert!(died.contains("out of luck with ***"), "{died}");
    let own = bot.path("state/mcp/odd/kept");
    assert_eq!(call(&bot, "write", &own.display().to_string()), "done");
    service.stop();
}

#[test]
fn a_server_that_hangs_dies_floods_or_changes_harms_nothing_else() {
    let bot = TestBot::new();
    bot.write("config.yaml", &format!("{}  time: {{ command: [{}] }}\n", odd(""), pypi("time")));
    let service = bot.start();
    let process = |said: &str| said.rsplit(' ').next().unwrap().to_owned();
    let first = call(&bot, "say", "hello");
    assert!(first.starts_with("hello 1 "), "{first}");
    let second = call(&bot, "say", "again");
    assert_eq!(process(&second), process(&first), "one process for all");

    let died = call(&bot, "die", "");
    assert!(died.contains("`die` was cut off: out of luck"), "{died}");
    let third = call(&bot, "say", "back");
    assert!(third.starts_with("back 1 ") && process(&third) != process(&first), "{third}");

    // One missing answer costs one call. The service ends a server that does not even answer a ping.
    let deaf = call(&bot, "deaf", "");
    assert!(deaf.contains("did not answer within 3 s"), "{deaf}");
    assert_eq!(process(&call(&bot, "say", "still")), process(&third));
    let hung = call(&bot, "hang", "");
    assert!(hung.contains("did not answer within 3 s"), "{hung}");
    let fourth = call(&bot, "say", "anew");
    assert!(fourth.starts_with("anew 1 "), "{fourth}");

    assert_eq!(call(&bot, "flood", ""), "flooded");
    let huge = call(&bot, "huge", "");
    assert!(huge.contains("more than the 1048576 that are handed on"), "{huge}");
    let failed = call(&bot, "fail", "");
    assert!(failed.contains("`fail` failed: on purpose"), "{failed}");
    for flood in ["flood_unasked", "ask_unasked"] {
        assert_eq!(call(&bot, flood, ""), "begun");
        service.until("it is not read any more", || {
            let servers = bot.json(["mcp"]);
            let why = servers[0]["wrong"].as_str();
            why.is_some_and(|why| why.contains("more than anybody had asked for")).then_some(())
        });
    }
    assert_eq!(call(&bot, "change", ""), "changed");
    let offers = |tool: &str| bot.ok(["mcp", "tools", "odd"]).contains(&format!("mcp__odd__{tool} "));
    service.until("its list is read again", || (offers("added") && !offers("read")).then_some(()));
    assert_eq!(call(&bot, "added", ""), "new");

    let time = bot.run(["mcp", "call", "time", "get_current_time", r#"{"timezone": "UTC"}"#]);
    assert!(time.code == 0 && time.stdout.contains("UTC"), "{}{}", time.stdout, time.stderr);
    service.stop();
}

#[test]
fn a_job_whose_server_is_not_there_fails_and_the_main_session_goes_on() {
    let api = MessagesApi::answering(|_| Reply::say("Here I am."));
    let bot = TestBot::with_client(&client::real(), api.url());
    let settings = odd("").replace("odd.py]", "odd.py, --dead]");
    bot.write("config.yaml", &format!("timezone: UTC\nagent_client: claude\nmain_tools: [Read, mcp__odd]\n{settings}"));
    let fields = "background: true\nretry: 0\nallowed_tools: [mcp__odd__say]\n";
    bot.write("reminders/job.md", &reminder(now(), fields, "Say it."));
    let service = bot.start();
    let run = service.until_ended("job", 1).remove(0);
    assert_eq!(run["outcome"], "failed", "{run:#}");
    let why = run["error"].as_str().unwrap();
    assert!(why.contains("`odd` does not start") && why.contains("no configuration found"), "{why}");
    assert!(api.all().is_empty(), "nobody was asked");
    let said = bot.ok(["chat", "Are you there?"]);
    assert!(said.contains("Here I am."), "{said}");
    let listed = bot.ok(["mcp"]);
    assert!(listed.contains("no configuration found"), "{listed}");
    service.stop();
}

/// A server that was updated, or a name that was misspelled: the job would go on without the tool that it is about.
#[test]
fn a_job_that_names_a_tool_which_its_server_lacks_fails_before_a_model_is_asked() {
    let api = MessagesApi::answering(|_| Reply::say("Done."));
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", &format!("timezone: UTC\nagent_client: claude\n{}", odd("")));
    let job = |id: &str, tools: &str| {
        let fields = format!("background: true\nretry: 0\nallowed_tools: [{tools}]\n");
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), &fields, "Say it."));
    };
    job("lacks", "mcp__odd__sya, Read");
    job("asks", "Read]\nask_tools: [mcp__odd__sya");
    let service = bot.start();
    for id in ["lacks", "asks"] {
        let run = service.until_ended(id, 1).remove(0);
        assert_eq!(run["outcome"], "failed", "{run:#}");
        let why = run["error"].as_str().unwrap();
        let expected = "`odd` has no tool `sya`, which the job's rules name; it offers say, environment";
        assert!(why.contains(expected), "{why}");
    }
    assert!(api.all().is_empty(), "nobody was asked");
    job("star", "'mcp__odd__sa*'");
    assert_eq!(service.until_ended("star", 1)[0]["outcome"], "completed");
    service.stop();
}

/// The client hides most tools of a server with the name `ide`.
#[test]
fn a_job_that_names_a_tool_which_the_client_hides_fails() {
    let api = MessagesApi::answering(|_| Reply::say("Done."));
    let bot = TestBot::with_client(&client::real(), api.url());
    let server = odd("").replace("odd:", "ide:").replace("odd.py", "odd.py, getDiagnostics");
    bot.write("config.yaml", &format!("timezone: UTC\nagent_client: claude\n{server}"));
    let job = |id: &str, tools: &str| {
        let fields = format!("background: true\nretry: 0\nallowed_tools: [{tools}]\n");
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), &fields, "Say it."));
    };
    job("hidden", "mcp__ide__getDiagnostics, mcp__ide__say");
    let service = bot.start();
    let run = service.until_ended("hidden", 1).remove(0);
    assert_eq!(run["outcome"], "failed", "{run:#}");
    let why = run["error"].as_str().unwrap();
    assert!(why.contains("does not show the tool `mcp__ide__say`, which the job's rules name"), "{why}");
    job("shown", "mcp__ide__getDiagnostics, 'mcp__ide__sa*'");
    assert_eq!(service.until_ended("shown", 1)[0]["outcome"], "completed");
    service.stop();
}

/// A server's changes to a folder that its caller watches are the caller's own, and a row of them is cut.
#[test]
fn a_job_whose_server_writes_where_it_watches_is_named_and_cut() {
    let bot_folder = TestBot::new();
    let folder = bot_folder.path("shared");
    fs::create_dir_all(&folder).unwrap();
    let folder = folder.display().to_string();
    let file = format!("{folder}/news");
    let api = MessagesApi::answering(move |request| match request.results().is_empty() {
        true => Reply::call("mcp__odd__write", json!({ "text": file })),
        false => Reply::say("Done."),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    let settings = odd(&format!(", writes: ['{folder}']"));
    bot.write("config.yaml", &format!("timezone: UTC\nagent_client: claude\n{settings}"));
    let fields = format!("watch: {folder}\nbackground: true\nallowed_tools: ['Read(/{folder}/**)', mcp__odd__write]\n");
    bot.write("routines/job.md", &format!("---\n{fields}---\nWrite.\n"));
    let named = "it may write into the folder that it watches, and so set itself off: by `mcp__odd`";
    let checked = bot.run(["check"]).stdout;
    assert!(checked.contains(named), "{checked}");
    let service = bot.start();
    service.until("its first run", || {
        fs::write(format!("{folder}/first"), "x").unwrap();
        (!bot.runs("job").is_empty()).then_some(())
    });
    service.until("it is cut", || {
        bot.run(["inbox"]).stdout.contains("was cut: it has set itself off 3 times in a row").then_some(())
    });
    service.stop();
}

#[test]
fn each_run_has_a_server_of_its_own_where_the_settings_say_so() {
    let api = MessagesApi::answering(|request| match request.results().first() {
        None => Reply::call("mcp__odd__say", json!({ "text": "hi" })),
        Some(_) => Reply::say("Done."),
    });
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", &format!("timezone: UTC\nagent_client: claude\n{}", odd(", per_run: true")));
    let fields = "background: true\nallowed_tools: [mcp__odd__say]\n";
    bot.write("routines/job.md", &format!("---\ncron: '0 0 29 2 *'\n{fields}---\nSay hi.\n"));
    let service = bot.start();
    let said: Vec<String> = (0..2)
        .map(|_| {
            let run = service.fire("job");
            assert_eq!(run["outcome"], "completed", "{run:#}");
            results(&api)[0].clone()
        })
        .collect();
    assert!(said.iter().all(|said| said.starts_with("hi 1 ")) && said[0] != said[1], "{said:?}");
    service.stop();
}

/// A server over HTTP.
struct McpHttpServer(Child, u16);

impl McpHttpServer {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(npm("everything"));
        command.arg("streamableHttp").env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self(command.spawn().unwrap(), port);
        let address = ("127.0.0.1", port);
        wait::until("it listens", || std::net::TcpStream::connect(address).ok().map(drop), String::new);
        server
    }
}

impl Drop for McpHttpServer {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

#[test]
fn a_server_elsewhere_is_reached_by_http_and_reached_again() {
    let server = McpHttpServer::start();
    let bot = TestBot::new();
    bot.write(
        "config.yaml",
        &format!("mcp_servers: {{ all: {{ url: 'http://127.0.0.1:{}/mcp', timeout: 10s }} }}\n", server.1),
    );
    let service = bot.start();
    let echo = || bot.run(["mcp", "call", "all", "echo", r#"{"message": "hello"}"#]);
    let said = echo();
    assert!(said.code == 0 && said.stdout.contains("Echo: hello"), "{}{}", said.stdout, said.stderr);
    drop(server);
    let said = echo();
    assert!(said.code != 0 && said.stderr.contains("error: "), "{}{}", said.stdout, said.stderr);
    service.stop();
}

/// A remote server asks without end, and sends what is no message; its answers come to no end. Each costs one call at most.
#[test]
fn a_server_elsewhere_that_misbehaves_harms_nothing_else() {
    let script = format!("{ROOT}/tests/mcp-servers/odd_http.py");
    let mut process = Command::new("python3").args(["-B", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let port = port.trim().parse().unwrap();
    let _server = McpHttpServer(process, port);
    let bot = TestBot::new();
    bot.write(
        "config.yaml",
        &format!("mcp_servers: {{ odd: {{ url: 'http://127.0.0.1:{port}/mcp', timeout: 3s }} }}\n"),
    );
    let service = bot.start();
    assert_eq!(call(&bot, "gets", ""), "[]", "nothing is received that nobody asked for");
    let resumed = call(&bot, "resume", "");
    assert!(resumed.contains("`resume` "), "{resumed}");
    let gets: Vec<Option<String>> = serde_json::from_str(&call(&bot, "gets", "")).unwrap();
    assert!(gets.iter().all(Option::is_some), "{gets:?}");
    // The server asks for a pause of 0 ms.
    assert!((1..=10).contains(&gets.len()), "{gets:?}");
    for tool in ["comment", "ask"] {
        let said = call(&bot, tool, "");
        assert!(said.contains(&format!("`{tool}` ")), "{said}");
        assert!(call(&bot, "gets", "").starts_with('['), "{tool}");
    }
    service.stop();
}

/// Answers every request with this page, once.
fn page(text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _read = stream.read(&mut request).unwrap();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close";
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    });
    port
}

#[test]
fn a_server_with_network_reaches_it_and_one_without_does_not() {
    let bot = TestBot::new();
    let fetch = pypi("fetch");
    let server =
        |more: &str| format!("{{ command: [{fetch}, --ignore-robots-txt, --allow-private-ips], timeout: 30s{more} }}");
    bot.write("config.yaml", &format!("mcp_servers:\n  web: {}\n  cut: {}\n", server(""), server(", network: false")));
    let service = bot.start();
    let fetched = |server: &str| {
        let url = format!("http://127.0.0.1:{}/", page("The tide is high at noon."));
        let said = bot.run(["mcp", "call", server, "fetch", &json!({ "url": url }).to_string()]);
        said.stdout + &said.stderr
    };
    let web = fetched("web");
    assert!(web.contains("The tide is high at noon."), "{web}");
    let cut = fetched("cut");
    assert!(!cut.contains("tide"), "{cut}");
    service.stop();
}

#[test]
fn settings_that_cannot_work_are_said_and_rules_about_no_server_too() {
    let bot = TestBot::new();
    for (settings, expect) in [
        ("mcp_servers: [a]", "`mcp_servers` must name servers"),
        ("mcp_servers: { a: {} }", "`mcp_servers.a` must have either a `command` or a `url`"),
        ("mcp_servers: { a: { command: [x], url: 'https://x' } }", "either a `command` or a `url`"),
        ("mcp_servers: { discord: { command: [x] } }", "rules would take it for the bot's own tools"),
        ("mcp_servers: { a__b: { command: [x] } }", "cannot be the name of an MCP server"),
        ("mcp_servers: { a: { command: [x], colour: red } }", "unknown setting `colour`"),
        ("mcp_servers: { a: { url: 'x' } }", "`mcp_servers.a.url` must be an address"),
        ("mcp_servers: { a: { command: [x], env: [OLLIM_RUN_TOKEN] } }", "is ollim-bot's own"),
        ("mcp_servers: { a: { command: [x], reads: [notes] } }", "folders that begin with `/` or `~/`"),
    ] {
        bot.write("config.yaml", &format!("{settings}\n"));
        let said = bot.run(["config"]);
        assert!(said.code != 0 && said.stderr.contains(expect), "{settings}: {}", said.stderr);
    }
    bot.write("config.yaml", &odd(""));
    for (rule, is_known) in [("mcp__odd__say", true), ("mcp__odd", true), ("mcp__ood__say", false), ("mcp__*", true)] {
        let fields = format!("background: true\nallowed_tools: ['{rule}']\n");
        bot.write("reminders/job.md", &reminder(now() + chrono::TimeDelta::hours(1), &fields, "x"));
        let said = bot.run(["check"]);
        let said = said.stdout + &said.stderr;
        assert_eq!(!said.contains("is about nothing"), is_known, "{rule}: {said}");
    }
    let said = bot.run(["mcp", "call", "odd", "say", "[]"]);
    assert!(said.code == 2 || said.code == 1, "{}", said.code);
    assert!(said.stderr.contains("no JSON object"), "{}", said.stderr);
}

/// The settings and jobs of docs/mcp.md pass the checks, and connect where a server of that form answers.
#[test]
fn the_recipes_are_in_order() {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/mcp.md");
    let document = std::fs::read_to_string(document).unwrap();
    let block = |text: &str, language: &str| -> Vec<String> {
        let fence = format!("```{language}\n");
        text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
    };
    let job = block(&document, "markdown").remove(0);
    let of_docs = block(&document, "yaml");
    assert_eq!(of_docs.len(), 5);
    let bot = TestBot::new();
    bot.write(".env", "CALENDAR_TOKEN=a\nHOME_ASSISTANT_TOKEN=b\nGOOGLE_OAUTH_CLIENT_ID=c\nGOOGLE_OAUTH_CLIENT_SECRET=d\nTODOIST_TOKEN=e\n");
    for (settings, name) in of_docs.iter().zip(["calendar", "notes", "google", "todoist", "home"]) {
        bot.write("config.yaml", settings);
        bot.write("routines/day.md", &job.replace("mcp__calendar__list_events", &format!("mcp__{name}")));
        let said = bot.run(["config"]);
        assert_eq!(said.code, 0, "{settings}: {}", said.stderr);
        let checked = bot.json(["check"]);
        // Some of the programs may be missing on this machine.
        let problems = checked["problems"].as_array().unwrap().iter();
        let others: Vec<&Value> = problems.filter(|problem| problem["field"] != "mcp_servers").collect();
        assert_eq!((&checked["definitions"], others.len()), (&json!(1), 0), "{settings}{checked:#}");
        let servers = bot.json(["mcp"]);
        assert!(servers.to_string().contains(name), "{servers:#}");
    }
}

#[test]
fn a_server_elsewhere_is_given_its_token() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
            head.push(byte[0]);
        }
        stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        String::from_utf8(head).unwrap()
    });
    let bot = TestBot::new();
    bot.write(".env", "HOME_ASSISTANT_TOKEN=a-long-lived-token\n");
    let server = format!("{{ url: 'http://127.0.0.1:{port}/api/mcp', token_env: HOME_ASSISTANT_TOKEN, timeout: 10s }}");
    bot.write("config.yaml", &format!("mcp_servers: {{ home: {server} }}\n"));
    let service = bot.start();
    let said = bot.run(["mcp", "tools", "home"]);
    assert_ne!(said.code, 0, "{}", said.stdout);
    assert!(!said.stderr.contains("a-long-lived-token"), "{}", said.stderr);
    let head = asked.join().unwrap();
    assert!(
        head.starts_with("POST /api/mcp ") && head.contains("uthorization: Bearer a-long-lived-token\r\n"),
        "{head}"
    );
    service.stop();
}

/// A run keeps the list with which it began. The next run has the new list.
#[test]
fn a_server_that_changes_its_tools_changes_no_run_that_goes() {
    let api = MessagesApi::script([
        Reply::call("mcp__odd__change", json!({ "text": "" })),
        Reply::call("mcp__odd__say", json!({ "text": "still" })),
        Reply::call("mcp__odd__added", json!({ "text": "" })),
        Reply::say("Done."),
        Reply::say("Done again."),
    ]);
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", &format!("timezone: UTC\nagent_client: claude\n{}", odd("")));
    let fields = "background: true\nisolated: true\nallowed_tools: [mcp__odd]\n";
    bot.write("routines/job.md", &format!("---\ncron: '0 0 29 2 *'\n{fields}---\nChange it.\n"));
    let service = bot.start();
    let run = service.fire("job");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let results = results(&api);
    assert!(results[0] == "changed" && results[1].starts_with("still "), "{results:?}");
    assert_ne!(results[2], "new", "{results:?}");
    let has = |tools: &[String], name: &str| tools.iter().any(|tool| tool == name);
    for request in api.requests() {
        let tools = request.tools();
        assert!(has(&tools, "mcp__odd__read") && !has(&tools, "mcp__odd__added"), "{tools:?}");
    }
    let offers = |tool: &str| bot.ok(["mcp", "tools", "odd"]).contains(&format!("mcp__odd__{tool} "));
    service.until("its list is read again", || (offers("added") && !offers("read")).then_some(()));
    service.fire("job");
    let tools = api.last().tools();
    assert!(!has(&tools, "mcp__odd__read") && has(&tools, "mcp__odd__added"), "{tools:?}");
    service.stop();
}

#[test]
fn a_server_that_nobody_reaches_is_named_by_its_address() {
    let bot = TestBot::new();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    bot.write("config.yaml", &format!("mcp_servers: {{ far: {{ url: 'http://{nobody}/mcp' }} }}\n"));
    let service = bot.start();
    let told = bot.run(["mcp", "tools", "far"]);
    assert!(told.stderr.contains("`far` does not start: ") && told.stderr.contains(&nobody.to_string()), "{told:#?}");
    assert!(!told.stderr.contains("::"), "{told:#?}");
    service.stop();
}

#[test]
fn a_server_that_cannot_start_is_named_before_it_is_needed() {
    let bot = TestBot::new();
    let shims = bot.person().join(".pyenv/shims");
    fs::create_dir_all(&shims).unwrap();
    client::executable(&shims.join("served"), "#!/bin/sh\n");
    let settings = format!(
        "mcp_servers:\n  gone: {{ command: [no-such-program, -x] }}\n  bare: {{ command: [sh], env: [ODD_TOKEN] }}\n  shim: {{ command: [{}] }}\n",
        shims.join("served").display()
    );
    bot.write("config.yaml", &settings);
    let said = |command: &str| {
        let ran = bot.run([command]);
        ran.stdout + &ran.stderr
    };
    let gone = "cannot start: there is no program `no-such-program` on PATH";
    let bare = "needs `ODD_TOKEN`, which .env does not have";
    let shim = "starts another program, which its sandbox does not open";
    let (checked, diagnosed) = (said("check"), said("doctor"));
    for (name, what) in [("gone", gone), ("bare", bare), ("shim", shim)] {
        assert!(checked.contains(&format!("the MCP server `{name}` ")) && checked.contains(what), "{checked}");
        assert!(diagnosed.contains(&format!("`{name}` ")) && diagnosed.contains(what), "{diagnosed}");
    }
    assert!(checked.contains("config.yaml:2:3") && checked.contains("config.yaml:4:3"), "{checked}");
    // No job has needed them yet. With or without a service, they are known not to start.
    let wrong = |bot: &TestBot| {
        let servers = bot.json(["mcp"]);
        let mut wrong: Vec<String> =
            servers.as_array().unwrap().iter().map(|server| server["wrong"].to_string()).collect();
        wrong.sort();
        wrong.join("\n")
    };
    let without = wrong(&bot);
    assert!(without.contains(gone) && without.contains(bare) && without.contains(shim), "{without}");
    let service = bot.start();
    assert_eq!(wrong(&bot), without);
    service.stop();
    // Besides `PATH`, the service searches the folder of the person's own commands and their home.
    for program in [bot.home().join("bin/own"), bot.person().join("tools/served")] {
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        client::executable(&program, "#!/bin/sh\n");
    }
    // A shim outside the home may open the program that it starts.
    let elsewhere = tempfile::tempdir().unwrap();
    let shim = elsewhere.path().join("shims/served");
    fs::create_dir(shim.parent().unwrap()).unwrap();
    client::executable(&shim, "#!/bin/sh\n");
    bot.secrets("ODD_TOKEN=secret\n");
    let bare = "bare: { command: [sh], env: [ODD_TOKEN] }";
    bot.write(
        "config.yaml",
        &format!("mcp_servers:\n  {bare}\n  own: {{ command: [own] }}\n  served: {{ command: [~/tools/served] }}\n  shim: {{ command: [{}] }}\n", shim.display()),
    );
    let (checked, diagnosed) = (said("check"), said("doctor"));
    assert!(!checked.contains("MCP server"), "{checked}");
    assert!(!diagnosed.contains("needs `ODD_TOKEN`") && !diagnosed.contains("cannot start"), "{diagnosed}");
}

#[test]
fn a_server_that_is_not_there_is_for_the_person_to_name_rightly() {
    let bot = TestBot::new();
    let service = bot.start();
    for words in [&["mcp", "call", "other", "tool"][..], &["mcp", "tools", "other"]] {
        let refused = bot.run(words);
        let said = "error: there is no MCP server `other` in `mcp_servers`\nhint: `ollim-bot mcp list` shows those that there are\n";
        assert_eq!((refused.code, refused.stderr.as_str()), (1, said), "{words:?}");
    }
    service.stop();
}
