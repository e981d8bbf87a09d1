//! A proxy between a program and a PostgreSQL server that can hold or drop traffic, as a network does.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use tempfile::TempDir;

/// The name of a server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// The state of the traffic.
#[derive(Default)]
struct Traffic {
    /// Whether requests are held, and whether answers are held.
    held: Mutex<(bool, bool)>,
    changed: Condvar,
    /// Whether the answer to the next commit is lost, together with its connection.
    loses: AtomicBool,
}

/// A proxy. Its socket's folder is removed when the value is dropped.
pub struct Proxy {
    folder: TempDir,
    passing: Arc<Traffic>,
}

impl Proxy {
    /// Starts a proxy in front of the server at `url`, which has its socket in a folder.
    pub fn before(url: &str) -> Self {
        let server = format!("{}/{SOCKET}", url.split_once("host=").unwrap().1);
        let folder = TempDir::with_prefix("net").unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let passing = Arc::new(Traffic::default());
        let shared = passing.clone();
        // The thread ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&server)) else { continue };
                let lost = Arc::new(AtomicBool::new(false));
                pass(&client, &server, &shared, &lost, true);
                pass(&server, &client, &shared, &lost, false);
            }
        });
        Self { folder, passing }
    }

    /// Returns the server's URL through the proxy.
    pub fn url(&self) -> String {
        format!("postgres://bot@/postgres?host={}", self.folder.path().display())
    }

    /// Holds requests and answers, or releases them. Neither side is notified.
    pub fn hold(&self, questions: bool, answers: bool) {
        *self.passing.held.lock().unwrap() = (questions, answers);
        self.passing.changed.notify_all();
    }

    /// Loses the answer to the next commit: the server commits, and the connection breaks.
    pub fn lose_a_commit(&self) {
        self.passing.loses.store(true, Ordering::SeqCst);
    }
}

fn pass(from: &UnixStream, to: &UnixStream, passing: &Arc<Traffic>, lost: &Arc<AtomicBool>, asks: bool) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let (passing, lost) = (passing.clone(), lost.clone());
    std::thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let held = passing.held.lock().unwrap();
            drop(passing.changed.wait_while(held, |held| if asks { held.0 } else { held.1 }).unwrap());
            let is_commit = || bytes[..count].windows(7).any(|seven| seven == b"COMMIT\0");
            if asks && passing.loses.load(Ordering::SeqCst) && is_commit() {
                passing.loses.store(false, Ordering::SeqCst);
                lost.store(true, Ordering::SeqCst);
            }
            if (!asks && lost.load(Ordering::SeqCst)) || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // Either side may have closed.
        let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
