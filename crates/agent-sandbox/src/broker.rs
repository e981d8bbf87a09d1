//! The broker: receives each program that a shell starts, has the service judge it, and starts what may run outside of the shell.
//!
//! The broker is a part of the runner, so the programs that it starts are below the runner and end with the run. It trusts a
//! trampoline only as far as the kernel vouches: the working folder is a descriptor, and the arguments are those that the program
//! gets.
//!
//! It has a thread of its own. A job shares the descriptors that it sends, so it can make the calls on them block: it clears
//! `O_NONBLOCK`, or sends a socket whose close waits. The broker then serves that run no more. The runner's main thread touches none of
//! these descriptors, and ends the run all the same.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, socketpair};
use rustix::process::{Pid, Signal, WaitStatus, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::descriptors::close_apart;
use crate::domain::Domain;
use crate::launch::ShellService;
use crate::leftovers;
use crate::program;
use crate::shell;
use crate::token::{random, same};
use crate::tree;
use crate::wire::{
    self, Answer, Instruction, LONGEST, ProgramSpec, Question, QuestionBody, Reply, ReplyBody, Request, ShellSpec,
    Start,
};

/// Maximum number of programs of one run at a time.
const MAX_CONCURRENT: usize = 256;

/// Maximum number of connections, from shells and from programs that have lost their sockets.
const CONNECTED: usize = 256;

/// Maximum number of descriptors handed to a program, besides those of its folder and its stream.
const HANDED: usize = 64;

/// Maximum length of arguments that are judged, in words and in bytes. The variables of a program may be as long, since the runner keeps
/// them until it ends.
const WORDS: usize = 10_000;
const BYTES: usize = 256 * 1024;

/// Maximum number of waiting launchers. They differ in network and attributes, as programs do.
const SPARE: usize = 3;

/// Maximum number of programs received and judged at a time. The arguments of each may be as long as the kernel allows.
const JUDGED_AT_ONCE: usize = 16;

/// Maximum time between SIGTERM and the end of a program whose trampoline is gone.
const GRACE: Duration = Duration::from_millis(500);

/// Maximum wait for a trampoline's request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum length of a shell's script that judges see, in characters.
const LONGEST_SCRIPT: usize = 16_000;

/// Variables that bash sets for every program. They carry no information about a line.
const OF_BASH: &[&str] = &["_", "OLDPWD", "PWD", "SHLVL"];

type Environment = BTreeMap<String, String>;

/// A process that asks for programs.
struct Origin {
    /// The environment with which it was started.
    env: Environment,
    /// Whether it is the shell, and not a program outside of it.
    shell: bool,
    /// The subagent to which the line belongs.
    caller: Option<String>,
    /// The beginning of its shell's script.
    script: Arc<str>,
    /// The rights of every program that it starts.
    every_program: Domain,
    /// Its own folder and those of the programs that started it. What it starts can use them.
    own_folders: Vec<Arc<OwnFolder>>,
}

/// A folder for one program, which is removed with the value.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn make(path: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed with the run.
        let _ = leftovers::remove(&self.0);
    }
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The broker of one run.
pub(crate) struct Broker {
    service: ShellService,
    /// The channel for lines to the service.
    questions: mpsc::UnboundedSender<Vec<u8>>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<ReplyBody>>>,
    programs: Mutex<Programs>,
    /// The origin of each running program outside of the shell, which applies to the programs that it starts.
    origins: Mutex<HashMap<u32, Arc<Origin>>>,
    /// Launchers that wait for a program, newest last.
    spare: Mutex<Vec<Launcher>>,
    running: Semaphore,
    judged_at_once: Arc<Semaphore>,
    /// The tokens of the session and of each subagent. They identify programs that have lost their socket.
    tokens: BTreeMap<Option<String>, String>,
}

/// The started programs.
#[derive(Default)]
struct Programs {
    ended: HashMap<u32, oneshot::Sender<WaitStatus>>,
    /// Whether the run ends, and no program may start any more.
    closed: bool,
}

/// A started launcher and the socket over which it receives its program.
struct Launcher {
    /// The domain that it has prepared.
    domain: Domain,
    pid: u32,
    ended: oneshot::Receiver<WaitStatus>,
    socket: BlockingStream,
}

/// A trampoline's request with its descriptors.
struct ReceivedRequest {
    /// The request as received.
    request: Vec<u8>,
    /// The program's working folder.
    folder: OwnedFd,
    /// The descriptors for the program.
    descriptors: Vec<OwnedFd>,
    /// The permit, held until the program has started.
    turn: OwnedSemaphorePermit,
    /// The folder to make for the program.
    own_folder: Option<PathBuf>,
}

/// A broker that listens for shells until this is dropped. Then it starts no program any more.
pub(crate) struct ListeningBroker(Arc<Broker>);

impl ListeningBroker {
    /// Starts the broker's thread. It lasts as long as the process.
    ///
    /// # Errors
    /// If the socket cannot be made, or the machine has no thread to spare.
    pub(crate) fn start(service: ShellService, questions: mpsc::UnboundedSender<Vec<u8>>) -> io::Result<Self> {
        let listener = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        // An earlier client of the same run may have left a socket.
        match std::fs::remove_file(&service.socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (path, folder) = wire::reachable(&service.socket)?;
        bind(&listener, &SocketAddrUnix::new(path)?)?;
        drop(folder);
        std::fs::set_permissions(&service.socket, std::fs::Permissions::from_mode(0o600))?;
        listen(&listener, 64)?;
        let callers = service.agents.keys().cloned().map(Some).chain([None]);
        let tokens = callers.map(|name| Ok((name, random()?))).collect::<io::Result<_>>()?;
        let broker = Arc::new(Broker {
            tokens,
            service,
            questions,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            programs: Mutex::default(),
            origins: Mutex::default(),
            spare: Mutex::default(),
            running: Semaphore::new(MAX_CONCURRENT),
            judged_at_once: Arc::new(Semaphore::new(JUDGED_AT_ONCE)),
        });
        let accepting = broker.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().spawn(move || {
            if let Err(error) = runtime.block_on(accepting.accept(listener)) {
                tracing::error!(%error, "the sandbox takes no shells any more");
                // The kernel signals programs when the thread that started them ends.
                runtime.block_on(std::future::pending::<()>());
            }
        })?;
        Ok(Self(broker))
    }

    /// Handles an answer of the service.
    pub(crate) fn answered(&self, line: &[u8]) {
        match serde_json::from_slice::<Reply>(line) {
            Ok(Reply { id, what }) => {
                if let Some(waiting) = lock(&self.0.waiting).remove(&id) {
                    // The trampoline may be gone.
                    let _ = waiting.send(what);
                }
            }
            Err(error) => tracing::error!(%error, "an answer of the service cannot be read"),
        }
    }

    /// Handles the end of a child of the runner.
    pub(crate) fn ended(&self, pid: u32, status: WaitStatus) {
        if let Some(waiting) = lock(&self.0.programs).ended.remove(&pid) {
            // The trampoline may be gone.
            let _ = waiting.send(status);
        }
    }
}

impl Drop for ListeningBroker {
    fn drop(&mut self) {
        lock(&self.0.programs).closed = true;
        // If this fails, the socket is removed with the run's folder.
        let _ = std::fs::remove_file(Path::new(&self.0.service.socket));
    }
}

impl Broker {
    async fn accept(self: Arc<Self>, listener: OwnedFd) -> io::Result<()> {
        // This type is for streams, but reads on the descriptor still respect message boundaries.
        let listener = UnixListener::from_std(listener.into())?;
        let connected = Arc::new(Semaphore::new(CONNECTED));
        loop {
            let place = connected.clone().acquire_owned().await.map_err(io::Error::other)?;
            match listener.accept().await {
                Ok((socket, _)) => match ancestors(&socket) {
                    Ok(above) => {
                        let broker = self.clone();
                        tokio::spawn(async move {
                            // A caller without the run's token is dropped.
                            let _ = broker.greet(socket, above).await;
                            drop(place);
                        });
                    }
                    // What other runs have sent could make the broker wait.
                    Err(_) => close_apart(socket.into_std().map(OwnedFd::from).into_iter().collect()),
                },
                // Most likely the runner is out of descriptors. Some will be free soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Greets a new connection: a shell, which receives its rights, or a trampoline that has lost the shell's socket.
    /// `above`: the ancestors of its process.
    async fn greet(self: Arc<Self>, socket: UnixStream, above: Vec<u32>) -> io::Result<()> {
        let mut hello = vec![0; 256 * 1024];
        let (length, _) =
            timeout(TIMEOUT, receive(&socket, &mut hello)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        hello.truncate(length);
        let Some(Hello { role, token, script }) = Hello::read(&hello) else { return Ok(()) };
        if let Some((caller, _)) = self.tokens.iter().find(|(_, own)| same(token, own.as_bytes())) {
            // Never a shell: only the client starts shells, with the run's token.
            let spec = caller.as_ref().and_then(|name| self.service.agents.get(name)).unwrap_or(&self.service.spec);
            self.prepare(&spec.every_program);
            let started_by = above.iter().find_map(|pid| lock(&self.origins).get(pid).cloned());
            let origin = started_by.filter(|origin| origin.caller == *caller).unwrap_or_else(|| {
                // Its program has ended, so its environment is unknown.
                let env = self.own_token(spec.env.clone(), caller.as_deref());
                Arc::new(Origin {
                    env,
                    shell: false,
                    caller: caller.clone(),
                    script: "".into(),
                    every_program: spec.every_program.clone(),
                    own_folders: Vec::new(),
                })
            });
            return self.serve(socket, origin).await;
        }
        if role != b"shell" || !same(token, self.service.token.as_bytes()) {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(script).chars().take(LONGEST_SCRIPT).collect::<String>().into();
        let (env, every_program) = (Environment::new(), Domain::default());
        let mut origin =
            Origin { env, shell: true, caller: None, script: shown, every_program, own_folders: Vec::new() };
        let spec = self.spec_of(script).await.map(|(caller, spec)| {
            let env = self.own_token(spec.env.clone(), caller.as_deref());
            (origin.env, origin.caller, origin.every_program) = (env.clone(), caller, spec.every_program.clone());
            // The shell does not need to know the rights of its programs.
            ShellSpec { env, every_program: Domain::default(), ..spec.clone() }
        });
        wire::send_with(&socket, &serde_json::to_vec(&spec)?, &[])?;
        if spec.is_err() || (is_of_client(script) && !self.service.agents.is_empty()) {
            // The shell does not start, or runs a script of the client's own, which starts no program.
            return Ok(());
        }
        // Start the next launcher while the shell starts.
        self.prepare(&origin.every_program);
        self.serve(socket, Arc::new(origin)).await
    }

    /// Returns the environment with the caller's own token.
    fn own_token(&self, mut env: Environment, caller: Option<&str>) -> Environment {
        let own = self.tokens.get(&caller.map(ToOwned::to_owned));
        if let (Some(token), Some(held)) = (own, env.get_mut(crate::TOKEN_VARIABLE)) {
            held.clone_from(token);
        }
        env
    }

    /// Returns the rights of a script's shell, and the subagent that the line belongs to.
    async fn spec_of(&self, script: &[u8]) -> Result<(Option<String>, &ShellSpec), String> {
        let ShellService { spec, agents, .. } = &self.service;
        // The client's own scripts read the environment or take a snapshot. They belong to no subagent.
        if agents.is_empty() || is_of_client(script) {
            return Ok((None, spec));
        }
        let said = self.ask(QuestionBody::Caller(String::from_utf8_lossy(script).into_owned())).await;
        match said.map_err(|error| error.to_string())? {
            ReplyBody::Caller(Ok(None)) => Ok((None, spec)),
            ReplyBody::Caller(Ok(Some(name))) => match agents.get(&name) {
                Some(spec) => Ok((Some(name), spec)),
                None => Err(format!("denied: agent {name} has no shell")),
            },
            ReplyBody::Caller(Err(why)) => Err(why),
            ReplyBody::Start(_) => Err("denied, since the answer cannot be understood".into()),
        }
    }

    async fn ask(&self, what: QuestionBody) -> io::Result<ReplyBody> {
        let (_, said) = self.put(what)?;
        said.await.map_err(|_| io::Error::other("the service is gone"))
    }

    /// Asks whether a program may start. Returns `None` if the caller ended meanwhile. The answer can take as long as a person
    /// takes.
    async fn ask_about(&self, start: Start, trampoline: &UnixStream) -> io::Result<Option<ReplyBody>> {
        let (id, said) = self.put(QuestionBody::Start(start))?;
        tokio::select! {
            said = said => said.map(Some).map_err(|_| io::Error::other("the service is gone")),
            () = hung_up(trampoline) => {
                self.put(QuestionBody::Withdrawn(id))?;
                Ok(None)
            }
        }
    }

    /// Sends a question. Returns its number and the receiver of the answer.
    fn put(&self, what: QuestionBody) -> io::Result<(u64, oneshot::Receiver<ReplyBody>)> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, said) = oneshot::channel();
        let is_question = matches!(what, QuestionBody::Start(_) | QuestionBody::Caller(_));
        let mut line = serde_json::to_vec(&Question { id, what })?;
        line.push(b'\n');
        if is_question {
            lock(&self.waiting).insert(id, sender);
        }
        self.questions.send(line).map_err(|_| io::Error::other("the service is gone"))?;
        Ok((id, said))
    }

    /// Serves the trampolines of one shell or program, until no process is left that could ask.
    fn serve(self: Arc<Self>, socket: UnixStream, origin: Arc<Origin>) -> BoxFuture<io::Result<()>> {
        Box::pin(async move {
            let mut mark = [0; 1];
            loop {
                let (length, descriptors) = receive(&socket, &mut mark).await?;
                if length == 0 {
                    return Ok(());
                }
                let (broker, origin) = (self.clone(), origin.clone());
                let turn = self.judged_at_once.clone().acquire_owned().await.map_err(io::Error::other)?;
                tokio::spawn(async move {
                    // The trampoline is gone, or the peer was none.
                    let _ = broker.one(descriptors, &origin, turn).await;
                });
            }
        })
    }

    /// Handles one program, from the question to its end.
    async fn one(
        self: Arc<Self>,
        mut descriptors: Vec<OwnedFd>,
        origin: &Origin,
        turn: OwnedSemaphorePermit,
    ) -> io::Result<()> {
        // A trampoline sends no more descriptors, so the peer is none.
        if !(2..=HANDED + 2).contains(&descriptors.len()) {
            return Ok(());
        }
        let handed = descriptors.split_off(2);
        let [stream, folder] = <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| io::ErrorKind::InvalidData)?;
        let stream = BlockingStream::from(stream);
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream)?;
        let bytes = timeout(TIMEOUT, read_block(&mut stream)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let request = Request::from_bytes(&bytes).ok_or(io::ErrorKind::InvalidData)?;
        let instruction = match self.judged(&request, &folder, origin, &stream).await {
            Ok(None) => return Ok(()),
            Ok(Some(answer)) => match answer {
                Answer::Deny { code, message } => Instruction::End(code, message),
                Answer::Here { program } if origin.shell => Instruction::Become(program),
                Answer::Here { .. } => Instruction::End(126, "denied: it may run in the shell only".into()),
                Answer::Outside { program, env, domain, takes_umask, own_folder } => {
                    let env = self.own_token(env, origin.caller.as_deref());
                    let (umask, limits) = (takes_umask.then_some(request.umask), self.service.spec.limits);
                    let Request { descriptors, .. } = request;
                    let spec = ProgramSpec { program, env, domain: *domain, descriptors, umask, limits };
                    let received = ReceivedRequest { request: bytes, folder, descriptors: handed, turn, own_folder };
                    match self.run(spec, received, &mut stream, origin).await {
                        Ok(code) => Instruction::End(code, String::new()),
                        Err(error) => Instruction::End(126, format!("not started: {error}")),
                    }
                }
            },
            Err(error) => Instruction::End(126, format!("denied, since the decision could not be had: {error}")),
        };
        let instruction = serde_json::to_vec(&instruction)?;
        let length = u32::try_from(instruction.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // A trampoline that does not read its instruction must not block the broker.
        let instruction = [&length.to_le_bytes(), instruction.as_slice()].concat();
        timeout(TIMEOUT, stream.write_all(&instruction)).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    /// Judges a request. Returns `None` if the caller ended meanwhile.
    async fn judged(
        &self,
        request: &Request,
        folder: &OwnedFd,
        origin: &Origin,
        trampoline: &UnixStream,
    ) -> io::Result<Option<Answer>> {
        let refused = |message: &str| Ok(Some(Answer::Deny { code: 126, message: message.into() }));
        if request.argv.len() > WORDS || request.argv.iter().map(|word| word.len()).sum::<usize>() > BYTES {
            return refused(
                "denied, since its arguments are too long to judge; pass them in a file, or in several calls",
            );
        }
        if request.env.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > BYTES {
            return refused("denied, since its variables are too long; pass long values in a file");
        }
        let cwd = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
        // A lossy conversion would judge another path than the one that is opened.
        if cwd.to_str().is_none() || request.argv.iter().any(|word| word.to_str().is_none()) {
            return refused("denied, since its folder or an argument is not UTF-8; use a name that is");
        }
        let lossy = |word: &OsString| word.to_string_lossy().into_owned();
        let start = Start {
            argv: request.argv.iter().map(lossy).collect(),
            cwd: PathBuf::from(cwd.to_string_lossy().into_owned()),
            env: changed(&request.env, &origin.env),
            by_shell: origin.shell,
            caller: origin.caller.clone(),
            script: origin.script.to_string(),
        };
        match self.ask_about(start, trampoline).await? {
            None => Ok(None),
            Some(ReplyBody::Start(answer)) => Ok(Some(answer)),
            Some(ReplyBody::Caller(_)) => Err(io::Error::other("the answer cannot be understood")),
        }
    }

    /// Starts a program outside of the shell and waits for its end. The program ends with its trampoline.
    async fn run(
        self: &Arc<Self>,
        mut spec: ProgramSpec,
        handed: ReceivedRequest,
        trampoline: &mut UnixStream,
        origin: &Origin,
    ) -> io::Result<u8> {
        let ReceivedRequest { request, folder, descriptors: handed, turn, own_folder } = handed;
        let too_many = |_| io::Error::other(format!("{MAX_CONCURRENT} programs of this run are going already"));
        let _permit = self.running.try_acquire().map_err(too_many)?;
        let mut own_folders = origin.own_folders.clone();
        spec.domain.write.extend(own_folders.iter().map(|folder| folder.0.clone()));
        own_folders.extend(own_folder.map(OwnFolder::make).transpose()?.map(Arc::new));
        let Domain { network, attributes, .. } = spec.domain;
        let prepared = Domain { network, attributes, ..origin.every_program.clone() };
        let Launcher { pid, mut ended, socket, .. } = match self.take_spare(&prepared) {
            Some(launcher) => launcher,
            None => self.launcher(&prepared)?,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::io::ioctl_fionbio(&theirs, false)?;
        let mut descriptors = vec![folder.as_fd(), theirs.as_fd()];
        descriptors.extend(handed.iter().map(AsFd::as_fd));
        wire::send_with(&socket, b"x", &descriptors)?;
        drop(descriptors);
        // An open end of a pipe would make its reader wait for this process too.
        drop((folder, handed, theirs));
        socket.set_nonblocking(true)?;
        let mut socket = UnixStream::from_std(socket)?;
        // A program may run for long. Meanwhile nothing of its request is kept but the environment.
        for block in [serde_json::to_vec(&spec)?, request] {
            let length = u32::try_from(block.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
            socket.write_all(&length.to_le_bytes()).await?;
            socket.write_all(&block).await?;
        }
        let (broker, ours, started) = (
            self.clone(),
            UnixStream::from_std(ours.into())?,
            Arc::new(Origin {
                env: spec.env,
                shell: false,
                caller: origin.caller.clone(),
                script: origin.script.clone(),
                every_program: origin.every_program.clone(),
                own_folders: own_folders.clone(),
            }),
        );
        let _running = Running::new(&self.origins, pid, started.clone());
        tokio::spawn(async move {
            // Serve until the program and all its descendants are gone.
            let _ = broker.serve(ours, started).await;
        });
        let mut error = String::new();
        // The socket closes when the program starts. Before that the launcher reports errors on it.
        let _ = socket.read_to_string(&mut error).await;
        drop((socket, turn));
        // The next program is most likely of the same kind.
        self.prepare(&prepared);
        if !error.is_empty() {
            return Err(io::Error::other(error));
        }
        let status = tokio::select! {
            // Check for the end first: afterwards the pid may be another process's.
            biased;
            status = &mut ended => status,
            () = hung_up(trampoline) => {
                end(pid, Signal::TERM);
                match timeout(GRACE, &mut ended).await {
                    Ok(status) => status,
                    Err(_) => {
                        // Processes that were not found end with the run.
                        let _ = tree::kill_below(pid);
                        end(pid, Signal::KILL);
                        ended.await
                    }
                }
            }
        };
        // Its own folder goes with it, unless something that it has started is left.
        drop(own_folders);
        let status = ExitStatus::from_raw(status.map_err(io::Error::other)?.as_raw());
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(u8::try_from(code).unwrap_or(u8::MAX))
    }

    /// Ensures that a launcher waits for the next program with this domain.
    fn prepare(&self, domain: &Domain) {
        let mut spare = lock(&self.spare);
        if spare.iter().any(|launcher| launcher.domain == *domain) {
            return;
        }
        if spare.len() >= SPARE {
            // The launcher ends when its socket closes.
            spare.remove(0);
        }
        match self.launcher(domain) {
            Ok(launcher) => spare.push(launcher),
            Err(error) => tracing::warn!(%error, "no launcher could be started ahead"),
        }
    }

    fn take_spare(&self, domain: &Domain) -> Option<Launcher> {
        let mut spare = lock(&self.spare);
        let at = spare.iter().position(|launcher| launcher.domain == *domain)?;
        Some(spare.remove(at))
    }

    fn launcher(&self, domain: &Domain) -> io::Result<Launcher> {
        let (mut ours, theirs) = BlockingStream::pair()?;
        wire::write_block(&mut ours, &serde_json::to_vec(domain)?)?;
        let mut programs = lock(&self.programs);
        if programs.closed {
            return Err(io::Error::other("the run ends"));
        }
        let child = Command::new("/proc/self/exe")
            .args(program::arguments())
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let (sender, ended) = oneshot::channel();
        // The lock is held since the start: the main thread may notice the end at once.
        programs.ended.insert(child.id(), sender);
        Ok(Launcher { domain: domain.clone(), pid: child.id(), ended, socket: ours })
    }
}

/// The entry of a running program in the origins, removed on drop.
struct Running<'a> {
    origins: &'a Mutex<HashMap<u32, Arc<Origin>>>,
    pid: u32,
}

impl<'a> Running<'a> {
    fn new(origins: &'a Mutex<HashMap<u32, Arc<Origin>>>, pid: u32, origin: Arc<Origin>) -> Self {
        lock(origins).insert(pid, origin);
        Self { origins, pid }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(self.origins).remove(&self.pid);
    }
}

/// Returns the ancestors of a connection's process.
///
/// # Errors
/// If the process is not below this one. Programs of other runs can find the socket, and flood it.
fn ancestors(socket: &UnixStream) -> io::Result<Vec<u32>> {
    let peer = socket.peer_cred()?.pid().and_then(|pid| u32::try_from(pid).ok()).ok_or(io::ErrorKind::NotFound)?;
    let above = tree::ancestors(peer)?;
    if above.contains(&std::process::id()) { Ok(above) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Returns the variables that differ from the clean environment of the shell or program. Missing ones are not reported, since a
/// program gets them all the same.
fn changed(env: &[(OsString, OsString)], clean: &Environment) -> Environment {
    let lossy = |text: &OsString| text.to_string_lossy().into_owned();
    env.iter()
        .map(|(name, value)| (lossy(name), lossy(value)))
        .filter(|(name, _)| !OF_BASH.contains(&name.as_str()))
        .filter(|(name, value)| {
            clean.get(name).is_none_or(|own| value != own && !(name == "PATH" && adds_to(own, value)))
        })
        .collect()
}

/// Returns whether a `PATH` is another one with folders before or behind it, as `git` and `npm` make it. The additions have no effect,
/// as each program gets its own `PATH`.
fn adds_to(path: &str, longer: &str) -> bool {
    format!(":{longer}:").contains(&format!(":{path}:"))
}

/// The first message of a connection: `ROLE TOKEN`, and on further lines a shell's script.
struct Hello<'a> {
    role: &'a [u8],
    token: &'a [u8],
    script: &'a [u8],
}

impl<'a> Hello<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let (head, rest) = bytes.split_at(end);
        let at = head.iter().position(|byte| *byte == b' ')?;
        Some(Self { role: &head[..at], token: &head[at + 1..], script: rest.get(1..).unwrap_or_default() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signals a child of the runner. The child must not be reaped yet, so that the pid is still its own.
fn end(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // The child may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// Waits until the trampoline has ended. It sends nothing more.
async fn hung_up(trampoline: &UnixStream) {
    let mut rest = [0; 64];
    loop {
        if trampoline.readable().await.is_err() {
            return;
        }
        match trampoline.try_read(&mut rest) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}

async fn receive(socket: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    loop {
        socket.readable().await?;
        match socket.try_io(Interest::READABLE, || wire::receive_with(socket, bytes)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return received,
        }
    }
}

async fn read_block(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Returns whether the script is one of the client's own, which starts no program.
fn is_of_client(script: &[u8]) -> bool {
    script == b"env" || script.starts_with(shell::SNAPSHOT)
}
