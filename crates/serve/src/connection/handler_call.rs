//! Methods of [`Drive`] for a handler that is called before the body of its request is received.
//! Such a handler may request the body (`Expect: 100-continue`).

use std::mem;
use std::sync::Arc;

use onecopy_wire::http::HeadIndex;

use super::Phase;
use super::answer::Answer;
use super::body_reader::{BodyCoding, BodyReceiver};
use super::drive::{Drive, NextStep};
use super::exchange::{AnswerTerms, CutReason, Exchange};
use super::flags::ASKED;
use super::pending::{HandlerCall, PendingHandler};
use crate::access::Outcome;
use crate::awaited::{AwaitedBody, BodyError, BodyRequest, ExpectPermit};
use crate::response::Response;

impl Drive<'_> {
    /// Prepares the call to the handler for a request with the head `head`. At this time, the
    /// server has not sent `100 Continue`.
    pub(super) fn begin_call(
        &mut self,
        head: Vec<u8>,
        index: HeadIndex,
        coding: BodyCoding,
        exchange: Exchange,
        permit: ExpectPermit,
    ) {
        let awaiting = Arc::clone(&permit.request);
        let announced = coding.announced();
        // The references are weak, because a handler may keep the body after the server has ended.
        let (shared, connection) = (Arc::downgrade(self.shared), Arc::downgrade(self.connection));
        let notify = move || match (shared.upgrade(), connection.upgrade()) {
            (Some(shared), Some(connection)) => {
                shared.signal(&connection, ASKED);
                true
            }
            _ => false,
        };
        let body = AwaitedBody::new(&awaiting, announced, notify);
        let call = HandlerCall {
            head,
            index,
            body,
            _permit: permit,
        };
        self.state.phase = Phase::Called(Box::new(PendingHandler {
            exchange,
            awaiting,
            call: Some(Box::new(call)),
            unasked: Some(coding),
        }));
    }

    /// If the handler was not called yet, prepares the call and returns it as the next step of the
    /// connection. If the handler was called and has requested the body, queues `100 Continue` and
    /// starts to receive the body.
    pub(super) fn serve_call(&mut self) -> NextStep {
        let is_of_loop = self.kit.is_of_loop();
        let Phase::Called(called) = &mut self.state.phase else {
            return NextStep::Again;
        };
        if called.call.is_some() {
            if !is_of_loop {
                return NextStep::Elsewhere;
            }
            if !self.shared.scheduler.enter_handler(self.connection) {
                return NextStep::Deferred;
            }
        }
        if let Some(call) = called.call.take() {
            return NextStep::Call(call);
        }
        if called.unasked.is_none() || !called.awaiting.is_asked() {
            return NextStep::Wait;
        }
        let phase = mem::replace(&mut self.state.phase, Phase::Head);
        if let Phase::Called(called) = phase
            && let Some(coding) = called.unasked
        {
            self.say_go_on();
            self.begin_body(BodyReceiver::Tell(called.awaiting), coding, called.exchange);
        }
        NextStep::Again
    }

    /// Queues the interim response `100 Continue`.
    pub(super) fn say_go_on(&mut self) {
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
        self.state.out.frame(|out| out.extend_from_slice(interim));
    }

    /// Processes the response of a handler that has returned, or lends the output to a handler that
    /// begins its response before it returns. Returns `true` if the output was lent. In that case
    /// the handler's thread now owns the connection.
    pub(super) fn end_call(&mut self) -> bool {
        let begins = self.connection.takes_output_request();
        let response = self.connection.take_answer();
        if !begins && response.is_none() {
            return false;
        }
        let Some(exchange) = self.end_body() else {
            if begins {
                self.connection.refuse_output_request();
            }
            return false;
        };
        match response {
            Some(response) => self.answer_call(exchange, response),
            None => {
                let start = self.state.out.n_pushed();
                self.lend(
                    Some(AnswerTerms::of(&exchange, start)),
                    Some(Box::new(exchange)),
                );
                self.connection.wake_writer();
            }
        }
        begins
    }

    /// Called after a handler that owned the connection has returned. Takes the ownership back, and
    /// sends the part of the response that the handler has not sent itself.
    pub(super) fn end_begun(&mut self, response: Option<Response>) {
        let returned = self.take_back();
        let Some(exchange) = returned.exchange else {
            return;
        };
        match returned.begun {
            Some((terms, begun)) => self.continue_begun(*exchange, terms, *begun, response),
            None => self.answer_call(*exchange, response),
        }
    }

    /// Stops waiting for the request body, because the response begins. Returns the request's
    /// properties, or `None` if the connection has ended.
    fn end_body(&mut self) -> Option<Exchange> {
        let (mut exchange, unread) = match mem::replace(&mut self.state.phase, Phase::Head) {
            Phase::Called(called) => {
                let unread = called.unasked.is_some().then_some(called.awaiting);
                (called.exchange, unread)
            }
            Phase::Body(reader) => match reader.into_told() {
                Some((exchange, awaiting)) => (exchange, Some(awaiting)),
                None => return None, // No other request is read while a handler has the connection.
            },
            other => {
                self.state.phase = other; // The connection has ended meanwhile.
                return None;
            }
        };
        if let Some(awaiting) = unread {
            // The next bytes from the client may be the body or a new request, and the server
            // cannot distinguish these two cases. Therefore the connection is not kept alive.
            awaiting.settle(Err(BodyError::Answered));
            exchange.keep_alive = false;
        }
        self.await_request();
        Some(exchange)
    }

    /// Ends the wait of a handler for the body of its request with `error`. The client is still
    /// connected, so the handler can still send a response.
    pub(super) fn fail_call(
        &mut self,
        exchange: Exchange,
        awaiting: Arc<BodyRequest>,
        error: BodyError,
    ) {
        awaiting.settle(Err(error));
        let exchange = Exchange {
            keep_alive: false,
            outcome: Outcome::Refused,
            ..exchange
        };
        self.state.phase = Phase::Called(Box::new(PendingHandler::settled(exchange, awaiting)));
    }

    /// Reports a request whose connection ends while its handler runs. `phase` is the phase in
    /// which the connection ended. A handler that waits for the request body gets an error. The
    /// response of the handler is discarded later.
    pub(super) fn abandon_call(&mut self, phase: Phase, why: CutReason) {
        let call = match phase {
            Phase::Called(called) => Some((called.exchange, called.awaiting)),
            Phase::Body(reader) => reader.into_told(),
            _ => None,
        };
        let Some((exchange, awaiting)) = call else {
            return;
        };
        awaiting.settle(Err(match why {
            CutReason::Client | CutReason::Stalled => BodyError::Gone,
            CutReason::Stopped => BodyError::Stopped,
        }));
        let n_sent = self.state.out.n_sent();
        self.finish(Answer::none(exchange, n_sent), n_sent, Some(why));
    }
}
