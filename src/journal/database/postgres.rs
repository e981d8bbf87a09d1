//! Statements on a PostgreSQL server.
//!
//! Each statement is one round trip. Its parameters are text, and the server infers their types. Nothing is
//! prepared, so a pooler in transaction mode may stand between. One thread talks to all servers. A caller
//! blocks on its own thread, so any code can ask. No caller waits for longer than [`TIMEOUT`].

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::join;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, private::BytesMut};
use tokio_postgres::{Client, Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{JournalError, ToValue as _, Value};

/// Maximum wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum wait for a connection.
const CONNECT: Duration = Duration::from_secs(3);

/// Begins each transaction that writes. The timeouts cut off a host that stops in the middle, which bounds how
/// long it blocks the others. They are set each time, since a pooler may hand out another connection. A host that gave up its place
/// among many that wait would begin at the end again.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '8s'; SET LOCAL idle_in_transaction_session_timeout = '5s';
    SET LOCAL statement_timeout = '9s'; SET LOCAL synchronous_commit = on; SELECT 1 FROM journal FOR UPDATE";

/// The address of a server, with credentials.
#[derive(Clone)]
pub(in crate::journal) struct ServerAddress {
    config: Config,
    /// The TLS settings; `None`: without TLS.
    tls: Option<MakeRustlsConnect>,
    /// The address without the password.
    shown: String,
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl ServerAddress {
    /// Parses `postgres://user@host:5432/name?sslmode=…&sslrootcert=…`. Verifies the server's certificate over the
    /// network, unless `sslmode=disable` switches TLS off.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the address.
    pub(in crate::journal) fn read(url: &str, password: Option<&str>) -> Result<Self, String> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut root, mut rest) = (None, None, Vec::new());
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", file)) => root = Some(PathBuf::from(file)),
                _ => rest.push(part),
            }
        }
        let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = plain.parse().map_err(|error: tokio_postgres::Error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            format!("not an address of PostgreSQL (`postgres://user@host:5432/name`): {why}")
        })?;
        if config.get_hosts().is_empty() {
            return Err("it names no host (`postgres://user@host:5432/name`)".to_owned());
        }
        if let Some(password) = password.filter(|_| config.get_password().is_none()) {
            config.password(password);
        }
        if config.get_user().is_none() {
            return Err("it names no user (`postgres://user@host:5432/name`)".to_owned());
        }
        let is_near = config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
            Host::Unix(_) => true,
        });
        let tls = match mode {
            Some("disable") => None,
            None if is_near && root.is_none() => None,
            None | Some("verify-full") => {
                let verifying =
                    crate::tls::verifying(root.as_deref()).map_err(|why| format!("`sslrootcert`: {why}"))?;
                Some(MakeRustlsConnect::new(verifying))
            }
            Some(other) => {
                return Err(format!(
                    "`sslmode={other}` does not say who answers; use `sslmode=verify-full`, or `sslmode=disable` in a network of your own"
                ));
            }
        };
        config
            .application_name("ollim-bot")
            .connect_timeout(CONNECT)
            .tcp_user_timeout(CONNECT)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(2)
            .ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        let hosts: Vec<String> = config.get_hosts().iter().map(host_name).collect();
        let shown = format!(
            "postgres://{}@{}/{}",
            config.get_user().unwrap_or_default(),
            hosts.join(","),
            config.get_dbname().or(config.get_user()).unwrap_or_default(),
        );
        Ok(Self { config, tls, shown })
    }

    pub(in crate::journal) fn password(&self) -> Option<String> {
        self.config.get_password().and_then(|password| String::from_utf8(password.to_vec()).ok())
    }
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

/// A connection to a server.
pub(in crate::journal) struct Link {
    client: Client,
    /// Whether an answer did not come in time. Then nothing more is asked.
    broken: AtomicBool,
    /// Maximum wait for an answer.
    timeout: Duration,
    /// The host and epoch whose lease each writing transaction checks first.
    fence: Option<(String, i64)>,
    /// The id of the transaction that writes.
    transaction: AtomicI64,
    /// The id of a transaction whose commit got no answer; 0: there is none.
    in_doubt: AtomicI64,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("fence", &self.fence).finish_non_exhaustive()
    }
}

impl Link {
    /// Connects to the server.
    pub(in crate::journal) fn open(place: &ServerAddress) -> Result<Self, JournalError> {
        let ServerAddress { config, tls, .. } = place.clone();
        let connected = talking()?.spawn(async move {
            match tls {
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    // The next request reports its error.
                    tokio::spawn(async move { drop(connection.await) });
                    Ok::<Client, tokio_postgres::Error>(client)
                }
                Some(tls) => {
                    let (client, connection) = config.connect(tls).await?;
                    tokio::spawn(async move { drop(connection.await) });
                    Ok(client)
                }
            }
        });
        let client = waited(connected, CONNECT)?.map_err(|error| JournalError::Away(Arc::new(error)))?;
        Ok(Self {
            client: client?,
            broken: AtomicBool::new(false),
            timeout: TIMEOUT,
            fence: None,
            transaction: AtomicI64::new(0),
            in_doubt: AtomicI64::new(0),
        })
    }

    /// From now on, writes only while this host holds its lease with this epoch.
    pub(in crate::journal) fn fence(&mut self, host: String, epoch: i64) {
        self.fence = Some((host, epoch));
    }

    /// Sets the maximum wait for an answer.
    pub(in crate::journal) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Returns the connection with the fence of `other`, and its commit in doubt.
    pub(in crate::journal) fn like(self, other: &Self) -> Self {
        let in_doubt = AtomicI64::new(other.in_doubt.load(Ordering::Relaxed));
        Self { fence: other.fence.clone(), in_doubt, ..self }
    }

    /// Returns the host that writes through this connection.
    pub(in crate::journal) fn host(&self) -> Option<&str> {
        self.fence.as_ref().map(|(host, _)| host.as_str())
    }

    /// Returns whether the connection is unusable.
    pub(in crate::journal) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.broken.load(Ordering::Relaxed)
    }

    pub(in crate::journal) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, JournalError> {
        let changed = self.waited(self.client.execute_typed(&numbered(sql), &typed(values)))??;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    pub(in crate::journal) fn query(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, JournalError> {
        Ok(self.waited(self.client.query_typed(&numbered(sql), &typed(values)))??)
    }

    pub(in crate::journal) fn batch(&self, sql: &str) -> Result<(), JournalError> {
        Ok(self.waited(self.client.batch_execute(sql))??)
    }

    /// Begins a transaction. While it lasts, it is the only one that writes, on any host. So reads before a write
    /// see no change in between, as in SQLite.
    ///
    /// Fails unless the lease holds. Nobody can take the lease over before the transaction ends, since that is a writing transaction, too.
    pub(in crate::journal) fn begin(&self) -> Result<(), JournalError> {
        let number = "SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)";
        let begun = self.begin_by(BEGIN, number).and_then(|row| Ok(row.try_get(0)?));
        if begun.is_err() {
            self.roll_back();
        }
        self.transaction.store(begun?, Ordering::Relaxed);
        Ok(())
    }

    /// Begins a transaction that only reads, and holds up nobody. Fails unless the lease holds.
    pub(in crate::journal) fn begin_reading(&self) -> Result<(), JournalError> {
        let begun = self.begin_by("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SELECT 1");
        if begun.is_err() {
            self.roll_back();
        }
        begun.map(drop)
    }

    /// Sends `begin` and a check of the lease together: one round trip.
    fn begin_by(&self, begin: &str, select: &str) -> Result<Row, JournalError> {
        let (checks, values) = match &self.fence {
            None => (select.to_owned(), Vec::new()),
            Some((host, epoch)) => {
                let sql = format!("{select} FROM host WHERE name = $1 AND epoch = $2 AND lease_until > now()");
                (sql, vec![host.value(), epoch.value()])
            }
        };
        let values = typed(&values);
        let both = join(self.client.batch_execute(begin), self.client.query_typed(&checks, &values));
        let (begun, found) = self.waited(both)?;
        begun?;
        found?.into_iter().next().ok_or(JournalError::Fenced)
    }

    /// Rolls back. If that fails, the connection is gone, and the transaction with it.
    pub(in crate::journal) fn roll_back(&self) {
        let _gone = self.batch("ROLLBACK");
    }

    /// Commits. If no answer comes, [`Self::was_committed`] finds out the outcome, through this connection or one made with [`Self::like`].
    pub(in crate::journal) fn commit(&self) -> Result<(), JournalError> {
        self.note_doubt(self.batch("COMMIT"))
    }

    /// Sends a last query and the commit together: one round trip. Returns the query's first row.
    pub(in crate::journal) fn commit_after(&self, query: &str) -> Result<Option<Row>, JournalError> {
        let both = join(self.client.query_typed(query, &[]), self.client.batch_execute("COMMIT"));
        let (found, committed) = self.note_doubt(self.waited(both))?;
        self.note_doubt(committed.map_err(JournalError::from))?;
        // After a query that failed, the server has rolled back instead.
        Ok(found?.into_iter().next())
    }

    fn note_doubt<T>(&self, committed: Result<T, JournalError>) -> Result<T, JournalError> {
        committed.inspect_err(|error| {
            if error.may_pass() {
                self.in_doubt.store(self.transaction.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        })
    }

    /// Returns whether the commit without an answer was made.
    pub(in crate::journal) fn was_committed(&self) -> Result<bool, JournalError> {
        let number = self.in_doubt.load(Ordering::Relaxed);
        if number == 0 {
            return Ok(false);
        }
        // A server that has lost the transaction, as a replica may have, does not know its id.
        let known = "SELECT CASE WHEN ?1 < CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)
             THEN pg_xact_status(CAST(CAST(?1 AS TEXT) AS XID8)) END";
        let found = self.query(known, &[number.value()])?;
        let status: Option<String> = found.first().map(|row| row.try_get(0)).transpose()?.flatten();
        if status.as_deref() == Some("in progress") {
            return Err(JournalError::Away(Arc::new(std::io::Error::from(std::io::ErrorKind::WouldBlock))));
        }
        self.in_doubt.store(0, Ordering::Relaxed);
        Ok(status.as_deref() == Some("committed"))
    }

    /// Forgets the commit in doubt.
    pub(in crate::journal) fn discard_lost_commit(&self) {
        self.in_doubt.store(0, Ordering::Relaxed);
    }

    /// Blocks the caller's thread until the answer comes.
    fn waited<T>(&self, answer: impl Future<Output = T>) -> Result<T, JournalError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(JournalError::Away(Arc::new(std::io::Error::from(std::io::ErrorKind::TimedOut))));
        }
        waited(answer, self.timeout).inspect_err(|_| self.broken.store(true, Ordering::Relaxed))
    }
}

/// Returns the runtime whose thread talks to servers.
fn talking() -> Result<&'static tokio::runtime::Handle, JournalError> {
    static RUNTIME: OnceLock<Result<tokio::runtime::Runtime, Arc<std::io::Error>>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("journal").enable_all().build().map_err(Arc::new)
    });
    runtime.as_ref().map(tokio::runtime::Runtime::handle).map_err(|error| JournalError::Away(error.clone()))
}

/// Blocks the caller's thread until the answer comes, for at most `patience`.
fn waited<T>(answer: impl Future<Output = T>, timeout: Duration) -> Result<T, JournalError> {
    let _timers = talking()?.enter();
    futures::executor::block_on(async { tokio::time::timeout(timeout, answer).await })
        .map_err(|elapsed| JournalError::Away(Arc::new(elapsed)))
}

/// Rewrites the parameters `?1` as PostgreSQL's `$1`.
fn numbered(sql: &str) -> String {
    let mut numbered = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(place) = rest.find('?') {
        let (before, after) = rest.split_at(place);
        numbered.push_str(before);
        numbered.push(if after[1..].starts_with(|next: char| next.is_ascii_digit()) { '$' } else { '?' });
        rest = &after[1..];
    }
    numbered.push_str(rest);
    numbered
}

fn typed<'a>(values: &'a [Value<'a>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    // The server infers the type from the position of the parameter.
    values.iter().map(|value| (value as &(dyn ToSql + Sync), Type::UNKNOWN)).collect()
}

impl ToSql for Value<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Self::Real(value) => out.extend_from_slice(value.to_string().as_bytes()),
            // PostgreSQL cannot store NUL in a text.
            Self::Text(text) if text.contains('\0') => out.extend_from_slice(text.replace('\0', "\u{fffd}").as_bytes()),
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    tokio_postgres::types::to_sql_checked!();
}

impl From<tokio_postgres::Error> for JournalError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(code) = error.code() else {
            // No answer of the server: the connection broke.
            let is_away = error.is_closed() || error.source().is_some_and(|source| source.is::<std::io::Error>());
            return if is_away { Self::Away(Arc::new(error)) } else { Self::Database(Arc::new(error)) };
        };
        let slow = [
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ];
        match code.code().get(..2).unwrap_or_default() {
            // Connection, operator intervention, system error.
            "08" | "57" | "58" => Self::Away(Arc::new(error)),
            _ if slow.contains(code) => Self::Away(Arc::new(error)),
            // Resources, such as disk space and connections.
            "53" => Self::Unable(Arc::new(error)),
            _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Self::Unable(Arc::new(error)),
            // A role or its password.
            "28" => Self::Denied(Arc::new(error)),
            _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => Self::Denied(Arc::new(error)),
            _ => Self::Database(Arc::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address() {
        let read = |url: &str| ServerAddress::read(url, None).map(|place| (place.to_string(), place.tls.is_some()));
        let near = Ok(("postgres://bot@localhost/ollim".to_owned(), false));
        assert_eq!(read("postgres://bot:secret@localhost/ollim"), near);
        assert_eq!(read("postgres://bot@db.example.org/ollim").map(|(_, tls)| tls), Ok(true));
        assert_eq!(read("postgres://bot@db.example.org/ollim?sslmode=disable").map(|(_, tls)| tls), Ok(false));
        assert_eq!(read("postgres://bot@/ollim?host=/run/postgresql").map(|(_, tls)| tls), Ok(false));
        for (url, why) in [
            ("postgres://bot@db.example.org/ollim?sslmode=require", "does not say who answers"),
            ("postgres://bot@db.example.org/ollim?sslrootcert=/no/such/file", "/no/such/file"),
            ("postgres://localhost/ollim", "no user"),
            ("mysql://bot@localhost/ollim", "not an address"),
            ("postgres://bot@localhost/ollim?sslmod=disable", "not an address"),
        ] {
            let error = read(url).unwrap_err();
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn parameters_are_renumbered() {
        assert_eq!(numbered("a = ?1 AND b LIKE '%?' AND c > ?12"), "a = $1 AND b LIKE '%?' AND c > $12");
    }
}
