//! Handlers that run before their request's body has come, and ask for it when they want it.

use std::mem;
use std::sync::Arc;

use onecopy_wire::http::HeadIndex;

use super::Phase;
use super::answer::Answer;
use super::body_reader::{BodyCoding, BodyReceiver};
use super::drive::{Drive, Step};
use super::exchange::{AnswerTerms, CutReason, Exchange};
use super::flags::ASKED;
use super::pending::{HandlerCall, PendingHandler};
use crate::access::Outcome;
use crate::awaited::{AwaitedBody, BodyError, BodyRequest, ExpectPermit};
use crate::response::Response;

impl Drive<'_> {
    /// Prepares the call of the handler for the request with this head, whose body is not asked for.
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
        // Not kept alive: a handler may keep its body for longer than the server runs.
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

    /// Calls the handler, or does what it asked for.
    pub(super) fn serve_call(&mut self) -> Step {
        let is_of_loop = self.kit.is_of_loop();
        let Phase::Called(called) = &mut self.state.phase else {
            return Step::Again;
        };
        if called.call.is_some() {
            if !is_of_loop {
                return Step::Elsewhere;
            }
            if !self.shared.scheduler.enter_handler(self.connection) {
                return Step::Deferred;
            }
        }
        if let Some(call) = called.call.take() {
            return Step::Call(call);
        }
        if called.unasked.is_none() || !called.awaiting.is_asked() {
            return Step::Wait;
        }
        let phase = mem::replace(&mut self.state.phase, Phase::Head);
        if let Phase::Called(called) = phase
            && let Some(coding) = called.unasked
        {
            self.say_go_on();
            self.begin_body(BodyReceiver::Tell(called.awaiting), coding, called.exchange);
        }
        Step::Again
    }

    /// Tells the client to send the body.
    pub(super) fn say_go_on(&mut self) {
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
        self.state.out.frame(|out| out.extend_from_slice(interim));
    }

    /// A handler has returned from its call, or begins its answer before that. Queues the answer;
    /// or hands the connection over to the handler's thread: `true`.
    pub(super) fn end_call(&mut self) -> bool {
        let begins = self.connection.takes_loan_request();
        let response = self.connection.take_answer();
        if !begins && response.is_none() {
            return false;
        }
        let Some(exchange) = self.end_body() else {
            if begins {
                self.connection.refuse_loan();
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

    /// The thread of a handler that had begun its answer comes back with the rest of it.
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

    /// The request's body is not received any further. `None`: there is no such request, for the
    /// connection has ended.
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
            // What the client sends now is the body, or a request: nobody can tell.
            awaiting.settle(Err(BodyError::Answered));
            exchange.keep_alive = false;
        }
        self.await_request();
        Some(exchange)
    }

    /// The body of a call will not come, though the client is there: the handler is told, and answers.
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

    /// The connection ends in `phase`: where a handler runs, it is told that no body comes; its answer will be dropped.
    pub(super) fn abandon_call(&mut self, phase: Phase, why: CutReason) {
        let told = match phase {
            Phase::Called(called) => Some((called.exchange, called.awaiting)),
            Phase::Body(reader) => reader.into_told(),
            _ => None,
        };
        let Some((exchange, awaiting)) = told else {
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
