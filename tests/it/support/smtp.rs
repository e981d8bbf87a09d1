//! A mail server on loopback that follows RFC 5321: with TLS from the first byte, with STARTTLS, or without TLS. It refuses
//! whatever a client must not send, and fails the test.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The server's response to the next mail.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Gives this answer to the recipient.
    Recipient(&'static str),
    /// Accepts the text and gives this answer.
    Text(&'static str),
    /// Accepts the text and cuts the connection.
    Cut,
}

/// The server's use of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    Plain,
    /// The server offers STARTTLS and accepts no mail before it.
    StartTls,
    Tls,
}

/// A received mail.
#[derive(Clone, Debug)]
pub struct Mail {
    pub from: String,
    pub to: String,
    /// Header and text as the recipient gets them, with line feeds.
    pub text: String,
    /// The name and the password of the login.
    pub login: Option<(String, String)>,
    pub encrypted: bool,
}

#[derive(Default)]
struct Server {
    mails: Vec<Mail>,
    acts: Vec<Act>,
    /// Violations of the protocol by a client.
    faults: Vec<String>,
}

/// The stub.
pub struct Smtp {
    port: u16,
    server: Arc<Mutex<Server>>,
}

/// Returns the path of one of the stub's certificate files.
pub fn certificate(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/smtp").join(name)
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

impl Smtp {
    pub fn start(talk: TlsMode) -> Self {
        let chain = vec![CertificateDer::from_pem_file(certificate("server.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(certificate("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let (config, server) = (Arc::new(config), Arc::<Mutex<Server>>::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::clone(&server);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client may disconnect at any moment.
                let _gone = connection(stream.unwrap(), talk, &config, &shared);
            }
        });
        Self { port, server }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets the responses to the next mails.
    pub fn acts(&self, acts: &[Act]) {
        self.server.lock().unwrap().acts.extend(acts);
    }

    /// Returns the received mails, including those that the server refused or did not answer.
    #[track_caller]
    pub fn mails(&self) -> Vec<Mail> {
        let server = self.server.lock().unwrap();
        assert_eq!(server.faults, [""; 0]);
        server.mails.clone()
    }
}

fn tls(stream: TcpStream, config: &Arc<ServerConfig>) -> std::io::Result<Box<dyn ReadWrite>> {
    let mut session = StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), stream);
    session.conn.complete_io(&mut session.sock)?;
    Ok(Box::new(session))
}

fn connection(
    stream: TcpStream,
    talk: TlsMode,
    config: &Arc<ServerConfig>,
    server: &Mutex<Server>,
) -> std::io::Result<()> {
    if talk == TlsMode::Tls {
        return session(BufReader::new(tls(stream, config)?), true, talk, server).map(drop);
    }
    let plain: Box<dyn ReadWrite> = Box::new(stream.try_clone()?);
    if session(BufReader::new(plain), false, talk, server)? {
        return session(BufReader::new(tls(stream, config)?), true, talk, server).map(drop);
    }
    Ok(())
}

/// Serves one conversation. Returns whether it continues encrypted.
fn session(
    mut stream: BufReader<Box<dyn ReadWrite>>,
    encrypted: bool,
    talk: TlsMode,
    server: &Mutex<Server>,
) -> std::io::Result<bool> {
    let fault = |what: String| server.lock().unwrap().faults.push(what);
    let (mut greeted, mut login, mut from, mut to) = (false, None, None::<String>, None::<String>);
    if !(encrypted && talk == TlsMode::StartTls) {
        say(&mut stream, "220 mail.example.org ESMTP")?;
    }
    loop {
        let Some(line) = read_line(&mut stream, &fault)? else { return Ok(false) };
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let act = server.lock().unwrap().acts.first().copied();
        let done = || {
            server.lock().unwrap().acts.remove(0);
        };
        match word.to_uppercase().as_str() {
            "EHLO" if !rest.is_empty() => {
                greeted = true;
                say(&mut stream, "250-mail.example.org")?;
                if talk == TlsMode::StartTls && !encrypted {
                    say(&mut stream, "250-STARTTLS")?;
                }
                say(&mut stream, "250-8BITMIME")?;
                say(&mut stream, "250 AUTH PLAIN")?;
            }
            "STARTTLS" if talk == TlsMode::StartTls && !encrypted => {
                say(&mut stream, "220 go ahead")?;
                return Ok(true);
            }
            _ if talk == TlsMode::StartTls && !encrypted && word != "QUIT" => {
                fault(format!("said without encryption: {line}"));
                say(&mut stream, "530 Must issue a STARTTLS command first")?;
            }
            "AUTH" if greeted => {
                let given = rest.strip_prefix("PLAIN ").unwrap_or_default();
                let text = String::from_utf8(unbase64(given)).unwrap();
                let mut parts = text.split('\0').skip(1).map(str::to_owned);
                let given = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                match given.1 == "hunter2" {
                    true => {
                        login = Some(given);
                        say(&mut stream, "235 welcome")?;
                    }
                    false => say(&mut stream, "535 5.7.8 authentication failed")?,
                }
            }
            "MAIL" if greeted => {
                from = rest.strip_prefix("FROM:<").and_then(|rest| rest.split('>').next()).map(str::to_owned);
                say(&mut stream, "250 fine")?;
            }
            "RCPT" if from.is_some() => match act {
                Some(Act::Recipient(answer)) => {
                    done();
                    say(&mut stream, answer)?;
                }
                _ => {
                    to = rest.strip_prefix("TO:<").and_then(|rest| rest.split('>').next()).map(str::to_owned);
                    say(&mut stream, "250 fine")?;
                }
            },
            "DATA" if to.is_some() => {
                say(&mut stream, "354 go ahead")?;
                let mut text = String::new();
                loop {
                    let Some(line) = read_line(&mut stream, &fault)? else { return Ok(false) };
                    if line == "." {
                        break;
                    }
                    text.push_str(line.strip_prefix('.').unwrap_or(&line));
                    text.push('\n');
                }
                let (from, to) = (from.take().unwrap(), to.take().unwrap());
                server.lock().unwrap().mails.push(Mail { from, to, text, login: login.clone(), encrypted });
                match act {
                    Some(Act::Cut) => {
                        done();
                        return Ok(false);
                    }
                    Some(Act::Text(answer)) => {
                        done();
                        say(&mut stream, answer)?;
                    }
                    _ => say(&mut stream, "250 2.0.0 queued as 17")?,
                }
            }
            "QUIT" => {
                say(&mut stream, "221 bye")?;
                return Ok(false);
            }
            "RSET" | "NOOP" => say(&mut stream, "250 fine")?,
            _ => {
                fault(format!("out of order: {line}"));
                say(&mut stream, "503 bad sequence of commands")?;
            }
        }
    }
}

fn say(stream: &mut BufReader<Box<dyn ReadWrite>>, line: &str) -> std::io::Result<()> {
    let stream = stream.get_mut();
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    stream.flush()
}

/// Reads a line without its end. Returns `None` if the client has disconnected.
fn read_line(stream: &mut BufReader<Box<dyn ReadWrite>>, fault: &dyn Fn(String)) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(line).unwrap();
    match text.strip_suffix("\r\n") {
        Some(line) if !line.contains(['\r', '\0']) && line.len() <= 998 => Ok(Some(line.to_owned())),
        _ => {
            fault(format!("no line of a mail: {text:?}"));
            Ok(Some(text.trim_end().to_owned()))
        }
    }
}

fn unbase64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        bits = bits << 6 | u32::try_from(LETTERS.iter().position(|known| *known == letter).unwrap()).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap());
        }
    }
    bytes
}
