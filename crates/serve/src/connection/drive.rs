//! The order of steps on a connection, its deadlines, its end.

use std::io;
use std::mem;
use std::sync::Arc;

use super::exchange::CutReason;
use super::flags::{ANSWERED, CUT, FILLED, HUNG_UP, READABLE, STOP, TIMER, WRITABLE};
use super::pending::HandlerCall;
use super::writer::HandlerConnection;
use super::{Connection, Phase, State};
use crate::guard;
use crate::lock;
use crate::out::Flushed;
use crate::request::{Request, RequestBody};
use crate::response::Response;
use crate::shared::Shared;
use crate::thread_kit::ThreadKit;
use crate::timers::{NEVER, millis};
use crate::transport::Transport;
use crate::workers::{FillHost, Workers};

/// Steps on one connection before the others have their turn.
const MAX_STEPS: u32 = 256;

/// What a step says about the next one.
pub(super) enum Step {
    /// There may be more to do.
    Again,
    /// Nothing to do until a flag comes.
    Wait,
    /// To be continued by a thread of the loop.
    Elsewhere,
    /// The request waits for a handler to end; the connection stays owned.
    Deferred,
    /// The thread is to run a handler, and to let go of the connection meanwhile.
    Call(Box<HandlerCall>),
    /// The thread of a handler owns the connection now.
    HandedOver,
}

/// A connection being driven: its state and all that is around it.
pub(super) struct Drive<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) connection: &'a Arc<Connection>,
    pub(super) kit: &'a mut ThreadKit,
    pub(super) state: &'a mut State,
}

/// Goes on with a connection that the caller owns, until there is nothing to do; then nobody owns it.
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
                // A client that never stops sending must not keep the thread from the others.
                Step::Again if n_steps == MAX_STEPS => break Step::Elsewhere,
                Step::Again => n_steps += 1,
                Step::Deferred | Step::HandedOver => return,
                last => break last,
            }
        };
        shared.set_deadline(connection, state.deadline_ms());
        match last {
            Step::Call(call) => {
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
                    return; // Who has it by now finds the answer.
                }
                kit.now_ms = shared.now_ms();
                state = lock(&connection.state);
            }
            Step::Elsewhere => {
                drop(state);
                return shared.queue(Arc::clone(connection));
            }
            _ if connection.flags.release() => return,
            _ => {}
        }
    }
}

/// Runs the handler, whose turn was had. `None`: it panicked.
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

/// Leaves `flags` for `connection`, and drives it on this thread if no other one owns it.
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

impl State {
    fn note(&mut self, flags: u32) {
        self.readable |= flags & READABLE != 0;
        if flags & (WRITABLE | HUNG_UP) != 0 {
            self.blocked = false; // A dead connection says so at the next try.
        }
        self.peer_closed |= flags & HUNG_UP != 0;
        self.timer_due |= flags & TIMER != 0;
        self.cut |= flags & CUT != 0;
        self.filled |= flags & FILLED != 0;
        self.answered |= flags & ANSWERED != 0;
        if flags & STOP != 0 {
            // A request may be in the socket that no event has told of yet: look before closing as idle.
            self.readable = true;
        }
    }

    fn deadline_ms(&self) -> u64 {
        match self.phase {
            Phase::Closed => NEVER,
            _ if !self.out.is_empty() => self.stall_ms,
            // A query may take as long as the handler lets it, and so may the handler.
            Phase::Called(_) | Phase::Stream(_) | Phase::Items(_) => NEVER,
            _ => self.phase_ms,
        }
    }
}

impl Drive<'_> {
    fn step(&mut self) -> Step {
        if mem::take(&mut self.state.answered) && self.end_call() {
            return Step::HandedOver;
        }
        let in_stream = matches!(self.state.phase, Phase::Stream(_));
        let in_items = matches!(self.state.phase, Phase::Items(_));
        if !in_stream && mem::take(&mut self.state.filled) {
            self.late_fill();
        }
        if matches!(self.state.phase, Phase::Closed) {
            return Step::Wait;
        }
        if self.state.cut {
            self.end(CutReason::Stopped);
            return Step::Again;
        }
        if !self.state.out.is_empty() && !self.state.blocked && !self.flush() {
            self.end(CutReason::Client);
            return Step::Again;
        }
        if !self.state.out.is_empty() && !self.state.blocked {
            return Step::Elsewhere; // It has sent enough for now; there are others.
        }
        if self.state.out.is_empty() && !self.state.blocked && !self.settle() {
            self.end(CutReason::Client);
            return Step::Again;
        }
        if self.state.peer_closed && (in_stream || in_items) {
            // Also a peer that only closed its sending side: the two look alike until a byte is refused, and a
            // query that runs for nobody costs more than such a client.
            self.end(CutReason::Client);
            return Step::Again;
        }
        if mem::take(&mut self.state.timer_due) && self.state.deadline_ms() <= self.kit.now_ms {
            self.expire();
            return Step::Again;
        }
        if in_stream {
            return self.pump();
        }
        if !self.state.out.is_empty() {
            return Step::Wait; // No new request before the answers to the former are taken.
        }
        match self.state.phase {
            Phase::Head if self.state.close_after => self.begin_linger(),
            Phase::Head | Phase::Body(_) => self.read_requests(),
            Phase::Called(_) => self.serve_call(),
            Phase::Linger => self.discard(),
            Phase::Items(_) => self.pump_items(),
            Phase::Stream(_) | Phase::Closed => Step::Wait,
        }
    }

    /// Sends what it can. `false` if the connection is dead.
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
                if matches!(state.phase, Phase::Head) && state.input.is_empty() {
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

    /// Sends what the transport itself has to say. `false` if the connection is dead.
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

    /// The client took no more at the last try; its time begins anew where it has taken some.
    pub(super) fn note_stall(&mut self, progress: bool) {
        if progress || self.state.stall_ms == NEVER {
            let limit = self.shared.config.limits.write_stall;
            self.state.stall_ms = self.kit.now_ms + millis(limit);
        }
    }

    /// A deadline has passed.
    fn expire(&mut self) {
        if !self.state.out.is_empty() {
            return self.end(CutReason::Stalled);
        }
        match &self.state.phase {
            Phase::Head if self.is_in_handshake() => {
                self.tell_no_handshake();
                self.close(false);
            }
            Phase::Head if self.state.input.is_empty() => self.close_in_order(),
            Phase::Head => self.refuse(408, "the request head did not come in time", None),
            Phase::Body(_) => self.refuse_late_body(),
            Phase::Linger => self.close(false),
            Phase::Called(_) | Phase::Stream(_) | Phase::Items(_) | Phase::Closed => {}
        }
    }

    /// Closes our side. What was sent stays readable for the peer even if it goes on sending; a close would reset.
    fn begin_linger(&mut self) -> Step {
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
            return Step::Wait;
        }
        self.shut_and_linger(linger_ms);
        Step::Again
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

    /// The peer left in a handshake, or was told what is wrong with it: it is to have the time to read that.
    pub(super) fn refuse_handshake(&mut self) {
        self.tell_no_handshake();
        let linger_ms = self.kit.now_ms + millis(self.shared.config.limits.linger);
        self.shut_and_linger(linger_ms);
    }

    /// Closes between requests: the peer is to know that nothing is missing.
    pub(super) fn close_in_order(&mut self) {
        if let Some(socket) = &mut self.state.socket
            && !socket.is_in_handshake()
        {
            let _ = socket.say_end();
        }
        self.close(false);
    }

    /// Reads and drops what the peer still sends, up to its end. Only time limits it: a close while bytes come would
    /// be a reset, and the peer might never see why its upload was refused.
    fn discard(&mut self) -> Step {
        if !self.state.readable && !self.state.peer_closed {
            return Step::Wait;
        }
        if !self.kit.is_of_loop() {
            return Step::Elsewhere;
        }
        let Some(socket) = &mut self.state.socket else {
            return Step::Wait;
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
        Step::Again
    }

    /// Ends the connection in the middle of something. What the kernel still holds is dropped by a reset, so that a cut
    /// answer of any framing is an error for whoever reads it.
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

    /// Takes the connection out of the server and closes the socket, by a reset if `reset`.
    pub(super) fn close(&mut self, reset: bool) {
        let phase = mem::replace(&mut self.state.phase, Phase::Closed);
        self.abandon_call(phase, CutReason::Client);
        self.state.out.clear(&self.shared.buffers);
        self.state.input = Vec::new();
        // Before the peer sees the end: a connection that is closed is never counted as open.
        self.shared.forget(self.connection);
        if let Some(socket) = self.state.socket.take()
            && reset
        {
            let _ = socket.reset_on_close();
        }
    }
}
