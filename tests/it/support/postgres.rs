//! A real PostgreSQL server in its own folder, on a socket there.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server that ends when the value is dropped.
pub struct Postgres {
    folder: PathBuf,
    /// Processes that end the server and remove its folder when their standard input closes, however this process ends.
    keepers: Vec<Child>,
    /// The server's settings.
    settings: Vec<&'static str>,
}

impl Postgres {
    /// Starts a server with an empty database.
    ///
    /// Creating a cluster takes a second, so one is created and copied. No test needs durability across a machine crash.
    pub fn start() -> Self {
        Self::start_with(&["fsync=off", "full_page_writes=off"])
    }

    /// Starts a server with other settings than the tests' usual ones.
    pub fn start_with(settings: &[&'static str]) -> Self {
        Self::start_by(settings, as_server_user(program("postgres")))
    }

    /// Starts a server by a command that gets the server's arguments. The server trusts every connection.
    pub fn start_by(settings: &[&'static str], server: Command) -> Self {
        let folder = folder().keep();
        let data = folder.join("data");
        run(Command::new("cp").arg("-a").arg(template()).arg(&data));
        fs::OpenOptions::new()
            .append(true)
            .open(data.join("pg_hba.conf"))
            .unwrap()
            .write_all(b"host all all all trust\n")
            .unwrap();
        let server = Self { keepers: vec![serve(&folder, settings, &server)], folder, settings: settings.to_vec() };
        server.wait();
        server
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        self.url_of("bot", "postgres")
    }

    /// Sets a command's environment so that it finds this server and its programs, as an administrator's would.
    pub fn administer(&self, command: &mut Command) {
        let own = program("psql").parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&path))).unwrap();
        command.env("PATH", path).env("PGHOST", &self.folder).env("PGUSER", "bot").env("PGDATABASE", "postgres");
    }

    /// Returns the URL of one of its databases for a role.
    pub fn url_of(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@/{database}?host={}", self.folder.display())
    }

    /// Executes statements with `psql` and returns its output.
    pub fn psql(&self, sql: &str) -> String {
        let mut psql = Command::new(program("psql"));
        psql.args(["-h".into(), self.folder.as_os_str().to_owned()]);
        psql.args(["-U", "bot", "-d", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        let done = psql.output().unwrap();
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    }

    /// Starts a replica. If `waits`, this server commits nothing that the replica does not have.
    #[allow(dead_code, reason = "the tests of hosts need it")]
    pub fn replica(&self, waits: bool) -> Self {
        let folder = folder().keep();
        let mut copy = as_server_user(program("pg_basebackup"));
        let from = format!("host={} user=bot application_name=replica", self.folder.display());
        run(copy
            .args(["-R", "-X", "stream", "--no-sync", "--checkpoint=fast", "-d", &from, "-D"])
            .arg(folder.join("data")));
        let replica = Self {
            keepers: vec![serve(&folder, &self.settings, &as_server_user(program("postgres")))],
            folder,
            settings: self.settings.clone(),
        };
        replica.wait();
        let state = if waits { "sync" } else { "async" };
        if waits {
            self.psql("ALTER SYSTEM SET synchronous_standby_names = 'replica'");
            self.psql("SELECT pg_reload_conf()");
        }
        self.until(&format!("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = '{state}'"));
        replica
    }

    /// Disconnects a replica from the server that it follows.
    #[allow(dead_code, reason = "the tests of hosts need it")]
    pub fn stop_following(&self) {
        self.psql("ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'");
        self.psql("SELECT pg_reload_conf()");
        self.until("SELECT count(*) = 0 FROM pg_stat_wal_receiver");
    }

    /// Promotes a replica to an independent server.
    #[allow(dead_code, reason = "the tests of hosts need it")]
    pub fn promote(&self) {
        self.psql("SELECT pg_promote()");
        self.until("SELECT NOT pg_is_in_recovery()");
    }

    /// Returns a URL of both servers that reaches the one that accepts writes.
    #[allow(dead_code, reason = "the tests of hosts need it")]
    pub fn url_with(&self, other: &Self) -> String {
        let [one, other] = [self, other].map(|server| server.folder.to_str().unwrap().replace('/', "%2F"));
        format!("postgres://bot@{one},{other}/postgres?target_session_attrs=read-write")
    }

    fn until(&self, sql: &str) {
        for _ in 0..600 {
            if self.psql(sql) == "t" {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("never: {sql}");
    }

    /// Kills the server at once, as a power cut would.
    pub fn crash(&mut self) {
        run(Command::new("kill").arg("-KILL").arg(self.pid()));
        // Its child processes end when they notice that.
        while self.is_ready() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server as `pg_ctl stop -m immediate` does.
    #[allow(dead_code, reason = "the kill test needs it")]
    pub fn stop_at_once(&mut self) {
        self.stop_by("QUIT");
    }

    /// Stops the server by a signal, and waits until it has ended.
    pub fn stop_by(&mut self, signal: &str) {
        let file = self.folder.join("data/postmaster.pid");
        run(Command::new("kill").arg(format!("-{signal}")).arg(self.pid()));
        while file.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Restarts the server after [`Self::crash`] or [`Self::stop_at_once`].
    pub fn start_again(&mut self) {
        // Only a crash leaves this file.
        let _gone = fs::remove_file(self.folder.join("data/postmaster.pid"));
        self.keepers.push(serve(&self.folder, &self.settings, &as_server_user(program("postgres"))));
        self.wait();
    }

    /// Stops (`STOP`) or continues (`CONT`) the server and all of its processes.
    pub fn signal(&self, signal: &str) {
        let pid = self.pid();
        // It has a child process for each connection.
        run(Command::new("pkill").arg(format!("-{signal}")).args(["-P", &pid]));
        run(Command::new("kill").arg(format!("-{signal}")).arg(pid));
    }

    /// Returns the id of the server's first process.
    pub fn pid(&self) -> String {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().to_owned()
    }

    fn is_ready(&self) -> bool {
        let mut ready = Command::new(program("pg_isready"));
        ready.arg("-q").arg("-h").arg(&self.folder).args(["-U", "bot"]);
        ready.status().unwrap().success()
    }

    fn wait(&self) {
        for _ in 0..600 {
            if self.is_ready() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{}", fs::read_to_string(self.folder.join("log")).unwrap_or_default());
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for keeper in &mut self.keepers {
            drop(keeper.stdin.take());
        }
        for keeper in &mut self.keepers {
            let _ended = keeper.wait();
        }
    }
}

/// Starts a server under a keeper.
fn serve(folder: &Path, settings: &[&str], server: &Command) -> Child {
    // A killed server leaks a shared memory segment, and a machine has only a limited number of them.
    const KEEP: &str = r#"folder=$1; shift; "$@" & pid=$!; read -r _; kill -CONT $pid; kill -QUIT $pid
        (sleep 10; kill -KILL $pid) & late=$!; wait $pid; kill $late; rm -rf "$folder""#;
    let log = fs::File::create(folder.join("log")).unwrap();
    let mut keeper = Command::new("bash");
    keeper.args(["-c", KEEP, "keeper"]).arg(folder).arg(server.get_program()).args(server.get_args());
    keeper.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    // File-backed shared memory lies in the server's folder and is removed with it.
    let own = ["listen_addresses=", "shared_buffers=16MB", "max_connections=200", "dynamic_shared_memory_type=mmap"];
    for setting in own.iter().chain(settings) {
        keeper.args(["-c", setting]);
    }
    let (stdout, stderr) = (log.try_clone().unwrap(), log);
    // A signal to the test's process group does not reach it.
    keeper.process_group(0).current_dir("/tmp").stdin(Stdio::piped()).stdout(stdout).stderr(stderr).spawn().unwrap()
}

/// Creates a folder that belongs to the server's user and that this user can access.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
    if let Some(user) = server_user() {
        run(Command::new("chown").arg(user.to_string()).arg(folder.path()));
    }
    folder
}

/// Returns an unused cluster to copy.
fn template() -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/postgres");
    if kept.join("PG_VERSION").exists() {
        return kept;
    }
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    // A single rename publishes the complete cluster.
    let fresh = folder();
    let data = fresh.path().join("data");
    let mut initdb = as_server_user(program("initdb"));
    initdb.args(["--no-sync", "--auth=trust", "--username=bot", "--encoding=UTF8", "--locale=C.UTF-8", "-D"]);
    run(initdb.arg(&data));
    let copy = kept.with_extension(fresh.path().file_name().unwrap());
    run(Command::new("cp").arg("-a").arg(&data).arg(&copy));
    if fs::rename(&copy, &kept).is_err() {
        // Another test has published one first.
        fs::remove_dir_all(&copy).unwrap();
    }
    kept
}

/// Returns the newest installed PostgreSQL program of this name.
pub fn program(name: &str) -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(".postgres/usr/lib/postgresql");
    let mut folders: Vec<PathBuf> = [kept, PathBuf::from("/usr/lib/postgresql")]
        .iter()
        .filter_map(|all| fs::read_dir(all).ok())
        .flatten()
        .map(|version| version.unwrap().path().join("bin"))
        .collect();
    folders.sort();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let found = folders.iter().rev().map(|folder| folder.join(name)).find(|program| program.exists());
    found.unwrap_or_else(|| panic!("{name} is not installed; `./scripts/postgres` installs PostgreSQL for the tests"))
}

/// Returns the user that the server runs as if the tests run as root, since PostgreSQL refuses to run as root.
fn server_user() -> Option<u32> {
    let own = fs::metadata("/proc/self").unwrap().uid();
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let id = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        line.split(':').nth(2)?.parse().ok()
    };
    (own == 0).then(|| id("postgres").or_else(|| id("nobody")).unwrap())
}

pub fn as_server_user(program: PathBuf) -> Command {
    let Some(user) = server_user() else { return Command::new(program) };
    // Shared memory that it leaves behind ends with this namespace.
    let mut command = Command::new("unshare");
    command.args(["--ipc", "setpriv"]);
    command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
    // It must not start in a folder that it cannot access.
    command.arg(program).current_dir("/tmp");
    command
}

fn run(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
