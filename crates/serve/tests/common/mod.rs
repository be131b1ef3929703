//! A server on a free port with a manual clock, a raw client, and a scripted chunk source.
#![allow(dead_code, unused_imports, unreachable_pub, clippy::unwrap_used)] // Each test file uses its part, as a module of its own.

mod client;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use onecopy_serve::config::OnAccess;
use onecopy_serve::{
    Address, Chunks, Clock, Config, Error, FnHandler, Handle, Handler, Outcome, Request, Response,
    Server, Socket, Stopped, StreamEnd,
};
use onecopy_text::{ByteSink, Chunk};
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

pub use client::{Answer, Client};

/// The longest time that a test waits for an event. A test fails if this time passes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A clock that only the test advances.
#[derive(Default)]
pub struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A line of the access log, in parsed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub method: String,
    pub path: String,
    pub status: u16,
    pub n_bytes: u64,
    pub n_rows: Option<u64>,
    pub outcome: Outcome,
}

impl HandClock {
    pub fn advance_ms(&self, by: u64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

/// Pseudo-random numbers (xorshift), which are the same in each run.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

pub struct TestServer {
    pub address: SocketAddr,
    pub handle: Handle,
    pub clock: Arc<HandClock>,
    pub log: Receiver<Line>,
    run: Option<JoinHandle<Result<Stopped, Error>>>,
}

impl TestServer {
    pub fn start(handler: impl Handler) -> TestServer {
        TestServer::with(Config::default(), handler)
    }

    pub fn with(config: Config, handler: impl Handler) -> TestServer {
        let (config, clock, log) = watched(config);
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        TestServer::run(socket, config, clock, log, handler)
    }

    /// Starts a server that listens at the unix socket `path`.
    pub fn at_path(path: &Path, config: Config, handler: impl Handler) -> TestServer {
        let (config, clock, log) = watched(config);
        let socket = Socket::bind(Address::Unix(path.to_owned())).unwrap();
        TestServer::run(socket, config, clock, log, handler)
    }

    /// Starts a server with the configuration that `make` returns. The configuration must call the
    /// argument of `make` with each request.
    pub fn reporting(make: impl FnOnce(OnAccess) -> Config, handler: impl Handler) -> TestServer {
        let (reported, log) = line_channel();
        let (config, clock) = by_hand(make(reported));
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        TestServer::run(socket, config, clock, log, handler)
    }

    fn run(
        socket: Socket,
        config: Config,
        clock: Arc<HandClock>,
        log: Receiver<Line>,
        handler: impl Handler,
    ) -> TestServer {
        let address = socket.address().ip();
        let address = address.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        let server = Server::on(socket, config).unwrap();
        let handle = server.handle();
        let run = std::thread::spawn(move || server.run(handler));
        TestServer {
            address,
            handle,
            clock,
            log,
            run: Some(run),
        }
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Advances the clock, and makes the server read it.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap();
        self.clock.advance_ms(by);
        self.handle.wake();
    }

    /// Waits for the next line of the access log.
    pub fn line(&self) -> Line {
        self.log.recv_timeout(PATIENCE).expect("a line of the log")
    }

    /// Waits until the server has ended, and returns the result of its run.
    pub fn join(mut self) -> Stopped {
        let run = self.run.take().unwrap();
        run.join().unwrap().unwrap()
    }

    pub fn stop(self) -> Stopped {
        self.handle.stop();
        self.join()
    }
}

/// Returns `config` with a manual clock and an access log, the clock, and the receiver of the log's
/// lines.
fn watched(mut config: Config) -> (Config, Arc<HandClock>, Receiver<Line>) {
    let (reported, log) = line_channel();
    config.on_access = Some(reported);
    let (config, clock) = by_hand(config);
    (config, clock, log)
}

fn by_hand(mut config: Config) -> (Config, Arc<HandClock>) {
    let clock = Arc::new(HandClock::default());
    config.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    (config, clock)
}

/// Returns a function for [`Config::on_access`], and the receiver of the lines that it sends.
fn line_channel() -> (OnAccess, Receiver<Line>) {
    let (lines, log) = channel();
    let lines = Mutex::new(lines);
    let reported = move |a: &onecopy_serve::Access<'_>| {
        let line = Line {
            method: a.method.to_owned(),
            path: a.path.to_owned(),
            status: a.status,
            n_bytes: a.n_bytes,
            n_rows: a.n_rows,
            outcome: a.outcome,
        };
        let _ = lines.lock().unwrap().send(line);
    };
    (Arc::new(reported), log)
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.handle.cut();
        // In a failed test, a handler may still wait. The test must then print its message instead
        // of waiting for the handler.
        if let Some(run) = self.run.take().filter(|_| !std::thread::panicking()) {
            let _ = run.join();
        }
    }
}

/// Returns a handler that answers with the method, the target and the body of the request.
pub fn echo() -> impl Handler {
    struct Echo;
    impl Handler for Echo {
        fn handle(&self, request: Request<'_>) -> Response {
            let mut text = format!("{} {}|", request.method(), request.target()).into_bytes();
            text.extend_from_slice(request.body());
            Response::new(200).content_type("text/plain").body(text)
        }
        fn body_policy(&self, _: Request<'_>) -> onecopy_serve::BodyPolicy {
            onecopy_serve::BodyPolicy::Read
        }
    }
    Echo
}

/// The result of one fill of a [`ScriptSource`].
pub enum Act {
    Bytes(Vec<u8>),
    /// These last bytes, after this number of rows.
    Done(Vec<u8>, u64),
    Fail(ChunkErrorKind, &'static str),
    Panic,
    /// These bytes, in this fill and in each later one.
    Endless(Vec<u8>),
}

#[derive(Default)]
pub struct Play {
    acts: std::collections::VecDeque<Act>,
    pub n_fills: u64,
    filling: bool,
    cancelled: bool,
    dropped: bool,
    n_rows: u64,
}

/// The script of a [`ScriptSource`], by which a test controls the source.
#[derive(Clone, Default)]
pub struct Script(Arc<(Mutex<Play>, Condvar)>);

impl Script {
    pub fn of(acts: impl IntoIterator<Item = Act>) -> Script {
        let script = Script::default();
        for act in acts {
            script.act(act);
        }
        script
    }

    pub fn act(&self, act: Act) {
        self.0.0.lock().unwrap().acts.push_back(act);
        self.0.1.notify_all();
    }

    pub fn wait(&self, what: &str, until: impl Fn(&Play) -> bool) {
        let play = self.0.0.lock().unwrap();
        let (_play, timeout) = self
            .0
            .1
            .wait_timeout_while(play, PATIENCE, |play| !until(play))
            .unwrap();
        assert!(!timeout.timed_out(), "waited for: {what}");
    }

    pub fn wait_filling(&self) {
        self.wait("a fill", |p| p.n_fills > 0);
    }

    pub fn wait_cancelled(&self) {
        self.wait("the cancel", |p| p.cancelled);
    }

    pub fn wait_dropped(&self) {
        self.wait("the drop", |p| p.dropped);
    }

    pub fn n_fills(&self) -> u64 {
        self.0.0.lock().unwrap().n_fills
    }

    pub fn was_cancelled(&self) -> bool {
        self.0.0.lock().unwrap().cancelled
    }

    /// Returns a chunk source that performs this script. Each fill waits for the script's next
    /// [`Act`].
    pub fn source(&self) -> ScriptSource {
        ScriptSource(self.clone())
    }

    /// Returns a stream of this script's source, and the receiver of the stream's end.
    pub fn body(&self) -> (Chunks, Receiver<StreamEnd>) {
        let (ends, end) = channel();
        let chunks = Chunks::new(self.source()).on_end(move |e| {
            let _ = ends.send(e);
        });
        (chunks, end)
    }
}

pub struct ScriptSource(Script);

impl ChunkSource for ScriptSource {
    fn fill(&mut self, chunk: &mut Chunk) -> Result<Filled, ChunkError> {
        let (lock, changed) = &*self.0.0;
        let mut play = lock.lock().unwrap();
        play.filling = true;
        play.n_fills += 1;
        changed.notify_all();
        let mut play = changed
            .wait_while(play, |p| p.acts.is_empty() && !p.cancelled)
            .unwrap();
        play.filling = false;
        changed.notify_all();
        let fail = |kind, text: &str| {
            Err(ChunkError {
                kind,
                source: text.into(),
            })
        };
        if play.cancelled {
            return fail(ChunkErrorKind::Cancelled, "cancelled");
        }
        match play.acts.pop_front().unwrap() {
            Act::Bytes(bytes) => {
                play.n_rows += 1;
                chunk.put(&bytes).unwrap();
                Ok(Filled::More)
            }
            Act::Done(bytes, n_rows) => {
                play.n_rows = n_rows;
                chunk.put(&bytes).unwrap();
                Ok(Filled::Done)
            }
            Act::Fail(kind, text) => fail(kind, text),
            Act::Panic => {
                drop(play);
                panic!("as scripted");
            }
            Act::Endless(bytes) => {
                play.n_rows += 1;
                chunk.put(&bytes).unwrap();
                play.acts.push_front(Act::Endless(bytes));
                Ok(Filled::More)
            }
        }
    }

    fn cancel_handle(&self) -> CancelHandle {
        let script = self.0.clone();
        CancelHandle::new(move || {
            script.0.0.lock().unwrap().cancelled = true;
            script.0.1.notify_all();
        })
    }

    fn n_rows(&self) -> u64 {
        self.0.0.0.lock().unwrap().n_rows
    }
}

impl Drop for ScriptSource {
    fn drop(&mut self) {
        self.0.0.0.lock().unwrap().dropped = true;
        self.0.0.1.notify_all();
    }
}

/// Returns a handler, and the sender of the responses with which it answers requests for `/stream`.
/// Other paths are answered with a short text.
pub fn streaming() -> (Sender<Response>, impl Handler) {
    let (bodies, next) = channel::<Response>();
    let next = Mutex::new(next);
    let handler = FnHandler(move |request: Request<'_>| match request.path() {
        "/stream" => {
            let next = next.lock().unwrap().recv_timeout(PATIENCE);
            next.expect("the test has sent a body")
        }
        _ => Response::new(200).content_type("text/plain").body("short"),
    });
    (bodies, handler)
}
