//! [`Connection`]: a connection of a client, its phases, and the flags with which threads report
//! events.
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
/// A thread that has an event for the connection calls [`Connection::raise`]. If `raise` returns
/// `true`, this thread becomes the owner of the connection, and it performs the connection's steps
/// or passes the connection to another thread. The owner checks for new flags before it gives up
/// the ownership. Therefore no flag is lost, and no two threads perform steps of the same
/// connection.
pub(crate) struct Connection {
    pub(crate) token: u64,
    /// The deadline of the connection, in milliseconds of the server's clock. The next field,
    /// `timer_at_ms`, is the time of the connection's entry in the timers, which may be earlier
    /// than the deadline (see `Shared::set_deadline`).
    pub(crate) deadline_ms: AtomicU64,
    pub(crate) timer_at_ms: AtomicU64,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    flags: ConnectionFlags,
    fill: Mutex<Option<Fill>>,
    /// The result of a handler that was called before the body of its request was received. `None`
    /// means that the handler has not returned, and `Some` of `None` means that it has panicked.
    answer: Mutex<Option<Box<Option<Response>>>>,
    /// The output queue and the socket while they are lent to a handler, otherwise `None`.
    borrowed_output: Mutex<Option<BorrowedOutput>>,
    /// The condition variable of the mutex `borrowed_output`. The handler's thread waits on it
    /// until the handler may continue to write its response.
    output_changed: Condvar,
    /// `true` if a handler requests the ownership of the connection in order to begin its response.
    /// The handler was called before the body of its request was received, and its thread does not
    /// own the connection yet.
    is_wanted: AtomicBool,
    /// `true` if the connection ended after the handler's thread requested the ownership of it, and
    /// before the thread got it.
    is_refused: AtomicBool,
    /// The state that only the owner of the connection accesses. The owner is the only thread that
    /// locks it, so locking never waits.
    state: Mutex<ConnectionState>,
}

/// The part of a connection's state that only the thread that owns the connection accesses.
struct ConnectionState {
    /// The socket; `None` after it was closed.
    socket: Option<Transport>,
    phase: Phase,
    /// The parser of request heads; `None` only during a call to the parser.
    parser: Option<Box<HeadParser>>,
    /// The bytes that were read from the socket and not processed yet.
    input: Vec<u8>,
    /// `true` if `input` may contain a complete request that has not been parsed.
    look_at_input: bool,
    out: OutQueue,
    /// The responses of which at least the last byte was not yet passed to the kernel.
    answers: VecDeque<Answer>,
    /// `true` after epoll has reported that the socket is readable, until a read finds the socket
    /// empty.
    readable: bool,
    /// Becomes `true` when epoll reports that the peer has closed its sending side, and `false`
    /// again when a later read finds the socket empty.
    peer_closed: bool,
    /// `true` if both sides of the connection are closed, or if the connection has failed.
    hung_up: bool,
    /// `true` if the kernel did not accept all bytes at the last attempt to send.
    blocked: bool,
    /// `true` until the head of the first request was received. The time limit for this head starts
    /// when the connection is opened. For later requests, it starts at the first byte of the head.
    fresh: bool,
    /// `true` if too many connections were open when this one was accepted. Its first request then
    /// gets the status 503.
    busy: bool,
    /// `true` if no further request is read, and the connection is closed after the queued
    /// responses were sent.
    close_after: bool,
    /// `true` if a response had fewer body bytes than announced. With TLS, the alert close_notify
    /// is then not sent, because it would mark the body as complete.
    fell_short: bool,
    timer_due: bool,
    cut: bool,
    /// `true` if a worker thread has filled a chunk that the thread that owns the connection has
    /// not processed yet.
    filled: bool,
    /// `true` from the time when a handler delivers its response, or requests the ownership of the
    /// connection, until the current owner has processed this event.
    answered: bool,
    /// The deadline of the connection's current phase (such as receiving a head or a body), in
    /// milliseconds of the server's clock. The next field, `stall_ms`, is the deadline until which
    /// the client must have read some of the queued bytes.
    phase_ms: u64,
    stall_ms: u64,
    /// The time of the last read from the socket, in microseconds of the server's clock. The access
    /// log and the metrics treat it as the start of the requests whose bytes were read.
    read_us: u64,
    /// The response that was in progress when its connection was closed, if a worker was filling a
    /// chunk at that time. The response is reported after the worker has delivered the chunk, and
    /// the source of the chunk was dropped.
    orphan: Option<Answer>,
}

enum Phase {
    /// The connection is between requests, or inside a request head.
    Head,
    /// The connection receives a request body.
    Body(Box<BodyReader>),
    /// A handler runs, or waits for a thread, before the body of its request was received.
    Called(Box<PendingHandler>),
    /// The connection sends a response body that the handler produces item by item.
    Items(Box<ItemStream>),
    /// The connection sends a row stream.
    Stream(Box<ActiveStream>),
    /// The sending side is closed, and the server waits for the peer to close its side. If the
    /// server closed the connection completely before that, the last response could be lost.
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
                hung_up: false,
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

    /// Stores the socket of the connection and registers it with epoll. `deadline_ms` is the
    /// deadline for the head of the first request.
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

    /// Sets `flags` of the connection. Returns `true` if no thread owned the connection before this
    /// call. The caller owns the connection then.
    pub(crate) fn raise(&self, flags: u32) -> bool {
        let before = self.flags.raise(flags);
        if before & WRITER_WAITS != 0 {
            self.wake_writer();
        }
        before & OWNED == 0
    }

    /// Wakes the handler's thread if it is waiting to write its response. The thread then checks
    /// the connection's flags again.
    pub(crate) fn wake_writer(&self) {
        drop(lock(&self.borrowed_output));
        self.output_changed.notify_all();
    }

    /// Requests the ownership of the connection for the calling thread. The caller must then set
    /// the flag [`ANSWERED`] by [`Connection::raise`], so that the owner notices the request.
    fn request_output(&self) {
        self.is_refused.store(false, Ordering::SeqCst);
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    fn takes_output_request(&self) -> bool {
        self.is_wanted.swap(false, Ordering::SeqCst)
    }

    /// Rejects the request for the ownership that [`Connection::request_output`] has made, because
    /// the connection has ended.
    fn refuse_output_request(&self) {
        self.is_refused.store(true, Ordering::SeqCst);
        self.wake_writer();
    }

    fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::SeqCst)
    }

    /// Returns `true` if the output queue and the socket are lent to a handler. The thread of this
    /// handler then owns the connection.
    fn is_lent(&self) -> bool {
        lock(&self.borrowed_output).is_some()
    }

    /// Stores the response of a handler that was called before the body of its request was
    /// received. `None` means that the handler panicked. The caller must then set the flag
    /// [`ANSWERED`] by [`Connection::raise`].
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
    /// Stores the chunk that a worker has filled, and the chunk's source. The caller must then set
    /// the flag [`FILLED`].
    fn put_fill(&self, fill: Fill) {
        *lock(&self.fill) = Some(fill);
    }
}
