//! One data folder and the lives of the service on it.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use ollim_bot::clock::Clock;
use ollim_bot::failpoints::Step;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::chats::Chats;
use crate::deliveries::deliver;
use crate::jobs::{FOLLOWER, Job, Kind, ROUTINES, SECRET, WATCHER, WEBHOOK, follower, routine, watcher, webhook};
use crate::rng::Rng;
use crate::service_process::{STUCK, ServiceProcess, Setting};
use crate::{Tally, check, processes};

const MINUTE: i64 = 60_000;

/// A step that has not come by then does not come in this life: the next one goes on.
const COMES_WITHIN: Duration = Duration::from_secs(5);

/// A data folder, and what was given to the service in it.
pub struct World {
    folder: TempDir,
    pub setting: Setting,
    pub jobs: Vec<Job>,
    /// What the person has said by their phone: a token each.
    pub words: Vec<String>,
    /// What is outside of the program, and what the person has said there.
    pub chats: Chats,
    /// How many files were put into the folder that is watched.
    dropped: usize,
    /// What was delivered to the webhook: a key each.
    pub delivered: Vec<String>,
    rng: Rng,
    number: usize,
    /// How far the clock is ahead of the machine's, in milliseconds; it only grows.
    ahead: i64,
    pub lives: usize,
    /// What was in `state/` when the service had ended for good: before anybody opened the journal, who makes
    /// companions of its file.
    pub left_in_state: Vec<String>,
}

impl World {
    pub fn new(binary: &Path, number: usize, seed: u64) -> Self {
        let folder = TempDir::with_prefix("ollim-kill-").unwrap();
        let person = folder.path().canonicalize().unwrap();
        let setting = Setting {
            binary: binary.to_owned(),
            home: person.join("bot"),
            client: executable(&person.join("claude"), include_str!("client.sh")),
            person,
        };
        for name in ["routines", "reminders", "webhooks"] {
            fs::create_dir_all(setting.home.join(name)).unwrap();
        }
        let rng = Rng::new(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9));
        let world = Self {
            folder,
            setting,
            jobs: Vec::new(),
            words: Vec::new(),
            chats: Chats::start(),
            dropped: 0,
            delivered: Vec::new(),
            rng,
            number,
            ahead: 0,
            lives: 0,
            left_in_state: Vec::new(),
        };
        executable(&world.setting.person.join("bridge"), include_str!("bridge.sh"));
        let bridge = world.setting.person.join("bridge");
        let bridge = format!("{{ kind: command, command: ['{}'], keep: true, owner: 7 }}", bridge.display());
        let hooks = format!("webhooks: {}\n", world.hooks().display());
        world.write(
            "config.yaml",
            &format!("default_channel: console\nchannels:\n  phone: {bridge}\n{}{hooks}", world.chats.settings()),
        );
        // A file of `tempfile` is private.
        world.write(".env", &format!("SENDER={SECRET}\n{}", Chats::secrets()));
        world.write(&format!("webhooks/{WEBHOOK}.md"), &webhook());
        fs::create_dir_all(world.phone()).unwrap();
        for (id, kind, fields) in ROUTINES {
            world.write(&format!("routines/{id}.md"), &routine(id, kind, fields));
        }
        world.write(&format!("routines/{FOLLOWER}.md"), &follower());
        world.write(&format!("routines/{WATCHER}.md"), &watcher());
        fs::create_dir_all(world.drop()).unwrap();
        fs::create_dir_all(world.kept()).unwrap();
        world
    }

    /// Kills at each of the steps and at random moments, lets it come to rest, and checks everything.
    ///
    /// # Errors
    /// What is wrong, and where the folder was kept.
    pub fn live(mut self, steps: &[Step], tally: &Mutex<Tally>) -> Result<(), String> {
        let lived = self.until_rest(steps, tally).and_then(|()| {
            let wrong = check::everything(&self, &mut tally.lock().unwrap());
            if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
        });
        lived.map_err(|wrong| {
            let kept = self.folder.keep();
            format!("folder {} (kept in {}):\n{wrong}", self.number, kept.display())
        })
    }

    /// Kills at each of the steps and at random moments, and lets it come to rest.
    ///
    /// # Errors
    /// Why it does not.
    pub fn until_rest(&mut self, steps: &[Step], tally: &Mutex<Tally>) -> Result<(), String> {
        self.rounds(steps, tally)?;
        self.run_until_idle()
    }

    fn rounds(&mut self, steps: &[Step], tally: &Mutex<Tally>) -> Result<(), String> {
        // The journal is made but once.
        if self.rng.once_in(3) {
            self.killed_at(Step::JournalMade, 1, tally)?;
        } else {
            self.killed_somewhere(300, tally)?;
        }
        for step in steps {
            self.move_on();
            self.give(*step);
            match step {
                // Both the command and the service write files.
                Step::Staged | Step::Placed if self.rng.once_in(2) => self.killed_adding(*step, tally),
                Step::LeftoversEnded | Step::BeforeAgain | Step::AgainRecorded => {
                    self.killed_at(Step::StartRecorded, 1, tally)?;
                    self.killed_at(*step, 1, tally)?;
                }
                _ => {
                    let passage = if Kind::that_meets(*step).is_some() { self.rng.between(1, 2) } else { 1 };
                    self.killed_at(*step, passage, tally)?;
                }
            }
            self.killed_somewhere(1100, tally)?;
        }
        Ok(())
    }

    pub fn now(&self) -> DateTime<Utc> {
        Clock::system().now() + TimeDelta::milliseconds(self.ahead)
    }

    /// The next life begins shortly before a full minute: the next one, or one some minutes later.
    fn move_on(&mut self) {
        let before = i64::try_from(self.rng.between(0, 600)).unwrap();
        let skipped = if self.rng.once_in(5) { self.rng.between(1, 4) } else { 0 };
        let now = self.now().timestamp_millis();
        let next = (now / MINUTE + 1 + i64::try_from(skipped).unwrap()) * MINUTE - before;
        self.ahead += (next - now).max(0);
    }

    /// Gives the service something to do that makes it meet the step, and something else.
    fn give(&mut self, step: Step) {
        let other = Kind::any(&mut self.rng);
        let needed = Kind::that_meets(step).unwrap_or(Kind::Effect);
        for kind in [needed, needed, other] {
            let token = format!("w{}-{}", self.number, self.jobs.len());
            let job = Job { token, kind, there: true };
            let due = self.now() + TimeDelta::milliseconds(i64::try_from(self.rng.between(0, 500)).unwrap());
            self.write(&format!("reminders/{}.md", job.token), &job.text(due));
            self.jobs.push(job);
        }
        if (step == Step::StatusShown || self.rng.once_in(4)) && self.listens_to_discord() {
            self.chats.say(self.number);
        }
        if matches!(step, Step::BeforeWord | Step::WordRecorded) || self.rng.once_in(3) {
            self.say();
            self.say();
        }
        if step == Step::InputBegun {
            self.command();
        }
    }

    /// The person gives a command by their phone. It has no effect.
    fn command(&mut self) {
        self.send("/next", &format!("q{}n{}", self.number, self.jobs.len()));
    }

    /// The person sends a message from their phone.
    fn send(&self, text: &str, id: &str) {
        let line = format!("{}\n", serde_json::json!({ "said": text, "by": 7, "id": id }));
        let mut words = fs::OpenOptions::new().create(true).append(true).open(self.phone().join("in")).unwrap();
        words.write_all(line.as_bytes()).unwrap();
    }

    /// What was written on Discord before the service first listened there is nothing that it is told.
    fn listens_to_discord(&self) -> bool {
        let sql = "SELECT count(*) FROM hearing WHERE channel = 'discord' AND last IS NOT NULL";
        let count = |journal: Connection| journal.query_row(sql, [], |row| row.get::<_, i64>(0));
        self.journal().is_some_and(|journal| count(journal).unwrap_or(0) > 0)
    }

    /// The person says something, which is answered with its token.
    fn say(&mut self) {
        let token = format!("x{}y{}", self.number, self.words.len());
        self.send(&format!("kind=quiet token={token}."), &token);
        self.words.push(token);
    }

    /// The folder of the person's phone.
    pub fn phone(&self) -> PathBuf {
        self.setting.home.join("state/channels/phone")
    }

    /// Where webhooks are delivered to.
    fn hooks(&self) -> PathBuf {
        self.setting.person.join("hooks")
    }

    /// Delivers something new, and all of the last things again, until the life has ended.
    fn deliver(&mut self, life: &mut ServiceProcess) {
        self.delivered.push(format!("k{}-{}", self.number, self.delivered.len()));
        let last = self.delivered.len().saturating_sub(3);
        for _ in 0..100 {
            for key in &self.delivered[last..] {
                deliver(&self.hooks(), key);
            }
            if life.ended_within(Duration::from_millis(30)).is_some() {
                return;
            }
        }
    }

    /// Where lines and gates record that they ran.
    pub fn kept(&self) -> PathBuf {
        self.setting.home.join("work/kept")
    }

    /// The folder that is watched.
    fn drop(&self) -> PathBuf {
        self.setting.home.join("work/drop")
    }

    /// Puts files there, now and then, until the life has ended; so that the service is at watching when one comes.
    fn drop_files(&mut self, life: &mut ServiceProcess) {
        for _ in 0..2 {
            if life.ended_within(Duration::from_millis(600)).is_none() {
                self.dropped += 1;
                fs::write(self.drop().join(format!("d{}", self.dropped)), "x").unwrap();
                // A burst is over when it has been quiet for two seconds.
                life.ended_within(Duration::from_millis(2500));
            }
        }
    }

    /// Says yes to each run that asks whether it may begin, until the life has ended.
    fn say_yes(&self, life: &mut ServiceProcess) {
        for _ in 0..40 {
            if life.ended_within(Duration::from_millis(100)).is_some() {
                return;
            }
            let Some(journal) = self.journal() else { continue };
            let Ok(mut query) = journal.prepare("SELECT number FROM question WHERE start AND answer IS NULL") else {
                continue;
            };
            let open: Vec<i64> = query.query_map([], |row| row.get(0)).unwrap().map_while(Result::ok).collect();
            for number in open {
                let words = ["questions", "answer", &number.to_string(), "run"];
                // The service may be gone by now.
                let _answered = self.setting.command(&words, self.ahead, None).output();
            }
        }
    }

    fn start(&mut self, fail_at: Option<(Step, u64)>) -> ServiceProcess {
        let command = self.setting.command(&["run"], self.ahead, fail_at);
        self.lives += 1;
        let mut log = fs::OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        writeln!(log, "-- life {}, {fail_at:?}", self.lives).unwrap();
        ServiceProcess::start(command, &self.output_file(self.lives), &self.log())
    }

    /// What a life has shown.
    pub fn output_file(&self, life: usize) -> PathBuf {
        self.setting.person.join(format!("said-{life}"))
    }

    fn log(&self) -> PathBuf {
        self.setting.person.join("log")
    }

    fn killed_at(&mut self, step: Step, passage: u64, tally: &Mutex<Tally>) -> Result<(), String> {
        let mut life = self.start(Some((step, passage)));
        if matches!(step, Step::ScheduleEnded | Step::JournalClosed) {
            let moment = Duration::from_millis(self.rng.between(200, 900));
            if life.ended_within(moment).is_none() {
                life.terminate();
            }
        }
        if matches!(step, Step::BeforeBurst | Step::BurstClaimed) {
            self.drop_files(&mut life);
        }
        if step == Step::Approved {
            self.say_yes(&mut life);
        }
        if matches!(step, Step::BeforeDelivery | Step::Delivered) || self.rng.once_in(6) {
            self.deliver(&mut life);
        }
        let mut tally = if life.ended_within(COMES_WITHIN).is_some() {
            tally.lock().unwrap()
        } else {
            let mut tally = tally.lock().unwrap();
            *tally.missed.entry(step).or_default() += 1;
            tally
        };
        match life.kill_after(Duration::ZERO) {
            Ok(true) => *tally.steps.entry(step).or_default() += 1,
            Ok(false) => tally.random += 1,
            // Told to end before it had caught signals, or before it came to the step.
            Err(_) if matches!(step, Step::ScheduleEnded | Step::JournalClosed) => {
                *tally.missed.entry(step).or_default() += 1;
            }
            Err(error) => return Err(format!("life {}, at {}: {error}", self.lives, step.name())),
        }
        Ok(())
    }

    fn killed_somewhere(&mut self, within: u64, tally: &Mutex<Tally>) -> Result<(), String> {
        let moment = Duration::from_millis(self.rng.between(0, within));
        let with_runners = self.rng.once_in(2);
        let life = self.start(None);
        let killed = if with_runners { life.kill_with_runners_after(moment) } else { life.kill_after(moment) };
        tally.lock().unwrap().random += 1;
        killed.map(drop).map_err(|error| format!("life {}: {error}", self.lives))
    }

    /// `reminder add`, killed while it writes the file.
    fn killed_adding(&mut self, step: Step, tally: &Mutex<Tally>) {
        let token = format!("w{}-{}", self.number, self.jobs.len());
        // Staged is not there, placed is.
        let job = Job { token, kind: Kind::Quiet, there: step == Step::Placed };
        let body = job.body();
        let words = ["reminder", "add", "-m", &body, "--in", "2s", "--background", "--isolated", "--allowed-tools", ""];
        let status = self.setting.command(&words, self.ahead, Some((step, 1))).stdout(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(9), "`reminder add` was to be killed at {}: {status}", step.name());
        *tally.lock().unwrap().steps.entry(step).or_default() += 1;
        self.jobs.push(job);
    }

    /// Lives on until nothing is left to do.
    fn run_until_idle(&mut self) -> Result<(), String> {
        for _ in 0..15 {
            // Beyond every pause between attempts, and away from a full minute.
            let now = self.now().timestamp_millis();
            self.ahead += (now / MINUTE + 11) * MINUTE + 5_000 - now;
            let mut life = self.start(None);
            let start = Instant::now();
            // Whoever had no answer tries again.
            for key in &self.delivered {
                while !deliver(&self.hooks(), key) {
                    if life.ended_within(Duration::from_millis(30)).is_some() || start.elapsed() > STUCK {
                        return Err(format!("life {} does not take the delivery {key}", self.lives));
                    }
                }
            }
            while !self.is_idle() {
                if life.ended_within(Duration::from_millis(30)).is_some() || start.elapsed() > STUCK {
                    return Err(format!("life {} does not come to rest: {:?}", self.lives, self.left()));
                }
            }
            life.terminate();
            match life.ended_within(STUCK) {
                Some(status) if status.success() => {}
                other => return Err(format!("life {} was told to end: {other:?}", self.lives)),
            }
            self.left_in_state = check::names(&self.setting.home.join("state"));
            if self.left().is_empty() && self.reminders().is_empty() {
                return self.nobody_is_left();
            }
        }
        Err(format!("there is no end: {:?}, {:?}", self.left(), self.reminders()))
    }

    fn nobody_is_left(&self) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let left = processes::naming(&self.setting.person);
            if left.is_empty() {
                return Ok(());
            }
            if start.elapsed() > STUCK {
                return Err(format!("processes are left: {left:#?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether all that is due has been done, as far as it can be now.
    fn is_idle(&self) -> bool {
        let Some(journal) = self.journal() else { return false };
        let now = self.now().timestamp_millis();
        let count = |sql: &str| -> i64 { journal.query_row(sql, [now], |row| row.get(0)).unwrap_or(1) };
        count("SELECT count(*) FROM occurrence WHERE outcome IS NULL AND (retry_at IS NULL OR retry_at <= ?1)") == 0
            && count(
                "SELECT count(*) FROM occurrence WHERE ?1 > 0 AND kind = 'reminder' AND outcome IS NOT NULL AND NOT file_done",
            ) == 0
            && count("SELECT count(*) FROM message WHERE ?1 > 0 AND delivered IS NULL") == 0
            && (self.words.len() + self.chats.turns()).to_string()
                == count("SELECT count(*) FROM session WHERE ?1 > 0").to_string()
            && usize::try_from(count(
                "SELECT count(DISTINCT id) FROM occurrence WHERE kind = 'routine' AND occasion IS NULL
                   AND at >= ?1 / 60000 * 60000",
            )) == Ok(ROUTINES.len())
            && self.reminders().iter().all(|path| {
                // One that waits for another attempt has its claim.
                due(path).is_none_or(|(id, due)| {
                    let claims = "SELECT count(*) FROM occurrence WHERE id = ?1";
                    due > now || journal.query_row(claims, [id], |row| row.get::<_, i64>(0)).unwrap_or(0) > 0
                })
            })
    }

    /// Occurrences without an outcome.
    fn left(&self) -> Vec<String> {
        let Some(journal) = self.journal() else { return vec!["no journal".into()] };
        let sql = "SELECT o.id || ' ' || o.at || ' ' || r.state || ' ' || r.attempt || ' ' || coalesce(o.retry_at, '-')
                   FROM occurrence o JOIN run r ON r.occurrence = o.number WHERE o.outcome IS NULL";
        let mut query = journal.prepare(sql).unwrap();
        query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// The journal, to be read; `None`: it is not there yet.
    pub fn journal(&self) -> Option<Connection> {
        let path = self.setting.home.join("state/journal.db");
        let journal = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        journal.busy_timeout(Duration::from_secs(5)).unwrap();
        Some(journal)
    }

    /// The reminders that wait.
    fn reminders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.setting.home.join("reminders")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
    }

    /// Writes a file of the data folder as editors do: whole, by a rename.
    fn write(&self, relative: &str, text: &str) {
        let path = self.setting.home.join(relative);
        let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.persist(path).unwrap();
    }
}

/// A reminder's id, and when it is due, by its file; `None`: it has gone meanwhile.
fn due(path: &Path) -> Option<(String, i64)> {
    let text = fs::read_to_string(path).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_matches(['"', '\'']).to_owned())
    };
    let id = field("id: ").unwrap_or_else(|| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let at: DateTime<Utc> = field("run_at: ")?.parse().unwrap();
    Some((id, at.timestamp_millis()))
}

/// Writes a file that can be executed. Another process does it: had this one the file open while another thread
/// forks, whoever executes it meanwhile would be told `Text file busy`.
pub fn executable(path: &Path, text: &str) -> PathBuf {
    let mut install =
        Command::new("install").args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success(), "{}", path.display());
    path.to_owned()
}
