//! A stub of the login service as the client reaches it: `platform.claude.com` and `api.anthropic.com` by TLS, behind a proxy.

use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The stub. It issues the tokens `sk-ant-oat01-1`, `sk-ant-oat01-2`, and so on.
pub struct Accounts {
    folder: TempDir,
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    asked: Vec<Value>,
    refuses: bool,
    tokens: u32,
}

impl Accounts {
    pub fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let names = ["platform.claude.com", "api.anthropic.com"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        std::fs::write(folder.path().join("authority.pem"), made.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<Mutex<State>>::default();
        let (config, shared) = (Arc::new(config), state.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, shared) = (config.clone(), shared.clone());
                // A client may disconnect at any moment.
                std::thread::spawn(move || drop(serve(stream, config, &shared)));
            }
        });
        Self { folder, port, state }
    }

    /// Returns the service's environment variables through which the client finds the stub.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        let authority = self.folder.path().join("authority.pem");
        [
            ("NO_PROXY", "127.0.0.1".to_owned()),
            ("HTTPS_PROXY", format!("http://127.0.0.1:{}", self.port)),
            ("NODE_EXTRA_CA_CERTS", text(authority)),
        ]
    }

    /// Sets whether the stub refuses codes and old logins from now on.
    pub fn refuses(&self, refuses: bool) {
        self.state.lock().unwrap().refuses = refuses;
    }

    /// Returns the requests for a token.
    pub fn asked(&self) -> Vec<Value> {
        self.state.lock().unwrap().asked.clone()
    }
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, state: &Mutex<State>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    request(&mut reader)?;
    let mut stream = reader.into_inner();
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let (path, body) = request(&mut reader)?;
        let (status, answer) = answer(&path, &body, &mut state.lock().unwrap());
        let body = answer.to_string();
        let head =
            format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        reader.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        reader.get_mut().flush()?;
    }
}

/// Reads the next request and returns its path and its body.
fn request(reader: &mut impl io::BufRead) -> io::Result<(String, Vec<u8>)> {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, body))
}

fn answer(path: &str, body: &[u8], state: &mut State) -> (u16, Value) {
    if path.contains("/profile") {
        let account = json!({ "uuid": "u", "email": "a@example.org", "has_claude_max": true });
        return (
            200,
            json!({ "account": account, "organization": { "uuid": "o", "organization_type": "claude_max" } }),
        );
    }
    if !path.contains("/oauth/token") {
        return (200, json!({}));
    }
    state.asked.push(serde_json::from_slice(body).unwrap_or_default());
    if state.refuses {
        return (400, json!({ "error": "invalid_grant", "error_description": "the code is not valid" }));
    }
    state.tokens += 1;
    let token = json!({
        "token_type": "Bearer",
        "access_token": format!("sk-ant-oat01-{}", state.tokens),
        "refresh_token": format!("sk-ant-ort01-{}", state.tokens),
        "expires_in": 28_800,
        "scope": "user:inference user:profile",
        "account": { "uuid": "u", "email_address": "a@example.org" },
        "organization": { "uuid": "o", "name": "n" },
    });
    (200, token)
}
