//! One connection: what it is doing, and how it goes on when something happens.
//!
//! Data, from the bottom:
//!
//! | file | what it holds |
//! |---|---|
//! | `flags.rs` | the flags others leave, and who owns the connection |
//! | `names.rs` | fields of a request's head for the access log |
//! | `exchange.rs`, `head.rs` | what an answer must know of its request; response heads |
//! | `answer.rs`, `stream.rs` | an answer, one made item by item, a stream |
//! | `body_reader.rs`, `pending.rs` | a request body that is received; a request whose handler runs before that |
//! | `loan.rs` | the output while a handler has the connection |
//! | `mod.rs` | the connection and its phases |
//!
//! Steps, each a method of `Drive`, which has the connection and the server it belongs to:
//!
//! | file | what it holds |
//! |---|---|
//! | `drive.rs` | the order of steps, deadlines, its end |
//! | `input.rs` | bytes to requests, requests to the handler |
//! | `body.rs` | request bodies |
//! | `called.rs` | handlers that run before their request's body has come |
//! | `respond.rs` | bodies of known length, refusals, the access log |
//! | `items.rs` | bodies made item by item; what waits while a handler has the connection |
//! | `writer.rs` | answers that a handler begins while it runs |
//! | `pump.rs` | streams: filling, sending, the end that cannot be mistaken |

mod answer;
mod body;
mod body_reader;
mod called;
mod drive;
mod exchange;
pub(crate) mod flags;
mod head;
mod input;
mod items;
mod loan;
mod names;
mod pending;
mod pump;
mod respond;
mod stream;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use onecopy_wire::http::{HeadLimits, HeadParser};

use crate::config::Limits;
use crate::lock;
use crate::out::OutQueue;
use crate::response::Response;
use crate::sys::{Epoll, Interest};
use crate::timers::NEVER;
use crate::transport::Transport;
use crate::workers::{Fill, FillTarget};
use answer::{Answer, ItemStream};
use body_reader::BodyReader;
use flags::{ConnectionFlags, OWNED, WRITER_WAITS};
use loan::Loan;
use pending::PendingHandler;
use stream::Stream;

pub(crate) use drive::drive;
pub(crate) use items::flush_lent;
pub(crate) use names::LoggedRequest;

/// A connection, as all threads see it.
///
/// Who finds work for it calls [`Connection::raise`]; if that says so, the caller owns the connection and drives it, or
/// gives it to a thread that does. The owner looks for new flags before it lets go, so none is lost and no two threads
/// are ever inside one connection.
pub(crate) struct Connection {
    pub(crate) token: u64,
    /// Where its deadline stands, and where its entry among the timers does; see `Shared::set_deadline`.
    pub(crate) deadline_ms: AtomicU64,
    pub(crate) timer_at_ms: AtomicU64,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    flags: ConnectionFlags,
    fill: Mutex<Option<Fill>>,
    /// The answer of a handler that was called before the body; `None` inside: it panicked.
    answer: Mutex<Option<Box<Option<Response>>>>,
    /// What waits to be sent while a handler has the connection.
    loan: Mutex<Option<Loan>>,
    /// With `loan`: notified when a writer has to look again.
    loan_changed: Condvar,
    /// A handler that was called before the body wants to begin its answer: the connection is to be
    /// handed over to its thread.
    is_wanted: AtomicBool,
    /// It was not, since the connection has ended.
    is_refused: AtomicBool,
    /// Locked by the owner alone, so it is never waited for.
    state: Mutex<State>,
}

/// What only the owner touches.
struct State {
    /// `None` once closed.
    socket: Option<Transport>,
    phase: Phase,
    /// Not here while a head is looked at.
    parser: Option<Box<HeadParser>>,
    /// Bytes read and not used yet.
    input: Vec<u8>,
    /// `input` may hold a whole request that was not looked at.
    look_at_input: bool,
    out: OutQueue,
    /// Answers whose last bytes are not all with the kernel.
    answers: VecDeque<Answer>,
    /// Edges seen and not used up.
    readable: bool,
    peer_closed: bool,
    /// The kernel took no more at the last try.
    blocked: bool,
    /// No request was read yet: the head's time runs since the connection was opened.
    fresh: bool,
    /// The server is full: each request on this connection is refused.
    busy: bool,
    /// No further request is read.
    close_after: bool,
    /// An answer was less than it said: TLS must not say that all was sent.
    fell_short: bool,
    timer_due: bool,
    cut: bool,
    /// A worker has put a fill down.
    filled: bool,
    /// A handler has put its answer down.
    answered: bool,
    /// Deadline of the phase, and of the bytes that wait to be sent.
    phase_ms: u64,
    stall_ms: u64,
    /// When bytes came last: since then the requests in them are there, whatever they wait for.
    read_us: u64,
    /// What waits for a worker that fills for a connection already closed.
    orphan: Option<Answer>,
}

enum Phase {
    /// Between requests, or inside a head.
    Head,
    /// Inside a request body.
    Body(Box<BodyReader>),
    /// A handler runs, and may ask for the body.
    Called(Box<PendingHandler>),
    /// Sending what is made item by item.
    Items(Box<ItemStream>),
    /// Sending a stream.
    Stream(Box<Stream>),
    /// Our side is closed; waiting for the peer to close his, so that the last answer is not lost by a reset.
    Linger,
    Closed,
}

impl Connection {
    pub(crate) fn new(
        token: u64,
        peer: Option<SocketAddr>,
        local: Option<SocketAddr>,
        limits: &Limits,
        busy: bool,
    ) -> Connection {
        Connection {
            token,
            deadline_ms: AtomicU64::new(NEVER),
            timer_at_ms: AtomicU64::new(NEVER),
            peer,
            local,
            flags: ConnectionFlags::default(),
            fill: Mutex::new(None),
            answer: Mutex::new(None),
            loan: Mutex::new(None),
            loan_changed: Condvar::new(),
            is_wanted: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
            state: Mutex::new(State {
                socket: None,
                phase: Phase::Head,
                parser: Some(Box::new(HeadParser::new(HeadLimits {
                    max_head_bytes: limits.head_bytes,
                    max_headers: limits.n_fields,
                    underscores: limits.underscores,
                    ..HeadLimits::default()
                }))),
                input: Vec::new(),
                look_at_input: false,
                out: OutQueue::default(),
                answers: VecDeque::new(),
                readable: false,
                peer_closed: false,
                blocked: false,
                fresh: true,
                busy,
                close_after: false,
                fell_short: false,
                timer_due: false,
                cut: false,
                filled: false,
                answered: false,
                phase_ms: NEVER,
                stall_ms: NEVER,
                read_us: 0,
                orphan: None,
            }),
        }
    }

    /// Gives the connection its socket and watches it. Its deadline is that of the first head.
    pub(crate) fn open(
        &self,
        socket: Transport,
        epoll: &Epoll,
        deadline_ms: u64,
    ) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.phase_ms = deadline_ms;
        epoll.add(&socket, self.token, Interest::AllEdges)?;
        state.socket = Some(socket);
        Ok(())
    }

    /// Leaves `flags`. `true` if nobody owned the connection: the caller does now.
    pub(crate) fn raise(&self, flags: u32) -> bool {
        let before = self.flags.raise(flags);
        if before & WRITER_WAITS != 0 {
            self.wake_writer();
        }
        before & OWNED == 0
    }

    /// Has a writer that waits look again.
    pub(crate) fn wake_writer(&self) {
        drop(lock(&self.loan));
        self.loan_changed.notify_all();
    }

    /// Has the connection handed over to the thread that calls this; to be followed by raising
    /// [`ANSWERED`].
    fn request_loan(&self) {
        self.is_refused.store(false, Ordering::SeqCst);
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    fn takes_loan_request(&self) -> bool {
        self.is_wanted.swap(false, Ordering::SeqCst)
    }

    /// The connection has ended before it was handed over.
    fn refuse_loan(&self) {
        self.is_refused.store(true, Ordering::SeqCst);
        self.wake_writer();
    }

    fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::SeqCst)
    }

    /// True if the queue and the socket are with a handler, whose thread owns the connection then.
    fn is_lent(&self) -> bool {
        lock(&self.loan).is_some()
    }

    /// Puts down what a handler has answered, `None` where it panicked; to be followed by raising [`ANSWERED`].
    fn put_answer(&self, response: Option<Response>) {
        *lock(&self.answer) = Some(Box::new(response));
    }

    fn take_answer(&self) -> Option<Option<Response>> {
        lock(&self.answer).take().map(|response| *response)
    }

    fn take_fill(&self) -> Option<Fill> {
        lock(&self.fill).take()
    }
}

impl FillTarget for Connection {
    /// Followed by raising [`FILLED`].
    fn put_fill(&self, fill: Fill) {
        *lock(&self.fill) = Some(fill);
    }
}
