//! [`Connection`]: one connection of a client, its phases, and its handling of events.
//!
//! Modules of data, lowest layer first:
//!
//! | file | contents |
//! |---|---|
//! | `flags.rs` | the flags that threads set, and the ownership of the connection |
//! | `logged_request.rs` | fields of a request's head for the access log |
//! | `exchange.rs` | the properties of a request that its response needs |
//! | `head.rs` | response heads |
//! | `answer.rs`, `stream.rs` | a response; a response that is a row stream |
//! | `body_reader.rs` | a request body that is being received |
//! | `pending.rs` | a request whose handler is called before its body is received |
//! | `borrowed_output.rs` | the output queue and the socket while they are lent to a handler |
//! | `mod.rs` | the connection and its phases |
//!
//! Modules of steps, each with methods of `Drive`, which refers to the connection and its server:
//!
//! | file | contents |
//! |---|---|
//! | `drive.rs` | the loop over the steps; deadlines; the end of a connection |
//! | `input.rs` | parses received bytes as requests and calls the handler |
//! | `body.rs` | request bodies |
//! | `handler_call.rs` | handlers that run before the body of their request has arrived |
//! | `respond.rs` | responses of known length, error responses, reports to the access log |
//! | `items.rs` | response bodies that a handler produces item by item |
//! | `writer.rs` | responses that a handler begins while it runs |
//! | `stream_steps.rs` | row streams: fills and sends chunks; marks the end or an error |

mod answer;
mod body;
mod body_reader;
mod borrowed_output;
mod drive;
mod exchange;
pub(crate) mod flags;
mod handler_call;
mod head;
mod input;
mod items;
mod logged_request;
mod pending;
mod respond;
mod stream;
mod stream_steps;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use onecopy_wire::lock::lock;

use onecopy_wire::http::{HeadLimits, HeadParser};

use crate::config::Limits;
use crate::output_queue::OutQueue;
use crate::response::Response;
use crate::sys::{Epoll, Interest};
use crate::timers::NEVER;
use crate::transport::Transport;
use crate::workers::{Fill, FillTarget};
use answer::{Answer, ItemStream};
use body_reader::BodyReader;
use borrowed_output::BorrowedOutput;
use flags::{ConnectionFlags, OWNED, WRITER_WAITS};
use pending::PendingHandler;
use stream::ActiveStream;

pub(crate) use drive::drive;
pub(crate) use items::flush_borrowed_outputs;
pub(crate) use logged_request::LoggedRequest;

/// A connection of a client, which all threads of the server may access.
///
/// A thread with an event for the connection calls [`Connection::raise`]. If `raise` returns
/// `true`, this thread owns the connection, and performs its steps or passes it to another thread.
/// Before the owner releases the connection, it checks for new flags. So no flag is lost, and no
/// two threads perform steps of one connection.
pub(crate) struct Connection {
    pub(crate) token: u64,
    /// The deadline of the connection. The next field, `timer_at_ms`, is the time of the
    /// connection's entry in the timers, which may be earlier than the deadline (see
    /// `Shared::set_deadline`).
    pub(crate) deadline_ms: AtomicU64,
    pub(crate) timer_at_ms: AtomicU64,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    flags: ConnectionFlags,
    fill: Mutex<Option<Fill>>,
    /// The result of a handler that was called before the body of its request was received. The
    /// outer `None` means that the handler has not returned, the inner `None` that it has panicked.
    answer: Mutex<Option<Box<Option<Response>>>>,
    /// The output queue and the socket while they are lent to a handler, otherwise `None`.
    borrowed_output: Mutex<Option<BorrowedOutput>>,
    /// The condition variable of the lock `borrowed_output`. It wakes the handler's thread when the
    /// handler may continue to write its response.
    output_changed: Condvar,
    /// `true` if a handler, which was called before the body of its request was received, requests
    /// the connection in order to begin its response. The thread of the handler then gets the
    /// ownership of the connection.
    is_wanted: AtomicBool,
    /// `true` if the connection ended before the handler's thread got the ownership of it.
    is_refused: AtomicBool,
    /// The state that only the owner of the connection accesses. No other thread locks it, so no
    /// thread waits for this lock.
    state: Mutex<ConnectionState>,
}

/// The state of a connection that only its owner accesses.
struct ConnectionState {
    /// The socket; `None` after it was closed.
    socket: Option<Transport>,
    phase: Phase,
    /// The parser of request heads; `None` while it parses a head.
    parser: Option<Box<HeadParser>>,
    /// The bytes that were read and not processed yet.
    input: Vec<u8>,
    /// `true` if `input` may contain a complete request that has not been parsed.
    look_at_input: bool,
    out: OutQueue,
    /// The responses whose last byte was not yet passed to the kernel.
    answers: VecDeque<Answer>,
    /// `true` after epoll has reported that the socket is readable, until a read finds it empty.
    readable: bool,
    peer_closed: bool,
    /// `true` if the kernel accepted no more bytes at the last attempt.
    blocked: bool,
    /// `true` until the first request was read. The time limit of the first request starts when the
    /// connection is opened, and not at its first byte.
    fresh: bool,
    /// `true` if too many connections were open when this one was accepted: its request gets a 503.
    busy: bool,
    /// `true` if the connection is closed after the queued responses, and no further request is
    /// read.
    close_after: bool,
    /// `true` if the body of a response was shorter than its announced length. The alert
    /// close_notify of TLS is then not sent, because it would mark the body as complete.
    fell_short: bool,
    timer_due: bool,
    cut: bool,
    /// `true` if a worker has filled a chunk that was not processed yet.
    filled: bool,
    /// `true` if a handler has delivered a response or requests the connection, and the owner of
    /// the connection has not processed this yet.
    answered: bool,
    /// The deadline of the current phase. The next field, `stall_ms`, is the deadline for the
    /// client to read queued bytes. The two deadlines are in milliseconds of the server's clock.
    phase_ms: u64,
    stall_ms: u64,
    /// The time of the last read from the socket, in microseconds. In the access log and the
    /// metrics, the requests in the bytes of this read start at this time.
    read_us: u64,
    /// The response of a connection that was closed while a worker filled a chunk. It is reported
    /// when the worker returns.
    orphan: Option<Answer>,
}

enum Phase {
    /// The connection is between requests, or inside a request head.
    Head,
    /// The connection receives a request body.
    Body(Box<BodyReader>),
    /// A handler runs, or waits for a thread, before the body of its request was received.
    Called(Box<PendingHandler>),
    /// A response body is sent whose items the handler produces one by one.
    Items(Box<ItemStream>),
    /// A row stream is sent.
    Stream(Box<ActiveStream>),
    /// The sending side is closed. The connection is not closed until the peer has closed its side,
    /// because an earlier close could discard the last response.
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
            borrowed_output: Mutex::new(None),
            output_changed: Condvar::new(),
            is_wanted: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
            state: Mutex::new(ConnectionState {
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

    /// Sets the socket of the connection and registers it with epoll. `deadline_ms` is the deadline
    /// for the first request head.
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

    /// Sets `flags`. Returns `true` if no thread owned the connection; the caller then owns it.
    pub(crate) fn raise(&self, flags: u32) -> bool {
        let before = self.flags.raise(flags);
        if before & WRITER_WAITS != 0 {
            self.wake_writer();
        }
        before & OWNED == 0
    }

    /// Wakes a handler's thread that waits to write its response, so that it checks the flags
    /// again.
    pub(crate) fn wake_writer(&self) {
        drop(lock(&self.borrowed_output));
        self.output_changed.notify_all();
    }

    /// Requests the ownership of the connection for the calling thread. The caller must then raise
    /// [`ANSWERED`].
    fn request_output(&self) {
        self.is_refused.store(false, Ordering::SeqCst);
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    fn takes_output_request(&self) -> bool {
        self.is_wanted.swap(false, Ordering::SeqCst)
    }

    /// Rejects the request that [`Connection::request_output`] made, because the connection has
    /// ended.
    fn refuse_output_request(&self) {
        self.is_refused.store(true, Ordering::SeqCst);
        self.wake_writer();
    }

    fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::SeqCst)
    }

    /// Returns `true` if the queue and the socket are lent to a handler, whose thread owns the
    /// connection.
    fn is_lent(&self) -> bool {
        lock(&self.borrowed_output).is_some()
    }

    /// Stores the response of a handler that was called before the body of its request was
    /// received; `None` if the handler panicked. The caller must then raise [`ANSWERED`].
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
    /// Stores the chunk that a worker has filled, with its source. The caller must then raise
    /// [`FILLED`].
    fn put_fill(&self, fill: Fill) {
        *lock(&self.fill) = Some(fill);
    }
}
