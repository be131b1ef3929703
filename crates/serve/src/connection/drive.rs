//! [`Drive`]: the state machine of a connection. This file has the loop that performs its steps,
//! and the steps for deadlines and for the end of the connection.

use std::io;
use std::mem;
use std::sync::Arc;

use onecopy_wire::lock::lock;

use super::exchange::CutReason;
use super::flags::{ANSWERED, CUT, FILLED, HUNG_UP, PEER_SHUT, READABLE, STOP, TIMER, WRITABLE};
use super::pending::HandlerCall;
use super::writer::HandlerConnection;
use super::{Connection, ConnectionState, Phase};
use crate::guard;
use crate::output_queue::Flushed;
use crate::request::{Request, RequestBody};
use crate::response::Response;
use crate::shared::Shared;
use crate::thread_kit::ThreadKit;
use crate::timers::{NEVER, millis};
use crate::transport::Transport;
use crate::workers::{FillHost, Workers};

/// The largest number of steps that a thread performs on one connection before it serves other
/// connections. The limit prevents one busy client from occupying the thread.
const MAX_STEPS: u32 = 256;

/// The result of a step, which determines how the step loop continues.
pub(super) enum NextStep {
    /// The loop continues with another step.
    Again,
    /// The step loop ends, because the connection can only continue after a thread has set one of
    /// its flags.
    Wait,
    /// This thread ends its loop over the steps of the connection, and queues the connection for
    /// another thread of the server, which performs the next steps.
    Elsewhere,
    /// The loop ends, because no thread is free to run the handler. The connection keeps its owner
    /// flag and waits in the scheduler until a running handler returns.
    Deferred,
    /// The step loop ends and the connection is released. The thread that ran the loop then runs
    /// the handler.
    Call(Box<HandlerCall>),
    /// The loop ends, because the thread of a running handler now owns the connection.
    HandedOver,
}

/// The arguments of the steps of a connection: the state of the connection, and references to the
/// connection, to the server and to the memory of the thread that performs the steps.
pub(super) struct Drive<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) connection: &'a Arc<Connection>,
    pub(super) kit: &'a mut ThreadKit,
    pub(super) state: &'a mut ConnectionState,
}

/// Performs the steps of a connection that the calling thread owns, until the connection must wait
/// for an event. The calling thread then gives up the ownership.
pub(crate) fn drive(shared: &Arc<Shared>, connection: &Arc<Connection>, kit: &mut ThreadKit) {
    kit.now_ms = shared.now_ms();
    let mut state = lock(&connection.state);
    loop {
        state.note(connection.flags.take_all());
        let mut drive = Drive {
            shared,
            connection,
            kit,
            state: &mut state,
        };
        let mut n_steps = 0;
        let last = loop {
            match drive.step() {
                // A client that sends without a pause must not occupy the thread permanently.
                NextStep::Again if n_steps == MAX_STEPS => break NextStep::Elsewhere,
                NextStep::Again => n_steps += 1,
                NextStep::Deferred | NextStep::HandedOver => return,
                last => break last,
            }
        };
        shared.set_deadline(connection, state.deadline_ms());
        match last {
            NextStep::Call(call) => {
                drop(state);
                if !connection.flags.release() {
                    shared.queue(Arc::clone(connection));
                }
                let response = run_call(*call, shared, connection);
                if connection.is_lent() {
                    kit.now_ms = shared.now_ms();
                    state = lock(&connection.state);
                    let mut drive = Drive {
                        shared,
                        connection,
                        kit,
                        state: &mut state,
                    };
                    drive.end_begun(response);
                    continue;
                }
                connection.put_answer(response);
                if !connection.raise(ANSWERED) {
                    return; // The thread that owns the connection finds the answer.
                }
                kit.now_ms = shared.now_ms();
                state = lock(&connection.state);
            }
            NextStep::Elsewhere => {
                drop(state);
                return shared.queue(Arc::clone(connection));
            }
            _ if connection.flags.release() => return,
            _ => {}
        }
    }
}

/// Runs the handler for `call`. [`crate::scheduler::Scheduler::enter_handler`] must have reserved a
/// thread for it. Returns `None` if the handler panicked.
fn run_call(
    call: HandlerCall,
    shared: &Arc<Shared>,
    connection: &Arc<Connection>,
) -> Option<Response> {
    let head = call.index.view(&call.head);
    let request = Request::parsed(head, &[], connection.peer, connection.local);
    let origin = HandlerConnection { shared, connection };
    let request = request.from(shared.begins_early.then_some((&origin, None)));
    let body = RequestBody::Awaited(call.body);
    let response = guard(|| shared.handler.handle_body(request, body));
    shared.scheduler.leave_handler();
    response
}

/// Sets `flags` for `connection`. If no thread owns the connection, the calling thread becomes its
/// owner and handles the flags.
pub(super) fn signal_and_drive(
    shared: &Arc<Shared>,
    connection: &Arc<Connection>,
    flags: u32,
    kit: &mut ThreadKit,
) {
    if connection.raise(flags) {
        drive(shared, connection, kit);
    }
}

impl FillHost for Shared {
    type Target = Connection;
    type Kit = ThreadKit;

    fn workers(&self) -> &Workers<Connection> {
        &self.workers
    }

    fn spawn_worker(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.spawn(name, run)
    }

    fn worker_kit() -> ThreadKit {
        ThreadKit::of_worker()
    }

    fn signal_fill(&self, connection: &Arc<Connection>) {
        self.signal(connection, FILLED);
    }

    fn drive_fill(self: &Arc<Self>, connection: &Arc<Connection>, kit: &mut ThreadKit) {
        signal_and_drive(self, connection, FILLED, kit);
    }
}

impl ConnectionState {
    fn note(&mut self, flags: u32) {
        self.readable |= flags & READABLE != 0;
        if flags & (WRITABLE | HUNG_UP) != 0 {
            self.blocked = false; // If the connection has failed, the next attempt reports it.
        }
        self.peer_closed |= flags & (PEER_SHUT | HUNG_UP) != 0;
        self.hung_up |= flags & HUNG_UP != 0;
        self.timer_due |= flags & TIMER != 0;
        self.cut |= flags & CUT != 0;
        self.filled |= flags & FILLED != 0;
        self.answered |= flags & ANSWERED != 0;
        if flags & STOP != 0 {
            // The socket may contain a request that no event has reported yet. It is read once more
            // before an idle connection is closed.
            self.readable = true;
        }
    }

    /// Returns `true` if no byte of the next request has been received. An empty line before the
    /// request line does not count.
    pub(super) fn is_idle(&self) -> bool {
        let parser = self.parser.as_ref();
        let has_begun = || self.look_at_input || parser.is_some_and(|p| p.has_begun());
        matches!(self.phase, Phase::Head) && (self.input.is_empty() || !has_begun())
    }

    fn deadline_ms(&self) -> u64 {
        match self.phase {
            Phase::Closed => NEVER,
            _ if !self.out.is_empty() => self.stall_ms,
            // The server limits neither the duration of a query nor that of a handler. A handler
            // can set its own limit.
            Phase::Called(_) | Phase::Stream(_) | Phase::Items(_) => NEVER,
            _ => self.phase_ms,
        }
    }
}

impl Drive<'_> {
    fn step(&mut self) -> NextStep {
        if mem::take(&mut self.state.answered) && self.end_call() {
            return NextStep::HandedOver;
        }
        let in_stream = matches!(self.state.phase, Phase::Stream(_));
        let in_items = matches!(self.state.phase, Phase::Items(_));
        if !in_stream && mem::take(&mut self.state.filled) {
            self.late_fill();
        }
        if matches!(self.state.phase, Phase::Closed) {
            return NextStep::Wait;
        }
        if self.state.cut {
            self.end(CutReason::Stopped);
            return NextStep::Again;
        }
        if !self.state.out.is_empty() && !self.state.blocked && !self.flush() {
            self.end(CutReason::Client);
            return NextStep::Again;
        }
        if !self.state.out.is_empty() && !self.state.blocked {
            return NextStep::Elsewhere; // Other connections are served first.
        }
        if self.state.out.is_empty() && !self.state.blocked && !self.settle() {
            self.end(CutReason::Client);
            return NextStep::Again;
        }
        if self.state.hung_up && (in_stream || in_items) {
            self.end(CutReason::Client);
            return NextStep::Again;
        }
        if self.state.peer_closed && in_stream {
            self.leave_stream();
            return NextStep::Again;
        }
        if mem::take(&mut self.state.timer_due) && self.state.deadline_ms() <= self.kit.now_ms {
            self.expire();
            return NextStep::Again;
        }
        if in_stream {
            return self.pump();
        }
        if !self.state.out.is_empty() {
            return NextStep::Wait; // The next request waits until these responses are sent.
        }
        match self.state.phase {
            Phase::Head if self.state.close_after => self.begin_linger(),
            Phase::Head | Phase::Body(_) => self.read_requests(),
            Phase::Called(_) => self.serve_call(),
            Phase::Linger => self.discard(),
            Phase::Items(_) => self.pump_items(),
            Phase::Stream(_) | Phase::Closed => NextStep::Wait,
        }
    }

    /// Sends queued bytes until the kernel accepts no more. Returns `false` if the connection has
    /// failed.
    pub(super) fn flush(&mut self) -> bool {
        let state = &mut *self.state;
        let Some(socket) = &mut state.socket else {
            return false;
        };
        let before = state.out.n_sent();
        let flushed = state.out.flush(socket, &self.shared.buffers);
        let n_sent = state.out.n_sent() - before;
        self.shared.config.metrics.sent(n_sent);
        match flushed {
            Ok(Flushed::All) => {
                state.stall_ms = NEVER;
                if state.is_idle() {
                    state.phase_ms = self.kit.now_ms + millis(self.shared.config.limits.idle);
                }
            }
            Ok(Flushed::Blocked { progress }) => {
                state.blocked = true;
                self.note_stall(progress);
            }
            Ok(Flushed::Paused) => self.note_stall(true),
            Err(_) => return false,
        }
        self.finish_answers();
        true
    }

    /// Sends bytes that the TLS layer itself produces, such as alerts. Returns `false` if the
    /// connection has failed.
    fn settle(&mut self) -> bool {
        let Some(socket) = self.state.socket.as_mut().filter(|socket| socket.owes()) else {
            return true;
        };
        match socket.settle() {
            Ok(true) => self.state.stall_ms = NEVER,
            Ok(false) => {
                self.state.blocked = true;
                self.note_stall(false);
            }
            Err(_) => return false,
        }
        true
    }

    /// Records that the kernel accepts no more bytes. If `progress` is `true`, the kernel has
    /// accepted some bytes in this call, so the time limit within which the client must read starts
    /// again.
    pub(super) fn note_stall(&mut self, progress: bool) {
        if progress || self.state.stall_ms == NEVER {
            let limit = self.shared.config.limits.write_stall;
            self.state.stall_ms = self.kit.now_ms + millis(limit);
        }
    }

    /// Ends the phase whose deadline has passed: closes the connection or sends an error response.
    fn expire(&mut self) {
        if !self.state.out.is_empty() {
            return self.end(CutReason::Stalled);
        }
        match &self.state.phase {
            Phase::Head if self.is_in_handshake() => {
                self.tell_no_handshake();
                self.close(false);
            }
            Phase::Head if self.state.is_idle() => self.close_in_order(),
            Phase::Head => {
                let head = mem::take(&mut self.state.input);
                self.refuse_head(408, "the request head was not received in time", &head);
            }
            Phase::Body(_) => self.refuse_late_body(),
            Phase::Linger => self.close(false),
            Phase::Called(_) | Phase::Stream(_) | Phase::Items(_) | Phase::Closed => {}
        }
    }

    /// Closes only the sending side, so that the peer can still read the bytes that were sent. If
    /// both sides were closed while the peer still sends, the kernel would reset the connection.
    fn begin_linger(&mut self) -> NextStep {
        self.state.input = Vec::new();
        let fell_short = self.state.fell_short;
        let said = match &mut self.state.socket {
            Some(socket) if !fell_short => socket.say_end(),
            _ => Ok(true),
        };
        let linger_ms = self.kit.now_ms + millis(self.shared.config.limits.linger);
        if let Ok(false) = said {
            self.state.blocked = true;
            self.state.phase_ms = self.state.phase_ms.min(linger_ms);
            return NextStep::Wait;
        }
        self.shut_and_linger(linger_ms);
        NextStep::Again
    }

    fn shut_and_linger(&mut self, until_ms: u64) {
        let shut = match &self.state.socket {
            Some(socket) => socket.shut_write(),
            None => Ok(()),
        };
        if shut.is_err() {
            return self.close(false);
        }
        self.state.phase = Phase::Linger;
        self.state.phase_ms = until_ms;
        self.state.readable = true;
    }

    fn is_in_handshake(&self) -> bool {
        let socket = self.state.socket.as_ref();
        socket.is_some_and(Transport::is_in_handshake)
    }

    /// Reports a failed TLS handshake and closes the sending side. The connection stays open for
    /// the linger time, so that the peer can read the TLS alert.
    pub(super) fn refuse_handshake(&mut self) {
        self.tell_no_handshake();
        let linger_ms = self.kit.now_ms + millis(self.shared.config.limits.linger);
        self.shut_and_linger(linger_ms);
    }

    /// Closes a connection between two requests. With TLS, sends the alert `close_notify` first,
    /// from which the peer detects that it has received all bytes.
    pub(super) fn close_in_order(&mut self) {
        if let Some(socket) = &mut self.state.socket
            && !socket.is_in_handshake()
        {
            let _ = socket.say_end();
        }
        self.close(false);
    }

    /// Reads and discards bytes until the peer closes its side or the linger time ends. If the
    /// connection were closed while bytes still arrive, the kernel would reset it. The peer could
    /// then lose the response that rejects its upload.
    fn discard(&mut self) -> NextStep {
        if !self.state.readable && !self.state.peer_closed {
            return NextStep::Wait;
        }
        if !self.kit.is_of_loop() {
            return NextStep::Elsewhere;
        }
        let Some(socket) = &mut self.state.socket else {
            return NextStep::Wait;
        };
        match socket.discard(&mut self.kit.scratch) {
            Ok(n) if n > 0 => self.shared.config.metrics.received(n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.state.readable = false;
                self.state.peer_closed = false;
            }
            _ => self.close(false),
        }
        NextStep::Again
    }

    /// Aborts the connection by a reset, which discards the bytes that the kernel has not sent yet.
    /// Because of the reset, the client detects that its response is truncated, whatever the
    /// framing of the body is.
    pub(super) fn end(&mut self, why: CutReason) {
        let n_sent = self.state.out.n_sent();
        let in_body = matches!(self.state.phase, Phase::Stream(_) | Phase::Items(_));
        let in_answer = !self.state.out.is_empty() || in_body;
        while let Some(answer) = self.state.answers.pop_front() {
            let cut = answer.end > n_sent;
            self.finish(answer, n_sent, cut.then_some(why));
        }
        match mem::replace(&mut self.state.phase, Phase::Closed) {
            Phase::Stream(stream) => self.abandon(*stream, why, n_sent),
            Phase::Items(stream) => self.abandon_items(*stream, why, n_sent),
            phase => self.abandon_call(phase, why),
        }
        self.close(in_answer);
    }

    /// Removes the connection from the server and closes the socket. If `reset` is `true`, the
    /// connection is reset (TCP RST).
    pub(super) fn close(&mut self, reset: bool) {
        let phase = mem::replace(&mut self.state.phase, Phase::Closed);
        self.abandon_call(phase, CutReason::Client);
        self.state.out.clear(&self.shared.buffers);
        self.state.input = Vec::new();
        // The server removes the connection from its list before the peer can see the close. A
        // connection that a peer sees as closed is therefore never counted as open.
        self.shared.forget(self.connection);
        if let Some(socket) = self.state.socket.take()
            && reset
        {
            let _ = socket.reset_on_close();
        }
    }
}
