//! A server on a free port with a clock moved by hand, a raw client, and a chunk source that does what it is told.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // Each test file uses its part, as a module of its own.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use onecopy_serve::config::OnAccess;
use onecopy_serve::{
    Chunks, Clock, Config, Error, FnHandler, Handle, Handler, Outcome, Request, Response, Server,
    Stopped, StreamEnd,
};
use onecopy_text::{ByteSink, Chunk};
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

/// How long a test waits for what must come. Reaching it is a failure, never a pass.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A clock that stands until it is moved.
#[derive(Default)]
pub struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// What the access log said.
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

    pub fn with(mut config: Config, handler: impl Handler) -> TestServer {
        let make = |told| {
            config.on_access = Some(told);
            config
        };
        TestServer::telling(make, handler)
    }

    /// With the configuration that `make` makes; what it is given is to be told of each request.
    pub fn telling(make: impl FnOnce(OnAccess) -> Config, handler: impl Handler) -> TestServer {
        let (lines, log) = channel();
        let lines = Mutex::new(lines);
        let mut config = make(Arc::new(move |a: &onecopy_serve::Access<'_>| {
            let line = Line {
                method: a.method.to_owned(),
                path: a.path.to_owned(),
                status: a.status,
                n_bytes: a.n_bytes,
                n_rows: a.n_rows,
                outcome: a.outcome,
            };
            let _ = lines.lock().unwrap().send(line);
        }));
        let clock = Arc::new(HandClock::default());
        config.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
        let (address, handle) = (server.local_addr(), server.handle());
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

    /// Moves the clock and lets the server look at it.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap();
        self.clock.advance_ms(by);
        self.handle.wake();
    }

    /// The next line of the access log.
    pub fn line(&self) -> Line {
        self.log.recv_timeout(PATIENCE).expect("a line of the log")
    }

    /// Waits for the end of the run.
    pub fn join(mut self) -> Stopped {
        let run = self.run.take().unwrap();
        run.join().unwrap().unwrap()
    }

    pub fn stop(self) -> Stopped {
        self.handle.stop();
        self.join()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.handle.cut();
        // A test that failed may have left a handler waiting: its message must come out, not a hang.
        if let Some(run) = self.run.take().filter(|_| !std::thread::panicking()) {
            let _ = run.join();
        }
    }
}

/// A handler that answers with the method, target and body it got.
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

/// A client that sends bytes as they are and reads answers with its own eyes.
pub struct Client {
    pub stream: BufReader<TcpStream>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    pub trailer: String,
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (n, value) = line.split_once(':')?;
            n.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream: BufReader::new(stream),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends as far as the server takes it: it may refuse and close before all is sent.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.get_mut().write_all(bytes.as_ref());
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.answer()
    }

    pub fn shut(&self) {
        self.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap();
        if line.is_empty() {
            return None;
        }
        assert!(line.ends_with(b"\r\n"), "line without end: {line:?}");
        line.truncate(line.len() - 2);
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    /// The head of an answer; `None` at the end of the connection.
    pub fn head(&mut self) -> Option<(u16, String)> {
        let first = self.line()?;
        let status = first.strip_prefix("HTTP/1.1 ").unwrap()[..3]
            .parse()
            .unwrap();
        let mut head = first + "\n";
        loop {
            let line = self.line().expect("the rest of the head");
            if line.is_empty() {
                return Some((status, head));
            }
            head += &line;
            head.push('\n');
        }
    }

    /// A whole answer to a request that was not HEAD.
    pub fn answer(&mut self) -> Answer {
        let (status, head) = self.head().expect("an answer");
        let mut answer = Answer {
            status,
            head,
            body: Vec::new(),
            trailer: String::new(),
        };
        if let Some(n) = answer.field("Content-Length") {
            answer.body = vec![0; n.parse().unwrap()];
            self.stream.read_exact(&mut answer.body).unwrap();
        } else if answer.field("Transfer-Encoding") == Some("chunked") {
            loop {
                let size = self.line().expect("a chunk size");
                let size = usize::from_str_radix(&size, 16).unwrap();
                if size == 0 {
                    break;
                }
                let at = answer.body.len();
                answer.body.resize(at + size, 0);
                self.stream.read_exact(&mut answer.body[at..]).unwrap();
                assert_eq!(self.line().as_deref(), Some(""));
            }
            loop {
                let line = self.line().expect("the end of the trailer");
                if line.is_empty() {
                    break;
                }
                answer.trailer += &line;
            }
        } else if !matches!(status, 204 | 304) {
            self.stream.read_to_end(&mut answer.body).unwrap();
        }
        answer
    }

    /// An answer, or nothing where the connection ended (by an end or a reset) before its first byte.
    pub fn answer_or_end(&mut self) -> Option<Answer> {
        match self.stream.fill_buf() {
            Ok([]) => None,
            Ok(_) => Some(self.answer()),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => None,
            Err(e) => panic!("{e}"),
        }
    }

    /// Reads on until what came since the last call ends with `end`.
    pub fn read_until(&mut self, end: &[u8]) {
        let mut come = Vec::new();
        while !come.ends_with(end) {
            let mut byte = [0];
            let n = self.stream.read(&mut byte).unwrap();
            assert_eq!(
                n,
                1,
                "the end came before {:?}: {:?}",
                end.escape_ascii(),
                come.escape_ascii()
            );
            come.push(byte[0]);
        }
    }

    /// All that comes up to the end of the connection, and whether that was a reset.
    pub fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        match self.stream.read_to_end(&mut all) {
            Ok(_) => (all, false),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => (all, true),
            Err(e) => panic!("{e}"),
        }
    }

    /// Asserts that the server closes without another byte.
    pub fn assert_closed(&mut self) {
        assert_eq!(self.rest(), (Vec::new(), false));
    }
}

/// What a [`Script`] tells its source to do in one fill.
pub enum Act {
    Bytes(Vec<u8>),
    /// The last bytes, after so many rows.
    Done(Vec<u8>, u64),
    Fail(ChunkErrorKind, &'static str),
    Panic,
    /// These bytes in each fill, for ever.
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

/// The test's end of a source.
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

    /// The server's end: what it fills is what the test acts.
    pub fn source(&self) -> ScriptSource {
        ScriptSource(self.clone())
    }

    /// A body of it, whose end goes to the receiver.
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
                panic!("as told");
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

/// A handler whose `/stream` takes the bodies that the test sends it, in order; `/` is a short text.
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
